"""A trained model on a terminal: what it was trained on, and how good it is on what it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from crosscast.predict.time.artefact import TimeCard
from crosscast.report.console import console_of_numbers
from crosscast.report.prediction import trained_on

__all__ = ["print_training"]

_COLUMNS = (
    ("RMSE", "rmse_log", "{:.2f}", 1),
    ("med. APE", "median_ape", "{:.0f} %", 100),
    ("by appl.", "median_ape_by_application", "{:.0f} %", 100),
    ("slowdown", "slowdown_mean", "{:.2f}×", 1),
    ("coverage", "coverage", "{:.0f} %", 100),
    ("worst", "coverage_worst_application", "{:.0f} %", 100),
)


def print_training(card: TimeCard, folder: Path, stream: TextIO) -> None:
    """Print a card.

    Parameters
    ----------
    card
        Card of the model.
    folder
        Where the model is.
    stream
        Where to print; colours only on a terminal.
    """
    console = console_of_numbers(stream)
    console.print(Text(f"{folder}: {card.model}, {trained_on(card)}"), soft_wrap=True)
    console.print()
    console.print(_table(card))
    level = 100 * card.errors.get("level", 0.9)
    for line in (
        "Each application was left out in turn, and predicted by the model fitted to the others. 0, 1, 2: "
        "devices on which its kernels were measured before.",
        "RMSE: of the logarithm of the time. APE: median error of a time, over all cells and as a mean over "
        "applications.",
        "Slowdown: time on the device taken over that on the fastest, mean over kernels. Coverage: share of "
        f"an application's times within {level:g} % intervals, mean over applications, and the worst's.",
        "With intervals and by application: card.json. Exact definitions: docs/evaluation.md.",
    ):
        console.print(Text(line), soft_wrap=True)


def _table(card: TimeCard) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("probes", no_wrap=True)
    table.add_column("model", no_wrap=True)
    for heading, *_ in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    results = card.errors.get("results", ())
    for probes in sorted({result["probes"] for result in results}):
        for result in results:
            if result["probes"] == probes:
                name = result["model"]
                style = "bold" if name == card.model else ""
                label = name if name == card.model else f"{name} (baseline)"
                table.add_row(str(probes), Text(label, style=style), *_cells(result))
    floor = card.errors.get("noise_floor")
    if floor is not None:
        table.add_row("", Text("noise floor (a run itself)", style="dim"), *_cells(floor))
    return table


def _cells(result: Mapping[str, Any]) -> list[str]:
    found = [(result.get(name), form, scale) for _, name, form, scale in _COLUMNS]
    return ["—" if value is None else form.format(value * scale) for value, form, scale in found]
