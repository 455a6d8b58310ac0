"""The folder of the studies, each of which has its registries, figures and section in its own."""

from pathlib import Path

FOLDER = Path(__file__).parent
