"""A trained model of configurations on a terminal: what it learned, what to run for it, how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from crosscast.predict.configuration.artefact import ConfigurationCard
from crosscast.report.console import console_of_numbers
from crosscast.report.numbers import NONE, percent, plural
from crosscast.report.settings import configuration_text

__all__ = ["chooser_trained_on", "honest_chooser_errors", "print_chooser_training", "samples_lines"]

_COLUMNS = (
    ("under the cap", "under_limit_share"),
    ("performance, under", "under_performance"),
    ("power, over", "over_power"),
    ("score", "score"),
)


def print_chooser_training(
    card: ConfigurationCard, folder: Path, stream: TextIO, tree: tuple[str, str] | None = None
) -> None:
    """Print a card.

    Parameters
    ----------
    card
        Card of the model.
    folder
        Where the model is.
    stream
        Where to print; colours only on a terminal.
    tree
        Of the published model: what its clusters are, and the tree that tells them apart, as text.
    """
    console = console_of_numbers(stream)
    lines = [f"{folder}: {card.model}, {chooser_trained_on(card)}", "", *samples_lines(card)]
    lines += [f"To write the file for these runs: crosscast choose --model {folder} --template runs.csv", ""]
    if tree is not None:
        lines += [f"{tree[0]}.", tree[1], ""]
    for line in [*lines, *honest_chooser_errors(card)]:
        console.print(Text(line), soft_wrap=True)
    choices = card.errors.get("choices") or []
    if choices:
        console.print(_table(choices))
        console.print(
            Text(
                "Caps are the powers on each kernel's true frontier; power and performance are relative to "
                "the best choice under them. Score: performance, where what is over the cap counts 0. "
                "+fl: with limiting, after so many extra runs."
            ),
            soft_wrap=True,
        )


def chooser_trained_on(card: ConfigurationCard) -> str:
    """What a model was trained on, as a sentence without its subject."""
    facts = card.training
    devices = card.space.devices
    return (
        f"trained on {facts.get('dataset')}: {plural(int(facts.get('cells', 0)), 'run')} of "
        f"{facts.get('kernels_at_a_size')} kernels at a size ({facts.get('applications')} applications) at "
        f"{plural(len(card.space), 'configuration')} of {plural(len(devices), 'device')} "
        f"({', '.join(devices)})."
    )


def samples_lines(card: ConfigurationCard) -> list[str]:
    """Which configurations must be run for a new kernel, a line each."""
    listed = [f"  {configuration_text(each)}" for each in card.sample_configurations]
    return ["A new kernel must be run once at:", *listed]


def honest_chooser_errors(card: ConfigurationCard) -> list[str]:
    """How good the model was on applications that it had not seen; none if the card does not say."""
    errors = card.errors
    parts = []
    for what in ("time", "power"):
        rmse, median = errors.get(f"rmse_log_{what}"), errors.get(f"median_ape_{what}")
        if rmse is None:
            continue
        coverage = errors.get(f"coverage_{what}")
        held = (
            ""
            if coverage is None
            else f", {100 * errors.get('level', 0.9):g} % intervals held {percent(coverage)}"
        )
        error = "" if median is None else f"median error {100 * median:.3g} %, "
        parts.append(f"{what}: {error}RMSE of the logarithm {rmse:.3f}{held}")
    return [f"On applications that it had not seen: {'; '.join(parts)}."] if parts else []


def _table(choices: list[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for heading, _ in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("extra runs", justify="right", no_wrap=True)
    for result in choices:
        runs = result.get("extra_runs")
        table.add_row(
            Text(str(result["method"])),
            *(percent(result.get(name)) for _, name in _COLUMNS),
            NONE if runs is None else f"{runs:.1f}",
        )
    return table
