"""A program that uses OpenCL in many ways, of which its argument chooses one; it knows nothing of layers."""

import os
import signal
import sys
import threading
from typing import Any

import numpy as np
import pyopencl

from crosscast.measure.opencl import name_unknown_cpu

cl: Any = pyopencl

SOURCE = """
#ifndef FACTOR
#define FACTOR 2
#endif
typedef struct { int low, high; } range;
kernel void add(global const float *x, global float *y) {
    y[get_global_id(0)] += FACTOR * x[get_global_id(0)];
}
kernel void fill(global int *y, int value) { y[get_global_id(0)] = value + get_global_id(0); }
kernel void clip(global int *y, range r, local int *part) {
    int i = get_local_id(0);
    part[i] = y[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[get_global_id(0)] = clamp(part[get_local_size(0) - 1 - i], r.low, r.high);
}
kernel void both(global int *a, global int *b) { a[get_global_id(0)] += b[get_global_id(0)]; }
kernel void shade(read_only image2d_t in, sampler_t s, global float4 *out) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    out[at.y * get_global_size(0) + at.x] = read_imagef(in, s, at);
}
kernel void three(global int3 *y, int n) {
    int3 v[2] = {(int3)(1, 2, 3), (int3)(4, 5, 6)};
    y[get_global_id(0)] = v[(n + get_global_id(0)) % 2];
}
kernel void perhaps(global int *y) { if (y) y[get_global_id(0)] = 1; }
"""
N = 1024
FLAGS = cl.mem_flags


def device() -> Any:
    (found, *_) = [each for platform in cl.get_platforms() for each in platform.get_devices()]
    name_unknown_cpu(found)
    return found


