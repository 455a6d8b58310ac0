"""Tables of every study with planted values, from which figures are drawn.

Every run of a ``lost`` arm diverged at step 7, and its measures are missing.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd
from drawings import FIGURES, Drawn, draw

from normscope.studies.depth.tables import RELATIVE
from normscope.studies.recall.tabulate import with_factors
from normscope.studies.stage import declared_tables

NAN = math.nan
ARMS = ("layernorm", "manual_l2", "none")
RATES = (0.001, 0.01)
TRIED = (RATES[0], 0.003, RATES[1])
STEP = 7  # at which the lost runs diverged
UNIGRAM = 3.0
RULES = (
    ("center_scale", "all", 1.0),
    ("center_scale", "final", 1.0),
    ("straight_through", "blocks", 1.0),
)
DOSE = ("center_scale", "all", 0.5)
TABLES = declared_tables()
Tables = dict[str, pd.DataFrame]
# values to which the entries refer
CONFIGURATION: dict[str, Any] = {
    "norms": {
        "baseline": {"arm": "layernorm", "placement": "pre"},
        "titles": {"width_64": "width 64"},
    },
    "main": {
        "baseline": {"arm": "layernorm", "placement": "pre"},
        "gain": {"protocols": ["nanogpt"]},
        "titles": {name: name for name in ("nanogpt", "brief", "sweep", "sweep_qk")},
        **{key: {"brief": "brief"} for key in ("placement_protocols", "optimizers", "normless")},
    },
    "recall": {
        "published": {"seeds": [1]},
        "published_cells": [["recall", arm, 0.001] for arm in ARMS],
        "corrected_cells": [["recall", arm, 0.001] for arm in ARMS],
        "corrected": {"task": "recall", "learning_rate": 0.001},
    },
    "jacobian": {"published": "script", "corrected": "small"},
}


class Case(NamedTuple):
    """The seeds of every arm, and the arms whose runs diverged."""

    seeds: Sequence[int] = (1, 2)
    lost: Sequence[str] = ()

    def estimate(self, mean: float, *, lost: bool = False) -> dict[str, float]:
        """n, mean and interval; one value has no interval."""
        n, half = (0, NAN) if lost else (len(self.seeds), 0.1 if len(self.seeds) > 1 else NAN)
        mean = NAN if lost else mean
        return {"n": n, "mean": mean, "low": mean - half, "high": mean + half}


WHOLE = Case()


def planted(study: str, **rows: list[dict[str, Any]]) -> Tables:
    """Tables with the columns that the study declares; other values are missing."""
    declared = TABLES[study]
    return {name: pd.DataFrame(r, columns=declared[name].names) for name, r in rows.items()}


def main(case: Case) -> Tables:
    """Arms at pre (none at none) in one protocol, at three rates, and the models of ``of_papers``.

    Losses are 1.5, 2, 2.5 and a hundredth of the seed, 0.5 more at the rates that are not chosen,
    and 3.5 where a run diverged. At batch size 1 they are 1 more than at 8.
    """
    runs, batches = [], []
    for i, arm in enumerate(ARMS):
        key, lost = {"arm": arm, "placement": "none" if arm == "none" else "pre"}, arm in case.lost
        key = {"protocol": "nanogpt"} | key
        loss = 3.5 if lost else 1.5 + 0.5 * i
        for seed in case.seeds:
            end = loss + 0.01 * seed
            model = key | {"seed": seed, "diverged_at": STEP if lost else NAN, "failed": int(lost)}
            for rate in TRIED:
                more = 0.5 * (rate > RATES[0])
                runs.append(model | {"learning_rate": rate, "capped_loss": end + more})
            batches += [
                model
                | {"text": "dataset", "batch_size": size, "capped_loss": end + more, "excess": more}
                for size, more in ((1, 1.0), (8, 0.0))
            ]
    others = of_papers(case)
    runs += others.pop("runs")
    return planted(
        "main",
        **others,
        runs=runs,
        chosen=[run for run in runs if run["learning_rate"] == RATES[0]],
        batches=batches,
    )


def of_papers(case: Case) -> dict[str, list[dict[str, Any]]]:
    """One protocol of four cells, and two of one cell that were trained at several rates.

    Losses are 2, 2.5, ... and a hundredth of the seed, and 0.5 more at rates that are not chosen.
    Post-norm costs 0.5. The energy along the mean is the seed plus the number of the
    cell. The gradients of untrained networks are the inverse of the depth, times the seed.
    """
    runs, networks, differences = [], [], []
    kinds = [("brief", "layernorm", "pre"), ("brief", "layernorm", "post")]
    kinds += [("brief", "none", "none"), ("brief", "dyt", "pre")]
    kinds += [(name, "layernorm", "pre") for name in ("sweep", "sweep_qk")]
    for i, (protocol, arm, placement) in enumerate(kinds):
        key, lost = {"protocol": protocol, "arm": arm, "placement": placement}, arm in case.lost
        loss = 3.5 if lost else 2 + 0.5 * i
        for seed, rate in itertools.product(case.seeds, TRIED[: 1 if protocol == "brief" else 3]):
            model = key | {"learning_rate": rate, "seed": seed, "failed": int(lost)}
            end = loss + 0.01 * seed + 0.5 * (rate > RATES[0])
            runs.append(model | {"capped_loss": end, "diverged_at": STEP if lost else NAN})
            runs[-1] |= {} if lost else {"uniform_energy": 1.0 * (seed + i)}
            differences.append(model | {"above_placement": 0.5 * (placement == "post")})
    slopes = []
    for placement, seed in itertools.product(("pre", "post"), case.seeds):
        key = {"arm": "layernorm", "placement": placement, "seed": seed}
        networks += [key | {"depth": depth, "last_gradient": seed / depth} for depth in (2, 8)]
        slopes.append(key | {"gradient_slope": -1.0})
    return {
        "runs": runs,
        "differences": differences,
        "networks": networks,
        "slopes": slopes,
    }


def norms(case: Case) -> Tables:
    """Arms as in ``main``, and LayerNorm in post-norm; the pilot's losses are 2, 1 and 3."""
    key = {"protocol": "width_64", "learning_rate": RATES[1]}
    cells = [(arm, "none" if arm == "none" else "pre") for arm in ARMS] + [("layernorm", "post")]
    models, rates = [], []
    for i, (arm, placement) in enumerate(cells):
        cell, lost = key | {"arm": arm, "placement": placement}, arm in case.lost
        state = {"diverged_at": STEP if lost else NAN, "failed": int(lost), "text": "dataset"}
        models += [
            cell | state | {"seed": seed, "capped_loss": 3.5 if lost else 1.5 + 0.5 * i}
            for seed in case.seeds
        ]
        losses = zip(TRIED, (2.0, 1.0, 3.0), strict=True)
        rates += [cell | {"learning_rate": r, "loss": x, "is_best": x == 1} for r, x in losses]
    return planted("norms", models=models, rates=rates)


