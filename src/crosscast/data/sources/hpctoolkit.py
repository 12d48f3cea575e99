"""Counters of a run in databases of HPCToolkit, in the new and the old format."""

from __future__ import annotations

import mmap
import re
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.sources.counted import CountedRun, factor_of
from crosscast.errors import InputError


@dataclass(frozen=True)
class Thread:
    """A thread, or a stream of a GPU."""

    process: int  # Number of its process
    values: Mapping[str, float]  # Inclusive values of the whole thread, by metric


META = "meta.db"
_PROFILE = "profile.db"
_VERSION = 4
_EXECUTION = 2
_GLOBAL = 0
_RANK = "RANK"
_IS_SUMMARY = 1
_MOST_CHARACTERS = 4096
_MOST_METRICS = 1 << 16
"""Numbers of metrics have 16 bits."""


class _StructureFile:
    """Structures at offsets of a file, checked to lie inside it."""

    def __init__(self, path: Path, content: mmap.mmap, form: bytes) -> None:
        self._path = path
        self._content = content
        magic, kind, major, minor = self.take("<10s4sBB", 0)
        if magic != b"HPCTOOLKIT" or kind != form:
            raise InputError.of(where=path, expected=f"a file {form.decode()} of HPCToolkit", found="another")
        if major != _VERSION:
            raise InputError.of(
                where=path, expected=f"version {_VERSION} of the format", found=f"{major}.{minor}"
            )

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._content)

    def fail(self, expected: str, found: object) -> InputError:
        """Make an error about the file."""
        return InputError.of(where=self._path, expected=expected, found=f"{found}")

    def section(self, number: int) -> int:
        """Offset of a section; sections are numbered from 0."""
        return int(self.take("<QQ", 16 + 16 * number)[1])

    def take(self, form: str, offset: int) -> tuple[Any, ...]:
        """Unpack the numbers at an offset."""
        size = struct.calcsize(form)
        if offset < 0 or offset + size > len(self._content):
            raise InputError.of(
                where=self._path, expected=f"{size} bytes at place {offset}", found="a file that is cut off"
            )
        return struct.unpack_from(form, self._content, offset)

    def text(self, offset: int) -> str:
        """Decode the text at an offset, which ends before a zero byte."""
        size = len(self._content)
        end = self._content.find(b"\0", offset, offset + _MOST_CHARACTERS) if offset < size else -1
        if end < 0:
            raise InputError.of(
                where=self._path, expected=f"a text at place {offset}", found="one that is cut off"
            )
        return self._content[offset:end].decode("utf-8", errors="replace")


@contextmanager
def _opened(path: Path, form: bytes) -> Iterator[_StructureFile]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError.of(where=path, problem=f"cannot read the database ({error.strerror})") from error
    with file:
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise InputError.of(
                where=path, expected=f"a file {form.decode()} of HPCToolkit", found="none"
            ) from error
        with content:
            yield _StructureFile(path, content, form)


def read_new_database(folder: Path) -> tuple[str, list[Thread]]:
    """Read the name of the program and the values of its threads."""
    with _opened(folder / META, b"meta") as meta:
        title = meta.text(meta.take("<Q", meta.section(0))[0])
        kinds = _kinds(meta)
        metrics = _metrics(meta)
    with _opened(folder / _PROFILE, b"prof") as profile:
        return title or folder.name, list(_threads(profile, kinds, metrics))


def _kinds(meta: _StructureFile) -> list[str]:
    start, count = meta.take("<QB", meta.section(1))
    return [meta.text(meta.take("<Q", start + 8 * number)[0]) for number in range(count)]


def _metrics(meta: _StructureFile) -> dict[int, str]:
    """Names of the metrics in the scope `execution`, by number."""
    start, count, stride, scope_stride = meta.take("<QIBB", meta.section(2))
    # The sizes of structures are bounded so that a damaged count cannot read the same bytes over and over.
    if stride < 28 or scope_stride < 10 or count > _MOST_METRICS:
        raise meta.fail(f"{_MOST_METRICS} metrics at most, of 28 bytes or more", f"{count} of {stride} bytes")
    metrics: dict[int, str] = {}
    seen = 0
    for number in range(count):
        name_at, scopes, _, scope_count = meta.take("<QQQH", start + stride * number)
        seen += scope_count
        if seen > _MOST_METRICS:
            raise meta.fail(f"{_MOST_METRICS} scopes of metrics at most", "more")
        for scope in range(scope_count):
            scope_at, identifier = meta.take("<QH", scopes + scope_stride * scope)
            if meta.take("<QB", scope_at)[1] == _EXECUTION:
                metrics[identifier] = meta.text(name_at)
    return metrics


