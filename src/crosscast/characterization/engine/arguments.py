"""Arguments of a launch: checked against the kernel's parameters, and laid out in shared memory."""

from __future__ import annotations

import itertools
import mmap
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from crosscast.arrays import AnyArray
from crosscast.characterization.engine.layout import ARGUMENT_BYTES, CONSTANTS, ResultLayout
from crosscast.characterization.value_types import ValueType, pack_descriptor, sampler_bits
from crosscast.errors import EnvironmentFault, LaunchError
from crosscast.kernel import Argument, Image, Launch, Local, Parameter, Sampler

_STAGGER = 1024  # buffers that all start at a page boundary would compete for the same cache sets
_LARGE = 1 << 24
"""Bytes of a buffer from which on faults of small pages cost more than a few unused pages."""
_shared: dict[int, SharedBuffer] = {}
"""Buffers of arrays from `shared_empty`, by address; without their data, which would keep them alive."""


@dataclass(frozen=True)
class SharedBuffer:
    """Memory in an anonymous file, so that a child process can map it."""

    fd: int  # File descriptor
    offset: int  # Offset of the data in the file
    nbytes: int  # Size of the data
    data: npt.NDArray[np.uint8]  # The data in this process, as bytes

    @property
    def mapped_nbytes(self) -> int:
        """Size of the file."""
        return self.offset + max(self.nbytes, 1)


_serial = itertools.count()


def _create(nbytes: int, number: int, content: AnyArray | None = None) -> tuple[SharedBuffer, mmap.mmap]:
    offset = _STAGGER * (number % 4)
    try:
        fd = os.memfd_create("crosscast-buffer", os.MFD_CLOEXEC)
        os.truncate(fd, offset + max(nbytes, 1))
        if content is not None:  # Written, as pages of a mapping would be cleared first, one by one
            _write(fd, content.reshape(-1).view(np.uint8).data, offset)
        mapped = mmap.mmap(fd, offset + max(nbytes, 1))
        if nbytes >= _LARGE:
            mapped.madvise(mmap.MADV_HUGEPAGE)
    except (OSError, ValueError) as error:
        raise EnvironmentFault(f"cannot allocate a buffer of {nbytes} bytes: {error}") from error
    weakref.finalize(mapped, os.close, fd)
    return SharedBuffer(fd, offset, nbytes, np.frombuffer(mapped, np.uint8, nbytes, offset)), mapped


def shared_empty(shape: int | Sequence[int], dtype: npt.DTypeLike) -> AnyArray:
    """Return an array of zeros that a kernel can use as a buffer without a copy."""
    element = np.dtype(dtype)
    buffer, mapped = _create(int(np.prod(shape, dtype=np.int64)) * element.itemsize, next(_serial))
    address = _address(buffer.data)
    _shared[address] = replace(buffer, data=np.empty(0, np.uint8))
    weakref.finalize(mapped, _shared.pop, address, None)
    return buffer.data.view(element).reshape(shape)


def _write(fd: int, content: memoryview, offset: int) -> None:
    while content:
        written = os.pwrite(fd, content, offset)
        content, offset = content[written:], offset + written


def _shared_buffer(array: AnyArray, number: int) -> tuple[SharedBuffer, bool]:
    """Return shared memory with the content of a launch's buffer, and whether it is the array's memory.

    A copy's offset in its page depends on `number`, so that runs are reproducible.
    """
    same = _shared.get(_address(array))
    if same is not None and array.flags.c_contiguous and array.nbytes == same.nbytes:
        return replace(same, data=array.reshape(-1).view(np.uint8)), True
    return _create(array.nbytes, number, np.ascontiguousarray(array))[0], False


