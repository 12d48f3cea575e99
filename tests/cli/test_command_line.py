"""What all commands have in common: help, exit codes, options, output and progress; and what is refused."""

import inspect
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from subprocess import Popen
from typing import get_args, get_type_hints

import cyclopts
import pytest

import crosscast
from crosscast import cli as listed
from crosscast import errors
from crosscast.characterization import run
from crosscast.characterization.run import Progress
from crosscast.cli import BAD_USAGE, INTERRUPTED, TERMINATED, main
from crosscast.cli.options import LAUNCH, WORK, OfLaunch
from crosscast.commands.catalogues import DIFFERS
from crosscast.commands.output import (
    ProgressLine,
    TaskStatus,
    announce,
    cache_folder,
    check_writable,
    confirm,
    describe,
)
from crosscast.evaluation.loop import State
from crosscast.suite.application import names
from support.commands import Command, Output, arguments_of, shared_command_line
from support.examples import one_in
from support.processes import is_gone, wait_until
from support.refusals import refusal
from support.workshop import Workshop

ROOT = Path(__file__).parents[2]
SOURCE = Path(crosscast.__file__).parent
PAGE = ROOT / "docs" / "command-line.md"


def commands(app: cyclopts.App, *before: str) -> Iterator[tuple[str, cyclopts.App]]:
    """All commands and groups of some below one, by the words that are typed for them."""
    for name in app:
        if not name.startswith("-") or name == "--install-completion":
            yield " ".join((*before, name)), app[name]
            if not name.startswith("-"):
                yield from commands(app[name], *before, name)


ALL = dict(commands(shared_command_line()))
EVERY = {name: each for name, each in ALL.items() if each.default_command and not name.startswith("-")}


