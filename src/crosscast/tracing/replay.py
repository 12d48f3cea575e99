"""Replays of launches from a trace, and comparisons of their memory with the device's."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from crosscast.arrays import AnyArray
from crosscast.characterization import default_local_size, frontend
from crosscast.characterization.launchfiles import Header, inlined
from crosscast.characterization.value_types import CHANNEL_ORDERS, CHANNEL_TYPES, ValueType
from crosscast.errors import InputError, UnsupportedError
from crosscast.kernel import CHANNELS, Addressing, Image, Kernel, Launch, Local, Program, Sampler

if TYPE_CHECKING:
    from crosscast.kernel import Argument, Parameter
    from crosscast.tracing.trace import ProgramRecord, TracedArgument, TracedMemory, TracedProcess

# By OpenCL's names
_ORDERS = {number: name for name, number in CHANNEL_ORDERS.items()}
_CHANNELS = {number: kind for kind, number in CHANNEL_TYPES.items()}
_ADDRESSING: dict[int, Addressing] = dict(enumerate(get_args(Addressing), 0x1130))
_LINEAR = 0x1141
_NOT_STORED = {
    -2: "its memory was over the limits (--max-bytes, --max-seconds)",
    -3: "OpenCL refused to read its memory",
}
_DEEPEST = 20


@dataclass(frozen=True)
class Replay:
    """A launch of a trace to run again."""

    launch: Launch
    doubts: tuple[str, ...] = ()  # Possible differences from the program's launch, as sentences


def replay_of(process: TracedProcess, row: int) -> Replay:
    """Return the launch of a row; `UnsupportedError` if the trace lacks a part of it."""
    launches = process.launches
    record = process.kernels[int(launches["kernel"][row])]
    if launches["result"][row]:
        raise UnsupportedError.of(
            where=record.name, problem=f"the launch failed with {launches['result'][row]}"
        )
    if record.indirect:
        raise UnsupportedError.of(
            where=record.name, problem="its memory has pointers to more memory (clSetKernelExecInfo)"
        )
    program = _program(process, record.program)
    kernel = frontend.load_kernel(Kernel(program, record.name))
    parameters = kernel.parameters
    args = process.arguments[int(launches["args"][row])]
    if len(args) != len(parameters):
        raise UnsupportedError.of(
            where=record.name, problem=f"{len(args)} arguments for {len(parameters)} parameters"
        )
    _refuse_overlaps(process, args, record.name)
    snapshots = process.launch_snapshots.get(row, ([], []))[0]
    arguments = _Arguments(process, record.name, snapshots)
    values = tuple(arguments.value(index, args[index], each) for index, each in enumerate(parameters))
    extent, local, offset = process.sizes[int(launches["sizes"][row])]
    doubts: list[str] = []
    if not local:
        required = kernel.required_local_size
        local = required[: len(extent)] if required else default_local_size(extent)
        doubts.append("the program left the local size to the driver")
    uneven = any(size % each for size, each in zip(extent, local, strict=True))
    if uneven and program.standard.startswith("1"):
        program = Program(program.content, program.form, program.path, program.options, "2.0")
    return Replay(Launch(Kernel(program, record.name), extent, local, values, offset), tuple(doubts))


def _program(process: TracedProcess, number: int, depth: int = 0) -> Program:
    record = process.programs.get(number)
    if record is None:
        raise UnsupportedError("its program is not known")
    if record.form == "linked":
        return _linked(process, record.parts, depth + 1)
    if record.form != "source" or not record.file:
        what = {"binary": "a binary", "il": "SPIR-V", "builtin": "built into the driver"}
        raise UnsupportedError(f"its program is {what.get(record.form, record.form)}, and not a source")
    path, content = _source_of(process, record)
    build = record.build
    options = _options(build.options, Path(build.folder)) if build else ()
    if build and build.headers:
        content = _with_headers(process, content.decode("utf-8", "replace"), build.headers).encode()
    folders = (f"-I{build.folder}",) if build and b"#include" in content.replace(b" ", b"") else ()
    return Program(content, "opencl-c", path, (*options, *folders))


def _source_of(process: TracedProcess, record: ProgramRecord) -> tuple[Path, bytes]:
    path = process.path.parent / record.file
    try:
        return path, path.read_bytes()
    except OSError as error:
        raise InputError.of(where=path, problem=f"cannot be read ({error.strerror})") from error


def _linked(process: TracedProcess, parts: Sequence[int], depth: int) -> Program:
    """Concatenate sources with equal build options."""
    if depth > _DEEPEST:
        raise UnsupportedError("its program is linked from itself")
    programs = [_program(process, part, depth) for part in parts]
    if not programs or len({(each.options, each.standard) for each in programs}) > 1:
        raise UnsupportedError("its program is linked from parts with different options")
    first = programs[0]
    content = b"\n".join(dict.fromkeys(each.content for each in programs))
    return Program(content, first.form, first.path, first.options, first.standard)


def _with_headers(process: TracedProcess, text: str, headers: dict[str, int]) -> str:
    """Inline the headers that the program passed in memory into a source."""

    def find(name: str, quoted: bool, of: str) -> Header | None:
        del quoted, of
        if name not in headers:
            return None
        record = process.programs.get(headers[name])
        if record is None or not record.file:
            raise UnsupportedError(f"its header {name} is not known")
        return name, _source_of(process, record)[1].decode("utf-8", "replace")

    return inlined(text, find, "its source")


def _options(text: str, folder: Path) -> tuple[str, ...]:
    """Return build options for our compiler, without those of vendors' drivers."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UnsupportedError(f"its build options cannot be read: {text!r}") from error
    options: list[str] = []
    for word in words:
        if options and options[-1] in ("-D", "-U", "-I", "-x"):
            options[-1] += word
        else:
            options.append(word)
    supported = []
    for option in options:
        if option.startswith("-I"):
            supported.append(f"-I{folder / option[2:].strip()}")
        elif option.startswith(("-D", "-U", "-O", "-w", "-W", "-cl-")) and not option.startswith(
            ("-cl-nv-", "-cl-intel-", "-cl-amd-", "-cl-kernel-arg-info", "-Werror", "-WI,", "-Wf,", "-Wb,")
        ):
            supported.append(option)
    return tuple(supported)


