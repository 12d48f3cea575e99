"""What the first stage of ``crosscast calibrate`` is worth on this machine.

``python -m benchmarks.own_machine [--device pocl:0]`` measures the device as ``calibrate --minutes 0``
does, and prints two tables of the same run: bandwidth and peak beside STREAM and a loop of multiply-adds,
compiled by Crosscast's compiler; and ten kernels that are in no training data, as forecast by what was
measured, beside their times. Times are the best of several runs. Where other programs keep the CPUs busy, the
time that all threads of a kernel were running, over the device's units, is nearer to what an idle machine
takes: `busy`.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import crosscast
from benchmarks.table import text_table
from crosscast.characterization.toolchain import c_library
from crosscast.kernel import Kernel, Launch, Program
from crosscast.measure.microbenchmarks import OpenCLBackend
from crosscast.measure.microbenchmarks.bench import Microbenchmarks, measure
from crosscast.measure.opencl import OpenCLDevice, OpenCLQueue, find, opencl_faults
from crosscast.units import format_seconds

_SOURCE = Path(__file__).with_suffix(".cl")
_PEERS = Path(__file__).parent / "peers" / "stream_fma.c"
_LEAST_COUNT = 1 << 23  # Doubles of each of STREAM's arrays
_TIMES_LAST_CACHE = 4  # Their size, as STREAM's rules want it
_REPEATS = 2_000_000  # Steps of 12 vectors of 8 multiply-adds: CPU time of runs below 1 ms may be wrong
_PEER_S = 1.5
_NEEDS = ("libc.so.6", "libm.so.6", "libpthread.so.0")
_LEAST_RUNS, _KERNEL_S = 10, 1.0


def launches() -> dict[str, Launch]:
    """The kernels with their arguments, by name."""
    program = Program(_SOURCE.read_bytes(), path=_SOURCE)
    rng = np.random.default_rng(0)
    big, n = 1 << 24, 2048

    def reals(count: int) -> Any:
        return rng.random(count, np.float32)

    def launch(name: str, size: tuple[int, ...], *args: Any) -> Launch:
        local = (64,) if len(size) == 1 else (16, 16)
        given = tuple(np.int32(each) if isinstance(each, int) else each for each in args)
        return Launch(Kernel(program, name), size, local, given)

    return {
        "copy": launch("copy", (big,), reals(big), reals(big)),
        "triad": launch("triad", (big,), reals(big), reals(big), reals(big)),
        "strided": launch("strided", (big // 4,), reals(big // 4), reals(big // 4), 1027, big // 4),
        "polynomial": launch("polynomial", (1 << 18,), reals(1 << 18), reals(1 << 18), 512),
        "orbits": launch("orbits", (1 << 16,), reals(1 << 16), 500),
        "dot_rows": launch("dot_rows", (n,), reals(n * n), reals(n), reals(n), n),
        "stencil": launch("stencil", (n, n), reals(n * n), reals(n * n), n),
        "product": launch("product", (384, 384), *(reals(384 * 384) for _ in range(3)), 384),
        "hashes": launch("hashes", (1 << 18,), np.zeros(1 << 18, np.uint32), 100),
        "bodies": launch("bodies", (2048,), reals(4 * 2048), reals(4 * 2048), 2048),
    }


def measured_s(device: OpenCLDevice, launch: Launch) -> tuple[float, float]:
    """Least seconds of several launches by the host's clock, and by the CPUs' over the device's units."""
    arrays = [each for each in launch.args if isinstance(each, np.ndarray) and each.ndim]
    queue = OpenCLQueue(device, launch.kernel.program, arrays)

    def run(queue: OpenCLQueue) -> None:
        queue.launch(launch.kernel.name, launch.global_size, launch.local_size, *launch.args)

    with opencl_faults(device.id, "measuring it"):
        queue.complete(lambda queue: queue.write(*arrays))
        times: list[float] = []
        busy: list[float] = []
        end = time.perf_counter() + _KERNEL_S
        while len(times) < _LEAST_RUNS or time.perf_counter() < end:
            start = time.process_time()
            times.append(queue.timed(run).host_s)
            busy.append((time.process_time() - start) / device.compute_units)
    return min(times), min(busy)


