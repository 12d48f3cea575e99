"""Parts of pages that are made from the package itself: help of commands, docstrings, columns of tables."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import crosscast
from crosscast.cli.app import COMMANDS, command_line
from crosscast.data.dataset import TABLES
from crosscast.data.schema import Schema
from crosscast.profile import METRICS

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


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the columns of a table where a page says ``<!-- columns of TABLE -->``."""
    schemas = {schema.table: schema for schema in TABLES}
    return re.sub(r"<!-- columns of (\w+) -->", lambda found: columns_of(schemas[found[1]]), markdown)


def columns_of(schema: Schema) -> str:
    """The key and the columns of a table but those of metrics and of reuse, which pages define in words."""
    metrics = {metric.name for metric in METRICS}
    key = ", ".join(f"`{name}`" for name in schema.key)
    lines = [f"Key: {key}.", "", "| column | type | unit | what it says |", "|---|---|---|---|"]
    lines += [
        f"| `{each.name}` | {each.type} | {each.unit} | {each.title} |"
        for each in schema.columns
        if each.name not in metrics and not each.name.startswith("reuse_bytes_")
    ]
    return "\n".join(lines)


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
