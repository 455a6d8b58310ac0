"""The tutorial's statements on what can be trained, each beside a measurement."""

import pandas as pd

from normscope.ledger.case import Case, exp, log, of_units
from normscope.ledger.claim import Claim
from normscope.ledger.entry import Entry
from normscope.studies.depth.claims import LEARNED, Evidence, words
from normscope.studies.depth.measures import INITS
from normscope.studies.depth.tables import SCHEDULE

HUNDRED = 100  # layers


def _of(e: Evidence, placement: str, *, residual: bool = True) -> pd.DataFrame:
    """Losses of a placement with the tutorial's norm and nanoGPT's start."""
    return e.trained(placement=placement, residual=residual, init="gpt2")


def _kept(e: Evidence, table: pd.DataFrame) -> pd.DataFrame:
    """At the schedule of the models that are probed."""
    is_rate = table["learning_rate"] == e.kept.learning_rate
    return table[is_rate & (table["warmup_steps"] == e.kept.warmup_steps)]


def _best(table: pd.DataFrame) -> pd.DataFrame:
    """Of every depth, the schedule of least mean loss; one at which a model diverged comes last."""
    schedule = [*SCHEDULE]
    means = table.groupby(["depth", *schedule])["val_loss"].agg(lambda v: v.mean(skipna=False))
    best = means.reset_index().sort_values("val_loss").drop_duplicates("depth")
    return table.merge(best[["depth", *schedule]], on=["depth", *schedule])


def _paired(one: pd.DataFrame, other: pd.DataFrame) -> tuple[list[float], int]:
    """Differences of loss by seed, the first's less the second's, and pairs lost to divergence."""
    both = one.merge(other, on="seed", suffixes=("", "_other"))
    lost = both["diverged_at"].notna() | both["diverged_at_other"].notna()
    return list((both["val_loss"] - both["val_loss_other"]).dropna()), int(lost.sum())


def _deepest_common(*tables: pd.DataFrame) -> int | None:
    """The largest depth that all tables have."""
    common = set.intersection(*(set(table["depth"]) for table in tables))
    return max(common, default=None)


def _compared(
    e: Evidence, entry: Entry, worse: pd.DataFrame, better: pd.DataFrame
) -> tuple[str, dict[str, Case]]:
    """Losses as words, and whether the first is the larger, at the deepest common depth."""
    depth = _deepest_common(worse, better)
    pair = [table[table["depth"] == depth] for table in (worse, better)]
    if depth is None:
        return "–", {}
    if pair[1]["val_loss"].mean() > pair[1]["unigram"].max() - LEARNED:
        case = Case.unknown("undecided: nothing is learned either way")
    else:
        differences, lost = _paired(*pair)
        case = of_units(entry, differences, lost=lost, level=e.level)
    losses = " against ".join(words(table["val_loss"].dropna(), e.level) for table in pair)
    unigram = pair[0]["unigram"].max()
    told = f"{depth} blocks: {losses} nats; character frequencies alone: {unigram:.3f}"
    return told, {f"{depth} blocks": case}


def _at_depth(cases: dict[str, Case]) -> str:
    """The verdict with the depth that it is about."""
    for name, case in cases.items():
        verdict = case.reading()
        return f"{verdict} at {name}" if verdict in ("holds", "fails") else verdict
    return "no data"


def residuals_make_depth_trainable(e: Evidence) -> Claim:
    entry = e.entries["trainable"]
    without, with_them = (_kept(e, _of(e, "pre", residual=r)) for r in (False, True))
    told, cases = _compared(e, entry, without, with_them)
    depth = _deepest_common(without, with_them) or 0
    found = _at_depth(cases)
    if cases and depth < HUNDRED:
        told = f"{told}; {HUNDRED} layers were not trained"
        short = Case.unknown(f"undecided: no network of {HUNDRED} layers was trained")
        cases = {**cases, f"{HUNDRED} layers": short}
    return Claim("trainable", entry, "no training", told, cases, found=found)


