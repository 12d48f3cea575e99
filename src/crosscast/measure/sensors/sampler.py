"""A thread that reads something every so often."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from crosscast.errors import SensorFault

__all__ = ["Clock", "Sampler"]

T = TypeVar("T")

Clock = Callable[[], float]
"""Tells the time in seconds since some moment, and never goes back."""


class Sampler(Generic[T]):
    """Readings at the start, at the end, and every `interval_s` seconds in between.

    Parameters
    ----------
    read
        Takes a reading; raises `SensorFault` if it cannot.
    interval_s
        Time between readings, in seconds.
    clock
        Tells when a reading was taken.
    """

    def __init__(self, read: Callable[[], T], interval_s: float, clock: Clock = time.monotonic) -> None:
        self._read = read
        self._interval_s = interval_s
        self._clock = clock
        self._samples: list[tuple[float, T]] = []
        self._ended = threading.Event()
        self._fault: SensorFault | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Forget earlier readings, take the first, and start the thread."""
        self._end_thread()
        self._samples, self._fault = [], None
        self._take()
        self._ended.clear()
        self._thread = threading.Thread(target=self._sample, name="crosscast sensor", daemon=True)
        self._thread.start()

    def so_far(self) -> list[tuple[float, T]]:
        """Readings since the start, with the time of each.

        Raises
        ------
        SensorFault
            If a reading failed.
        """
        if self._fault is not None:
            raise self._fault
        return list(self._samples)

    def stop(self) -> list[tuple[float, T]]:
        """End the thread, take the last reading, and give all of them.

        Raises
        ------
        SensorFault
            If a reading failed.
        """
        self._end_thread()
        if self._fault is None:
            self._take()
        return self.so_far()

    def _end_thread(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _take(self) -> None:
        taken = self._clock()
        self._samples.append((taken, self._read()))

    def _sample(self) -> None:
        while not self._ended.wait(self._interval_s):
            try:
                self._take()
            except SensorFault as fault:
                self._fault = fault
                return
