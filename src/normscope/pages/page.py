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
    options = (f"--template={folder / 'page.html'}", "--toc", "--section-divs=false")
    html = convert(f"{text}\n\n{provenance(manifest)}", "html", folder, *options)
    return IMAGE.sub(lambda image: f'{image[1]}{data_address(svgs[image[2]].decode())}"', html)


def data_address(svg: str) -> str:
    """A figure as the address of an image."""
    shown = {'"': "'", "#": "%23", "%": "%25", "&": "&amp;", "\n": " "}
    return f"data:image/svg+xml,{svg.translate(str.maketrans(shown))}"


def provenance(manifest: Mapping[str, Any]) -> str:
    """Where the results come from, as a section of Markdown."""
    note = manifest.get("note", ORIGIN)
    parts = {"Provenance": facts(manifest), "Packages": manifest["packages"]}
    tables = [
        PageTable(title, (Column("what"), Column("value")), tuple(rows.items()))
        for title, rows in parts.items()
    ]
    one, other = map(pipe_table, tables)
    return f"## Provenance\n\n{note}\n\n{one}\n\n### Packages\n\n{other}\n"


def facts(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Facts about the origin of the results, from the contents of manifest.json."""
    studies, dataset = manifest["studies"], manifest["dataset"]
    trained = {study: len(parts["models"]) for study, parts in studies.items() if parts["models"]}
    measured = [
        name
        for parts in studies.values()
        for name, model in parts["probes"].items()
        if model.get("missing") is None
    ]
    counted = ", ".join(f"{study} {n:,}" for study, n in trained.items())
    texts = {"Dataset": dataset} | {
        f"Text {name}": text for name, text in manifest.get("texts", {}).items()
    }
    return {
        "Configuration, SHA-256": manifest.get("config_sha256", DASH),  # several runs have none
        "Python": manifest["python"],
        "Device": manifest["device"],
        "Trainings": f"{sum(trained.values()):,} ({counted or 'none'})",
        "Models measured as they are": ", ".join(measured) or "none",
        **{title: text.get("origin", DASH) for title, text in texts.items()},
        **{
            f"{title}, {name}, SHA-256": digest
            for title, text in texts.items()
            for name, digest in text.get("sha256", {}).items()
        },
    }
