"""Runs benchmark cases on an OpenCL platform; the other end of `benchmarks.peers.peer`.

One JSON object a line comes in, one goes out: ``load`` a case, ``run`` it once, ``check`` its outputs.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl

from benchmarks.kernels import CASES, SHAPES, Array, Workload
from crosscast.kernel import Local
from crosscast.measure.opencl import name_unknown_cpu

_EVICTOR_BYTES = 1 << 27
"""More than the caches of the CPUs that benchmarks run on."""


@dataclass
class Loaded:
    """A case on the device, ready to run."""

    workload: Workload
    kernel: cl.Kernel
    buffers: dict[int, cl.Buffer]


class Worker:
    """Holds the device and the loaded case."""

    def __init__(self) -> None:
        # Exactly one platform is visible: the environment names its driver.
        (platform,) = cl.get_platforms()
        (device,) = platform.get_devices()
        name_unknown_cpu(device)
        self.description = f"{platform.version.strip()}, {device.max_compute_units} compute unit(s)"
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self.loaded: Loaded | None = None
        self.evictor = np.zeros(_EVICTOR_BYTES, np.uint8)

    def load(self, case: str, size: int) -> dict[str, Any]:
        """Build a case and send its buffers."""
        # First the old buffers go, then the new ones come.
        self.loaded = None
        found = SHAPES.get(case) or CASES[case]
        workload = found.workload(size)
        program = cl.Program(self.context, found.source).build(options=["-cl-std=CL1.2"])
        kernel = cl.Kernel(program, found.function)
        buffers: dict[int, cl.Buffer] = {}
        values: list[Any] = []
        for index, arg in enumerate(workload.args):
            if isinstance(arg, np.ndarray):
                flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
                buffers[index] = cl.Buffer(self.context, flags, hostbuf=arg)
                values.append(buffers[index])
            elif isinstance(arg, Local):
                values.append(cl.LocalMemory(arg.nbytes))
            else:
                values.append(arg)
        kernel.set_args(*values)
        self.loaded = Loaded(workload, kernel, buffers)
        return {"work": workload.work}

    def run(self, cold: bool) -> dict[str, Any]:
        """Run the loaded case once, on fresh outputs; `cold` empties the CPU's caches first."""
        loaded = self._case()
        for index, initial in loaded.workload.initial_outputs().items():
            cl.enqueue_copy(self.queue, loaded.buffers[index], initial)
        self.queue.finish()
        if cold:
            self.evictor += 1
        sizes = loaded.workload.global_size, loaded.workload.local_size
        before = _cpu_time_s()
        event = cl.enqueue_nd_range_kernel(self.queue, loaded.kernel, *sizes)
        self.queue.finish()
        # Both platforms run kernels on a thread of their own, of which there is one.
        cpu_s = _cpu_time_s() - before
        return {"wall_s": 1e-9 * (event.profile.end - event.profile.start), "cpu_s": cpu_s}

    def check(self) -> dict[str, Any]:
        """Compare the outputs of the last run with NumPy's."""
        loaded = self._case()
        args = list(loaded.workload.args)
        for index, initial in loaded.workload.initial_outputs().items():
            output: Array = np.empty_like(initial)
            cl.enqueue_copy(self.queue, output, loaded.buffers[index])
            args[index] = output
        return {"fault": loaded.workload.fault(args)}

    def _case(self) -> Loaded:
        if self.loaded is None:
            raise RuntimeError("no case is loaded")
        return self.loaded


def _cpu_time_s() -> float:
    """CPU time so far of all threads but this one, those that have ended included."""
    return time.process_time() - time.thread_time()


def main() -> None:
    """Answer requests until the input ends."""
    worker = Worker()
    print(json.dumps({"platform": worker.description}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        operation = request.pop("do")
        answer = getattr(worker, operation)(**request)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