def _threads(profile: _StructureFile, kinds: list[str], metrics: dict[int, str]) -> Iterator[Thread]:
    start, count, stride = profile.take("<QIB", profile.section(0))
    if stride < 44:
        raise profile.fail("profiles of 44 bytes or more", f"some of {stride}")
    free_bytes = profile.size
    for number in range(count):
        offset = start + stride * number
        values, values_at, contexts, contexts_at, tuple_at, flags = profile.take("<QQI4xQQI", offset)
        if flags & _IS_SUMMARY or not tuple_at:
            continue
        first, last = _global_values(profile, values, contexts, contexts_at)
        # Values of threads must not overlap; each takes ten bytes.
        free_bytes -= 10 * max(last - first, 1)
        if free_bytes < 0:
            raise profile.fail("values of threads that lie apart", "some that do not")
        pairs = (profile.take("<Hd", values_at + 10 * index) for index in range(first, last))
        inclusive = {metrics[identifier]: value for identifier, value in pairs if identifier in metrics}
        yield Thread(_process(profile, tuple_at, kinds), inclusive)


def _global_values(profile: _StructureFile, values: int, contexts: int, contexts_at: int) -> tuple[int, int]:
    """Index range of the values of the global context; empty if there are none."""
    if not contexts or profile.take("<I", contexts_at)[0] != _GLOBAL:
        # Contexts are sorted, so that the global one, if any, comes first.
        return 0, 0
    last = profile.take("<Q", contexts_at + 16)[0] if contexts > 1 else values
    return profile.take("<Q", contexts_at + 4)[0], last


def _process(profile: _StructureFile, offset: int, kinds: list[str]) -> int:
    """Number of a thread's process; 0 for a program without ranks."""
    for number in range(profile.take("<H", offset)[0]):
        kind, _, logical = profile.take("<BxHI", offset + 8 + 16 * number)
        if kind < len(kinds) and kinds[kind] == _RANK:
            return int(logical)
    return 0


EXPERIMENT = "experiment.xml"
_METRICS = "*.metric-db"
_FILE = re.compile(r".*-(\d+)-(\d+)-\w+-\d+-\d\.metric-db")
_MAGIC = b"HPCPROF-metricdb__"
_HEADER = struct.Struct(">18s5s1sii")
_MOST_FILES = 1_000_000
_SCOPE = re.compile(r"(?::Sum)? \((?P<scope>[IE])\)$")
_SUMMARY = re.compile(r":(Mean|StdDev|CfVar|Min|Max) \([IE]\)$")


@dataclass
class _Tree:
    name: str = ""
    metrics: dict[int, str] = field(default_factory=dict)
    roots: list[int] = field(default_factory=list)
    statements: list[int] = field(default_factory=list)


def read_old_database(folder: Path) -> tuple[str, list[Thread]]:
    """Read the name of the program and the values of its threads."""
    tree = _tree(folder / EXPERIMENT)
    files = sorted(folder.glob(_METRICS))
    if not files or len(files) > _MOST_FILES:
        raise InputError.of(
            where=folder,
            expected=(
                f"files {_METRICS} beside {EXPERIMENT}, as hpcprof of HPCToolkit up to 2020 "
                "makes them with --metric-db yes"
            ),
            found=len(files),
        )
    return tree.name or folder.name, [_thread(file, tree) for file in files]


def _tree(path: Path) -> _Tree:
    tree = _Tree()
    ancestors: list[str] = []
    try:
        with path.open("rb") as file:
            for event, element in ElementTree.iterparse(file, ("start", "end")):
                if event == "start":
                    _take(tree, ancestors, element.tag, element.attrib)
                    ancestors.append(element.tag)
                else:
                    ancestors.pop()
                    element.clear()
    except (ElementTree.ParseError, ValueError, KeyError) as error:
        raise InputError.of(
            where=path,
            expected="the XML of an HPCToolkit database",
            found=f"something else or a part of it ({error})",
        ) from error
    except OSError as error:
        raise InputError.of(where=path, problem=f"cannot read the database ({error.strerror})") from error
    if not tree.metrics or not tree.roots:
        raise InputError.of(
            where=path,
            expected="MetricDB and PF elements, as HPCToolkit up to 2020 writes them",
            found="none",
        )
    return tree


def _take(tree: _Tree, ancestors: Sequence[str], tag: str, facts: Mapping[str, str]) -> None:
    if tag == "MetricDB":
        tree.metrics[int(facts["i"])] = facts["n"]
    elif tag == "PF" and ancestors and ancestors[-1] == "SecCallPathProfileData":
        tree.roots.append(int(facts["i"]))
    elif tag == "S":
        tree.statements.append(int(facts["i"]))
    elif tag == "SecCallPathProfile":
        tree.name = facts.get("n", "")


