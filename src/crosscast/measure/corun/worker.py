"""What a process is told: lines on a file, one an order."""

from __future__ import annotations

import json
import math
import os
import select
import sys
import time
from statistics import median
from typing import Any

from crosscast.measure.cpu_counters import Counters
from crosscast.measure.opencl import find, opencl_faults
from crosscast.measure.processes import Send, SessionJob, answering
from crosscast.measure.session import no_garbage_collection, warmed_up
from crosscast.measure.subjects import load
from crosscast.suite.application import check_result

_CHUNK = 1 << 16


class Orders:
    """Orders, each a line of JSON."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._held = b""
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def line(self) -> str | None:
        """The next line, waited for; ``None`` if there will be none."""
        while b"\n" not in self._held:
            chunk = os.read(self._descriptor, _CHUNK)
            if not chunk:
                return None
            self._held += chunk
        line, _, self._held = self._held.partition(b"\n")
        return line.decode()

    def next(self) -> dict[str, Any] | None:
        """The next order, waited for; ``None`` if there will be none."""
        line = self.line()
        return None if line is None else dict(json.loads(line))

    def waiting(self) -> bool:
        """Whether there is one, or there will be none: quick, as it is asked after every run."""
        return bool(self._held) or bool(self._poll.poll(0))


_TELL_S = 0.01
"""Jobs are told so often at most, as telling takes time too."""


def serve(job: SessionJob, orders: Orders, send: Send) -> None:
    """Get ready, and do what is ordered until there are no more orders."""
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


def main() -> int:
    """Serve the process of the id in `sys.argv`, as standard input orders; return the exit code."""
    with answering(int(sys.argv[1])) as send:
        from crosscast.measure.processes import SessionJob, read_job

        orders = Orders(sys.stdin.fileno())
        job = read_job(orders.line() or "")
        assert isinstance(job, SessionJob)
        serve(job, orders, send)
    return 0


if __name__ == "__main__":
    sys.exit(main())
