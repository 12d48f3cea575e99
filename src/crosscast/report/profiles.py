"""Tables of profiles, and Kiviat figures."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosscast.data.launch_counts import (
    COUNTS,
    REUSE_CACHES,
    REUSE_GROUPS,
    REUSE_LINES,
    SUB_GROUPS,
    USES,
    counts_of,
    kinds_of,
    work_of,
)
from crosscast.profile import CATEGORIES, METRICS, MetricValue, Profile, compiler_options
from crosscast.report.document import (
    NONE,
    Heading,
    Part,
    Report,
    Table,
    check_suffix,
    require_matplotlib,
    save_figure,
)
from crosscast.report.figures import BLACK, GREY, PINK, RED, SKY
from crosscast.report.profile_summary import LEGEND, summary_of
from crosscast.units import format_bytes, format_count, format_quantity, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.projections.polar import PolarAxes

MOST_PROFILES = 7
"""Largest number of profiles in a Kiviat figure; more hide each other."""

_SIDE_BY_SIDE = 5
_FIRST_FACTS = ("launch", "program")
_LANGUAGES = {"cuda": "CUDA", "hip": "HIP"}
"""Languages other than OpenCL C, by the form of the program."""
_TIME_NAMES = {"run_cpu": "CPU of the run", "metrics_cpu": "CPU of the metrics"}


def profiles_report(profiles: Sequence[Profile], *, everything: bool = False) -> Report:
    """Make the summary of each profile; with `everything` also facts, metrics and counts, side by side."""
    named: set[str] = set()
    parts: list[Part] = []
    metrics: list[Part] = []
    for first in range(0, len(profiles) if everything else 0, _SIDE_BY_SIDE):
        metrics += ["", _table(profiles[first : first + _SIDE_BY_SIDE])]
    # Tables with all kernels side by side come before the kernels' sections.
    above, below = (metrics, []) if len(profiles) > 1 else ([], metrics)
    for profile in profiles:
        parts.append(Heading(f"{profile.kernel}, launch {profile.invocation}", 3))
        facts = profile_facts(profile)
        shown = facts if everything else [fact for fact in facts if fact[0] in _FIRST_FACTS]
        summary = summary_of(profile)
        named |= {name for name, _ in summary}
        parts += [f"  {name:<13}{text}" for name, text in (*shown, *summary)]
        parts += [*below, *(_reuse_table(profile) if everything else [])]
    exact = "Counts are exact for this program, compiler and launch, whatever the device."
    if "sample" in named:
        exact += " Those of a sample are as exact as it says; bytes behind caches are estimated."
    more = [] if everything else ["--all shows the metrics and every count, --json writes them."]
    legend = [text for name, text in LEGEND.items() if name in named]
    return Report([*above, *parts, "", *legend, exact, *more], "Profiles of kernels")


def profile_facts(profile: Profile) -> list[tuple[str, str]]:
    """Name and text of the facts about a profile: launch, arguments, program, compiler and time spent."""
    facts = [("launch", _launch_text(profile.launch))]
    arguments = profile.launch.get("arguments", ())
    if arguments:
        facts.append(("arguments", ", ".join(_argument_text(argument) for argument in arguments)))
    program = profile.program
    sha256 = str(program.get("sha256", ""))[:12]
    facts.append(("program", f"{program.get('path') or 'from memory'} (sha256 {sha256})"))
    if language := _LANGUAGES.get(str(program.get("form"))):
        facts.append(("language", f"{language}, {program.get('standard')}"))
    compiler = str(program.get("compiler", "unknown"))
    facts.append(("compiler", " ".join([compiler, *compiler_options(program)])))
    times = {_TIME_NAMES.get(name, name): value for name, value in profile.timing_s.items()}
    spent = ", ".join(f"{name} {format_seconds(value)}" for name, value in times.items())
    machine = profile.environment.get("processor") or profile.environment.get("machine")
    facts.append(("spent", f"{spent}{f' on {machine}' if machine else ''}"))
    return facts


def _launch_text(launch: Mapping[str, Any]) -> str:
    text = f"{_extent(launch['global_size'])} work-items in work-groups of {_extent(launch['local_size'])}"
    offset = launch.get("global_offset") or ()
    return f"{text}, offset {_extent(offset)}" if any(offset) else text


def _extent(sizes: Sequence[int]) -> str:
    return " x ".join(format_count(size) for size in sizes)


def _argument_text(argument: object) -> str:
    """Write an argument such as ``float* a (4 MiB)`` or ``int n = 5``; texts stay as they are."""
    if not isinstance(argument, Mapping):
        return str(argument)
    text = f"{argument.get('type', '')} {argument.get('name', '')}".strip()
    if argument.get("nbytes") is not None:
        space = "local, " if argument.get("kind") == "local" else ""
        text += f" ({space}{format_bytes(argument['nbytes'])})"
    return f"{text} = {argument['value']}" if argument.get("value") is not None else text


def _table(profiles: Sequence[Profile]) -> Table:
    """Make the table of the metrics by category, with a column for each profile."""
    several = len(profiles) > 1
    values = [f"{p.kernel} {p.invocation}" for p in profiles] if several else ["value"]
    rows: list[list[object]] = []
    for category in CATEGORIES:
        rows.append([category])
        for metric in METRICS:
            if metric.category == category:
                cells = [profile.metrics.get(metric.name) for profile in profiles]
                rows.append([f"  {metric.name}", *cells, _unit_text(metric.unit), metric.title])
    rows += _rows_of_counts(profiles)
    bold = [number for number, row in enumerate(rows) if len(row) == 1]
    words = (0, len(profiles) + 1, len(profiles) + 2)
    formats = dict.fromkeys(values, format_value)
    return Table(["metric", *values, "unit", "what it says"], rows, formats=formats, words=words, bold=bold)


def _rows_of_counts(profiles: Sequence[Profile]) -> Iterator[list[object]]:
    """Rows of the known counts of the launches by use, under a heading with the columns' common prefix."""
    yield from _rows("operations and bytes", [work_of(profile.launch) for profile in profiles], "")
    known = [{**counts_of(profile.launch), **kinds_of(profile.launch)} for profile in profiles]
    for part, use in USES.items():
        if part == "sub_groups":
            for width in SUB_GROUPS:
                yield from _rows(f"{use} of {width}", known, f"sub_group_{width}_")
        elif part != "reuse":  # Reuse has a separate table
            yield from _rows(use, known, f"{part}_")


