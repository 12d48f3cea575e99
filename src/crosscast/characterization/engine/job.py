"""Description of a run for the child process: everything that it needs to know, as JSON."""

from __future__ import annotations

import base64
from typing import Any

from crosscast.characterization.engine.arguments import ARGUMENTS_ADDRESS, Memory
from crosscast.characterization.instrumentation.instrumented import Instrumented
from crosscast.kernel import Launch

__all__ = ["describe_job", "group_counts", "three"]

_LIBRARIES = ("libm.so.6", "libc.so.6")
_BUFFER, _LOCAL, _IMAGE = 0, 2, 3
"""Places of memory, as the runtime numbers them; the program's variables are 1."""


def three(sizes: tuple[int, ...], filler: int) -> tuple[int, int, int]:
    """Sizes in all three dimensions."""
    first, second, third = (*sizes, *[filler] * (3 - len(sizes)))
    return first, second, third


def group_counts(launch: Launch) -> list[int]:
    """Work-groups in each of three dimensions; the last one may be smaller."""
    sizes = zip(three(launch.global_size, 1), three(launch.local_size, 1), strict=True)
    return [-(-global_ // local) for global_, local in sizes]


def describe_job(launch: Launch, memory: Memory, made: Instrumented, threads: int) -> dict[str, Any]:
    """Describe a run.

    Parameters
    ----------
    launch
        The launch.
    memory
        Its buffers and arguments.
    made
        The instrumented kernel.
    threads
        Threads that run work-groups.
    """
    return {
        "threads": threads,
        "libraries": list(_LIBRARIES),
        "buffers": [
            {
                "fd": placed.shared.fd,
                "address": placed.address - placed.shared.offset,
                "nbytes": placed.shared.mapped_nbytes,
            }
            for placed in memory.placed
        ],
        "regions": _regions(launch, memory, made),
        "variables": made.variable_regions(),
        "arguments": base64.b64encode(bytes(memory.packed)).decode(),
        "arguments_address": ARGUMENTS_ADDRESS,
        "local_bytes": memory.local_bytes,
        "data_low": memory.low,
        "data_high": memory.high,
        "in_memory": made.in_memory,
        "weights": made.access_weights(),
        "words": _words(launch, made),
    }


def _words(launch: Launch, made: Instrumented) -> dict[str, int]:
    """Numbers that the runtime reads by name."""
    sizes = {
        "global": three(launch.global_size, 1),
        "local": three(launch.local_size, 1),
        "offset": three(launch.global_offset or (0,), 0),
        "groups": group_counts(launch),
    }
    words = {f"{name}{d}": value for name, values in sizes.items() for d, value in enumerate(values)}
    return words | {
        "dims": len(launch.global_size),
        "private_bytes": made.private.nbytes,
        "live_bytes": made.live.nbytes,
        "histories": made.histories,
        "counters": made.counters,
        "several": int(len(made.segments) > 1),
        "published": int(made.order_counter is not None),
    }


def _regions(launch: Launch, memory: Memory, made: Instrumented) -> list[list[int]]:
    """Regions of buffers, images and local memory: start, size, granule, place, and three flags.

    The flags: it is constant memory, it is read-only, the order of accesses does not matter.
    """
    found = []
    for placed in memory.placed:
        start, nbytes, position = placed.address, placed.shared.nbytes, placed.position
        if placed.place == "image":
            found.append([start, nbytes, placed.shared.data.itemsize, _IMAGE, 0, 0, 0])
            continue
        flags = (made.is_constant(position), position in launch.read_only, made.commutes(position))
        found.append([start, nbytes, made.parameter_granule(position), _BUFFER, *map(int, flags)])
    for position, offset, nbytes in memory.locals:
        found.append([offset, nbytes, made.parameter_granule(position), _LOCAL, 0, 0, 0])
    return [*found, *made.local_regions()]
