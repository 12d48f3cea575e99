"""A plan of which jobs share a device on a terminal: who with whom, who alone, and what that gains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.text import Text

from crosscast.decide.colocation import ColocationPlan, SharedMix
from crosscast.predict.corun.artefact import CoRunCard
from crosscast.predict.corun.forecast import Estimate
from crosscast.report.console import console_of_numbers
from crosscast.report.corun_training import corun_trained_on, honest_corun_errors
from crosscast.report.number_table import number_table, print_table
from crosscast.report.numbers import factor, percent, plural
from crosscast.units import format_seconds

__all__ = ["print_colocation"]


def print_colocation(plan: ColocationPlan, names: Sequence[str], card: CoRunCard, stream: TextIO) -> None:
    """Print a plan.

    Parameters
    ----------
    plan
        The plan.
    names
        What to call each job.
    card
        Card of the model.
    stream
        Where to print; colours only on a terminal.
    """
    console = console_of_numbers(stream)
    if plan.shared:
        _print_shared(plan, names, card, console)
    if plan.alone:
        console.print()
        console.print(Text(f"alone on {card.device}", style="bold"), soft_wrap=True)
        for each in plan.alone:
            line = f"{names[each.job]} ({format_seconds(each.time_s)}): {each.reason}"
            console.print(Text(line), soft_wrap=True)
    console.print()
    for line in (
        *_totals(plan),
        "",
        f"{card.model}, {corun_trained_on(card)}",
        *honest_corun_errors(card),
    ):
        console.print(Text(line), soft_wrap=True)


def _print_shared(plan: ColocationPlan, names: Sequence[str], card: CoRunCard, console: Console) -> None:
    told = any(each.fits is not None for each in plan.shared)
    headings = ["slowdown", "interval", "together", "one by one", *(["fit"] if told else []), "gain"]
    table = number_table("jobs", headings)
    for mix in plan.shared:
        whole = _whole(mix, told)
        for place, (job, slowdown) in enumerate(zip(mix.jobs, mix.slowdown, strict=True)):
            table.add_row(
                Text(f"{'+ ' if place else ''}{names[job]}"),
                factor(slowdown.value),
                f"{factor(slowdown.low)} to {factor(slowdown.high)}",
                *(whole[place] if place < len(whole) else ()),
            )
    print_table(console, f"together on {card.device}", table)


def _whole(mix: SharedMix, told: bool) -> tuple[list[str], list[str]]:
    """What is said of the whole mix, beside its first two jobs."""
    fits = [percent(mix.fits)] if told else []
    times = [format_seconds(mix.together_s), format_seconds(mix.serial_s), *fits]
    return [*times, _seconds(mix.gain_s.value)], [*("" for _ in times), _interval(mix.gain_s)]


def _totals(plan: ColocationPlan) -> list[str]:
    count = sum(len(each.jobs) for each in plan.shared) + len(plan.alone)
    serial = format_seconds(plan.serial_s)
    if not plan.shared:
        return [f"All {plural(count, 'job')} one after another: {serial}; nothing is gained by sharing."]
    time, gain = plan.time_s, plan.gain_s
    lines = [
        f"All {plural(count, 'job')}: {format_seconds(time.value)} instead of {serial} one after another.",
        f"Gain: {_seconds(gain.value)} ({_interval(gain)}, {100 * gain.reached:.3g} % interval), "
        f"{percent(gain.value / plan.serial_s)} of the time.",
    ]
    if gain.low <= 0:
        lines.append("The interval holds 0: it may be that nothing is gained.")
    if any(each.fits is not None for each in plan.shared):
        lines.append("Each gain counts by the probability that the jobs fit on the device together.")
    return lines


def _interval(gain: Estimate) -> str:
    return f"{_seconds(gain.low)} to {_seconds(gain.high)}"


def _seconds(value: float) -> str:
    return format_seconds(value) if value >= 0 else f"−{format_seconds(-value)}"
