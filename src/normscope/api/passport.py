"""The passport of a model's norms: a table, and what it says in a few sentences."""

import copy
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn

from normscope.api.arguments import public
from normscope.api.running import (
    check_model,
    check_tokens,
    evaluating,
    logits,
    options,
    random_tokens,
    split,
)
from normscope.measure.inventory import inventory
from normscope.measure.places import AFTER, AFTER_SUM, BEFORE, FINAL, KEYS, QUERIES
from normscope.measure.readers import InFloat64
from normscope.measure.recognition import first_tensor
from normscope.measure.recognition import norms as find_norms

COLUMNS = """norm kind computes gain_as eps place feeds folds adds_bias cancelled_by gain_low
gain_high sigma sigma_first size size_first problem""".split()
LARGE_EPS = 0.1  # of sigma^2: the norm divides by less than the length of a token
TINY_EPS = 1e-13  # published models have 1e-12 or more
FAR = 10  # times 1: a gain that is unusual
SINK = 10  # times the sigma of other positions: the first one is unusual
SHOWN = 2  # norms that a sentence names


class Passport(NamedTuple):
    """The norms of a model.

    Attributes:
        table: one row per norm; see ``norms``.
        says: at most five sentences: the placement, whether ``hidden_states[-1]`` is normalized,
            what a fold would change, what is unusual, and what is not known.
    """

    table: pd.DataFrame
    says: tuple[str, ...]

    def __str__(self) -> str:
        """The sentences, and the table without the problems, in a terminal."""
        table = self.table.drop(columns=["adds_bias", "problem"])
        table["folds"] = table["folds"].map({True: "yes", False: "no"})
        table.loc[self.table["adds_bias"], "folds"] = "adds a bias"
        # the last part of a name; of another operation, the operation
        table["feeds"] = [", ".join(_short(name) for name in feeds) for feeds in table["feeds"]]
        table["cancelled_by"] = [", ".join(some or ()) or None for some in table["cancelled_by"]]
        shown = table.dropna(axis="columns", how="all")
        text = shown.to_string(index=False, float_format="{:.3g}".format, na_rep="")
        return "\n".join([*self.says, "", text])


@public
def norms(model: nn.Module, tokens: Tensor | None = None) -> Passport:
    """Describe the norms of a language model, one row each, by running it.

    Nothing depends on the names of modules or attributes: what a norm computes is fitted to its
    outputs, and its place is read off the graph that autograd makes of one forward pass. What
    cannot be found is missing in the table.

    Columns of the table:

    - norm (its name), kind (its class), computes (``LayerNorm`` if it centers, else ``RMSNorm``);
    - gain_as (how it stores its gain: ``w``, ``1 + w``, or ``none`` if it has no gain; missing if
      in another way), eps (added to the mean square);
    - place: ``before a sublayer``, ``after a sublayer`` (before its output is added to the
      stream), ``after the sum`` (as in the first Transformer), ``queries``, ``keys`` or ``values``
      with ``per head`` or ``over all heads``, ``inside a sublayer``, ``embedding``, ``final``,
      ``head`` (behind the final norm);
    - feeds (a list: the linear layers that read its output, and the first other operation);
    - folds (whether these layers can take its gain and bias exactly, see ``fold``), adds_bias
      (whether one of them would get a bias that it had not), problem (why it does not fold, or why
      it is not known what it computes);
    - cancelled_by (a list: norms that alone read its output, so that its division by sigma has no
      effect, except by eps);
    - gain_low, gain_high (the range over channels);
    - sigma (``sqrt(mean(u^2) + eps)`` with ``u = x - mean(x)`` if it centers, else ``u = x``) and
      size (``sqrt(mean(x^2))`` of its input): means over all tokens but the first of each window,
      whose means are sigma_first and size_first. These are missing, and the others are of all
      tokens, if the input of a norm does not tell windows and positions apart.

    Args:
        model: a model that takes tokens and returns logits: of transformers, one that ``load``
            gives, or yours. It is not changed. In a type shorter than float32 a copy in float32
            is measured.
        tokens: (windows, positions), at least 2 positions, of text as the model learned it, for
            sigma and size; by default 10 random ones, below the rows of the first embedding.

    Raises:
        Explained: the model has no norm or no weights, does not accept the tokens, or does not
            return logits.
    """
    check_model(model)
    tokens = random_tokens(model) if tokens is None else tokens
    check_tokens(tokens, least=2)
    types = {p.dtype for p in model.parameters() if p.is_floating_point()}
    if types - {torch.float32, torch.float64}:
        model = copy.deepcopy(model).float()
    elif any(p.is_inference() for p in model.parameters()):  # of which autograd makes no graph
        model = copy.deepcopy(model)
    modules = find_norms(model)
    exact = InFloat64() if torch.float64 in types else nullcontext()
    with evaluating(model), exact:
        rows = inventory(model, modules, split(tokens), partial(logits, model))
        table = pd.DataFrame(rows, columns=COLUMNS)
        last = _last_hidden_state(model, table, tokens[:1])
    says = (_placement(table), last, _fold(table), _unusual(table), _unknown(table))
    return Passport(table, tuple(filter(None, says)))


