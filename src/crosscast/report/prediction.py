"""Reports on predicted times: a table for each kernel, the recommended device, and the model's errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from crosscast.devices.roofline import Verdict
from crosscast.prediction.time.card import Suggestion, TimeCard
from crosscast.prediction.time.forecast import Recommendation, TimeForecast
from crosscast.report.cards import held_out_scores, held_out_sentence
from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.fields import Column, table_of
from crosscast.report.numbers import level_percent, percent, plural, probability, times
from crosscast.report.verdict import forecast_table, spent_on, verdict_lines
from crosscast.units import format_count


def predictions_report(
    forecast: TimeForecast,
    card: TimeCard,
    probes: int,
    verdicts: Sequence[Verdict | None] = (),
    suggestion: Suggestion | None = None,
) -> Report:
    """Make the tables of predicted times of kernels that were measured on `probes` devices.

    Verdicts are those on the recommended devices.
    """
    several = len(forecast.labels) > 1
    parts: list[Part] = [_in_short(forecast, verdicts), ""] if several else []
    for row, (label, kernel) in enumerate(zip(forecast.labels, forecast.kernels(), strict=True)):
        verdict = verdicts[row] if verdicts else None
        parts += [Heading(label)] if several else []
        if verdict is not None:
            column = forecast.devices.index(forecast.recommended[row].device)
            seconds, shares = float(forecast.centre[row, column]), forecast.term_shares(row, column)
            parts += [Text(verdict_lines(verdict, seconds, shares)), ""]
        parts += [
            _table(kernel, forecast.level, f"Times of {label}" if several else label),
            _advice(forecast.recommended[row]),
            *_spent(forecast, row),
            "",
        ]
    for name, kernels in forecast.applications().items():
        parts += [_application_table(name, kernels), ""]
    parts += [*_suggested(suggestion), *_comparison(forecast)]
    return Report(
        [*parts, f"{card.model}, {trained_on(card)}", *held_out_errors(card, probes)],
        "Predicted times",
    )


def _in_short(forecast: TimeForecast, verdicts: Sequence[Verdict | None]) -> Table:
    """Make the table of each kernel's recommended device, with verdicts also of what bounds it there."""
    devices = {device: column for column, device in enumerate(forecast.devices)}
    cells = [(row, devices[choice.device]) for row, choice in enumerate(forecast.recommended)]
    bounds = {} if not verdicts else {"bound by": lambda cell: _bound(verdicts[cell[0]])}
    return forecast_table(forecast, cells, bounds, caption="In short", device="recommended")


def _bound(verdict: Verdict | None) -> str | None:
    return None if verdict is None else " or ".join([verdict.bound, *verdict.close])


def _suggested(suggestion: Suggestion | None) -> list[str]:
    """Sentence about the devices to measure on next."""
    if suggestion is None:
        return []
    return [
        f"Measure on {' and '.join(suggestion.devices)} (--probe): times on the others are expected to be "
        f"wrong by {percent(suggestion.error)} then, and by {percent(suggestion.error_before)} now."
    ]


def _comparison(forecast: TimeForecast) -> list[str]:
    """Sentence that compares predicted with recorded times, if there are any."""
    if forecast.recorded is None:
        return []
    compared = np.isfinite(forecast.recorded) & ~forecast.is_measured
    if not compared.any():
        return []
    recorded = forecast.recorded[compared]
    error = float(np.median(np.abs(forecast.centre[compared] / recorded - 1)))
    inside = np.count_nonzero((forecast.low[compared] <= recorded) & (recorded <= forecast.high[compared]))
    return [
        f"Of {len(recorded)} recorded times, {inside} lie within the intervals; median error "
        f"{percent(error)}."
    ]


def _table(kernel: Mapping[str, Any], level: float, label: str) -> Table:
    """Make the table of devices with their times, the fastest first."""
    columns: dict[str, Column[Mapping[str, Any]]] = {
        "device": "device",
        "time": "time_s",
        f"{level_percent(level)} interval": lambda row: (
            "measured" if row["measured"] else times(row["low_s"], row["high_s"])
        ),
        "rank": "rank",
    }
    if any(row["recorded_s"] for row in kernel["devices"]):
        columns["recorded"] = "recorded_s"
        columns["predicted/recorded"] = lambda row: row["recorded_s"] and row["time_s"] / row["recorded_s"]
    count = kernel["invocations"]
    return table_of(
        sorted(kernel["devices"], key=itemgetter("rank")),
        columns,
        caption=label if count == 1 else f"{label}, one of {format_count(count)} launches",
        formats={"predicted/recorded": "{:.2f}".format},
        bold=(0,),
        ranges=("low_s", "time_s", "high_s"),
    )


