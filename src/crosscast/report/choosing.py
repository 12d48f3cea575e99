"""Choices under caps on a terminal: what to take, what else there is, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TextIO

from rich.table import Table
from rich.text import Text

from crosscast.decide.power_cap import Choice, Option
from crosscast.decide.samples import SampledKernel
from crosscast.predict.configuration.artefact import ConfigurationCard
from crosscast.report.chooser_training import chooser_trained_on, honest_chooser_errors, samples_lines
from crosscast.report.console import console_of_numbers
from crosscast.report.numbers import NONE, plural, three_digits
from crosscast.report.settings import configuration_text, setting_heading, setting_text, shown_settings
from crosscast.units import format_seconds

__all__ = ["print_chosen", "print_samples_to_run"]

_MOST_COLUMNS = 1000

_OBJECTIVES = {
    "performance": "the most performance",
    "energy": "the least energy",
    "edp": "the least energy times time",
}


def print_samples_to_run(card: ConfigurationCard, columns: Sequence[str], stream: TextIO) -> None:
    """Print where a new kernel has to be run, and what to write down.

    Parameters
    ----------
    card
        Card of the model.
    columns
        Columns to be filled in.
    stream
        Where to print.
    """
    console = console_of_numbers(stream)
    lines = [f"{card.model}, {chooser_trained_on(card)}", *samples_lines(card)]
    lines.append(f"To write down: {', '.join(columns)}; --template FILE makes the file.")
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def print_chosen(
    kernel: SampledKernel, choices: Sequence[Choice], card: ConfigurationCard, stream: TextIO
) -> None:
    """Print what is chosen for a kernel under each cap, and the predicted frontier.

    Parameters
    ----------
    kernel
        The kernel.
    choices
        A choice for each cap.
    card
        Card of the model.
    stream
        Where to print; colours only on a terminal.
    """
    table = _table(choices, card)
    console = console_of_numbers(stream)
    # A number that is cut off says another number.
    whole = console.measure(table, options=console.options.update(width=_MOST_COLUMNS)).maximum
    console.width = max(console.width, whole)
    console.print(Text(kernel.name, style="bold"), soft_wrap=True)
    for choice in choices:
        console.print(Text(_sentence(choice)), soft_wrap=True)
    console.print()
    console.print(Text(_heading(choices)), soft_wrap=True)
    console.print(table)
    console.print()
    for line in (
        _measured(kernel, card),
        f"{card.model}, {chooser_trained_on(card)}",
        *honest_chooser_errors(card),
    ):
        console.print(Text(line), soft_wrap=True)


def _heading(choices: Sequence[Choice]) -> str:
    first = choices[0]
    on_it = {each.configuration for each in first.frontier}
    others = [each for each in choices if each.chosen is not None and each.chosen.configuration not in on_it]
    below = "; below it what was chosen off it, as it is surer to keep to its cap" if others else ""
    return f"Predicted frontier, with intervals of {100 * first.level:g} %{below}:"


def _sentence(choice: Choice) -> str:
    wish = f"Under {choice.power_cap:g} W, for {_OBJECTIVES[choice.objective]}"
    if choice.confidence is not None:
        wish += f" that keeps to it with {100 * choice.confidence:.3g} %"
    chosen = choice.chosen
    if chosen is None:
        return f"{wish}: nothing is chosen."
    parts = [
        f"power {_watts(chosen.power_w)}{_watts_between(chosen)}",
        f"time {format_seconds(chosen.time_s)}{_times_between(chosen)}",
    ]
    sure = (
        ""
        if chosen.probability_under is None
        else f"; it keeps to the cap with a probability {_probability(chosen.probability_under)}"
    )
    said = "measured" if chosen.measured else "predicted"
    return f"{wish}: {configuration_text(chosen.configuration)}; {said} {', '.join(parts)}{sure}."


def _probability(value: float) -> str:
    # Nothing that is predicted is certain.
    return "over 99.9 %" if value >= 0.9995 else f"of {100 * value:.3g} %"


def _table(choices: Sequence[Choice], card: ConfigurationCard) -> Table:
    names = shown_settings(card.space)
    table = Table(box=None, pad_edge=False)
    table.add_column("device", no_wrap=True)
    for heading in (*map(setting_heading, names), "power, W"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("between", no_wrap=True)
    for heading in ("performance", "time, s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("between", no_wrap=True)
    table.add_column("", no_wrap=True)
    taken: dict[object, list[str]] = {}
    for choice in choices:
        if choice.chosen is not None:
            taken.setdefault(choice.chosen.configuration, []).append(f"{choice.power_cap:g} W")
    listed = {each.configuration: each for each in choices[0].frontier}
    for choice in choices:
        if choice.chosen is not None:
            listed.setdefault(choice.chosen.configuration, choice.chosen)
    for option in listed.values():
        caps = taken.get(option.configuration, [])
        mark = f"← {', '.join(caps)}" if caps else ""
        settings = [setting_text(name, option.configuration.settings.get(name)) for name in names]
        cells = [
            option.configuration.device,
            *settings,
            _tenths(option.power_w),
            _between(option, option.power_low_w, option.power_high_w, _tenths),
            f"{option.relative_performance:.2f}",
            three_digits(option.time_s),
            _between(option, option.time_low_s, option.time_high_s, three_digits),
            mark,
        ]
        table.add_row(*(Text(cell, style="bold" if caps else "") for cell in cells))
    return table


def _between(option: Option, low: float | None, high: float | None, text: Callable[[float], str]) -> str:
    if option.measured:
        return "measured"
    return NONE if low is None or high is None else f"{text(low)} to {text(high)}"


def _tenths(value: float) -> str:
    return f"{value:.1f}"


def _watts(power_w: float) -> str:
    return f"{power_w:.1f} W"


def _watts_between(option: Option) -> str:
    if option.measured or option.power_low_w is None or option.power_high_w is None:
        return ""
    return f" ({option.power_low_w:.1f} to {option.power_high_w:.1f} W)"


def _times_between(option: Option) -> str:
    if option.measured or option.time_low_s is None or option.time_high_s is None:
        return ""
    return f" ({format_seconds(option.time_low_s)} to {format_seconds(option.time_high_s)})"


def _measured(kernel: SampledKernel, card: ConfigurationCard) -> str:
    at = kernel.configurations(card)
    listed = "; ".join(map(configuration_text, at)) if len(at) <= 4 else plural(len(at), "configuration")
    return f"Measured in {plural(sum(kernel.runs), 'run')} at {listed}."
