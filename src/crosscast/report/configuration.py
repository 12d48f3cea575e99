"""Reports on choices of configurations: sample runs, chosen configurations with figures, and models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.decide.samples import SampledKernel
from crosscast.prediction.configuration import (
    ConfigurationSpace,
    Quantity,
    SurfaceForecast,
    pareto_frontier,
)
from crosscast.prediction.configuration.artefact import ConfigurationCard
from crosscast.prediction.configuration.choice import Choice, Option
from crosscast.prediction.trained import count_in, number_in
from crosscast.report import figures as draw
from crosscast.report.cards import HeldOutScores, held_out_sentence
from crosscast.report.document import NONE, Heading, Part, Ranges, Report, Table, Text
from crosscast.report.fields import (
    level_percent,
    percent,
    plural,
    setting_heading,
    setting_text,
    shown_settings,
    table_of,
    three_digits,
    times,
)
from crosscast.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TENTH = "{:.1f}".format
_OBJECTIVES = {
    "performance": "the most performance",
    "energy": "the least energy",
    "edp": "the least energy times time",
    "power": "the least power",
}


def samples_report(card: ConfigurationCard, columns: Sequence[str]) -> Report:
    """List the configurations at which a new kernel must be run, and the columns to record."""
    instruction = f"To write down: {', '.join(columns)}; --template FILE makes the file."
    return Report([f"{card.model}, {trained_on(card)}", *_samples_lines(card), instruction], "Sample runs")


def chosen_report(
    kernels: Sequence[tuple[SampledKernel, Sequence[Choice]]], card: ConfigurationCard
) -> Report:
    """Make sentences about the choices for each kernel under each cap, and tables of predicted frontiers."""
    parts: list[Part] = []
    for kernel, choices in kernels:
        first = choices[0]
        frontier = {option.configuration for option in first.frontier}
        chosen = [choice.recommended for choice in choices if choice.recommended is not None]
        has_others = any(option.configuration not in frontier for option in chosen)
        note = "; below it what was chosen off it, as it is more likely to keep to its limits"
        parts += [Heading(kernel.name, 2), *map(_choice_sentence, choices), ""]
        parts.append(
            f"Predicted frontier, with {level_percent(first.level)} intervals{note if has_others else ''}:"
        )
        parts += [_choice_table(choices, card), "", _measured_at(kernel, card)]
        parts += [f"{card.model}, {trained_on(card)}", *held_out_errors(card)]
    return Report(parts, "Chosen configurations")


def _cap_text(power_cap: float) -> str:
    return f"{power_cap:,.10g} W"


def _choice_sentence(choice: Choice) -> str:
    capped = choice.power_cap < float("inf")
    wish = f"Under {_cap_text(choice.power_cap)}, for" if capped else "For"
    wish += f" {_OBJECTIVES[choice.objective]}"
    if choice.max_slowdown is not None and choice.baseline is not None:
        wish += f", at most {percent(choice.max_slowdown)} slower than {choice.baseline}"
    if choice.confidence is not None and capped:
        wish += f" that keeps to it with {100 * choice.confidence:.6g} %"
    chosen = choice.recommended
    if chosen is None:
        return f"{wish}: nothing is chosen."
    power, time = f"{_TENTH(chosen.power_w)} W", format_seconds(chosen.time_s)
    if not chosen.measured and chosen.power_low_w is not None and chosen.power_high_w is not None:
        power += f" ({_TENTH(chosen.power_low_w)} to {_TENTH(chosen.power_high_w)} W)"
    if not chosen.measured and chosen.time_low_s is not None and chosen.time_high_s is not None:
        time += f" ({times(chosen.time_low_s, chosen.time_high_s)})"
    if choice.objective in ("energy", "edp"):
        time += f", energy {three_digits(chosen.power_w * chosen.time_s)} J"
    note, probability = "", chosen.probability_under
    if probability is not None and capped:
        # Never 100 %, as predictions are not certain.
        text = "over 99.9 %" if probability >= 0.9995 else f"of {level_percent(probability)}"
        note = f"; it keeps to the cap with a probability {text}"
    kind = "measured" if chosen.measured else "predicted"
    return f"{wish}: {chosen.configuration}; {kind} power {power}, time {time}{note}."


def _choice_table(choices: Sequence[Choice], card: ConfigurationCard) -> Table:
    names = shown_settings(card.space)
    listed = {option.configuration: option for option in choices[0].frontier}
    caps: defaultdict[object, list[str]] = defaultdict(list)
    for choice in choices:
        if choice.recommended is not None:
            listed.setdefault(choice.recommended.configuration, choice.recommended)
            cap = _cap_text(choice.power_cap) if choice.power_cap < float("inf") else "any"
            caps[choice.recommended.configuration].append(cap)
    rows = [
        [
            option.configuration.device,
            *(setting_text(name, option.configuration.settings.get(name)) for name in names),
            _TENTH(option.power_w),
            _between(option, option.power_low_w, option.power_high_w, _TENTH),
            f"{option.relative_performance:.2f}",
            three_digits(option.time_s),
            _between(option, option.time_low_s, option.time_high_s, three_digits),
            f"← {', '.join(caps[configuration])}" if configuration in caps else "",
        ]
        for configuration, option in listed.items()
    ]
    settings = [*map(setting_heading, names)]
    count = len(names)
    return Table(
        ["device", *settings, "power, W", "between", "performance", "time, s", "between", ""],
        rows,
        words=(0, *range(1 + len(card.space.knobs), count + 1), count + 2, count + 5, count + 6),
        bold=[number for number, configuration in enumerate(listed) if configuration in caps],
        ranges=Ranges(
            [
                (option.power_low_w or option.power_w, option.power_w, option.power_high_w or option.power_w)
                for option in listed.values()
            ],
            lambda watts: f"{three_digits(watts)} W",
            "power",
        ),
    )


def _between(option: Option, low: float | None, high: float | None, write: Callable[[float], str]) -> str:
    if option.measured:
        return "measured"
    return NONE if low is None or high is None else f"{write(low)} to {write(high)}"


def _measured_at(kernel: SampledKernel, card: ConfigurationCard) -> str:
    samples = kernel.configurations(card)
    listed = "; ".join(map(str, samples)) if len(samples) <= 4 else plural(len(samples), "configuration")
    return f"Measured in {plural(sum(kernel.runs), 'run')} at {listed}."


def choice_figure(
    name: str, forecast: SurfaceForecast, space: ConfigurationSpace, choices: Sequence[Choice]
) -> Figure:
    """Draw predicted time over power of one kernel, with frontier and choices."""
    figure, axes = draw.one_figure(8.4, 5.2)
    power, time = forecast.power.centre, forecast.time.centre
    for number, (device, look) in enumerate(draw.looks(space.devices).items()):
        on_device = space.device_numbers == number
        axes.scatter(
            power[on_device],
            time[on_device],
            s=26,
            c=look.face,
            marker=look.mark,
            linewidths=look.face == "white",
            alpha=0.55,
            edgecolors=look.colour,
            zorder=1,
            label=device,
        )
    frontier = pareto_frontier(time, power)
    draw.steps(axes, power[frontier], time[frontier], color="#333333", label="predicted frontier")
    _draw_intervals(axes, forecast, frontier, choices[0].level)
    measured = np.flatnonzero(forecast.measured)
    axes.scatter(
        power[measured],
        time[measured],
        s=120,
        facecolors="none",
        edgecolors=draw.BLACK,
        linewidths=1.4,
        zorder=4,
        label="measured",
    )
    _draw_choices(axes, choices)
    draw.logarithmic_axis(axes, "y", time)
    draw.spread_axis(axes, "x", power)
    axes.set_title(_choice_title(name, choices), fontsize=10.5, loc="left")
    draw.style_axes(axes, x="power, W", y="time, s")
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    return figure


def _draw_intervals(axes: Axes, forecast: SurfaceForecast, frontier: Integers, level: float) -> None:
    """Draw the intervals of time and power along the frontier, where the model has them."""
    predicted = frontier[~forecast.measured[frontier]]
    if not predicted.size or not forecast.time.errors.size or not forecast.power.errors.size:
        return
    axes.errorbar(
        forecast.power.centre[predicted],
        forecast.time.centre[predicted],
        xerr=_reach(forecast.power, predicted, level),
        yerr=_reach(forecast.time, predicted, level),
        fmt="none",
        ecolor="#333333",
        elinewidth=0.7,
        alpha=0.55,
        zorder=2,
        label=f"{level_percent(level)} intervals",
    )


def _reach(quantity: Quantity, numbers: Integers, level: float) -> Reals:
    """Distances from the centre to both ends of the intervals of some configurations."""
    low, high = (limit[numbers] for limit in quantity.limits(level))
    centre = quantity.centre[numbers]
    # If all errors have one sign, the centre is outside of its interval.
    return np.maximum(np.stack([centre - low, high - centre]), 0.0)


def _draw_choices(axes: Axes, choices: Sequence[Choice]) -> None:
    for number, choice in enumerate(choices):
        axes.axvline(
            choice.power_cap,
            color=draw.GREY,
            linestyle="--",
            linewidth=1,
            zorder=1,
            label="power cap" if number == 0 else None,
        )
    recommended = [choice.recommended for choice in choices if choice.recommended is not None]
    if recommended:
        axes.scatter(
            [forecast.power_w for forecast in recommended],
            [forecast.time_s for forecast in recommended],
            s=210,
            marker="*",
            color="#f0e442",
            edgecolors="black",
            linewidths=0.8,
            zorder=5,
            label="chosen",
        )


def _choice_title(name: str, choices: Sequence[Choice]) -> str:
    title = f"{name} under {', '.join(f'{choice.power_cap:g}' for choice in choices)} W"
    if len(choices) > 1:
        return title
    chosen = choices[0].recommended
    return f"{title}: {'nothing is chosen' if chosen is None else chosen.configuration}"


def training_report(card: ConfigurationCard, folder: Path, tree: tuple[str, str] | None = None) -> Report:
    """Describe a model's training data, the sample runs that it needs, and its errors."""
    command = f"crosscast choose sample --model {folder} --template runs.csv"
    parts: list[Part] = [f"{folder}: {card.model}, {trained_on(card)}", "", *_samples_lines(card)]
    parts += [f"To write the file for these runs: {command}", ""]
    if tree is not None:
        parts += [f"{tree[0]}.", Text(tree[1].splitlines(), "code"), ""]
    parts += held_out_errors(card)
    choices = card.errors.get("choices")
    if isinstance(choices, list) and choices:
        columns = {
            "method": "method",
            "under the cap": "under_limit_share",
            "performance, under": "under_performance",
            "power, over": "over_power",
            "score": "score",
            "extra runs": "extra_runs",
        }
        formats = {**dict.fromkeys(columns, percent), "extra runs": _TENTH}
        parts += [
            table_of(choices, columns, formats=formats),
            "Caps are the powers on each kernel's true frontier; power and performance are relative to the "
            "best choice under them. Score: performance, where what is over the cap counts 0. +fl: with "
            "limiting, after so many extra runs.",
        ]
    return Report(parts)


def trained_on(card: ConfigurationCard) -> str:
    """Sentence about a model's training data, without its subject."""
    facts = card.training
    devices = card.space.devices
    return (
        f"trained on {facts.get('dataset')}: {plural(count_in(facts, 'cells'), 'run')} of "
        f"{facts.get('kernels_at_a_size')} kernels at a size ({facts.get('applications')} applications) at "
        f"{plural(len(card.space), 'configuration')} of {plural(len(devices), 'device')} "
        f"({', '.join(devices)})."
    )


def _samples_lines(card: ConfigurationCard) -> list[str]:
    """List the configurations at which a new kernel must be run."""
    listed = [f"  {sample}" for sample in card.sample_configurations]
    return ["A new kernel must be run once at:", *listed]


def held_out_errors(card: ConfigurationCard) -> list[str]:
    """Sentence about the model's errors on held-out applications; none if the card has none."""
    names = ("median_ape", "rmse_log", "coverage")
    parts = {}
    for what in ("time", "power"):
        scores = {name: number_in(card.errors, f"{name}_{what}") for name in names}
        parts[what] = msgspec.convert({"model": card.model, **scores}, HeldOutScores)
    return held_out_sentence(card, parts, " ".join(names))
