"""The command normscope, and what a wheel has for it."""

import re
import tomllib

import pandas as pd
import pytest
from processes import ROOT

from normscope.cli import main


def test_run_gives_its_words_to_snakemake_and_ends_as_it_does(capfd):
    with pytest.raises(SystemExit) as end:
        main(["run", "--version"])
    assert end.value.code == 0
    assert capfd.readouterr().out.startswith("9.")
    with pytest.raises(SystemExit) as end:
        main(["run", "--no-such-flag"])
    assert end.value.code


def test_compare_prints_a_sentence_per_level(tmp_path, capsys):
    runs = [("a", 1, 2.0), ("b", 1, 2.1), ("a", 2, 2.0), ("b", 2, 2.3), ("b", 3, 2.0)]
    table = pd.DataFrame(runs, columns=["kind", "seed", "loss"])
    table.to_csv(tmp_path / "runs.csv", index=False)
    main(["compare", str(tmp_path / "runs.csv"), "--by", "kind"])
    said = capsys.readouterr().out
    assert said.startswith(
        "The loss of b minus that of a is 0.200 (95% confidence interval −1.07 to"
    )
    assert "unpaired runs left out: 1" in said


def test_a_misspelled_word_is_an_error_before_anything_starts(capsys):
    for words in (["card", "x", "--bugdet", "1 h"], ["crad"], []):
        with pytest.raises(SystemExit):
            main(words)
        assert "usage: normscope" in capsys.readouterr().err


def test_a_wheel_has_what_the_code_asks_of_the_project():
    """Every path below the project's folder that the rules and the package name."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    included = build["targets"]["wheel"]["force-include"]
    assert included == {name: f"normscope/project/{name}" for name in included}
    assert all((ROOT / name).exists() for name in included)
    rules = [*(ROOT / "workflow/rules").glob("*.smk"), ROOT / "Snakefile"]
    named = re.findall(
        r'(?:project\(f?"|PROJECT, "|PROJECT / "|NORMSCOPE/)([\w.]+)',
        "".join(path.read_text() for path in [*rules, *(ROOT / "src").rglob("*.py")]),
    )
    assert {"config.yaml", "constraints.txt", "scripts", "workflow", "evidence"} <= {*named}
    assert {*named} <= included.keys()
