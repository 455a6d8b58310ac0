"""The scripts of the depth study: to the end, killed, damaged, diverged."""

import json
import math
import runpy
import shutil
import signal
from pathlib import Path

import pandas as pd
import processes
import pytest
import safetensors.torch
import torch
from depth_recipes import KEPT, depth_grid
from recall_recipes import by
from recipes import DATA, recipe
from torch import nn
from torch.nn import functional as F

from normscope.measure.unigram import unigram_loss
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model
from normscope.studies.depth.grid import Depth
from normscope.studies.depth.measures import MEASURES
from normscope.studies.depth.recipe import EnsembleRecipe, Shape
from normscope.studies.study import Settings
from normscope.train.runtime import Runtime
from normscope.train.trainer import Trainer

LN, BN = "layernorm-pre-residual-gpt2-2", "batchnorm-pre-residual-gpt2-2"
OUTPUTS = ("models.safetensors", "config.json", "curves.csv", "losses.csv")
TABLES = "blocks rates by_block by_shape losses trainability".split()
STEPS = 6


def made(name: str = LN, **changes) -> EnsembleRecipe:
    return depth_grid(**changes).trainings()[name]


def diverging() -> EnsembleRecipe:
    """Every model without warm-up at a rate of 300 leaves the bound, after losses on val; kept."""
    return made(
        training=recipe(steps=STEPS, eval_every=1, eval_tokens=30, loss_bound=2.2,
                        grad_clip=0.0).training.model_dump(),
        trained__0__learning_rates=[0.003, 300.0],
        kept={"learning_rate": 300.0, "warmup_steps": 0},
    )  # fmt: skip


class Ensemble(processes.Script):
    """scripts/depth_train.py into one directory."""

    def __init__(
        self, place: Path, data: Path, of: EnsembleRecipe, out: Path | None = None
    ) -> None:
        place.mkdir(exist_ok=True)
        self.out, self.checkpoints = out or place / "out", place / "checkpoints"
        self.timing = place / "timing.tsv"
        paths = {"data": data, "checkpoints": self.checkpoints, "timing": self.timing}
        arguments = processes.flags(recipe=of, out=self.out, checkpoint_every=1, **paths)
        super().__init__("depth_train", arguments, place / "log")

    def outputs(self) -> dict[str, bytes]:
        return {name: (self.out / name).read_bytes() for name in OUTPUTS}

    def newest(self) -> int:
        return max((int(p.stem.split("-")[1]) for p in self.checkpoints.glob("step-*")), default=0)


def descend(place: Path, data: Path, of: Depth, name: str, out: Path | None = None):
    recipe, out = of.probes()[name], out or place / name
    arguments = processes.flags(recipe=recipe, models=place, data=data, out=out)
    return processes.Script("depth_probe", arguments, place / "log")


def depth(place: Path, data: Path, of: Depth) -> processes.Script:
    recipe = of.tabulation(Settings(level=0.9, margin_sds=2.0, baseline=[]))
    arguments = processes.flags(recipe=recipe, models=place, probes=place, data=data, out=place)
    return processes.Script("depth_tables", arguments, place / "log")


class Results:
    """What the three scripts write of the small grid."""

    def __init__(self, place: Path, data: Path) -> None:
        self.place, self.grid = place, depth_grid()
        for name, of in self.grid.trainings().items():
            self.last = Ensemble(place / f"run-{name}", data, of, place / name)
            self.log = self.last.succeed()
        for name in self.grid.probes():
            descend(place, data, self.grid, name).succeed()
        depth(place, data, self.grid).succeed()

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.place / f"{name}.csv")


@pytest.fixture(scope="module")
def results(tmp_path_factory, data) -> Results:
    return Results(tmp_path_factory.mktemp("depth"), data)


def test_an_ensemble_writes_what_its_trainers_alone_reach(results):
    """The kept models by seed, a curve and a loss of every model."""
    runtime = Runtime("fp32", 1, "highest", 0.0)
    weights = safetensors.torch.load((results.place / LN / "models.safetensors").read_bytes())
    losses = by(pd.read_csv(results.place / LN / "losses.csv"), "learning_rate", "warmup_steps",
                "seed")  # fmt: skip
    curves = pd.read_csv(results.place / LN / "curves.csv")
    runs = made().runs()
    assert list(losses) == [(*schedule, seed) for schedule, seed in runs]
    assert {name.partition(".")[0] for name in weights} == {"1", "2"}
    for (schedule, seed), run in runs.items():
        trainer = Trainer(run, DATA, runtime)
        while not trainer.done:
            trainer.advance()
        row = losses[(*schedule, seed)]
        assert trainer.val_loss is not None
        assert row["val_loss"] == pytest.approx(trainer.val_loss.mean, rel=1e-4)
        assert row["val_loss_window_sd"] == pytest.approx(trainer.val_loss.window_sd, rel=1e-3)
        assert math.isnan(row["diverged_at"])
        own = curves[
            (curves[list(schedule._fields)] == list(schedule)).all(axis=1)
            & (curves["seed"] == seed)
        ]
        assert own["step"].tolist() == [row["step"] for row in trainer.curve] == [3, 6]
        for k in ("train_loss", "grad_norm"):
            expected = [row[k] for row in trainer.curve]
            assert own[k].tolist() == pytest.approx(expected, rel=1e-3)
        if schedule._asdict() == KEPT:
            for name, tensor in trainer.model.state_dict().items():
                torch.testing.assert_close(weights[f"{seed}.{name}"], tensor, rtol=0, atol=1e-4)


