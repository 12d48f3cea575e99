"""The page of the suite: its tables are what the code gives, and its examples work."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from crosscast.suite.catalogue import (
    DWARFS,
    Extent,
    description_table,
    extent_of,
    extent_table,
    main,
    parameter_table,
)
from crosscast.suite.registry import application, names

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "suite.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^crosscast .*$", TEXT, re.MULTILINE)


def test_each_application_has_a_class() -> None:
    assert tuple(sorted(DWARFS)) == names()


def test_the_page_counts_applications_and_kernels() -> None:
    kernels = sum(len(application(name).kernels) for name in names())
    assert f"{len(names())} applications with {kernels} kernels" in TEXT


def test_the_page_has_the_tables_of_descriptions_and_parameters() -> None:
    assert description_table() in TEXT
    assert parameter_table() in TEXT


def test_the_page_has_working_sets_and_launches() -> None:
    # The larger sizes take long to run; their columns come from the same command.
    heading, _, *rows = extent_table(("tiny", "small")).splitlines()
    for row in (heading, *rows):
        assert f"{row} " in TEXT


def test_an_extent_counts_bytes_and_launches() -> None:
    assert extent_of(application("csr"), "tiny") == Extent(8 * 2941 + 12 * 767 + 4, 4)


@pytest.mark.parametrize("lacking", ["pyopencl", "scipy"])
def test_what_is_not_installed_is_one_sentence(
    lacking: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, lacking, None)
    assert main() == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert "crosscast: " in output.err
    assert "pip install 'crosscast[suite]'" in output.err


def without_space(code: str) -> str:
    return re.sub(r"\s|,(?=\s*\))", "", code)


@pytest.mark.parametrize("language", ["c", "python"])
def test_code_on_the_page_is_that_of_the_example(language: str) -> None:
    file = {"c": "heat.cl", "python": "driver.py"}[language]
    example = (ROOT / "examples" / "heat" / file).read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    pieces = [block for block in blocks if ">>>" not in block]
    assert pieces
    # Lines are broken elsewhere where the page has less of an indent.
    assert all(without_space(piece) in without_space(example) for piece in pieces)


def test_examples_in_python_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = doctest.testfile(str(PAGE), module_relative=False)
    assert done.attempted
    assert not done.failed


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_on_the_page_work(command: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    quick = ["--min-runs", "2", "--min-time", "0"]
    words = [sys.executable, "-m", "crosscast.cli", *shlex.split(command)[1:], *quick]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "heat" in done.stdout


def test_the_page_shows_both_commands() -> None:
    assert [command.split()[1] for command in COMMANDS] == ["measure", "dataset"]
