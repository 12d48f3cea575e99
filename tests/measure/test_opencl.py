"""Devices as they are found and named, and kernels that are built, run and timed on them."""

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from crosscast.errors import (
    CompileError,
    DeviceFault,
    EnvironmentFault,
    InputError,
    LaunchError,
    UnsupportedError,
)
from crosscast.kernel import Image, Local, Program
from crosscast.measure import opencl as module
from crosscast.measure.opencl import OpenCLDevice, OpenCLQueue, devices, find, opencl_faults, selected
from crosscast.suite.application import Array
from support.examples import one_in
from support.measuring import cl_error
from support.refusals import refusal

BUSY = b"""
kernel void busy(global float *out) {
  float x = get_global_id(0);
  for (int i = 0; i < 100000; i++) x = fma(x, 0.999f, 0.5f);
  out[get_global_id(0)] = x;
}
"""


def handle(name: str = "fast one", units: int = 8, kind: int = cl.device_type.GPU, **facts: Any) -> Any:
    """A device that exists only here."""
    known = {"version": "OpenCL 3.0", "partition_properties": []}
    return SimpleNamespace(name=name, max_compute_units=units, type=kind, **{**known, **facts})


def platform(name: str, *handles: Any) -> Any:
    return SimpleNamespace(name=name, get_devices=lambda: list(handles))


