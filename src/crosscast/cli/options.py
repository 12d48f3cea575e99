"""Options that commands share: settings of fits, outputs, and descriptions of a launch.

`command` declares a command, and names the function that does its work.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeVar, dataclass_transform

from cyclopts import App, Group, Parameter, Token

from crosscast.errors import InputError
from crosscast.units import parse_bytes

ClassT = TypeVar("ClassT")

WORK: dict[type, str] = {}
"""Module in `crosscast.commands` and function, ``MODULE.FUNCTION``, that does the work of each command."""


@dataclass_transform(frozen_default=True)
def command(work: str, app: App | None = None, *names: str) -> Callable[[type[ClassT]], type[ClassT]]:
    """Make a frozen dataclass a command: its docstring is the help, its fields are what the command takes.

    Fields before `KW_ONLY` are arguments, the others options. The function `work` takes an instance; its
    module is imported when the command runs, so that `--help` imports only the declarations. By default the
    command is called as the function.
    """

    def decorate(cls: type[ClassT]) -> type[ClassT]:
        made = dataclass(frozen=True)(cls)
        signature = inspect.signature(made)
        # An argument is not an option of its name as well.
        parameters = [
            each.replace(kind=each.POSITIONAL_ONLY) if each.kind is each.POSITIONAL_OR_KEYWORD else each
            for each in signature.parameters.values()
        ]
        made.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        WORK[made] = work
        if app is not None:
            app.command(made, name=names or work.rpartition(".")[2])
        return made

    return decorate


@dataclass_transform(frozen_default=True)
def options(cls: type[ClassT]) -> type[ClassT]:
    """Make a frozen dataclass, whose fields are options of the commands that have one."""
    return Parameter(name="*")(dataclass(frozen=True)(cls))


@dataclass(frozen=True)
class Typed:
    """A command line, and the warnings of its run, which a page repeats."""

    words: Sequence[str] = ()
    warnings: list[str] = field(default_factory=list)


TYPED: ContextVar[Typed] = ContextVar("TYPED")


def names_in(option: str, text: str) -> list[str]:
    """Parse distinct names separated by commas, with or without spaces.

    >>> names_in("--suite", "bfs, fft,bfs")
    ['bfs', 'fft']
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError.of(where=option, expected="names separated by commas", found=repr(text))
    return list(dict.fromkeys(names))


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


def _bytes(_: object, tokens: Sequence[Token]) -> int:
    (token,) = tokens
    try:
        return parse_bytes(token.value)
    except InputError as error:
        raise InputError.of(where=token.keyword, problem=str(error)) from None


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
    try:
        return [int(word) for word in token.value.split(",")]
    except ValueError:
        expected, found = "numbers such as 0,2", repr(token.value[:60])
        raise InputError.of(where=token.keyword, expected=expected, found=found) from None


Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""A flag that is off by default, without a ``--no-`` form; help does not show the default."""

Whole = Annotated[int, Parameter(converter=_whole)]
"""A whole number."""

Names = Annotated[Sequence[str], Parameter(converter=_names, n_tokens=1, negative="", accepts_keys=False)]
"""Names separated by commas."""

NamesOr = Annotated[Names, Parameter(show_default=",".join)]
"""Names that have a default."""

Numbers = Annotated[Sequence[int], Parameter(converter=_numbers, n_tokens=1, negative="", accepts_keys=False)]
"""Whole numbers separated by commas."""

Bytes = Annotated[int, Parameter(converter=_bytes, metavar="STR")]
"""A size such as ``512M`` or ``2GiB``."""

Texts = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
Paths = Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)]
"""An option that may be given several times, or arguments."""

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
DeviceId = Annotated[
    str | None,
    Parameter(help="Id of the device, as `crosscast devices` shows it; by default the first one."),
]
Sensor = Annotated[str, Parameter(help="Energy sensor: `auto`, `none`, `rapl`, `nvml` or `replay:PATH`.")]
DatasetOut = Annotated[Path, Parameter(help="Folder of the dataset.")]
Level = Annotated[float, Parameter(help="Coverage of the prediction intervals.")]
Application = Annotated[str | None, Parameter(help="Predict the kernels of this application alone.")]
JsonFlag = Annotated[bool, Parameter(negative="", show_default=False, help="Print one JSON value.")]


Executor = Annotated[
    str | None,
    Parameter(
        help="Where to work: `local` processes (the default), `dask://HOST:PORT`, or `slurm:FILE.toml` "
        "(docs/machines.md)."
    ),
]


@options
class RunOptions:
    """Options of all commands that fit models."""

    seed: Whole = 0
    """Random seed."""
    jobs: Annotated[str | None, Parameter(name=["--jobs", "--executor"])] = None
    """Worker processes, by default one for each processor; or where else to work: `dask://HOST:PORT`, or
    `slurm:FILE.toml` (docs/machines.md)."""


@options
class Output:
    """Options for the output of commands that print tables."""

    html: Path | None = None
    """Also write the tables, and figures if there are any, as one HTML page."""
    json: JsonFlag = False


@options
class FigureOutput(Output):
    """Options for the output of commands that also draw figures."""

    figures: Path | None = None
    """Folder for figures."""


RUN, OUTPUT, FIGURES = RunOptions(), Output(), FigureOutput()


IN_SIMFILE = tuple(
    "--kernel --global --local --offset --grid --block --shared --arg --variable --seed".split()
)
IN_LAUNCHFILE = (*IN_SIMFILE, "--option, -D and -I", "--std")


Question = Literal["time", "relative", "configuration", "corun"]

Standard = Literal[
    "1.0", "1.1", "1.2", "2.0", "3.0", "clc++1.0", "clc++2021", "c++03", "c++11", "c++14", "c++17", "c++20"
]


def _compiler_options(type_: type, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Join options and values as a compiler takes them: `-D N` and `-I folder` in one word."""
    del type_
    flags = {"--define": "-D", "-D": "-D", "--include": "-I", "-I": "-I"}
    return tuple(flags.get(token.keyword or "", "") + token.value for token in tokens)


