"""Peak memory of a command and all the processes that it starts."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

__all__ = ["Peak", "measure_peak"]

_PERIOD_S = 0.003


@dataclass(frozen=True)
class Peak:
    """What a command took.

    Parameters
    ----------
    nbytes
        Most memory at one moment: the sum over its processes, pages that they share counted once.
    status
        Exit status.
    stdout, stderr
        What it printed.
    """

    nbytes: int
    status: int
    stdout: str
    stderr: str

    @property
    def last_words(self) -> str:
        """Last line on stderr."""
        return (self.stderr.strip().splitlines() or ["it said nothing"])[-1]


def measure_peak(command: Sequence[str], environment: Mapping[str, str]) -> Peak:
    """Run a command and measure its peak memory.

    The processes are sampled every few milliseconds; a peak of one process that falls between two
    samples is still known from the kernel's own high-water mark.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(command, env=dict(environment), stdout=output, stderr=messages)
        ended = threading.Event()
        samples = [0]
        sampler = threading.Thread(target=_sample, args=(process.pid, ended, samples))
        sampler.start()
        _, wait_status, usage = os.wait4(process.pid, 0)
        ended.set()
        sampler.join()
        # Reaped here for the sake of its resource usage; subprocess must not wait for it again.
        process.returncode = os.waitstatus_to_exitcode(wait_status)
        return Peak(max(*samples, 1024 * usage.ru_maxrss), process.returncode, _text(output), _text(messages))


def _text(file: IO[bytes]) -> str:
    """All that was written to a file."""
    file.seek(0)
    return file.read().decode(errors="replace")


def _sample(root: int, ended: threading.Event, samples: list[int]) -> None:
    """Append the memory of a process tree to `samples` until told to end."""
    while not ended.wait(_PERIOD_S):
        samples.append(sum(_proportional_bytes(pid) for pid in _tree(root)))


def _tree(root: int) -> list[int]:
    """A process and all its descendants; those that end meanwhile are left out."""
    found = [root]
    for pid in found:
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                found.extend(int(child) for child in children.read_text().split())
            except OSError:
                continue
    return found


def _proportional_bytes(pid: int) -> int:
    """Resident memory of a process, shared pages divided by their users; 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return 1024 * int(line.split()[1])
    return 0
