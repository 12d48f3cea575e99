"""``crosscast corun neighbour``: a microbenchmark as a process on the CPU, to run others beside."""

from __future__ import annotations

import json as json_format
import sys

from crosscast.cli.options import Flag
from crosscast.units import format_bytes, format_bytes_per_second, format_seconds, parse_bytes

__all__ = ["neighbour"]

_UNKNOWN_CACHE = 64 << 20


def neighbour(level: str, /, *, seconds: float = 10.0, image: str | None = None, json: Flag = False) -> None:
    """Run a contention microbenchmark on one core of the CPU, without OpenCL.

    For applications of which Crosscast starts nothing: run this beside them, one for each core that should be
    busy, and divide their time beside it by their time alone.

    Parameters
    ----------
    level
        `low`, `medium` or `high`, by the misses of the last-level cache.
    seconds
        How long, from when it says that it is ready.
    image
        Bytes of each of its four images, such as `32MiB`; by default those of the last-level cache.
    json
        Print one JSON object.
    """
    # Imported here: `--help` needs no NumPy.
    from crosscast.measure import host_state
    from crosscast.measure.corun.microbenchmarks.host_run import host_run

    caches = host_state.caches()
    nbytes = parse_bytes(image) if image else caches.l3 or caches.l2 or _UNKNOWN_CACHE
    found = host_run(level, nbytes, seconds, lambda: print("ready", file=sys.stderr, flush=True))
    if json:
        print(json_format.dumps({**vars(found), "image_bytes": nbytes}, allow_nan=False))
        return
    print(
        f"{found.level}: {format_bytes_per_second(found.bandwidth_bytes_per_s)} on one core for "
        f"{format_seconds(found.elapsed_s)}; 4 images of {format_bytes(nbytes)}"
    )
