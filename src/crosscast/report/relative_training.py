"""A trained model of relative performance on a terminal: what it learned from, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from crosscast.predict.relative.artefact import RelativeCard
from crosscast.predict.relative.data import NO_SOURCE
from crosscast.predict.warnings import listed
from crosscast.report.console import console_of_numbers
from crosscast.report.number_table import number_table
from crosscast.report.numbers import NONE, percent, plural

__all__ = ["honest_relative_errors", "print_relative_training", "relative_trained_on"]

_COLUMNS = (
    ("MAE", "mae", "{:.3f}"),
    ("same order", "same_order", ""),
    ("fastest found", "top1", ""),
    ("regret", "regret", ""),
    ("typical factor", "typical_factor", "{:.2f}×"),
)
_OF_WHAT = {"leave-application-out": "application", "leave-kernel-out": "kernel"}
_MOST_NAMED = 8


def print_relative_training(card: RelativeCard, folder: Path, stream: TextIO) -> None:
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
    counters = f"Counters: {_named(card.counters)}."
    for line in (f"{folder}: {card.model}, {relative_trained_on(card)}", counters, ""):
        console.print(Text(line), soft_wrap=True)
    console.print(_table(card))
    each = _OF_WHAT.get(str(card.errors.get("protocol")), "group")
    for line in (
        f"Each {each} was left out in turn, and predicted by the model fitted to the others. "
        "Applications weigh the same.",
        "MAE: mean absolute error of times over that on the slowest device. Same order: all devices in their "
        "true order.",
        "Regret: time on the device predicted to be the fastest, over that on the fastest, less 1. "
        "Typical factor: how far ratios of two devices' times are off.",
        *_held(card),
        "Exact definitions: docs/relative.md.",
    ):
        console.print(Text(line), soft_wrap=True)


def relative_trained_on(card: RelativeCard) -> str:
    """What a model was trained on, as a sentence without its subject."""
    facts = card.training
    sources = [each for each in card.sources if each != NO_SOURCE]
    counted = f"counted on {_named(sources)}" if sources else "with profiles that are of no device"
    return (
        f"trained on {facts.get('dataset')}: {plural(int(facts.get('runs', 0)), 'run')} of "
        f"{facts.get('kernels')} kernels ({facts.get('applications')} applications), {counted}, with times "
        f"on {len(card.devices)} devices ({_named(card.devices)})."
    )


def honest_relative_errors(card: RelativeCard) -> list[str]:
    """How good the model was on what it had not seen.

    Returns
    -------
    list of str
        Sentences; none if the card does not say.
    """
    result = _result_of(card)
    if result is None:
        return []
    each = _OF_WHAT.get(str(card.errors.get("protocol")), "group")
    parts = []
    if result.get("mae") is not None:
        parts.append(f"mean absolute error {result['mae']:.3f} of the time on the slowest device")
    if result.get("same_order") is not None:
        parts.append(f"devices in the right order for {percent(result['same_order'])}")
    if result.get("regret") is not None:
        parts.append(f"the device taken needed {percent(result['regret'])} more time than the fastest")
    return [f"On {each}s that it had not seen: {', '.join(parts)}.", *_held(card)]


def _held(card: RelativeCard) -> list[str]:
    result = _result_of(card)
    coverage = None if result is None else result.get("coverage")
    if coverage is None:
        return []
    others = int(card.errors.get("groups", 1)) - 1
    # As many others allow no more than this.
    level = min(float(card.errors.get("level", 0.9)), others / (others + 1))
    return [
        f"{100 * level:.3g} % intervals by the errors on the {others} others held {percent(coverage)} of its "
        "times relative to another device."
    ]


def _result_of(card: RelativeCard) -> Mapping[str, Any] | None:
    """Its scores, among those of the card."""
    own = [each for each in card.errors.get("results", ()) if each.get("model") == card.model]
    return own[0] if own else None


def _table(card: RelativeCard) -> Table:
    table = number_table("model", [heading for heading, *_ in _COLUMNS])
    for result in card.errors.get("results", ()):
        own = result["model"] == card.model
        label = result["model"] if own else f"{result['model']} (baseline)"
        table.add_row(
            Text(label, style="bold" if own else ""),
            *(_cell(result.get(name), form) for _, name, form in _COLUMNS),
        )
    return table


def _cell(value: float | None, form: str) -> str:
    if value is None:
        return NONE
    return form.format(value) if form else percent(value)


def _named(names: Sequence[str]) -> str:
    return listed(names, _MOST_NAMED)