def _refuse_overlaps(process: TracedProcess, args: Sequence[TracedArgument], name: str) -> None:
    """Refuse overlapping parts of one buffer, which a replay would hold separately."""
    memories = [process.memories[arg] for arg in args if type(arg) is int and arg in process.memories]
    spans = {(memory.root, memory.origin, memory.origin + memory.size) for memory in memories}
    for (root, _, end), (other, start, _) in itertools.pairwise(sorted(spans)):
        if root == other and start < end:
            raise UnsupportedError.of(
                where=name, problem="two of its arguments are overlapping parts of one buffer"
            )


class _Arguments:
    """Arguments of a launch; memory that is passed twice becomes one array."""

    def __init__(self, process: TracedProcess, kernel: str, snapshots: Sequence[int]) -> None:
        self._process = process
        self._kernel = kernel
        self._snapshots = snapshots
        self._known: dict[tuple[object, ...], Argument] = {}

    def value(self, index: int, arg: TracedArgument, parameter: Parameter) -> Argument:
        """Return an argument of the replay, by its index."""
        if arg is False:
            raise self._refused(parameter, "was never set")
        if parameter.kind == "local":
            if not isinstance(arg, list) or len(arg) != 1:
                raise self._refused(parameter, "is no local memory")
            return Local(int(arg[0]))
        if parameter.kind == "sampler":
            return self._sampler(arg, parameter)
        if parameter.kind == "value":
            if not isinstance(arg, str):
                raise self._refused(parameter, "is no value")
            return _value(bytes.fromhex(arg), parameter)
        if arg is None or (isinstance(arg, str) and not any(bytes.fromhex(arg))):
            return None
        if type(arg) is int and arg in self._process.memories:
            memory = self._process.memories[arg]
            key = memory.root, memory.origin, memory.size, parameter.kind == "image"
            if key not in self._known:
                data = self._content(index, memory.size, parameter)
                self._known[key] = (
                    _image(memory, data) if parameter.kind == "image" else _typed(data, parameter.type_name)
                )
            return self._known[key]
        if isinstance(arg, list) and arg[:1] == ["v"]:
            return self._shared(index, arg, parameter)
        raise self._refused(parameter, "is memory that is not known")

    def _shared(self, index: int, arg: list[int | str], parameter: Parameter) -> Argument:
        """Return shared virtual memory, from the passed pointer to its end."""
        _, number, offset, size = arg
        for other in self._known:
            if other[0] == "v" and other[1] == number and other[2] != offset:
                raise self._refused(parameter, "points into memory that another argument points into")
        key = ("v", number, offset)
        if key not in self._known:
            data = self._content(index, int(size), parameter)[int(offset) :].copy()
            self._known[key] = _typed(data, parameter.type_name)
        return self._known[key]

    def _sampler(self, arg: TracedArgument, parameter: Parameter) -> Sampler:
        number = arg[1] if isinstance(arg, list) and arg[:1] == ["s"] else None
        record = self._process.samplers.get(number) if isinstance(number, int) else None
        if record is None or record.addressing not in _ADDRESSING:
            raise self._refused(parameter, "is a sampler that is not known")
        return Sampler(_ADDRESSING[record.addressing], record.filter == _LINEAR, bool(record.normalized))

    def _content(self, index: int, size: int, parameter: Parameter) -> npt.NDArray[np.uint8]:
        number = self._snapshots[index] if index < len(self._snapshots) else None
        if number is None:
            raise UnsupportedError.of(where=self._kernel, problem="its memory was not kept")
        if number == -1:  # never written, so its content is undefined
            if size > _MOST_ZEROS:
                raise UnsupportedError.of(
                    where=self._kernel, problem=f"a buffer of {size} bytes is more than memory holds"
                )
            return np.zeros(size, np.uint8)
        if number < 0:
            raise self._refused(parameter, f"is not there: {_NOT_STORED.get(number, 'unknown')}")
        if number not in self._process.snapshots:
            raise self._refused(parameter, "is not there: the program ended before it was read")
        data = np.frombuffer(self._process.snapshot(number), np.uint8)
        if len(data) != size:
            raise self._refused(parameter, f"has {len(data)} bytes, where {size} were expected")
        return data.copy()

    def _refused(self, parameter: Parameter, why: str) -> UnsupportedError:
        return UnsupportedError.of(where=self._kernel, problem=f"argument {parameter.name} {why}")


