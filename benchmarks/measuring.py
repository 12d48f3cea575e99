"""What the measuring loop costs over a bare pyopencl loop, on a kernel of about 100 µs.

``python -m benchmarks.measuring`` prints the time of a run in both, measured in turns in one process, and
whether it meets the project's figure. Both launch the same kernel with the same arguments, wait for it,
and read its start and end from the device's timer.
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

from benchmarks.table import text_table
from benchmarks.verdict import Verdict
from crosscast.kernel import Program
from crosscast.measure.opencl.devices import OpenCLDevice, find
from crosscast.measure.sensors.null import NullSensor
from crosscast.measure.session import measure_here
from crosscast.measure.settings import Settings
from crosscast.measure.subjects import Loaded
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
        for _ in range(2):
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
    bare_s, ours_s = [], []
    for _ in range(options.repeat):
        bare_s.append(bare.mean_s(steps, options.runs))
        ours_s.append(_ours_s(device, steps, options.runs))
    kernel_s = statistics.median(bare.run(np.int32(steps)) for _ in range(100))
    ratios = [ours / plain for ours, plain in zip(ours_s, bare_s, strict=True)]
    overhead = min(ours_s) / min(bare_s) - 1
    print(
        f"{device.name}, {device.id}; load: {os.getloadavg()[0]:.2f}; kernel {1e6 * kernel_s:.1f} µs; ",
        end="",
    )
    print(f"{options.repeat} pairs of {options.runs} runs; µs a run on the host\n")
    rows = [[name, *_micros(times)] for name, times in (("bare pyopencl", bare_s), ("measure", ours_s))]
    print(text_table(["loop", "minimum", "median"], rows), end="\n\n")
    print(f"median of the ratios of pairs: {statistics.median(ratios):.4f}")
    title = f"measuring loop <= {100 * _OVERHEAD:g} % over bare pyopencl on {1e6 * _KERNEL_S:g} µs kernels"
    verdict = Verdict(title, f"{100 * overhead:.2f} % (minimum over minimum)", overhead <= _OVERHEAD)
    print(verdict)
    return 0 if verdict.met else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measuring", description=__doc__)
    parser.add_argument("--device", default="pocl:0", help="device id (default: pocl:0)")
    parser.add_argument("--repeat", type=int, default=20, help="pairs of measurements (default: 20)")
    parser.add_argument("--runs", type=int, default=2000, help="runs in each (default: 2000)")
    return parser.parse_args()


def _steps(bare: _Bare) -> int:
    """Steps with which the kernel takes about as long as it should."""
    steps = 1000
    for _ in range(3):
        took = statistics.median(bare.run(np.int32(steps)) for _ in range(200))
        steps = max(1, round(steps * _KERNEL_S / took))
    return steps


def _ours_s(device: OpenCLDevice, steps: int, runs: int) -> float:
    """Seconds of a run on the host, as a session records them."""
    chain = _Chain({"steps": steps}, 0)
    program = Program(_SOURCE.encode())
    loaded = Loaded("chain", "given", chain.kernels, program, {}, None, application=chain)
    settings = Settings(min_runs=runs, min_time_s=0)
    session = measure_here(loaded, device, settings, NullSensor()).session
    return float(session["loop_s"] / session["runs"])


def _micros(times_s: list[float]) -> list[str]:
    return [f"{1e6 * value:.2f}" for value in (min(times_s), statistics.median(times_s))]


if __name__ == "__main__":
    sys.exit(main())
