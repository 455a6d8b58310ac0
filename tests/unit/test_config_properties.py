"""Whatever a configuration says, it is refused with the key, or all its jobs can be listed."""

import copy
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from processes import ROOT
from recipes import examples

from normscope.config import Config, ConfigError, load
from normscope.io.yamlfile import overlay
from normscope.pilot import read_project

MAIN = read_project(ROOT)
TINY = overlay(MAIN, yaml.safe_load((ROOT / "config/tiny.yaml").read_text()))
NAME = r"[a-z0-9][a-z0-9_.-]*"  # what the Snakefile allows for {name}

Place = tuple[str | int, ...]


def places(node: Any, at: Place = ()) -> Iterator[Place]:
    """Every place of a configuration, of mappings, lists and single values."""
    parts: Any = ()
    if isinstance(node, dict):
        parts = node.items()
    elif isinstance(node, list):
        parts = enumerate(node)
    for key, part in parts:
        yield (*at, key)
        yield from places(part, (*at, key))


def inner(node: Any, at: Place) -> Any:
    for part in at:
        node = node[part]
    return node


BASES = {"config.yaml": MAIN, "tiny.yaml": TINY}
PLACES = {name: list(places(base)) for name, base in BASES.items()}
# what stands somewhere in the project's configurations, so that edits may be valid
KNOWN = [inner(BASES[name], at) for name in BASES for at in PLACES[name]]
KEYS = sorted({str(part) for found in PLACES.values() for at in found for part in at})
SINGLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 400) | st.integers(),
    st.floats() | st.floats(0, 1),
    st.text(max_size=8),
    st.sampled_from([2**63, 10**400, 5e-324, 1e300, "1e-3", "٣", "12:30", ".inf", "yes", "[1, 2"]),
    st.dates(),
)
INNER = st.text(max_size=6) | st.integers()
VALUES = SINGLE | st.sampled_from(KNOWN) | st.lists(SINGLE, max_size=3)
VALUES |= st.dictionaries(INNER, SINGLE, max_size=3)


def alike(value: Any) -> st.SearchStrategy[Any]:
    """Other values of the same type, so that an edit may be valid."""
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, int):
        return st.integers(0, 2 * value + 1) | st.sampled_from([1, 2**62, 2**64, 10**30, 10**400])
    if isinstance(value, float):
        return st.floats(0, 1) | st.sampled_from([5e-324, 1e-300, 1e-30, 0.0, 1e30, 1e300])
    if isinstance(value, str):
        return st.sampled_from([known for known in KNOWN if isinstance(known, str)])
    if isinstance(value, list):
        return st.lists(st.sampled_from(value), max_size=4) if value else st.just([])
    return st.sampled_from([known for known in KNOWN if isinstance(known, dict)])


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, list[tuple[str, Place, Any]]]:
    """A configuration of the project, and one to three edits of it: kind, place and value."""
    base = draw(st.sampled_from(sorted(BASES)))
    drawn = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["alike", "alike", "alike", "replace", "delete", "add"]))
        at = draw(st.sampled_from(PLACES[base]))
        if kind == "add" and isinstance(at[-1], str):
            at = (*at[:-1], draw(st.text(max_size=6) | st.sampled_from(KEYS)))
        if kind == "alike":
            value = draw(alike(inner(BASES[base], at)))
        else:
            value = None if kind == "delete" else draw(VALUES)
        drawn.append((kind, at, value))
    return base, drawn


def edit(base: str, changes: list[tuple[str, Place, Any]]) -> dict[str, Any]:
    """The configuration with these edits, but for those whose place an earlier one took away."""
    raw = copy.deepcopy(BASES[base])
    for kind, at, value in changes:
        with suppress(LookupError, TypeError):
            node = inner(raw, at[:-1])
            if kind == "delete":
                del node[at[-1]]
            else:
                node[at[-1]] = copy.deepcopy(value)
    return raw


def all_jobs(config: Config) -> None:
    """Everything that the workflow asks of a configuration before a job starts."""
    assert Config.model_validate_json(config.model_dump_json()) == config
    for study in config.studies.values():
        trainings, probes = study.trainings(), study.probes()
        for job in (*trainings.values(), *probes.values()):
            assert type(job).model_validate_json(job.model_dump_json()) == job
        for name in (*trainings, *probes):
            assert re.fullmatch(NAME, name)
            assert len(name) <= 200
        for name in probes:
            assert set(study.jobs_of_probe(name)) <= {*trainings, name}
        inputs = study.table_inputs(config.settings)
        assert len(set(inputs)) == len(inputs)
        study.tabulation(config.settings).model_dump_json()
        assert len(set(study.records())) == len(study.records())
        study.vocabulary()
        for stack in trainings.values():
            assert study.train_mb(stack, "cpu") > 0
        assert study.training_flops().keys() == trainings.keys()
        assert all(0 < flops < math.inf for flops in study.training_flops().values())
    assert round(1000 * config.pretrained.memory_gb) > 0
    for source in [*config.dataset.sources, *(m.source for m in config.pretrained.models)]:
        # a free lock is acquired without waiting, unless the timeout is too large for the clock
        assert Lock().acquire(timeout=getattr(source, "timeout_s", 1))


def concerns(line: str, at: Place) -> bool:
    """Whether a line of an error names a part of a place."""
    named = [part.removesuffix("s") for part in at if isinstance(part, str)]
    return any(not part.isprintable() or not part or part in line for part in named)


def check(base: str, changes: list[tuple[str, Place, Any]]) -> None:
    try:
        config = load(overlay({}, edit(base, changes)))
    except ConfigError as e:
        head, *lines = str(e).splitlines()
        assert head == f"the configuration has {len(lines)} problem(s):"
        for line in lines:
            assert len(line) < 1000
            assert any(concerns(line.strip(), at) for _, at, _ in changes), line
    else:
        all_jobs(config)


@examples(150)
@given(edits())
def test_an_edited_configuration_is_refused_by_its_keys_or_gives_its_jobs(change):
    check(*change)


def test_a_short_text_whose_aliases_hold_billions_of_values_is_one_short_message():
    parts: list[Any] = [["x"] * 10]
    for _ in range(9):
        parts.append([parts[-1]] * 10)
    for at in (("depth", "training"), ("main", "runs"), ("main", "runs", 0, "seeds"), ("dataset",)):
        check("config.yaml", [("replace", at, parts[-1])])


def test_dotted_keys_are_refused_with_the_way_to_nest_them():
    said = "recall.stack: unknown key; nest what is written with dots: recall: {stack: ...}"
    with pytest.raises(ConfigError, match=re.escape(said)):
        load(MAIN | {"recall.stack": 50})
