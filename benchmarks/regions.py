"""What a profiled region costs, beside the shortest region that one can write by hand.

``python -m benchmarks.regions`` prints the time of an empty region in several manners, measured in short
turns in one process, all writing included, and whether the project's figure is met. Sensors are a tree of
files like the one that Linux shows for RAPL, so that the cost of the region shows and not that of a driver.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import crosscast
from benchmarks.table import Verdict, text_table
from crosscast.measure.host_state import available
from crosscast.measure.regions.recorder import Metering
from crosscast.measure.sensors import RaplSensor

Loop = Callable[[int], None]
"""Enters and leaves an empty region so many times."""

_COST_S = 50e-6
_ZONES = {"intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:0:1": "dram"}
_SHARED = ("with three arguments, to a file", "... and energy of 3 RAPL-like files", "... as decorator")


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        loops = _loops(Path(folder))
        times_s: dict[str, list[float]] = {name: [] for name in loops}
        for _ in range(options.repeat):
            # In turns, so that a busy moment of the machine hits all of them.
            for name, loop in loops.items():
                times_s[name].append(_seconds(loop, options.runs))
    print(
        f"python {platform.python_version()}; cpus: {os.cpu_count()}; load: {os.getloadavg()[0]:.2f}; ",
        end="",
    )
    print(f"{options.repeat} turns of {options.runs} regions; µs a region, the empty loop taken off\n")
    medians_s = {name: statistics.median(found) for name, found in times_s.items()}
    peer_s = medians_s["by hand: two looks at the clock"]
    rows = [
        [name, f"{1e6 * min(found):.1f}", f"{1e6 * medians_s[name]:.1f}", f"{medians_s[name] / peer_s:.1f}"]
        for name, found in times_s.items()
    ]
    print(text_table(["region", "minimum", "median", "by hand = 1"], rows), end="\n\n")
    verdicts = [_judge(name, medians_s[name]) for name in _SHARED]
    print("\n".join(map(str, verdicts)))
    return 0 if all(verdict.met for verdict in verdicts) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regions", description=__doc__)
    parser.add_argument("--repeat", type=int, default=15, help="turns (default: 15)")
    parser.add_argument("--runs", type=int, default=2000, help="regions in each (default: 2000)")
    return parser.parse_args()


def _seconds(loop: Loop, runs: int) -> float:
    start = time.perf_counter()
    loop(runs)
    middle = time.perf_counter()
    for _ in range(runs):
        pass
    return (2 * middle - start - time.perf_counter()) / runs


def _loops(folder: Path) -> dict[str, Loop]:
    """The manners, by name, from the plainest on."""
    arguments = (np.zeros((64, 64)), np.zeros((64, 64)), 64)
    file: dict[str, Any] = {"history": folder / "runs.jsonl", "sensors": "none"}
    energy = file | {"sensors": Metering([RaplSensor(_zones(folder))])}
    loops: dict[str, Loop] = {
        "by hand: two looks at the clock": _by_hand,
        "in memory only": _blocks({"sensors": "none"}),
        "with three arguments": _blocks({"sensors": "none", "arguments": arguments}),
        _SHARED[0]: _blocks(file | {"arguments": arguments}),
        _SHARED[1]: _blocks(energy | {"arguments": arguments}),
        _SHARED[2]: _calls(energy, arguments),
    }
    counted = [name for name, reason in available().items() if reason is None]
    if counted:
        words = {"sensors": "none", "counters": counted}
        loops[f"in memory only, {len(counted)} CPU counters"] = _blocks(words)
    if importlib.util.find_spec("pyopencl") is not None:
        loops |= _launches(file)
    return loops


def _by_hand(runs: int) -> None:
    times_s: list[float] = []

    @contextmanager
    def region() -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            times_s.append(time.perf_counter() - start)

    for _ in range(runs):
        with region():
            pass


def _blocks(words: dict[str, Any]) -> Loop:
    def loop(runs: int) -> None:
        for _ in range(runs):
            with crosscast.profiled("block", **words):
                pass

    return loop


def _calls(words: dict[str, Any], arguments: tuple[Any, ...]) -> Loop:
    @crosscast.profiled("call", **words)
    def call(a: Any, b: Any, n: int) -> None: ...

    def loop(runs: int) -> None:
        for _ in range(runs):
            call(*arguments)

    return loop


def _launches(words: dict[str, Any]) -> dict[str, Loop]:
    """Launches of a kernel that does nothing: bare, and by the queue that profiles."""
    import pyopencl as cl

    from crosscast.measure.opencl import devices

    handle = devices()[0].handle
    context = cl.Context([handle])
    profiling = cl.command_queue_properties.PROFILING_ENABLE
    queue = cl.CommandQueue(context, handle, properties=profiling)
    program = cl.Program(context, "kernel void nothing(global int *a, int n) {}").build()
    kernel = cl.Kernel(program, "nothing")
    given = cl.Buffer(context, cl.mem_flags.READ_WRITE, 256), np.int32(1)
    profiled = crosscast.ProfiledQueue(queue, **words)

    def bare(runs: int) -> None:
        for _ in range(runs):
            kernel(queue, (1,), (1,), *given).wait()

    def ours(runs: int) -> None:
        for _ in range(runs):
            profiled.launch(kernel, (1,), (1,), *given)

    return {"launch by pyopencl": bare, "launch by ProfiledQueue, to a file": ours}


def _zones(folder: Path) -> Path:
    """A tree of counters that stand still at some value."""
    for zone, name in _ZONES.items():
        (folder / zone).mkdir()
        (folder / zone / "name").write_text(name)
        (folder / zone / "max_energy_range_uj").write_text("262143328850")
        (folder / zone / "energy_uj").write_text("123456789012\n")
    return folder


def _judge(name: str, median_s: float) -> Verdict:
    title = f"region {name} < {1e6 * _COST_S:g} µs"
    return Verdict(title, f"median {1e6 * median_s:.1f} µs", median_s < _COST_S)


if __name__ == "__main__":
    sys.exit(main())