@pytest.fixture
def platforms(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Platforms of a machine that exists only here."""
    found: list[Any] = []
    monkeypatch.setattr(cl, "get_platforms", lambda: found)
    return found


def test_devices_have_ids_and_keys_of_their_own() -> None:
    found = devices()
    assert len({device.id for device in found}) == len({device.key for device in found}) == len(found)


def test_parts_of_a_cpu_have_the_compute_units_that_their_ids_say() -> None:
    cpus = [device for device in devices() if device.type == "cpu"]
    parts = [device for device in cpus if "/" in device.id]
    most = max(device.compute_units for device in cpus)
    assert {device.compute_units for device in parts} == {1 << i for i in range(12) if 1 << i < most}
    for device in cpus:
        assert device.id.partition("/")[2] in ("", str(device.compute_units))
        assert device.key.endswith(f"-{device.compute_units}cu")


def test_one_compute_unit_takes_the_time_of_one_cpu() -> None:
    part = next((device for device in devices() if device.id.endswith("/1")), None)
    if part is None:
        pytest.skip("the machine has one CPU")
    out = np.zeros(64 * 16, np.float32)
    queue = OpenCLQueue(part, Program(BUSY), [out])

    def run(queue: OpenCLQueue) -> None:
        queue.launch("busy", (len(out),), (16,), out)

    queue.timed(run)
    wall, cpu = time.perf_counter(), time.process_time()
    runs = 0
    while time.perf_counter() - wall < 0.4:
        queue.timed(run)
        runs += 1
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert runs
    assert cpu <= 1.15 * wall


def test_devices_are_found_by_id() -> None:
    first = devices()[0]
    assert find(first.id) == first
    assert [device.id for device in selected(["all"])] == [device.id for device in devices()]
    again = selected([first.id, "all", first.id])
    assert [device.id for device in again] == [device.id for device in devices()]


def test_an_unknown_device_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"device 'abacus:0': expected one of .*, or all"):
        selected(["abacus:0"])
    with pytest.raises(InputError, match="device 'all': expected one of") as caught:
        find("all")
    assert "or all" not in str(caught.value)


def test_devices_are_numbered_within_their_platform(platforms: list[Any]) -> None:
    platforms += [
        platform("NVIDIA CUDA", handle("Tesla(R) K40m"), handle("Tesla(R) K40m"), handle("GTX 1080")),
        platform("A new thing", handle("x", kind=cl.device_type.ACCELERATOR)),
    ]
    found = [(device.id, device.key, device.type) for device in devices()]
    assert found == [
        ("nvidia:0", "tesla-k40m", "gpu"),
        ("nvidia:1", "tesla-k40m-2", "gpu"),
        ("nvidia:2", "gtx-1080", "gpu"),
        ("a-new-thing:0", "x", "accelerator"),
    ]


def test_a_cpu_that_cannot_be_parted_is_one_device(platforms: list[Any]) -> None:
    def refuse(properties: list[int]) -> list[Any]:
        raise cl_error(cl.status_code.DEVICE_PARTITION_FAILED, "clCreateSubDevices")

    cpu = handle("pthread-EPYC", 4, cl.device_type.CPU)
    claims = handle("pthread-EPYC", 4, cl.device_type.CPU, create_sub_devices=refuse)
    claims.partition_properties = [cl.device_partition_property.BY_COUNTS]
    platforms += [platform("Portable Computing Language", cpu, claims)]
    found = [(device.id, device.key) for device in devices()]
    assert found == [("pocl:0", "epyc-4cu"), ("pocl:1", "epyc-4cu-2")]


def test_platforms_failed_or_empty_are_told(platforms: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> list[Any]:
        raise cl_error(cl.status_code.OUT_OF_HOST_MEMORY, "clGetDeviceIDs")

    def fail_to_start() -> list[Any]:
        raise cl_error(-5, "clGetPlatformIDs", cl.LogicError)

    platforms.append(platform("NVIDIA CUDA"))
    with pytest.raises(EnvironmentFault, match=r"no OpenCL device: .*pip install 'crosscast\[opencl\]'"):
        devices()
    platforms.append(SimpleNamespace(name="Broken", get_devices=fail))
    with pytest.raises(EnvironmentFault, match="the OpenCL platform 'Broken' does not list its devices"):
        devices()
    monkeypatch.setattr(cl, "get_platforms", fail_to_start)
    with pytest.raises(EnvironmentFault, match="OpenCL does not start on this machine"):
        devices()


def test_a_machine_without_drivers_is_told_what_to_install(tmp_path: Path) -> None:
    # The wheels bring a driver of their own, found by a variable that their import sets.
    script = (
        "import os, pyopencl\n"
        "os.environ['PYOPENCL_HOME'] = os.environ['OCL_ICD_VENDORS'] = os.environ['EMPTY']\n"
        "from crosscast.cli import main\n"
        "raise SystemExit(main(['devices']))\n"
    )
    (tmp_path / ".libs").mkdir()
    environment = {**os.environ, "EMPTY": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.returncode) == ("", 1)
    assert ran.stderr.startswith("crosscast: no OpenCL platform: ")
    assert ran.stderr.endswith("pip install 'crosscast[opencl]' brings a device that runs on the CPU\n")


def test_bus_ids_are_those_of_the_system() -> None:
    gpu = handle(pci_bus_id_nv=0x3B, pci_slot_id_nv=0x0A)
    assert OpenCLDevice("nvidia:0", "gpu", "gpu", gpu).pci_bus_id == "0000:3b:01.2"
    assert OpenCLDevice("amd:0", "gpu", "gpu", handle()).pci_bus_id is None


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (cl.status_code.DEVICE_NOT_AVAILABLE, DeviceFault, "the device failed or was lost"),
        (-9999, DeviceFault, "the device failed or was lost"),
        (cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE, DeviceFault, "not enough memory"),
        (cl.status_code.OUT_OF_RESOURCES, DeviceFault, "not enough memory"),
        (cl.status_code.INVALID_WORK_GROUP_SIZE, LaunchError, "does not fit the kernel"),
        (cl.status_code.INVALID_KERNEL_ARGS, LaunchError, "does not fit the kernel"),
    ],
)
def test_an_error_becomes_a_sentence_with_device_and_work(code: int, kind: type, reason: str) -> None:
    with pytest.raises(kind) as caught, opencl_faults("pocl:0", "lud"):
        raise cl_error(code)
    assert str(caught.value).startswith("lud on pocl:0: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


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


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ((1.0,), "^add: argument 1: expected a NumPy scalar, found float$"),
        ((1,), "^add: argument 1: expected a NumPy scalar, found int$"),
        (([1],), "^add: argument 1: expected a NumPy scalar, found list$"),
        ((np.zeros(1, np.int32),), r"^add: argument 1: expected one of the application's arrays"),
        ((Image(np.zeros((4, 4, 4), np.float32)),), "images and samplers are not measured"),
        ((), "^add: argument 1: expected 2 arguments, found 1$"),
        ((np.int32(1), np.int32(2)), "^add: argument 2: expected 2 arguments, found 3$"),
    ],
)
def test_a_wrong_argument_is_named_by_kernel_and_number(
    device: OpenCLDevice, rest: tuple[Any, ...], message: str
) -> None:
    ints = np.zeros(64, np.int32)
    queue = queue_of(device, ints)
    with pytest.raises(UnsupportedError if "images" in message else LaunchError, match=message):
        queue.launch("add", (64,), (16,), ints, *rest)
    for copy in (queue.write, queue.read):
        with pytest.raises(LaunchError, match="expected one of the application's arrays"):
            copy(np.zeros(4, np.int32))


def test_other_forms_of_programs_are_refused(device: OpenCLDevice) -> None:
    with pytest.raises(UnsupportedError, match="measuring needs OpenCL C"):
        OpenCLQueue(device, Program(b"BC\xc0\xde", form="bitcode"), [])


@pytest.mark.parametrize(("found", "left"), [(b"generic", False), (b"znver3", True)])
def test_a_cpu_that_pocl_does_not_know_gets_a_name(found: bytes, left: bool) -> None:
    texts = [ctypes.create_string_buffer(text) for text in (b"pthread", b"x86_64-unknown-linux-gnu", found)]
    description = (ctypes.c_void_p * 512)(1, None, 2**64 - 8, *map(ctypes.addressof, texts))
    handle = SimpleNamespace(
        version=f"OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-{found.decode()}",
        int_ptr=ctypes.addressof(description),
    )
    module.name_unknown_cpu(handle)
    name = ctypes.string_at(description[5] or 0)
    assert name == found if left else name.startswith(b"x86-64")


@pytest.mark.parametrize("cache", one_in(2, [None, "given"]))
def test_a_home_that_is_not_writable_leaves_pocl_working_and_nothing_behind(
    tmp_path: Path, cache: str | None
) -> None:
    # A file is no folder for root either.
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.touch()
    temporary.mkdir()
    variables = {name: text for name, text in os.environ.items() if not name.startswith(("XDG_", "POCL_"))}
    variables |= {"HOME": str(home), "TMPDIR": str(temporary)}
    variables |= {} if cache is None else {"POCL_CACHE_DIR": str(home / cache)}
    # A kernel is built and run, too: PyOpenCL keeps something of each.
    code = """
import sys
from crosscast.cli import main
from crosscast.measure.microbenchmarks.backends import OpenCLBackend
from crosscast.measure.opencl import find

code = main(["devices", "--json"])
if code == 0:
    OpenCLBackend(find()).chains("fp32", 10)
sys.exit(code)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if cache is None:
        assert done.returncode == 0, done.stderr
        assert "pocl:0" in done.stdout
    else:
        assert done.returncode == 1
        assert done.stderr == (
            "crosscast: no OpenCL device: PoCL needs a cache, and POCL_CACHE_DIR names "
            f"{home / cache}, which is not writable\n"
        )
    assert list(temporary.iterdir()) == []


def _pocl(number: int, version: str) -> OpenCLDevice:
    platform = SimpleNamespace(
        name="Portable Computing Language", version=f"OpenCL 3.0 PoCL {version}  Linux, Release"
    )
    handle = SimpleNamespace(platform=platform, name="cpu-haswell-AMD EPYC", max_compute_units=2)
    return OpenCLDevice(f"pocl:{number}", f"amd-epyc-2cu-{number}", "cpu", handle)


def test_devices_are_found_by_platform_and_name_with_others_there(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = _pocl(0, "3.0-rc2"), _pocl(1, "6.0")
    name = "haswell-amd-epyc-2cu"
    monkeypatch.setattr(module, "devices", lambda: [one, other])
    assert find("pocl:1") is other
    assert find(f"pocl-3.0-rc2:{name}") is one
    assert selected([f"pocl-6.0:{name}", "pocl:1"]) == [other]
    with pytest.raises(InputError, match=r"one device, found that of pocl:0 \(.* PoCL 3.0-rc2 .*pocl:1 \("):
        find(f"pocl:{name}")
    monkeypatch.setattr(module, "devices", lambda: [other])
    assert find(f"pocl:{name}") is other
    assert f"expected one of pocl:1, or a platform and a name such as pocl:{name}" in refusal(find, "pocl:7")
