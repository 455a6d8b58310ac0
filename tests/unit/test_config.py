"""The configuration: what is allowed, and errors that name the key, the reason and the way out."""

import copy
from typing import Any

import pytest
import yaml
from processes import ROOT
from snakemake.utils import update_config

from normscope.config import ConfigError, load
from normscope.nn.arms import ARMS
from normscope.pilot import TRIALS, read_project, with_pilot
from normscope.studies.pilot import read_trials

MAIN = read_project(ROOT)
NANOGPT = "main.protocols.nanogpt"
KEYS = {"protocol": "nanogpt", "learning_rates": [0.001]}
RUNS = [
    {**KEYS, "arms": ["layernorm", "rmsnorm"], "placements": ["pre", "post"], "seeds": [1, 2]},
    {**KEYS, "arms": ["dyt"], "placements": ["pre"], "seeds": [1]},
]
SOURCES = [
    {"kind": "path", "path": "text.txt"},
    {"kind": "url", "url": "https://host/text.txt"},
]


def config(**changes: Any) -> dict:
    """``config.yaml`` with other runs and sources, and with values set at dotted keys."""
    dataset = {"sha256": "0" * 64, "sources": SOURCES}
    raw = copy.deepcopy(MAIN | {"main": MAIN["main"] | {"runs": RUNS}, "dataset": dataset})
    for key, value in changes.items():
        *path, last = (int(part) if part.isdigit() else part for part in key.split("."))
        node: Any = raw
        for part in path:
            node = node[part]
        node[last] = value
    return raw


def problems(raw: Any) -> list[str]:
    """The lines of the error, one per problem."""
    with pytest.raises(ConfigError) as e:
        load(raw)
    head, *lines = str(e.value).splitlines()
    assert head == f"the configuration has {len(lines)} problem(s):"
    return [line.strip() for line in lines]


def problem(**changes: Any) -> str:
    (line,) = problems(config(**changes))
    return line


def test_config_yaml_is_valid():
    assert load(MAIN).model_dump(mode="json", exclude_unset=True) == MAIN


def test_every_arm_trains_with_every_placement_and_seed_of_its_block():
    trained = load(config()).main.trainings()
    assert {name: stack.seeds for name, stack in trained.items()} == {
        "nanogpt-layernorm-pre-0.001-1": [1, 2],
        "nanogpt-layernorm-post-0.001-1": [1, 2],
        "nanogpt-rmsnorm-pre-0.001-1": [1, 2],
        "nanogpt-rmsnorm-post-0.001-1": [1, 2],
        "nanogpt-dyt-pre-0.001-1": [1],
    }


def test_a_rate_of_a_run_moves_the_whole_schedule_of_its_protocol():
    """Of training, or of a protocol: peak and end of the cosine in proportion."""
    small = {**RUNS[0], "protocol": "small", "arms": ["layernorm"], "learning_rates": [0.01]}
    trained = load(config(**{"main.runs": [*RUNS, small]})).main.trainings()
    main = trained["nanogpt-layernorm-pre-0.001-1"]
    nanogpt, ours = (MAIN["main"]["protocols"][name] for name in ("nanogpt", "small"))
    peak = nanogpt["training"]
    assert main.training.model_dump(include=set(peak)) == peak
    other = trained["small-layernorm-pre-0.01-1"]
    assert other.model.n_embd == ours["model"]["n_embd"] != main.model.n_embd
    ratio = ours["training"]["min_lr"] / ours["training"]["learning_rate"]
    assert other.training.learning_rate == 0.01
    assert other.training.min_lr == pytest.approx(0.01 * ratio)
    longer = load(config(**{f"{NANOGPT}.training.steps": 3000})).main.trainings()
    assert {stack.training.steps for stack in longer.values()} == {3000}