def recall(case: Case) -> Tables:
    """One task at three rates; every measure is 0.1 (i + seed) of the i-th arm."""
    measures = "loss calibrated_loss accuracy effective_rank_query edge"
    runs, curves, slices, spectra = [], [], [], []
    for (i, arm), rate, seed in itertools.product(enumerate(ARMS), TRIED, case.seeds):
        key = {"task": "recall", "arm": arm, "learning_rate": rate, "seed": seed}
        lost = arm in case.lost
        values = dict.fromkeys(measures.split(), NAN if lost else 0.1 * (i + seed))
        runs.append(key | values | {"diverged_at": STEP if lost else NAN})
        curves += [key | {"step": s, "train_loss": 3 / s + i} for s in (1, 5, 10)]
        for kind, direction in () if lost else zip(KINDS, (0, 0, 0, 1), strict=True):
            cut = {"kind": kind, "direction": direction}
            for alpha in (-0.5, 0.0, 0.5):
                loss = 1 + i + alpha**2 * (1 + direction)
                slices.append(key | cut | {"alpha": alpha, "offset": alpha, "loss": loss})
        for where, k in () if lost else itertools.product(("published", "query"), range(4)):
            spectra.append(key | {"where": where, "index": k, "value": (i + 1) / 2**k})
    tables = planted("recall", curves=curves, slices=slices, spectra=spectra)
    return tables | {"runs": with_factors(pd.DataFrame(runs))}


KINDS = ("published", "restored", "filter", "filter")


def jacobian(case: Case) -> Tables:
    """Two protocols of LayerNorm; the mean cost of the i-th surrogate is 0.1 i."""
    costs, sigma, layers = [], [], []
    lost = "layernorm" in case.lost
    settings = itertools.product(("script", "small"), ("softmax", "sigmoid"), ("fa", "backprop"))
    for protocol, attention, feedback in settings:
        setting = {"protocol": protocol, "arm": "layernorm", "attention": attention}
        setting |= {"feedback": feedback, "sigma_penalty": 0.0}
        for i, (rule, place, share) in enumerate((("exact", "all", 1.0), *RULES, DOSE)):
            cell = setting | {"norm_backward": rule, "surrogates_in": place, "radial_share": share}
            for seed in case.seeds:
                for index in () if i or lost else (0, 1):
                    layer = {"seed": seed, "layer": str(index), "index": index, "d": 4}
                    layer |= {"signal": "own", "variant": "published", "r_mean": (index + 1) / 4}
                    layers.append(cell | layer)
            if i:
                costs.append(cell | case.estimate(0.1 * i))
            for step in () if lost else (10, 20):
                sigma.append(cell | {"step": step} | case.estimate(1.0 + i))
    return planted("jacobian", costs=costs, sigma=sigma, layers=layers)


INITS = ("gpt2", "xavier")


