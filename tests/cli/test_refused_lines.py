"""Command lines that are refused: one sentence, exit code 2, and nothing is run or written."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path

import pytest

from crosscast.characterization import run
from crosscast.cli import main
from support.commands import Output
from support.examples import one_in
from support.workshop import Workshop

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


@pytest.mark.parametrize(("line", "sentence"), one_in(3, REFUSALS), ids=[line for line, _ in REFUSALS])
def test_each_mistake_is_one_sentence_and_exit_2(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: Output, line: str, sentence: str
) -> None:
    monkeypatch.chdir(workshop.folder)
    workshop.make_those_in(line)
    if not any(word in line for word in REFUSED_LATER):
        monkeypatch.setattr(run, "characterize_launch", lambda *_, **__: pytest.fail("a kernel was run"))
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
