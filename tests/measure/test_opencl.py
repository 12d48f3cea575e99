"""Devices as they are found and named, and kernels that are built, run and timed on them."""

import ctypes
import os
import subprocess
import sys
from functools import partial
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


def test_parts_of_a_cpu_have_the_compute_units_that_their_ids_say() -> None:
    cpus = [device for device in devices() if device.type == "cpu"]
    parts = [device for device in cpus if "/" in device.id]
    most = max(device.compute_units for device in cpus)
    assert {device.compute_units for device in parts} == {1 << i for i in range(12) if 1 << i < most}
    for device in cpus:
        assert device.id.partition("/")[2] in ("", str(device.compute_units))
        assert device.key.endswith(f"-{device.compute_units}cu")


def test_devices_are_numbered_within_their_platform_and_have_bus_ids(platforms: list[Any]) -> None:
    known = {"pci_bus_id_nv": 0x3B, "pci_slot_id_nv": 0x0A}
    platforms += [
        platform("NVIDIA CUDA", *(handle("Tesla(R) K40m", **bus) for bus in ({}, known)), handle("GTX 1080")),
        platform("A new thing", handle("x", kind=cl.device_type.ACCELERATOR)),
    ]
    found = [(device.id, device.key, device.type) for device in devices()]
    assert found == [
        ("nvidia:0", "tesla-k40m", "gpu"),
        ("nvidia:1", "tesla-k40m-2", "gpu"),
        ("nvidia:2", "gtx-1080", "gpu"),
        ("a-new-thing:0", "x", "accelerator"),
    ]
    assert [device.pci_bus_id for device in devices()[:2]] == [None, "0000:3b:01.2"]


def test_a_cpu_that_cannot_be_parted_is_one_device(platforms: list[Any]) -> None:
    def refuse(properties: list[int]) -> list[Any]:
        raise cl_error(cl.status_code.DEVICE_PARTITION_FAILED, "clCreateSubDevices")

    cpu = partial(handle, "pthread-EPYC", 4, cl.device_type.CPU)
    by_counts = [cl.device_partition_property.BY_COUNTS]
    claims = cpu(create_sub_devices=refuse, partition_properties=by_counts)
    platforms.append(platform("Portable Computing Language", cpu(), claims))
    found = [(device.id, device.key) for device in devices()]
    assert found == [("pocl:0", "epyc-4cu"), ("pocl:1", "epyc-4cu-2")]


