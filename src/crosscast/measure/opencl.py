"""OpenCL devices of this machine, and kernels on them: found, built, run and timed."""

from __future__ import annotations

import ctypes
import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, NoReturn

import numpy as np

from crosscast.arrays import AnyArray
from crosscast.data.files import cache_home, is_writable, temporary_cache
from crosscast.errors import (
    CompileError,
    CrosscastError,
    DeviceFault,
    EnvironmentFault,
    InputError,
    LaunchError,
    MissingExtraError,
    UnsupportedError,
)
from crosscast.kernel import Argument, Image, Local, Program, Sampler
from crosscast.measure import host_state
from crosscast.suite.application import NO_BUFFER, expect_arguments

try:
    import pyopencl as cl
except ImportError as error:
    raise MissingExtraError("opencl", "measuring on OpenCL devices") from error

TIMES_COMMANDS = cl.command_queue_properties.PROFILING_ENABLE
"""Property of a queue whose commands the device times."""


_POCL = "Portable Computing Language"
_SHORT_NAMES = {
    _POCL: "pocl",
    "NVIDIA CUDA": "nvidia",
    "AMD Accelerated Parallel Processing": "amd",
    "Intel(R) OpenCL": "intel",
    "Intel(R) OpenCL Graphics": "intel-graphics",
    "rusticl": "rusticl",
    "Apple": "apple",
}
_TYPES = (
    (cl.device_type.CPU, "cpu"),
    (cl.device_type.GPU, "gpu"),
    (cl.device_type.ACCELERATOR, "accelerator"),
)
_NO_PLATFORM = -1001  # Code of CL_PLATFORM_NOT_FOUND_KHR


@dataclass(frozen=True)
class OpenCLDevice:
    """A device, or some compute units of one."""

    # Name on the command line of this machine: platform, number, and for a part of a device its compute
    # units, as in `pocl:0` and `pocl:0/1`
    id: str
    key: str  # Name in tables: the model, and for CPUs the compute units
    type: str  # `cpu`, `gpu` or `accelerator`
    handle: Any  # A `pyopencl.Device`; `None` for a device of another machine

    @cached_property
    def name(self) -> str:
        """Name from the driver, without the prefixes of PoCL."""
        return _model(self.handle)

    @cached_property
    def compute_units(self) -> int:
        """Compute units."""
        return int(self.handle.max_compute_units)

    @cached_property
    def platform(self) -> str:
        """Name and version of its platform."""
        return " ".join(f"{self.handle.platform.name} {self.handle.platform.version}".split())

    @cached_property
    def driver(self) -> str:
        """Version of its driver."""
        return str(self.handle.driver_version)

    @cached_property
    def timer_resolution_s(self) -> float:
        """Resolution of its timer, in seconds."""
        return float(self.handle.profiling_timer_resolution * 1e-9)

    @cached_property
    def pci_bus_id(self) -> str | None:
        """Bus id such as ``0000:3b:00.0``; ``None`` if the driver does not have it."""
        try:
            bus, slot = int(self.handle.pci_bus_id_nv), int(self.handle.pci_slot_id_nv)
        except (cl.Error, AttributeError):
            return None
        domain = int(getattr(self.handle, "pci_domain_id_nv", 0))
        return f"{domain:04x}:{bus:02x}:{slot >> 3:02x}.{slot & 7:x}"


def devices() -> list[OpenCLDevice]:
    """Return all devices; for each CPU also sub-devices of 1, 2, 4, ... compute units."""
    all_devices: list[OpenCLDevice] = []
    numbers: Counter[str] = Counter()
    for platform in _platforms():
        short = _short_name(platform.name)
        for handle in _handles(platform):
            all_devices.extend(_with_parts(handle, f"{short}:{numbers[short]}"))
            numbers[short] += 1
    if not all_devices:
        cache = os.environ.get(_POCL_CACHE)
        if cache is not None and not is_writable(Path(cache)):
            raise EnvironmentFault(
                f"no OpenCL device: PoCL needs a cache, and {_POCL_CACHE} names {cache}, "
                "which is not writable"
            )
        raise EnvironmentFault(
            "no OpenCL device: the OpenCL platforms of this machine have none; "
            "pip install 'crosscast[opencl]' brings one that runs on the CPU"
        )
    return list(_with_distinct_keys(all_devices))


def find(name: str | None = None) -> OpenCLDevice:
    """Return a device by id, or by platform and name such as ``pocl:amd-epyc-2cu``; by default the first."""
    available = devices()
    return available[0] if name is None else _named(name, available)


def selected(names: list[str]) -> list[OpenCLDevice]:
    """Return devices by the names that `find` takes, or ``all``."""
    available = devices()
    chosen: dict[str, OpenCLDevice] = {}
    for name in names:
        matches = available if name == "all" else [_named(name, available, ", or all")]
        chosen.update((each.id, each) for each in matches)
    return list(chosen.values())


