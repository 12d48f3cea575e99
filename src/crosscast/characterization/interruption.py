"""Ctrl-C that waits until native code has handed over what it owns.

llvmlite's wrappers note who owns an object after the native call returns; an exception raised in
between, as Ctrl-C does, frees the object twice.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruption_deferred() -> Iterator[None]:
    """Hold back SIGINT until the end of the block, and deliver it there.

    Only the main thread gets signals; elsewhere, and where SIGINT has no Python handler, this does
    nothing. May also decorate a function.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if held:
            handler(*held[0])
