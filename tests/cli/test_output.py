"""Standard output that is closed or full; progress; what is said and asked before a long campaign begins."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import Popen

import pytest

from crosscast.characterization.run import Progress
from crosscast.cli import main
from crosscast.commands.output import ProgressLine, TaskStatus, announce, confirm, describe, time_left
from crosscast.evaluation.loop import State
from support.commands import Command, Output
from support.examples import one_in
from support.processes import is_gone, wait_until

VECADD = Path(__file__).parents[2] / "examples/vecadd.toml"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("form", one_in(2, [[], ["--json"]]))
def test_a_reader_that_has_seen_enough_is_no_error_and_a_full_disk_one_sentence(form: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    full = os.open("/dev/full", os.O_WRONLY)
    words = [sys.executable, "-m", "crosscast", "characterize", str(VECADD), *form]
    ran = [Popen(words, stdout=each, stderr=subprocess.PIPE, text=True) for each in (writing, full)]
    for each in (writing, full):
        os.close(each)
    told = "crosscast: cannot write what was found (No space left on device)\n"
    errors = [each.communicate(timeout=60)[1] for each in ran]
    assert [(each.returncode, error) for each, error in zip(ran, errors, strict=True)] == [(0, ""), (1, told)]


@pytest.mark.parametrize("words", ["characterize", "predict", "dataset describe"])
def test_a_path_that_the_system_refuses_is_one_sentence(capsys: Output, words: str) -> None:
    told = Command.of(words).refusal(capsys, "x" * 5000)
    assert told.endswith("xxx: cannot use this path (File name too long)")


def test_an_output_without_greek_letters_has_like_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert main(["explain", str(VECADD), "--devices", "rtx4090"]) == 0
    assert "12 MB at 1.01 TB/s take about 11.9 us" in written.getvalue().decode()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminals_get_one_line_that_goes_away_even_if_work_fails_and_files_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        monkeypatch.setattr("sys.stderr", stream)
        with pytest.raises(RuntimeError), ProgressLine("k") as line:
            line(Progress(10, 20, 2.5))
            line(Progress(11, 20, 2.7))
            raise RuntimeError
    assert not pipe.getvalue()
    text = terminal.getvalue()
    assert "\n" not in text
    assert text.endswith("\r")
    assert "11 of 20 work-groups" in text


def test_rates_and_times_left_are_told_where_they_are_known() -> None:
    assert describe("k", 1, 3, 4.0) == "k: 1 of 3 work-groups (33 %), 4 s each, 8 s left"
    assert describe("k", 0, 3, 4.0) == "k: 0 of 3 work-groups (0 %), 4 s so far"
    assert (time_left(0.0), time_left(59.7)) == ("less than a second left", "about 1 min 0 s left")


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
    [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated"), ("SIGKILL", -9, None)],
)
def test_no_process_outlives_a_command(sent: str, code: int, said: str | None, tmp_path: Path) -> None:
    words = "-m crosscast evaluate time bundled --models combined --jobs 2".split()
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}  # which has no answers yet
    command = Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    wait_until(lambda: command.poll() is not None or len(children_of(command.pid)) >= 2)
    # They are at work: interpreters that start know nothing of their parent yet.
    time.sleep(3)
    children = children_of(command.pid)
    command.send_signal(getattr(signal, sent))
    _, errors = command.communicate(timeout=60)
    wait_until(lambda: all(map(is_gone, children)))
    assert command.returncode == code
    assert errors.endswith(f"crosscast: {said}\n" if said else "")


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


def test_thousands_of_tasks_are_asked_about_on_a_terminal_and_no_answer_but_yes_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for typed, tasks, ends in (
        *((Terminal(answer), 1000, "[y/N] ") for answer in ("y\n", "Yes\n")),
        (Terminal("n\n"), 999, ""),
        (io.StringIO("n\n"), 4495, ""),
    ):
        shown = asked(monkeypatch, typed)
        confirm(tasks, 1e6)
        assert shown.getvalue()[-6:] == ends
    for answer in ("", "n\n", "maybe\n"):
        asked(monkeypatch, Terminal(answer))
        with pytest.raises(KeyboardInterrupt):
            announce(4495, 1e4)


def test_a_log_has_a_line_each_thirty_seconds_with_what_how_much_and_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr("crosscast.commands.output.time.monotonic", lambda: clock[0])
    shown = {}
    for stream, steps in ((io.StringIO(), 100), (Terminal(), 1000)):
        monkeypatch.setattr("sys.stderr", stream)
        clock[0] = 0.0
        with TaskStatus("fits") as status:
            for done in range(1, steps + 1):
                clock[0] = float(done)
                status(State(done, steps, clock[0], float(steps - done), f"fit {done}"))
        shown[steps] = stream.getvalue()
    assert shown[100].splitlines() == [
        "crosscast: 30 of 100 fits, about 1 min 10 s left: fit 30",
        "crosscast: 60 of 100 fits, about 40 s left: fit 60",
        "crosscast: 90 of 100 fits, about 10 s left: fit 90",
    ]
    # Nothing is said of what is left before it is known.
    first = shown[1000].split("\r")[1]
    assert first.startswith("2 of 1000 fits, time left not known yet: fit 2")
    assert "10 of 1000 fits, about 16 min 30 s left" in shown[1000]