def _named(name: str, available: Sequence[OpenCLDevice], alternative: str = "") -> OpenCLDevice:
    for device in available:
        if device.id == name:
            return device
    matches = [device for device in available if name in _full_names(device)]
    if len(matches) > 1:
        of = ", ".join(f"{each.id} ({each.platform})" for each in matches)
        raise InputError.of(
            where=f"device {name!r}", expected="the name of one device", found=f"that of {of}"
        )
    if not matches:
        raise InputError.of(
            where=f"device {name!r}",
            expected=(
                f"one of {', '.join(each.id for each in available)}{alternative}, or a "
                f"platform and a name such as {next(iter(_full_names(available[0])))}"
            ),
        )
    return matches[0]


def _full_names(device: OpenCLDevice) -> tuple[str, ...]:
    """Return names that do not depend on other drivers; the second one distinguishes versions of PoCL."""
    short, model = _short_name(device.handle.platform.name), _slug(device.name)
    model += f"-{device.compute_units}cu" if device.type == "cpu" else ""
    version = re.search(r"PoCL (\d[\w.-]*)", device.platform)
    return (f"{short}:{model}", *([f"{short}-{version[1]}:{model}"] if version else []))


_POCL_CACHE = "POCL_CACHE_DIR"


def _give_caches() -> None:
    """Give PoCL and PyOpenCL, which need caches, a temporary folder if the user's is not writable."""
    try:
        if is_writable(cache_home().parent / "pocl" / "kcache"):
            return
    except RuntimeError:
        pass  # This user has no home folder.
    os.environ["XDG_CACHE_HOME"] = str(temporary_cache())


def _platforms() -> list[cl.Platform]:
    _give_caches()
    try:
        return list(cl.get_platforms())
    except cl.LogicError as error:
        if error.code != _NO_PLATFORM:
            raise EnvironmentFault(f"OpenCL does not start on this machine ({error})") from error
        raise EnvironmentFault(
            "no OpenCL platform: expected a driver in /etc/OpenCL/vendors or PoCL, found none; "
            "pip install 'crosscast[opencl]' brings a device that runs on the CPU"
        ) from error


def _handles(platform: cl.Platform) -> list[cl.Device]:
    try:
        handles = list(platform.get_devices())
        if platform.name == _POCL:
            for handle in handles:
                name_unknown_cpu(handle)
        return handles
    except cl.Error as error:
        raise EnvironmentFault(
            f"the OpenCL platform {platform.name!r} does not list its devices ({error}); "
            "OCL_ICD_VENDORS can name a folder without it"
        ) from error


_CPU_LEVELS: tuple[tuple[set[str], bytes], ...] = (
    ({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}, b"x86-64-v4"),
    ({"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"}, b"x86-64-v3"),
    ({"sse4_1", "sse4_2", "ssse3", "popcnt", "cx16"}, b"x86-64-v2"),
    (set(), b"x86-64"),
)
"""Flags of a CPU, and LLVM's name for CPUs with these flags."""
_CPU_NAME = ctypes.create_string_buffer(16)
_POCL_DEVICE_BYTES = 1024
"""Lower bound on the size of PoCL's description of a device, in which triple and CPU are near the start."""


def name_unknown_cpu(handle: Any) -> None:
    """Set the name of the CPU in PoCL if its LLVM does not know it, as with every newer CPU.

    PoCL then uses 'generic', which its compiler refuses for x86, whatever the build options say (its issue
    1049). The name follows the triple in the device's description, and is read at each build.
    """
    if not handle.version.endswith("-generic"):
        return
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        # Reading the file fails for an invalid address; dereferencing a pointer would crash.
        def starts(address: int, text: bytes) -> bool:
            try:
                return os.pread(memory.fileno(), len(text), address) == text
            except (OSError, OverflowError):
                return False

        words = memoryview(os.pread(memory.fileno(), _POCL_DEVICE_BYTES, handle.int_ptr)).cast("Q")
        for index, (triple, cpu) in enumerate(pairwise(words), 1):
            if starts(triple, b"x86_64-") and starts(cpu, b"generic\0"):
                flags = host_state.cpu_flags()
                _CPU_NAME.value = next(name for needed, name in _CPU_LEVELS if needed <= flags)
                ctypes.c_void_p.from_address(handle.int_ptr + 8 * index).value = ctypes.addressof(_CPU_NAME)