def _thread(path: Path, tree: _Tree) -> Thread:
    match = _FILE.fullmatch(path.name)
    if match is None:
        raise InputError.of(
            where=path, expected="a name with process and thread (…-000000-000-…-0.metric-db)"
        )
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
        size = path.stat().st_size
    except OSError as error:
        raise InputError.of(where=path, problem=f"cannot read the metrics ({error.strerror})") from error
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        raise InputError.of(
            where=path, expected=f"metrics of HPCToolkit ({_MAGIC.decode()})", found="another file"
        )
    _, version, order, nodes, metrics = _HEADER.unpack(header)
    if order != b"b":
        raise InputError.of(where=path, expected="big-endian numbers (b)", found=f"a version with {order!r}")
    if nodes < 1 or metrics != len(tree.metrics):
        raise InputError.of(
            where=path,
            expected=f"{len(tree.metrics)} metrics of a tree's nodes",
            found=f"{metrics} of {nodes} (version {version.decode('ascii', 'replace')})",
        )
    if size < _HEADER.size + 8 * nodes * metrics:
        raise InputError.of(
            where=path, expected=f"{nodes} nodes with {metrics} metrics", found="a file that is cut off"
        )
    for node in (*tree.roots, *tree.statements):
        if not 1 <= node <= nodes:
            raise InputError.of(
                where=path, expected=f"nodes from 1 to {nodes}", found=f"{node} in {EXPERIMENT}"
            )
    table = np.memmap(path, dtype=">f8", mode="r", offset=_HEADER.size, shape=(nodes, metrics))
    return Thread(int(match[1]), _values(table, tree))


def _values(table: Reals, tree: _Tree) -> dict[str, float]:
    """Inclusive values of the roots; for a metric with exclusive values only, the sum over all statements."""
    columns = [name for _, name in sorted(tree.metrics.items())]
    values: dict[str, float] = {}
    for scope, nodes in (("I", tree.roots), ("", tree.roots), ("E", tree.statements)):
        rows = np.array(nodes, dtype=np.int64) - 1
        for column, metric in enumerate(columns):
            match = _SCOPE.search(metric)
            name = _SCOPE.sub("", metric)
            if (
                (match["scope"] if match else "") == scope
                and name not in values
                and not _SUMMARY.search(metric)
            ):
                values[name] = float(table[rows, column].sum())
    return values


_TIMES = ("REALTIME", "WALLCLOCK", "CPUTIME")  # Metrics that hold the time of a thread, best first


def is_hpctoolkit(folder: Path) -> bool:
    """Whether a folder looks like a database."""
    return (folder / EXPERIMENT).is_file() or (folder / META).is_file()


def read_hpctoolkit(folder: Path) -> CountedRun:
    """Read the counters of a run, summed over the threads of a process and averaged over the processes.

    Nichols et al. 2024 do so, too (section V-B). The time is that of the slowest thread: its wall-clock time
    (``REALTIME``) if that was measured, else its CPU time (``CPUTIME``).
    """
    if (folder / EXPERIMENT).is_file():
        name, threads = read_old_database(folder)
    elif (folder / META).is_file():
        name, threads = read_new_database(folder)
    else:
        raise InputError.of(
            where=folder, expected=f"a database of HPCToolkit with {EXPERIMENT} or {META}", found="neither"
        )
    if not threads:
        raise InputError.of(where=folder, expected="a database of HPCToolkit with threads", found="none")
    # Of each thread, by name
    values: defaultdict[str, list[float]] = defaultdict(list)
    for thread in threads:
        for metric_name, value in _in_si(thread).items():
            values[metric_name].append(value)
    processes = len({thread.process for thread in threads})
    counters = {each: sum(parts) / processes for each, parts in values.items() if each not in _TIMES}
    time_s = next((max(values[each]) for each in _TIMES if each in values), None)
    return CountedRun(str(folder), name, counters, time_s)


def _in_si(thread: Thread) -> dict[str, float]:
    """Values by name; a metric such as ``CPUTIME (usec)`` has a unit behind it."""
    values: defaultdict[str, float] = defaultdict(float)
    for metric, value in thread.values.items():
        name, bracket, unit = metric.strip().rpartition(" (")
        if bracket and unit.endswith(")"):
            values[name.strip()] += value * factor_of(unit.removesuffix(")"))
        else:
            values[metric.strip()] += value
    return values