def _short(reader: str) -> str:
    operation, is_operation, _ = reader.partition(" in ")
    return operation if is_operation else reader.rpartition(".")[2]


def some(names: Sequence[str]) -> str:
    """The first of some names, and the number of others."""
    others = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {others} more" if others > 0 else "")


def reasons(table: pd.DataFrame) -> dict[str, list[str]]:
    """The norms that do not fold, by the problem; the first of those that differ in numbers."""
    groups = table.groupby(table["problem"].str.replace(r"\d+", "", regex=True), sort=False)
    return {group["problem"].iloc[0]: list(group["norm"]) for _, group in groups}


def _norms_at(table: pd.DataFrame, *words: str) -> list[str]:
    """The norms whose place has one of these words."""
    is_there = table["place"].str.contains("|".join(words), na=False)
    return list(table["norm"][is_there])


def _placement(table: pd.DataFrame) -> str:
    before, after, sums, roles, final = (
        _norms_at(table, *words)
        for words in ([BEFORE], [AFTER], [AFTER_SUM], [QUERIES, KEYS], [FINAL])
    )
    parts = []
    if before and after:
        parts.append(f"sandwich: {len(before)} norms before and {len(after)} after sublayers")
    elif before:
        parts.append(f"pre-norm: {len(before)} norms before sublayers")
    elif after:
        parts.append(f"{len(after)} norms after sublayers, before the sum, and none before")
    if sums:
        parts.append(f"post-norm: {len(sums)} norms after residual sums")
    if not parts:
        parts.append("no norm before or after a sublayer was found")
    if roles:
        places = table.set_index("norm").loc[roles, "place"].drop_duplicates()
        parts.append(f"{len(roles)} norms of {', '.join(places)}")
    parts.append(f"the final norm is {some(final)}" if final else "no final norm was found")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _last_hidden_state(model: nn.Module, table: pd.DataFrame, tokens: Tensor) -> str | None:
    """Where the last hidden state that a model of transformers returns comes from."""
    final = _norms_at(table, FINAL)
    if not final or not hasattr(getattr(model, "config", None), "output_hidden_states"):
        return None
    seen: dict[str, Tensor | None] = {}

    def keep(norm: str, _: nn.Module, args: tuple, named: dict[str, Any], output: Any) -> None:
        inputs = (*args, *named.values())
        seen[f"output of the final norm, {norm}"] = first_tensor(output)
        seen[f"input of the final norm, {norm}"] = first_tensor(inputs)

    with ExitStack() as hooks, torch.no_grad():
        for norm in final:
            hook = partial(keep, norm)
            module = model.get_submodule(norm)
            hooks.callback(module.register_forward_hook(hook, with_kwargs=True).remove)
        last = model(tokens, output_hidden_states=True, **options(model)).hidden_states[-1]
    for what, tensor in seen.items():
        if tensor is not None and tensor.shape == last.shape and torch.equal(tensor, last):
            return f"hidden_states[-1] is the {what}."
    return f"hidden_states[-1] is neither the input nor the output of {some(final)}."


def _fold(table: pd.DataFrame) -> str:
    table = table[table["gain_as"] != "none"]
    if table.empty:
        return "No norm has a gain that a fold could move."
    folds, stays = table[table["folds"]], table[~table["folds"]]
    biases = int(folds["adds_bias"].sum())
    parts = [
        f"a fold would move the gains of {len(folds)} of {len(table)} norms into linear layers "
        "without a change of a logit" + (f", {biases} with new biases" * bool(biases))
    ]
    parts += [f"{some(names)} would stay: {why}" for why, names in reasons(stays).items()]
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _unusual(table: pd.DataFrame) -> str | None:
    gain = table[["gain_low", "gain_high"]].abs().max(axis=1)
    share = table["eps"] / table["sigma"] ** 2
    times = table["sigma_first"] / table["sigma"]
    is_cancelled = table["cancelled_by"].map(bool)
    signs = (
        (share > LARGE_EPS, share, "eps is up to {:.2g} of sigma^2 in {}"),
        (table["eps"] < TINY_EPS, table["eps"], "eps is {:.2g} in {}"),
        (gain == 0, gain, "the gain is {:.0f} in {}"),
        (gain > FAR, gain, "gains reach {:.3g} in {}"),
        ((gain > 0) & (gain < 1 / FAR), gain, "all gains are below {:.2g} in {}"),
        (times > SINK, times, "at position 0 sigma is up to {:.0f} times the others' in {}"),
        (is_cancelled, gain, "another norm cancels the division by sigma of {1}"),
    )
    texts = [
        text.format(value[where].max(), some(list(table["norm"][where])))
        for where, value, text in signs
        if where.any()
    ]
    return f"Unusual: {'; '.join(texts)}." if texts else None


def _unknown(table: pd.DataFrame) -> str | None:
    texts = [
        f"{text} {some(names)}"
        for column, text in (("computes", "what it computes, of"), ("place", "the place of"))
        if len(names := list(table["norm"][table[column].isna()]))
    ]
    return f"Not known: {'; '.join(texts)}." if texts else None