def _with_parts(handle: Any, name: str) -> Iterator[OpenCLDevice]:
    kind = next((label for bit, label in _TYPES if handle.type & bit), "accelerator")
    units, slug = int(handle.max_compute_units), _slug(_model(handle))
    yield OpenCLDevice(name, f"{slug}-{units}cu" if kind == "cpu" else slug, kind, handle)
    by_counts = cl.device_partition_property.BY_COUNTS
    if kind != "cpu" or by_counts not in handle.partition_properties:
        return
    part = 1
    # Some drivers announce partitions, but cannot create them.
    with suppress(cl.Error):
        while part < units:
            handles = handle.create_sub_devices([by_counts, part, 0])
            yield OpenCLDevice(f"{name}/{part}", f"{slug}-{part}cu", kind, handles[0])
            part *= 2


def _with_distinct_keys(found_devices: list[OpenCLDevice]) -> Iterator[OpenCLDevice]:
    """Number devices of the same model from the second on."""
    seen: Counter[str] = Counter()
    for device in found_devices:
        seen[device.key] += 1
        number = seen[device.key]
        yield device if number == 1 else replace(device, key=f"{device.key}-{number}")


def _short_name(platform: str) -> str:
    return _SHORT_NAMES.get(platform, _slug(platform))


def _model(handle: cl.Device) -> str:
    return re.sub(r"^(pthread|cpu)-", "", " ".join(str(handle.name).split()))


def _slug(text: str) -> str:
    """Lower-case words joined by hyphens.

    >>> _slug("Intel(R) Core(TM) i7-6700K CPU @ 4.00GHz")
    'intel-core-i7-6700k-cpu-4.00ghz'
    """
    text = re.sub(r"\((r|tm|c)\)", " ", text.lower())
    return re.sub(r"[^a-z0-9.]+", "-", text).strip("-")


_STATUS = cl.status_code
_LAUNCH = frozenset(
    getattr(_STATUS, f"INVALID_{what}")
    for what in (
        *("KERNEL_ARGS", "ARG_INDEX", "ARG_VALUE", "ARG_SIZE", "KERNEL_NAME"),
        *("WORK_DIMENSION", "WORK_GROUP_SIZE", "WORK_ITEM_SIZE", "GLOBAL_WORK_SIZE", "GLOBAL_OFFSET"),
    )
)
_MEMORY = frozenset(
    getattr(_STATUS, what)
    for what in (
        *("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES"),
        *("OUT_OF_HOST_MEMORY", "INVALID_BUFFER_SIZE"),
    )
)


@contextmanager
def opencl_faults(device: str, what: str) -> Iterator[None]:
    """Raise errors of OpenCL as those of Crosscast."""
    try:
        yield
    except cl.Error as error:
        kind: type[CrosscastError] = DeviceFault
        reason = "the device failed or was lost"
        if error.code in _LAUNCH:
            kind, reason = LaunchError, "the launch does not fit the kernel or the device"
        elif error.code in _MEMORY:
            reason = "the device has not enough memory or resources"
        raise kind(f"{what} on {device}: {reason} ({' '.join(str(error).split())})") from error


_NS_PER_S = 1e9
_START, _END = cl.profiling_info.START, cl.profiling_info.END


class RunTimes(NamedTuple):
    """Times of one run of an application."""

    kernels_s: dict[str, list[float]]  # Device time of each invocation, by kernel, in order
    transfer_s: float  # Device time of all copies
    host_s: float  # Host time from the first command to the end of the last
    started_s: float  # Start in seconds since 1970-01-01 UTC


