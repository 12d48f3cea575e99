"""What recording costs: ``python -m benchmarks.capture``.

A program launches a short kernel many times, without and with the layer in turn. Printed are the time that
the layer adds to a launch, the bytes of the trace and the time of reading it, the most memory that the layer
needs; and the wall time of a program whose memory is kept by the default selection over its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from crosscast.tracing.program import TraceRecording
from crosscast.tracing.trace import read_processes

_LAUNCHES = """
import resource, sys, time
import numpy as np, pyopencl as cl
from crosscast.measure.opencl import name_unknown_cpu
device = cl.get_platforms()[0].get_devices()[0]
name_unknown_cpu(device)
context = cl.Context([device])
queue = cl.CommandQueue(context)
source = "kernel void spin(global float *x, int n) { float v = x[get_global_id(0)]; "
source += "for (int i = 0; i < n; i++) v = v * 0.999f + 0.5f; x[get_global_id(0)] = v; }"
kernel = cl.Kernel(cl.Program(context, source).build(), "spin")
flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
x = cl.Buffer(context, flags, hostbuf=np.ones(SIZE, np.float32))
kernel.set_args(x, np.int32(STEPS))
cl.enqueue_nd_range_kernel(queue, kernel, (SIZE,), (64,)).wait()
begin = time.perf_counter()
for number in range(COUNT):
    cl.enqueue_nd_range_kernel(queue, kernel, (SIZE,), (64,))
    if number % 100 == 99:
        queue.finish()
queue.finish()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(time.perf_counter() - begin, peak)
"""


def main() -> None:
    """Run the benchmark, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--launches", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    script = _LAUNCHES.replace("COUNT", str(given.launches)).replace("STEPS", "100").replace("SIZE", "256")
    found = _trace_of_many(script, given.launches, given.repeat)
    large = _LAUNCHES.replace("COUNT", "1500").replace("STEPS", "20").replace("SIZE", str(1 << 18))
    found["default_selection_over_own_wall"] = _ratio(large, given.repeat, "spread")
    if given.json:
        print(json.dumps(found))
        return
    print(f"time added a launch       {found['added_us']:.2f} us (of {found['launch_us']:.1f} us)")
    print(f"trace                     {found['bytes_a_launch']:.0f} bytes a launch")
    print(f"reading                   {found['read_s_a_million']:.1f} s a million launches")
    print(f"memory of the layer       {found['memory_mib']:.0f} MiB")
    ratio = found["default_selection_over_own_wall"]
    print(f"default selection         {ratio:.2f} x wall, 1,500 launches of 1 MiB")


def _run(script: str, environment: dict[str, str] | None = None) -> tuple[float, float]:
    """Seconds of the launches, and the most memory in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak) / 1024


def _trace_of_many(script: str, launches: int, repeat: int) -> dict[str, float]:
    added, own, memory = [], [], []
    size = read = 0.0
    for _ in range(repeat):
        plain, plain_memory = _run(script)
        folder = Path(tempfile.mkdtemp(prefix="crosscast-"))
        try:
            with_layer, layer_memory = _run(script, _recorded(folder / "trace", "none"))
            begin = time.perf_counter()
            (process,) = read_processes(folder / "trace")
            read = time.perf_counter() - begin
            size = process.path.stat().st_size
            assert len(process) == launches + 1
        finally:
            shutil.rmtree(folder)
        own.append(plain / launches)
        added.append((with_layer - plain) / launches)
        memory.append(layer_memory - plain_memory)
    return {
        "added_us": 1e6 * statistics.median(added),
        "launch_us": 1e6 * statistics.median(own),
        "bytes_a_launch": size / launches,
        "read_s_a_million": read / launches * 1e6,
        "memory_mib": statistics.median(memory),
    }


def _ratio(script: str, repeat: int, select: str) -> float:
    """Wall time of a whole run with the layer over that without, the median of pairs."""
    ratios = []
    for _ in range(repeat):
        begin = time.perf_counter()
        _run(script)
        middle = time.perf_counter()
        folder = Path(tempfile.mkdtemp(prefix="crosscast-"))
        try:
            environment = _recorded(folder / "trace", select)
            again = time.perf_counter()
            _run(script, environment)
            ratios.append((time.perf_counter() - again) / (middle - begin))
        finally:
            shutil.rmtree(folder)
    return statistics.median(ratios)


def _recorded(folder: Path, select: str) -> dict[str, str]:
    recording = TraceRecording(folder, select)
    recording.prepare()
    return recording.environment(os.environ)


if __name__ == "__main__":
    main()