def test_platforms_failed_or_empty_are_told(platforms: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(code: int, kind: type[Exception]) -> list[Any]:
        raise cl_error(code, "clGetDeviceIDs", kind)

    def told() -> str:
        with pytest.raises(EnvironmentFault) as caught:
            devices()
        return str(caught.value)

    platforms.append(platform("NVIDIA CUDA"))
    assert told().startswith("no OpenCL device: ") and "pip install 'crosscast[opencl]'" in told()
    broken = partial(fail, cl.status_code.OUT_OF_HOST_MEMORY, cl.RuntimeError)
    platforms.append(SimpleNamespace(name="Broken", get_devices=broken))
    assert told().startswith("the OpenCL platform 'Broken' does not list its devices")
    monkeypatch.setattr(cl, "get_platforms", partial(fail, -5, cl.LogicError))
    assert told().startswith("OpenCL does not start on this machine")


def test_a_machine_without_drivers_is_told_what_to_install(tmp_path: Path) -> None:
    # The wheels bring a driver of their own, found by a variable that their import sets.
    script = (
        "import os, pyopencl\n"
        "os.environ['PYOPENCL_HOME'] = os.environ['OCL_ICD_VENDORS'] = os.environ['EMPTY']\n"
        "from crosscast.cli import main\n"
        "raise SystemExit(main(['devices']))\n"
    )
    (tmp_path / ".libs").mkdir()
    ran = run_script(script, {**os.environ, "EMPTY": str(tmp_path)})
    assert (ran.stdout, ran.returncode) == ("", 1)
    assert ran.stderr.startswith("crosscast: no OpenCL platform: ")
    assert ran.stderr.endswith("pip install 'crosscast[opencl]' brings a device that runs on the CPU\n")


def run_script(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
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


DEVICE = devices()[0]


def queue_of(*arrays: Array) -> OpenCLQueue:
    return OpenCLQueue(DEVICE, Program(SOURCE), arrays)


def test_arguments_of_every_kind_arrive() -> None:
    ints, sums = np.ones(64, np.int32), np.zeros(4, np.int32)
    reals, flag = np.zeros(2, np.float32), np.zeros(1, np.int32)
    queue = queue_of(ints, sums, reals, flag)
    queue.write(ints, sums)
    ints[:] = 0
    queue.launch("add", (64,), (16,), ints, np.int32(5))
    queue.launch("sums", (64,), (16,), ints, sums, Local(64))
    queue.launch("spread", (1,), (1,), reals, np.int32(3).tobytes() + np.float32(0.5).tobytes())
    queue.launch("ask", (1,), (1,), None, flag)
    queue.read(sums, reals, flag)
    assert (sums.tolist(), reals.tolist(), flag.tolist()) == ([6 * 16] * 4, [3, 0.5], [1])


def test_a_compiler_that_refuses_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(CompileError, match=rf"<source>: the compiler of {DEVICE.id} refuses it: .*oops"):
        OpenCLQueue(DEVICE, Program(b"kernel void k(global int *a) { a[0] = oops; }"), [])
    assert not list(tmp_path.iterdir())


def test_files_beside_the_source_can_be_included(tmp_path: Path) -> None:
    (tmp_path / "two.h").write_text("#define TWO 2\n")
    (tmp_path / "k.cl").write_text('#include "two.h"\nkernel void k(global int *a) { a[0] = TWO; }\n')
    out = np.zeros(1, np.int32)
    queue = OpenCLQueue(DEVICE, Program.from_file(tmp_path / "k.cl"), [out])
    queue.launch("k", (1,), (1,), out)
    queue.read(out)
    assert out[0] == 2


def test_other_kernels_arrays_and_programs_are_refused() -> None:
    queue = queue_of()
    with pytest.raises(LaunchError, match=r"kernel 'minus': expected one of .*add"):
        queue.launch("minus", (1,), (1,))
    for copy in (queue.write, queue.read):
        assert "expected one of the application's arrays" in refusal(copy, np.zeros(4, np.int32))
    with pytest.raises(UnsupportedError, match="measuring needs OpenCL C"):
        OpenCLQueue(DEVICE, Program(b"BC\xc0\xde", form="bitcode"), [])


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ((1.0,), "^add: argument 1: expected a NumPy scalar, found float$"),
        ((np.zeros(1, np.int32),), r"^add: argument 1: expected one of the application's arrays"),
        ((Image(np.zeros((4, 4, 4), np.float32)),), "images and samplers are not measured"),
        ((), "^add: argument 1: expected 2 arguments, found 1$"),
        ((np.int32(1), np.int32(2)), "^add: argument 2: expected 2 arguments, found 3$"),
    ],
)
def test_a_wrong_argument_is_named(rest: tuple[Any, ...], message: str) -> None:
    ints = np.zeros(64, np.int32)
    with pytest.raises(InputError, match=message):
        queue_of(ints).launch("add", (64,), (16,), ints, *rest)


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
def test_a_home_that_is_not_writable_leaves_pocl_working(tmp_path: Path, cache: str | None) -> None:
    # A file is no folder for root either.
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.touch()
    temporary.mkdir()
    variables = {name: text for name, text in os.environ.items() if not name.startswith(("XDG_", "POCL_"))}
    variables |= {"HOME": str(home), "TMPDIR": str(temporary)}
    variables |= {} if cache is None else {"POCL_CACHE_DIR": str(home / cache)}
    # A kernel is built and run, too: PyOpenCL keeps something of each.
    script = (
        "from crosscast.cli import main\n"
        "from crosscast.measure.microbenchmarks import OpenCLBackend\n"
        "from crosscast.measure.opencl import find\n"
        "raise SystemExit(main(['devices', '--json']) or not OpenCLBackend(find()).chains('fp32', 10))\n"
    )
    done = run_script(script, variables)
    if cache is None:
        assert "pocl:0" in done.stdout, done.stderr
    else:
        assert done.returncode == 1
        why = f"POCL_CACHE_DIR names {home / cache}, which is not writable"
        assert done.stderr == f"crosscast: no OpenCL device: PoCL needs a cache, and {why}\n"
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
    assert selected(["pocl:1", "all", "pocl:1"]) == [other, one]
    assert "device 'abacus:0': expected one of pocl:0, pocl:1, or all" in refusal(selected, ["abacus:0"])
    assert "or all" not in refusal(find, "all")
    assert "the name of one device, found that of pocl:0 (" in refusal(find, f"pocl:{name}")
    monkeypatch.setattr(module, "devices", lambda: [other])
    assert find(f"pocl:{name}") is other
    assert f"expected one of pocl:1, or a platform and a name such as pocl:{name}" in refusal(find, "pocl:7")
