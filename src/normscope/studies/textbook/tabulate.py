"""LayerNorm built from scratch by a tutorial, and what it says of norms, measured.

The tutorial is L05, "Normalization & Residuals", of snowch.github.io. A function computes the rows
of the table of its name, in float64, with a fixed random generator.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.io import dataset
from normscope.measure.decomposition import relative_error, standardize
from normscope.measure.derivatives import transposed_product
from normscope.measure.hooks import norm_layers, passing
from normscope.measure.windows import validation_windows
from normscope.nn.arms import ARMS
from normscope.nn.norms import Affine, TokenNorm, build
from normscope.statistics.summary import describe
from normscope.studies.stage import TableInputs
from normscope.studies.textbook.grid import TextbookTables
from normscope.studies.textbook.tables import TABLES
from normscope.train import runtime
from normscope.train.outputs import log
from normscope.train.trained import transformers

Apply = Callable[[Tensor], Tensor]
Row = dict[str, str | int | float]
DIMENSIONS = (1, 2, 4, 8, 16, 64, 128, 768)
SIZES = tuple(2**k for k in range(9))  # tokens in a batch
SCALE_SPREADS, MEAN_SPREADS = (0.0, 0.1, 0.3, 1.0), (0.0, 0.3, 1.0)
SHARING = (
    ("layernorm", "training"),
    ("rmsnorm", "training"),
    ("batchnorm", "training"),
    ("batchnorm", "evaluation"),
    ("dyt", "training"),
)


def tabulate(recipe: TextbookTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the study, by name; ``models`` are those of the main study."""
    runtime.start("fp32", inputs.threads)
    val = dataset.read(inputs.corpus).val
    norms = []
    for name in recipe.models:
        stack, models = transformers(inputs.models / name)
        tokens, _ = validation_windows(val, stack.model.block_size, recipe.windows)
        for seed, model in models.items():
            rows = affine(model.double(), tokens)
            if not rows:
                log(f"{name}: no norm has token statistics; affine.csv has no row of it")
            norms += [{"seed": seed, **row} for row in rows]
    rows_of = {
        "scratch": scratch(),
        "epsilon": epsilon(),
        "affine": norms,
        "sharing": sharing(),
        "batches": batches(recipe.level),
        "undo": undo(),
    }
    wild_vectors, wild_summary = wild()
    return {
        "wild": wild_vectors,
        "wild_summary": wild_summary,
        **{name: pd.DataFrame(rows, columns=TABLES[name].names) for name, rows in rows_of.items()},
    }


