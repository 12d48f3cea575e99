"""Options that commands share: settings of fits, and outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, Token

from crosscast.errors import InputError


def names_in(option: str, text: str) -> list[str]:
    """Parse distinct names separated by commas, with or without spaces.

    >>> names_in("--suite", "bfs, fft,bfs")
    ['bfs', 'fft']
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError.of(where=option, expected="names separated by commas", found=repr(text))
    return list(dict.fromkeys(names))


def numbers_in(option: str, text: str, example: str) -> list[int]:
    """Parse whole numbers separated by commas."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise InputError.of(
            where=option, expected=f"numbers such as {example}", found=repr(text[:60])
        ) from None


def share_in(option: str, text: str, example: str, end: float = math.inf) -> float:
    """Parse a share such as ``5%`` or ``0.05``, of at least 0 and less than `end`.

    >>> share_in("--within", "2%", "2% or 0.02"), share_in("--within", "0.5", "2% or 0.02")
    (0.02, 0.5)
    """
    number = text.strip()
    try:
        share = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share < end:
        raise InputError.of(where=option, expected=f"a share such as {example}", found=repr(text))
    return share


def _whole(_: object, tokens: Sequence[Token]) -> int:
    """Parse a whole number; by default cyclopts would round 2.5 to 2."""
    (token,) = tokens
    try:
        return int(token.value)
    except ValueError:
        raise InputError.of(where=token.keyword, expected="a whole number", found=repr(token.value)) from None


def _names(_: object, tokens: Sequence[Token]) -> list[str]:
    (token,) = tokens
    return names_in(str(token.keyword), token.value)


def _numbers(_: object, tokens: Sequence[Token]) -> list[int]:
    (token,) = tokens
    return numbers_in(str(token.keyword), token.value, "0,2")


Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""A flag that is off by default, without a ``--no-`` form; help does not show the default."""

Whole = Annotated[int, Parameter(converter=_whole)]
"""A whole number."""

Names = Annotated[list[str], Parameter(converter=_names, n_tokens=1, negative="", accepts_keys=False)]
"""Names separated by commas."""

Numbers = Annotated[list[int], Parameter(converter=_numbers, n_tokens=1, negative="", accepts_keys=False)]
"""Whole numbers separated by commas."""

Repeated = Parameter(negative="", show_default=False)
"""An option that may be given several times."""

DatasetFolder = Annotated[
    Path, Parameter(help="Folder of the dataset, or `bundled` or `bundled-corun`, which come with Crosscast.")
]
Model = Annotated[
    str | None,
    Parameter(
        help="Folder of the model, written by `crosscast train`, or a name that `crosscast models` lists; by "
        "default the first of these that fits."
    ),
]
Models = Annotated[
    Names | None,
    Parameter(help="Models, separated by commas, or `all`; by default the one that `crosscast train` takes."),
]
Device = Annotated[
    str | None, Parameter(help="The device that is shared; by default the one with the most mixes.")
]
Devices = Annotated[Names | None, Parameter(help="Devices, separated by commas; all by default.")]
Probes = Annotated[Numbers | None, Parameter(show_default=False)]
Level = Annotated[float, Parameter(help="Coverage of the prediction intervals.")]
Application = Annotated[str | None, Parameter(help="Predict the kernels of this application alone.")]
JsonFlag = Annotated[bool, Parameter(negative="", show_default=False, help="Print one JSON object.")]
Figures = Annotated[Path | None, Parameter(help="Folder for figures.")]


Executor = Annotated[
    str | None,
    Parameter(
        help="Where to work: `local` processes (the default), `dask://HOST:PORT`, or `slurm:FILE.toml` "
        "(docs/machines.md)."
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """Options of all commands that fit models."""

    seed: Annotated[int, Parameter(converter=_whole, help="Random seed.")] = 0
    jobs: Annotated[
        str | None,
        Parameter(
            name=["--jobs", "--executor"],
            help="Worker processes, by default one for each processor; or where else to work: "
            "`dask://HOST:PORT`, or `slurm:FILE.toml` (docs/machines.md).",
        ),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """Options for the output of commands that print tables."""

    html: Annotated[
        Path | None, Parameter(help="Also write the tables, and figures if there are any, as one HTML page.")
    ] = None
    json: JsonFlag = False


@Parameter(name="*")
@dataclass(frozen=True)
class FigureOutput(Output):
    """Options for the output of commands that also draw figures."""

    figures: Figures = None


RUN, OUTPUT, FIGURES = RunOptions(), Output(), FigureOutput()
