"""What people are told when a command line is wrong, in the words that they typed."""

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
    """The sentence of an error, with the option that was typed instead of the field that it fills."""
    text, field = str(error), error.where or error.field
    # Subclasses, such as faults of kernels, begin with names of the user's.
    if type(error) is not InputError or field is None or (error.where and error.field):
        return text
    if field in words[len(app.parse_commands(words)[0]) :]:
        # A file that is called as an option is.
        return text
    options = _options(app, words)
    plain = _UNIT.sub("", field)
    for name in (field, plain, f"{plain}s"):
        if name in options:
            return f"{options[name]}{text.removeprefix(field)}"
    return text


def _options(app: cyclopts.App, words: Sequence[str]) -> dict[str, str]:
    """Options and arguments of the command that was typed, by fields that they fill and by names."""
    chain, apps, _ = app.parse_commands(words)
    if not chain or not apps[-1].default_command:
        return {}
    arguments = [each for each in apps[-1].assemble_argument_collection() if each.name != "*"]
    by_name = {name.lstrip("-").replace("-", "_"): name for each in arguments for name in each.names}
    return by_name | {each.field_info.name: each.name for each in arguments}


def misuse(error: cyclopts.CycloptsError, app: cyclopts.App, words: Sequence[str]) -> str:
    """One sentence about words that are no command or option, with what to type instead."""
    typed, apps, others = app.parse_commands(words)
    if type(error).__name__ == "UnknownCommandError" and typed:
        command = " ".join(("crosscast", *typed))
        *known, last = [name for name in apps[-1] if name[0] != "-" and "_" not in name]
        found = repr(others[0]) if others else "nothing"
        return f"{command}: expected {', '.join(known)} or {last}, found {found}: see {command} --help"
    return " ".join(str(error).split())
