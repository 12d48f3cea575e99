"""A member of a bag in its process: an application that does what it is ordered.

The first line is a job (`crosscast.measure.jobs.SessionJob`); the answer is what the application takes.
Then come orders, ``{"do": …}``, each with an answer:

- ``count``: the fewest runs of the application that take ``seconds``;
- ``round``: start a job of ``runs`` runs at the time ``at``; the answer is its start and end;
- ``loop``: start at ``at``, and repeat jobs of ``runs`` runs until another order ends it. Whole
  jobs are told meanwhile, ``{"jobs": [[start, end, CPU seconds], …]}``; the answer is what the CPU counted
  a run;
- ``check``: check the result of the last run, if it has run since the last check.

Times are those of `time.monotonic`, which all processes of a machine share.
"""

from __future__ import annotations

import math
import time
from statistics import median
from typing import Any

from crosscast.measure.answering import Send
from crosscast.measure.corun.orders import Orders
from crosscast.measure.counters import Counters
from crosscast.measure.jobs import SessionJob
from crosscast.measure.loop import no_garbage_collection
from crosscast.measure.opencl.devices import find
from crosscast.measure.opencl.faults import opencl_faults
from crosscast.measure.subjects import load
from crosscast.measure.warmed_up import warmed_up
from crosscast.suite.application import check_result

__all__ = ["serve"]

_TELL_S = 0.01
"""Jobs are told so often at most, as telling takes time too."""


def serve(job: SessionJob, orders: Orders, send: Send) -> None:
    """Get ready, and do what is ordered until there are no more orders.

    Raises
    ------
    CrosscastError
        What `warmed_up` raises, also later.
    """
    member = _Member(job, orders, send)
    while (order := orders.next()) is not None:
        do = getattr(member, order.pop("do"))
        send(answer=do(**order))


class _Member:
    def __init__(self, job: SessionJob, orders: Orders, send: Send) -> None:
        self._orders = orders
        self._send = send
        self._counters = job.settings.counters
        self._loaded = load(job.subject)
        self._device = find(job.device)
        self._queue = warmed_up(self._loaded, self._device, job.settings.warmups)
        self._has_run = False
        send(answer={"memory_bytes": self._loaded.application.nbytes})

    def count(self, seconds: float) -> int:
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
        with self._faults(), no_garbage_collection():
            start = _wait_until(at)
            for _ in range(runs):
                self._run()
            return start, time.monotonic()

    def loop(self, at: float, runs: int) -> dict[str, float]:
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
