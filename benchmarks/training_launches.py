"""The launches that published times are of: tuned kernels, streams, elementwise kernels, regions of 2018.

Each is a `Job`: one or several profiles, by the keys that the table of profiles has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.training_regions import Region, regions
from crosscast import read_launches
from crosscast.characterization.sampling import Groups, profile_of
from crosscast.errors import InputError
from crosscast.kernel import Argument, Kernel, Launch, Local
from crosscast.profile import Profile

Characterize = Callable[[Launch], Profile]
Key = tuple[str, str, str, int]
"""Application, kernel, size and invocation of a profile."""

_KERNELS = Path(__file__).with_name("training_kernels")
_STREAM_GROUPS = 1 << 14
REPRESENTATIVES = 12
"""Of a kernel's launches that shrink or grow, so many are profiled, each for its share of the sequence."""


@dataclass(frozen=True)
class Job:
    """Profiles to make."""

    keys: tuple[Key, ...]  # The profiles, in the order in which `make` gives them
    make: Callable[[Characterize], list[Profile]]


@dataclass(frozen=True)
class Part:
    """Launches of a time, and the profile that stands for them."""

    key: Key
    launches: float


_PER_SECOND = 5e8
"""Instructions that the engine runs and counts in a second, about."""


def _sliced(
    key: Key, groups: Groups, launch: Callable[[Groups], Launch], limit_s: float, most: int | None
) -> Job:
    def make(characterize: Characterize) -> list[Profile]:
        return [profile_of(lambda some: characterize(launch(some)), groups, _PER_SECOND * limit_s, most)]

    return Job((key,), make)


# --- Kernel Tuner

_WIDTH = 4096
_FILTER = 15


def _parameters(variant: str) -> dict[str, int]:
    return {name: int(value) for name, _, value in (part.partition("=") for part in variant.split(";"))}


