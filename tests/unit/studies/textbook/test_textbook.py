"""What the tutorial says, against torch, numpy and theory; and its tables from tiny models."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import processes
import pytest
import stored_models
import torch
from hypothesis import given
from hypothesis import strategies as st
from pandas import DataFrame
from recall_recipes import by, move
from recipes import DATA, recipe
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.norms import TokenNorm
from normscope.nn.recipe import Model, Placement
from normscope.studies.textbook.grid import TextbookTables
from normscope.studies.textbook.tabulate import (
    DIMENSIONS,
    SIZES,
    TextbookLayerNorm,
    affine,
    batch_theory,
    batches,
    epsilon,
    fit_affine,
    scratch,
    sharing,
    undo,
    wild,
)
from normscope.train.trained import transformers

V, T, WINDOWS = 5, 6, 3


def tokens(*shape: int, seed: int = 0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(*shape, generator=g, dtype=torch.float64) + 1


def model(arm: str, placement: Placement = "pre") -> Transformer:
    """Two blocks in float64, every parameter moved."""
    torch.manual_seed(0)
    sizes = Model(n_layer=2, n_head=2, n_embd=8, block_size=T)
    transformer = Transformer(sizes, ARMS[arm].norm, placement, V)
    move(transformer.double().eval())
    return transformer


def text() -> Tensor:
    return torch.randint(V, (WINDOWS, T), generator=torch.Generator().manual_seed(0))


def test_the_tutorials_layer_is_its_formula():
    layer = TextbookLayerNorm(7).double()
    for i, p in enumerate(layer.parameters()):
        nn.init.uniform_(p, 0.5, 1.5, generator=torch.Generator().manual_seed(i))
    x, (gain, bias) = tokens(5, 7), (p.detach().numpy() for p in layer.parameters())
    u = x.numpy() - x.numpy().mean(-1, keepdims=True)
    expected = gain * u / (np.sqrt((u**2).sum(-1, keepdims=True) / 6) + 1e-6) + bias
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-13)


def test_the_share_holds_at_every_width_and_one_feature_has_none():
    rows = by(DataFrame(scratch()), "d")
    assert tuple(rows) == DIMENSIONS
    for d, row in rows.items():
        assert row["theory"] == pytest.approx(math.sqrt(1 - 1 / d))
        assert row["error_ours"] == 0
        if d > 1:
            assert row["finite"]
            assert row["ratio"] == pytest.approx(row["theory"], rel=1e-12)
    assert not rows[1]["finite"]
    assert all(math.isnan(rows[1][k]) for k in ("ratio", "error_forward", "error_backward"))
    assert torch.equal(F.layer_norm(tokens(4, 1), (1,)), torch.zeros(4, 1, dtype=torch.float64))


@pytest.mark.parametrize("d", [2, 64])
def test_small_tokens_end_where_their_eps_is(d):
    table, s = DataFrame(epsilon(d)), np.logspace(-6, 2, 17)
    np.testing.assert_allclose(table["token_std"], s)
    expected = s / (s * math.sqrt(d / (d - 1)) + 1e-6)
    np.testing.assert_allclose(table["textbook"], expected, rtol=1e-9)
    np.testing.assert_allclose(table["torch"], s / np.sqrt(s**2 + 1e-5), rtol=1e-9)


def test_the_first_norm_is_what_its_parts_make_of_the_embeddings():
    transformer = model("layernorm")
    layer = transformer.get_submodule("blocks.0.attention.before")
    assert isinstance(layer, TokenNorm)
    assert layer.gain is not None
    assert layer.bias is not None
    weight, at = transformer.token_embedding.weight, transformer.position_embedding.weight
    x = (weight[text()] + at).detach().numpy().reshape(-1, 8)
    u = x - x.mean(-1, keepdims=True)
    z = u / np.sqrt((u**2).mean(-1, keepdims=True) + 1e-5)
    y = z * layer.gain.detach().numpy() + layer.bias.detach().numpy()
    row = affine(transformer, text())[0]
    assert row["std_before"] == pytest.approx(z.std(-1).mean(), rel=1e-12)
    assert row["mean_after"] == pytest.approx(np.abs(y.mean(-1)).mean(), rel=1e-12)
    assert row["std_after"] == pytest.approx(y.std(-1).mean(), rel=1e-12)
    assert row["std_after_sd"] == pytest.approx(y.std(-1).std(ddof=1), rel=1e-12)
    assert row["recovered"] == pytest.approx(fit_by_numpy(x, z), rel=1e-10)


@pytest.mark.parametrize(("B", "T", "C"), [(3, 4, 5), (2, 1, 6), (1, 3, 4)])
def test_layernorm_shares_a_token_batchnorm_a_channel_and_dyt_nothing(B, T, C):
    shares = {
        (row.pop("arm"), row.pop("mode")): list(row.values()) for row in map(dict, sharing(B, T, C))
    }
    assert shares == {
        ("layernorm", "training"): [1, C - 1, 0, 0, 0],
        ("rmsnorm", "training"): [1, C - 1, 0, 0, 0],
        ("batchnorm", "training"): [1, 0, T - 1, (B - 1) * T, 0],
        ("batchnorm", "evaluation"): [1, 0, 0, 0, 0],
        ("dyt", "training"): [1, 0, 0, 0, 0],
    }


def test_the_change_by_a_batch_in_closed_form_and_its_limit():
    # of two values s is |a - b| / 2, whose mean is 1 / sqrt(pi)
    assert batch_theory(2) == pytest.approx(math.sqrt(2 - 2 / math.sqrt(math.pi)))
    assert math.isnan(batch_theory(1))
    for n in (100, 10_000):
        assert batch_theory(n) == pytest.approx(math.sqrt(3 / (2 * n)), rel=1 / n)


def test_a_batchnorm_token_depends_on_its_batch_as_theory_says_and_a_layernorm_token_does_not():
    rows = by(DataFrame(batches(0.95)), "arm", "tokens")
    assert list(rows) == [(arm, n) for n in SIZES for arm in ("batchnorm", "layernorm")]
    for n in SIZES:
        alone = rows["layernorm", n]
        assert [alone[k] for k in ("n", "mean", "low", "high", "error")] == [20, 0, 0, 0, ""]
        row = rows["batchnorm", n]
        if n > 1:
            assert (row["n"], row["error"]) == (20, "")
            assert row["theory"] == batch_theory(n)
            half = row["high"] - row["mean"]
            # two half-widths of 95% are four standard errors
            assert abs(row["mean"] - row["theory"]) < 2 * half
            assert half < 0.1 * row["mean"]


def test_the_wild_vector_is_the_tutorials():
    table, summary = wild()
    np.random.seed(42)
    value = np.random.normal(loc=5, scale=10, size=100)
    assert table["index"].tolist() == list(range(100))
    np.testing.assert_array_equal(table["value"], value)
    np.testing.assert_allclose(table["normalized"], (value - value.mean()) / value.std())
    assert list(summary["vector"]) == list(table)[1:]
    for row in summary.to_dict("records"):
        v = table[str(row["vector"])].to_numpy()
        assert row["mean"] == pytest.approx(np.mean(v), abs=1e-15)
        assert row["std_unbiased"] == pytest.approx(np.linalg.norm(v - v.mean()) / math.sqrt(99))
        assert row["std"] == pytest.approx(np.linalg.norm(v - v.mean()) / 10)
        k = np.abs(v).argmax()
        assert row["largest"] == abs(v[k])
        assert row["share"] == pytest.approx(v[k] ** 2 / (v @ v))
        # all others equal: sqrt(d - 1) in size
        bound = math.sqrt(99) if "normalized" in str(row["vector"]) else math.nan
        assert row["bound"] == pytest.approx(bound, nan_ok=True)
    k = table["value"].abs().argmax()
    others = table.drop(index=k)
    assert table["outlier"][k] == pytest.approx(100 * others["value"].abs().max())
    assert others["outlier"].equals(others["value"])


def fit_by_numpy(x: np.ndarray, z: np.ndarray) -> float:
    """R^2 by numpy's least squares, a channel at a time."""
    left = 0.0
    for channel, on in zip(x.T, z.T, strict=True):
        design = np.stack([on, np.ones_like(on)], axis=1)
        left += np.square(channel - design @ np.linalg.lstsq(design, channel)[0]).sum()
    return 1 - left / np.square(x - x.mean(0)).sum()