def test_an_ensemble_says_what_decided_it_and_how_fast_it_was(results):
    config = json.loads((results.place / LN / "config.json").read_text())
    of = {k: config[k] for k in EnsembleRecipe.model_fields}
    assert EnsembleRecipe.model_validate(of) == made()
    assert (config["vocab_size"], config["threads"]) == (DATA.vocab_size, 1)
    assert "8 models, 0 diverged" in results.log
    assert results.last.timing.read_text().splitlines()[1].split("\t")[2] == str(STEPS)
    assert results.last.newest() == STEPS


def test_the_same_bytes_twice_and_after_a_kill(results, tmp_path, data):
    expected = {name: (results.place / BN / name).read_bytes() for name in OUTPUTS}
    script = Ensemble(tmp_path, data, made(BN))
    for step in (1, 3):
        status = script.kill_when(lambda step=step: script.newest() >= step)
        assert status in (-signal.SIGKILL, 0)
    script.succeed()
    assert script.outputs() == expected


def test_models_that_diverge_have_a_step_and_no_loss_and_no_row_in_the_probe(tmp_path, data):
    of = diverging()
    script = Ensemble(tmp_path / "run", data, of, tmp_path / LN)
    log = script.succeed()
    losses = pd.read_csv(tmp_path / LN / "losses.csv")
    assert f"8 models, {losses['diverged_at'].notna().sum()} diverged" in log
    lost = losses[(losses["learning_rate"] == 300) & (losses["warmup_steps"] == 0)]
    assert len(lost) == 2
    assert lost["val_loss"].isna().all()
    assert lost["diverged_at"].between(2, STEPS).all()
    sound = losses[losses["learning_rate"] < 300]
    assert sound["val_loss"].notna().all()
    assert sound["diverged_at"].isna().all()
    grid = depth_grid(trained__0__arms=["layernorm"])
    descend(tmp_path, data, grid, "pre").succeed()
    blocks = pd.read_csv(tmp_path / "pre" / "blocks.csv")
    assert set(blocks["state"]) == {"start"}


def test_a_probe_has_a_row_a_block_of_every_model(results):
    blocks = pd.read_csv(results.place / "pre" / "blocks.csv")
    assert list(blocks.columns) == [*Shape._fields, "state", "seed", "block", *MEASURES]
    keys = ["arm", "depth", "state", "seed", "block"]
    ln = [("layernorm", d, "start", s, b) for d in (2,) for s in (1, 2) for b in range(d + 1)]
    ln += [("layernorm", 2, "trained", s, b) for s in (1, 2) for b in range(3)]
    ln += [("layernorm", 3, "start", s, b) for s in (1, 2) for b in range(4)]
    bn = [("batchnorm", 2, "trained", s, b) for s in (1, 2) for b in range(3)]
    with_residual = blocks[blocks["residual"]]
    assert list(with_residual[keys].itertuples(index=False, name=None)) == ln + bn
    inner = blocks[blocks["block"] > 0]
    assert inner[[m for m in MEASURES if m not in ("largest", "smallest")]].notna().all(axis=None)
    assert inner.loc[inner["depth"] == 2, ["largest", "smallest"]].notna().all(axis=None)
    first = inner[(inner["depth"] == 3) & (inner["block"] == 1)]
    assert first[["largest", "smallest"]].isna().all(axis=None)  # 2 spectra: up to the last


