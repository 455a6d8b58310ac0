"""The configuration: what is allowed, and errors that name the key, the reason and the way out."""

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from snakemake.utils import update_config

from normscope.config import Config, ConfigError, load
from normscope.nn.arms import ARMS

ROOT = Path(__file__).parents[2]
MAIN = yaml.safe_load((ROOT / "config.yaml").read_text())
RUNS = [
    {"arms": ["layernorm", "rmsnorm"], "placements": ["pre", "post"], "seeds": [1, 2]},
    {"arms": ["dyt"], "placements": ["pre"], "seeds": [1]},
]
SOURCES = [
    {"kind": "path", "path": "text.txt"},
    {"kind": "url", "url": "https://host/text.txt"},
]


def config(**changes: Any) -> dict:
    """``config.yaml`` with other runs and sources, and with values set at dotted keys."""
    raw = copy.deepcopy(MAIN | {"runs": RUNS, "dataset": {"sha256": "0" * 64, "sources": SOURCES}})
    for key, value in changes.items():
        *path, last = (int(part) if part.isdigit() else part for part in key.split("."))
        node = raw
        for part in path:
            node = node[part]
        node[last] = value
    return raw


def problems(raw: Any) -> list[str]:
    """The lines of the error, one a problem."""
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
    assert list(load(config()).trained()) == [
        "layernorm-pre-1",
        "layernorm-pre-2",
        "layernorm-post-1",
        "layernorm-post-2",
        "rmsnorm-pre-1",
        "rmsnorm-pre-2",
        "rmsnorm-post-1",
        "rmsnorm-post-2",
        "dyt-pre-1",
    ]


def laid_over(base: Any, variant: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(variant, dict):
        return variant
    return base | {k: laid_over(base[k], v) if k in base else v for k, v in variant.items()}


def test_tiny_says_all_of_what_it_replaces():
    """So that it gives the same laid over config.yaml key by key, or part by part."""
    tiny = yaml.safe_load((ROOT / "config/tiny.yaml").read_text())
    parts = {k: MAIN[k] | v if isinstance(v, dict) else v for k, v in tiny.items()}
    assert load(MAIN | parts) == load(laid_over(MAIN, tiny))


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda p: p.stem)
def test_variants_laid_over_config_yaml_are_valid(path):
    raw = copy.deepcopy(MAIN)
    variant = yaml.safe_load(path.read_text())
    update_config(raw, variant)
    loaded = load(raw).model_dump(mode="json", exclude_unset=True)
    assert loaded == laid_over(MAIN, variant)


def test_a_run_has_the_factors_of_its_arm_and_not_its_name():
    run = load(config()).trained()["rmsnorm-post-2"]
    assert (run.norm, run.placement, run.seed) == (ARMS["rmsnorm"].norm, "post", 2)
    assert "rmsnorm" not in run.model_dump_json()


@pytest.mark.parametrize(
    ("key", "near", "allowed"),
    [
        (
            "modle",
            "model",
            "dataset, model, training, runs, baseline, level, margin_sds, gain, recall, jacobian, "
            "depth, pretrained, figures",
        ),
        ("model.n_layers", "n_layer", "n_layer, n_head, n_embd"),
        ("training.learning_rat", "learning_rate", "steps, batch_size, learning_rate"),
        ("runs.1.seed", "seeds", "arms, placements, seeds"),
        ("dataset.sources.0.paths", "path", "kind, path"),
        ("dataset.sources.1.timeout", "timeout_s", "kind, url, timeout_s"),
        ("dataset.directry", "directory", "sha256, sources, directory"),
    ],
)
def test_an_unknown_key_is_named_with_its_neighbour_and_what_is_allowed(key, near, allowed):
    line = problem(**{key: 1})
    *path, last = key.split(".")
    assert line.startswith(".".join(path))
    assert f"{last}: unknown key; did you mean {near}? allowed here: {allowed}" in line


