"""The tutorial's statements on LayerNorm and BatchNorm, each beside a measurement.

They are about formulas, or about every token: one counterexample decides them, and no seeds are
needed.
"""

import math
from collections.abc import Mapping

import pandas as pd

from normscope.depth.claims import Claim
from normscope.tables import number, records, significant

EXACT = 1e-9  # relative error below which two formulas are the same, in float64
SAME = 0.01  # by which a standard deviation may differ from 1
DOMINATES = 0.5  # share of a vector's energy from which one feature dominates it
COUNTS = ("itself", "same_token", "same_window", "other_windows", "elsewhere")
Tables = Mapping[str, pd.DataFrame]


def _here(holds: bool, there: bool = True) -> str:
    """The answer of a test that one case decides."""
    if not there:
        return "no data"
    return "holds" if holds else "fails"


def is_layer_norm(tables: Tables) -> Claim:
    known = records(tables["scratch"].dropna(subset="ratio"))
    ratios = "; ".join(f"{r.ratio:.4f} at d = {r.d}" for r in (known[0], known[-1]))
    errors = [r.error_forward for r in known]
    return Claim(
        "class",
        "The tutorial's class is a LayerNorm.",
        "its output is that of torch's layer_norm for every width",
        "an unbiased standard deviation, eps outside the root",
        f"output times sqrt((d - 1)/d): {ratios}; NaN at d = 1; relative error with each one's own "
        f"eps: up to {significant(max(errors))}, {significant(errors[-1])} at d = {known[-1].d}",
        _here(max(errors) < EXACT),
    )


def tokens_are_standard(tables: Tables) -> Claim:
    affine = tables["affine"].dropna(subset="std_after")
    means = affine.groupby("layer", sort=False)[["std_before", "std_after", "mean_after"]].mean()
    layers = records(means)
    told, off = "–", [abs(r.std_after - 1) for r in layers]
    if layers:
        worst = max(layers, key=lambda r: abs(r.std_after - 1))
        before = [r.std_before for r in layers]
        told = (
            f"before gain and bias {significant(min(before))} to {significant(max(before))}; after "
            f"them {significant(worst.std_after)} where it is furthest off ({worst.Index}), mean "
            f"over {affine['seed'].nunique()} trained models; the mean is off by up to "
            f"{significant(max(abs(r.mean_after) for r in layers))}"
        )
    return Claim(
        "standard",
        "LayerNorm gives every token features of mean 0 and standard deviation 1.",
        f"standard deviation over a token's features within {SAME} of 1 in every norm of the "
        "trained models, gain and bias included",
        "0 and 1",
        told,
        _here(all(v < SAME for v in off), bool(layers)),
    )


def no_feature_dominates(tables: Tables) -> Claim:
    share = {r.vector: float(r.share) for r in records(tables["wild_summary"])}
    before, after = share["outlier"], share["outlier_normalized"]
    return Claim(
        "dominates",
        "LayerNorm prevents a single feature from dominating.",
        "share of the largest feature in a token's energy after the norm, where one feature is a "
        f"hundred times the others: below {DOMINATES:g}",
        "no number",
        f"{before:.1%} before, {after:.1%} after: a norm scales all features of a token alike",
        _here(after < DOMINATES),
    )


def affine_undoes(tables: Tables) -> Claim:
    spread = {r.sd_ln_scale: r.r2 for r in records(tables["undo"]) if r.sd_mean == 0}
    recovered = list(tables["affine"].groupby("index")["recovered"].mean().dropna())
    trained = ""
    if recovered:
        least, most = significant(min(recovered)), significant(max(recovered))
        trained = f"; in the norms of the trained models {least} to {most}"
    listed = "; ".join(f"{significant(r2)} at {sd:g}" for sd, r2 in spread.items())
    return Claim(
        "undo",
        "Gain and bias let the model undo the normalization.",
        "share of the input's variance that the best gain and bias recover (R^2), by the standard "
        "deviation of ln scale over tokens: 1",
        "no number",
        f"{listed}{trained}: a token's own mean and scale are gone, and gain and bias are the same "
        "for all",
        _here(all(r2 > 1 - EXACT for r2 in spread.values()), bool(spread)),
    )


def shares_statistics(tables: Tables) -> Claim:
    counts = tables["sharing"].astype(dict.fromkeys(COUNTS, int))
    sharing = {(r.arm, r.mode): r for r in records(counts)}
    ln, bn = sharing["layernorm", "training"], sharing["batchnorm", "training"]
    alone = sharing["batchnorm", "evaluation"]
    ln_is_within = ln.same_token and not (ln.same_window or ln.other_windows or ln.elsewhere)
    bn_is_across = bn.same_window and bn.other_windows and not bn.same_token
    return Claim(
        "statistics",
        "BatchNorm takes its statistics across examples, LayerNorm within each.",
        "which inputs an output depends on: nonzero entries of the exact Jacobian",
        "a table of axes",
        f"LayerNorm: itself and {ln.same_token} others of its token; BatchNorm in training: "
        f"itself, {bn.same_window} of its channel in its window and {bn.other_windows} in others, "
        "positions after it included; in evaluation: itself and "
        f"{alone.same_token + alone.same_window + alone.other_windows + alone.elsewhere} others",
        _here(bool(ln_is_within and bn_is_across)),
    )


def works_alone(tables: Tables) -> Claim:
    rows = records(tables["batches"])
    bn = [r for r in rows if r.arm == "batchnorm" and not math.isnan(r.mean)]
    ln = [r.mean for r in rows if r.arm == "layernorm"]
    errors = [f"at {r.tokens}: {r.error!r}; " for r in rows if isinstance(r.error, str)]
    first, last = bn[0], bn[-1]
    return Claim(
        "batch_size",
        "BatchNorm needs large batches; LayerNorm works at batch size 1.",
        "relative change of a token's output by the batch that it is in, against the statistics of "
        "all tokens",
        "no number",
        f"BatchNorm, by tokens in the batch: {''.join(errors)}{number(first.mean)} at "
        f"{first.tokens}, {number(last.mean)} at {last.tokens}, where the theory of Gaussian "
        f"features has {number(last.theory)}; LayerNorm: at most {max(ln):g} at every size",
        _here(first.mean > last.mean and max(ln) == 0),
    )
