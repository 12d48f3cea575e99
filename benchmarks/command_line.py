"""How the benchmarks start the command line of the Crosscast that they import, and measure its memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import crosscast


def crosscast_command(*arguments: str) -> list[str]:
    """Command that does what ``crosscast`` does with these arguments."""
    return [sys.executable, "-m", "crosscast", *arguments]


def environment(**variables: str) -> dict[str, str]:
    """This process's environment, in which the same Crosscast is found, and these variables."""
    package = Path(crosscast.__file__).parent.parent
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, **variables}


_PERIOD_S = 0.003
MEMORY_PER_BUFFER_BYTE = 3
MEMORY_BASE_BYTES = 120_000_000


@dataclass(frozen=True)
class Peak:
    """What a command took, and what it printed."""

    nbytes: int  # Most memory at one moment: the sum over its processes, pages that they share counted once
    status: int  # Exit status
    stdout: str
    stderr: str

    @property
    def last_words(self) -> str:
        """Last line on stderr."""
        return (self.stderr.strip().splitlines() or ["it said nothing"])[-1]


def measure_peak(command: Sequence[str], variables: Mapping[str, str]) -> Peak:
    """Run a command and measure its peak memory.

    The processes are sampled every few milliseconds; a peak of one process that falls between two
    samples is still known from its high-water mark in the next one. (``ru_maxrss`` would not do: it
    starts from the size of the process that forked this one.)
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(command, env=dict(variables), stdout=output, stderr=messages)
        ended = threading.Event()
        samples = [0]
        sampler = threading.Thread(target=_sample, args=(process.pid, ended, samples))
        sampler.start()
        status = process.wait()
        ended.set()
        sampler.join()
        return Peak(max(samples), status, _text(output), _text(messages))


def _text(file: IO[bytes]) -> str:
    """All that was written to a file."""
    file.seek(0)
    return file.read().decode(errors="replace")


def _sample(root: int, ended: threading.Event, samples: list[int]) -> None:
    """Append the memory of a process tree to `samples` until told to end."""
    while not ended.wait(_PERIOD_S):
        processes = _tree(root)
        samples.append(sum(_field(pid, "smaps_rollup", "Pss:") for pid in processes))
        samples.append(max(_field(pid, "status", "VmHWM:") for pid in processes))


def _tree(root: int) -> list[int]:
    """A process and all its descendants; those that end meanwhile are left out."""
    found = [root]
    for pid in found:
        found.extend(child for child in _children(pid) if not _is_starting(child, pid))
    return found


def _children(pid: int) -> list[int]:
    try:
        lists = [task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [int(child) for text in lists for child in text.split()]


def _is_starting(child: int, parent: int) -> bool:
    """Whether a child has not yet begun its own program.

    Until then it has the memory of its parent (vfork), which would be counted twice.
    """
    try:
        return Path(f"/proc/{child}/cmdline").read_bytes() == Path(f"/proc/{parent}/cmdline").read_bytes()
    except OSError:
        return True


def _field(pid: int, file: str, name: str) -> int:
    """Bytes that a field of a process's ``/proc`` file tells; 0 if the process has ended."""
    try:
        text = Path(f"/proc/{pid}/{file}").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    return 0


def memory_limit(buffer_bytes: int) -> int:
    """Most bytes that a characterization may take at its peak."""
    return MEMORY_PER_BUFFER_BYTE * buffer_bytes + MEMORY_BASE_BYTES