def depth(case: Case) -> Tables:
    """Networks of two depths; without residual connections sizes are lost by 1e-4 a block."""
    by_block, models = [], []
    places = [("layernorm", "pre"), ("layernorm", "post"), ("none", "none")]
    for (arm, place), residual, deep in itertools.product(places, (True, False), (2, 5)):
        lost = arm in case.lost
        shape = {"arm": arm, "placement": place, "residual": residual, "depth": deep}
        for state, init in itertools.product(("start", "trained"), INITS):
            for block in range(0 if lost else deep + 1):
                size = (1.1 if residual else 1e-4) ** block
                numbers = {k: size if k != "n" else v for k, v in case.estimate(size).items()}
                row = {"init": init, "state": state, "measure": RELATIVE, "block": block}
                by_block.append(shape | row | numbers)
        for rate, warm_up in itertools.product(RATES, (0, 5)):
            row = {"init": "gpt2", "learning_rate": rate, "warmup_steps": warm_up}
            row |= {"unigram": UNIGRAM}
            size = UNIGRAM + 0.5 if lost else 2.5 + rate
            diverged = {"capped_loss": size, "failed": int(lost), "diverged_at": 7 if lost else NAN}
            models += [shape | row | {"seed": seed} | diverged for seed in case.seeds]
    return planted("depth", by_block=by_block, losses=models)


def textbook(case: Case) -> Tables:
    """What a formula says, and a baseline of two norms."""
    lost = "layernorm" in case.lost
    widths = [1, 2, 4]
    stds = ["std_before", "std_after", "mean_before", "mean_after"]
    affine = [
        {"index": i, "seed": seed} | {k: NAN if lost else j + i + seed for j, k in enumerate(stds)}
        for i, seed in itertools.product((0, 1), case.seeds)
    ]
    wild = {"index": range(4), "value": [1.0, 1, 1, 1], "normalized": [1.0, 1, 1, 3]}
    wild |= {"outlier": [1.0, 1, 1, 9], "outlier_normalized": [0.0, 0, 0, 1]}
    batches = [
        {"arm": arm, "tokens": n, "theory": 1 / n, "mean": mean, "low": mean, "high": mean, "n": 20}
        | {"error": "refused" if (arm, n) == ("batchnorm", 1) else None}
        for arm, n in itertools.product(("batchnorm", "layernorm"), widths)
        for mean in (0.0 if arm == "layernorm" else NAN if n == 1 else 0.9 / n,)
    ]
    ratio = [NAN, 0.7, 0.87]
    scratch = {"d": widths, "theory": [0.0, 0.71, 0.87], "ratio": ratio}
    return {
        "scratch": pd.DataFrame(scratch | {"finite": [False, True, True]}),
        "epsilon": pd.DataFrame({"token_std": [0.1, 1], "textbook": [0.9, 1], "torch": [0.8, 1]}),
        "wild": pd.DataFrame(wild),
        "affine": pd.DataFrame(affine),
        "batches": pd.DataFrame(batches),
    }


def pretrained(case: Case) -> Tables:
    """Published rows, and a measured model, unless ``measured`` is lost."""
    ours = {"model": "ours", "experiment": "measured", "norm": "RMSNorm"}
    gpt2 = {"model": "gpt2-xl", "experiment": "gpt2", "norm": "LayerNorm", "family": "GPT-2"}
    rows = [gpt2] + [ours | {"family": "F"}] * ("measured" not in case.lost)
    by_model = [
        row | {"log_gain": g, "low": g - 0.1, "high": g + 0.1, "n": 25}
        for row, g in zip(rows, (0.2, -0.3), strict=False)
    ]
    h25 = {"experiment": "h25", "family": "OPT", "metric": "gain_hidden_states", "rho": 0.5}
    h25 |= {"gain": 1.2, "low": 1.1, "high": 1.3, "reading": "above 1", "n": 25}
    told = {"experiment": "gpt2", "model": "gpt2-xl", "category": "Novel"}
    told |= {"entropy": 3.0, "gain": 1.1}
    ratio = {"experiment": "final_norm", "model": "ours", "metric": "gain_hidden_states"}
    tables = {"by_model": by_model, "h25_models": [h25], "observations": [told]}
    return planted("pretrained", **tables, references=[ratio | {"value": 0.9}])


PLANTED: dict[str, Callable[[Case], Tables]] = {
    f.__name__: f for f in (norms, main, recall, jacobian, depth, textbook, pretrained)
}


def tables_of(name: str, case: Case = WHOLE) -> Tables:
    """The tables of a figure."""
    sources = FIGURES[name].sources.items()
    return {key: PLANTED[table.study](case)[table.name] for key, table in sources}


def draw_planted(name: str, case: Case = WHOLE) -> Drawn:
    """A figure drawn from the planted tables."""
    return draw(name, tables_of(name, case), **FIGURES[name].values(CONFIGURATION))
