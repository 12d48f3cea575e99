"""The configurations on a kernel's Pareto frontier, as a table (Table I of Bailey et al. 2014)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table
from rich.text import Text

from crosscast.arrays import Reals
from crosscast.decide.cases import Integers
from crosscast.decide.evaluation import MachineChoices
from crosscast.errors import InputError
from crosscast.predict.configuration.data import KernelAt, Surfaces, pareto_frontier
from crosscast.report.settings import setting_heading, setting_text, shown_settings
from crosscast.tables.whole_file import whole_file

__all__ = ["KernelFrontier", "frontier_of", "frontier_table", "longest_frontier", "write_frontier"]


@dataclass(frozen=True, eq=False)
class KernelFrontier:
    """One kernel over all configurations, and its frontier.

    Parameters
    ----------
    surfaces
        All kernels of the machine.
    row
        Which kernel.
    frontier
        ``(f,)`` Configurations on the frontier, by rising power.
    performance
        ``(c,)`` One over the time, normalised to the fastest configuration; NaN where it did not run.
    power_w
        ``(c,)`` Power in watts; NaN where it did not run.
    """

    surfaces: Surfaces
    row: int
    frontier: Integers
    performance: Reals
    power_w: Reals

    @property
    def kernel(self) -> KernelAt:
        """The kernel."""
        return self.surfaces.kernels[self.row]


def frontier_of(surfaces: Surfaces, row: int) -> KernelFrontier:
    """The frontier of one kernel, by its row."""
    time_s, power_w = surfaces.time_s[row], surfaces.power_w[row]
    return KernelFrontier(
        surfaces, row, pareto_frontier(time_s, power_w), np.nanmin(time_s) / time_s, power_w
    )


def longest_frontier(machine: MachineChoices) -> KernelFrontier:
    """The frontier with the most configurations, of kernels that were asked about; the first of several."""
    rows, counts = np.unique(machine.cases.kernel, return_counts=True)
    return frontier_of(machine.surfaces, int(rows[counts.argmax()]))


def _lines(found: KernelFrontier) -> list[list[str]]:
    """Heading and rows, for people."""
    space = found.surfaces.space
    names = shown_settings(space)
    lines = [["device", *map(setting_heading, names), "power, W", "performance"]]
    for number in found.frontier.tolist():
        each = space.configurations[number]
        settings = [setting_text(name, each.settings.get(name)) for name in names]
        watts, performance = f"{found.power_w[number]:.1f}", f"{found.performance[number]:.2f}"
        lines.append([each.device, *settings, watts, performance])
    return lines


def frontier_table(found: KernelFrontier) -> Table:
    """The configurations on the frontier, with their settings, power and normalised performance."""
    heading, *rows = _lines(found)
    table = Table(box=None, pad_edge=False)
    for place, text in enumerate(heading):
        table.add_column(text, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def write_frontier(found: KernelFrontier, folder: Path) -> list[Path]:
    """Write the table as ``frontier.csv``, in SI units, and as ``frontier.md``.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    paths = [folder / "frontier.csv", folder / "frontier.md"]
    for path, write in zip(paths, (_write_csv, _write_markdown), strict=True):
        try:
            with whole_file(path) as temporary:
                write(found, temporary)
        except OSError as error:
            raise InputError(f"figures: cannot write {path} ({error.strerror or error})") from error
    return paths


def _write_csv(found: KernelFrontier, path: Path) -> None:
    space = found.surfaces.space
    names = shown_settings(space)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["device", *names, "power_w", "time_s", "performance"])
        for number in found.frontier.tolist():
            each = space.configurations[number]
            settings = [each.settings.get(name, "") for name in names]
            time_s = float(found.surfaces.time_s[found.row, number])
            measured = [float(found.power_w[number]), time_s, float(found.performance[number])]
            writer.writerow([each.device, *settings, *measured])


def _write_markdown(found: KernelFrontier, path: Path) -> None:
    heading, *rows = _lines(found)
    marks = ["---", *["---:"] * (len(heading) - 1)]
    lines = [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in [heading, marks, *rows]
    ]
    title = f"Configurations on the frontier of {found.kernel}; performance relative to the fastest."
    path.write_text("\n".join([title, "", *lines]) + "\n", encoding="utf-8")