def _address(array: AnyArray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


@contextmanager
def memory_file(name: str, content: bytes = b"", nbytes: int = 0) -> Iterator[int]:
    """Yield the descriptor of an anonymous file with `content` or `nbytes` zeros."""
    try:
        fd = os.memfd_create(name, os.MFD_CLOEXEC)
    except OSError as error:
        raise EnvironmentFault(f"cannot make a file in memory: {error}") from error
    try:
        if nbytes:
            os.truncate(fd, nbytes)
        _write(fd, memoryview(content), 0)
        yield fd
    finally:
        os.close(fd)


DATA_ADDRESS = 0x2000_0000_0000
"""Start of buffers in the child, fixed so that pointers are reproducible."""

ARGUMENTS_ADDRESS = 0x1F00_0000_0000
_GAP = 1 << 21


@dataclass
class Placed:
    """A buffer at its address in the child."""

    position: int
    kind: Literal["buffer", "image"]
    address: int
    shared: SharedBuffer
    copied_from: AnyArray | None


@dataclass
class Memory:
    """Memory of one launch."""

    placed: list[Placed] = field(default_factory=list)  # Buffers and images, by ascending address
    packed: bytearray = field(default_factory=bytearray)  # The argument block
    low: int = DATA_ADDRESS  # Address range of all buffers
    high: int = DATA_ADDRESS
    local_bytes: int = 0  # Local memory of a work-group, for variables and arguments
    # (position, offset, size) of the local arguments
    locals: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return sum(p.shared.nbytes for p in self.placed)


def same_buffers(launch: Launch) -> tuple[tuple[int, ...], ...]:
    """Return groups of positions of arguments that are the same array."""
    groups: dict[tuple[int, int], list[int]] = {}
    spans: list[tuple[int, int, int]] = []
    for position, argument in enumerate(launch.args):
        if isinstance(argument, np.ndarray) and argument.nbytes and argument.ndim:
            low, high = np.lib.array_utils.byte_bounds(argument)
            groups.setdefault((low, high), []).append(position)
            spans.append((low, high, position))
    spans.sort()
    for (low, high, a), (start, end, b) in itertools.pairwise(spans):
        if start < high and (low, high) != (start, end):
            raise LaunchError.of(
                where=launch.kernel.name,
                problem=(
                    f"arguments {min(a, b)} and {max(a, b)} overlap in memory; expected the same "
                    "array or separate ones"
                ),
            )
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def three(sizes: Sequence[int], filler: int) -> tuple[int, int, int]:
    """Pad sizes to three dimensions."""
    first, second, third = (*sizes, *[filler] * (3 - len(sizes)))
    return first, second, third


def group_counts(launch: Launch) -> tuple[int, int, int]:
    """Return the number of work-groups in each of three dimensions; the last one may be smaller."""
    sizes = zip(launch.global_size, launch.local_size, strict=True)
    return three([-(-global_ // local) for global_, local in sizes], 1)


def lay_out(
    launch: Launch,
    parameters: Sequence[Parameter],
    local_variables: int,
    is_accessed: Callable[[int], bool],
) -> Memory:
    """Check all arguments and lay them out."""
    name = launch.kernel.name
    if len(launch.args) != len(parameters):
        declared = ", ".join(f"{p.type_name} {p.name}" for p in parameters)
        raise LaunchError.of(
            where=name, expected=f"{len(parameters)} arguments ({declared})", found=len(launch.args)
        )
    block = ARGUMENT_BYTES * max(len(parameters), 1)
    packer = _Packer(Memory(packed=bytearray(block), local_bytes=local_variables), is_accessed)
    for position, (argument, parameter) in enumerate(zip(launch.args, parameters, strict=True)):
        where = f"{name}: argument {position} ({parameter.type_name} {parameter.name})"
        data = packer.pack(position, argument, parameter, where)
        if len(data) > ARGUMENT_BYTES:
            data = packer.beside(data)
        start = ARGUMENT_BYTES * position
        packer.memory.packed[start : start + len(data)] = data
    return packer.memory


_OPAQUE: dict[str, tuple[type[Local | Image | Sampler], str]] = {
    "local": (Local, "local memory"),
    "image": (Image, "an image"),
    "sampler": (Sampler, "a sampler"),
}
"""Type of the argument for some kinds of parameters."""


def _word(value: int) -> bytes:
    return value.to_bytes(8, "little")


@dataclass(frozen=True)
class _Packer:
    memory: Memory
    is_accessed: Callable[[int], bool]
    known: dict[int, Placed] = field(default_factory=dict)

    def beside(self, data: bytes) -> bytes:
        """Append data behind the argument block; return their address as a word for the block."""
        packed = self.memory.packed
        packed += bytes(-len(packed) % 128)
        address = ARGUMENTS_ADDRESS + len(packed)
        packed += data
        return _word(address)

    def pack(self, position: int, argument: Argument, parameter: Parameter, where: str) -> bytes:
        if parameter.kind in _OPAQUE:
            kind, expected = _OPAQUE[parameter.kind]
            if not isinstance(argument, kind):
                raise LaunchError.of(where=where, expected=expected, found=f"{_describe(argument)}")
            return self._opaque(position, argument)
        if parameter.kind == "value":
            data = _value_bytes(argument, parameter, where)
            return self.beside(data) if parameter.indirect else data
        return _word(self._buffer(position, argument, parameter, where))

    def _opaque(self, position: int, argument: Local | Image | Sampler) -> bytes:
        if isinstance(argument, Sampler):
            return _word(sampler_bits(argument))
        if isinstance(argument, Image):
            placed = self._place(position, argument.array, "image")
            return self.beside(pack_descriptor(argument, placed.address))
        offset = self.memory.local_bytes
        self.memory.locals.append((position, offset, argument.nbytes))
        self.memory.local_bytes += -(-argument.nbytes // 1024) * 1024
        return _word(offset)

    def _buffer(self, position: int, argument: Argument, parameter: Parameter, where: str) -> int:
        if argument is None:
            return 0
        if isinstance(argument, Image) and parameter.type_name == "cc_texels*":  # of a texture object
            return self._place(position, argument.array, "buffer").address
        if not isinstance(argument, np.ndarray):
            raise LaunchError.of(where=where, expected="an array", found=f"{_describe(argument)}")
        _check_elements(argument, parameter, where)
        if argument.size:
            return self._place(position, argument, "buffer").address
        if self.is_accessed(position):
            raise LaunchError.of(
                where=where, expected="at least one element, as the kernel accesses it; found an empty array"
            )
        return 0

    def _place(self, position: int, array: AnyArray, kind: Literal["buffer", "image"]) -> Placed:
        address = _address(array)
        if address not in self.known:
            memory = self.memory
            shared, is_same = _shared_buffer(array, len(memory.placed))
            start = memory.high + shared.offset
            self.known[address] = Placed(position, kind, start, shared, None if is_same else array)
            memory.placed.append(self.known[address])
            # With a page before it: addresses of other buffers must not depend on its offset in the page.
            end = memory.high + CONSTANTS["PAGE"] + max(shared.nbytes, 1)
            memory.high = -(-end // _GAP) * _GAP + _GAP
        return self.known[address]


def _describe(argument: Argument) -> str:
    match argument:
        case None:
            return "a null buffer"
        case np.ndarray():
            return f"an array of {argument.dtype}"
        case np.generic():
            return f"a value of type {argument.dtype}"
        case bytes():
            return f"{len(argument)} bytes"
    return type(argument).__name__


def _check_elements(array: AnyArray, parameter: Parameter, where: str) -> None:
    if array.dtype.hasobject or not array.dtype.isnative:
        raise LaunchError.of(
            where=where, expected="plain numbers in this machine's byte order", found=f"{array.dtype}"
        )
    kind = ValueType.find(parameter.type_name)
    if kind is None or kind.pointer != "*" or array.dtype.names:
        return  # structures, void and pointers to pointers: any bytes are accepted
    # Recorded arguments of a type that the program defines are bytes.
    is_recorded = parameter.is_named and array.dtype == np.uint8
    if not is_recorded and not kind.is_held_by(array.dtype):
        raise LaunchError.of(where=where, expected=f"elements of {kind.scalar}", found=f"{array.dtype}")
    if array.nbytes % kind.nbytes:
        raise LaunchError.of(
            where=where, expected=f"a multiple of {kind.nbytes} bytes", found=f"{array.nbytes} bytes"
        )


def _value_bytes(argument: Argument, parameter: Parameter, where: str) -> bytes:
    if isinstance(argument, np.ndarray | np.generic):
        kind = ValueType.find(parameter.type_name)
        if kind is not None and not kind.pointer and not argument.dtype.names:
            if not kind.is_held_by(argument.dtype):
                raise LaunchError.of(
                    where=where, expected=f"a value of {kind.scalar}", found=f"{argument.dtype}"
                )
            if kind.width == argument.size == 3:
                argument = np.append(argument, argument.dtype.type(0))
        elif kind is None and argument.size == 4 and parameter.size == 3 * argument.itemsize:
            argument = np.ravel(argument)[:3]  # CUDA's vectors of three have no fourth component
        argument = argument.tobytes()
    if not isinstance(argument, bytes):
        raise LaunchError.of(
            where=where, expected="a value, as a NumPy scalar", found=f"{_describe(argument)}"
        )
    if len(argument) != parameter.size:
        raise LaunchError.of(where=where, expected=f"{parameter.size} bytes", found=len(argument))
    return argument


def snapshot(memory: Memory, layout: ResultLayout) -> dict[int, bytes]:
    """Copy the buffers that a run changes in place, in case it has to be repeated."""
    return {
        placed.position: placed.shared.data.tobytes()
        for placed in memory.placed
        if placed.copied_from is None and layout.parameters[placed.position].is_written
    }


def restore(memory: Memory, before: dict[int, bytes]) -> None:
    """Restore the buffers of a `snapshot`."""
    for placed in memory.placed:
        if placed.position in before:
            placed.shared.data[:] = np.frombuffer(before[placed.position], np.uint8)


def copy_back(memory: Memory) -> None:
    """Copy the output back to arrays that were copied into buffers."""
    for placed in memory.placed:
        array = placed.copied_from
        if array is not None and array.flags.writeable:
            array[...] = placed.shared.data.view(array.dtype).reshape(array.shape)