def peers(threads: int, last_cache_bytes: int) -> dict[str, float]:
    """Bytes or operations a second of the peers, the best of several runs, by the CPUs' clock as below."""
    count = max(_LEAST_COUNT, _TIMES_LAST_CACHE * last_cache_bytes // 8)
    library = ctypes.CDLL(str(c_library([_PEERS], "-O3", "-march=native", needs=_NEEDS)))
    library.peer.restype = ctypes.c_double
    library.peer.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]
    # NumPy asks for huge pages, which OpenCL's buffers are not; untouched pages would all be one of zeros.
    arrays = np.frombuffer(mmap.mmap(-1, 3 * 8 * count), np.float64)
    arrays[:] = 1
    work = {
        "STREAM copy": (0, 16 * count),
        "STREAM triad": (1, 24 * count),
        "multiply-adds": (2, 2 * 12 * 8 * _REPEATS * threads),
    }
    found = {}
    for name, (what, amount) in work.items():
        end, times = time.perf_counter() + _PEER_S, []
        while time.perf_counter() < end:
            start = time.process_time()
            by_host = library.peer(what, threads, arrays.ctypes.data, count, _REPEATS)
            if by_host < 0:
                raise SystemExit(f"own_machine: {threads} threads cannot be started")
            times.append(min(by_host, (time.process_time() - start) / threads))
        found[name] = amount / min(times)
    return found


def beside_peers(facts: Microbenchmarks, found: dict[str, float]) -> str:
    """Table of what calibrate and its peers reach."""
    rates = {name: each.best for name, each in facts.values.items()}
    stream = max(found["STREAM copy"], found["STREAM triad"])
    rows = [
        ("bandwidth, GB/s", facts.numbers["bandwidth_bytes_per_s"] / 1e9, stream / 1e9),
        ("  copy, GB/s", rates["copy_bytes_per_s"] / 1e9, found["STREAM copy"] / 1e9),
        ("peak, Gflop/s", rates["fp32_flop_per_s"] / 1e9, found["multiply-adds"] / 1e9),
    ]
    cells = [[name, f"{own:.1f}", f"{peer:.1f}", f"{own / peer:.2f}"] for name, own, peer in rows]
    return text_table(["", "calibrate", "peer", "ratio"], cells)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="pocl:0")
    parser.add_argument("--peers-only", action="store_true")
    options = parser.parse_args(arguments)
    device = find(options.device)
    backend = OpenCLBackend(device)
    before = peers(backend.units, backend.last_cache_bytes)
    facts = measure(backend)
    after = peers(backend.units, backend.last_cache_bytes)
    print(f"microbenchmarks: {facts.seconds:.1f} s" + "".join(f"\n{each}" for each in facts.doubts))
    print(beside_peers(facts, {name: max(before[name], after[name]) for name in before}))
    if options.peers_only:
        return 0
    # A key that no calibration has, as the bundled model is to answer.
    described = facts.device("this-machine")
    cells, ratios, inside = [], [], 0
    for name, launch in launches().items():
        by_host, busy = measured_s(device, launch)
        seconds = min(by_host, busy) if device.type == "cpu" else by_host
        found = crosscast.predict(launch, devices=[described])
        centre, low, high = (float(each[0, 0]) for each in (found.centre, found.low, found.high))
        ratios.append(centre / seconds)
        inside += low <= seconds <= high
        terms = ", ".join(f"{term} {share:.0%}" for term, share in list(found.term_shares(0, 0).items())[:3])
        times = [format_seconds(each) for each in (by_host, busy, centre, low, high)]
        cells.append([name, *times, f"{ratios[-1]:.2f}", terms])
    print(text_table(["kernel", "measured", "busy", "forecast", "low", "high", "ratio", "terms"], cells))
    within = sum(max(each, 1 / each) <= 1.5 for each in ratios)
    print(f"{within} of {len(ratios)} within a factor of 1.5; {inside} of {len(ratios)} inside")
    return 0


if __name__ == "__main__":
    sys.exit(main())
