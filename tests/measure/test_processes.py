"""Hearing processes: whole lines, from several, and nothing lost between."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crosscast.errors import CheckFailed, CrosscastError, DeviceFault, MissingExtraError
from crosscast.measure import processes
from crosscast.measure.opencl import devices
from crosscast.measure.subjects import Settings, SuiteProblem, identity
from support.examples import one_in
from support.processes import NOTE, is_gone, noted, wait_until

Start = Callable[[str], processes.AnsweringProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starter of processes that run statements, until the test ends."""
    begun: list[processes.AnsweringProcess] = []

    def begin(statements: str) -> processes.AnsweringProcess:
        name = f"said_{len(begun)}"
        (tmp_path / f"{name}.py").write_text(f"import os, sys, time\n{statements}\n")
        begun.append(processes.AnsweringProcess({**os.environ, "PYTHONPATH": str(tmp_path)}, name))
        return begun[-1]

    yield begin
    for process in begun:
        process.end()


def soon() -> float:
    return time.monotonic() + 60


def test_lines_that_nobody_took_are_heard_later(start: Start) -> None:
    process = start("os.write(1, b'a\\nb\\nc\\nd')")
    _, first = next(processes.messages([process], soon()))
    rest = [line for _, line in processes.messages([process], soon())]
    again = [line for _, line in processes.messages([process], soon())]
    # A line that was never ended is none.
    assert (first, rest, again) == (b"a", [b"b", b"c", None], [None])


def test_several_are_heard_each_until_it_ends(start: Start) -> None:
    talker = start("print(*range(50_000), sep='\\n')")
    echo = start("print(sys.stdin.readline(), end='')")
    silent = start("time.sleep(600)")
    echo.write("hello\n")
    lines: dict[int, list[bytes | None]] = {talker.pid: [], echo.pid: [], silent.pid: []}
    for process, line in processes.messages([talker, echo, silent], soon()):
        lines[process.pid].append(line)
        if lines[talker.pid][-1:] == lines[echo.pid][-1:] == [None]:
            break
    numbers = [*(str(number).encode() for number in range(50_000)), None]
    assert lines == {talker.pid: numbers, echo.pid: [b"hello", None], silent.pid: []}
    assert silent.runs
    silent.end()
    assert not silent.runs


def test_nobody_is_listened_to_for_longer_than_asked(start: Start) -> None:
    chatterer = start("while True: os.write(1, b'and\\n' * 100)")
    assert all(line == b"and" for _, line in processes.messages([chatterer], time.monotonic() + 0.2))


def test_telling_a_process_that_has_ended_is_no_error(start: Start) -> None:
    process = start("os.write(2, b'why\\n'); sys.exit(3)")
    assert [line for _, line in processes.messages([process], soon())] == [None]
    process.write("hello\n")
    assert str(process.crash("it")) == "it: the process that measured ended with code 3: why"


Folder = Callable[..., Path]
QUICK = Settings(min_runs=2, min_time_s=0.0, warmups=1, sensor="none")


# The device's driver may have set a handler.
DIE = "signal.signal(signal.SIGSEGV, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGSEGV)"


def problem(folder: Path) -> SuiteProblem:
    return SuiteProblem(str(folder), "tiny", {"items": 1024}, 0)


def session(folder: Path, settings: Settings = QUICK) -> processes.SessionJob:
    return processes.SessionJob(problem(folder), devices()[-1].id, settings)


def test_the_answer_is_that_of_the_process(make_application: Folder) -> None:
    noise = "os.write(1, b'{\"answer\": 1}\\n'); print('{', flush=True); os.write(2, b'noise')"
    answer = processes.run_job(session(make_application(run=noise)), 60)
    assert answer["session"]["application"] == "own"
    assert len(answer["records"]) == answer["session"]["runs"] >= 2


