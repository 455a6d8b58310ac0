"""On a GPU: the curves and measures of the CPU, the same bits each time, stacks in its memory."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import depth_recipes
import numpy as np
import pandas as pd
import pytest
import torch
from pretrained_models import PROMPTS, from_directory, half_of_memory, random_model, save, tokenizer
from processes import Script, flags
from pydantic import BaseModel
from recall_recipes import recall_run
from recipes import DATA, recipe
from stored_models import write
from torch.nn import functional as F
from trainings import KINDS, SEEDS, Alone, Job, alone, averages, problem_of, to_end

import normscope
from normscope.hub.recipe import Measurement
from normscope.io import dataset
from normscope.io.dataset import Dataset
from normscope.studies.jacobian.recipe import JacobianProbe
from normscope.studies.recall.recipe import Cell, RecallProbe, RecallStack
from normscope.train.recipe import Device, Stack
from normscope.train.runtime import FP32_ERROR, Runtime, product_error, start
from normscope.train.trainer import Trainer

GPU: Device = "cuda"

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]


def on_gpu(precision: Literal["fp32", "bf16"] = "fp32") -> Runtime:
    return start(precision, 1, GPU)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name, content in dataset.files(DATA).items():
        (folder / name).write_bytes(content)
    return folder


def test_products_have_the_stated_precision():
    fp32, bf16 = on_gpu(), on_gpu("bf16")
    assert fp32.error < FP32_ERROR  # no TF32, which is off by 1e-4
    assert 1e-4 < bf16.error < 1e-2
    assert product_error(torch.float32, fp32.device) == fp32.error  # the same bits each time
    assert fp32.record["device"] == GPU


# masks of dropout are other random numbers on another device
WITHOUT_DROPOUT: dict[str, Stack | RecallStack] = {
    "layernorm": recipe(seeds=SEEDS, n_layer=2),
    "scalenorm, post": recipe("scalenorm", "post", seeds=SEEDS),
    "batchnorm": recipe("batchnorm", "peri", seeds=SEEDS),
    "derf": recipe("derf", seeds=SEEDS),
    "none": recipe("none", "none", seeds=SEEDS),
    "sigmoid": recipe(attention="sigmoid", seeds=SEEDS),
    "surrogate": recipe(norm_backward="projected", seeds=SEEDS),
    "fa": recipe(feedback="fa", tied_head=False, seeds=SEEDS),
    "dfa": recipe(feedback="dfa", tied_head=False, n_layer=2, seeds=SEEDS),
    "copy": recall_run("layernorm", "copy", seeds=SEEDS),
    "recall": recall_run("batchnorm", "recall", seeds=SEEDS),
}


@pytest.mark.parametrize("name", WITHOUT_DROPOUT)
def test_a_stack_has_the_curves_that_its_models_have_alone_on_the_cpu(name):
    """fp32 sums in another order, some 1e-7 of a loss, over 11 steps.

    BatchNorm amplifies them: parameters that start 2e-7 away from theirs, relatively, change the
    last loss of these models by up to 2e-4 on one CPU, and those with LayerNorm by 3e-8.
    """
    stack = WITHOUT_DROPOUT[name]
    bound = 1e-3 if name == "batchnorm" else 1e-4
    problem = problem_of(stack)
    trainer = Trainer(problem, SEEDS, on_gpu())
    to_end(trainer)
    for learner in trainer.learners:
        assert next(learner.model.parameters()).device.type == GPU
        single: Alone = alone(problem, learner.seed)
        ends = [int(row["step"] or 0) for row in learner.curve]
        losses = [row["train_loss"] for row in learner.curve]
        assert losses == pytest.approx(averages(single.losses, ends), rel=bound)
        on_cpu = problem.evaluate(single.model, learner.batches, torch.device("cpu"))
        assert learner.val_loss is not None
        if isinstance(stack, Stack):  # of the same text
            assert learner.val_loss.mean == pytest.approx(on_cpu.mean, rel=bound)


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_job_writes_the_same_bytes(tmp_path, kind):
    stack = KINDS[kind]
    jobs = [Job(tmp_path / name, stack) for name in ("whole", "again", "parts")]
    for job in jobs:
        job.runtime = on_gpu(stack.training.precision)
    total = jobs[0].train()
    jobs[1].train()
    assert jobs[1].sums() == jobs[0].sums()
    for left in (total // 4, total // 2):
        assert jobs[2].train(left) == left
    jobs[2].train()
    assert jobs[2].sums() == jobs[0].sums()


@pytest.fixture
def narrow() -> Iterator[Any]:
    """Limits the GPU's memory, in bytes."""
    whole = torch.cuda.get_device_properties(0).total_memory

    def limit(size: int) -> None:
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(size / whole)

    yield limit
    torch.cuda.set_per_process_memory_fraction(1.0)


