"""Profiles as a table on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosscast.profile import CATEGORIES, METRICS, Metric, MetricValue, Profile
from crosscast.report.console import PLAIN_WIDTH, console_on
from crosscast.units import format_bytes, format_count, format_seconds

__all__ = ["format_value", "print_table", "profile_facts"]

_SIDE_BY_SIDE = 5
_TIME_NAMES = {"run_cpu": "CPU of the run"}


def print_table(profiles: Sequence[Profile], stream: TextIO) -> None:
    """Print the facts of each profile, then their metrics side by side, five at most.

    Parameters
    ----------
    profiles
        At least one.
    stream
        Where to print; colours only on a terminal.
    """
    console = console_on(stream, max(PLAIN_WIDTH, _natural_width(profiles)))
    for profile in profiles:
        _print_facts(console, profile)
    for first in range(0, len(profiles), _SIDE_BY_SIDE):
        console.print(_table(profiles[first : first + _SIDE_BY_SIDE]))
    console.print(Text("Metrics are exact for this program, compiler and launch; they depend on no device."))


def _natural_width(profiles: Sequence[Profile]) -> int:
    return 90 + 16 * min(len(profiles), _SIDE_BY_SIDE)


def _print_facts(console: Console, profile: Profile) -> None:
    console.print(Text(f"{profile.kernel}, launch {profile.invocation}", style="bold"))
    for name, text in profile_facts(profile):
        # Not through rich's markup: paths and options may hold brackets.
        console.print(Text(f"  {name:<11}{text}"), soft_wrap=True)
    console.print()


def profile_facts(profile: Profile) -> list[tuple[str, str]]:
    """What was measured, with which compiler and options, and how long that took.

    Returns
    -------
    list of tuple
        Label and text of each line.
    """
    facts = [("launch", _launch_text(profile.launch))]
    arguments = profile.launch.get("arguments", ())
    if arguments:
        facts.append(("arguments", ", ".join(_argument_text(argument) for argument in arguments)))
    facts.append(("program", _program_text(profile.program)))
    facts.append(("compiler", _compiler_text(profile.program)))
    times = {_TIME_NAMES.get(name, name): value for name, value in profile.timing_s.items()}
    spent = ", ".join(f"{name} {format_seconds(value)}" for name, value in times.items())
    machine = _machine_text(profile.environment)
    facts.append(("spent", f"{spent}{f' on {machine}' if machine else ''}"))
    return facts


def _launch_text(launch: Mapping[str, Any]) -> str:
    text = f"{_extent(launch['global_size'])} work-items in work-groups of {_extent(launch['local_size'])}"
    offset = launch.get("global_offset") or ()
    return f"{text}, offset {_extent(offset)}" if any(offset) else text


def _extent(sizes: Sequence[int]) -> str:
    return " x ".join(format_count(size) for size in sizes)


def _argument_text(argument: Any) -> str:
    """``float* a (4 MiB)`` or ``int n = 5``; texts stay as they are."""
    if not isinstance(argument, Mapping):
        return str(argument)
    text = f"{argument.get('type', '')} {argument.get('name', '')}".strip()
    if argument.get("nbytes") is not None:
        place = "local, " if argument.get("kind") == "local" else ""
        text += f" ({place}{format_bytes(argument['nbytes'])})"
    return f"{text} = {argument['value']}" if argument.get("value") is not None else text


def _program_text(program: Mapping[str, Any]) -> str:
    return f"{program.get('path') or 'from memory'} (sha256 {str(program.get('sha256', ''))[:12]})"


def _compiler_text(program: Mapping[str, Any]) -> str:
    options = program.get("options") or ()
    parts = [str(program.get("compiler", "unknown")), *map(str, options)]
    return " ".join(parts)


def _machine_text(environment: Mapping[str, Any]) -> str:
    return str(environment.get("processor") or environment.get("machine") or "")


def _table(profiles: Sequence[Profile]) -> Table:
    """Metrics of the four categories, a column a profile."""
    table = Table(title_justify="left", header_style="bold", pad_edge=False)
    table.add_column("metric", no_wrap=True)
    for profile in profiles:
        heading = "value" if len(profiles) == 1 else f"{profile.kernel} {profile.invocation}"
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("what it says")
    for category in CATEGORIES:
        table.add_row(Text(category, style="bold"))
        for metric in METRICS:
            if metric.category == category:
                values = [format_value(profile.metrics.get(metric.name)) for profile in profiles]
                table.add_row(f"  {metric.name}", *values, _unit_text(metric), metric.title)
        table.add_section()
    return table


def _unit_text(metric: Metric) -> str:
    """Unit for people: none for counts and ratios, whose title says it."""
    return "" if metric.unit in ("count", "1") else metric.unit


def format_value(value: MetricValue) -> str:
    """A metric's value for people; a dash where it is not defined.

    Examples
    --------
    >>> format_value(13120), format_value(0.0780487), format_value(None)
    ('13,120', '0.0780487', '—')
    """
    if value is None:
        return "—"
    if isinstance(value, int):
        return format_count(value)
    return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
