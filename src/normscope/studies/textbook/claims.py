"""The tutorial's statements on LayerNorm and BatchNorm, each beside a measurement.

They are about formulas, or about every token: one counterexample decides them, and no seeds are
needed.
"""

import math
from collections.abc import Mapping

import pandas as pd

from normscope.ledger.case import Case
from normscope.ledger.claim import Claim
from normscope.ledger.entry import Entry
from normscope.paper.words import number, records, significant

COUNTS = ("itself", "same_token", "same_window", "other_windows", "elsewhere")
Tables = Mapping[str, pd.DataFrame]
Entries = Mapping[str, Entry]


def _below(entry: Entry, value: float, there: bool = True) -> dict[str, Case]:
    """Whether a value that one case decides is below the entry's bound."""
    return {"": Case.known(value < entry.limit, value) if there else Case.unknown("no data")}


def is_layer_norm(tables: Tables, entries: Entries) -> Claim:
    known = records(tables["scratch"].dropna(subset="ratio"))
    ratios = "; ".join(f"{r.ratio:.4f} at d = {r.d}" for r in (known[0], known[-1]))
    errors = [r.error_forward for r in known]
    return Claim(
        "class",
        entries["class"],
        "an unbiased standard deviation, eps outside the root",
        f"output times sqrt((d - 1)/d): {ratios}; NaN at d = 1; relative error with each one's own "
        f"eps: up to {significant(max(errors))}, {significant(errors[-1])} at d = {known[-1].d}",
        _below(entries["class"], max(errors)),
    )


def tokens_are_standard(tables: Tables, entries: Entries) -> Claim:
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
        entries["standard"],
        "0 and 1",
        told,
        _below(entries["standard"], max(off, default=math.nan), bool(layers)),
    )


def no_feature_dominates(tables: Tables, entries: Entries) -> Claim:
    share = {r.vector: float(r.share) for r in records(tables["wild_summary"])}
    before, after = share["outlier"], share["outlier_normalized"]
    return Claim(
        "dominates",
        entries["dominates"],
        "no number",
        f"{before:.1%} before, {after:.1%} after: a norm scales all features of a token alike",
        _below(entries["dominates"], after),
    )


def affine_undoes(tables: Tables, entries: Entries) -> Claim:
    spread = {r.sd_ln_scale: r.r2 for r in records(tables["undo"]) if r.sd_mean == 0}
    recovered = list(tables["affine"].groupby("index")["recovered"].mean().dropna())
    trained = ""
    if recovered:
        least, most = significant(min(recovered)), significant(max(recovered))
        trained = f"; in the norms of the trained models {least} to {most}"
    listed = "; ".join(f"{significant(r2)} at {sd:g}" for sd, r2 in spread.items())
    return Claim(
        "undo",
        entries["undo"],
        "no number",
        f"{listed}{trained}: a token's own mean and scale are gone, and gain and bias are the same "
        "for all",
        _below(entries["undo"], 1 - min(spread.values(), default=math.nan), bool(spread)),
    )


def shares_statistics(tables: Tables, entries: Entries) -> Claim:
    counts = tables["sharing"].astype(dict.fromkeys(COUNTS, int))
    sharing = {(r.arm, r.mode): r for r in records(counts)}
    ln, bn = sharing["layernorm", "training"], sharing["batchnorm", "training"]
    alone = sharing["batchnorm", "evaluation"]
    ln_is_within = ln.same_token and not (ln.same_window or ln.other_windows or ln.elsewhere)
    bn_is_across = bn.same_window and bn.other_windows and not bn.same_token
    return Claim(
        "statistics",
        entries["statistics"],
        "a table of axes",
        f"LayerNorm: itself and {ln.same_token} others of its token; BatchNorm in training: "
        f"itself, {bn.same_window} of its channel in its window and {bn.other_windows} in others, "
        "positions after it included; in evaluation: itself and "
        f"{alone.same_token + alone.same_window + alone.other_windows + alone.elsewhere} others",
        {"": Case.known(bool(ln_is_within and bn_is_across))},
    )


def works_alone(tables: Tables, entries: Entries) -> Claim:
    rows = records(tables["batches"])
    bn = [r for r in rows if r.arm == "batchnorm" and not math.isnan(r.mean)]
    ln = [r.mean for r in rows if r.arm == "layernorm"]
    errors = [f"at {r.tokens}: {r.error!r}; " for r in rows if isinstance(r.error, str)]
    first, last = bn[0], bn[-1]
    return Claim(
        "batch_size",
        entries["batch_size"],
        "no number",
        f"BatchNorm, by tokens in the batch: {''.join(errors)}{number(first.mean)} at "
        f"{first.tokens}, {number(last.mean)} at {last.tokens}, where the theory of Gaussian "
        f"features has {number(last.theory)}; LayerNorm: at most {max(ln):g} at every size",
        {"": Case.known(bool(first.mean > last.mean and max(ln) == 0), float(first.mean))},
    )
