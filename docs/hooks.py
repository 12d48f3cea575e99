"""Pages of the reference, made from the package itself: each command's help, each public name's docstring."""

import os
import subprocess
import sys
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import crosscast
from crosscast.cli.app import COMMANDS, command_line

_ABOUT_COMMANDS = """\
# Commands

What `--help` of each command says. Exit codes, streams, environment variables and completion:
[the command line](../command-line.md).
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, content in (("commands", "\n".join(_commands())), ("python", "\n".join(_python()))):
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    return files


def _commands() -> Iterator[str]:
    yield _ABOUT_COMMANDS
    for words in _words([]):
        yield f"## crosscast {' '.join(words)}\n\n```text\n{_help(words)}\n```\n"


def _words(before: list[str]) -> Iterator[list[str]]:
    names = list(COMMANDS) if not before else _below(before)
    for name in names:
        yield [*before, name]
        if len(before) < 2:
            yield from _words([*before, name])


def _below(words: list[str]) -> list[str]:
    _, apps, _ = command_line().parse_commands(words)
    return [name for name in apps[-1] if not name.startswith("-")]


def _help(words: list[str]) -> str:
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "crosscast", *words, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.rstrip()


def _python() -> Iterator[str]:
    yield "# Python\n\nAll public names; each is imported when it is first used.\n"
    for name in crosscast.__all__:
        if not name.startswith("_") and name not in ("errors", "METRICS", "QUESTIONS"):
            place, _, attribute = crosscast._HOMES[name].partition(":")
            yield f"## crosscast.{name}\n\n::: {place}.{attribute}\n"
