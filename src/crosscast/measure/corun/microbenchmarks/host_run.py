"""A microbenchmark as a process on the CPU, without OpenCL."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from crosscast.errors import InputError
from crosscast.measure.corun.microbenchmarks.host_queue import HostQueue
from crosscast.measure.corun.microbenchmarks.images import VECTOR_BYTES
from crosscast.measure.corun.microbenchmarks.microbenchmark import LEVELS

__all__ = ["HostRun", "host_run"]

_IMAGES = 4


@dataclass(frozen=True)
class HostRun:
    """What a microbenchmark did.

    Parameters
    ----------
    level
        ``low``, ``medium`` or ``high``.
    runs
        Runs, each over all images.
    elapsed_s
        Time of all runs, in seconds.
    bandwidth_bytes_per_s
        Bytes that it read and wrote a second.
    """

    level: str
    runs: int
    elapsed_s: float
    bandwidth_bytes_per_s: float


def host_run(
    level: str, image_bytes: int, seconds: float, ready: Callable[[], None] = lambda: None
) -> HostRun:
    """Run a microbenchmark in this process, on one core, and check its result.

    Parameters
    ----------
    level
        ``low``, ``medium`` or ``high``.
    image_bytes
        Bytes of an image: those of the last-level cache at least.
    seconds
        How long.
    ready
        Called when the images are made, right before the first run that counts.

    Raises
    ------
    InputError
        If there is no such level, or a number is out of range.
    CheckFailed
        If the result is wrong.
    """
    if level not in LEVELS:
        raise InputError(f"level: expected one of {', '.join(LEVELS)}, found {level!r}")
    if not math.isfinite(seconds) or seconds < 0:
        raise InputError(f"seconds: expected a number of seconds, found {seconds:g}")
    if image_bytes < VECTOR_BYTES:
        raise InputError(f"image_bytes: expected at least {VECTOR_BYTES}, found {image_bytes}")
    whole = image_bytes // VECTOR_BYTES * VECTOR_BYTES
    extents = {"image_bytes": whole, "images": _IMAGES, "passes": 1, "groups": 1, "items": 1}
    made, queue = LEVELS[level](extents, 0), HostQueue()
    made.run(queue)
    ready()
    runs, start = 0, time.perf_counter()
    while (elapsed_s := time.perf_counter() - start) < seconds or runs == 0:
        made.run(queue)
        runs += 1
    made.check()
    return HostRun(level, runs, elapsed_s, runs * made.moved_bytes / elapsed_s)
