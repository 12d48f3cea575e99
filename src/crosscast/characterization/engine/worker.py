"""Worker process and its forked children, of which each runs one instrumented kernel.

Started as a script with only the standard library. A child loads the kernel's
shared library and calls the runtime, so that faults of the kernel are confined to it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import select
import signal
import socket
import struct
from array import array
from collections.abc import Callable, Sequence

_PR_SET_PDEATHSIG = 1
_FAILED = 1

libc = ctypes.CDLL(None)
libc.dlopen.restype = libc.dlsym.restype = ctypes.c_void_p
libc.dlsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
libc.dlerror.restype = ctypes.c_char_p
_RTLD_NOW = 2
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

Handler = Callable[[Sequence[int]], int]


def main(handle: Handler) -> None:
    """Fork a child for each job, one after another, until the other end of the socket closes.

    A job is some descriptors, the first for errors. The child exits with the result of `handle` for the
    others.
    """
    parent, worker = socket.socket(fileno=0), os.getpid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.disable()  # it would write to memory pages that children share
    while head := parent.recv(8, socket.MSG_WAITALL):
        (count,) = struct.unpack("<Q", head)
        descriptors: list[int] = []
        while len(descriptors) < count:
            descriptors += socket.recv_fds(parent, 1, count)[1]
        alive, end = os.pipe()
        child = os.fork()
        if not child:
            parent.close()
            os._exit(_child(handle, worker, *descriptors))
        os.close(end)
        for fd in descriptors:
            os.close(fd)
        code = _wait(parent, alive, child)
        os.close(alive)
        parent.sendall(struct.pack("<q", code))


def _wait(parent: socket.socket, alive: int, child: int) -> int:
    """Return the exit code of the child, which is killed if the parent is gone."""
    ready, _, _ = select.select([parent.fileno(), alive], [], [])
    if alive not in ready:
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _child(handle: Handler, worker: int, errors: int, *descriptors: int) -> int:
    """Do a job in the child of the process `worker`."""
    libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
    if os.getppid() != worker:  # It was killed before, and nobody would end this process.
        return _FAILED
    os.dup2(errors, 2)
    try:
        return handle(descriptors)
    except (OSError, ValueError, KeyError) as error:
        os.write(2, f"{type(error).__name__}: {error}".encode())
        return _FAILED


def _run(descriptors: Sequence[int]) -> int:
    """Run the library in the first file with the other files."""
    # `ctypes.CDLL` creates a class for each library, which would delay every launch.
    library = libc.dlopen(f"/proc/self/fd/{descriptors[0]}".encode(), _RTLD_NOW)
    if not library:
        raise OSError(libc.dlerror().decode())
    files = array("i", descriptors[1:])
    return int(_ENTRY(libc.dlsym(library, b"cc_run"))(files.buffer_info()[0], library))


if __name__ == "__main__":
    for name in ("libm.so.6", "libc.so.6"):
        ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    main(_run)
