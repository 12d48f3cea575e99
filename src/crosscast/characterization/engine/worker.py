"""The worker process, and the children that it forks: each runs one instrumented kernel.

Started as a script with nothing but the standard library. A child maps the buffers where the parent says,
loads the kernel's shared library and calls the runtime. Whatever the kernel does happens there.
"""

from __future__ import annotations

import base64
import ctypes
import gc
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

_PROT_RW = 3
_SHARED, _PRIVATE, _ANONYMOUS, _NORESERVE = 0x01, 0x02, 0x20, 0x4000
_POPULATE, _FIXED_NOREPLACE = 0x8000, 0x100000
_MADV_HUGEPAGE = 14
_PR_SET_PDEATHSIG = 1
_PAGE = 4096
_HUGE_PAGE = 1 << 21
# Data and counters must not stand at the same distance from a page boundary: the processor would
# take a load for one that depends on the store before it.
_COUNTER_OFFSET = 5 * _PAGE + 9 * 64
_CANNOT_MAP = 6
_FAILED = 1

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
    *(ctypes.c_int, ctypes.c_int, ctypes.c_long),
]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def _map(address: int, nbytes: int, flags: int, fd: int = -1) -> int:
    found = libc.mmap(address or None, nbytes, _PROT_RW, flags, fd, 0)
    if found in (None, ctypes.c_void_p(-1).value) or (address and found != address):
        print(os.strerror(ctypes.get_errno()), file=sys.stderr)
        os._exit(_CANNOT_MAP)
    return int(found)


def _map_private(nbytes: int) -> int:
    address = _map(0, nbytes, _PRIVATE | _ANONYMOUS | _NORESERVE)
    libc.madvise(address, nbytes, _MADV_HUGEPAGE)
    return address


def _words(values: list[int]) -> Any:
    return (ctypes.c_uint64 * max(len(values), 1))(*(v & 0xFFFFFFFFFFFFFFFF for v in values))


def _variables(library: Any, variables: list[tuple[str, list[int]]]) -> list[list[int]]:
    """Regions of the program's variables, where the library was loaded."""
    found = []
    for name, (_, *rest) in variables:
        try:
            address = ctypes.addressof(ctypes.c_char.in_dll(library, name))
        except ValueError:  # nothing uses it
            continue
        found.append([address, *rest])
    return found


Handler = Callable[[dict[str, Any], dict[int, int]], int]


def main(handle: Handler) -> None:
    """Fork a child for each job that comes, one after another, until the other end of the socket closes.

    The child ends with what `handle` returns for the job and its descriptors.
    """
    parent = socket.socket(fileno=0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.disable()  # it would write to memory that children share with this process
    while head := parent.recv(16, socket.MSG_WAITALL):
        nbytes, count = struct.unpack("<QQ", head)
        given: list[int] = []
        while len(given) < count:
            given += socket.recv_fds(parent, 1, count)[1]
        job = json.loads(parent.recv(nbytes, socket.MSG_WAITALL))
        alive, end = os.pipe()
        child = os.fork()
        if not child:
            parent.close()
            os._exit(_child(handle, job, given))
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


def _child(handle: Handler, job: dict[str, Any], given: list[int]) -> int:
    """Run a job in a process of its own; what goes wrong is told on the job's standard error."""
    libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
    own = dict(zip(job["descriptors"], given, strict=True))
    os.dup2(own[job["stderr_fd"]], 2)
    try:
        return handle(job, own)
    except (OSError, ValueError, KeyError) as error:
        os.write(2, f"{type(error).__name__}: {error}".encode())
        return _FAILED


def _run(job: dict[str, Any], own: dict[int, int]) -> int:
    for buffer in job["buffers"]:
        _map(buffer["address"], buffer["nbytes"], _SHARED | _POPULATE | _FIXED_NOREPLACE, own[buffer["fd"]])
    library = ctypes.CDLL(f"/proc/self/fd/{own[job['library_fd']]}")
    _place_arguments(job)
    variables = _variables(library, job["variables"])
    regions = sorted([*job["regions"], *variables])
    locals_, shifts = _map_threads(job, variables)
    tables = {
        "regions": _words([word for region in regions for word in region]),
        "shifts": _words(shifts),
        "locals": _words(locals_),
        "in_memory": _words(job["in_memory"]),
        "weights": _words(job["weights"]),
    }
    values = dict(job["words"])
    values.update({name: own[values[name]] for name in ("result_fd", "print_fd")})
    values.update({name: ctypes.addressof(table) for name, table in tables.items()})
    values.update(
        threads=job["threads"],
        n_regions=len(regions),
        n_in_memory=len(job["in_memory"]),
        status=_map(0, os.fstat(own[job["status_fd"]]).st_size, _SHARED, own[job["status_fd"]]),
        args=job["arguments_address"],
        local_bytes=job["local_bytes"],
        next_group=0,
        next_share=0,
    )
    _limit_memory(job)
    packed = _words([values[name] for name in job["order"]])
    return int(library.cc_run(packed))


def _place_arguments(job: dict[str, Any]) -> None:
    arguments = base64.b64decode(job["arguments"])
    flags = _PRIVATE | _ANONYMOUS | _FIXED_NOREPLACE
    address = _map(job["arguments_address"], max(len(arguments), 1), flags)
    ctypes.memmove(address, arguments, len(arguments))


def _map_threads(job: dict[str, Any], variables: list[list[int]]) -> tuple[list[int], list[int]]:
    """Map each thread's local memory and counters.

    Returns
    -------
    tuple
        Address of each thread's local memory; and for each thread the distances from buffers, from
        variables and from local memory to their counters, and from buffers' addresses divided by 4 to the
        small ones.
    """
    low = min((start for start, *_ in variables), default=0)
    high = max((start + nbytes for start, nbytes, *_ in variables), default=0)
    locals_: list[int] = []
    shifts: list[int] = []
    for _ in range(job["threads"]):
        shifts.append(_map_counters(job["data_low"], job["data_high"]))
        shifts.append(_map_counters(low, high))
        local = _map_private(job["local_bytes"] + _PAGE)
        locals_.append(local)
        shifts.append(_map_counters(local, local + job["local_bytes"]))
        shifts.append(_map_counters(job["data_low"] // 4, job["data_high"] // 4))
    return locals_, shifts


def _map_counters(low: int, high: int) -> int:
    """Map the counters of a range of addresses, and return their distance from it.

    Huge pages begin where buffers do, so that no two buffers have counters in the same one.
    """
    start = _map_private(high - low + 4 * _COUNTER_OFFSET + 2 * _HUGE_PAGE)
    return (start + _HUGE_PAGE - 1) // _HUGE_PAGE * _HUGE_PAGE + low % _HUGE_PAGE + _COUNTER_OFFSET - low


def _limit_memory(job: dict[str, Any]) -> None:
    """Allow what the runtime maps itself, and no more."""
    with open("/proc/self/statm") as handle:  # noqa: PTH123 - pathlib is not imported here, for start-up time
        now = int(handle.read().split()[0]) * _PAGE
    words = job["words"]
    carried = 4096 * words["private_bytes"] + words["live_bytes"]
    per_thread = (1 << 29) + words["histories"] * (3 << 20) + carried
    limit = now + job["threads"] * per_thread + (1 << 31)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    for name in ("libm.so.6", "libc.so.6"):
        ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    main(_run)
