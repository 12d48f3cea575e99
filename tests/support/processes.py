"""Watching other processes."""

import time
from collections.abc import Callable
from pathlib import Path

NOTE = "Path(f'{__file__}.{os.getpid()}').touch()"
"""Statement of a driver that notes its process."""

_MOST_S = 60.0


def noted(folder: Path) -> list[int]:
    """Ids of the processes that a driver noted."""
    return [int(path.suffix[1:]) for path in folder.glob("driver.py.*")]


def is_gone(pid: int) -> bool:
    """Whether a process has ended, even if nobody has asked for its code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(happens: Callable[[], bool]) -> None:
    """Wait until something happens; fail if it does not for a long time."""
    end = time.monotonic() + _MOST_S
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.01)