@pytest.mark.parametrize("state", ["start", "trained"])
def test_a_probe_is_of_the_seeds_model_on_windows_of_the_validation_split(results, state):
    """RMS of the embedding and of the first block's gradient, from windows cut by hand."""
    blocks = pd.read_csv(results.place / "pre" / "blocks.csv")
    blocks = blocks[blocks["residual"]]
    row = by(blocks, "arm", "depth", "state", "seed", "block")
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 8, "block_size": 8}
    torch.manual_seed(2)
    norm = ARMS["layernorm"].norm
    model = Transformer(Model.model_validate(sizes), norm, "pre", DATA.vocab_size)
    if state == "trained":
        weights = safetensors.torch.load((results.place / LN / "models.safetensors").read_bytes())
        model.load_state_dict({n[2:]: t for n, t in weights.items() if n.startswith("2.")})
    model.double()
    val = torch.from_numpy(DATA.val.astype(int))
    window = torch.stack([val[:9], val[-9:]])
    x = model.token_embedding(window[:, :-1]) + model.position_embedding.weight
    rms = x.square().mean().sqrt().item()
    assert row["layernorm", 2, state, 2, 0]["activation_rms"] == pytest.approx(rms, rel=1e-8)
    y = x
    for block in model.blocks:
        y = block(y)
    logits = F.linear(model.final_norm(y), model.token_embedding.weight)
    loss = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
    gradient = torch.autograd.grad(loss, x)[0].norm().item()
    assert row["layernorm", 2, state, 2, 1]["gradient"] == pytest.approx(gradient, rel=1e-8)


@pytest.fixture
def copied(results, tmp_path) -> Path:
    shutil.copytree(results.place / LN, tmp_path / "store" / LN)
    (tmp_path / LN).symlink_to(tmp_path / "store" / LN)
    shutil.copytree(results.place / BN, tmp_path / BN)
    return tmp_path


def other_model(weights: bytes) -> bytes:
    tensors = safetensors.torch.load(weights)
    return safetensors.torch.save({n: t for n, t in tensors.items() if "mlp" not in n})


def other_file(weights: bytes) -> bytes:
    tensors = safetensors.torch.load(weights)
    return safetensors.torch.save({n[2:]: t for n, t in tensors.items() if n.startswith("1.")})


@pytest.mark.parametrize(
    "harm", [lambda raw: raw[:-9], lambda raw: b"", lambda raw: b"x" * 99, other_model, other_file],
    ids=["truncated", "empty", "noise", "other model", "other file"],
)  # fmt: skip
def test_damaged_weights_are_named_with_what_to_remove(copied, data, harm):
    path = copied / LN / "models.safetensors"
    path.write_bytes(harm(path.read_bytes()))
    message = descend(copied, data, depth_grid(), "pre").fail()
    assert f"{path} is damaged" in message
    assert f"remove {path.resolve()} and start again" in message
    assert not (copied / "pre" / "blocks.csv").exists()


def test_models_are_probed_in_the_order_of_their_seeds(tmp_path):
    """Not in that of safetensors, which is another in every process."""
    seeds = list(range(5, 17))
    weights = {f"{seed}.w": torch.full((2,), float(seed)) for seed in seeds}
    (tmp_path / "models.safetensors").write_bytes(safetensors.torch.save(weights))

    class One(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.zeros(2))

    script = runpy.run_path(str(processes.SCRIPTS / "depth_probe.py"))
    found = script["kept_models"](tmp_path / "models.safetensors", One)
    assert list(found) == seeds
    assert all(model.w[0].item() == seed for seed, model in found.items())


def test_the_tables_collect_all_places_and_shapes(results):
    blocks, losses = results.table("blocks"), results.table("losses")
    parts = [pd.read_csv(results.place / name / "blocks.csv") for name in results.grid.probes()]
    pd.testing.assert_frame_equal(blocks, pd.concat(parts, ignore_index=True))
    assert len(losses) == 2 * 8
    for name, arm in ((LN, "layernorm"), (BN, "batchnorm")):
        of = pd.read_csv(results.place / name / "losses.csv")
        own = losses[losses["arm"] == arm]
        assert own["val_loss"].tolist() == pytest.approx(of["val_loss"].tolist(), rel=1e-8)
        assert set(zip(own["placement"], own["residual"], own["init"], own["depth"],
                       strict=True)) == {("pre", True, "gpt2", 2)}  # fmt: skip
    assert len(results.table("rates")) == len(blocks[blocks["block"] == 0])


def test_the_unigram_loss_is_of_the_targets_of_the_losses(results):
    """Tokens 1 to 29: the first 30 but the first."""
    (unigram,) = set(results.table("losses")["unigram"])
    expected = unigram_loss(DATA.train, DATA.val[1:30], DATA.vocab_size)
    assert unigram == pytest.approx(expected, rel=1e-8)
    assert expected != pytest.approx(
        unigram_loss(DATA.train, DATA.val[1:], DATA.vocab_size), rel=1e-4
    )


def test_without_trained_shapes_the_tables_are_there(results, tmp_path, data):
    grid = depth_grid(trained=[])
    for name in grid.probes():
        descend(tmp_path, data, grid, name).succeed()
    depth(tmp_path, data, grid).succeed()
    tables = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in TABLES}
    assert tables["losses"].empty
    assert tables["trainability"].empty
    for name, table in tables.items():
        assert list(table.columns) == list(results.table(name).columns)
    assert set(tables["by_shape"]["state"]) == {"start"}