_COLUMNS = {count.column.name: count.column for count in COUNTS}


def _rows(use: str, counts: Sequence[Mapping[str, MetricValue]], prefix: str) -> Iterator[list[object]]:
    """Rows of the known counts whose names begin with a prefix, without kinds of instructions that are 0."""
    skipped = {0, None} if prefix == "instructions_" else {None}
    names = [
        name
        for name in dict.fromkeys(itertools.chain(*counts))
        if name.startswith(prefix) and any(of_profile.get(name) not in skipped for of_profile in counts)
    ]
    if names:
        yield [f"{use} ({prefix})" if prefix else use]
    for name in names:
        column = _COLUMNS.get(name) if prefix else None
        unit, title = (_unit_text(column.unit), column.title) if column else ("", "")
        values = (of_profile.get(name) for of_profile in counts)
        yield [f"  {name.removeprefix(prefix)}", *values, unit, title]


def _reuse_table(profile: Profile) -> list[Part]:
    """Make the table of bytes from memory by cache, line and concurrent work-groups; nothing if unknown."""
    counts = counts_of(profile.launch)
    kinds = {
        f"{line} B, {groups}": f"reuse_bytes_{line}_{groups}"
        for line in REUSE_LINES
        for groups in REUSE_GROUPS
        if any(counts[f"reuse_bytes_{line}_{groups}_{cache}"] is not None for cache in REUSE_CACHES)
    }
    rows = [
        [text, *(counts[f"{kind}_{end}"] for kind in kinds.values())]
        for text, end in (*((format_bytes(cache), cache) for cache in REUSE_CACHES), ("endless", "first"))
    ]
    caption = (
        f"Bytes from memory of {profile.kernel}, launch {profile.invocation}, by cache, line and work-groups "
        "that run together"
    )
    writers = dict.fromkeys(kinds, lambda n: format_quantity(n, "B"))
    return [Table(["cache", *kinds], rows, caption, formats=writers, sorts=False)] if kinds else []


def _unit_text(unit: str) -> str:
    """Write a unit for people; counts and ratios have none."""
    return "" if unit in ("count", "1") else unit