class OpenCLQueue:
    """An in-order queue with profiling; arrays stand for buffers of their size."""

    def __init__(self, device: OpenCLDevice, program: Program, arrays: Sequence[AnyArray]) -> None:
        if program.form != "opencl-c":
            raise UnsupportedError.of(
                where=program.label,
                problem=(
                    f"measuring needs OpenCL C, which the device's own compiler reads; found {program.form}"
                ),
            )
        self._arrays = list(arrays)
        with opencl_faults(device.id, program.label):
            self._context = cl.Context([device.handle])
            self._queue = cl.CommandQueue(self._context, device.handle, properties=TIMES_COMMANDS)
            self._program = built(self._context, device, program)
            self._buffers = _Buffers({id(array): self._buffer(array) for array in arrays})
        self._kernels: dict[str, cl.Kernel] = {}
        self._launches: list[tuple[str, cl.Event]] = []
        self._copies: list[cl.Event] = []

    def write(self, *arrays: AnyArray) -> None:
        """Copy arrays to their buffers."""
        for array in arrays:
            self._copies.append(cl.enqueue_copy(self._queue, self._buffers[id(array)], array))

    def read(self, *arrays: AnyArray) -> None:
        """Copy buffers into their arrays."""
        for array in arrays:
            self._copies.append(cl.enqueue_copy(self._queue, array, self._buffers[id(array)]))

    def launch(
        self, kernel: str, global_size: tuple[int, ...], local_size: tuple[int, ...], *args: Argument
    ) -> None:
        """Enqueue a launch."""
        entry = self._kernels.get(kernel)
        if entry is None:
            entry = self._kernels[kernel] = self._kernel(kernel)
        buffers = self._buffers
        try:
            values = [buffers.get(id(arg)) or _value(kernel, arg) for arg in args]
            self._launches.append((kernel, entry(self._queue, global_size, local_size, *values)))
        except TypeError:
            # Raised by pyopencl and `_value` for a wrong argument; checked here, outside the measured path.
            expect_arguments(kernel, args, self._arrays, entry.num_args)
            raise

    def complete(self, run: Callable[[OpenCLQueue], None]) -> None:
        """Call a function that enqueues commands, and wait until they have ended.

        Errors of OpenCL are left to the caller's `opencl_faults`.
        """
        self._launches, self._copies = [], []
        run(self)
        self._queue.finish()

    def timed(self, run: Callable[[OpenCLQueue], None]) -> RunTimes:
        """Call a function that enqueues commands, and return the times of these.

        Called in the measuring loop, so errors of OpenCL are left to the caller's `opencl_faults`.
        """
        started, start = time.time(), time.perf_counter()
        self.complete(run)
        host = time.perf_counter() - start
        times: dict[str, list[float]] = {}
        for kernel, event in self._launches:
            times.setdefault(kernel, []).append(duration_s(event))
        return RunTimes(times, sum(map(duration_s, self._copies)), host, started)

    def spoil(self) -> None:
        """Overwrite all buffers, so that results must be computed anew."""
        for buffer in self._buffers.values():
            cl.enqueue_fill_buffer(self._queue, buffer, np.full(1, 0xA5, np.uint8), 0, buffer.size)
        self._queue.finish()

    def _buffer(self, array: AnyArray) -> cl.Buffer:
        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, max(array.nbytes, 1))

    def _kernel(self, name: str) -> cl.Kernel:
        try:
            return cl.Kernel(self._program, name)
        except cl.LogicError as error:
            known = ", ".join(kernel.function_name for kernel in self._program.all_kernels())
            raise LaunchError.of(where=f"kernel {name!r}", expected=f"one of {known}") from error


class _Buffers(dict[int, "cl.Buffer"]):
    """Buffers by the `id` of their array."""

    def __missing__(self, array: int) -> NoReturn:
        raise LaunchError(NO_BUFFER)


def built(context: cl.Context, device: OpenCLDevice, program: Program) -> cl.Program:
    """Compile a program for a device."""
    options = [*program.options, f"-cl-std=CL{program.standard}"]
    with warnings.catch_warnings(), _include_folder(program) as folder:
        options += ["-I", folder] if folder else []
        # pyopencl warns of every output of a compiler; that of a failure is in the error.
        warnings.simplefilter("ignore")
        try:
            source = cl.Program(context, program.content.decode(errors="replace"))
            binary: cl.Program = source.build(options, [device.handle])
            return binary
        except cl.RuntimeError as error:
            log = _log(error)
            raise CompileError(f"{program.label}: the compiler of {device.id} refuses it: {log}") from error


@contextmanager
def _include_folder(program: Program) -> Iterator[str | None]:
    """Give the folder of a source with includes a path without spaces, which options of PoCL cannot have.

    Other sources have none, as drivers keep what they have compiled by the source and all options.
    """
    path = program.path if b"include" in program.content else None
    folder = None if path is None else str(path.parent.absolute())
    if folder is None or " " not in folder:
        yield folder
        return
    with TemporaryDirectory() as temporary:
        link = Path(temporary) / "include"
        link.symlink_to(folder)
        yield str(link)


def _log(error: Exception) -> str:
    """Return the compiler's output in a line, and remove pyopencl's copy of the source."""
    text, _, saved = str(error).partition("\n(source saved as ")
    if saved:
        Path(saved.rstrip(")")).unlink(missing_ok=True)
    return " ".join(text.split())


def _value(kernel: str, arg: Argument) -> Any:
    if isinstance(arg, np.generic):
        return arg
    if isinstance(arg, Local):
        return cl.LocalMemory(arg.nbytes)
    if isinstance(arg, Image | Sampler):
        raise UnsupportedError.of(where=kernel, problem="images and samplers are not measured")
    if isinstance(arg, bytes):
        return np.frombuffer(arg, np.uint8)
    if arg is not None:
        raise TypeError(type(arg))
    return arg


def duration_s(event: Any) -> float:
    """Return the device time of an ended event, of a queue with profiling, in seconds."""
    # event.profile takes longer, and this is in the measuring loop.
    query = event.get_profiling_info
    return float((query(_END) - query(_START)) / _NS_PER_S)
