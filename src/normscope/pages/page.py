"""The page: Markdown as one HTML file that loads nothing and runs no script."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from normscope.formats import DASH
from normscope.pages.markdown import pipe_table
from normscope.pages.pandoc import convert
from normscope.pages.table import Column, PageTable

IMAGE = re.compile(r'(<img[^>]* src=")figures/([^"]+)\.svg"')
ORIGIN = """These values come from `manifest.json`, which also has the SHA-256 of every source. The
same inputs reproduce this page byte for byte."""


def page(folder: Path, text: str, svgs: Mapping[str, bytes], manifest: Mapping[str, Any]) -> str:
    """The whole page.

    Args:
        folder: of the templates, with ``page.html`` and ``pages.lua``.
        text: its text in Markdown.
        svgs: the figures by name.
        manifest: the contents of manifest.json, which the last section shows.

    Raises:
        Explained: a template is in error.
    """
    options = (f"--template={folder / 'page.html'}", "--section-divs=false")
    html = convert(f"{text}\n\n{provenance(manifest)}", "html", folder, *options)
    return IMAGE.sub(lambda image: f'{image[1]}{data_address(svgs[image[2]].decode())}"', html)


def data_address(svg: str) -> str:
    """A figure as the address of an image."""
    shown = {'"': "'", "#": "%23", "%": "%25", "&": "&amp;", "\n": " "}
    return f"data:image/svg+xml,{svg.translate(str.maketrans(shown))}"


def provenance(manifest: Mapping[str, Any]) -> str:
    """Where the results come from, as a section of Markdown; manifest.json has all of it."""
    models = sum(len(parts["models"]) for parts in manifest["studies"].values())
    packages = (f"{name} {version}" for name, version in manifest["packages"].items())
    facts = {
        "configuration, SHA-256": manifest.get("config_sha256", DASH),  # several runs have none
        "text": manifest["dataset"].get("origin", DASH),
        "trainings": f"{models:,}",
        "device": manifest["device"],
        "Python": manifest["python"],
        "packages": ", ".join(packages),
    }
    table = PageTable("", (Column("what"), Column("value")), tuple(facts.items()))
    return f"## Provenance\n\n{manifest.get('note', ORIGIN)}\n\n{pipe_table(table)}\n"
