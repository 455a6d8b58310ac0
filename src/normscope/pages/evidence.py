"""The evidence: the verdicts of a run with more models, which the project keeps."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from normscope.pages.statements import words_of
from normscope.verdicts.verdict import Verdict, Verdicts
from normscope.verdicts.verdict import read as read_verdicts


class Evidence(NamedTuple):
    """The results of the evidence run.

    Args:
        configuration: The file that configured it.
        is_same: Whether the current run has the same configuration.
        verdicts: Its claims.json.
    """

    configuration: str
    is_same: bool
    verdicts: Verdicts


def read_evidence(folder: Path, config: Mapping[str, Any]) -> Evidence:
    """The evidence in a folder, compared with the configuration of the current run."""
    manifest, run = (json.loads((folder / f"{n}.json").read_text()) for n in ("manifest", "run"))
    # the evidence may record more parts, such as the style of figures: these decide no verdict
    is_same = all(manifest["config"].get(key) == value for key, value in config.items())
    kept = read_verdicts(folder / "claims.json")
    return Evidence(run["configuration"], is_same, kept)


def kept_verdict(verdict: Verdict, evidence: Evidence) -> str:
    """The verdict of a statement in the evidence."""
    other = evidence.verdicts.by_key.get(verdict.key)
    if other is None:
        return "not in the evidence"
    return words_of(other) + ", by another test" * (verdict.digest != other.digest)


def evidence_words(verdicts: Verdicts, evidence: Evidence) -> dict[str, Any]:
    """Words about the evidence, which compare statements that both runs tested in the same way.

    ``differing`` are those that the runs decide differently, ``alone`` is the number of those
    that only one run decides.
    """
    kept = evidence.verdicts.by_key
    pairs = [(one, kept[one.key]) for one in verdicts.verdicts if one.key in kept]
    unlike = [
        (one, other)
        for one, other in pairs
        if one.digest == other.digest and one.word != other.word
    ]
    differing = [
        {
            "statement": one.statement.says.rstrip("."),
            "here": words_of(one),
            "there": words_of(other),
        }
        for one, other in unlike
        if one.is_decided and other.is_decided
    ]
    return {
        "configuration": evidence.configuration,
        "is_same": evidence.is_same,
        "differing": differing,
        "alone": len(unlike) - len(differing),
    }
