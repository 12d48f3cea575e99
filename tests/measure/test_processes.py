"""Hearing processes: whole lines, from several, and nothing lost between."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crosscast.errors import CheckFailed, CrosscastError, DeviceFault, MissingExtraError
from crosscast.measure.opencl import devices
from crosscast.measure.processes import (
    AnsweringProcess,
    CharacterizeJob,
    CoRunJob,
    DescribeJob,
    InstructionMixJob,
    Job,
    SessionJob,
    label_of,
    messages,
    read_job,
    render_job,
    run_job,
)
from crosscast.measure.subjects import LaunchFile, Settings, Stressor, SuiteProblem, identity
from support.examples import one_in
from support.processes import NOTE, is_gone, noted, wait_until

Start = Callable[[str], AnsweringProcess]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starter of processes that run statements."""

    def begin(statements: str) -> AnsweringProcess:
        name = f"said_{len(list(tmp_path.iterdir()))}"
        (tmp_path / f"{name}.py").write_text(f"import os, sys, time\n{statements}\n")
        return AnsweringProcess({**os.environ, "PYTHONPATH": str(tmp_path)}, name)

    return begin


def soon() -> float:
    return time.monotonic() + 60


def test_lines_that_nobody_took_are_heard_later(start: Start) -> None:
    process = start("os.write(1, b'a\\nb\\nc\\nd')")
    try:
        _, first = next(messages([process], soon()))
        rest = [line for _, line in messages([process], soon())]
        again = [line for _, line in messages([process], soon())]
    finally:
        process.end()
    # A line that was never ended is none.
    assert (first, rest, again) == (b"a", [b"b", b"c", None], [None])


def test_several_are_heard_each_until_it_ends(start: Start) -> None:
    talker = start("print(*range(50_000), sep='\\n')")
    echo = start("print(sys.stdin.readline(), end='')")
    silent = start("time.sleep(600)")
    try:
        echo.write("hello\n")
        lines: dict[int, list[bytes | None]] = {talker.pid: [], echo.pid: [], silent.pid: []}
        for process, line in messages([talker, echo, silent], soon()):
            lines[process.pid].append(line)
            if lines[talker.pid][-1:] == lines[echo.pid][-1:] == [None]:
                break
        assert silent.runs
    finally:
        for process in (talker, echo, silent):
            process.end()
    assert lines == {
        talker.pid: [*(str(number).encode() for number in range(50_000)), None],
        echo.pid: [b"hello", None],
        silent.pid: [],
    }
    assert not silent.runs


def test_nobody_is_listened_to_for_longer_than_asked(start: Start) -> None:
    chatterer = start("while True: os.write(1, b'and\\n' * 100)")
    try:
        assert all(line == b"and" for _, line in messages([chatterer], time.monotonic() + 0.2))
    finally:
        chatterer.end()


def test_telling_a_process_that_has_ended_is_no_error(start: Start) -> None:
    process = start("os.write(2, b'why\\n'); sys.exit(3)")
    try:
        assert [line for _, line in messages([process], soon())] == [None]
        process.write("hello\n")
        assert str(process.crash("it")) == "it: the process that measured ended with code 3: why"
    finally:
        process.end()


Folder = Callable[..., Path]
QUICK = Settings(min_runs=2, min_time_s=0.0, warmups=1, sensor="none")


# The device's driver may have set a handler.
DIE = "signal.signal(signal.SIGSEGV, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGSEGV)"


def problem(folder: Path) -> SuiteProblem:
    return SuiteProblem(str(folder), "tiny", {"items": 1024}, 0)


def session(folder: Path, settings: Settings = QUICK) -> SessionJob:
    return SessionJob(problem(folder), devices()[-1].id, settings)


def test_the_answer_is_that_of_the_process(make_application: Folder) -> None:
    noise = "os.write(1, b'{\"answer\": 1}\\n'); print('{', flush=True); os.write(2, b'noise')"
    answer = run_job(session(make_application(run=noise)), 60)
    assert answer["session"]["application"] == "own"
    assert len(answer["records"]) == answer["session"]["runs"] >= 2


@pytest.mark.system
def test_progress_is_passed_on(make_application: Folder) -> None:
    told: list[tuple[int, float]] = []
    run_job(
        session(make_application(run="time.sleep(0.3)")),
        60,
        lambda runs, seconds: told.append((runs, seconds)),
    )
    assert told
    assert all(runs >= 1 and seconds >= 0.5 for runs, seconds in told)


def test_two_characterizations_give_the_same_rows(make_application: Folder) -> None:
    job = CharacterizeJob(problem(make_application()), 60)
    first, second = (run_job(job, 60)["profiles"] for _ in range(2))
    assert first == second
    (row,) = first
    assert (row["application"], row["size"], row["kernel"], row["invocation"]) == ("own", "tiny", "twice", 0)
    assert row["run_s"] is None
    made_for = json.loads(str(row["launch"]))["problem"]
    assert (made_for["parameters"], made_for["seed"]) == ({"items": 1024}, 0)
    assert made_for["source_sha256"] == identity(job.subject).source_sha256
    assert '"path": "own.cl"' in str(row["program"])