@pytest.mark.parametrize("command", one_in(3, ["", *ALL]))
def test_help_fits_terminals(command: str, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = Command.of(command).text(capsys, "--help").splitlines()
    assert lines
    assert [line for line in lines if len(line.rstrip()) > 80] == []


@pytest.mark.parametrize("command", ["measure", "dataset build"])
def test_help_names_the_applications_and_folders_of_ones_own(command: str, capsys: Output) -> None:
    text = " ".join(Command.of(command).text(capsys, "--help").replace("│", " ").split())
    assert ", ".join(names()) in text
    assert "of your own" in text


def first_cells() -> list[list[str]]:
    """What the tables of the page are about, row by row."""
    if not PAGE.exists():
        pytest.skip("no checkout")
    rows = re.findall(r"^\| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.findall(r"[A-Z]+_?[A-Z_]+|^\d+$", row) for row in rows]


def test_the_page_has_every_exit_code() -> None:
    of_errors = {
        each.exit_code
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, errors.CrosscastError)
    }
    codes = {0, BAD_USAGE, INTERRUPTED, TERMINATED, DIFFERS, *of_errors}
    assert {int(word) for cell in first_cells() for word in cell if word.isdigit()} == codes


ELSEWHERE = {"COLUMNS", "NO_COLOR", "NUMBA_CACHE_DIR", "CROSSCAST_DATA", "CROSSCAST_SHARED"}
"""What Python, Numba, rich, or the tests read."""
FOR_PROGRAMS = {"NUMBA_DISABLE_JIT", "PYOPENCL_NO_CACHE", "LD_PRELOAD"}
"""What is said to others, and of no use to a person."""
_NAME = re.compile(r"(?:CROSSCAST|XDG|CUDA_MPS|LISTEN|NOTIFY|OPENCL|OPENBLAS|NUMBA|PYOPENCL)_[A-Z_]+")


def variables_in_source() -> set[str]:
    """Names of environment variables that are strings of the package, or read in its C."""
    paths = [*SOURCE.rglob("*.py"), *(SOURCE / "tracing").rglob("*.c")]
    found = {name for path in paths for name in re.findall(r"\"(\w+)\"", path.read_text(encoding="utf-8"))}
    return {name for name in found if _NAME.fullmatch(name)}


def test_the_page_has_every_environment_variable() -> None:
    named = {word for cell in first_cells() for word in cell if not word.isdigit()}
    assert named == (variables_in_source() | ELSEWHERE) - FOR_PROGRAMS


def test_completion_is_installed_where_the_shell_looks_and_knows_commands_and_options(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Output
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["--install-completion", "--shell", "bash"]) == 0
    script = tmp_path / ".local/share/bash-completion/completions/crosscast"
    assert str(script) in (tmp_path / ".bashrc").read_text()
    assert str(script) in capsys.readouterr().err
    if (bash := shutil.which("bash")) is None:
        pytest.skip("no bash here")
    for typed, wanted in (("pred", "predict"), ("train ti", "time"), ("simulate policies --po", "--policy")):
        words = f"COMP_WORDS=(crosscast {typed}); COMP_CWORD={len(typed.split())}"
        code = f"source {script}; {words}; _crosscast; echo ${{COMPREPLY[@]}}"
        done = subprocess.run([bash, "--norc", "-c", code], capture_output=True, text=True, check=True)
        assert wanted in done.stdout.split(), typed


TABLE = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))
REFUSALS = [
    (f"{command} {words}".rstrip(), sentence)
    for command, rows in TABLE.items()
    for words, sentence in rows.items()
]
REFUSED_LATER = ("k.ll", "k.bc", "-cl-mad-enable", "--against-forecast")
"""Words of lines that the compiler refuses, or the model that a characterized kernel is given to."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("workshop"))


def not_run(*_: object, **__: object) -> None:
    pytest.fail("a kernel was run")


@pytest.mark.parametrize(("line", "sentence"), one_in(3, REFUSALS), ids=[line for line, _ in REFUSALS])
def test_each_mistake_is_one_sentence_and_exit_2(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: Output, line: str, sentence: str
) -> None:
    monkeypatch.chdir(workshop.folder)
    workshop.make_those_in(line)
    if not any(word in line for word in REFUSED_LATER):
        monkeypatch.setattr(run, "characterize_launch", not_run)
    before = workshop.listing()
    capsys.readouterr()
    assert main(shlex.split(line)) == 2
    captured = capsys.readouterr()
    assert not captured.out
    *notes, refusal = captured.err.splitlines()
    assert refusal.startswith("crosscast: ") and sentence in refusal
    # The model that was taken, if none was named, or that the simulator is compiled for the first time.
    assert all(note.startswith("crosscast: ") for note in notes), notes
    assert workshop.listing() == before


MOST_OPTIONS = 14


OF_QUESTIONS = ("train", "predict", "choose", "colocate", "evaluate", "reproduce", "report")
WITHOUT_TABLES = (
    "capture, embed, evaluate jobs, corun campaign, measure stressor, serve, hooks install, hooks remove"
).split(", ")
TAKE_A_LAUNCH = (
    "characterize, compare, embed, explain, measure, predict, predict time, predict relative"
).split(", ")


def options_of(name: str) -> set[str]:
    return {each.name for each in arguments_of(*name.split()) if each.name.startswith("--")}


def listed_options(name: str) -> dict[str, set[str]]:
    """Options that ``--help`` lists, by the name of their group."""
    found: dict[str, set[str]] = {}
    for each in arguments_of(*name.split()):
        if each.show and each.name.startswith("--"):
            found.setdefault(str(each.parameter.group), set()).add(each.name)
    return found


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    app = shared_command_line()
    own = {name: app[name].help.split("\n\n")[0].replace("\n", " ") for name in listed.COMMANDS}
    assert {name: text for name, (_, text) in listed.COMMANDS.items()} == own


def test_each_command_is_given_to_the_function_that_does_its_work() -> None:
    for name in (each for each in EVERY if not each.startswith("dataset import")):
        command = EVERY[name].default_command
        assert isinstance(command, type)
        module, _, function = WORK[command].partition(".")
        work = getattr(import_module(f"crosscast.commands.{module}"), function)
        (parameter,) = inspect.signature(work).parameters
        taken = get_type_hints(work)[parameter]
        assert command in (taken, *get_args(taken)), name


def test_no_command_and_not_all_together_list_too_many_options() -> None:
    # `predict` is `predict time`.
    once = {id(command.default_command): name for name, command in EVERY.items()}
    counts = {name: [len(names) for names in listed_options(name).values()] for name in once.values()}
    assert {name: each for name, each in counts.items() if max(each, default=0) > MOST_OPTIONS} == {}
    assert sum(map(sum, counts.values())) <= 379


def test_each_answer_can_be_json_and_each_table_a_page() -> None:
    assert all("--json" in options_of(name) for name in EVERY if name.split()[0] in OF_QUESTIONS)
    printing = {name for name in EVERY if not name.startswith("dataset import")}
    assert {name for name in printing if "--html" not in options_of(name)} == set(WITHOUT_TABLES)


def test_all_that_take_a_launch_take_the_same_options() -> None:
    def takes_a_launch(*, launch: OfLaunch = LAUNCH) -> None:
        """Nothing but a launch."""

    app = cyclopts.App(default_command=takes_a_launch)
    words = {name for each in app.assemble_argument_collection() for name in each.names}
    assert {"--shared", "-D", "--option", "--std", "--offset", "--seed", "--kernel"} < words
    known = {name: {word for each in arguments_of(*name.split()) for word in each.names} for name in EVERY}
    assert {name for name, options in known.items() if words <= options} == set(TAKE_A_LAUNCH)


@pytest.mark.parametrize(
    "line",
    "explain, characterize, dataset describe, evaluate time, train time --out m, report --html p".split(", "),
)
def test_a_path_that_is_called_like_an_option_is_not_blamed_on_it(
    capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("json", "model"):
        assert Command.of(line).refusal(capsys, name).startswith(f"{name}: ")


def test_a_folder_is_made_later_and_a_protected_one_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_writable("--out", tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()
    # Nothing is protected from root, who may run this.
    monkeypatch.setattr("os.access", lambda path, mode: not mode)
    assert refusal(check_writable, "--out", tmp_path).endswith(" is not writable)")


def test_a_cache_of_the_users_that_cannot_be_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert refusal(cache_folder).endswith("XDG_CACHE_HOME to another folder")

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", unknown)
    assert "no home folder for a cache" in refusal(cache_folder)


VECADD = Path(__file__).parents[2] / "examples/vecadd.toml"


def ran_into_nothing(*words: object) -> list[tuple[int, str]]:
    """Exit code and last error where the reader of the output is gone, and where the disk is full."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    reading, writing = os.pipe()
    os.close(reading)
    full = os.open("/dev/full", os.O_WRONLY)
    command = [sys.executable, "-m", "crosscast", *map(str, words)]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    ran = [
        Popen(command, stdout=each, stderr=subprocess.PIPE, text=True, env=buffered)
        for each in (writing, full)
    ]
    for each in (writing, full):
        os.close(each)
    errors = [each.communicate(timeout=60)[1].rpartition("crosscast: ")[2] for each in ran]
    return [(each.returncode, error) for each, error in zip(ran, errors, strict=True)]


