"""A browser without a window, and the page that it opens: results/paper/summary.html.

Without either, tests are skipped with the reason; where CI is set they fail.
"""

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import need

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
    "disable-component-update disable-sync"
).split()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, of the distribution."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    need(program, f"no browser: {', '.join(BROWSERS)}")
    installed = importlib.util.find_spec("playwright")
    need(installed, "no playwright: pip install -c constraints-dev.txt '.[browser]'")
    playwright = importlib.import_module("playwright.sync_api")
    with playwright.sync_playwright() as tools:
        started = tools.chromium.launch(
            executable_path=program, args=[f"--{flag}" for flag in FLAGS]
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def summary() -> Path:
    """The page of this work tree, or the one that NORMSCOPE_PAGE names."""
    path = Path(os.environ.get("NORMSCOPE_PAGE", ROOT / "results" / "paper" / "summary.html"))
    way = "snakemake --cores 2 results/paper/summary.html"
    need(path.is_file(), f"no page: {path}; make it: {way}")
    return path.resolve()


class Visit:
    """An open page, with its messages and requests."""

    def __init__(self, context: Any, path: Path) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page = context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self.dismiss)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def dismiss(self, dialog: Any) -> None:
        self.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def visit(browser) -> Iterator[Callable[..., Visit]]:
    """Opens a page: ``visit(path, width=390, color_scheme="dark")``."""
    contexts = []

    def opened(path: Path, width: int = 1280, **choices: Any) -> Visit:
        context = browser.new_context(viewport={"width": width, "height": 900}, **choices)
        contexts.append(context)
        return Visit(context, path)

    yield opened
    for context in contexts:
        context.close()
