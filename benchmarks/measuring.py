"""What the measuring loop costs over a bare pyopencl loop, on a kernel of about 100 µs.

``python -m benchmarks.measuring`` prints the time of a run in both, measured in short turns in one process,
and whether the median of their ratios meets the project's figure. Both launch the same kernel with the same
arguments, wait for it, and read its start and end from the device's timer.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from typing import Any

import numpy as np
import pyopencl as cl

from benchmarks.table import Verdict, text_table
from crosscast.kernel import Program
from crosscast.measure import Watch
from crosscast.measure.opencl import OpenCLDevice, OpenCLQueue, find
from crosscast.measure.session import measuring_loop
from crosscast.measure.subjects import Settings
from crosscast.suite.application import Application, Parameters, Queue

_SOURCE = """
kernel void chain(global float *out, global const float *in, int steps)
{
    float x = in[get_local_id(0)];
    for (int i = 0; i < steps; i++)
        x = x * 0.5f + in[0];
    out[get_global_id(0)] = x;
}
"""
_ITEMS, _GROUP = 1024, 64
_KERNEL_S = 100e-6
_OVERHEAD = 0.02
_WARMUPS = 2


class _Chain(Application):
    """One launch of the kernel a run."""

    name = "chain"
    kernels = ("chain",)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        self.out = np.zeros(_ITEMS, np.float32)
        self.input = np.ones(_GROUP, np.float32)
        self.steps = np.int32(parameters["steps"])
        self.arrays = (self.out, self.input)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        raise NotImplementedError

    def run(self, queue: Queue) -> None:
        queue.launch("chain", (_ITEMS,), (_GROUP,), self.out, self.input, self.steps)

    def check(self) -> None: ...


class _Bare:
    """The same with pyopencl alone."""

    def __init__(self, device: OpenCLDevice) -> None:
        context = cl.Context([device.handle])
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self._queue = cl.CommandQueue(context, device.handle, properties=profiling)
        self._kernel = cl.Kernel(cl.Program(context, _SOURCE).build(), "chain")
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self._out = cl.Buffer(context, flags, hostbuf=np.zeros(_ITEMS, np.float32))
        self._input = cl.Buffer(context, flags, hostbuf=np.ones(_GROUP, np.float32))

    def run(self, steps: Any) -> float:
        """Seconds on the device."""
        event = self._kernel(self._queue, (_ITEMS,), (_GROUP,), self._out, self._input, steps)
        event.wait()
        return float((event.profile.end - event.profile.start) * 1e-9)

    def mean_s(self, steps: int, runs: int) -> float:
        """Seconds of a run on the host."""
        given = np.int32(steps)
        for _ in range(_WARMUPS):
            self.run(given)
        times = []
        start = time.perf_counter()
        for _ in range(runs):
            times.append(self.run(given))
        return (time.perf_counter() - start) / runs


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    device = find(options.device)
    bare = _Bare(device)
    steps = _steps(bare)
    chain = _Chain({"steps": steps}, 0)
    queue = OpenCLQueue(device, Program(_SOURCE.encode()), chain.arrays)
    bare_s, ours_s, kernel_s = [], [], []
    for _ in range(options.repeat):
        bare_s.append(bare.mean_s(steps, options.runs))
        took, kernel = _ours_s(queue, chain, options.runs)
        ours_s.append(took)
        kernel_s.append(kernel)
    overhead = statistics.median(ours / plain for ours, plain in zip(ours_s, bare_s, strict=True)) - 1
    kernel_time = f"kernel {1e6 * statistics.median(kernel_s):.1f} µs"
    print(f"{device.name}, {device.id}; load: {os.getloadavg()[0]:.2f}; {kernel_time}; ", end="")
    print(f"{options.repeat} pairs of {options.runs} runs; µs a run on the host\n")
    rows = [[name, *_micros(times)] for name, times in (("bare pyopencl", bare_s), ("measure", ours_s))]
    print(text_table(["loop", "minimum", "median"], rows), end="\n\n")
    title = f"measuring loop <= {100 * _OVERHEAD:g} % over bare pyopencl on {1e6 * _KERNEL_S:g} µs kernels"
    verdict = Verdict(title, f"{100 * overhead:.2f} % (median over the pairs)", overhead <= _OVERHEAD)
    print(verdict)
    return 0 if verdict.met else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measuring", description=__doc__)
    parser.add_argument("--device", default="pocl:0", help="device id (default: pocl:0)")
    parser.add_argument("--repeat", type=int, default=100, help="pairs of measurements (default: 100)")
    parser.add_argument("--runs", type=int, default=300, help="runs in each (default: 300)")
    return parser.parse_args()


def _steps(bare: _Bare) -> int:
    """Steps with which the kernel takes about as long as it should."""
    steps = 1000
    for _ in range(3):
        took = statistics.median(bare.run(np.int32(steps)) for _ in range(200))
        steps = max(1, round(steps * _KERNEL_S / took))
    return steps


def _ours_s(queue: OpenCLQueue, chain: _Chain, runs: int) -> tuple[float, float]:
    """Seconds of a run on the host, and those of its kernel."""
    settings = Settings(min_runs=runs, min_time_s=0)
    for _ in range(_WARMUPS):
        queue.timed(chain.run)
    found, loop_s = measuring_loop(chain.run, queue, settings, Watch(None, []))
    return loop_s / runs, statistics.fmean(times.kernels_s["chain"][0] for times in found)


def _micros(times_s: list[float]) -> list[str]:
    return [f"{1e6 * value:.2f}" for value in (min(times_s), statistics.median(times_s))]


if __name__ == "__main__":
    sys.exit(main())
