"""A forecast of a bag on a terminal: how long it takes, who slows down, the power, and how sure that is."""

from __future__ import annotations

from typing import TextIO

from rich.text import Text

from crosscast.predict.corun.artefact import CoRunCard
from crosscast.predict.corun.forecast import Estimate, MixForecast
from crosscast.predict.warnings import format_names
from crosscast.report.console import console_of_numbers
from crosscast.report.corun_training import corun_trained_on, honest_corun_errors
from crosscast.report.number_table import number_table
from crosscast.report.numbers import NONE, factor, percent, three_digits
from crosscast.units import format_bytes, format_seconds

__all__ = ["print_corun_forecast"]

_MOST_NAMED = 5


def print_corun_forecast(forecast: MixForecast, card: CoRunCard, stream: TextIO) -> None:
    """Print what is predicted of one bag.

    Parameters
    ----------
    forecast
        The bag.
    card
        Card of the model.
    stream
        Where to print; colours only on a terminal.
    """
    console = console_of_numbers(stream)
    console.print(Text(f"{forecast.label} on {forecast.mix[0].device}", style="bold"), soft_wrap=True)
    table = number_table("application", ["alone", "slowdown", "interval", "in the bag"])
    for solo, slowdown in zip(forecast.mix, forecast.slowdown, strict=True):
        table.add_row(
            Text(solo.name),
            NONE if solo.time_s is None else format_seconds(solo.time_s),
            NONE if slowdown is None else factor(slowdown.value),
            NONE if slowdown is None else f"{factor(slowdown.low)} to {factor(slowdown.high)}",
            NONE if slowdown is None or solo.time_s is None else format_seconds(slowdown.value * solo.time_s),
        )
    console.print(table)
    for line in (*_whole(forecast, card), ""):
        console.print(Text(line), soft_wrap=True)
    for line in (f"{card.model}, {corun_trained_on(card)}", *honest_corun_errors(card)):
        console.print(Text(line), soft_wrap=True)


def _whole(forecast: MixForecast, card: CoRunCard) -> list[str]:
    lines = []
    time, serial = forecast.time_s, forecast.serial_s
    if time is not None:
        said = (
            f"All together: {format_seconds(time.value)} ({format_seconds(time.low)} to "
            f"{format_seconds(time.high)}, {_level(time)} interval)"
        )
        if serial is not None:
            said += f"; one after another {format_seconds(serial)}: {_gain(time, serial)}"
        lines.append(f"{said}.")
    if forecast.power_w is not None:
        power = forecast.power_w
        lines.append(
            f"Power while all run: {three_digits(power.value)} W ({three_digits(power.low)} to "
            f"{three_digits(power.high)} W, {_level(power)} interval)."
        )
    elif forecast.mix[0].device != card.device:
        lines.append("Power: not known, as it is not translated.")
    elif unknown := list(dict.fromkeys(solo.name for solo in forecast.mix if not solo.power_w)):
        lines.append(f"Power: not known, as that of {format_names(unknown, _MOST_NAMED)} alone is not.")
    else:
        lines.append("Power: not known, as the model was trained on bags without.")
    if forecast.fits is not None:
        lines.append(f"They fit on the device together with a probability of {percent(forecast.fits)}.")
    if forecast.memory_bytes is not None:
        lines.append(f"Memory of all: {format_bytes(forecast.memory_bytes)}.")
    return lines


def _level(value: Estimate) -> str:
    return f"{100 * value.reached:.3g} %"


def _gain(time: Estimate, serial: float) -> str:
    share = 1 - time.value / serial
    said = f"{percent(abs(share))} {'saved' if share > 0 else 'lost'}"
    sure = time.high < serial or time.low > serial
    return said if sure else f"{said}, but the interval holds both"
