"""The tutorial's pages: numbers come from evidence, and a stale sentence fails the build."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
import yaml

from normscope.config import Config, load
from normscope.nn.arms import ARMS
from normscope.statistics.outcome import with_outcome
from normscope.studies.depth.recipe import Kept, Shape
from normscope.studies.depth.tabulate import by_layer, sensitivity, warm_ups
from normscope.studies.textbook import tutorial as textbook

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)
SEEDS = range(1337, 1343)
NETWORKS = {  # gradient_kept, last_gradient
    Shape("layernorm", "pre", False, "gpt2", 12): (3.0, 7.0),
    Shape("none", "none", False, "xavier", 12): (1e-40, 1e-50),
    Shape("layernorm", "pre", True, "gpt2", 12): (1.2, 0.9),
    Shape("layernorm", "post", True, "gpt2", 12): (1.0, 0.05),
}
TRAINED = (("pre", True, 2.9), ("post", True, 3.1), ("pre", False, 3.2))  # with their loss


def config() -> Config:
    return load(yaml.safe_load((ROOT / "config.yaml").read_text()))


def kept() -> Kept:
    return config().depth.kept


def rates() -> pd.DataFrame:
    rows = []
    for shape, (ratio, last) in NETWORKS.items():
        for seed in SEEDS:
            wobble = 1 + 0.001 * (seed % 5)
            row = {**shape._asdict(), "state": "start", "seed": seed}
            row |= {"gradient_rate": wobble * 0.5, "gradient_kept": wobble * ratio}
            row["gradient_near"] = row["gradient_kept"]
            row |= {"stream_rate": 1.0, "stream_growth": wobble, "last_gradient": wobble * last}
            rows.append(row | {"smallest": 0.8, "largest": 1.2, "from_identity": 0.7, "lost": 0})
    return pd.DataFrame(rows)


def by_shape() -> pd.DataFrame:
    rows = []
    for shape, (ratio, _) in NETWORKS.items():
        head = {**shape._asdict(), "state": "start", "measure": "gradient_kept", "n": 6}
        rows.append(head | {"mean": ratio, "low": 0.9 * ratio, "high": 1.1 * ratio})
    return pd.DataFrame(rows)


def losses() -> pd.DataFrame:
    schedule = kept().model_dump()
    shared = {"arm": "layernorm", "init": "gpt2", "depth": 12, "unigram": 3.3} | schedule
    rows = [
        shared | {"placement": placement, "residual": residual, "seed": seed, "val_loss": loss}
        for placement, residual, at in TRAINED
        for seed, loss in zip(SEEDS, [at + 0.001 * i for i in range(6)], strict=True)
    ]
    return with_outcome(pd.DataFrame(rows).assign(diverged_at=float("nan")), 65, 3.3)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small evidence, in the schemas of the workflow's."""
    folder = tmp_path_factory.mktemp("evidence")
    wild, summary = textbook.wild()
    tables = {
        "depth.rates": rates(),
        "depth.by_shape": by_shape(),
        "depth.losses": losses(),
        "depth.sensitivity": sensitivity(losses()),
        "depth.layers": by_layer(rates()),
        "depth.warm_ups": warm_ups(losses()),
        "textbook.scratch": textbook.scratch(),
        "textbook.epsilon": textbook.small_tokens(),
        "textbook.affine": pd.DataFrame(columns=["seed", *textbook.AFFINE]),
        "textbook.sharing": textbook.sharing(),
        "textbook.batches": textbook.batches(0.95, sizes=(1, 2, 16), draws=5),
        "textbook.wild": wild,
        "textbook.wild_summary": summary,
        "textbook.undo": textbook.undo(tokens=256),
    }
    for name in (
        f"{s}.{t}" for s in ("depth", "main", "textbook") for t in config().studies[s].TABLES
    ):
        path = table_file(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(tables.get(name, {"unused": []})).to_csv(path, index=False)
    recorded = config().model_dump_json(exclude={"dataset", "device", "demonstration"})
    (folder / "manifest.json").write_text(f'{{"config": {recorded}}}')
    return folder


def table_file(folder: Path, name: str) -> Path:
    study, _, table = name.partition(".")
    return folder / study / f"{table}.csv"


@pytest.fixture
def evidence(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to be changed, which the pages read."""
    copy = shutil.copytree(made, tmp_path / "evidence")
    monkeypatch.setenv("NORMSCOPE_EVIDENCE", str(copy))
    return copy


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module(name)


@pytest.fixture
def lesson(evidence: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return module("lesson", monkeypatch)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return module("checks", monkeypatch)


def change(evidence: Path, name: str, column: str, placement: str, factor: float) -> None:
    """Scale a column of one placement's networks."""
    path = table_file(evidence, f"depth.{name}")
    table = pd.read_csv(path)
    table.loc[table["placement"] == placement, column] *= factor
    table.to_csv(path, index=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_pages_have_no_typed_numbers_and_no_cells_that_do_not_run(page: Path, checks: ModuleType):
    text = page.read_text()
    assert checks.may_have_numbers(text) or checks.digits(text) == []
    assert "remove-cell" not in text


def test_the_lesson_and_what_runs_may_have_no_typed_numbers(checks: ModuleType):
    may = {p.relative_to(DOCS).as_posix() for p in PAGES if checks.may_have_numbers(p.read_text())}
    assert {page for page in may if not page.startswith("reference/")} == {"results.md"}
    assert not checks.may_have_numbers("---\na: b\n---\ntyped_numbers: here\n")


def test_pages_of_keys_show_those_of_the_code(monkeypatch: pytest.MonkeyPatch):
    keys = module("keys", monkeypatch)
    _, outermost, *_ = keys.configuration().split("\n## ")
    assert all(f"| `{key}` |" in outermost for key in config().model_dump())
    assert all(f"`{arm}`" in keys.arms() for arm in ARMS)
    assert "`jacobian.surrogates`" in keys.vocabulary()
    for page in PAGES:
        assert "<!-- keys:" not in keys.filled(page.read_text())


@pytest.mark.parametrize(
    "typed",
    [
        "The loss is 2.8 nats.",
        "It has\n12 blocks.",
        "## The first 10 blocks",
        "| 3 | {eval}`x` |",
        ":::{note}\nAbout 5 %.\n:::",
        "[a page with 3 words](a.md)",
        "About $0.66$ per block.",
        "About $12$ blocks.",
        "In 2020 it was 5, as [Xiong et al. 2020](x) say.",
        "`code` 1 `code`",
        "```python\n1\n```\nthen 2",
        "L05b and GPT-3",
        "{eval}`3.75`",
        '{eval}`"17 %"`',
        "`1.23`",
        "{math}`4.56`",
        "half is ½",
        "```{note}\nThe loss is 2.8.\n```",
    ],
)
def test_a_typed_number_is_found(typed: str, checks: ModuleType):
    assert len(checks.digits(f"# Title\n\n{typed}\n")) == 1


@pytest.mark.parametrize(
    "source",
    [
        "---\nkernelspec:\n  name: python3\n---\n# Title",
        "```{code-cell} ipython3\nx = 1\n```",
        "````\n```\n1\n```\n````",
        "Now {eval}`lesson.rate('x', depth=12)` and `x[3]`, ``a`1``.",
        r"$\frac{1}{2}$ and $x_1$",
        "$$ y = \\sqrt{d - 1} $$",
        "[Ba et al. 2016](https://arxiv.org/abs/1607.06450), [Zhang & Sennrich 2019](x)",
        "GPT-2, and L05 at <https://example.org/1>",
        "1. first\n\n2. second",
        "<!-- 1 -->",
    ],
)
def test_other_digits_are_let_through(source: str, checks: ModuleType):
    assert checks.digits(source) == []


def test_a_line_is_named(checks: ModuleType):
    assert checks.digits("---\na: 1\n---\n\nfine\nnot 1\n") == [(6, "not 1")]


def test_a_changed_verdict_is_stale(lesson: ModuleType, evidence: Path):
    lesson.relies_on("vanishes", "holds")
    change(evidence, "rates", "gradient_near", "none", 1e42)
    lesson._read.cache_clear()
    lesson._claims.cache_clear()
    with pytest.raises(lesson.StaleProse, match="'vanishes' holds, but the evidence: fails"):
        lesson.relies_on("vanishes", "holds")


def test_a_changed_order_is_stale(lesson: ModuleType, evidence: Path):
    def prose() -> None:
        pre = lesson.rate("gradient_kept", "pre", 12, residual=False)
        none = lesson.rate("gradient_kept", "none", 12, residual=False, init="xavier")
        lesson.relies_on_order(none, 0.1, pre)

    prose()
    for column in ("mean", "low", "high"):
        change(evidence, "by_shape", column, "none", 1e42)
    lesson._read.cache_clear()
    with pytest.raises(lesson.StaleProse, match=r"is less than 0\.1"):
        prose()


def test_numbers_are_apart_or_close(lesson: ModuleType):
    one, other = lesson.Measured(1.0, 0.5, 1.5), lesson.Measured(2.0, 1.4, 2.6)
    lesson.relies_on_order(one, 1.6)
    lesson.relies_on_close(1.0, 1.04, 0.05)
    with pytest.raises(lesson.StaleProse):
        lesson.relies_on_order(one, other)
    with pytest.raises(lesson.StaleProse):
        lesson.relies_on_close(1.0, 1.1, 0.05)


def test_a_missing_result_says_what_makes_it(lesson: ModuleType, evidence: Path):
    table_file(evidence, "depth.trainability").unlink()
    with pytest.raises(lesson.MissingResult, match=r"evidence/depth/trainability\.csv is missing"):
        lesson.table("depth.trainability")


def test_a_value_needs_one_row(lesson: ModuleType):
    with pytest.raises(LookupError, match="0 rows"):
        lesson.rate("gradient_kept", "pre", 13)


def test_words(lesson: ModuleType):
    assert repr(lesson.Measured(6.8e-6, 6.5e-6, 7e-6)) == "6.80 × 10⁻⁶ [6.50 × 10⁻⁶, 7.00 × 10⁻⁶]"
    assert repr(lesson.Measured(2.5, float("nan"), float("nan"))) == "2.50"
    assert lesson.pretty("12 blocks, 4.4e+04") == "12 blocks, 4.4 × 10⁴"


def test_statements_are_shown_in_full(lesson: ModuleType):
    shown = lesson.verdicts()._repr_html_()
    assert shown.count("<details") == len(lesson.claims())
    assert "claim-holds" in lesson.verdicts("vanishes")._repr_html_()


GOOD = '<a href="b.html#here">b</a><a href="https://example.org">x</a><img src="a.svg">'


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        (GOOD, ""),
        ('<script src="https://cdn.example.org/x.js"></script>', "loads https://cdn"),
        ('<link rel="stylesheet" href="//fonts.example.org/f.css">', "loads //fonts"),
        ('<p style="background: url(http://example.org/x.png)">', "loads http://"),
        ('<img src="gone.svg">', "which does not exist"),
        ('<a href="b.html#gone">b</a>', "no such anchor"),
        ('<a href="#gone">here</a>', "no such anchor"),
    ],
)
def test_a_site_is_whole_and_offline(html: str, fault: str, tmp_path: Path, checks: ModuleType):
    (tmp_path / "a.html").write_text(html)
    (tmp_path / "b.html").write_text('<p id="here">b</p>')
    (tmp_path / "a.svg").write_text("<svg/>")
    faults = checks.faults(tmp_path)
    assert len(faults) == bool(fault)
    assert fault in "".join(faults)


def test_a_style_that_loads_fonts_is_found(tmp_path: Path, checks: ModuleType):
    (tmp_path / "a.css").write_text("@import 'https://example.org/a.css'; p { src: url(b.woff) }")
    assert checks.faults(tmp_path) == ["a.css loads https://example.org/a.css"]


PAGE = """---
file_format: mystnb
kernelspec:
  name: python3
---
# Title

```{{code-cell}} ipython3
:tags: [remove-input]
import lesson
lesson.relies_on("vanishes", "{verdict}")
```

It is {said}, $x^2$.
"""


@pytest.mark.parametrize(
    ("verdict", "said", "message"),
    [
        ("holds", "{eval}`lesson.rate('gradient_kept', 'pre', 12).alone`", ""),
        ("fails", "so", "prose says that 'vanishes' fails, but the evidence: holds"),
        ("holds", "1.2", "index.md:14: It is 1.2"),
        ("holds", "{eval}`lesson.rate('gradient_kept', 'pre', 13)`", "0 rows"),
        ("holds", "[gone](#gone)", "gone"),
    ],
)
def test_a_build_fails_for_what_is_stale(
    verdict: str, said: str, message: str, evidence: Path, tmp_path: Path
):
    (tmp_path / "pages/_static").mkdir(parents=True)
    (tmp_path / "pages/_static/tutorial.css").write_text("")
    (tmp_path / "pages/index.md").write_text(PAGE.format(verdict=verdict, said=said))
    options = ["-W", "-n", "-q", "-E", "-b", "html", "-c", str(DOCS), "-d", str(tmp_path / "trees")]
    build = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(tmp_path / "pages"), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (build.returncode == 0) == (not message)
    assert message in build.stderr
    if not message:
        html = (tmp_path / "html/index.html").read_text()
        assert ">1.20<" in html
        assert "<math" in html
