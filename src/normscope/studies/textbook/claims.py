"""The tutorial's statements on LayerNorm and BatchNorm that no contrast can say.

They are about formulas, or about every token: one counterexample decides them, and no seeds are
needed.
"""

from normscope.ledger.case import Case
from normscope.ledger.claim import Evidence, Finding, claim
from normscope.ledger.reading import Reading
from normscope.words import records, significant

COUNTS = ("itself", "same_token", "same_window", "other_windows", "elsewhere")


@claim("standard")
def tokens_are_standard(reading: Reading, evidence: Evidence) -> Finding:
    """Of the norm layer that is furthest off, mean over models."""
    affine = evidence.table("textbook.affine").dropna(subset="std_after")
    if affine.empty:
        return Finding({"": Case.unknown("no data")}, "0 and 1", corrected="–")
    means = affine.groupby("layer", sort=False)[["std_before", "std_after", "mean_after"]].mean()
    layers = records(means)
    worst = max(layers, key=lambda r: abs(r.std_after - 1))
    distance = abs(worst.std_after - 1)
    before = [r.std_before for r in layers]
    return Finding(
        {"": Case.known(distance < reading.limit, distance)},
        "0 and 1",
        corrected=f"before gain and bias {significant(min(before))} to {significant(max(before))}; "
        f"after them {significant(worst.std_after)} where it is furthest off ({worst.Index}), mean "
        f"over {affine['seed'].nunique()} trained models; the mean is off by up to "
        f"{significant(max(abs(r.mean_after) for r in layers))}",
    )


@claim("statistics")
def shares_statistics(_: Reading, evidence: Evidence) -> Finding:
    """Which inputs an output depends on."""
    counts = evidence.table("textbook.sharing").astype(dict.fromkeys(COUNTS, int))
    sharing = {(r.arm, r.mode): r for r in records(counts)}
    ln, bn = sharing["layernorm", "training"], sharing["batchnorm", "training"]
    alone = sharing["batchnorm", "evaluation"]
    ln_is_within = ln.same_token and not (ln.same_window or ln.other_windows or ln.elsewhere)
    bn_is_across = bn.same_window and bn.other_windows and not bn.same_token
    return Finding(
        {"": Case.known(bool(ln_is_within and bn_is_across))},
        "a table of axes",
        corrected=f"LayerNorm: itself and {ln.same_token} others of its token; BatchNorm in "
        f"training: itself, {bn.same_window} of its channel in its window and {bn.other_windows} "
        "in others, positions after it included; in evaluation: itself and "
        f"{alone.same_token + alone.same_window + alone.other_windows + alone.elsewhere} others",
    )