@given(st.integers(0, 2**32 - 1))
def test_what_is_recovered_is_the_best_fit(seed):
    x = tokens(30, 4, seed=seed) * tokens(30, 1, seed=seed + 1).exp()
    z = F.layer_norm(x, (4,))
    assert fit_affine(x, z) == pytest.approx(fit_by_numpy(x.numpy(), z.numpy()), abs=1e-10)


def test_tokens_of_one_mean_and_scale_come_back_and_others_do_not():
    rows = by(DataFrame(undo()), "sd_ln_scale", "sd_mean")
    assert len(rows) == 12
    assert rows[0, 0]["r2"] == pytest.approx(1, abs=1e-12)
    for (a, b), row in rows.items():
        # Er^2 = exp(a^2), E r^2 = exp(2 a^2), of a lognormal r
        expected = math.exp(a * a) / (math.exp(2 * a * a) + b * b)
        assert row["theory"] == pytest.approx(expected)
        assert row["r2"] == pytest.approx(expected, abs=0.02)
    assert rows[1, 0]["theory"] == pytest.approx(1 / math.e)


NAMES = ["blocks.0.attention.before", "blocks.0.mlp.before", "final_norm"]


@pytest.fixture(scope="module")
def place(tmp_path_factory, data) -> Path:
    """Models of two jobs with three seeds, whose parameters are not at the start, and tables."""
    place, names = tmp_path_factory.mktemp("textbook"), []
    for seeds in ([10, 2], [1]):
        names.append(f"layernorm-{seeds[0]}")
        stored_models.write(place / names[-1], recipe("layernorm", seeds=seeds), [2.0] * len(seeds))
    job = TextbookTables(models=names, windows=WINDOWS, level=0.95)
    paths = {"models": place, "probes": place, "data": data, "out": place / "textbook"}
    arguments = processes.flags(recipe=job, **paths)
    assert processes.Script("make_tables textbook", arguments, place / "log").succeed() == ""
    return place


def test_every_norm_of_every_seed_has_a_row(place):
    table = pd.read_csv(place / "textbook" / "affine.csv")
    keys = list(table[["seed", "layer", "index"]].itertuples(index=False, name=None))
    assert keys == [(seed, name, i) for seed in (2, 10, 1) for i, name in enumerate(NAMES)]
    assert set(table["tokens"]) == {WINDOWS * 8}
    assert table.notna().all(axis=None)


def test_trained_norms_are_measured_on_windows_spread_over_the_validation_split(place):
    """At the first norm, from the embeddings of windows cut by hand."""
    model = transformers(place / "layernorm-10")[1][2]
    val = DATA.val.astype(int)
    starts = [0, (len(val) - 1 - 8) // 2, len(val) - 1 - 8]
    tokens = torch.tensor(np.stack([val[i : i + 8] for i in starts]))
    x = model.double().token_embedding(tokens) + model.position_embedding.weight
    std = x.std(-1, correction=0)
    row = by(pd.read_csv(place / "textbook" / "affine.csv"), "seed", "layer")[2, NAMES[0]]
    expected = (std / (std.square() + 1e-5).sqrt()).mean().item()
    assert row["std_before"] == pytest.approx(expected, rel=1e-8)
