"""What all commands have in common: help that fits, exit codes, environment variables, completion.

Command lines that are refused: one sentence, exit code 2, and nothing is run or written.
"""

import ast
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import crosscast
from crosscast import errors
from crosscast.characterization import run
from crosscast.cli import BAD_USAGE, INTERRUPTED, TERMINATED, command_line, main
from crosscast.commands.compare import DIFFERS
from crosscast.measure import profiling
from crosscast.suite.registry import names
from support.commands import Output
from support.examples import one_in
from support.workshop import Workshop

ROOT = Path(__file__).parents[2]
SOURCE = Path(crosscast.__file__).parent
PAGE = ROOT / "docs" / "command-line.md"
COLUMNS = 80


def every_command(before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Words of each command, and of each group of some."""
    _, apps, _ = command_line().parse_commands(list(before))
    for name in apps[-1]:
        if not name.startswith("-") or name == "--install-completion":
            yield (*before, name)
            if not name.startswith("-") and len(before) < 2:
                yield from every_command((*before, name))


@pytest.mark.parametrize("words", one_in(3, [((),), *((words,) for words in every_command())]), ids=" ".join)
def test_help_fits_terminals(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    assert main([*words, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert [line for line in lines if len(line.rstrip()) > COLUMNS] == []


@pytest.mark.parametrize("command", ["measure", "dataset build"])
def test_help_names_the_applications_and_folders_of_ones_own(command: str, capfd: Output) -> None:
    assert main([*command.split(), "--help"]) == 0
    text = " ".join(capfd.readouterr().out.replace("│", " ").split())
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
    found = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if _NAME.search(text) else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.fullmatch(node.value):
                found.add(node.value)
    for path in (SOURCE / "tracing").rglob("*.c"):
        found.update(re.findall(r'"(CROSSCAST_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    return found


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
    for typed, wanted in (
        ("pred", "predict"),
        ("predict ti", "time"),
        ("simulate policies --pol", "--policy"),
    ):
        words = ["crosscast", *typed.split()]
        code = (
            f"source {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
            f"_crosscast; echo ${{COMPREPLY[@]}}"
        )
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
        # In both, as a module that is imported later would keep what it finds here.
        for module in (run, profiling):
            monkeypatch.setattr(module, "characterize_launch", not_run)
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
