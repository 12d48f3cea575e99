"""What a profile was made with, as far as its numbers depend on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Toolchain", "toolchain_of"]

_OF_THE_PROGRAM = ("-D", "-U", "-I", "-W", "-w", "-cl-kernel-arg-info", "-cl-std=")


@dataclass(frozen=True, order=True)
class Toolchain:
    """A compiler, or a tool that brings its own, and what it was told about optimizing.

    Parameters
    ----------
    compiler
        Name and version; empty where not known.
    options
        Options that change the instructions of a given program, such as ``-O0`` or ``-cl-fast-relaxed-math``.
    """

    compiler: str
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Name and options, for people."""
        return " ".join([self.compiler or "an unknown compiler", *self.options])


def toolchain_of(program: Mapping[str, Any]) -> Toolchain:
    """The toolchain that a profile's program was counted with.

    Parameters
    ----------
    program
        `crosscast.Profile.program`. What a published tool counted names the tool; its compiler is of it.
    """
    compiler = program.get("compiler") or program.get("tool") or ""
    return Toolchain(str(compiler), _optimizing(program.get("options") or ()))


def _optimizing(options: Sequence[Any]) -> tuple[str, ...]:
    """Those that say how to compile, and not what: in order, as the last of some holds."""
    kept = []
    argument = False
    for option in map(str, options):
        # `-D NAME` may be two words.
        if not (argument or option.startswith(_OF_THE_PROGRAM)):
            kept.append(option)
        argument = option in ("-D", "-U", "-I")
    return tuple(kept)