def test_a_stack_that_its_memory_cannot_hold_is_halved(tmp_path, narrow, capsys):
    """Memory for two and a half models where four are to be in step."""
    wide: dict[str, Any] = {
        "n_layer": 4,
        "n_embd": 256,
        "block_size": 128,
        "batch_size": 64,
        "steps": 3,
    }
    stack = recipe(seeds=[1, 2, 3, 4], warmup_steps=1, eval_every=3, **wide)
    text = Dataset(np.tile(DATA.train, 10), np.tile(DATA.val, 10), DATA.chars)
    runtime = on_gpu()
    torch.cuda.reset_peak_memory_stats()
    to_end(Trainer(problem_of(stack, text), [1], runtime))
    peak = torch.cuda.max_memory_reserved()
    job = Job(tmp_path, stack, models_per_stack=4)
    job.runtime, job.text = runtime, text
    narrow(int(2.5 * peak))
    job.train()
    assert "4 models together exceed the memory of cuda: 2, then 2\n" in capsys.readouterr().err
    metrics = pd.read_csv(job.out / "metrics.csv")
    assert metrics["seed"].tolist() == stack.seeds
    assert metrics["val_loss"].notna().all()


def numbers(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What is computed, and what tells rows apart."""
    computed = table.select_dtypes("float")
    return computed, table.drop(columns=computed.columns)


def assert_close(gpu: pd.DataFrame, cpu: pd.DataFrame) -> None:
    """The same keys, and numbers that agree to the roundings of fp32."""
    (expected, keys), (measured, other) = numbers(cpu), numbers(gpu)
    pd.testing.assert_frame_equal(other, keys)
    assert len(cpu)
    for column in expected:
        scale = float(expected[column].abs().max())
        # differences of nearly equal numbers are what roundings make them
        bound = max(2e-3 * scale, 1e-6)
        pd.testing.assert_series_equal(
            measured[column], expected[column], rtol=2e-3, atol=bound, check_exact=False
        )


def assert_same_on_both(
    script: str, probe: BaseModel, place: Path, *tables: str, **paths: Any
) -> None:
    """Tables of a probe's script on the CPU and on the GPU, to the roundings of fp32."""
    outputs = []
    for device in ("cpu", GPU):
        recipe, out = probe.model_copy(update={"device": device}), place / device
        arguments = flags(recipe=recipe, out=out, **paths)
        Script(script, arguments, place / f"{device}.log").succeed()
        outputs.append([pd.read_csv(out / f"{name}.csv") for name in tables])
    for cpu, gpu in zip(*outputs, strict=True):
        assert_close(gpu, cpu)


@pytest.mark.parametrize("feedback", ["backprop", "fa", "dfa"])
def test_the_decomposition_of_norms_is_that_of_the_cpu(tmp_path, data, feedback):
    stack = recipe(n_layer=2, tied_head=False, feedback=feedback, seeds=[1, 2])
    models = write(tmp_path / "models", stack, [1.5, 1.6])
    paths = {"models": models.parent, "name": models.name, "data": data}
    probe = JacobianProbe(windows=3)
    assert_same_on_both("probe jacobian", probe, tmp_path, "layers", "gradients", **paths)


def test_models_block_by_block_are_those_of_the_cpu(tmp_path, data):
    grid = depth_recipes.depth_grid()
    for name, stack in grid.trainings().items():
        write(tmp_path / "models" / name, stack, [2.0] * len(stack.seeds))
    paths: dict[str, Any] = {"models": tmp_path / "models", "data": data}
    for name, place in grid.probes().items():
        folder = tmp_path / "probes" / name
        folder.mkdir(parents=True)
        assert_same_on_both("probe depth", place, folder, "blocks", name=name, **paths)


@pytest.mark.parametrize("arm", ["layernorm", "batchnorm"])
def test_measures_of_the_decisive_test_are_those_of_the_cpu(tmp_path, arm):
    job = Job(tmp_path, recall_run(arm, seeds=[1, 2], steps=50))
    job.train()
    tables = ("metrics", "slices", "spectra")
    probe = RecallProbe(jobs={job.out.name: Cell("recall", arm, 0.01)}, directions=2)
    assert_same_on_both(
        "probe recall", probe, tmp_path, *tables, name="recall", models=job.out.parent
    )


def test_the_script_trains_on_the_gpu_and_says_so(tmp_path, data):
    stack = recipe(seeds=SEEDS).model_copy(update={"device": GPU})
    paths = {"data": data, "out": tmp_path / "out", "checkpoints": tmp_path / "checkpoints"}
    script = Script("train main", flags(recipe=stack, **paths), tmp_path / "log")
    log = script.succeed()
    assert f"{GPU}, 1 thread(s)" in log
    assert (tmp_path / "checkpoints/1x3").is_dir()  # all in step
    again = script.succeed()
    assert "continuing from step 11" in again


@pytest.mark.parametrize("streamed", [False, True], ids=["in memory", "read at each pass"])
def test_a_pretrained_model_has_the_gains_of_the_cpu(tmp_path, streamed):
    """Also if the limit for the GPU's memory is half of the weights."""
    source = save(random_model("llama", hidden_size=256), tmp_path / "model")
    memory = 1000 * half_of_memory(source) * (1 if streamed else 4)
    found = []
    for device in ("cpu", GPU):
        recipe: Measurement = from_directory(source).model_copy(update={"device": device})
        place = tmp_path / device
        paths = {"prompts": PROMPTS, "weights": place / "weights", "revisions": place, "out": place}
        arguments = flags(recipe=recipe, memory_mb=math.ceil(memory), **paths)
        Script("pretrained_probe", arguments, tmp_path / f"{device}.log").succeed()
        facts = json.loads((place / "model.json").read_text())
        assert (facts["device"], facts["streamed"]) == (device, streamed)
        found.append([pd.read_csv(place / f"{name}.csv") for name in ("gains", "norms", "inside")])
    for cpu, gpu in zip(*found, strict=True):
        assert_close(gpu, cpu)


@pytest.mark.parametrize("kind", ["gpt2_untied", "llama", "gemma"])
def test_calls_from_python_take_a_model_on_the_gpu(kind):
    """The tables of the CPU; the folded model stays on the GPU."""
    tokens = torch.randint(3, 300, (3, 9), generator=torch.Generator().manual_seed(0))
    found = []
    for device in ("cpu", GPU):
        model, x = random_model(kind).to(device), tokens.to(device)
        gains = normscope.gain(model, tokenizer(), ["To be, or not to be", "A plague"])
        removable = normscope.removable(model, x)
        folded = normscope.fold(model, x)
        assert {p.device.type for p in folded.model.parameters()} == {device}
        model.requires_grad_(True)
        with normscope.watch(model) as norms:
            logits = model(x).logits
            F.cross_entropy(logits[:, :-1].flatten(0, 1), x[:, 1:].flatten()).backward()
        found.append([gains, removable, folded.table, norms.table()])
    for cpu, gpu in zip(*found, strict=True):
        assert_close(gpu, cpu)
