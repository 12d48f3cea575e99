"""Groups of options that commands share: how models are fitted, and where results go."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol

from cyclopts import Parameter, Token

from crosscast.errors import InputError
from crosscast.results import to_json


def names_in(option: str, text: str) -> list[str]:
    """Names separated by commas, each once, with or without spaces between them.

    >>> names_in("--suite", "bfs, fft,bfs")
    ['bfs', 'fft']
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError.of(where=option, expected="names separated by commas", found=repr(text))
    return list(dict.fromkeys(names))


def numbers_in(option: str, text: str, example: str) -> list[int]:
    """Whole numbers separated by commas."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise InputError.of(
            where=option, expected=f"numbers such as {example}", found=repr(text[:60])
        ) from None


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """Take nothing else: left alone, cyclopts would round 2.5 to 2."""
    (token,) = tokens
    try:
        return int(token.value)
    except ValueError:
        raise InputError.of(where=token.keyword, expected="a whole number", found=repr(token.value)) from None


def _names(_: Any, tokens: Sequence[Token]) -> list[str]:
    (token,) = tokens
    return names_in(str(token.keyword), token.value)


def _numbers(_: Any, tokens: Sequence[Token]) -> list[int]:
    (token,) = tokens
    return numbers_in(str(token.keyword), token.value, "0,2")


Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""Off unless it is there; there is no ``--no-`` form, and help does not say that it is off."""

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
    """How models are fitted; the options of every command that fits some."""

    seed: Annotated[int, Parameter(converter=_whole, help="Random seed.")] = 0
    jobs: Annotated[
        str | None,
        Parameter(
            name=["--jobs", "--executor"],
            help="Worker processes, by default one for each processor; or where else to work: "
            "`dask://HOST:PORT`, or `slurm:FILE.toml` (docs/machines.md).",
        ),
    ] = None
    cache: Annotated[
        Path | None,
        Parameter(
            help="Folder for the cache, from which an interrupted run resumes, or `none`; by default the "
            "user's cache folder."
        ),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """Where a result goes; the options of every command that prints tables."""

    html: Annotated[
        Path | None, Parameter(help="Also write the tables, and figures if there are any, as one HTML page.")
    ] = None
    json: JsonFlag = False


@Parameter(name="*")
@dataclass(frozen=True)
class FigureOutput(Output):
    """The same of commands that draw figures."""

    figures: Figures = None


RUN, OUTPUT, FIGURES = RunOptions(), Output(), FigureOutput()


def print_json(value: Any) -> None:
    """Print a result on standard output as a line of JSON."""
    print(to_json(value), flush=True)


def tell(text: str) -> None:
    """Say on standard error what is done, such as a file that was written."""
    print(text, file=sys.stderr, flush=True)


def say(text: str) -> None:
    """Say on standard error what is going on, such as what is compiled once."""
    tell(f"crosscast: {text}")


@dataclass(frozen=True)
class Typed:
    """A command line, and the warnings of its run: what a page repeats."""

    words: Sequence[str] = ()
    warnings: list[str] = field(default_factory=list)


TYPED: ContextVar[Typed] = ContextVar("TYPED")


def warn(text: str) -> None:
    """Print a warning on standard error; a page that is written later has it, too."""
    TYPED.get(Typed()).warnings.append(text)
    print(f"crosscast: warning: {text}", file=sys.stderr)


def warn_about(predictions: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Print each warning once, with the first that it is about and how many more there are."""
    about: dict[str, list[str]] = {}
    for label, warnings in predictions:
        for warning in warnings:
            about.setdefault(warning, []).append(label)
    for warning, labels in about.items():
        more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        warn(f"{labels[0]}{more}: {warning}")


class _Warned(Protocol):
    """A prediction, with its applicability warnings: sentences without a full stop."""

    @property
    def label(self) -> str: ...
    @property
    def warnings(self) -> Sequence[str]: ...


def warn_of(predictions: Sequence[_Warned]) -> None:
    """Print each warning once, with what it is about."""
    warn_about((prediction.label, prediction.warnings) for prediction in predictions)
