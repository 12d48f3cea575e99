"""An application in a mix, in the process that runs it."""

from __future__ import annotations

import math
import time
from statistics import median
from typing import Any

from crosscast.measure.cpu_counters import Counters
from crosscast.measure.opencl import find, opencl_faults
from crosscast.measure.processes import CoRunJob, Orders, Send
from crosscast.measure.session import no_garbage_collection, warmed_up
from crosscast.measure.subjects import load
from crosscast.suite.application import check_result

_TELL_S = 0.01
"""Jobs are told so often at most, as telling takes time too."""


class CoRunner:
    """An application that runs beside others: gets ready, and does what is ordered."""

    def __init__(self, job: CoRunJob, orders: Orders, send: Send) -> None:
        self._orders = orders
        self._send = send
        self._counters = job.counters
        self._loaded = load(job.subject)
        self._device = find(job.device)
        self._queue = warmed_up(self._loaded, self._device, job.warmups)
        self._has_run = False
        send(answer={"memory_bytes": self._loaded.application.nbytes})

    def serve(self) -> None:
        """Do what is ordered until there are no more orders."""
        while (order := self._orders.next()) is not None:
            do = getattr(self, order.pop("do"))
            self._send(answer=do(**order))

    def count(self, seconds: float) -> int:
        """Tell how many runs take so long together."""
        times_s: list[float] = []
        with self._faults(), no_garbage_collection():
            now = start = time.monotonic()
            while now - start < seconds or not times_s:
                before = now
                self._run()
                now = time.monotonic()
                times_s.append(now - before)
        # The median, as whatever else this machine does disturbs some of them.
        return max(math.ceil(seconds / median(times_s)), 1)

    def round(self, at: float, runs: int) -> tuple[float, float]:
        """Do one job from a moment on; tell when it started and ended."""
        with self._faults(), no_garbage_collection():
            start = _wait_until(at)
            for _ in range(runs):
                self._run()
            return start, time.monotonic()

    def loop(self, at: float, runs: int) -> dict[str, float]:
        """Do jobs from a moment on until the next order; tell each, and at last the counters of a run."""
        done = 0
        jobs: list[tuple[float, float, float]] = []
        with self._faults(), no_garbage_collection(), Counters(self._counters) as counters:
            told = _wait_until(at)
            while not self._orders.waiting():
                start, cpu_s = time.monotonic(), time.process_time()
                for _ in range(runs):
                    self._run()
                    done += 1
                    if self._orders.waiting():
                        break
                else:
                    end = time.monotonic()
                    jobs.append((start, end, time.process_time() - cpu_s))
                    if end - told >= _TELL_S:
                        self._send(jobs=jobs)
                        jobs, told = [], end
        self._send(jobs=jobs)
        self._orders.next()
        return {name: value / done for name, value in counters.values.items()} if done else {}

    def check(self) -> None:
        """Check the result of what ran."""
        if not self._has_run:
            return
        check_result(self._loaded.application)
        self._has_run = False
        with self._faults():
            # Else the next check would pass with what is there now.
            self._queue.spoil()

    def _run(self) -> None:
        self._has_run = True
        self._queue.complete(self._loaded.application.run)

    def _faults(self) -> Any:
        return opencl_faults(self._device.id, self._loaded.name)


def _wait_until(at: float) -> float:
    """Wait; return the time then."""
    time.sleep(max(at - time.monotonic(), 0))
    return time.monotonic()
