"""Signals to a command that fits in several processes: none of them outlives it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

DONE_S = 2.0
STARTED_S = 60.0


def children_of(parent: int) -> set[int]:
    """Processes below one, at any depth."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(after_name[1])
    found = {parent}
    while more := {each for each, above in parents.items() if above in found} - found:
        found |= more
    return found - {parent}


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
@pytest.mark.parametrize(
    ("sent", "code", "said"),
    [
        (signal.SIGINT, 130, "crosscast: interrupted\n"),
        (signal.SIGTERM, 143, "crosscast: terminated\n"),
        (signal.SIGKILL, -signal.SIGKILL, ""),
    ],
    ids=["SIGINT", "SIGTERM", "SIGKILL"],
)
def test_no_process_outlives_a_command(sent: signal.Signals, code: int, said: str) -> None:
    words = ["evaluate", "time", "bundled", "--models", "combined", "--jobs", "2", "--no-cache"]
    command = subprocess.Popen(
        [sys.executable, "-m", "crosscast", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + STARTED_S
    while len(children := children_of(command.pid)) < 2:
        assert command.poll() is None, command.communicate()
        assert time.monotonic() < deadline, "no processes were started"
        time.sleep(0.1)
    # They are at work: interpreters that start know nothing of their parent yet.
    time.sleep(3)
    children |= children_of(command.pid)
    os.kill(command.pid, sent)
    sent_at = time.monotonic()
    while (left := [each for each in (command.pid, *children) if alive(each)]) and (
        time.monotonic() < sent_at + DONE_S
    ):
        command.poll()
        time.sleep(0.05)
    assert not left
    _, errors = command.communicate(timeout=5)
    assert command.returncode == code
    assert errors.endswith(said)
