"""Parts of pages made from the package itself: help, docstrings, columns, sources, rules of counters."""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import crosscast
from crosscast.cli import COMMANDS, command_line
from crosscast.cluster.job_types import JOB_TYPES
from crosscast.cluster.traces import FIELDS
from crosscast.data.dataset import TABLES
from crosscast.data.schema import Column, Schema
from crosscast.data.sources import IMPORTERS, Importer
from crosscast.data.sources.source import facts_of
from crosscast.data.views import CONFIGURED, JOINED
from crosscast.prediction.relative.counters import RULES
from crosscast.profile import METRICS

_ABOUT_COMMANDS = """\
# Commands

What `--help` of each command says. Exit codes, streams, environment variables and completion:
[the command line](../command-line.md).
"""
_ABOUT_SOURCES = """\
# Sources of datasets

What `crosscast dataset import` reads: origin, licence, files and columns of the data, and the notes
that come with a dataset. [Importing](../importing.md) says how.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, lines in (("commands", _commands()), ("python", _python()), ("sources", _sources())):
        files.append(File.generated(config, f"reference/{name}.md", content="\n".join(lines)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Replace the comments that stand for generated tables."""
    schemas = {schema.table: schema for schema in TABLES}
    markdown = re.sub(r"<!-- columns of (\w+) -->", lambda match: columns_of(schemas[match[1]]), markdown)
    generated = {
        "job types": lambda: _table(JOB_TYPES.columns),
        "times of the joined view": lambda: _table(
            column for column in JOINED.columns if column.name.startswith("time_")
        ),
        "configured runs": lambda: _table(
            column for column in CONFIGURED.columns if column.name not in CONFIGURED.key
        ),
        "fields of the standard workload format": swf_fields,
        "rules of counters": rules_of_counters,
        "metrics": metrics,
        "applications of the suite": lambda: _suite_tables()["description_table"](),
        "parameters of the suite": lambda: _suite_tables()["parameter_table"](),
    }
    return re.sub(r"<!-- generated: ([\w ]+) -->", lambda match: generated[match[1]](), markdown)


def columns_of(schema: Schema) -> str:
    """The key and the columns of a table but those of metrics and of reuse, which pages define in words."""
    metrics = {metric.name for metric in METRICS}
    key = ", ".join(f"`{name}`" for name in schema.key)
    columns = (
        each
        for each in schema.columns
        if each.name not in metrics and not each.name.startswith("reuse_bytes_")
    )
    return f"Key: {key}.\n\n{_table(columns)}"


def metrics() -> str:
    """All metrics, by category."""
    lines = ["| metric | category | unit | meaning |", "|---|---|---|---|"]
    lines += [f"| `{each.name}` | {each.category} | {each.unit} | {each.title} |" for each in METRICS]
    return "\n".join(lines)


def swf_fields() -> str:
    """The fields of a line of a trace."""
    lines = ["| field | column | in the file |", "|---|---|---|"]
    for number, field in enumerate(FIELDS, start=1):
        unit = ", in KiB of a processor" if field.unit == 1024 else ""
        lines.append(f"| {number} | `{field.name}` | {field.title}{unit} |")
    return "\n".join(lines)


def rules_of_counters() -> str:
    """A section for each tool, with the counters of each feature."""
    lines: list[str] = []
    for tool in dict.fromkeys(rule.tool for rule in RULES):
        lines += [f"### Counters of {tool}", "", "| feature | counters | over |", "|---|---|---|"]
        lines += [
            f"| {rule.feature} | `{rule.amount.text}` | {f'`{rule.whole.text}`' if rule.whole else ''} |"
            for rule in RULES
            if rule.tool == tool
        ]
        lines.append("")
    return "\n".join(lines)


def _suite_tables() -> dict[str, Any]:
    return runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "suite_tables.py"))


def _table(columns: Iterable[Column]) -> str:
    lines = ["| column | type | unit | what it says |", "|---|---|---|---|"]
    lines += [f"| `{each.name}` | {each.type} | {each.unit} | {each.title} |" for each in columns]
    return "\n".join(lines)


def _sources() -> Iterator[str]:
    yield _ABOUT_SOURCES
    for importer in IMPORTERS.values():
        yield from _source(importer)


def _source(importer: Importer) -> Iterator[str]:
    facts = importer.to_dict()
    yield f"## {importer.name.replace('_', '-')}\n\n{facts['about']}\n"
    yield f"- From: {facts['origin']}\n- Licence: {facts['licence']}\n- PATH: {facts['path']}"
    for file in facts["files"]:
        names = " or ".join(f"`{name}`" for name in file["names"])
        columns = ", ".join(f"`{name}`" for name in file["columns"])
        optional = "" if file["required"] else " (optional)"
        yield f"- {names}{optional}" + (f": {columns}" if columns else "")
    yield ""
    for table, notes in _notes(importer.name).items():
        yield f"Notes of the table `{table}`:\n"
        yield from (
            f"- *{name}*: {' '.join(text.split())}" for name, text in notes.items() if name != "origin"
        )
        yield ""


def _notes(source: str) -> dict[str, dict[str, str]]:
    try:
        notes, _ = facts_of(source)
    except FileNotFoundError:  # What people measured themselves has no notes.
        return {}
    return {table: texts for table, texts in notes.items() if set(texts) - {"origin"}}


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
