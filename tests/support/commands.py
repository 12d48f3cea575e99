"""Command lines as tests run them: what is answered, printed and refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cyclopts
import pytest

from crosscast.cli import command_line, main
from crosscast.data.dataset import Dataset, write_dataset

Output = pytest.CaptureFixture[str]


@dataclass(frozen=True)
class Command:
    """The words that all command lines of a test file begin with, and those that they end with."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @classmethod
    def of(cls, before: str, after: str = "") -> Command:
        """Words between spaces."""
        return cls(tuple(before.split()), tuple(after.split()))

    def __call__(self, *words: object) -> int:
        """Run it; the exit code."""
        return main([*self.before, *map(str, words), *self.after])

    def text(self, capsys: Output, *words: object) -> str:
        """What people get on standard output."""
        assert self(*words) == 0
        return capsys.readouterr().out

    def answer(self, capsys: Output, *words: object) -> Any:
        """What ``--json`` prints."""
        return json.loads(self.text(capsys, *words, "--json"))

    def refusal(self, capsys: Output, *words: object) -> str:
        """The one sentence about wrong input, without the name of the command; standard output is empty."""
        assert self(*words) == 2
        captured = capsys.readouterr()
        assert not captured.out
        assert captured.err.count("\n") == 1
        return captured.err.removeprefix("crosscast: ").rstrip()


@cache
def shared_command_line() -> cyclopts.App:
    """The command line, made once for all tests that read what it takes."""
    return command_line()


@cache
def arguments_of(*words: str) -> tuple[cyclopts.Argument, ...]:
    """What a command takes."""
    _, apps, _ = shared_command_line().parse_commands(list(words))
    return tuple(apps[-1].assemble_argument_collection())


def written(dataset: Dataset, factory: pytest.TempPathFactory, name: str = "dataset") -> Path:
    """A new folder with a dataset."""
    folder = factory.mktemp("dataset") / name
    write_dataset(dataset, folder)
    return folder
