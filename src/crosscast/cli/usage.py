"""Messages about wrong command lines, in terms of the options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crosscast.errors import InputError

if TYPE_CHECKING:
    import cyclopts

__all__ = ["in_options", "misuse"]

_UNIT = re.compile(r"_(s|w|bytes)$")


def in_options(error: InputError, app: cyclopts.App, words: Sequence[str]) -> str:
    """Write an error with the name of the option instead of the field that it sets."""
    text, field = str(error), error.where or error.field
    # Messages of subclasses, such as faults of kernels, begin with names in the user's data.
    if type(error) is not InputError or field is None or (error.where and error.field):
        return text
    if field in words[len(app.parse_commands(words)[0]) :]:
        # The field is a file with the name of an option.
        return text
    options = _options(app, words)
    plain = _UNIT.sub("", field)
    for name in (field, plain, f"{plain}s"):
        if name in options:
            return f"{options[name]}{text.removeprefix(field)}"
    return text


def _options(app: cyclopts.App, words: Sequence[str]) -> dict[str, str]:
    """Options and arguments of a command, by the fields that they set and by their names."""
    chain, apps, _ = app.parse_commands(words)
    if not chain or not apps[-1].default_command:
        return {}
    arguments = [argument for argument in apps[-1].assemble_argument_collection() if argument.name != "*"]
    names = [name for argument in arguments for name in argument.names]
    by_name = {name.lstrip("-").replace("-", "_"): name for name in names}
    return by_name | {argument.field_info.name: argument.name for argument in arguments}


def misuse(error: cyclopts.CycloptsError, app: cyclopts.App, words: Sequence[str]) -> str:
    """Write one sentence about an unknown command or option, with the expected ones."""
    typed, apps, others = app.parse_commands(words)
    if type(error).__name__ == "UnknownCommandError" and typed:
        command = " ".join(("crosscast", *typed))
        *known, last = [name for name in apps[-1] if name[0] != "-" and "_" not in name]
        word = repr(others[0]) if others else "nothing"
        return f"{command}: expected {', '.join(known)} or {last}, found {word}: see {command} --help"
    return " ".join(str(error).split())