def as_text(value: Any) -> Any:
    """The values as Snakemake passes those in braces on a command line."""
    if isinstance(value, dict):
        return {key: as_text(part) for key, part in value.items()}
    if isinstance(value, list):
        return [as_text(part) for part in value]
    return value if value is None else yaml.safe_dump(value).split("\n")[0].strip("'")


def test_numbers_may_be_given_as_text():
    assert load(as_text(MAIN)) == load(MAIN)
    rate = load(config(**{f"{NANOGPT}.training.learning_rate": "1e-3"})).main.protocols["nanogpt"]
    assert rate.training.learning_rate == 1e-3


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda p: p.stem)
def test_variants_laid_over_config_yaml_are_valid(path):
    raw = yaml.safe_load((ROOT / "config.yaml").read_text())
    # as Snakemake lays a second file over the first
    update_config(raw, yaml.safe_load(path.read_text()))
    expected = read_project(ROOT, path)
    assert with_pilot(raw, read_trials([ROOT / TRIALS])) == expected
    assert load(expected).model_dump(mode="json", exclude_unset=True) == expected


@pytest.mark.parametrize(
    ("key", "allowed"),
    [
        ("recal", "did you mean recall?"),
        (f"{NANOGPT}.model.n_layers", "did you mean n_layer?"),
        ("dataset.sources.1.timeout", "did you mean timeout_s?"),
        ("main.protocols.small.modle", "did you mean model?"),
        ("zzz", "known: level, pilot, arms, card, norms, "),
        ("main.protocols.small.zzz", "known: model, training"),
    ],
)
def test_an_unknown_key_is_named_with_the_closest_or_all_known_keys(key, allowed):
    line = problem(**{key: 1})
    *path, last = key.split(".")
    assert line.startswith(".".join(path))
    assert last in line
    assert allowed in line


ALONE = [{**KEYS, "arms": ["layernorm_gain"], "placements": ["pre"], "seeds": [1]}]
SMALL = [{**RUNS[0], "protocol": "small"}]


@pytest.mark.parametrize(
    ("key", "value", "parts"),
    [
        # a wrong type or a value out of bounds, with the value
        (f"{NANOGPT}.training.steps", 2000.5, ["2000.5 (float)"]),
        (f"{NANOGPT}.training.steps", True, ["valid integer", "True (bool)"]),
        ("main.runs.0.learning_rates.0", True, ["valid number", "True (bool)"]),
        ("demonstration", 1, ["valid boolean", "1 (int)"]),
        (f"{NANOGPT}.training.steps", 10**30, ["less than 9223"]),
        ("level", 0.975, ["whole percent", "0.99"]),
        ("card", {"norm": ["layernorm"], "budgt": "5 min"}, ["budgt", "did you mean budget?"]),
        (f"{NANOGPT}.model", [1], ["[1] (list)"]),
        ("main.stack", "٣", ["'٣' (str)"]),
        # an unknown choice, with the known ones
        ("main.runs.0.placements.0", "nonsense", ["'mix', 'hybrid' or 'deepnorm'"]),
        ("main.runs.0.arms.0", "layer_norm", ["did you mean layernorm"]),
        ("main.baseline.arm", "zzz", [*ARMS]),
        ("dataset.sources.0.kind", "ftp", ["'path'", "'url'", "'wheel'"]),
        # lists: empty, or with duplicates
        ("main.runs", [], []),
        ("main.runs.0.seeds", [1, 2, 2, 1], ["twice: 1, 2"]),
        # parts that do not fit together
        ("main.runs.0.placements", ["none"], ["layernorm", "placement none"]),
        ("main.runs.0.arms", ["none"], ["none", "placement pre"]),
        ("main.baseline", {"arm": "derf", "placement": "pre"}, ["derf-pre"]),
        ("main.runs", ALONE, ["layernorm-pre"]),  # layernorm_gain-pre has the same prefix
        (f"{NANOGPT}.training.min_lr", 0.01, ["min_lr (0.01)", "learning_rate (0.001)"]),
        (f"{NANOGPT}.training.steps", 100, ["warmup_steps (100)", "steps (100)"]),
        (f"{NANOGPT}.model.n_head", 3, ["n_embd (128)", "n_head (3)"]),
        ("main.runs", SMALL, ["baseline", "nanogpt-layernorm-pre"]),
        ("main.runs.0.protocol", "smal", ["runs.0.protocol", "'smal'", "nanogpt, small"]),
        ("main.gain.protocols", ["smal"], ["gain.protocols.0", "'smal'", "nanogpt, small"]),
        ("dataset", {"sha256": "0" * 64, "sources": []}, ["sha256", "source", "directory"]),
        ("texts.dataset", MAIN["texts"]["austen"], ["texts.dataset", "default text"]),
        ("texts", {1984: MAIN["texts"]["austen"]}, ["texts.1984", "in quotes"]),
        ("main.protocols.small.texts", ["austin"], ["did you mean austen?"]),
        (
            "jacobian.protocols.small.texts",
            ["b"],
            ["jacobian.protocols.small.texts", "dataset, austen"],
        ),
        ("main.protocols.small.texts", ["woolf", "dataset"], ["dataset", "pilot.texts"]),
        ("pilot", {"texts": ["wolf"]}, ["pilot.texts", "did you mean woolf?"]),
        # names of jobs are names of files
        ("main.runs.0.learning_rates.0", 1e-300, ["the name of a job has"]),
    ],
)
def test_an_error_names_the_key_the_value_and_the_remedy(key, value, parts):
    line = problem(**{key: value})
    where = line.partition(":")[0]
    assert where == "configuration" or key.startswith(where) or where.startswith(key)
    assert all(part in line for part in parts), line


