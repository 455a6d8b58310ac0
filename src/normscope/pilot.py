"""Blocks of the configuration with ``learning_rates: pilot``, and the rates that replace it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from normscope.config import Studies, load
from normscope.custom_arms import add_arms
from normscope.errors import Explained
from normscope.io.yamlfile import overlay, read_config
from normscope.studies.pilot import Losses, Pilot, Trial, losses_of, read_trials
from normscope.studies.study import TrainedStudy
from normscope.train.schedule import least

WORD = "pilot"  # in place of a list of learning rates
TRIALS = Path("data/pilot.csv")  # in the folder of the project, and in that of the user
CODE = Path("results/code/norms")  # copies of the code of custom norms, in the folder of the user
SHOWN = 5  # cells that a message lists
ANY_RATE = 0.001  # of cells whose rate does not matter yet
TRAINED = {
    name: field.annotation
    for name, field in Studies.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, TrainedStudy)
}


class OpenCell(NamedTuple):
    """A cell whose learning rate the pilot chooses.

    Args:
        cell: The cell, at any rate.
        block: What the configuration says of it alone.
    """

    study: str
    cell: Any
    block: Mapping[str, Any]

    def __str__(self) -> str:
        """The study and the values of the cell, such as ``main: small, rmsnorm, pre``."""
        values = (str(v) for k, v in self.cell._asdict().items() if k != "learning_rate")
        return f"{self.study}: {', '.join(values)}"


def read_project(root: Path, *choices: Path) -> dict[str, Any]:
    """The project's ``config.yaml`` with files laid over it, and the pilot's rates.

    Args:
        choices: Configuration files; a later one wins.
    """
    raw = read_config(root / "config.yaml")
    for path in choices:
        raw = overlay(raw, read_config(path))
    add_arms(raw, [path.parent for path in choices], CODE)
    return with_pilot(raw, read_trials([root / TRIALS]))


def with_pilot(raw: dict[str, Any], trials: Sequence[Trial]) -> dict[str, Any]:
    """The configuration with the pilot's losses, and its rates in place of the word ``pilot``.

    Raises:
        Explained: Cells have no pilot models, or would be tested on a pilot seed.
        ConfigError: Cells have no pilot models, and something else is wrong.
    """
    if (pilot := _pilot(raw, losses_of(trials))) is None:
        return raw  # wrong, which is reported when the configuration is validated
    opened = [*open_cells(raw)]
    missing = [one for one in opened if not pilot.losses_by_rate(one.study, one.cell)]
    if missing:
        # reports what else is wrong, such as a misspelled protocol, first
        load(with_rates(raw, pilot))
        first = "".join(f"\n  {one}" for one in missing[:SHOWN])
        more = f"\n  and {len(missing) - SHOWN} others" if len(missing) > SHOWN else ""
        raise Explained(
            "learning_rates: pilot needs pilot models of these cells: make pilot trains them, or "
            f"give a list of learning rates{first}{more}"
        )
    for one in opened:
        if used := sorted({*pilot.seeds}.intersection(one.block["seeds"])):
            raise Explained(
                f"{one} would be tested on the pilot's seeds "
                f"{', '.join(map(str, used))}, which chose its learning rate: give other seeds"
            )
    return with_rates(raw, pilot)


def with_rates(raw: Mapping[str, Any], pilot: Pilot) -> dict[str, Any]:
    """The configuration with the pilot's losses and rates; untried cells have ``ANY_RATE``."""
    done = dict(raw) | {"pilot": {**(raw.get("pilot") or {}), "losses": pilot.losses}}
    for name, key, blocks in _lists(raw):
        new = []
        for block in blocks:
            if not _is_open(block):
                new.append(block)
                continue
            cells = list(_cells(name, key, block))
            for _, cell, single in cells:
                losses = pilot.losses_by_rate(name, cell)
                new.append({**single, "learning_rates": [least(losses) if losses else ANY_RATE]})
            if not cells:  # wrong in another key, which is reported instead
                new.append({**block, "learning_rates": [ANY_RATE]})
        done[name] = {**done[name], key: new}
    return done


def open_cells(raw: Mapping[str, Any]) -> Iterator[OpenCell]:
    """The cells whose learning rate the pilot chooses, in the order of the configuration."""
    for name, key, blocks in _lists(raw):
        for block in filter(_is_open, blocks):
            yield from _cells(name, key, block)


def _pilot(raw: Any, losses: Losses) -> Pilot | None:
    """How rates are chosen; None if the configuration says it wrongly."""
    try:
        return Pilot.model_validate({**(raw.get("pilot") or {}), "losses": losses})
    except (AttributeError, TypeError, ValidationError):
        return None


def _lists(raw: Mapping[str, Any]) -> Iterator[tuple[str, str, list[Any]]]:
    """Study, key and blocks of every list of blocks. What is no list is reported when validated."""
    for name, study in TRAINED.items():
        part = raw.get(name)
        for key in study.grids():
            if isinstance(part, Mapping) and isinstance(part.get(key), list):
                yield name, key, part[key]


def _is_open(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("learning_rates") == WORD


def _cells(name: str, key: str, block: Mapping[str, Any]) -> Iterator[OpenCell]:
    """The cells of a block, each with a block of its own; none if the block is wrong."""
    grid = TRAINED[name].grids()[key]
    try:
        whole = grid.model_validate({**block, "learning_rates": [ANY_RATE]})
    except ValidationError:
        return
    for cell in whole.cells():
        listed = {k: v for k, v in grid.keys().items() if isinstance(getattr(whole, v), list)}
        single = {key: [getattr(cell, field)] for field, key in listed.items()}
        yield OpenCell(name, cell, {**block, **single})