DISK_IS_FULL = (1, "cannot write what was found (No space left on device)\n")


@pytest.mark.parametrize("form", one_in(2, [[], ["--json"]]))
def test_a_reader_that_has_seen_enough_is_no_error_and_a_full_disk_one_sentence(form: list[str]) -> None:
    assert ran_into_nothing("characterize", VECADD, *form) == [(0, ""), DISK_IS_FULL]


def test_an_error_after_output_that_nobody_reads_is_one_sentence(tmp_path: Path) -> None:
    runs = tmp_path / "runs.csv"
    runs.write_text("device,cluster,cores,scheduling,time_s,power_w\npi3,,4,,12,5\nxeon,,1,,3,40\n")
    (code, error), of_full_disk = ran_into_nothing("choose", "configuration", runs, "--power-cap", "1,2")
    assert code == 2 and error.endswith("found 2 W, so nothing is chosen\n")
    assert of_full_disk == DISK_IS_FULL


@pytest.mark.parametrize("words", ["characterize", "predict", "dataset describe"])
def test_a_path_that_the_system_refuses_is_one_sentence(capsys: Output, words: str) -> None:
    told = Command.of(words).refusal(capsys, "x" * 5000)
    assert told.endswith("(File name too long)")


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


def test_rates_below_one_a_second_are_told_as_times() -> None:
    assert describe("k", 1, 3, 4.0) == "k: 1 of 3 work-groups (33 %), 4 s each, 8 s left"
    assert describe("k", 0, 3, 4.0) == "k: 0 of 3 work-groups (0 %), 4 s so far"


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
