"""What people are told when a command line is wrong, in the words that they typed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crosscast.errors import InputError

if TYPE_CHECKING:
    import cyclopts

__all__ = ["in_options", "misuse"]

_OTHER_NAMES = {
    "budget": "max-retunes",
    "confidence": "cap-probability",
    "count": "jobs",
    "devices": "to",
    "domain": "power-domain",
    "job_s": "job-seconds",
    "jobs": "PROFILE",
    "level": "LEVEL",
    "queue": "priority",
    "round_s": "round-time",
    "size": "sizes",
    "split": "folds",
    "sure": "conservative",
    "together": "group",
}
"""Options and arguments by the fields that they fill, where more than a plural or a unit differs."""

_UNIT = re.compile(r"_(s|w|bytes)$")

_QUESTIONS = {
    "train": "time, relative, configuration or corun",
    "choose": "sample or configuration",
    "evaluate": "time, relative, configuration, corun, tune or jobs",
    "simulate": "policies or placements",
    "reproduce": "johnston2018, bailey2014, cummins2017, nichols2024 or moolchandani2022",
}


def in_options(error: InputError, app: cyclopts.App, words: Sequence[str]) -> str:
    """The sentence of an error, with the option that was typed instead of the field that it fills."""
    text = str(error)
    # Subclasses, such as faults of kernels, begin with names of the user's.
    if type(error) is not InputError or (error.where and error.field):
        return text
    field = error.where or error.field or text.partition(":")[0]
    chain = app.parse_commands(words)[0]
    if field in [word for word in words if word not in chain]:
        # A file that is called as an option is.
        return text
    if words[0] == "simulate" and field == "jobs":
        # Those of a file; the option is their number.
        return text
    plain = _UNIT.sub("", field)
    names = [field, _OTHER_NAMES.get(field, field), plain, f"{plain}s"]
    there = _options(app, words)
    for name in names:
        option = f"--{name}".replace("_", "-").replace(" ", "-")
        if option in there or name in there:
            return f"{option if option in there else name}{text.removeprefix(field)}"
    return text


def _options(app: cyclopts.App, words: Sequence[str]) -> set[str]:
    """Names of the options and arguments of the command that was typed."""
    chain, apps, _ = app.parse_commands(words)
    if not chain or not apps[-1].default_command:
        return set()
    return {name for argument in apps[-1].assemble_argument_collection() for name in argument.names}


def misuse(error: cyclopts.CycloptsError, words: Sequence[str]) -> str:
    """One sentence about words that are no command or option, with what to type instead."""
    command = words[0] if words else ""
    kind = type(error).__name__
    if kind == "UnknownCommandError" and command in _QUESTIONS:
        found = words[1] if len(words) > 1 else "nothing"
        return (
            f"crosscast {command}: expected first what to {command} ({_QUESTIONS[command]}), "
            f"found {found!r}: see crosscast {command} --help"
        )
    return " ".join(str(error).split())
