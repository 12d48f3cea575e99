"""Options that several commands share, and errors in the words that were typed."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import get_args, get_type_hints

import cyclopts
import pytest

from crosscast import cli as listed
from crosscast.cli import main
from crosscast.cli.options import LAUNCH, WORK, OfLaunch, names_in
from crosscast.commands.output import cache_folder, check_writable, warn_of
from crosscast.errors import InputError
from support.commands import Output, arguments_of, shared_command_line
from support.refusals import refusal

MOST_OPTIONS = 14


@pytest.mark.parametrize("text", ["", " ", "crc,", ",crc", "crc,,lud"])
def test_an_empty_name_is_refused_by_its_option(text: str) -> None:
    with pytest.raises(InputError, match=r"^--without: expected names separated by commas, found "):
        names_in("--without", text)


def commands(app: cyclopts.App, *before: str) -> Iterator[tuple[str, cyclopts.App]]:
    """All commands below one, by the words that are typed for them."""
    for name in app:
        if name.startswith("-"):
            continue
        command = app[name]
        if command.default_command:
            yield " ".join((*before, name)), command
        yield from commands(command, *before, name)


EVERY = dict(commands(shared_command_line()))
OF_QUESTIONS = ("train", "predict", "choose", "colocate", "evaluate", "reproduce", "report")
COMMANDS = {name: command for name, command in EVERY.items() if name.split()[0] in OF_QUESTIONS}
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


@pytest.mark.parametrize("name", [name for name in EVERY if not name.startswith("dataset import")])
def test_each_command_is_given_to_the_function_that_does_its_work(name: str) -> None:
    command = EVERY[name].default_command
    assert isinstance(command, type)
    module, _, function = WORK[command].partition(".")
    work = getattr(import_module(f"crosscast.commands.{module}"), function)
    (parameter,) = inspect.signature(work).parameters
    taken = get_type_hints(work)[parameter]
    assert command in (taken, *get_args(taken))


@pytest.mark.parametrize("name", EVERY)
def test_no_command_lists_too_many_options(name: str) -> None:
    assert all(len(names) <= MOST_OPTIONS for names in listed_options(name).values())


def test_all_commands_together_list_no_more_options() -> None:
    # `predict` is `predict time`.
    once = {id(command.default_command): name for name, command in EVERY.items()}
    assert sum(len(names) for name in once.values() for names in listed_options(name).values()) <= 379


@pytest.mark.parametrize("name", COMMANDS)
def test_each_answer_can_be_json(name: str) -> None:
    assert "--json" in options_of(name)


def test_all_that_take_a_launch_take_the_same_options() -> None:
    words = {
        name
        for each in cyclopts.App(default_command=takes_a_launch).assemble_argument_collection()
        for name in each.names
    }
    assert {"--shared", "-D", "--option", "--std", "--offset", "--seed", "--kernel"} < words
    taking = {
        name
        for name in EVERY
        if words <= {option for each in arguments_of(*name.split()) for option in each.names}
    }
    assert taking == set(TAKE_A_LAUNCH)


def takes_a_launch(*, launch: OfLaunch = LAUNCH) -> None:
    """Nothing but a launch."""


@pytest.mark.parametrize("name", [name for name in EVERY if not name.startswith("dataset import")])
def test_each_command_that_prints_tables_writes_them_as_a_page(name: str) -> None:
    assert ("--html" in options_of(name)) == (name not in WITHOUT_TABLES)


@pytest.mark.parametrize(
    "line",
    "explain, characterize, dataset describe, evaluate time, train time --out m, report --html p".split(", "),
)
@pytest.mark.parametrize("name", ["json", "model"])
def test_a_path_that_is_called_like_an_option_is_not_blamed_on_it(
    capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*line.split(), name]) == 2
    assert capsys.readouterr().err.startswith(f"crosscast: {name}: ")


@dataclass(frozen=True)
class Prediction:
    label: str
    warnings: tuple[str, ...]


def test_each_warning_is_printed_once_with_what_it_is_about(capsys: Output) -> None:
    warn_of(
        [
            Prediction("a", ("far", "old")),
            Prediction("b", ()),
            Prediction("c", ("far",)),
            Prediction("d", ("far",)),
        ]
    )
    assert capsys.readouterr().err.splitlines() == [
        "crosscast: warning: a and 2 more: far",
        "crosscast: warning: a: old",
    ]


def test_a_folder_below_a_folder_that_is_there_can_be_made(tmp_path: Path) -> None:
    check_writable("--out", tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()


def test_a_folder_below_a_file_or_protected_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"--out: cannot write into .* \(.*file is not a folder\)"):
        check_writable("--out", tmp_path / "file" / "a")
    # Nothing is protected from root, who may run this.
    monkeypatch.setattr("os.access", lambda path, mode: not mode)
    with pytest.raises(InputError, match=r"--out: cannot write into the folder .* is not writable"):
        check_writable("--out", tmp_path)


def test_a_cache_of_the_users_that_cannot_be_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"^cannot write the cache in .*XDG_CACHE_HOME to another folder$"):
        cache_folder()

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", unknown)
    assert "no home folder for a cache" in refusal(cache_folder)
