"""Which norms a model can lose, and a model without them."""

import math
from collections.abc import Collection, Mapping
from functools import partial

import pandas as pd
import torch
from torch import Tensor, nn

from normscope.api.arguments import public
from normscope.api.running import check_model, check_tokens, evaluating, logits, split
from normscope.errors import Explained, suggest
from normscope.measure.frozen_norms import Sigmas, freeze_norms, frozen_norms, replacing, sigmas
from normscope.measure.recognition import norms
from normscope.nn.model import cross_entropy

EXACT = 1e-5  # of the change of a logit, over the largest: what rounding to float32 explains
CAUSAL = 1e-3  # the same by later tokens, at least the square root of the type's eps
NEAR = 0.01  # nats of added loss
TOGETHER = "all"  # the row of all norms together
COLUMNS = """norm kind sigma_mean sigma_std sigma_first loss frozen_loss added_loss change removable
problem""".split()


@public
def removable(
    model: nn.Module,
    tokens: Tensor,
    names: Collection[str] | None = None,
    *,
    first_apart: bool = False,
) -> pd.DataFrame:
    """Find the norms that a language model can lose, exactly or nearly.

    A norm divides each token by its sigma, ``sqrt(mean(u^2) + eps)`` with ``u = x - mean(x)`` if it
    centers, else ``u = x``. With sigma frozen at its mean over tokens (Baroni et al. 2025,
    arXiv:2507.02559) it is an affine map, ``gain * u / mean(sigma) + bias``, which linear layers
    can take over: see ``remove`` and ``fold``. The table has one row per norm, in which the others
    stay, and a row ``all`` without all those that can be frozen. Nothing is trained.

    Columns: norm (its name), kind (its class), sigma_mean and sigma_std (over tokens), sigma_first
    (the mean at the first position of a window), loss (nats per token, of the model with its
    norms), frozen_loss (without this one), added_loss (the difference), change (the largest change
    of a logit, over the largest absolute logit), removable, and problem (why a norm cannot be
    frozen; its other numbers are then missing; of ``all`` the norms that stay). ``removable`` is
    ``exact`` if change is at most 1e-5, which rounding in float32 explains, ``near`` if the added
    loss is at most 0.01 nats, else ``no``. A logit that is not finite makes both infinite.

    Norms that can go one by one may not be able to go together: give them as ``names``, and read
    the row ``all``. If ``sigma_first`` is hundreds of times ``sigma_mean``, as in many language
    models, no constant fits both: give ``first_apart``.

    Args:
        model: a causal language model that takes tokens and returns logits: of transformers, one
            that ``load`` gives, or yours. Its norms are replaced during the call only.
        tokens: (windows, positions), of text as the model learned it. The means of sigma are over
            these tokens, and the loss is that of predicting all but the first of each window.
        names: of norms in the model; by default of all LayerNorms and RMSNorms.
        first_apart: the first position of each window has a separate mean.

    Raises:
        Explained: the model has no norm, or none with one of the names, or names is empty; it does
            not accept the tokens or does not return logits, or its logits are not finite or all 0;
            or it is not causal: its logits depend on later tokens.
    """
    chosen, batches = _select_norms(model, tokens, names), split(tokens)
    with evaluating(model):
        _check_causal(model, tokens[:1])
        measured = sigmas(chosen, batches, partial(logits, model))
        new, problems = frozen_norms(measured, first_apart=first_apart)
        together = {TOGETHER: new} if new else {}
        alone = {name: {name: norm} for name, norm in new.items()}
        loss, effects = _effects(model, batches, alone | together)
    rows: dict[str, dict[str, object]] = {
        name: {"kind": type(norm).__name__, "problem": problems.get(name)}
        for name, norm in chosen.items()
    }
    for name in new:
        rows[name] |= _summarize(measured[name])
    stay = f"stay, as they cannot be frozen: {', '.join(problems)}" if problems else None
    rows[TOGETHER] = {"problem": stay}
    for name, effect in effects.items():
        rows[name] |= {"loss": loss, **effect}
    return pd.DataFrame([{"norm": name, **row} for name, row in rows.items()], columns=COLUMNS)


