"""A queue on a real device: what it copies, launches and times."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.errors import CompileError, CrosscastError, LaunchError, UnsupportedError
from crosscast.kernel import Argument, Image, Local, Program
from crosscast.measure.opencl import OpenCLDevice, OpenCLQueue, devices, opencl_faults
from crosscast.suite.application import Array

SOURCE = b"""
kernel void add(global int *a, int b) { a[get_global_id(0)] += b; }
kernel void sums(global const int *in, global int *out, local int *t) {
  int i = get_local_id(0);
  t[i] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i == 0) for (int k = 0; k < get_local_size(0); k++) out[get_group_id(0)] += t[k];
}
typedef struct { int x; float y; } pair;
kernel void spread(global float *out, pair p) { out[0] = p.x; out[1] = p.y; }
kernel void ask(global int *missing, global int *out) { out[0] = missing == 0; }
"""


@pytest.fixture(scope="module")
def device() -> OpenCLDevice:
    return devices()[0]


def queue_of(device: OpenCLDevice, *arrays: Array) -> OpenCLQueue:
    return OpenCLQueue(device, Program(SOURCE), arrays)


def test_buffers_keep_what_was_written(device: OpenCLDevice) -> None:
    ints = np.arange(64, dtype=np.int32)
    queue = queue_of(device, ints)
    queue.write(ints)
    ints[:] = 0
    queue.launch("add", (64,), (16,), ints, np.int32(5))
    queue.read(ints)
    assert ints.tolist() == list(range(5, 69))


def test_arguments_of_every_kind_arrive(device: OpenCLDevice) -> None:
    ints, sums, reals, flag = (
        np.ones(64, np.int32),
        np.zeros(4, np.int32),
        np.zeros(2, np.float32),
        np.zeros(1, np.int32),
    )
    queue = queue_of(device, ints, sums, reals, flag)
    queue.write(ints, sums)
    queue.launch("sums", (64,), (16,), ints, sums, Local(64))
    queue.launch("spread", (1,), (1,), reals, np.int32(3).tobytes() + np.float32(0.5).tobytes())
    queue.launch("ask", (1,), (1,), None, flag)
    queue.read(sums, reals, flag)
    assert (sums.tolist(), reals.tolist(), flag.tolist()) == ([16] * 4, [3, 0.5], [1])


def test_every_invocation_is_timed_by_kernel(device: OpenCLDevice) -> None:
    ints, sums = np.zeros(1 << 16, np.int32), np.zeros(1 << 12, np.int32)

    def run(queue: OpenCLQueue) -> None:
        queue.write(ints, sums)
        for _ in range(3):
            queue.launch("add", ints.shape, (16,), ints, np.int32(1))
        queue.launch("sums", ints.shape, (16,), ints, sums, Local(64))
        queue.read(sums)

    queue = queue_of(device, ints, sums)
    for _ in range(2):
        times = queue.timed(run)
        assert {name: len(found) for name, found in times.kernels_s.items()} == {"add": 3, "sums": 1}
        assert min(map(min, times.kernels_s.values())) > 0
        assert times.transfer_s > 0
        # The queue is in order: nothing runs beside anything else.
        on_device = sum(map(sum, times.kernels_s.values())) + times.transfer_s
        assert on_device <= times.host_s


def test_a_compiler_that_refuses_is_quoted_and_leaves_no_file(
    device: OpenCLDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(CompileError, match=rf"<source>: the compiler of {device.id} refuses it: .*oops"):
        OpenCLQueue(device, Program(b"kernel void k(global int *a) { a[0] = oops; }"), [])
    assert not list(tmp_path.iterdir())


def test_files_beside_the_source_can_be_included(device: OpenCLDevice, tmp_path: Path) -> None:
    (tmp_path / "two.h").write_text("#define TWO 2\n")
    (tmp_path / "k.cl").write_text('#include "two.h"\nkernel void k(global int *a) { a[0] = TWO; }\n')
    out = np.zeros(1, np.int32)
    queue = OpenCLQueue(device, Program.from_file(tmp_path / "k.cl"), [out])
    queue.launch("k", (1,), (1,), out)
    queue.read(out)
    assert out[0] == 2


def test_a_kernel_that_is_not_there_is_refused_with_those_there_are(device: OpenCLDevice) -> None:
    with pytest.raises(LaunchError, match=r"kernel 'minus': expected one of .*add"):
        queue_of(device).launch("minus", (1,), (1,))


def test_sizes_that_do_not_fit_are_refused(device: OpenCLDevice) -> None:
    ints = np.zeros(64, np.int32)
    with pytest.raises(LaunchError, match="does not fit"), opencl_faults(device.id, "add"):
        queue_of(device, ints).launch("add", (64,), (1 << 20,), ints, np.int32(1))


@pytest.mark.parametrize(
    ("argument", "kind", "message"),
    [
        (Image(np.zeros((4, 4, 4), np.float32)), UnsupportedError, "images and samplers are not measured"),
        (np.zeros(64, np.int32), LaunchError, "expected one of the application's arrays"),
    ],
)
def test_arguments_that_cannot_be_passed_are_refused(
    device: OpenCLDevice, argument: Argument, kind: type[CrosscastError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        queue_of(device).launch("add", (64,), (16,), argument, np.int32(1))


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ((1.0,), "^add: argument 1: expected a NumPy scalar, found float$"),
        ((1,), "^add: argument 1: expected a NumPy scalar, found int$"),
        (([1],), "^add: argument 1: expected a NumPy scalar, found list$"),
        ((np.zeros(1, np.int32),), r"^add: argument 1: expected one of the application's arrays"),
        ((), "^add: argument 1: expected 2 arguments, found 1$"),
        ((np.int32(1), np.int32(2)), "^add: argument 2: expected 2 arguments, found 3$"),
    ],
)
def test_a_wrong_argument_is_named_by_kernel_and_number(
    device: OpenCLDevice, rest: tuple[Any, ...], message: str
) -> None:
    ints = np.zeros(64, np.int32)
    with pytest.raises(LaunchError, match=message):
        queue_of(device, ints).launch("add", (64,), (16,), ints, *rest)


def test_copies_of_an_array_without_buffer_are_refused(device: OpenCLDevice) -> None:
    queue, ints = queue_of(device), np.zeros(4, np.int32)
    for copy in (queue.write, queue.read):
        with pytest.raises(LaunchError, match="expected one of the application's arrays"):
            copy(ints)


def test_other_forms_of_programs_are_refused(device: OpenCLDevice) -> None:
    with pytest.raises(UnsupportedError, match="measuring needs OpenCL C"):
        OpenCLQueue(device, Program(b"BC\xc0\xde", form="bitcode"), [])
