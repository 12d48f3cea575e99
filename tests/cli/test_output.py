"""Standard output that is closed, or a disk that is full, at the other end of it.

What is said and asked before a long campaign begins.
"""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import crosscast
from crosscast.characterization.run import Progress
from crosscast.cli import main
from crosscast.commands.output import ProgressLine, TaskStatus, announce, confirm, describe, time_left
from crosscast.evaluation.loop import State
from support.commands import Output
from support.examples import one_in
from support.processes import is_gone

VECADD = Path(__file__).parents[2] / "examples/vecadd.toml"
FORMS = pytest.mark.parametrize("form", one_in(2, [((),), (("--json",),)]))


def characterize(form: tuple[str, ...], stdout: int) -> tuple[int, str]:
    words = [sys.executable, "-m", "crosscast", "characterize", str(VECADD), *form]
    run = subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    return run.returncode, run.stderr


@FORMS
def test_a_reader_that_has_seen_enough_is_no_error(form: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert characterize(form, writing) == (0, "")
    finally:
        os.close(writing)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@FORMS
def test_a_full_disk_is_one_sentence(form: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        code, text = characterize(form, full.fileno())
    assert code == 1
    assert text == "crosscast: cannot write what was found (No space left on device)\n"


@pytest.mark.parametrize(
    "words", [["characterize", "x" * 5000], ["predict", "x" * 5000], ["dataset", "describe", "x" * 5000]]
)
def test_a_path_that_the_system_refuses_is_one_sentence(capsys: Output, words: list[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.endswith("xxx: cannot use this path (File name too long)\n")


def test_an_output_without_greek_letters_has_like_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert main(["explain", str(VECADD), "--devices", "rtx4090"]) == 0
    assert "12 MB at 1.01 TB/s take about 11.9 us" in written.getvalue().decode()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_files_and_pipes_get_no_progress() -> None:
    stream = io.StringIO()
    line = ProgressLine(stream, "k")
    for tenths in range(0, 100, 2):
        line(Progress(tenths, 100, tenths / 10))
    line.close()
    assert stream.getvalue() == ""


def test_terminals_get_one_line_that_goes_away() -> None:
    stream = Terminal()
    line = ProgressLine(stream, "k")
    line(Progress(10, 20, 2.5))
    line(Progress(11, 20, 2.7))
    line.close()
    text = stream.getvalue()
    assert "\n" not in text
    assert text.endswith("\r")
    assert "11 of 20 work-groups" in text


def test_the_line_goes_away_when_the_work_fails() -> None:
    stream = Terminal()
    with pytest.raises(RuntimeError), ProgressLine(stream, "k") as line:
        line(Progress(10, 20, 2.5))
        raise RuntimeError
    assert stream.getvalue().endswith("\r")


def test_rates_and_times_left_are_told_where_they_are_known() -> None:
    assert describe("k", 1, 3, 4.0) == "k: 1 of 3 work-groups (33 %), 4 s each, 8 s left"
    assert describe("k", 0, 3, 4.0) == "k: 0 of 3 work-groups (0 %), 4 s so far"
    assert (time_left(0.0), time_left(59.7)) == ("less than a second left", "about 1 min 0 s left")


DONE_S = 20.0
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


# That of evaluations alone is `test_no_process_outlives_its_parent`, which is quick.
@pytest.mark.system
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
def test_no_process_outlives_a_command(sent: signal.Signals, code: int, said: str, tmp_path: Path) -> None:
    words = ["evaluate", "time", "bundled", "--models", "combined", "--jobs", "2"]
    command = subprocess.Popen(
        [sys.executable, "-m", "crosscast", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},  # which has no answers yet
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
    while (left := [each for each in (command.pid, *children) if not is_gone(each)]) and (
        time.monotonic() < sent_at + DONE_S
    ):
        command.poll()
        time.sleep(0.05)
    assert not left
    _, errors = command.communicate(timeout=5)
    assert command.returncode == code
    assert errors.endswith(said)


def test_the_package_runs_as_the_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "crosscast", "--version"], capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, crosscast.__version__)


def asked(monkeypatch: pytest.MonkeyPatch, typed: io.StringIO) -> Terminal:
    """Let this be typed, and catch what is shown; in the test itself, as pytest has streams of its own."""
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr("sys.stdin", typed)
    return shown


def test_a_long_campaign_says_how_long_and_a_short_one_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = asked(monkeypatch, Terminal())
    announce(3, 9.0)
    assert not shown.getvalue()
    announce(30, 125.4)
    TaskStatus("variants").begin(20_000, 65.0)
    expected = "crosscast: 30 tasks, roughly 2 min 5 s\ncrosscast: 20,000 variants, roughly 1 min 5 s\n"
    assert shown.getvalue() == expected


@pytest.mark.parametrize("answer", ["y\n", "Yes\n"])
def test_thousands_of_tasks_are_asked_about(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    shown = asked(monkeypatch, Terminal(answer))
    confirm(4495, 1e4)
    assert shown.getvalue().endswith("[y/N] ")


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "maybe\n"])
def test_no_answer_but_yes_begins(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    asked(monkeypatch, Terminal(answer))
    with pytest.raises(KeyboardInterrupt):
        announce(4495, 1e4)


def test_nobody_is_asked_about_few_tasks_or_away_from_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = asked(monkeypatch, Terminal("n\n"))
    confirm(999, 1e6)
    assert not shown.getvalue()
    shown = asked(monkeypatch, io.StringIO("n\n"))
    confirm(4495, 1e6)
    assert not shown.getvalue()


def states(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, steps: int) -> str:
    """What is shown of work with a task each second."""
    clock = [0.0]
    monkeypatch.setattr("crosscast.commands.output.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("sys.stderr", stream)
    with TaskStatus("fits") as status:
        for done in range(1, steps + 1):
            clock[0] = float(done)
            status(State(done, steps, clock[0], float(steps - done), f"fit {done}"))
    return stream.getvalue()


def test_a_log_has_a_line_each_thirty_seconds_with_what_how_much_and_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = states(monkeypatch, io.StringIO(), 100)
    assert shown.splitlines() == [
        "crosscast: 30 of 100 fits, about 1 min 10 s left: fit 30",
        "crosscast: 60 of 100 fits, about 40 s left: fit 60",
        "crosscast: 90 of 100 fits, about 10 s left: fit 90",
    ]


def test_nothing_is_said_of_what_is_left_before_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = states(monkeypatch, Terminal(), 1000)
    first = shown.split("\r")[1]
    assert first.startswith("2 of 1000 fits, time left not known yet: fit 2")
    assert "10 of 1000 fits, about 16 min 30 s left" in shown