def format_value(value: MetricValue) -> str:
    """Write a metric's value for people; a dash where it is not defined.

    >>> format_value(13120), format_value(0.0780487), format_value(None)
    ('13,120', '0.0780487', '—')
    """
    if value is None:
        return NONE
    if isinstance(value, int):
        return format_count(value)
    return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


@dataclass(frozen=True)
class Axis:
    """A spoke of a Kiviat figure."""

    metric: str  # Name of the metric
    label: str  # Label in the figure
    low: float  # Values at the centre and at the rim
    high: float
    logarithmic: bool = False  # Whether the scale is logarithmic, as for counts that span many decades

    def position(self, value: MetricValue) -> float | None:
        """Position on the spoke, from 0 at the centre to 1 at the rim, clipped."""
        if value is None:
            return None
        if self.logarithmic:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)

    @property
    def scale(self) -> str:
        """Write the scale in a few characters."""
        if self.logarithmic:
            return f"{_power(self.low)} – {_power(self.high)} log"
        return f"{self.low:g} – {self.high:g}"


def _power(value: float) -> str:
    exponent = round(math.log10(value))
    return "1" if exponent == 0 else f"$10^{{{exponent}}}$"


# The most informative metrics of each category, in the paper's grouping; counts have logarithmic scales, so
# that a kernel's size does not hide its shape.
AXES: tuple[Axis, ...] = (
    Axis("opcode", "opcode diversity", 0, 30),
    Axis("total_instruction_count", "instructions", 1, 1e12, True),
    Axis("granularity", "granularity", 1e-9, 1, True),
    Axis("barriers_per_instruction", "barriers per instruction", 1e-6, 1, True),
    Axis("instructions_per_operand", "instructions per operand", 0, 1),
    Axis("load_imbalance", "load imbalance", 1, 1e9, True),
    Axis("total_memory_footprint", "memory footprint", 1, 1e9, True),
    Axis("footprint_90", "90 % footprint", 1, 1e9, True),
    Axis("unique_read_write_ratio", "read/write ratio", 1e-3, 1e3, True),
    Axis("reread_ratio", "reread ratio", 0, 1),
    Axis("rewrite_ratio", "rewrite ratio", 0, 1),
    Axis("global_memory_address_entropy", "address entropy", 0, 30),
    Axis("local_memory_address_entropy_5", "address entropy, 5 bits off", 0, 30),
    Axis("local_memory_address_entropy_10", "address entropy, 10 bits off", 0, 30),
    Axis("unique_branches", "branches", 1, 1e3, True),
    Axis("yokota_branch_entropy", "branch entropy (Yokota)", 0, 1),
    Axis("average_linear_branch_entropy", "branch entropy (linear)", 0, 1),
)
"""The spokes, clockwise from the top."""

_CATEGORY_COLOURS = {
    "compute": "#1f6fb4",
    "parallelism": "#2e8b57",
    "memory": "#b5830b",
    "control": "#7a4fa3",
}
_COLOURS_OF_METRICS = {metric.name: _CATEGORY_COLOURS[metric.category] for metric in METRICS}
# Distinct from the categories' colours, whose ring and labels the outlines cross.
_PROFILE_COLOURS = (BLACK, RED, SKY, PINK, GREY, "#7f0000", "#00b3a4")


def write_kiviat(profiles: Sequence[Profile], path: Path) -> None:
    """Draw the profiles over one another, with the scale of each spoke, into a file."""
    check_suffix("--plot", path)
    save_figure(kiviat(profiles), path)


def kiviat(profiles: Sequence[Profile]) -> Figure:
    """Draw the profiles over one another; see `write_kiviat`."""
    figure_type = require_matplotlib()
    from matplotlib.projections.polar import PolarAxes

    figure = figure_type(figsize=(13, 9.5), dpi=150, facecolor="white")
    axes = figure.add_axes((0.25, 0.14, 0.5, 0.69), projection="polar")
    assert isinstance(axes, PolarAxes)
    angles = [2 * math.pi * index / len(AXES) for index in range(len(AXES))]
    _draw_grid(axes, angles)
    for index, profile in enumerate(profiles):
        colour = _PROFILE_COLOURS[index % len(_PROFILE_COLOURS)]
        _draw_profile(axes, angles, profile, colour, shade=0.12 if len(profiles) <= 3 else 0.04)
    _draw_labels(axes, angles, profiles[0] if len(profiles) == 1 else None)
    _draw_frame(figure, profiles)
    return figure