def test_an_unknown_key_without_a_neighbour_gets_no_suggestion():
    line = problem(zzz=1)
    assert line.startswith("zzz: unknown key; allowed here: dataset, model")


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("training.steps", "2000", "str"),
        ("training.steps", 2000.5, "float"),
        ("training.learning_rate", "fast", "str"),
        ("model.causal", "yes", "str"),
        ("model.n_layer", True, "bool"),
        ("model.n_layer", None, "NoneType"),
        ("model", [1], "list"),
        ("runs", {"arms": ["none"]}, "dict"),
        ("runs.0.seeds", 1337, "int"),
    ],
)
def test_a_wrong_type_is_named_with_its_value(key, value, kind):
    line = problem(**{key: value})
    assert line.startswith(f"{key}: ")
    assert line.endswith(f"got {value!r} ({kind})")


@pytest.mark.parametrize(
    ("key", "value", "bound"),
    [
        ("training.steps", 0, "greater than 0"),
        ("training.warmup_steps", -1, "greater than or equal to 0"),
        ("model.dropout", 1.0, "less than 1"),
        ("training.learning_rate", float("nan"), "greater than 0|finite"),
        ("level", 1.0, "less than 1"),
        ("margin_sds", 0.0, "greater than 0"),
        ("margin_sds", -2.0, "greater than 0"),
        ("margin_sds", float("nan"), "greater than 0|finite"),
        ("margin_sds", float("inf"), "finite"),
        ("runs.0.seeds.0", -1, "greater than or equal to 0"),
    ],
)
def test_a_number_out_of_bounds_is_named_with_the_bound(key, value, bound):
    line = problem(**{key: value})
    assert line.startswith(f"{key}: ")
    assert any(part in line for part in bound.split("|"))


@pytest.mark.parametrize(
    ("key", "allowed"),
    [
        ("runs.0.placements.0", "'pre', 'post', 'peri' or 'none'"),
        ("model.attention", "'softmax' or 'sigmoid'"),
        ("training.precision", "'fp32' or 'bf16'"),
    ],
)
def test_an_unknown_choice_is_named_with_the_allowed_ones(key, allowed):
    line = problem(**{key: "nonsense"})
    assert line == f"{key}: Input should be {allowed}, got 'nonsense' (str)"


def test_a_missing_key_is_named():
    raw = config()
    del raw["training"]["steps"]
    assert problems(raw) == ["training.steps: Field required"]


@pytest.mark.parametrize("raw", [None, [], "config", 1])
def test_what_is_no_mapping_is_refused(raw):
    assert problems(raw)[0].startswith("configuration: ")


def test_an_unknown_arm_is_named_with_the_nearest():
    line = problem(**{"runs.0.arms": ["layer_norm", "rmsnorm"]})
    assert line.startswith("runs.0.arms.0: unknown arm 'layer_norm'; nearest: layernorm")
    assert line.endswith(f"known: {', '.join(ARMS)}")


def test_an_unknown_baseline_arm_is_named():
    assert problem(**{"baseline.arm": "zzz"}).startswith("baseline.arm: unknown arm 'zzz'; known:")


@pytest.mark.parametrize("key", ["runs", "runs.0.arms", "runs.0.placements", "runs.0.seeds"])
def test_an_empty_list_is_refused(key):
    line = problem(**{key: []})
    assert line.startswith(f"{key}: ")
    assert "at least 1 item" in line


@pytest.mark.parametrize(
    ("key", "value", "twice"),
    [
        ("runs.0.arms", ["layernorm", "rmsnorm", "layernorm"], "layernorm"),
        ("runs.0.seeds", [1, 2, 2, 1], "1, 2"),
        ("runs.0.placements", ["pre", "pre"], "pre"),
    ],
)
def test_what_a_list_gives_twice_is_named(key, value, twice):
    assert problem(**{key: value}) == f"{key}: given twice: {twice}"


def test_a_run_of_two_blocks_is_named():
    runs = [
        {"arms": ["layernorm", "dyt"], "placements": ["pre"], "seeds": [1, 2]},
        {"arms": ["dyt"], "placements": ["post", "pre"], "seeds": [2, 3]},
    ]
    assert problem(runs=runs) == "configuration: given twice: dyt-pre-2"


@pytest.mark.parametrize(
    ("arm", "placement"),
    [("none", "pre"), ("none", "post"), ("layernorm", "none"), ("dyt", "none")],
)
def test_an_identity_has_no_place_and_a_norm_has_one(arm, placement):
    runs = [{"arms": [arm], "placements": [placement], "seeds": [1]}]
    line = problem(runs=runs)
    assert line.startswith(f"runs.0: arm {arm} with placement {placement}: ")