@options
class LaunchOptions:
    """The launch of a program, given on the command line instead of in a launch file."""

    kernel: Annotated[str | None, Parameter(show=True)] = None
    """Kernel, such as `vecadd`, `'saxpy<float>'` or `ns::scale`; may be left out if there is only one."""
    global_size: Annotated[str | None, Parameter(name="--global")] = None
    """Work-items, such as `1024` or `512,512`."""
    local_size: Annotated[str | None, Parameter(name="--local")] = None
    """Work-items of a work-group; by default a divisor of the global size, at most 64."""
    offset: str | None = None
    """Offset of the global ids."""
    grid: str | None = None
    """Blocks of a CUDA or HIP launch, such as `4096` or `64,64`."""
    block: str | None = None
    """Threads of each of them, such as `256` or `16,16`."""
    shared: Whole | None = None
    """Bytes of dynamic shared memory (`extern __shared__`) of a block."""
    arg: Annotated[Texts, Parameter(allow_leading_hyphen=True)] = ()
    """A kernel argument, such as `int=512` or `float:1048576:uniform`, once for each parameter."""
    variable: Texts = ()
    """Value of a `__constant__` or `__device__` variable or of a texture, such as `n=int=512` or
    `filter=float:9:uniform`: its name, and what `--arg` takes."""
    seed: Whole | None = None
    """Random seed of the fills; 0 unless given."""
    option: Annotated[
        Texts,
        Parameter(
            name=["--option", "--define", "-D", "--include", "-I"],
            converter=_compiler_options,
            allow_leading_hyphen=True,
        ),
    ] = ()
    """For the compiler: a macro (`-D N=16`), a folder of included files (`-I include`), or any other option
    (`--option -cl-fast-relaxed-math`)."""
    std: Standard | None = None
    """Version of OpenCL C, 1.2 unless given, or C++ for OpenCL; of C++ for CUDA and HIP."""
    sample_groups: str | None = None
    """Run this many work-groups, spread over the launch, and extend their counts: `4096`; or `all`; or
    `auto`: some where all would take over 20 s or too much memory. By default `all` for `characterize` and
    `embed`, elsewhere `auto`."""

    @property
    def described(self) -> bool:
        """Whether a launch is described; a kernel's name alone selects among the launches of a file."""
        return self != LaunchOptions(self.kernel, sample_groups=self.sample_groups)

    def sampled(self, default: Literal["all", "auto"]) -> int | Literal["all", "auto"]:
        """Number of work-groups to run, as an argument of `crosscast.characterize`."""
        match self.sample_groups:
            case None:
                return default
            case "all" | "0":
                return "all"
            case "auto":
                return "auto"
        if not self.sample_groups.isdecimal():
            raise InputError.of(
                where="--sample-groups",
                expected="a number of work-groups, `all` or `auto`",
                found=repr(self.sample_groups),
            )
        return int(self.sample_groups)

    def refuse(self, path: Path, names: Sequence[str]) -> None:
        """Raise InputError if an option is given that the file itself sets."""
        fields = {"--global": "global_size", "--local": "local_size", "--option, -D and -I": "option"}
        for flag in names:
            if getattr(self, fields.get(flag, flag.removeprefix("--"))) not in (None, ()):
                raise InputError.of(
                    where=flag, problem=f"{path} itself says this; leave the option out or edit the file"
                )


LAUNCH = LaunchOptions()

ShownLaunch = Annotated[LaunchOptions, Parameter(name="*", group=Group("Launch of a program", sort_key=1))]
"""Launch options in the help of `crosscast characterize`, which explains them."""

OfLaunch = Annotated[LaunchOptions, Parameter(name="*", show=False)]
"""Launch options of other commands, whose help shows the one of the kernel only and refers to the others."""
