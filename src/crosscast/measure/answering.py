"""Inside a process that answers another one in lines of JSON.

Kernels and drivers may write to standard output as they like: the answers go to a copy of it, and the
rest to standard error.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol

from crosscast.errors import CrosscastError

__all__ = ["Send", "answering"]

_PR_SET_PDEATHSIG = 1


class Send(Protocol):
    """Sends a line."""

    def __call__(self, **fields: Any) -> None:
        """Send fields as a line of JSON."""


@contextmanager
def answering(parent: int) -> Iterator[Send]:
    """Answer a process while a ``with`` block runs, and end with it, even if it is killed.

    Errors of Crosscast are answers, ``{"error": …, "message": …, "extra": …}``, and end the block. Import
    what takes long inside of it: the other process may be killed meanwhile.

    Parameters
    ----------
    parent
        Id of the process that started this one.
    """
    _end_with(parent)
    sys.excepthook = _complain
    # A kernel that crashes is no reason to write this process's memory to a file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

        def send(**fields: Any) -> None:
            answers.write(json.dumps(fields) + "\n")
            answers.flush()

        try:
            yield send
        except CrosscastError as error:
            # Of a part that is missing, also how to get it.
            extra = getattr(error, "extra", None)
            send(error=type(error).__name__, message=str(error), extra=extra)
        except MemoryError:
            send(
                error="DeviceFault", message="this machine has not enough memory for the problem", extra=None
            )


def _complain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say what a driver with a mistake raised, and at last, in the line that is shown, where."""
    from crosscast.suite.registry import place_in_driver

    sys.__excepthook__(kind, error, trace)
    said = " ".join(str(error).split())
    print(f"{kind.__name__}: {said}{place_in_driver(trace)}", file=sys.stderr)


def _end_with(parent: int) -> None:
    """Let this process end with the one that wants the answer, even if that is killed."""
    if hasattr(ctypes.CDLL(None), "prctl"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It ended before the line above.
        os.kill(os.getpid(), signal.SIGKILL)
