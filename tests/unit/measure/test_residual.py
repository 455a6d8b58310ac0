"""Norms of the residual stream, on this project's Transformer and on modules of any order."""

import pandas as pd
import pytest
import stored_models
import torch
from processes import Script, flags
from recipes import DATA, recipe
from torch import Tensor, nn

from normscope.measure.residual import (
    NotTheStream,
    log_gain,
    recording,
    site_names,
    stream_norms,
)
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model, Placement
from normscope.studies.main.probe import probe
from normscope.studies.main.recipe import Probe
from normscope.studies.stage import ProbeInputs
from normscope.train.trained import transformers

V, T, C, LAYERS = 11, 6, 12, 3


def transformer(placement: Placement) -> Transformer:
    torch.manual_seed(0)
    model = Transformer(
        Model.model_validate({"n_layer": LAYERS, "n_head": 3, "n_embd": C, "block_size": T}),
        ARMS["layernorm"].norm,
        placement,
        V,
    )
    for p in model.parameters():
        nn.init.normal_(p)
    return model.eval().requires_grad_(False)


def tokens(windows: int = 2) -> Tensor:
    return torch.randint(V, (windows, T), generator=torch.Generator().manual_seed(1))


def norm(x: Tensor) -> Tensor:
    return x.double().square().sum(-1).sqrt()


def assert_same(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours.double(), theirs.double(), rtol=1e-5, atol=0)


def sites(model: Transformer, x: Tensor) -> list[Tensor]:
    """The stream at every site, composed by hand."""
    stream = [model.token_embedding(x) + model.position_embedding.weight[: x.shape[1]]]
    for block in model.blocks:
        stream.append(block(stream[-1]))
    return stream


@pytest.mark.parametrize("placement", ["pre", "post", "peri"])
def test_norms_of_the_transformer_are_those_of_its_stream(placement):
    model = transformer(placement)
    final_norm = None if placement == "post" else model.final_norm
    norms = stream_norms(model, list(model.blocks), final_norm, [tokens()])
    expected = sites(model, tokens())
    if final_norm is not None:
        expected.append(final_norm(expected[-1]))
    assert norms.shape == (len(site_names(LAYERS, final_norm is not None)), 2, T)
    assert_same(norms, torch.stack([norm(x) for x in expected]))


def test_a_block_may_return_a_tuple_whose_first_item_is_the_stream():
    class Pair(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, str]:
            return 2 * x, "cache"

    block, x = Pair(), torch.randn(2, T, C)
    with recording([block], None) as recorder:
        block(x)
    norms = recorder.stack()
    assert_same(norms, torch.stack([norm(x), 2 * norm(x)]))
    assert_same(log_gain(norms), torch.full((1, 2, T), 2.0).log())


BLOCKS = [nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)]
FINAL = nn.LayerNorm(4)


@pytest.mark.parametrize(
    ("order", "error"),
    [
        ([], "block_0 .*does not run in its turn"),
        ([0, 2, 1, 3], "block_2 .*more than once or out of order"),
        ([0, 1, 2], "final_norm .*does not run after the last block"),
        ([0, 3, 1, 2], "block_1 .*what enters it"),
    ],
)
def test_modules_that_do_not_run_in_turn_are_an_error_that_names_the_first(order, error):
    modules = [*BLOCKS, FINAL]

    def forward(x: Tensor) -> None:
        for i in order:
            x = modules[i](x)

    with pytest.raises(NotTheStream, match=error):
        stream_norms(forward, BLOCKS, FINAL, [torch.randn(2, 3, 4)])


@pytest.mark.parametrize(
    ("at", "error"),
    [(1, "block_1 .*not the output of block_0"), (3, "final_norm .*not the output of block_2")],
)
def test_a_module_that_takes_something_else_than_the_stream_is_an_error(at, error):
    """RWKV divides its stream between blocks: a ratio of two outputs is not a block's gain."""

    def forward(x: Tensor) -> None:
        for i, module in enumerate([*BLOCKS, FINAL]):
            x = module(x / 2 if i == at else x)

    with pytest.raises(NotTheStream, match=error):
        stream_norms(forward, BLOCKS, FINAL, [torch.randn(2, 3, 4)])


def test_the_final_norm_may_also_be_used_before_the_blocks():
    """NanoChat normalizes its embedding with the same module as the last block's output."""
    modules, x = [FINAL, *BLOCKS, FINAL], torch.randn(2, 3, 4)
    stream = [x]
    for module in modules:
        stream.append(module(stream[-1]))

    def forward(x: Tensor) -> None:
        for module in modules:
            x = module(x)

    expected = torch.stack([norm(y) for y in stream[1:]])
    assert_same(stream_norms(forward, BLOCKS, FINAL, [x]), expected)


@pytest.mark.parametrize("value", [torch.ones(2, 3, dtype=torch.long), None, {}, torch.ones(3)])
def test_blocks_that_pass_no_stream_are_an_error(value):
    block = nn.Identity()
    with pytest.raises(NotTheStream, match="block_0"):
        stream_norms(lambda _: block(value), [block], None, [torch.ones(1, 1)])


def test_the_script_measures_the_stream_of_every_model_of_a_job(tmp_path, data):
    """Norms of embeddings of windows cut by hand, seed by seed."""
    stack = recipe(seeds=[10, 2])
    stored_models.write(tmp_path / "models", stack, [1.5, 1.6])
    paths = {"models": tmp_path, "name": "models", "data": data, "out": tmp_path}
    arguments = flags(recipe=Probe(stream=2), **paths)
    Script("probe main", arguments, tmp_path / "log").succeed()
    stream = pd.read_csv(tmp_path / "stream.csv")
    sites = ["embedding", "block_0", "final_norm"]
    keys = list(stream[["seed", "site", "position"]].itertuples(index=False, name=None))
    assert keys == [(seed, site, t) for seed in (2, 10) for site in sites for t in range(8)]
    assert stream["log_gain"].isna().equals(stream["site"] == "embedding")
    val = torch.from_numpy(DATA.val.astype(int))
    windows = torch.stack([val[:8], val[-8:]])
    for seed, model in transformers(tmp_path / "models")[1].items():
        rows = stream[stream["seed"] == seed].set_index(["site", "position"])
        embedded = model.token_embedding(windows) + model.position_embedding.weight
        expected = norm(embedded).log().mean(0).exp()
        assert rows.xs("embedding")["norm"].tolist() == pytest.approx(expected.tolist(), rel=1e-5)
        gain = (norm(model.blocks[0](embedded)) / norm(embedded)).log().mean(0)
        assert rows.xs("block_0")["log_gain"].tolist() == pytest.approx(gain.tolist(), rel=1e-4)


@pytest.mark.parametrize(
    ("arm", "placement", "is_known"),
    [
        *(("rmsnorm", "pre", True), ("layernorm", "pre", True)),
        *(("rmsnorm_plain", "pre", False), ("layernorm", "post", False)),
        *(("batchnorm", "pre", False), ("dyt", "pre", False)),
    ],
)
def test_gains_are_folded_where_a_linear_layer_follows_them(
    arm, placement, is_known, tmp_path, data
):
    stored_models.write(tmp_path / "models", recipe(arm, placement, seeds=[1, 2]), [1.5, 1.6])
    inputs = ProbeInputs(models=tmp_path, name="models", data=data)
    laws = probe(Probe(stream=2), inputs, torch.device("cpu"))["laws"]
    for name in ("folding_blocks", "folding_all"):
        assert (laws[name] < 1e-12).tolist() == [is_known] * 2
        assert laws[name].isna().tolist() == [not is_known] * 2
