"""The command line of a script, defined by a pydantic model."""

from typing import Any, TypeVar

from pydantic import BaseModel, create_model
from pydantic_settings import CliSettingsSource

Flags = TypeVar("Flags", bound=BaseModel)


def parse(flags: type[Flags], arguments: list[str] | None = None, **types: Any) -> Flags:
    """The flags of this process. Environment variables are not read.

    A field that is a model takes JSON (``--recipe '{...}'``), single values
    (``--recipe.training.steps 20``), or both.

    Args:
        flags: their names, types and descriptions.
        arguments: the words to parse; by default all that follow the name of the script.
        types: types of the fields whose type ``flags`` leaves open, by name.
    """
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in types.items()}
    flags = create_model(flags.__name__, __base__=flags, __doc__=flags.__doc__, **fields)
    source = CliSettingsSource(
        flags,  # pyright: ignore[reportArgumentType] - any model will do
        cli_parse_args=True if arguments is None else arguments,
        case_sensitive=True,
        cli_hide_none_type=True,
        cli_implicit_flags=True,
        cli_kebab_case=True,
    )
    return flags.model_validate(source())
