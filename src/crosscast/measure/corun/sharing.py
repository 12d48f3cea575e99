"""How a device is shared by processes: what the configuration of a bag says of it."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path

__all__ = ["mps_runs", "sharing"]

_FOLDER = "CUDA_MPS_PIPE_DIRECTORY"
_DEFAULT_FOLDER = "/tmp/nvidia-mps"
_CONTROL = "control"


def sharing(
    device: str, threads: int | None = None, environment: Mapping[str, str] = os.environ
) -> dict[str, str | int]:
    """How processes share a device, and what each is limited to: settings for the configuration of a bag.

    On NVIDIA, kernels of several processes run at the same time only through the Multi-Process Service
    (MPS); else the processes take turns. Elsewhere there is one way, of which nothing need be said.

    Parameters
    ----------
    device
        Id of the device.
    threads
        Threads that each process may use; ``None`` for no limit.
    environment
        Variables of the processes that share it.
    """
    limits: dict[str, str | int] = {} if threads is None else {"threads": threads}
    if not device.startswith("nvidia:"):
        return limits
    folder = Path(environment.get(_FOLDER) or _DEFAULT_FOLDER)
    return {"sharing": "mps" if mps_runs(folder) else "time-slicing", **limits}


def mps_runs(folder: Path) -> bool:
    """Whether a control daemon of MPS listens in a folder; nothing is asked of it.

    Parameters
    ----------
    folder
        The daemon's folder of pipes.
    """
    control = folder / _CONTROL
    try:
        mode = control.stat().st_mode
        if stat.S_ISSOCK(mode):
            return _accepts(control)
        return stat.S_ISFIFO(mode) and _is_read(control)
    except OSError:
        return False


def _accepts(path: Path) -> bool:
    """Whether anybody listens on a socket, which one that was left behind does not."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as client:
            client.settimeout(1.0)
            try:
                client.connect(str(path))
            except OSError as error:
                if error.errno == errno.EPROTOTYPE:
                    continue
                # Somebody else's, or busy: it is there.
                return error.errno in (errno.EACCES, errno.EPERM, errno.EAGAIN)
            return True
    return False


def _is_read(path: Path) -> bool:
    """Whether anybody has a pipe open for reading."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EPERM)
    return True