def test_jobs_read_the_text_of_their_protocol():
    """No run of config.yaml reads a second text, so that no job needs its package."""
    assert load(MAIN).texts_read == ["dataset"]
    run = {**KEYS, "protocol": "small_austen", "arms": ["dyt"], "placements": ["pre"], "seeds": [1]}
    whole = load(
        config(**{"main.runs": [*RUNS, run], "jacobian.protocols.small.texts": ["austen"]})
    )
    assert whole.texts_read == ["dataset", "austen"]
    others = {
        (name, job)
        for name, study in whole.studies.items()
        for job in (*study.trainings(), *study.probes())
        if study.job_texts().get(job) == ["austen"]
    }
    jacobian = {job for job in whole.jacobian.trainings() if job.startswith("small-")}
    assert jacobian
    assert others == {
        ("main", "small_austen-dyt-pre-0.001-1"),
        *(("jacobian", j) for j in jacobian),
    }


def test_all_problems_are_named_at_once():
    raw = config(
        **{
            "recal": 1,
            f"{NANOGPT}.model.n_head": 3,
            f"{NANOGPT}.training.steps": "many",
            "main.runs.0.arms": ["layrnorm"],
            "main.runs.1.placements": ["pre", "sideways"],
            "main.gain.windows": 0,
            "dataset.sources.0.kind": "ftp",
        }
    )
    assert {line.split(":")[0] for line in problems(raw)} == {
        "dataset.sources.0",
        "main.gain.windows",
        f"{NANOGPT}.model",
        "recal",
        "main.runs.0.arms.0",
        "main.runs.1.placements.1",
        f"{NANOGPT}.training.steps",
    }


def test_every_study_is_a_part_in_the_order_of_the_page():
    loaded = load(MAIN)
    assert list(loaded.studies) == "norms main recall jacobian depth textbook pretrained".split()
    baseline = {"arm": "layernorm", "placement": "post"}
    other = load(config(**{"main.stack": 1, "main.baseline": baseline}))
    assert other.settings.baseline == [
        "nanogpt-layernorm-post-0.001-1",
        "nanogpt-layernorm-post-0.001-2",
    ]  # all its jobs