def test_a_baseline_that_is_not_run_is_named():
    line = problem(baseline={"arm": "derf", "placement": "pre"})
    assert line == "configuration: baseline: no run of derf-pre among runs"


def test_a_baseline_that_begins_like_a_run_is_not_that_run():
    runs = [{"arms": ["layernorm_gain"], "placements": ["pre"], "seeds": [1]}]
    assert "no run of layernorm-pre" in problem(runs=runs)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("training.min_lr", 0.01, "training: min_lr (0.01) exceeds learning_rate (0.001)"),
        ("training.steps", 100, "training: warmup_steps (100) must be below steps (100)"),
        ("model.n_head", 3, "model: n_embd (128) must be a multiple of n_head (3)"),
    ],
)
def test_values_that_contradict_each_other_are_named(key, value, reason):
    assert problem(**{key: value}) == reason


@pytest.mark.parametrize("dataset", [{}, {"sha256": "0" * 64}, {"sha256": "0" * 64, "sources": []}])
def test_a_dataset_without_an_origin_is_refused(dataset):
    assert problem(dataset=dataset).startswith("dataset: give sha256 and at least one source")


def test_a_directory_is_an_origin():
    assert load(config(dataset={"directory": "data"})).dataset.directory == "data"


def test_a_hash_of_another_length_is_refused():
    assert problem(**{"dataset.sha256": "abc"}).startswith("dataset.sha256: ")


def test_an_unknown_kind_of_source_is_named_with_the_known():
    line = problem(**{"dataset.sources.0.kind": "ftp"})
    assert line.startswith("dataset.sources.0: ")
    assert all(kind in line for kind in ("ftp", "'path'", "'url'", "'wheel'"))


def test_all_problems_are_named_at_once():
    raw = config(
        **{
            "modle": 1,
            "model.n_head": 3,
            "training.steps": "many",
            "runs.0.arms": ["layrnorm"],
            "runs.1.placements": ["pre", "sideways"],
            "gain.windows": 0,
            "dataset.sources.0.kind": "ftp",
        }
    )
    keys = [line.split(":")[0] for line in problems(raw)]
    assert sorted(keys) == [
        "dataset.sources.0",
        "gain.windows",
        "model",
        "modle",
        "runs.0.arms.0",
        "runs.1.placements.1",
        "training.steps",
    ]


def test_a_loaded_configuration_does_not_change():
    loaded = load(MAIN)
    with pytest.raises(ValueError, match="frozen"):
        loaded.level = 0.5  # pyright: ignore[reportAttributeAccessIssue]


def test_a_validated_configuration_is_valid_again():
    loaded = load(MAIN)
    assert Config.model_validate_json(loaded.model_dump_json()) == loaded


def test_reading_the_configuration_imports_no_torch():
    code = "import sys, normscope.config; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("key", "value"),
    [("feedback", "fa"), ("norm_backward", "projected"), ("surrogates_in", "blocks")],
)
def test_the_main_runs_have_exact_gradients(key, value):
    message = problem(**{f"model.{key}": value, "model.tied_head": False})
    assert message.endswith(f"model.{key}: the main runs have exact gradients; see jacobian")


def test_the_hub_models_of_the_published_studies_can_be_measured():
    of_hub = yaml.safe_load((ROOT / "config/pretrained.yaml").read_text())["pretrained"]["models"]
    published = (ROOT / "data/reference_prompts.csv").read_text()
    names = {line.split(",")[1] for line in published.splitlines()[1:]}
    assert names <= {model["name"] for model in of_hub}


@pytest.mark.parametrize("key", ["training.learning_rate", "recall.corrected.learning_rate"])
@pytest.mark.parametrize(
    ("text", "plain"), [("1e-4", "0.0001"), ("12e-10", "0.0000000012"), ("1E3", "1000")]
)
def test_a_number_that_yaml_reads_as_text_comes_with_the_way_out(key, text, plain):
    message = problem(**{key: text})
    assert message.startswith(f"{key}: ")
    assert f"got '{text}' (str); YAML reads it as text: write {plain}" in message
    assert "YAML" not in problem(**{key: "fast"})