def _application_table(name: str, kernels: TimeForecast) -> Table:
    """Make the table of an application's time on each device, summed over all launches of its kernels."""
    limits = zip(kernels.devices, *(each.tolist() for each in kernels.of_all_launches()), strict=True)
    rows = [dict(zip(("device", "time_s", "low_s", "high_s"), row, strict=True)) for row in limits]
    launches = format_count(int(kernels.profiles.invocations.sum()))
    return table_of(
        sorted(rows, key=itemgetter("time_s")),
        {
            "device": "device",
            "time": "time_s",
            f"{level_percent(kernels.level)} interval": ("low_s", "high_s"),
        },
        caption=f"{name}: all {len(kernels.profiles)} kernels, {launches} launches",
        bold=(0,),
    )


def _advice(choice: Recommendation) -> str:
    if choice.runner_up is None or choice.times_longer is None:
        return f"No other device to compare {choice.device} with."
    longer = choice.times_longer
    slower = "about as fast" if longer < 1.005 else f"{longer:.3g}x slower"
    faster = choice.probability_faster
    chance = "" if faster is None else f" ({probability(faster)} chance of being faster)"
    return f"Recommended: {choice.device}. {choice.runner_up} is {slower}{chance}."


_ALIKE = 0.1


def _spent(forecast: TimeForecast, row: int) -> list[str]:
    """Sentences about the terms of the time on the recommended device, and the nearest training kernel."""
    if forecast.terms is None:
        return []
    device = forecast.recommended[row].device
    shares = forecast.term_shares(row, forecast.devices.index(device))
    most, saved = forecast.most_saved(row, forecast.devices.index(device))
    sentences = [
        f"Of the time on {device}: {spent_on(shares)}. Halving the {most} term would save {percent(saved)}."
    ]
    if forecast.nearest:
        nearest = forecast.nearest[row]
        similarity = f"similarity {nearest.similarity:.2f}"
        note = "" if nearest.similarity >= _ALIKE else ": the forecast stands on physics alone"
        sentences.append(f"Nearest measured kernel: {nearest.name} ({similarity}){note}.")
    return sentences


def trained_on(card: TimeCard) -> str:
    """Sentence about a model's training data, without its subject."""
    facts = card.training
    if "package" in facts:
        return f"of the package {facts['package']}: {facts['about']}."
    compilers = " and ".join(dict.fromkeys(toolchain.compiler for toolchain in card.toolchains))
    return (
        f"trained on {facts.get('dataset')}: {facts.get('cells')} times of {facts.get('kernels_at_a_size')} "
        f"kernels at a size ({facts.get('kernels')} kernels, {facts.get('applications')} applications) on "
        f"{facts.get('devices', len(card.devices))} devices, profiled with {compilers}."
        + "".join(
            f" Of profiles made with {toolchain.compiler}: {toolchain.sentence}."
            for toolchain in card.other_toolchains
        )
    )


def calibrated_on(card: TimeCard) -> list[str]:
    """Sentence about the errors on a calibrated device; nothing without calibration."""
    calibration = card.calibrated
    if calibration is None:
        return []
    held_out = calibration.held_out
    return [
        f"On {calibration.device}, calibrated with {calibration.kernels_at_a_size} kernels at a size of "
        f"{len(calibration.applications)} applications: on held-out applications median error "
        f"{100 * held_out.median_error:.0f} %, coverage of {100 * held_out.level:.0f} % intervals "
        f"{100 * held_out.coverage:.0f} % (worst application {100 * held_out.coverage_worst:.0f} %)."
    ]


def held_out_errors(card: TimeCard, probes: int = 0) -> list[str]:
    """Sentences about the errors on held-out applications, if there are any, with `probes` or fewer."""
    results = [
        scores for scores in held_out_scores(card) if scores.model == card.model and scores.probes <= probes
    ]
    if not results:
        return calibrated_on(card)
    result = max(results, key=lambda scores: scores.probes)
    devices = plural(result.probes, "other device")
    groups = f"applications, measured on {devices}" if result.probes else "applications"
    names = "median_ape slowdown_mean coverage"
    return [*held_out_sentence(card, {"": result}, names, groups=groups), *calibrated_on(card)]
