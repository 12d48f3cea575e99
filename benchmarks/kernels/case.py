"""What a benchmark case is, and what one workload of it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
"""A buffer of any element type."""


@dataclass(frozen=True)
class LocalBytes:
    """Local memory for a local pointer argument.

    This module is imported where Crosscast is not installed (the peers' environment), hence an own type.

    Parameters
    ----------
    nbytes
        Size in bytes.
    """

    nbytes: int


Argument: TypeAlias = "Array | np.generic | LocalBytes"


@dataclass(frozen=True, eq=False)
class Workload:
    """A launch of a case at one size, with its arguments and what they must become.

    Parameters
    ----------
    global_size, local_size
        Work-items in each dimension.
    args
        Arguments of the kernel in order.
    outputs
        Indexes of the arguments that the kernel writes.
    expected
        What each of `outputs` must hold afterwards, computed by NumPy.
    work
        Amount of work, in a unit of the case, to scale times from one size to another.
    tolerance
        Largest relative error of floating-point outputs; 0 asks for the same values.
    """

    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    args: tuple[Argument, ...]
    outputs: tuple[int, ...]
    expected: tuple[Array, ...]
    work: float
    tolerance: float = 0.0

    @property
    def buffer_bytes(self) -> int:
        """Bytes of all buffers."""
        return sum(arg.nbytes for arg in self.args if isinstance(arg, np.ndarray))

    def initial_outputs(self) -> dict[int, Array]:
        """Buffers that the kernel writes, as they are before it runs, by index."""
        return {
            index: arg
            for index, arg in enumerate(self.args)
            if index in self.outputs and isinstance(arg, np.ndarray)
        }

    def fresh_args(self) -> list[Argument]:
        """Arguments for one run: the buffers that the kernel writes are copies."""
        outputs = self.initial_outputs()
        return [outputs[index].copy() if index in outputs else arg for index, arg in enumerate(self.args)]

    def fault(self, args: Sequence[Argument]) -> str | None:
        """Say what is wrong with the outputs in `args`; ``None`` if nothing is."""
        for index, expected in zip(self.outputs, self.expected, strict=True):
            found = args[index]
            if not isinstance(found, np.ndarray):
                return f"argument {index} is no buffer"
            wrong = _differing(found, expected, self.tolerance)
            if wrong.size:
                first = wrong[0]
                return (
                    f"argument {index}: {wrong.size} of {expected.size} elements differ, "
                    f"the first is [{first}] = {found.flat[first]}, expected {expected.flat[first]}"
                )
        return None


def _differing(found: Array, expected: Array, tolerance: float) -> Array:
    """Flat indexes of the elements that differ by more than `tolerance` of the largest magnitude."""
    if tolerance == 0.0:
        return np.flatnonzero(found != expected)
    scale = float(np.abs(expected).max())
    error = np.abs(found.astype(np.float64) - expected)
    return np.flatnonzero(~(error <= tolerance * scale))


@dataclass(frozen=True)
class Case:
    """One kernel of the benchmark.

    Parameters
    ----------
    name
        Name of the case.
    title
        What it does, in a few words.
    size
        Size of the benchmark; what it counts is up to the case.
    reduced
        Size at which a simulator is timed.
    prepare
        Makes the workload of a size from a generator of random numbers.
    kernel
        Name of the kernel, and of its source file; that of the case if empty.
    """

    name: str
    title: str
    size: int
    reduced: int
    prepare: Callable[[int, np.random.Generator], Workload]
    kernel: str = ""

    @property
    def function(self) -> str:
        """Name of the kernel."""
        return self.kernel or self.name

    @property
    def path(self) -> Path:
        """The OpenCL C file."""
        return Path(__file__).with_name(f"{self.function}.cl")

    @property
    def source(self) -> str:
        """The OpenCL C text."""
        return self.path.read_text(encoding="utf-8")

    def workload(self, size: int | None = None, *, seed: int = 20) -> Workload:
        """Workload of a size (the benchmark's own unless told otherwise), the same for the same seed."""
        return self.prepare(self.size if size is None else size, np.random.default_rng(seed))