_MOST_ZEROS = 64 << 30


def _typed(data: npt.NDArray[np.uint8], type_name: str) -> AnyArray:
    """View bytes as numbers of the type that the parameter points to, if it is known."""
    kind = ValueType.find(type_name)
    if kind is None or kind.pointer != "*":
        return data
    rest = -data.size % kind.nbytes
    return (np.append(data, np.zeros(rest, np.uint8)) if rest else data).view(kind.dtype)


def _value(data: bytes, parameter: Parameter) -> Argument:
    """Return a number, or the numbers of a vector, if the type is known; else bytes, as of a structure."""
    kind = ValueType.find(parameter.type_name)
    if kind is None or kind.pointer or parameter.indirect or len(data) % kind.dtype.itemsize:
        return data
    numbers = np.frombuffer(data, kind.dtype)
    return numbers[0] if kind.width == len(numbers) == 1 else numbers.copy()


def _image(memory: TracedMemory, data: npt.NDArray[np.uint8]) -> Image:
    if memory.image is None:
        raise UnsupportedError("an image is expected, and a buffer was passed")
    _, order, channel, width, height, depth, layers, _ = memory.image
    if order not in _ORDERS or channel not in _CHANNELS:
        raise UnsupportedError(f"images of channel order {order:#x} and type {channel:#x} are not known")
    kind, normalized = _CHANNELS[channel]
    channels = CHANNELS[_ORDERS[order]]
    shape = [extent for extent in (layers or depth, height, width) if extent]
    shape += [channels] if channels > 1 else []
    expected = math.prod(shape) * np.dtype(kind).itemsize
    if expected != len(data):
        raise UnsupportedError(f"an image has {len(data)} bytes, where {expected} were expected")
    array = data.view(kind).reshape(shape)
    return Image(np.ascontiguousarray(array), _ORDERS[order], normalized, bool(layers))


@dataclass(frozen=True)
class ReplayComparison:
    """Differences between the memory after a replay and after the launch on the device."""

    values: int  # Compared values
    differing: int
    largest: float  # Relative difference of floating-point numbers

    @property
    def verdict(self) -> Literal["equal", "rounding", "different", "not compared"]:
        """The comparison in a word."""
        if not self.values:
            return "not compared"
        if not self.differing:
            return "equal"
        return "rounding" if self.largest <= _ROUNDING else "different"


_ROUNDING = 1e-3


def compared(process: TracedProcess, row: int, launch: Launch) -> ReplayComparison:
    """Compare the memory after a replay with that after the launch on the device."""
    values = differing = 0
    largest = 0.0
    types = [each.type_name for each in frontend.parameters(launch.kernel.program, launch.kernel.name)]
    for number, argument, type_name in zip(
        process.launch_snapshots.get(row, ([], []))[1], launch.args, types, strict=False
    ):
        if number < 0 or number not in process.snapshots or not isinstance(argument, np.ndarray | Image):
            continue
        replayed = (argument.array if isinstance(argument, Image) else argument).reshape(-1)
        content = np.frombuffer(process.snapshot(number), np.uint8)
        size = min(replayed.nbytes, content.size) // replayed.itemsize
        left, right = replayed[:size], content[: size * replayed.itemsize].view(replayed.dtype)
        if (kind := ValueType.find(type_name)) and kind.width == 3:
            # The fourth element of a vector of three is undefined.
            defined = np.arange(size) % 4 != 3
            left, right, size = left[defined], right[defined], int(defined.sum())
        unequal = left != right
        if replayed.dtype.kind == "f":
            unequal &= ~(np.isnan(left) & np.isnan(right))
        values += size
        differing += int(unequal.sum())
        if unequal.any():
            largest = max(largest, _difference(left, right))
    return ReplayComparison(values, differing, largest)


def _difference(left: AnyArray, right: AnyArray) -> float:
    """Return the largest difference of floating-point numbers, relative to the largest number."""
    if left.dtype.kind != "f" or not (np.isfinite(left) == np.isfinite(right)).all():
        return float("inf")
    finite = np.isfinite(left)
    scale = float(np.abs(right[finite].astype(float)).max(initial=0)) or 1.0
    return float(np.abs(left[finite].astype(float) - right[finite].astype(float)).max(initial=0)) / scale