@pytest.mark.parametrize(
    ("statement", "kind", "message"),
    one_in(
        3,
        [
            ("raise CheckFailed('first at 3')", CheckFailed, "^first at 3$"),
            (
                "raise KeyError('x')",
                DeviceFault,
                "the process that measured ended with code 1: KeyError: 'x'",
            ),
            ("os.write(2, b'x\\n' * 10**6); sys.exit(3)", DeviceFault, "ended with code 3: x$"),
            ("os.abort()", DeviceFault, "was killed by SIGABRT"),
            (DIE, DeviceFault, "SIGSEGV.*; crosscast characterize .* --check-bounds finds"),
            ("os.kill(os.getpid(), signal.SIGKILL)", DeviceFault, "was killed by SIGKILL"),
            ("raise MemoryError", DeviceFault, "this machine has not enough memory for the problem"),
            (
                "raise MissingExtraError('suite', 'checking')",
                MissingExtraError,
                r"pip install 'crosscast\[suite\]'",
            ),
        ],
    ),
)
def test_what_the_process_dies_of_is_a_sentence(
    make_application: Folder, statement: str, kind: type[CrosscastError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        run_job(session(make_application(init=statement)), 60)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == (2 if "MissingExtra" in statement else 1)


@pytest.mark.parametrize("measured", one_in(2, [True, False]))
def test_the_line_of_the_driver_that_raises_is_told(make_application: Folder, measured: bool) -> None:
    folder = make_application(run="self.values.reshape(3, 5)")
    lines = (folder / "driver.py").read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "reshape" in line)
    job = session(folder) if measured else CharacterizeJob(problem(folder), 60)
    with pytest.raises(DeviceFault, match=rf"ValueError: .* \(own/driver\.py, line {number}\)$"):
        run_job(job, 60)


def test_a_kernel_without_end_is_stopped(make_application: Folder) -> None:
    folder = make_application(kernels=("endless",), init=NOTE)
    with pytest.raises(DeviceFault, match=r"did not end within 3 s \(the time limit\)"):
        run_job(session(folder), 3)
    (process,) = noted(folder)
    assert is_gone(process)


@pytest.mark.system
def test_modules_of_the_current_folder_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy.py").write_text("raise ValueError('wrong numpy')\n")
    monkeypatch.chdir(tmp_path)
    crc = SuiteProblem("crc", "tiny", {"bytes": 1000}, 0)
    assert run_job(SessionJob(crc, devices()[-1].id, QUICK), 60)["records"]


def test_an_interruption_ends_the_process(make_application: Folder) -> None:
    folder = make_application(init=NOTE, run="time.sleep(0.3)")

    def interrupt(runs: int, elapsed_s: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(session(folder), 60, interrupt)
    (process,) = noted(folder)
    assert is_gone(process)


def test_the_process_ends_with_the_one_that_asked(make_application: Folder) -> None:
    folder = make_application(kernels=("endless",), init=NOTE)
    script = (
        "import sys\n"
        "from crosscast.measure.processes import read_job, run_job\n"
        "run_job(read_job(sys.argv[1]), 60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, render_job(session(folder))])
    try:
        wait_until(lambda: noted(folder) != [])
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: all(map(is_gone, noted(folder))))


PROBLEM = SuiteProblem("crc", "tiny", {"bytes": 31740}, 7)


@pytest.mark.parametrize(
    "job",
    [
        SessionJob(PROBLEM, "pocl:0", Settings(3, 0.1, 0, 9.5, "replay:a b.csv", counters=False), 2),
        SessionJob(LaunchFile("böse.toml"), "pocl:0/1", Settings()),
        DescribeJob("nvidia:0"),
        CharacterizeJob(PROBLEM, 3.5),
        InstructionMixJob(LaunchFile("a.toml"), 3.5),
        CoRunJob(Stressor("low", {"images": 4}), "pocl:0", 1, True),
    ],
)
def test_a_job_comes_out_as_it_went_in(job: Job | CoRunJob) -> None:
    assert read_job(render_job(job)) == job
    assert isinstance(job, CoRunJob) or label_of(job)


def worker(job: str, parent: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "crosscast.measure.worker", str(parent)]
    return subprocess.run(command, input=job, capture_output=True, text=True, timeout=60)


def test_standard_output_holds_lines_of_json_and_the_answer_last() -> None:
    settings = Settings(2, 0.6, 1, sensor="none")
    job = SessionJob(SuiteProblem("crc", "tiny", {"bytes": 1000}, 0), devices()[-1].id, settings)
    ran = worker(render_job(job), os.getpid())
    *states, answer = map(json.loads, ran.stdout.splitlines())
    assert (ran.returncode, ran.stderr) == (0, "")
    assert states
    assert all(state.keys() == {"runs", "elapsed_s"} for state in states)
    assert answer["answer"].keys() == {"session", "records", "energy", "notes"}


def test_an_error_is_an_answer() -> None:
    ran = worker(render_job(DescribeJob("abacus:0")), os.getpid())
    (answer,) = map(json.loads, ran.stdout.splitlines())
    assert answer["error"] == "InputError"
    assert answer["arguments"][0].startswith("device 'abacus:0': expected one of ")
    assert ran.returncode == 0


def test_a_process_whose_parent_is_gone_ends_itself() -> None:
    assert worker(render_job(DescribeJob("abacus:0")), 1 << 30).returncode == -signal.SIGKILL
