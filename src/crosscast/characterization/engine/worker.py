"""The worker process, and the children that it forks: each runs one instrumented kernel.

Started as a script with nothing but the standard library. A child loads the kernel's
shared library and calls the runtime. Whatever the kernel does happens there.
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
    """Fork a child for each job that comes, one after another, until the other end of the socket closes.

    A job is some descriptors, the first for errors. The child ends with what `handle` returns for the others.
    """
    parent = socket.socket(fileno=0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.disable()  # it would write to memory that children share with this process
    while head := parent.recv(8, socket.MSG_WAITALL):
        (count,) = struct.unpack("<Q", head)
        given: list[int] = []
        while len(given) < count:
            given += socket.recv_fds(parent, 1, count)[1]
        alive, end = os.pipe()
        child = os.fork()
        if not child:
            parent.close()
            os._exit(_child(handle, *given))
        os.close(end)
        for fd in given:
            os.close(fd)
        code = _wait(parent, alive, child)
        os.close(alive)
        parent.sendall(struct.pack("<q", code))


def _wait(parent: socket.socket, alive: int, child: int) -> int:
    """Exit code of the child, which ends if the parent is gone."""
    ready, _, _ = select.select([parent.fileno(), alive], [], [])
    if alive not in ready:
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _child(handle: Handler, errors: int, *given: int) -> int:
    """Do a job in a process of its own."""
    libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
    os.dup2(errors, 2)
    try:
        return handle(given)
    except (OSError, ValueError, KeyError) as error:
        os.write(2, f"{type(error).__name__}: {error}".encode())
        return _FAILED


def _run(given: Sequence[int]) -> int:
    """Run the library that the first file holds, with the others."""
    # Not `ctypes.CDLL`, which makes a class for each library: every launch would wait for it.
    library = libc.dlopen(f"/proc/self/fd/{given[0]}".encode(), _RTLD_NOW)
    if not library:
        raise OSError(libc.dlerror().decode())
    files = array("i", given[1:])
    return int(_ENTRY(libc.dlsym(library, b"cc_run"))(files.buffer_info()[0], library))


if __name__ == "__main__":
    for name in ("libm.so.6", "libc.so.6"):
        ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    main(_run)