@public
def remove(
    model: nn.Module,
    tokens: Tensor,
    names: Collection[str] | None = None,
    *,
    first_apart: bool = False,
) -> nn.Module:
    """Copy a model without some of its norms: their sigma is frozen at its mean over tokens.

    What is left of a norm is an affine map of the token, which ``fold`` merges into the linear
    layers after it, so that no operation remains. The copy can be trained further.

    With ``first_apart`` the map differs at the first position, so that ``fold`` cannot merge it.
    The copy then takes whole windows only: call ``generate`` with ``use_cache=False``.

    Args:
        model: a model that takes tokens and returns logits, which need not be causal; it is not
            changed.
        tokens: (windows, positions), over which the means of sigma are.
        names: norms, by their names in the model; by default all LayerNorms and RMSNorms.
        first_apart: the first position of each window has a separate mean.

    Raises:
        Explained: the model has no norm, or none with one of the names, or names is empty; it does
            not accept the tokens or does not return logits; or a norm cannot be frozen.
    """
    chosen = _select_norms(model, tokens, names)
    with evaluating(model):
        run = partial(logits, model)
        made = freeze_norms(model, chosen, split(tokens), first_apart=first_apart, run=run)
    for module, old in zip(made.modules(), model.modules(), strict=True):
        module.training = old.training
    return made


def _select_norms(
    model: nn.Module, tokens: Tensor, names: Collection[str] | None
) -> dict[str, nn.Module]:
    """The norms of a model that are named, by name, in the order of the model."""
    check_model(model)
    check_tokens(tokens, least=2)
    known = norms(model)
    if names is not None and not names:
        raise Explained(f"names is empty: give norms of the model, which are {', '.join(known)}")
    for name in known if names is None else names:
        if name not in known:
            raise Explained(f"{type(model).__name__} has no norm {name!r}; {suggest(name, known)}")
    return {name: norm for name, norm in known.items() if names is None or name in names}


@torch.no_grad()
def _check_causal(model: nn.Module, tokens: Tensor) -> None:
    """Check that the logits do not depend on later tokens of one window, (1, positions)."""
    changed, half = tokens.clone(), tokens.shape[1] // 2
    changed[:, half:] = tokens[:, half:] == 0  # token 0, or 1 in place of 0
    before, after = (logits(model, window)[:, :half] for window in (tokens, changed))
    # experts may round otherwise, as they then run on other numbers of tokens
    tolerance = max(CAUSAL, math.sqrt(torch.finfo(before.dtype).eps))
    if float((after - before).abs().max()) > tolerance * float(before.abs().max()):
        raise Explained(
            f"{type(model).__name__} is not a causal language model: its logits depend on later "
            "tokens; give a decoder"
        )


def _summarize(sigma: Sigmas) -> dict[str, float]:
    """The mean and standard deviation of sigma over tokens, and its mean at the first position."""
    return {
        "sigma_mean": float(sigma.values.mean()),
        "sigma_std": float(sigma.values.std(correction=0)),
        "sigma_first": float(sigma.first.mean()),
    }


def _effects(
    model: nn.Module, batches: list[Tensor], variants: Mapping[str, Mapping[str, nn.Module]]
) -> tuple[float, dict[str, dict[str, float | str]]]:
    """The loss of a model, and the effect of replacing modules of it, by name.

    Args:
        batches: tokens, (windows, positions) each.

    Raises:
        Explained: the logits of the model are not finite, or all 0.
    """
    loss, size = 0.0, 0.0
    losses, changes = dict.fromkeys(variants, 0.0), dict.fromkeys(variants, 0.0)
    for batch in batches:
        before = logits(model, batch)
        if not before.isfinite().all():
            raise Explained(f"the logits of {type(model).__name__} are not finite: load it in fp32")
        loss += _loss(before, batch)
        size = max(size, float(before.abs().max()))
        for name, modules in variants.items():
            with replacing(model, modules):
                after = logits(model, batch)
            losses[name] += _loss(after, batch)
            changes[name] = max(changes[name], _finite(float((after - before).abs().max())))
    if not size:
        raise Explained(f"the logits of {type(model).__name__} are all 0: train its head first")
    n = sum(batch[:, 1:].numel() for batch in batches)
    effects: dict[str, dict[str, float | str]] = {}
    for name in variants:
        added, change = (losses[name] - loss) / n, changes[name] / size
        verdict = "exact" if change <= EXACT else "near" if added <= NEAR else "no"
        effects[name] = {
            "frozen_loss": losses[name] / n,
            "added_loss": added,
            "change": change,
            "removable": verdict,
        }
    return loss / n, effects


def _loss(logits: Tensor, tokens: Tensor) -> float:
    """The sum over tokens of the loss in nats; infinite if a logit is not finite."""
    losses = cross_entropy(logits[:, :-1], tokens[:, 1:].long(), "none")
    return _finite(float(losses.double().sum()))


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.inf
