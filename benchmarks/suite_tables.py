"""The tables of docs/suite.md: ``python -m benchmarks.suite_tables`` prints them as Markdown."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from crosscast.data.schema import SIZES
from crosscast.kernel import Program
from crosscast.measure.opencl import OpenCLQueue, devices
from crosscast.suite.application import Application, application, check_result, names, working_set
from crosscast.units import format_bytes, format_count

DWARFS = {
    "bfs": "graph traversal",
    "cfd": "unstructured grids",
    "crc": "combinational logic",
    "csr": "sparse linear algebra",
    "dwt": "spectral methods",
    "fft": "spectral methods",
    "gem": "n-body methods",
    "hmm": "graphical models",
    "kmeans": "dense linear algebra",
    "lud": "dense linear algebra",
    "nqueens": "backtrack and branch-and-bound",
    "nw": "dynamic programming",
    "srad": "structured grids",
    "swat": "dynamic programming",
}
"""Class of each application of the suite by its pattern of computation and communication."""

_SEED = 0


class Extent(NamedTuple):
    """How large a run of an application is: bytes of its working set, and launches of kernels."""

    nbytes: int
    launches: int


def description_table() -> str:
    """What each application computes, its class and its kernels."""
    rows = [
        (kind.name, _summary(kind), DWARFS[kind.name], ", ".join(f"`{name}`" for name in kind.kernels))
        for kind in _suite()
    ]
    return _table(("application", "what it computes", "class", "kernels"), rows)


def parameter_table() -> str:
    """Parameters of each application at each size."""
    rows = []
    for kind in _suite():
        parameters = [kind.fit(working_set(size)) for size in SIZES]
        cells = (", ".join(map(str, extents.values())) for extents in parameters)
        rows.append((kind.name, ", ".join(parameters[0]), *cells))
    return _table(("application", "parameters", *SIZES), rows)


def extent_table(sizes: Sequence[str]) -> str:
    """Working set and launches of each application at some sizes."""
    rows = []
    for kind in _suite():
        extents = (extent_of(kind, size) for size in sizes)
        rows.append((kind.name, *(f"{format_bytes(e.nbytes)}, {format_count(e.launches)}" for e in extents)))
    return _table(("application", *sizes), rows)


def extent_of(kind: type[Application], size: str) -> Extent:
    """Run an application once on the first OpenCL device, and count its launches.

    Data may decide how many there are, as in bfs, so that only a run tells.
    """
    problem = kind(kind.fit(working_set(size)), _SEED)
    program = Program.from_file(kind.source_path(), options=kind.options)
    queue = OpenCLQueue(devices()[0], program, problem.arrays)
    times = queue.timed(problem.run)
    check_result(problem)
    return Extent(problem.nbytes, sum(map(len, times.kernels_s.values())))


def main() -> None:
    """Print the three tables."""
    print(description_table(), parameter_table(), extent_table(SIZES), sep="\n")


def _suite() -> Iterator[type[Application]]:
    return map(application, names())


def _summary(kind: type[Application]) -> str:
    """First sentence of the class's documentation."""
    return str(inspect.getdoc(kind)).partition("\n\n")[0].replace("\n", " ").rstrip(".")


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (heading, ["---"] * len(heading), *rows)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    main()
