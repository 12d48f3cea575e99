"""Predicted relative times on a terminal: a table a run, the devices in order, and how good the model is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.table import Table
from rich.text import Text

from crosscast.predict.relative.artefact import RelativeCard, RelativePrediction, RelativeTime
from crosscast.report.console import console_of_numbers
from crosscast.report.numbers import NONE, factor, percent, three_digits
from crosscast.report.relative_training import honest_relative_errors, relative_trained_on
from crosscast.units import format_seconds

__all__ = ["print_relative_predictions"]

_MOST_TABLES = 12


def print_relative_predictions(
    predictions: Sequence[RelativePrediction], card: RelativeCard, stream: TextIO
) -> None:
    """Print what was predicted.

    Parameters
    ----------
    predictions
        The runs: a table each, or a line each where there are many.
    card
        Card of the model.
    stream
        Where to print; colours only on a terminal.
    """
    console = console_of_numbers(stream)
    if len(predictions) > _MOST_TABLES:
        console.print(_line_each(predictions))
        console.print(
            Text("With all devices: --json, or --application and --kernel for a few."), soft_wrap=True
        )
        console.print()
    for prediction in predictions if len(predictions) <= _MOST_TABLES else ():
        console.print(Text(_subject(prediction), style="bold"), soft_wrap=True)
        console.print(_table(prediction))
        for line in (*_advice(prediction), ""):
            console.print(Text(line), soft_wrap=True)
    for line in (f"{card.model}, {relative_trained_on(card)}", *honest_relative_errors(card)):
        console.print(Text(line), soft_wrap=True)


def _subject(prediction: RelativePrediction) -> str:
    counted = f", counted on {prediction.source}" if prediction.source else ""
    timed = (
        ""
        if prediction.timed_s is None
        else f", {format_seconds(prediction.timed_s)} on {prediction.timed_on}"
    )
    return f"{prediction.label}{counted}{timed}"


def _table(prediction: RelativePrediction) -> Table:
    than = prediction.relative_to or "the slowest"
    interval = f"{100 * prediction.reached:.3g} % interval"
    timed = prediction.timed_s is not None
    table = Table(box=None, pad_edge=False)
    table.add_column("device", no_wrap=True)
    table.add_column(f"time over {than}", justify="right", no_wrap=True)
    table.add_column(interval, no_wrap=True)
    table.add_column("speed-up", justify="right", no_wrap=True)
    table.add_column("fastest", justify="right", no_wrap=True)
    if timed:
        table.add_column("time", justify="right", no_wrap=True)
        table.add_column(interval, no_wrap=True)
    for each in prediction.order:
        itself = each.device == prediction.relative_to
        table.add_row(
            Text(each.device, style="bold" if each.rank == 1 else ""),
            three_digits(each.relative),
            "itself" if itself else f"{three_digits(each.low)} to {three_digits(each.high)}",
            factor(each.speed_up),
            _probability(each.probability_fastest),
            *(_seconds(each, prediction) if timed else ()),
        )
    return table


def _line_each(predictions: Sequence[RelativePrediction]) -> Table:
    """A line for each run: the device to take, and how much time it takes."""
    than = predictions[0].relative_to or "the slowest"
    table = Table(box=None, pad_edge=False)
    for heading in ("run", "counted on", "take"):
        table.add_column(heading, no_wrap=True)
    for heading in ("fastest", f"time over {than}"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    for prediction in predictions:
        best = prediction.order[0]
        table.add_row(
            prediction.label,
            prediction.source or NONE,
            best.device,
            _probability(best.probability_fastest),
            three_digits(best.relative),
            f"{three_digits(best.low)} to {three_digits(best.high)}",
        )
    return table


def _seconds(each: RelativeTime, prediction: RelativePrediction) -> tuple[str, str]:
    if each.time_s is None or each.time_low_s is None or each.time_high_s is None:
        return "", ""
    if each.device == prediction.timed_on:
        return format_seconds(each.time_s), "measured"
    return (
        format_seconds(each.time_s),
        f"{format_seconds(each.time_low_s)} to {format_seconds(each.time_high_s)}",
    )


def _advice(prediction: RelativePrediction) -> tuple[str, ...]:
    order = prediction.order
    likely = max(order, key=lambda each: each.probability_fastest)
    doubt = ""
    if likely.device != order[0].device:
        share = _probability(likely.probability_fastest)
        doubt = f" More often than that, {likely.device} is the fastest ({share})."
    return (
        f"Fastest first: {', '.join(each.device for each in order)}; all in this order with a probability of "
        f"{_probability(prediction.same_order)}.",
        f"Take {order[0].device}: the fastest with a probability of "
        f"{_probability(order[0].probability_fastest)}.{doubt}",
    )


def _probability(share: float) -> str:
    if share < 0.005:
        return "less than 1 %"
    return "more than 99 %" if share > 0.995 else percent(share)
