"""From FILE and its options to the launches that it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosscast.characterization import default_local_size
from crosscast.characterization.launchfiles import launchfile, simfile
from crosscast.characterization.launchfiles.argument_table import build_argument
from crosscast.cli.argument_text import parse_argument
from crosscast.errors import InputError
from crosscast.kernel import Argument, Kernel, Launch, Parameter, Program

__all__ = ["Direct", "Inputs", "read_inputs"]


@dataclass(frozen=True)
class Direct:
    """What the command line says about a launch, as it stands there.

    Parameters
    ----------
    kernel, global_size, local_size, offset, seed, standard
        Value of the option; ``None`` if it was not given.
    args
        Each ``--arg``.
    options
        Compiler options.
    """

    kernel: str | None = None
    global_size: str | None = None
    local_size: str | None = None
    offset: str | None = None
    args: tuple[str, ...] = ()
    seed: int | None = None
    options: tuple[str, ...] = ()
    standard: str | None = None

    def refuse(self, path: Path, names: Sequence[str]) -> None:
        """Refuse options that the file itself decides."""
        flags = {
            "--kernel": self.kernel,
            "--global": self.global_size,
            "--local": self.local_size,
            "--offset": self.offset,
            "--arg": self.args,
            "--seed": self.seed,
            "--option, -D and -I": self.options,
            "--std": self.standard,
        }
        for flag in names:
            if flags[flag]:
                raise InputError(f"{flag}: {path} itself says this; leave the option out or edit the file")


@dataclass(frozen=True)
class Inputs:
    """What to run.

    Parameters
    ----------
    launches
        The launches, in order.
    simfile
        The simulator file that holds the only launch, if it is one.
    """

    launches: list[Launch]
    simfile: simfile.SimFile | None = None


_IN_SIMFILE = ("--kernel", "--global", "--local", "--offset", "--arg", "--seed")
_IN_LAUNCHFILE = (*_IN_SIMFILE, "--option, -D and -I", "--std")


def read_inputs(path: Path, direct: Direct) -> Inputs:
    """Read FILE: a launch file, a simulator file, or a program with its launch on the command line.

    Raises
    ------
    InputError
        If something is missing or wrong.
    """
    if path.suffix == ".toml":
        direct.refuse(path, _IN_LAUNCHFILE)
        return Inputs(launchfile.read(path))
    if path.suffix == ".sim":
        direct.refuse(path, _IN_SIMFILE)
        sim = simfile.read(path, options=direct.options, standard=direct.standard or "1.2")
        return Inputs([sim.launch], sim)
    program = Program.from_file(path, options=direct.options, standard=direct.standard or "1.2")
    return Inputs([_launch(program, direct)])


def _launch(program: Program, direct: Direct) -> Launch:
    """The launch that the command line describes."""
    if direct.global_size is None:
        raise InputError("--global is missing, expected the global size, such as --global 512,512")
    global_size = _sizes("--global", direct.global_size)
    local_size = (
        default_local_size(global_size) if direct.local_size is None else _sizes("--local", direct.local_size)
    )
    offset = () if direct.offset is None else _sizes("--offset", direct.offset)
    kernel = _kernel(program, direct.kernel)
    # Sizes are checked before arrays are made.
    Launch(kernel, global_size, local_size, (), offset)
    args = tuple(_argument(text, index, direct.seed or 0) for index, text in enumerate(direct.args))
    return Launch(kernel, global_size, local_size, args, offset)


def _kernel(program: Program, name: str | None) -> Kernel:
    """Kernel `name`, or the only one there is."""
    if name is not None:
        return Kernel(program, name)
    # Imported here, as the frontend brings the compiler.
    from crosscast.characterization import frontend

    names = frontend.kernel_names(program)
    if len(names) != 1:
        found = f"found {', '.join(names)}" if names else "found none"
        raise InputError(f"--kernel is missing, expected one kernel in {program.label}, {found}")
    return Kernel(program, names[0])


def _argument(text: str, index: int, seed: int) -> Argument:
    def parameter() -> Parameter:
        raise InputError(f"--arg {text}: the type is missing")

    return build_argument(parse_argument(text), Path(), (seed, index), parameter)


def _sizes(flag: str, text: str) -> tuple[int, ...]:
    """One to three whole numbers between commas."""
    try:
        return tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        raise InputError(f"{flag}: expected 1 to 3 whole numbers such as 512,512, found {text!r}") from None