class TextbookLayerNorm(Affine):
    """``gain * (x - <x>) / (std + eps) + bias`` as the tutorial's code has it, wrong on purpose.

    Its std is over d - 1, and eps stands outside the root; the formula in its text, Ba et al.
    2016 (eq. 4) and torch divide by ``sqrt(var + eps)`` with the variance over d. Hence at eps = 0
    it is ``sqrt((d - 1) / d)`` of LayerNorm, and NaN at d = 1, where LayerNorm is 0.
    """

    def __init__(self, d: int, eps: float = 1e-6) -> None:
        super().__init__(d, gain=True, bias=True)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        std = x.std(-1, keepdim=True)
        return super().forward((x - x.mean(-1, keepdim=True)) / (std + self.eps))


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _normal(g: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def _norm(arm: str, d: int) -> nn.Module:
    return build(ARMS[arm].norm, d).double()


def _differentiate(layer: nn.Module, x: Tensor, dy: Tensor) -> tuple[Tensor, Tensor]:
    """Output and dL/dx."""
    x = x.clone().requires_grad_()
    y = layer(x)
    (dx,) = transposed_product(y, x, dy)
    return y.detach(), dx


def scratch(tokens: int = 32) -> list[Row]:
    """The tutorial's layer and this package's, compared with torch's: one row per width d.

    ``ratio`` is that of the tutorial's output to torch's with eps = 0 in both, in Frobenius norms;
    ``theory`` is what it must be. ``error_forward`` and ``error_backward`` are relative Frobenius
    errors of the output and of dL/dx, each layer with its eps. ``error_ours`` is the largest
    absolute difference of either in our LayerNorm. At d = 2 the true dL/dx is eps alone, as z is
    -1 and 1 whatever x is.
    """
    rows: list[Row] = []
    for d in DIMENSIONS:
        g = _generator()
        x, dy = _normal(g, tokens, d), _normal(g, tokens, d)
        expected = _differentiate(nn.LayerNorm(d).double(), x, dy)
        ours = _differentiate(_norm("layernorm", d), x, dy)
        with warnings.catch_warnings():  # of torch, that one value has no std
            warnings.filterwarnings("ignore", "std", UserWarning)
            textbook = _differentiate(TextbookLayerNorm(d).double(), x, dy)
            bare, _ = _differentiate(TextbookLayerNorm(d, eps=0).double(), x, dy)
        forward, backward = map(relative_error, textbook, expected)
        row = {"d": d, "ratio": float(bare.norm() / F.layer_norm(x, (d,), eps=0).norm())}
        row |= {"theory": math.sqrt((d - 1) / d)}
        row |= {"error_forward": forward, "error_backward": backward}
        errors = [float((a - b).abs().max()) for a, b in zip(ours, expected, strict=True)]
        row |= {"error_ours": max(errors), "finite": all(t.isfinite().all() for t in textbook)}
        rows.append(row)
    return rows


@torch.no_grad()
def epsilon(d: int = 64, tokens: int = 17) -> list[Row]:
    """What eps does: standard deviation of the output for one of ``token_std`` from 1e-6 to 1e2.

    ``s / (s sqrt(d / (d - 1)) + 1e-6)`` of the tutorial's layer, ``s / sqrt(s^2 + 1e-5)`` of
    torch's.
    """
    z = F.layer_norm(_normal(_generator(), d), (d,), eps=0)
    layers = {"textbook": TextbookLayerNorm(d).double(), "torch": nn.LayerNorm(d).double()}
    rows: list[Row] = []
    for s in torch.logspace(-6, 2, tokens, dtype=torch.float64):
        stds = {name: float(layer(s * z).std(correction=0)) for name, layer in layers.items()}
        rows.append({"token_std": float(s), **stds})
    return rows


def affine(model: nn.Module, tokens: Tensor) -> list[Row]:
    """Mean and standard deviation of every token: one row per norm with token statistics.

    Over the tokens of a batch: means of a token's |mean| and (population) std before the affine
    part and after it, and the std over tokens of the latter; least and largest gain. ``recovered``
    is how much of its input the best gain and bias would bring back, as in ``undo``.

    Args:
        model: in evaluation mode, in float64.
        tokens: (windows, T).
    """
    layers = norm_layers(model)
    with passing(layers) as seen, torch.no_grad():
        model(tokens)
    rows: list[Row] = []
    for index, (name, layer) in enumerate(layers.items()):
        if not isinstance(layer, TokenNorm):
            continue
        x, y = (t.flatten(0, -2) for t in seen[name])
        z = standardize(layer, x).z
        row: Row = {"layer": name, "index": index, "d": x.shape[-1], "tokens": len(x)}
        for where, values in (("before", z), ("after", y)):
            row[f"mean_{where}"] = float(values.mean(-1).abs().mean())
            row[f"std_{where}"] = float(values.std(-1, correction=0).mean())
        row["std_after_sd"] = float(y.std(-1, correction=0).std())
        gain = torch.ones(1) if layer.gain is None else layer.gain.detach()
        row |= {"gain_min": float(gain.min()), "gain_max": float(gain.max())}
        rows.append(row | {"recovered": fit_affine(x, z)})
    return rows


def sharing(B: int = 3, T: int = 4, C: int = 5) -> list[Row]:
    """Which inputs an output depends on, counted in the exact Jacobian of a (B, T, C) input.

    How many entries of x move one entry of y, as a mean over y: ``itself``, the other channels of
    its token (``same_token``), its channel at the other tokens of its window (``same_window``) and
    in ``other_windows``, and any ``elsewhere``.
    """
    x = _normal(_generator(), B, T, C)
    at = torch.stack(torch.meshgrid(*map(torch.arange, (B, T, C)), indexing="ij")).flatten(1)
    window, token, channel = at[:, :, None] == at[:, None, :]
    where = {
        "itself": window & token & channel,
        "same_token": window & token & ~channel,
        "same_window": window & ~token & channel,
        "other_windows": ~window & channel,
    }
    where["elsewhere"] = ~torch.stack(list(where.values())).any(0)
    rows: list[Row] = []
    for arm, mode in SHARING:
        layer = _norm(arm, C).train(mode == "training")
        jacobian = torch.autograd.functional.jacobian(layer, x)
        moves = torch.as_tensor(jacobian).view(x.numel(), x.numel()) != 0
        counts = {name: float((moves & which).sum() / len(moves)) for name, which in where.items()}
        rows.append({"arm": arm, "mode": mode, **counts})
    return rows


def batch_theory(n: int) -> float:
    """Relative RMS change of a Gaussian token by BatchNorm's statistics of n tokens, itself one.

    In a channel whose mean is 0 and standard deviation 1 the token x becomes ``(x - m) / s``. Over
    the batch its mean square is 1 and its mean product with x is s, so that ``E (y - x)^2 =
    2 - 2 E s``, where ``E s = sqrt(2 / n) Gamma(n / 2) / Gamma((n - 1) / 2)``. That tends to
    ``3 / (2 n)``: 1/n is of the mean and 1/(2n) of the standard deviation. NaN at n = 1.
    """
    if n == 1:
        return math.nan
    return math.sqrt(
        2 - 2 * math.sqrt(2 / n) * math.exp(math.lgamma(n / 2) - math.lgamma(n / 2 - 0.5))
    )


@torch.no_grad()
def batches(level: float, sizes: Sequence[int] = SIZES, draws: int = 20, C: int = 64) -> list[Row]:
    """How much the output of a token depends on its batch: one row per batch size and norm.

    Relative difference of BatchNorm's output in training from that under the population's
    statistics, and of LayerNorm's from that of the token alone; mean over ``draws`` batches with
    its t interval. Where a layer refuses the batch, ``error`` is what it says.
    """
    g = _generator()
    mean, scale = _normal(g, C), torch.empty(C, dtype=torch.float64).uniform_(0.5, 2, generator=g)
    norms = {arm: _norm(arm, C) for arm in ("batchnorm", "layernorm")}
    eps = ARMS["batchnorm"].norm.eps
    alone: dict[str, Apply] = norms | {
        "batchnorm": lambda x: F.batch_norm(x, mean, scale.square(), eps=eps)
    }
    rows: list[Row] = []
    for n in sizes:
        drawn = mean + scale * _normal(g, draws, n, C)
        for arm, layer in norms.items():
            changes, error = [], ""
            try:
                changes = [relative_error(layer(x)[:1], alone[arm](x[:1])) for x in drawn]
            except ValueError as e:
                error = str(e).partition(". ")[0]
            theory = batch_theory(n) if arm == "batchnorm" else 0.0
            row: Row = {"tokens": n, "arm": arm, "theory": theory, "error": error}
            rows.append(row | describe(changes, level))
    return rows


def wild() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tutorial's vector of 100 features and one with an outlier, normalized: rows, a summary.

    The outlier is its largest feature, grown to 100 times the next. ``share`` is that of the
    largest feature in the energy ``sum v^2``. ``bound`` is the largest that a feature can be after
    normalization, ``sqrt(d - 1)``, where all others are equal (with the unbiased std it would be
    ``(d - 1) / sqrt(d)``).
    """
    value = np.random.RandomState(42).normal(5, 10, 100)
    outlier, sizes = value.copy(), np.abs(value)
    outlier[sizes.argmax()] = 100 * np.sort(sizes)[-2]
    vectors = {}
    for name, v in (("value", value), ("outlier", outlier)):
        normalized = "normalized" if name == "value" else f"{name}_normalized"
        vectors |= {name: v, normalized: (v - v.mean()) / v.std()}
    summary = [
        {"vector": name, "mean": v.mean(), "std": v.std(), "std_unbiased": v.std(ddof=1)}
        | {"largest": np.abs(v).max(), "share": np.square(v).max() / np.square(v).sum()}
        | {"bound": math.sqrt(len(v) - 1) if name.endswith("normalized") else math.nan}
        for name, v in vectors.items()
    ]
    return pd.DataFrame(vectors).rename_axis("index").reset_index(), pd.DataFrame(summary)


def fit_affine(x: Tensor, z: Tensor) -> float:
    """R^2 of x from ``gain * z + bias``, by least squares per channel; both (tokens, d)."""
    x, z = x - x.mean(0), z - z.mean(0)
    rest = x - (x * z).sum(0) / z.square().sum(0) * z
    return float(1 - rest.square().sum() / x.square().sum())


def undo(tokens: int = 1 << 16, d: int = 16) -> list[Row]:
    """How much of tokens ``m + r z`` gain and bias can recover after LayerNorm: ``r2``.

    Gain and bias are constant per channel, while m and r differ by token: m is N(0, ``sd_mean``^2),
    ln r is N(0, ``sd_ln_scale``^2), and z lies on the sphere. The best gain is E r, so that
    ``theory`` is ``(E r)^2 / (E r^2 + var m) = exp(a^2) / (exp(2 a^2) + sd_mean^2)`` with
    a = sd_ln_scale: 1 where all tokens have the same mean and scale.
    """
    g, layer = _generator(), _norm("layernorm_plain", d)
    z = F.layer_norm(_normal(g, tokens, d), (d,), eps=0)
    m, ln_r = _normal(g, tokens, 1), _normal(g, tokens, 1)
    rows: list[Row] = []
    for sd_ln_scale, sd_mean in product(SCALE_SPREADS, MEAN_SPREADS):
        x = sd_mean * m + (sd_ln_scale * ln_r).exp() * z
        theory = math.exp(sd_ln_scale**2) / (math.exp(2 * sd_ln_scale**2) + sd_mean**2)
        row: Row = {"sd_ln_scale": sd_ln_scale, "sd_mean": sd_mean}
        rows.append(row | {"r2": fit_affine(x, layer(x)), "theory": theory})
    return rows