def _draw_grid(axes: PolarAxes, angles: Sequence[float]) -> None:
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_ylim(0, 1)
    axes.set_xticks(angles, [""] * len(angles))
    axes.set_yticks([0.25, 0.5, 0.75], [""] * 3)
    axes.grid(color="#d9d9d9", linewidth=0.8)
    axes.spines["polar"].set_color("#bbbbbb")
    width = angles[1]
    for angle, axis in zip(angles, AXES, strict=True):
        colour = _COLOURS_OF_METRICS[axis.metric]
        axes.bar(angle, 0.035, width=width * 0.97, bottom=1.0, color=colour, clip_on=False, linewidth=0)


def _draw_profile(
    axes: PolarAxes, angles: Sequence[float], profile: Profile, colour: str, shade: float
) -> None:
    """Draw the outline of a profile; undefined metrics are hollow marks at the centre."""
    positions = [axis.position(profile.metrics.get(axis.metric)) for axis in AXES]
    radii = [0.0 if position is None else position for position in positions]
    label = f"{profile.kernel}, launch {profile.invocation}"
    closed_angles, closed_radii = [*angles, angles[0]], [*radii, radii[0]]
    axes.plot(closed_angles, closed_radii, color=colour, linewidth=1.8, label=label, zorder=3)
    axes.fill(closed_angles, closed_radii, color=colour, alpha=shade, zorder=2)
    for angle, position in zip(angles, positions, strict=True):
        face = "white" if position is None else colour
        axes.plot(angle, position or 0.0, "o", color=colour, markerfacecolor=face, markersize=4.5, zorder=4)


def _draw_labels(axes: PolarAxes, angles: Sequence[float], only: Profile | None) -> None:
    """Draw name and scale of each spoke, and the value if there is a single profile."""
    for angle, axis in zip(angles, AXES, strict=True):
        sine, cosine = math.sin(angle), math.cos(angle)
        side = "center" if abs(sine) < 0.12 else "left" if sine > 0 else "right"
        height = "bottom" if cosine > 0.9 else "top" if cosine < -0.9 else "center"
        value = "" if only is None else f" = {_short(only.metrics.get(axis.metric))}"
        colour = _COLOURS_OF_METRICS[axis.metric]
        name: dict[str, Any] = {"fontsize": 9.5, "fontweight": "bold", "color": colour}
        scale: dict[str, Any] = {"fontsize": 8.5, "color": "#555555"}
        for text, style in ((f"{axis.label}{value}\n", name), (f"\n{axis.scale}", scale)):
            axes.annotate(text, xy=(angle, 1.09), ha=side, va=height, annotation_clip=False, **style)


def _short(value: MetricValue) -> str:
    """Write a value with at most four digits."""
    return f"{value:.4g}" if isinstance(value, float) else format_value(value)


def _draw_frame(figure: Figure, profiles: Sequence[Profile]) -> None:
    """Draw the title, the legends of categories and profiles, and an explanation of the scales."""
    names = list(dict.fromkeys(profile.kernel for profile in profiles))
    title = ", ".join(names) if len(names) <= 4 else f"{len(names)} kernels"
    figure.text(0.5, 0.965, f"Profile of {title}", ha="center", fontsize=15, fontweight="bold")
    x = 0.5 - 0.07 * len(_CATEGORY_COLOURS) + 0.07
    for category, colour in _CATEGORY_COLOURS.items():
        figure.text(x, 0.935, f"■ {category}", ha="center", fontsize=10.5, color=colour)
        x += 0.14
    if len(profiles) > 1:
        figure.legend(loc="lower left", bbox_to_anchor=(0.005, 0.01), fontsize=9.5, frameon=False)
    figure.text(
        0.5,
        0.022,
        "Each spoke runs from its least value at the centre to its greatest at the rim, as written under\n"
        "its name: linear, or logarithmic where it says log. The scales are the same in every figure;\n"
        "values beyond them stay at the rim or the centre; a hollow mark is a metric that is not defined.",
        ha="center",
        fontsize=9,
        color="#555555",
    )