def test_two_characterizations_give_the_same_rows(make_application: Folder) -> None:
    job = processes.CharacterizeJob(problem(make_application()), 60)
    first, second = (processes.run_job(job, 60)["profiles"] for _ in range(2))
    assert first == second
    (row,) = first
    assert (row["application"], row["size"], row["kernel"], row["invocation"]) == ("own", "tiny", "twice", 0)
    assert row["run_s"] is None
    made_for = json.loads(str(row["launch"]))["problem"]
    assert (made_for["parameters"], made_for["seed"]) == ({"items": 1024}, 0)
    assert made_for["source_sha256"] == identity(job.subject).source_sha256
    assert '"path": "own.cl"' in str(row["program"])


DEATHS = [
    ("raise CheckFailed('first at 3')", CheckFailed, "^first at 3$"),
    ("raise KeyError('x')", DeviceFault, "the process that measured ended with code 1: KeyError: 'x'"),
    ("os.write(2, b'x\\n' * 10**6); sys.exit(3)", DeviceFault, "ended with code 3: x$"),
    ("os.kill(os.getpid(), signal.SIGKILL)", DeviceFault, "was killed by SIGKILL"),
    (DIE, DeviceFault, "SIGSEGV.*; crosscast characterize .* --check-bounds finds"),
    ("raise MemoryError", DeviceFault, "this machine has not enough memory for the problem"),
    ("raise MissingExtraError('suite', 'checking')", MissingExtraError, "crosscast.suite."),
]


@pytest.mark.parametrize(("statement", "kind", "message"), one_in(3, DEATHS))
def test_what_it_dies_of_is_a_sentence(
    make_application: Folder, statement: str, kind: type[CrosscastError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        processes.run_job(session(make_application(init=statement)), 60)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == (2 if "MissingExtra" in statement else 1)


def test_the_line_of_the_driver_that_raises_is_told(make_application: Folder) -> None:
    folder = make_application(run="self.values.reshape(3, 5)")
    lines = (folder / "driver.py").read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "reshape" in line)
    with pytest.raises(DeviceFault, match=rf"ValueError: .* \(own/driver\.py, line {number}\)$"):
        processes.run_job(session(folder), 60)


def test_a_kernel_without_end_is_stopped(make_application: Folder) -> None:
    folder = make_application(kernels=("endless",), init=NOTE)
    with pytest.raises(DeviceFault, match=r"did not end within 3 s \(the time limit\)"):
        processes.run_job(session(folder), 3)
    # None has begun yet on a machine that is very busy.
    assert all(map(is_gone, noted(folder)))


@pytest.mark.system
def test_modules_of_the_current_folder_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy.py").write_text("raise ValueError('wrong numpy')\n")
    monkeypatch.chdir(tmp_path)
    crc = SuiteProblem("crc", "tiny", {"bytes": 1000}, 0)
    assert processes.run_job(processes.SessionJob(crc, devices()[-1].id, QUICK), 60)["records"]


def test_an_interruption_ends_the_process(make_application: Folder) -> None:
    folder = make_application(init=NOTE, run="time.sleep(0.3)")

    def interrupt(runs: int, elapsed_s: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        processes.run_job(session(folder), 60, interrupt)
    (process,) = noted(folder)
    assert is_gone(process)


def test_the_process_ends_with_the_one_that_asked(make_application: Folder) -> None:
    folder = make_application(kernels=("endless",), init=NOTE)
    script = "import sys; from crosscast.measure.processes import *; run_job(read_job(sys.argv[1]), 60)"
    parent = subprocess.Popen([sys.executable, "-c", script, processes.render_job(session(folder))])
    try:
        wait_until(lambda: noted(folder) != [])
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: all(map(is_gone, noted(folder))))


def test_a_process_whose_parent_is_gone_ends_itself() -> None:
    command = [sys.executable, "-m", "crosscast.measure.worker", str(1 << 30)]
    ran = subprocess.run(
        command, input=processes.render_job(processes.DescribeJob("abacus:0")), text=True, timeout=60
    )
    assert ran.returncode == -signal.SIGKILL
