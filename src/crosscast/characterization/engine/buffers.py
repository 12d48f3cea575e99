"""Memory that this process shares with the child that runs a kernel."""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.errors import EnvironmentFault

_STAGGER = 1024  # buffers that all start at a page boundary would compete for the same cache sets
_serial = 0
_shared: dict[int, SharedBuffer] = {}


@dataclass(frozen=True)
class SharedBuffer:
    """Memory in a file without a name, so that a child process can map it too."""

    fd: int  # File descriptor
    offset: int  # Where the data starts in it
    nbytes: int  # Size of the data
    data: npt.NDArray[np.uint8]  # The data in this process, as bytes

    @property
    def mapped_nbytes(self) -> int:
        """Size of the file."""
        return self.offset + max(self.nbytes, 1)


def _create(nbytes: int) -> tuple[SharedBuffer, mmap.mmap]:
    global _serial
    offset = _STAGGER * (_serial % 4)
    _serial += 1
    try:
        fd = os.memfd_create("crosscast-buffer", os.MFD_CLOEXEC)
        os.truncate(fd, offset + max(nbytes, 1))
        mapped = mmap.mmap(fd, offset + max(nbytes, 1))
    except (OSError, ValueError) as error:
        raise EnvironmentFault(f"cannot allocate a buffer of {nbytes} bytes: {error}") from error
    data = np.frombuffer(mapped, np.uint8, nbytes, offset)
    weakref.finalize(mapped, os.close, fd)
    return SharedBuffer(fd, offset, nbytes, data), mapped


def shared_empty(shape: int | Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Array of zeros that a kernel can use as a buffer without its being copied."""
    element = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    buffer, mapped = _create(count * element.itemsize)
    address = buffer.data.__array_interface__["data"][0]
    # Not the data themselves: that would keep them for good.
    _shared[address] = SharedBuffer(buffer.fd, buffer.offset, buffer.nbytes, np.empty(0, np.uint8))
    weakref.finalize(mapped, _shared.pop, address, None)
    return buffer.data.view(element).reshape(shape)


def shared_buffer(array: npt.NDArray[Any]) -> tuple[SharedBuffer, bool]:
    """Shared memory with the content of `array`."""
    address = array.__array_interface__["data"][0]
    own = _shared.get(address)
    if own is not None and array.flags.c_contiguous and array.nbytes == own.nbytes:
        flat = array.reshape(-1).view(np.uint8)
        return SharedBuffer(own.fd, own.offset, own.nbytes, flat), True
    buffer, _ = _create(array.nbytes)
    buffer.data.view(array.dtype).reshape(array.shape)[...] = array
    return buffer, False


@contextmanager
def memory_file(name: str, content: bytes = b"", nbytes: int = 0) -> Iterator[int]:
    """Descriptor of a file without a place, that holds `content` or so many zeros."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        if nbytes:
            os.truncate(fd, nbytes)
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        yield fd
    finally:
        os.close(fd)
