"""Sphinx configuration. Code in MyST pages runs during a build: see how-this-page-is-made.md."""

import json
import logging
import os
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import checks  # noqa: E402
import keys  # noqa: E402
import lesson  # noqa: E402
import whole_pages  # noqa: E402

from normscope.errors import Explained  # noqa: E402

# kernels run in the folders of their pages
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, sys.path)])
os.environ[lesson.EVIDENCE] = str(
    Path(os.environ.get(lesson.EVIDENCE, HERE.parent / "evidence")).resolve()
)
os.environ["OMP_NUM_THREADS"] = "1"  # two pages are built in parallel
# run kernels without the settings and history of the user, and without a greeting
os.environ["IPYTHONDIR"] = str(HERE / "_build/ipython")
profile = Path(os.environ["IPYTHONDIR"], "profile_default")
profile.mkdir(parents=True, exist_ok=True)
(profile / "ipython_kernel_config.py").write_text("get_config().IPKernelApp.log_level = 'ERROR'\n")

# a figure of a card is also drawn as PDF, which reports every step of embedding its fonts
logging.getLogger("fontTools").setLevel(logging.WARNING)

project = "normscope"
html_title = "normscope"
extensions = ["myst_nb"]
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False
nb_execution_mode = "inline"
nb_execution_raise_on_error = False  # no_failed_cells fails the build and reports why
nb_execution_timeout = 600
nb_eval_name_regex = ".+"
nb_ipywidgets_js = {}
nb_merge_streams = True
nb_render_markdown_format = "gfm"

html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["tutorial.css"]
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False


class ResultFigure(SphinxDirective):
    """``{result-figure} signals``: a figure of the evidence with its caption."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        drawing = lesson.result(f"figures/{name}.svg")
        caption = json.loads(lesson.result("figures/captions.json").read_text())[name]
        uri = "/" + os.path.relpath(drawing, self.env.srcdir)
        image = nodes.image(uri=uri, alt=caption.partition(". ")[0])
        figure = nodes.figure("", image, nodes.caption(caption, caption), classes=["result"])
        figure["ids"] = [f"figure-{name}"]
        return [figure]


def no_digits(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fail the build if prose contains a typed digit, or if a cell would not run."""
    if "remove-cell" in source[0]:
        raise ExtensionError(f"{docname}.md: use remove-input, because removed cells do not run")
    lines = [] if checks.may_have_numbers(source[0]) else checks.digits(source[0])
    if lines:
        typed = "".join(f"\n  {docname}.md:{line}: {text}" for line, text in lines)
        raise ExtensionError(f"numbers in prose must come from evidence, as {{eval}} does:{typed}")


def with_tables(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the marks of tables of keys, and of the links to cards."""
    try:
        source[0] = whole_pages.filled(keys.filled(source[0]))
    except Explained as e:
        raise ExtensionError(str(e)) from e


def write_whole_pages(app: Sphinx) -> list[tuple[str, dict[str, str], str]]:
    """Write the page of the evidence, and the cards, if the site links to them."""
    if whole_pages.PAGE in app.env.found_docs:
        whole_pages.write(Path(app.outdir))
    return []


def no_failed_cells(app: Sphinx) -> None:
    """Fail the build if a cell fails, for example because a sentence is outdated."""
    env: Any = app.env
    runs = {name: NbMetadataCollector.get_exec_data(env, name) for name in env.found_docs}
    failed = {name: run["traceback"] or "" for name, run in runs.items() if run and run["error"]}
    if failed:
        ansi = re.compile(r"\x1b\[[\d;]*m")
        lines = {name: ansi.sub("", text).strip().splitlines()[-1] for name, text in failed.items()}
        stale = "".join(f"\n  {name}.md: {line}" for name, line in sorted(lines.items()))
        raise ExtensionError(f"the pages disagree with the evidence:{stale}")


def no_bad_links(app: Sphinx, exception: Exception | None) -> None:
    """Fail the build for dead links, and for anything that pages would load from a network."""
    if exception is None and app.builder.format == "html":
        faults = [*checks.loaded(Path(app.outdir)), *checks.dead_links(Path(app.outdir))]
        if faults:
            lines = "".join(f"\n  {line}" for line in faults)
            raise ExtensionError(f"the pages need a network, or links lead nowhere:{lines}")


def inline_math(translator: Any, node: nodes.Node) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block_math(translator: Any, node: nodes.Node) -> None:
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("result-figure", ResultFigure)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("source-read", no_digits)
    app.connect("source-read", with_tables)
    app.connect("html-collect-pages", write_whole_pages)
    app.connect("env-check-consistency", lambda app, _: no_failed_cells(app))
    app.connect("build-finished", no_bad_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
