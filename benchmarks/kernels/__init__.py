"""The kernels of the benchmark: OpenCL C files, and for each what to launch and what must come out.

Needs NumPy and little of Crosscast, as the peers run it in an environment of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from crosscast.kernel import Local

Array: TypeAlias = npt.NDArray[Any]
"""A buffer of any element type."""


Argument: TypeAlias = "Array | np.generic | Local"


@dataclass(frozen=True, eq=False)
class Workload:
    """A launch of a case at one size, with its arguments and what they must become."""

    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    args: tuple[Argument, ...]
    outputs: tuple[int, ...]  # Indexes of the arguments that the kernel writes
    expected: tuple[Array, ...]  # Their contents afterwards, computed by NumPy
    work: float  # In a unit of the case, to scale times from one size to another
    tolerance: float = 0.0  # Largest relative error of floating-point outputs

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
    """One kernel of the benchmark."""

    name: str
    size: int  # Of the benchmark; what it counts is up to the case
    reduced: int  # Size at which a simulator is timed
    prepare: Callable[[int, np.random.Generator], Workload]
    kernel: str = ""  # Name of the kernel, and of its source file; that of the case if empty

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


def _vecadd(size: int, random: np.random.Generator) -> Workload:
    """Sum of two vectors of `size` elements: a streaming kernel with three accesses a work-item."""
    a = random.random(size, dtype=np.float32)
    b = random.random(size, dtype=np.float32)
    c = np.zeros(size, np.float32)
    return Workload((size,), (64,), (a, b, c), (2,), (a + b,), work=size)


def _matmul(size: int, random: np.random.Generator, *, group: int = 8) -> Workload:
    """Naive product of `size` x `size` matrices: a long inner loop with a strided read."""
    a = random.random((size, size), dtype=np.float32)
    b = random.random((size, size), dtype=np.float32)
    c = np.zeros((size, size), np.float32)
    return Workload(
        (size, size),
        (group, group),
        (a, b, c, np.int32(size)),
        outputs=(2,),
        expected=(a.astype(np.float64) @ b,),
        work=float(size) ** 3,
        tolerance=1e-5,
    )


_MEAN_ROW = 32


def _spmv(size: int, random: np.random.Generator) -> Workload:
    """Sparse matrix (CSR) times vector: a work-item a row, of 32 entries on average."""
    lengths = random.exponential(_MEAN_ROW, size).astype(np.int64)
    # Rounding down loses half an entry a row: spread them again, so that the total is exact.
    missing = _MEAN_ROW * size - int(lengths.sum())
    np.add.at(lengths, random.integers(0, size, max(missing, 0)), 1)
    row_start = np.zeros(size + 1, np.int32)
    np.cumsum(lengths, out=row_start[1:])
    entries = int(row_start[-1])
    columns = random.integers(0, size, entries, dtype=np.int32)
    values = random.random(entries, dtype=np.float32)
    x = random.random(size, dtype=np.float32)
    running = np.zeros(entries + 1)
    np.cumsum(values * x[columns].astype(np.float64), out=running[1:])
    return Workload(
        (size,),
        (64,),
        (row_start, columns, values, x, np.zeros(size, np.float32)),
        outputs=(4,),
        expected=(np.diff(running[row_start]),),
        work=entries,
        tolerance=1e-5,
    )


def _lengths(size: int) -> npt.NDArray[np.uint32]:
    """Steps from 1 to `size` down to 1."""
    value = np.arange(1, size + 1, dtype=np.int64)
    steps = np.zeros(size, np.uint32)
    going = np.flatnonzero(value != 1)
    while going.size:
        current = value[going]
        value[going] = np.where(current & 1, 3 * current + 1, current >> 1)
        steps[going] += 1
        going = going[value[going] != 1]
    return steps


def _collatz(size: int, random: np.random.Generator) -> Workload:
    """Length of Collatz sequences from 1 to `size`: a data-dependent loop, unpredictable branches."""
    steps = _lengths(size)
    return Workload(
        (size,), (64,), (np.zeros(size, np.uint32),), (0,), (steps,), work=float(steps.sum(dtype=np.int64))
    )


def _gather(size: int, random: np.random.Generator) -> Workload:
    """Reads at `size` random indexes of a table as long: bound by the caches."""
    table = random.random(size, dtype=np.float32)
    index = random.integers(0, size, size, dtype=np.uint32)
    out = np.zeros(size, np.float32)
    return Workload((size,), (64,), (table, index, out), (2,), (table[index],), work=size)


def _stencil(size: int, random: np.random.Generator) -> Workload:
    """Five-point stencil on `size` x `size` points: neighbours in two dimensions, a branch at the border."""
    grid = random.random((size, size), dtype=np.float32)
    expected = grid.astype(np.float64)
    sides = grid[1:-1, :-2] + grid[1:-1, 2:] + grid[:-2, 1:-1] + grid[2:, 1:-1]
    expected[1:-1, 1:-1] = 0.5 * grid[1:-1, 1:-1] + 0.125 * sides
    return Workload(
        (size, size),
        (16, 16),
        (grid, np.zeros((size, size), np.float32), np.int32(size), np.float32(0.5), np.float32(0.125)),
        outputs=(1,),
        expected=(expected,),
        work=float(size) ** 2,
        tolerance=1e-6,
    )


_SOFTENING = 1e-2


def _accelerations(body: Array) -> Array:
    """Acceleration of each of the ``(n, 4)`` bodies (position and mass), in double precision."""
    position, mass = body[:, :3].astype(np.float64), body[:, 3].astype(np.float64)
    result = np.zeros((len(body), 4))
    for start in range(0, len(body), 256):
        away = position[None, :, :] - position[start : start + 256, None, :]
        distance2 = np.einsum("ijk,ijk->ij", away, away) + _SOFTENING
        result[start : start + 256, :3] = np.einsum("ijk,ij->ik", away, mass * distance2**-1.5)
    return result


def _nbody(size: int, random: np.random.Generator) -> Workload:
    """Gravity between all pairs of bodies in a cube: vectors, square root, division, hot addresses."""
    body = random.random((size, 4), dtype=np.float32)
    return Workload(
        (size,),
        (64,),
        (body, np.zeros((size, 4), np.float32), np.int32(size), np.float32(_SOFTENING)),
        outputs=(1,),
        expected=(_accelerations(body),),
        work=float(size) ** 2,
        tolerance=1e-4,
    )


_GROUP = 256


def _bitonic(size: int, random: np.random.Generator) -> Workload:
    """Bitonic sort of blocks of 256 in local memory: 37 barriers a work-item."""
    data = random.integers(0, 1 << 32, size, dtype=np.uint32)
    blocks = np.sort(data.reshape(-1, _GROUP), axis=1).reshape(-1)
    return Workload((size,), (_GROUP,), (data,), (0,), (blocks,), work=size)


def _reduce(size: int, random: np.random.Generator) -> Workload:
    """Sum of blocks of 256 by a tree in local memory: barriers, a local argument, half of the items idle."""
    data = random.random(size, dtype=np.float32)
    tree = data.reshape(-1, _GROUP)
    # The same order of additions as the kernel's, so the same float32 results.
    while tree.shape[1] > 1:
        half = tree.shape[1] // 2
        tree = tree[:, :half] + tree[:, half:]
    sums = np.zeros(size // _GROUP, np.float32)
    return Workload((size,), (_GROUP,), (data, sums, Local(4 * _GROUP)), (1,), (tree.reshape(-1),), work=size)


def _histogram(size: int, random: np.random.Generator) -> Workload:
    """Histogram of bytes, unevenly distributed: byte reads and atomic additions to 256 hot addresses."""
    data = np.clip(random.normal(128, 40, size), 0, 255).astype(np.uint8)
    bins = np.bincount(data, minlength=256).astype(np.uint32)
    return Workload((size,), (64,), (data, np.zeros(256, np.uint32)), (1,), (bins,), work=size)


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case("vecadd", size=1 << 20, reduced=1 << 20, prepare=_vecadd),
        Case("matmul", size=512, reduced=128, prepare=_matmul),
        Case("tiled_matmul", size=512, reduced=128, prepare=functools.partial(_matmul, group=16)),
        Case("spmv", size=1 << 17, reduced=1 << 15, prepare=_spmv),
        Case("collatz", size=1 << 17, reduced=1 << 14, prepare=_collatz),
        Case("gather", size=1 << 22, reduced=1 << 20, prepare=_gather),
        Case("stencil", size=1024, reduced=512, prepare=_stencil),
        Case("nbody", size=4096, reduced=1024, prepare=_nbody),
        Case("bitonic", size=1 << 18, reduced=1 << 15, prepare=_bitonic),
        Case("reduce", size=1 << 22, reduced=1 << 17, prepare=_reduce),
        Case("histogram", size=1 << 22, reduced=1 << 19, prepare=_histogram),
    )
}
"""Every case by name, in the order of the table."""

_CENTRE, _SIDE = 0.4, 0.1
_FLAT = ((8, 8), (16, 16), (32, 8), (16, 4), (64, 1), (128, 1), (1024, 1))
_DEEP = (8, 8, 4)


def _flat(shape: tuple[int, ...]) -> Callable[[int, np.random.Generator], Workload]:
    return lambda size, random: replace(_stencil(size, random), local_size=shape)


def _deep(size: int, random: np.random.Generator) -> Workload:
    """A cube of `size` points along each edge."""
    cube = random.random((size, size, size), dtype=np.float32)
    expected = cube.astype(np.float64)
    inner = (slice(1, -1),) * 3
    sides = sum(np.roll(expected, by, axis)[inner] for axis in range(3) for by in (-1, 1))
    expected[inner] = _CENTRE * expected[inner] + _SIDE * sides
    return Workload(
        (size, size, size),
        _DEEP,
        (cube, np.zeros_like(cube), np.int32(size), np.float32(_CENTRE), np.float32(_SIDE)),
        outputs=(1,),
        expected=(expected,),
        work=float(size) ** 3,
        tolerance=1e-6,
    )


def _named(shape: tuple[int, ...]) -> str:
    return f"stencil-{'x'.join(map(str, shape))}"


SHAPES: dict[str, Case] = {
    case.name: case
    for case in (
        *(Case(_named(shape), 2048, 512, _flat(shape), kernel="stencil") for shape in _FLAT),
        Case(_named(_DEEP), 128, 32, _deep, kernel="stencil3d"),
    )
}
"""Cases by name: a stencil of 2048 by 2048 in each shape, and one of 128 by 128 by 128."""
