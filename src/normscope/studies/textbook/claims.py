"""The tutorial's statement on the statistics of LayerNorm and BatchNorm, which no contrast can say.

It is about formulas: one counterexample decides it, and no seeds are needed.
"""

from normscope.verdicts.case import Case
from normscope.verdicts.claim import Evidence, Finding, claim
from normscope.verdicts.reading import Reading
from normscope.words import records

COUNTS = ("itself", "same_token", "same_window", "other_windows", "elsewhere")


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
