"""Options that describe a launch, shared by all commands that take one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Token
from cyclopts import Parameter as Option

from crosscast.cli.options import Whole
from crosscast.errors import InputError

__all__ = ["IN_LAUNCHFILE", "IN_SIMFILE", "LAUNCH", "LaunchOptions", "OfLaunch", "ShownLaunch"]


IN_SIMFILE = tuple(
    "--kernel --global --local --offset --grid --block --shared --arg --variable --seed".split()
)
IN_LAUNCHFILE = (*IN_SIMFILE, "--option, -D and -I", "--std")


Standard = Literal[
    "1.0", "1.1", "1.2", "2.0", "3.0", "clc++1.0", "clc++2021", "c++03", "c++11", "c++14", "c++17", "c++20"
]


def _compiler_options(type_: type, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Join options and values as a compiler takes them: `-D N` and `-I folder` in one word."""
    del type_
    flags = {"--define": "-D", "-D": "-D", "--include": "-I", "-I": "-I"}
    return tuple(flags.get(token.keyword or "", "") + token.value for token in tokens)


@Option(name="*")
@dataclass(frozen=True)
class LaunchOptions:
    """The launch of a program, given on the command line instead of in a launch file."""

    kernel: Annotated[
        str | None,
        Option(
            show=True,
            help="Kernel, such as `vecadd`, `'saxpy<float>'` or `ns::scale`; may be left out if there is "
            "only one.",
        ),
    ] = None
    global_size: Annotated[
        str | None, Option(name="--global", help="Work-items, such as `1024` or `512,512`.")
    ] = None
    local_size: Annotated[
        str | None,
        Option(
            name="--local",
            help="Work-items of a work-group; by default a divisor of the global size, at most 64.",
        ),
    ] = None
    offset: Annotated[str | None, Option(help="Offset of the global ids.")] = None
    grid: Annotated[str | None, Option(help="Blocks of a CUDA or HIP launch, such as `4096` or `64,64`.")] = (
        None
    )
    block: Annotated[str | None, Option(help="Threads of each of them, such as `256` or `16,16`.")] = None
    shared: Annotated[
        Whole | None, Option(help="Bytes of dynamic shared memory (`extern __shared__`) of a block.")
    ] = None
    arg: Annotated[
        tuple[str, ...],
        Option(
            negative="",
            show_default=False,
            allow_leading_hyphen=True,
            help="A kernel argument, such as `int=512` or `float:1048576:uniform`, once for each parameter.",
        ),
    ] = ()
    variable: Annotated[
        tuple[str, ...],
        Option(
            negative="",
            show_default=False,
            help="Value of a `__constant__` or `__device__` variable or of a texture, such as `n=int=512` or "
            "`filter=float:9:uniform`: its name, and what `--arg` takes.",
        ),
    ] = ()
    seed: Annotated[Whole | None, Option(help="Random seed of the fills; 0 unless given.")] = None
    option: Annotated[
        tuple[str, ...],
        Option(
            name=["--option", "--define", "-D", "--include", "-I"],
            converter=_compiler_options,
            negative="",
            show_default=False,
            allow_leading_hyphen=True,
            help="For the compiler: a macro (`-D N=16`), a folder of included files (`-I include`), or any "
            "other option (`--option -cl-fast-relaxed-math`).",
        ),
    ] = ()
    std: Annotated[
        Standard | None,
        Option(help="Version of OpenCL C, 1.2 unless given, or C++ for OpenCL; of C++ for CUDA and HIP."),
    ] = None

    sample_groups: Annotated[
        str | None,
        Option(
            help="Run this many work-groups, spread over the launch, and extend their counts: `4096`; or "
            "`all`; or `auto`: some where all would take over 20 s or too much memory. By default `all` for "
            "`characterize` and `embed`, elsewhere `auto`.",
        ),
    ] = None

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
        flags = {
            "--kernel": self.kernel,
            "--global": self.global_size,
            "--local": self.local_size,
            "--offset": self.offset,
            "--arg": self.arg,
            "--variable": self.variable,
            "--seed": self.seed,
            "--option, -D and -I": self.option,
            "--std": self.std,
            "--grid": self.grid,
            "--block": self.block,
            "--shared": self.shared,
        }
        for flag in names:
            if flags[flag] not in (None, ()):
                raise InputError(f"{flag}: {path} itself says this; leave the option out or edit the file")


LAUNCH = LaunchOptions()

ShownLaunch = Annotated[LaunchOptions, Option(name="*", group=Group("Launch of a program", sort_key=1))]
"""Launch options in the help of `crosscast characterize`, which explains them."""

OfLaunch = Annotated[LaunchOptions, Option(name="*", show=False)]
"""Launch options of other commands, whose help shows the one of the kernel only and refers to the others."""
