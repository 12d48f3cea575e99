"""Calibration of the microbenchmarks on a device: images that no cache holds, and what each level does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from statistics import fmean
from typing import Any

from crosscast.errors import DeviceFault
from crosscast.measure.corun.bag_runner import BagRunner
from crosscast.measure.corun.counter_shares import counter_shares
from crosscast.measure.corun.microbenchmarks.images import VECTOR_BYTES, VGA_BYTES
from crosscast.measure.corun.microbenchmarks.microbenchmark import LEVELS
from crosscast.measure.corun.work import Work
from crosscast.measure.subjects import Microbenchmark
from crosscast.units import format_bytes, format_bytes_per_second

__all__ = ["Calibration", "Level", "calibrate"]

_IMAGES = 4
_ARRAYS = 2
"""Arrays of the size of an image, beside the pool."""
_MOST_OF_MEMORY = 0.125
_UNKNOWN_CACHE = 1 << 20
_LARGE_IMAGE = 64 << 20
"""Four of these are in no cache of today."""
_FASTER = 1.15
"""Images that are read so much faster than from memory are in a cache in part."""
_LEAST_RUN_S = 2e-3
"""So long is a run at least, so that starting it is a small part of it."""
_MOST_PASSES = 1 << 12
_CPU_GROUPS, _GPU_GROUPS, _GPU_ITEMS = 4, 8, 256
"""Work-groups of a compute unit, and work-items of a group on a GPU: on a CPU it is one."""
_SLACK = 0.05
"""What noise may turn around."""


@dataclass(frozen=True)
class Level:
    """A microbenchmark, as it is on a device.

    Parameters
    ----------
    name
        ``low``, ``medium`` or ``high``.
    work
        What it does, with the runs of a job.
    time_s
        Time of a job alone, in seconds.
    bandwidth_bytes_per_s
        Bytes that it reads and writes, as its program says, a second.
    images_bytes_per_s
        Bytes of images that it reads a second.
    llc_miss
        Share of misses of the last-level cache, 0 to 1; ``None`` where nothing counts them.
    """

    name: str
    work: Work
    time_s: float
    bandwidth_bytes_per_s: float
    images_bytes_per_s: float
    llc_miss: float | None = None


@dataclass(frozen=True)
class Calibration:
    """The microbenchmarks on a device.

    Parameters
    ----------
    device
        Id of the device.
    image_bytes
        Bytes of an image of the pool.
    pool_bytes
        Bytes of all images.
    levels
        Low, medium and high.
    """

    device: str
    image_bytes: int
    pool_bytes: int
    levels: tuple[Level, ...]

    @property
    def doubts(self) -> list[str]:
        """What speaks against the levels being what they are called, as sentences."""
        shares = [level.llc_miss for level in self.levels]
        known = [share for share in shares if share is not None]
        counted = len(known) == len(shares)
        order = known if counted else [-level.images_bytes_per_s for level in self.levels]
        if all(after >= before - _SLACK * abs(before) for before, after in pairwise(order)):
            return []
        expected = "more misses" if counted else "slower reading of images"
        return [
            f"microbenchmarks on {self.device}: expected {expected} from one to the next, found {self.text}"
        ]

    @property
    def text(self) -> str:
        """What was measured, for people."""
        return ", ".join(
            f"{level.name} {format_bytes_per_second(level.bandwidth_bytes_per_s)}"
            + ("" if level.llc_miss is None else f" (LLC misses {100 * level.llc_miss:.3g} %)")
            for level in self.levels
        )

    @property
    def sentence(self) -> str:
        """What was measured and how, for people."""
        uncounted = any(level.llc_miss is None for level in self.levels)
        return (
            f"microbenchmarks on {self.device}: {self.text}; {_IMAGES} images of "
            f"{format_bytes(self.image_bytes)}"
            + (" (no counters of misses here: bandwidths)" if uncounted else "")
        )

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        return {
            "image_bytes": self.image_bytes,
            "pool_bytes": self.pool_bytes,
            "levels": {
                level.name: {
                    "time_s": level.time_s,
                    "bandwidth_bytes_per_s": level.bandwidth_bytes_per_s,
                    "llc_miss": level.llc_miss,
                }
                for level in self.levels
            },
            "doubts": self.doubts,
        }


def calibrate(
    crew: BagRunner, device: str, facts: Mapping[str, Any], note: Callable[[str], None] = lambda text: None
) -> Calibration:
    """Choose images that no cache of a device holds, and measure the three microbenchmarks with them.

    An image is as large as the largest cache that the device tells of, and larger where reading is clearly
    slower with images of 64 MiB: the driver may not tell of every cache.

    Parameters
    ----------
    crew
        What measures on the device.
    device
        Its id.
    facts
        What it tells: `crosscast.measure.opencl.describe.static_facts`.
    note
        Told what is being done.

    Raises
    ------
    DeviceFault
        If a microbenchmark fails.
    """
    extents = _extents(facts)

    def measured(name: str) -> Level:
        note(f"microbenchmark {name} with images of {format_bytes(extents['image_bytes'])}")
        return _measured(crew, device, Microbenchmark(name, dict(extents)))

    medium = measured("medium")
    run_s = medium.time_s / (medium.work.runs or 1)
    if run_s < _LEAST_RUN_S:
        extents["passes"] = min(ceil(_LEAST_RUN_S / run_s), _MOST_PASSES)
        medium = measured("medium")
    chosen, largest = extents["image_bytes"], min(_room(facts), max(_LARGE_IMAGE, extents["image_bytes"]))
    extents["image_bytes"] = largest
    from_memory = measured("medium") if largest > chosen else medium
    while _from_cache(medium, from_memory) and 2 * chosen < largest:
        chosen *= 2
        extents["image_bytes"] = chosen
        medium = measured("medium")
    if _from_cache(medium, from_memory):
        medium, chosen = from_memory, largest
    extents["image_bytes"] = chosen
    levels = (measured("low"), medium, measured("high"))
    image_bytes = extents["image_bytes"]
    return Calibration(device, image_bytes, image_bytes * extents["images"], levels)


def _from_cache(level: Level, from_memory: Level) -> bool:
    return level.images_bytes_per_s > _FASTER * from_memory.images_bytes_per_s


def _room(facts: Mapping[str, Any]) -> int:
    """Most bytes of an image."""
    room = int(_MOST_OF_MEMORY * facts["memory_bytes"]) // (_IMAGES + _ARRAYS)
    return max(room // VECTOR_BYTES, 1) * VECTOR_BYTES


def _extents(facts: Mapping[str, Any]) -> dict[str, int]:
    cache = max((facts.get(name) or 0 for name in ("l1_bytes", "l2_bytes", "l3_bytes")), default=0)
    wanted = max(cache or _UNKNOWN_CACHE, VGA_BYTES)
    on_gpu = facts["type"] == "gpu"
    return {
        "image_bytes": min(wanted // VECTOR_BYTES * VECTOR_BYTES, _room(facts)),
        "images": _IMAGES,
        "passes": 1,
        "groups": (_GPU_GROUPS if on_gpu else _CPU_GROUPS) * facts["compute_units"],
        "items": min(_GPU_ITEMS, facts["max_work_group_size"]) if on_gpu else 1,
    }


def _measured(crew: BagRunner, device: str, subject: Microbenchmark) -> Level:
    (member,) = crew.run([Work(subject)]).members
    if member.failure is not None or not member.times_s or not member.runs:
        why = member.failure or "no job ended in time"
        raise DeviceFault(f"{device}: the microbenchmark {subject.level} failed ({why})")
    made = LEVELS[subject.level](subject.parameters, 0)
    job_s = fmean(member.times_s)
    return Level(
        subject.level,
        Work(subject, member.runs),
        job_s,
        made.moved_bytes * member.runs / job_s,
        made.iterations * made.image_bytes * member.runs / job_s,
        counter_shares(member.counters).get("llc_miss"),
    )