class Program:
    def __init__(self, *options: str, properties: int = 0) -> None:
        self.context = cl.Context([device()])
        self.queue = cl.CommandQueue(self.context, properties=properties)
        self.program = cl.Program(self.context, SOURCE).build(list(options))

    def kernel(self, name: str, *arguments: object) -> Any:
        kernel = cl.Kernel(self.program, name)
        kernel.set_args(*arguments)
        return kernel

    def run(
        self, kernel: cl.Kernel, size: tuple[int, ...] = (N,), local: tuple[int, ...] | None = (64,)
    ) -> cl.Event:
        return cl.enqueue_nd_range_kernel(self.queue, kernel, size, local)

    def buffer(self, content: Any, flags: Any = FLAGS.READ_WRITE) -> Any:
        return cl.Buffer(self.context, flags | FLAGS.COPY_HOST_PTR, hostbuf=content)

    def say(self, buffer: Any, kind: Any = np.int32) -> None:
        found = np.empty(buffer.size // np.dtype(kind).itemsize, kind)
        cl.enqueue_copy(self.queue, found, buffer)
        print(found.sum(), found[:4].tolist(), found[-1])


def add(launches: int = 20) -> None:
    program = Program("-D", "FACTOR=3")
    x, y = (program.buffer(np.arange(N, dtype=np.float32)) for _ in range(2))
    kernel = program.kernel("add", x, y)
    for _ in range(launches):
        program.run(kernel)
    program.say(y, np.float32)


def values() -> None:
    program = Program()
    y = program.buffer(np.zeros(N, np.int32))
    for value in (1, 1, 2):
        program.run(program.kernel("fill", y, np.int32(value)))
    program.run(program.kernel("clip", y, np.array([10, 500], np.int32), cl.LocalMemory(256)))
    program.run(program.kernel("perhaps", None))
    program.run(program.kernel("fill", y, np.int32(7)), local=None)
    cl.enqueue_nd_range_kernel(program.queue, program.kernel("both", y, y), (512,), (32,), (512,))
    program.say(y)


def shrink() -> None:
    """Sizes that shrink, as those of a factorization; what a work-item does is the same at each."""
    program = Program()
    y = program.buffer(np.zeros(64 * N, np.int32))
    for size in range(64, 0, -1):
        program.run(program.kernel("fill", y, np.int32(size)), (size * N,))
    program.say(y)


def parts() -> None:
    program = Program()
    whole = program.buffer(np.arange(N, dtype=np.int32))
    half = 2 * N
    first, second = whole.get_sub_region(0, half), whole.get_sub_region(half, half)
    program.run(program.kernel("both", first, second), (512,))
    program.run(program.kernel("both", first, first), (512,))
    overlapping = whole.get_sub_region(half // 2, half)
    program.run(program.kernel("both", first, overlapping), (256,))
    program.say(whole)


def binary() -> None:
    program = Program("-DFACTOR=3")
    built = program.program.get_info(cl.program_info.BINARIES)
    program.program = cl.Program(program.context, [program.context.devices[0]], built).build()
    x, y = program.buffer(np.arange(N, dtype=np.float32)), program.buffer(np.ones(N, np.float32))
    program.run(program.kernel("add", x, y))
    program.say(y, np.float32)


def again() -> None:
    """Memory of another size at the address of what was released."""
    program = Program()
    kernel = cl.Kernel(program.program, "fill")
    for size in (16, 64, 256):
        y = cl.Buffer(program.context, FLAGS.READ_WRITE, 4 * size)
        kernel.set_args(y, np.int32(5))
        program.run(kernel, (size,), (4,))
        found = np.zeros(size, np.int32)
        cl.enqueue_copy(program.queue, found, y)
        print(found.sum())
        y.release()


def three() -> None:
    """The fourth element of a vector of three is undefined."""
    program = Program()
    y = program.buffer(np.full(4 * N, 7, np.int32))
    program.run(program.kernel("three", y, np.int32(0)))
    host = np.empty((N, 4), np.int32)
    cl.enqueue_copy(program.queue, host, y)
    print(host[:, :3].sum())


def image() -> None:
    program = Program()
    texels = np.arange(8 * 16 * 4, dtype=np.uint8).reshape(8, 16, 4)
    form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNORM_INT8)
    picture = cl.Image(program.context, FLAGS.READ_ONLY | FLAGS.COPY_HOST_PTR, form, (16, 8), hostbuf=texels)
    sampler = cl.Sampler(program.context, False, cl.addressing_mode.CLAMP_TO_EDGE, cl.filter_mode.NEAREST)
    out = program.buffer(np.zeros(8 * 16 * 4, np.float32))
    program.run(program.kernel("shade", picture, sampler, out), (16, 8), (8, 8))
    program.say(out, np.float32)


def mapped() -> None:
    program = Program()
    x = cl.Buffer(program.context, FLAGS.READ_WRITE | FLAGS.ALLOC_HOST_PTR, 4 * N)
    y = program.buffer(np.zeros(N, np.int32))
    for value in (1, 2):
        array, _ = cl.enqueue_map_buffer(program.queue, x, cl.map_flags.WRITE, 0, (N,), np.int32)
        array[:] = value
        array.base.release(program.queue)
        program.run(program.kernel("both", y, x))
    host = np.full(N, 5, np.int32)
    z = cl.Buffer(program.context, FLAGS.READ_ONLY | FLAGS.USE_HOST_PTR, hostbuf=host)
    program.run(program.kernel("both", y, z))
    program.say(y)


def out_of_order() -> None:
    modes = cl.command_queue_properties
    program = Program(properties=modes.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    y = program.buffer(np.zeros(N, np.int32))
    ones = program.buffer(np.ones(N, np.int32))  # kernels do not keep their buffers
    kernel = program.kernel("both", y, ones)
    event: Any = None
    for _ in range(6):
        waits = [] if event is None else [event]
        event = cl.enqueue_nd_range_kernel(program.queue, kernel, (N,), (64,), wait_for=waits)
    event.wait()
    program.say(y)


def seen() -> None:
    """What a program can ask about its queue and its events."""
    program = Program()
    print(program.queue.properties, program.queue.get_info(cl.command_queue_info.PROPERTIES))
    y = program.buffer(np.zeros(N, np.int32))
    event = program.run(program.kernel("fill", y, np.int32(1)))
    event.wait()
    try:
        print(event.profile.end > 0)
    except cl.Error as error:
        print(error.code)
    try:
        program.run(program.kernel("fill", y, np.int32(1)), (N,), (1 << 20,))
    except cl.Error as error:
        print(error.code)
    timed = cl.CommandQueue(program.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    event = cl.enqueue_nd_range_kernel(timed, program.kernel("fill", y, np.int32(1)), (N,), (64,))
    event.wait()
    print(event.profile.end > 0)


def threads() -> None:
    program = Program()
    buffers = [program.buffer(np.zeros(N, np.int32)) for _ in range(4)]

    def work(place: int) -> None:
        kernel = program.kernel("fill", buffers[place], np.int32(place))
        for _ in range(50):
            program.run(kernel)

    running = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    for each in buffers:
        program.say(each)


def forks() -> None:
    child = os.fork()
    add(2 if child else 3)
    if child:
        os.waitpid(child, 0)
    sys.stdout.flush()
    os._exit(0)


def killed() -> None:
    add(10)
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def fails() -> None:
    add(1)
    sys.exit(3)


def limited() -> None:
    """Write no file beyond a size once the kernels are built, as on a full disk."""
    import resource

    program = Program()
    y = program.buffer(np.zeros(N, np.int32))
    kernel = program.kernel("fill", y, np.int32(1))
    program.run(kernel).wait()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    for _ in range(20_000):
        program.run(kernel)
    program.say(y)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