def pre_norm_is_better_when_deep(e: Evidence) -> Claim:
    entry = e.entries["pre_beats_post"]
    told, cases = _compared(e, entry, _best(_of(e, "post")), _best(_of(e, "pre")))
    return Claim("pre_beats_post", entry, "no training", told, cases, found=_at_depth(cases))


def post_norm_starts_with_large_gradients(e: Evidence) -> Claim:
    by_shape = {
        (n.shape.init, n.shape.depth, n.shape.placement): n
        for n in e.networks("last_gradient", residual=True)
    }
    entry = e.entries["post_large_gradients"]
    cases, parts = {}, []
    for init, said in INITS.items():
        of = {p: {d for i, d, q in by_shape if (i, q) == (init, p)} for p in ("post", "pre")}
        depth = max(of["post"] & of["pre"], default=None)
        if depth is None:
            continue
        post, pre = by_shape[init, depth, "post"], by_shape[init, depth, "pre"]
        both = sorted(set(post.values) & set(pre.values))
        ratios = [exp(log(post.values[seed]) - log(pre.values[seed])) for seed in both]
        name = f"{depth} blocks{said or ', GPT-2' + chr(39) + 's start'}"
        cases[name] = of_units(entry, ratios, level=e.level)
        parts.append(f"{name}: {words(ratios, e.level, geometric=True)} times")
    return Claim("post_large_gradients", entry, "no number", "; ".join(parts) or "–", cases)


def post_norm_needs_warm_up(e: Evidence) -> Claim:
    of, entry = _of(e, "post"), e.entries["post_warm_up"]
    cases, parts = {}, []
    for (depth, rate), group in of.groupby(["depth", "learning_rate"]):
        without = group[group["warmup_steps"] == 0]
        warm = group[group["warmup_steps"] == group["warmup_steps"].max()]
        if without.empty or not warm["warmup_steps"].max():
            continue
        differences, lost = _paired(without, warm)
        name = f"{depth} blocks at {rate:g}"
        cases[name] = of_units(entry, differences, lost=lost, level=e.level)
        best = min(without["val_loss"].mean(), warm["val_loss"].mean())
        if best > group["unigram"].max() - LEARNED:
            cases[name] = Case.unknown("undecided: nothing is learned with or without")
        parts.append(f"{name}: {words(differences, e.level)}")
    told = f"loss without, less that with: {'; '.join(parts) or '–'}"
    return Claim("post_warm_up", entry, "no training", told, cases)


def pre_norm_is_less_sensitive(e: Evidence) -> Claim:
    spread: dict[str, dict[int, float]] = {"pre": {}, "post": {}}
    lost: set[int] = set()
    tables = {placement: _of(e, placement) for placement in ("pre", "post")}
    depth = _deepest_common(*tables.values())
    learned = {}
    for placement, table in tables.items():
        at = table[(table["depth"] == depth) & (table["warmup_steps"] == 0)]
        lost |= set(at.loc[at["diverged_at"].notna(), "seed"])
        losses = at.groupby("seed")["val_loss"]
        if at["learning_rate"].nunique() > 1:
            spread[placement] = dict((losses.max() - losses.min()).dropna())
        best = at.groupby("learning_rate")["val_loss"].mean().min()
        learned[placement] = best < at["unigram"].max() - LEARNED
    seeds = sorted(set(spread["pre"]) & set(spread["post"]))
    entry = e.entries["pre_less_sensitive"]
    differences = [spread["post"][s] - spread["pre"][s] for s in seeds]
    case = of_units(entry, differences, lost=len(lost), level=e.level)
    if seeds and not all(learned.values()):
        case = Case.unknown("undecided: where nothing is learned at any rate, no rate is better")
    told = "; ".join(f"{p}: {words(v.values(), e.level)}" for p, v in spread.items())
    return Claim(
        "pre_less_sensitive",
        entry,
        "no training",
        f"{depth} blocks, {told} nats" if depth else "–",
        {f"{depth} blocks" if depth else "": case},
    )
