"""Databases of HPCToolkit up to 2020: a tree in ``experiment.xml``, and a file of metrics for each thread.

A file of metrics has a header of 32 bytes, then big-endian doubles: of node ``n`` (from 1) and metric ``m``
(from 0) at place ``(n - 1) * metrics + m``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from crosscast.errors import InputError
from crosscast.tables.importers.counters.hpctoolkit_threads import Thread

__all__ = ["EXPERIMENT", "read_old_database"]

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
    """Name of the program, and what was measured of each of its threads.

    Raises
    ------
    InputError
        If a file is missing, cut off, or of another version.
    """
    tree = _tree(folder / EXPERIMENT)
    files = sorted(folder.glob(_METRICS))
    if not files or len(files) > _MOST_FILES:
        raise InputError(
            f"{folder}: expected files {_METRICS} beside {EXPERIMENT}, as hpcprof of HPCToolkit up to 2020 "
            f"makes them with --metric-db yes, found {len(files)}"
        )
    return tree.name or folder.name, [_thread(file, tree) for file in files]


def _tree(path: Path) -> _Tree:
    tree = _Tree()
    above: list[str] = []
    try:
        with path.open("rb") as file:
            for event, element in ElementTree.iterparse(file, ("start", "end")):
                if event == "start":
                    _take(tree, above, element.tag, element.attrib)
                    above.append(element.tag)
                else:
                    above.pop()
                    element.clear()
    except (ElementTree.ParseError, ValueError, KeyError) as error:
        raise InputError(
            f"{path}: expected the XML of an HPCToolkit database, found something else or a part "
            f"of it ({error})"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: cannot read the database ({error.strerror})") from error
    if not tree.metrics or not tree.roots:
        raise InputError(
            f"{path}: expected MetricDB and PF elements, as HPCToolkit up to 2020 writes them, found none"
        )
    return tree


def _take(tree: _Tree, above: Sequence[str], tag: str, facts: Mapping[str, Any]) -> None:
    if tag == "MetricDB":
        tree.metrics[int(facts["i"])] = facts["n"]
    elif tag == "PF" and above and above[-1] == "SecCallPathProfileData":
        tree.roots.append(int(facts["i"]))
    elif tag == "S":
        tree.statements.append(int(facts["i"]))
    elif tag == "SecCallPathProfile":
        tree.name = facts.get("n", "")


def _thread(path: Path, tree: _Tree) -> Thread:
    match = _FILE.fullmatch(path.name)
    if match is None:
        raise InputError(f"{path}: expected a name with process and thread (…-000000-000-…-0.metric-db)")
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{path}: cannot read the metrics ({error.strerror})") from error
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        raise InputError(f"{path}: expected metrics of HPCToolkit ({_MAGIC.decode()}), found another file")
    _, version, order, nodes, metrics = _HEADER.unpack(header)
    if order != b"b":
        raise InputError(f"{path}: expected big-endian numbers (b), found a version with {order!r}")
    if nodes < 1 or metrics != len(tree.metrics):
        raise InputError(
            f"{path}: expected {len(tree.metrics)} metrics of a tree's nodes, found {metrics} of {nodes} "
            f"(version {version.decode('ascii', 'replace')})"
        )
    if size < _HEADER.size + 8 * nodes * metrics:
        raise InputError(
            f"{path}: expected {nodes} nodes with {metrics} metrics, found a file that is cut off"
        )
    for node in (*tree.roots, *tree.statements):
        if not 1 <= node <= nodes:
            raise InputError(f"{path}: expected nodes from 1 to {nodes}, found {node} in {EXPERIMENT}")
    table = np.memmap(path, dtype=">f8", mode="r", offset=_HEADER.size, shape=(nodes, metrics))
    return Thread(int(match[1]), _values(table, tree))


def _values(table: Any, tree: _Tree) -> dict[str, float]:
    """Inclusive values of the roots; of a metric that has exclusive ones only, those of all statements."""
    columns = [name for _, name in sorted(tree.metrics.items())]
    values: dict[str, float] = {}
    for scope, nodes in (("I", tree.roots), ("", tree.roots), ("E", tree.statements)):
        places = np.array(nodes, dtype=np.int64) - 1
        for column, metric in enumerate(columns):
            match = _SCOPE.search(metric)
            name = _SCOPE.sub("", metric)
            if (
                (match["scope"] if match else "") == scope
                and name not in values
                and not _SUMMARY.search(metric)
            ):
                values[name] = float(table[places, column].sum())
    return values