def _cut(whole: int, part: int) -> int:
    return -(-whole // part)


def convolution(path: Path, variant: str) -> tuple[Groups, Callable[[Groups], Launch]]:
    """Grid of ceil(4096 / (block x tile)) blocks a dimension, and the launch of some of its blocks."""
    told = _parameters(variant)
    high = told["block_size_y"] * told["tile_size_y"]
    defined = {**told, "filter_width": _FILTER, "filter_height": _FILTER}
    kernel = Kernel.from_file(path, "convolution_kernel", options=[f"-D{k}={v}" for k, v in defined.items()])
    grid = (_cut(_WIDTH, told["block_size_x"] * told["tile_size_x"]), _cut(_WIDTH, high))
    block = (told["block_size_x"], told["block_size_y"])

    def launch(some: Groups) -> Launch:
        # Buffers of the rows that these blocks reach; the rest of the picture is nowhere touched.
        rows = min(_WIDTH, some[1] * high)
        border = _FILTER - 1
        args: tuple[Argument, ...] = (
            np.zeros(rows * _WIDTH, np.float32),
            np.zeros((rows + border) * (_WIDTH + border), np.float32),
            np.zeros(_FILTER * _FILTER, np.float32),
        )
        return Launch(kernel, (some[0] * block[0], some[1] * block[1]), block, args)

    return grid, launch


def gemm(path: Path, variant: str) -> tuple[Groups, Callable[[Groups], Launch]]:
    """CLBlast's Xgemm of 4096 x 4096 x 4096 in ceil(4096 / MWG) x ceil(4096 / NWG) groups."""
    told = _parameters(variant)
    kernel = Kernel.from_file(path, "Xgemm", options=[f"-D{k}={v}" for k, v in told.items()])
    local = (told["MDIMC"], told["NDIMC"])
    size = np.int32(_WIDTH)

    def launch(some: Groups) -> Launch:
        whole = _WIDTH * _WIDTH
        args: tuple[Argument, ...] = (
            *(size, size, size, np.float32(1), np.float32(0)),
            *(np.zeros(whole, np.float32) for _ in range(3)),
        )
        return Launch(kernel, (some[0] * local[0], some[1] * local[1]), local, args)

    return (_cut(_WIDTH, told["MWG"]), _cut(_WIDTH, told["NWG"])), launch


TUNED_SOURCES = {
    "convolution": ("convolution.cu", convolution),
    "convolution_milo": ("convolution_milo.cu", convolution),
    "gemm": ("gemm/xgemm.cl", gemm),
}
"""Where the user's folder of kernels has each, and the rule of its launches."""


def tuned_job(folder: Path, application: str, kernel: str, variant: str, limit_s: float) -> Job:
    """Job of a configuration of a tuned kernel."""
    file, rule = TUNED_SOURCES[kernel]
    groups, launch = rule(folder / file, variant)
    return _sliced((application, kernel, variant, 0), groups, launch, limit_s, None)


# --- Streams

STREAM_GROUPS = {"CUDA": 1024, "HIP": 1024, "OpenCL": 256}
"""Work-items of a group by programming model; that of OpenCL, which a driver chooses, is assumed."""


def stream_job(kernel: str, size: str, limit_s: float) -> Job:
    """Job of a kernel of BabelStream; the size is such as ``double n=33554432 group=1024``."""
    real, n, group = (part.rpartition("=")[2] for part in size.split())
    built = Kernel.from_file(_KERNELS / "stream.cl", kernel, options=[f"-DREAL={real}"])
    dtype = np.float64 if real == "double" else np.float32

    def launch(some: Groups) -> Launch:
        items = some[0] * int(group)
        arrays = [np.zeros(items, dtype) for _ in range(2 if kernel in ("copy", "mul") else 3)]
        return Launch(built, (items,), (int(group),), tuple(arrays))

    groups = (int(n) // int(group), 1)
    return _sliced(("stream", kernel, size, 0), groups, launch, limit_s, _STREAM_GROUPS)


# --- Elementwise kernels and layer norm

_BLOCK = 128
_MOST_ELEMENTS = 1 << 23
_SCALARS: Mapping[str, int] = {"add": 1, "addu": 2, "mulu": 1, "divu": 1}
_ARRAYS: Mapping[str, int] = {"add": 3, "mul": 3, "div": 3}


def elementwise_launch(op: str, n: int) -> tuple[Groups, Callable[[Groups], Launch]]:
    """A vector of four floats a work-item, in groups of 128."""
    built = Kernel.from_file(_KERNELS / "elementwise.cl", op)
    bound = np.uint32(min(n, 2**32 - 1))

    def launch(some: Groups) -> Launch:
        items = some[0] * _BLOCK
        arrays = [np.ones(4 * items, np.float32) for _ in range(_ARRAYS.get(op, 2))]
        scalars = [np.float32(1) for _ in range(_SCALARS.get(op, 0))]
        return Launch(built, (items,), (_BLOCK,), (bound, *arrays, *scalars))

    return (_cut(n, 4 * _BLOCK), 1), launch


def layer_norm_launch(rows: int, width: int) -> tuple[Groups, Callable[[Groups], Launch]]:
    """A group of 32 x 4 for each row."""
    built = Kernel.from_file(_KERNELS / "layer_norm.cl", "layer_norm")

    def launch(some: Groups) -> Launch:
        args: tuple[Argument, ...] = (
            *(np.int32(width), np.float32(1e-5), np.ones(some[0] * width, np.float32)),
            *(np.ones(width, np.float32), np.zeros(width, np.float32)),
            *(np.zeros(some[0], np.float32), np.zeros(some[0], np.float32)),
            np.zeros(some[0] * width, np.float32),
        )
        return Launch(built, (some[0] * 32, 4), (32, 4), args)

    return (rows, 1), launch


def elementwise_job(application: str, kernel: str, size: str, limit_s: float) -> Job:
    """Job of an elementwise kernel or of layer norm; the size is such as ``B=32768;H=1600;grid=102400``."""
    told = _parameters(size)
    if kernel == "layer_norm":
        groups, launch = layer_norm_launch(told["B"], told["H"])
    else:
        groups, launch = elementwise_launch(kernel, told["B"] * told["H"])
    # So that buffers stay below some 100 MB, whatever a group has of them.
    most = _MOST_ELEMENTS // (told["H"] if kernel == "layer_norm" else 4 * _BLOCK)
    return _sliced((application, kernel, size, 0), groups, launch, limit_s, most)


def covers(size: str) -> bool:
    """Whether the published grid covers the elements, as one launch does."""
    told = _parameters(size)
    return _cut(told["B"] * told["H"], 4 * _BLOCK) == told["grid"]


# --- Regions of 2018


def region_jobs(folder: Path, limit_s: float) -> tuple[list[Job], dict[tuple[str, str, str], list[Part]]]:
    """Jobs of all regions, and the parts of each, from the launch files of a folder."""
    jobs: dict[tuple[Key, ...], Job] = {}
    parts: dict[tuple[str, str, str], list[Part]] = {}
    for cell, region in regions().items():
        found, parts[cell] = _RULES[region.rule](folder, region, limit_s)
        for job in found:
            jobs.setdefault(job.keys, job)
    return list(jobs.values()), parts


def _file(folder: Path, region: Region, kernel: str) -> Path:
    path = folder / region.application / region.size / f"{kernel}.toml"
    if not path.is_file():
        raise InputError(f"{path}: expected the launch file of a region of {region.application}, found none")
    return path


def _one(key: Key, launch: Callable[[], Launch]) -> Job:
    return Job((key,), lambda characterize: [characterize(launch())])


def _same(folder: Path, region: Region, _: float) -> tuple[list[Job], list[Part]]:
    path = _file(folder, region, region.kernel)
    key = (region.application, region.kernel, region.size, 0)

    def launch() -> Launch:
        found = read_launches(path)[0]
        return replace(found, local_size=(region.local,)) if region.local else found

    return [_one(key, launch)], [Part(key, region.launches)]


@cache
def _listed_launches(path: Path, kernel: str) -> tuple[Launch, ...]:
    return tuple(launch for launch in read_launches(path) if launch.kernel.name == kernel)


def strata(count: int, most: int) -> list[tuple[int, int]]:
    """The middle of each of `most` equal parts of a sequence, and how many it stands for.

    >>> strata(5, 2)
    [(1, 2), (3, 3)]
    """
    parts = min(count, most)
    edges = [count * k // parts for k in range(parts + 1)]
    return [((low + high) // 2, high - low) for low, high in pairwise(edges)]


def _listed(folder: Path, region: Region, _: float) -> tuple[list[Job], list[Part]]:
    path = _file(folder, region, "all")
    jobs, parts = [], []
    for index, launches in strata(region.launches, REPRESENTATIVES):
        key = (region.application, region.kernel, region.size, index)
        jobs.append(_one(key, lambda index=index: _listed_launches(path, region.kernel)[index]))  # type: ignore[misc]
        parts.append(Part(key, launches))
    return jobs, parts


def _traversal(folder: Path, region: Region, _: float) -> tuple[list[Job], list[Part]]:
    kernels = ("kernel1", "kernel2")
    paths = [_file(folder, region, kernel) for kernel in kernels]
    keys = tuple(
        (region.application, kernel, region.size, step)
        for step in range(region.launches)
        for kernel in kernels
    )

    def make(characterize: Characterize) -> list[Profile]:
        first, second = (read_launches(path)[0] for path in paths)
        mask, updating, visited = first.args[2:5]
        over = np.zeros(1, np.int32)
        second = replace(second, args=(mask, updating, visited, over, second.args[4]))
        return [characterize(launch) for _ in range(region.launches) for launch in (first, second)]

    return [Job(keys, make)], [Part(key, 1) for key in keys if key[1] == region.kernel]


_WINDOWS = ((960, 192), (480, 128), (240, 64), (0, 8))
_COLOURS = 3
_LEVELS = 3
_WINDOW_ROWS, _SLIDES = 8, 15


def _levels(folder: Path, region: Region, _: float) -> tuple[list[Job], list[Part]]:
    path = _file(folder, region, region.kernel)

    def launch(level: int) -> Launch:
        found = read_launches(path)[0]
        source, out, *sides = found.args[:4]
        width, height = (int(side) for side in sides)  # type: ignore[arg-type]
        for _ in range(level):
            width, height = _cut(width, 2), _cut(height, 2)
        window = next(size for least, size in _WINDOWS if width >= least)
        steps = _cut(height, _SLIDES * _WINDOW_ROWS)
        numbers = tuple(np.int32(each) for each in (width, height, steps, window, _WINDOW_ROWS))
        # As many bytes for each column of the window as in the launch that was recorded.
        recorded = found.args[7]
        assert isinstance(recorded, Local)
        local = Local(recorded.nbytes // found.local_size[0] * window)
        return replace(
            found,
            global_size=(_cut(width, window) * window, _cut(height, _WINDOW_ROWS * steps)),
            local_size=(window, 1),
            args=(source, out, *numbers, local),
        )

    keys = [(region.application, region.kernel, region.size, level) for level in range(_LEVELS)]
    jobs = [_one(key, lambda level=key[3]: launch(level)) for key in keys]  # type: ignore[misc]
    return jobs, [Part(key, _COLOURS) for key in keys]


_POINTS = {"tiny": 2048, "small": 16384, "medium": 524288, "large": 2097152}
_GROUP = 256


def radices(points: int) -> Iterator[tuple[int, int]]:
    """Radix and length of the sequences so far, of each launch of a transform."""
    length = 1
    while length < points:
        radix = next(r for r in (16, 8, 4, 2) if length * r <= points)
        yield radix, length
        length *= radix


def _transform(folder: Path, region: Region, limit_s: float) -> tuple[list[Job], list[Part]]:
    points = _POINTS[region.size]
    steps = list(radices(points))
    keys: list[Key] = [
        (region.application, f"fftRadix{radix}Kernel", region.size, step)
        for step, (radix, _) in enumerate(steps)
    ]
    paths = [_file(folder, region, key[1]) for key in keys]

    def launch(step: int) -> Launch:
        radix, length = steps[step]
        found = read_launches(paths[step])[0]
        items = points // radix
        return replace(
            found,
            global_size=(items,),
            local_size=(min(_GROUP, items),),
            args=(*found.args[:2], np.int32(length)),
        )

    jobs = [_one(key, lambda step=key[3]: launch(step)) for key in keys]  # type: ignore[misc]
    parts = [Part(key, 1) for key in keys]
    if len(steps) % 2 == 0:
        copied: Key = (region.application, "copy_buffer", region.size, 0)
        groups, copy = elementwise_launch("copy_buffer", 2 * points)
        jobs.append(_sliced(copied, groups, copy, limit_s, None))
        parts.append(Part(copied, 1))
    return jobs, parts


_RULES: Mapping[str, Callable[[Path, Region, float], tuple[list[Job], list[Part]]]] = {
    "same": _same,
    "listed": _listed,
    "traversal": _traversal,
    "levels": _levels,
    "transform": _transform,
}


def facts_of(profile: Profile, key: Key) -> Profile:
    """The profile under its key."""
    application, kernel, size, invocation = key
    told: dict[str, Any] = {
        "application": application,
        "kernel": kernel,
        "size": size,
        "invocation": invocation,
    }
    return replace(profile, **told)
