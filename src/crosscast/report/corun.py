"""Reports on co-running: evaluations, trained models, predictions, translated times and plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from crosscast.data.fields import decode
from crosscast.decide.colocation import ColocationPlan
from crosscast.prediction.corun import Estimate, MixForecast
from crosscast.prediction.corun.artefact import CoRunCard
from crosscast.prediction.corun.probes import SuggestedMixes
from crosscast.prediction.corun.translation import LOGARITHMIC, TranslationCard, TranslationScore
from crosscast.prediction.trained import count_in, format_names, level_of
from crosscast.report.cards import HeldOutScores, held_out_scores, held_out_sentence
from crosscast.report.document import Heading, Part, Ranges, Report, Table
from crosscast.report.fields import (
    error_percent,
    factor,
    level_percent,
    named,
    percent,
    plural,
    table_of,
    three_digits,
    times,
)
from crosscast.report.figures import groups_figure
from crosscast.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.evaluation.corun.evaluation import CoRunEvaluation, CoRunResult

_MOST_NAMED = 8
_SHOWN = ("slowdown", "time", "power", "fits")


def error_table(results: Sequence[HeldOutScores]) -> Table:
    """Make a table with a row for each result."""
    columns: dict[str, str | Callable[[HeldOutScores], object]] = {
        "model": lambda row: named(row.model, row.baseline),
        "quantity": "quantity",
        "mix of": lambda row: row.mix_size or "any",
        "known mixes": "probes",
        "MAPE": "mape",
        "coverage": "coverage",
        "worst": "worst_text",
        "AUC": "auc",
        "predicted": "rows",
    }
    if not any(row.probes for row in results):
        del columns["known mixes"]
    return table_of(results, columns, formats={"MAPE": error_percent})


def training_report(card: CoRunCard, folder: Path) -> Report:
    """Describe a model's training data and its errors."""
    results = [row for row in held_out_scores(card) if row.quantity in _SHOWN]
    return Report(
        [
            f"{folder}: {card.model}, {trained_on(card)}",
            "",
            error_table([row for row in results if row.mix_size is None]),
            "Each application was left out in turn with all mixes that it is in, and these were predicted by "
            "the model fitted to the others.",
            "Coverage: share of measured values within their "
            f"{percent(level_of(card))} intervals; worst: the application with the least.",
            "Exact definitions: docs/evaluation.md.",
        ]
    )


def trained_on(card: CoRunCard) -> str:
    """Sentence about a model's training data, without its subject."""
    facts = card.training
    sizes = " and ".join(map(str, card.sizes))
    return (
        f"trained on {facts.get('dataset')}: {plural(count_in(facts, 'mixes'), 'mix', 'mixes')} of {sizes} "
        f"of {plural(len(card.applications), 'application')} "
        f"({format_names(card.applications, _MOST_NAMED)}) on {card.device}."
    )


def held_out_errors(card: CoRunCard) -> list[str]:
    """Sentence about the model's errors on held-out applications; none if the card has none."""
    results = {
        row.quantity: row
        for row in held_out_scores(card)
        if row.model == card.model and row.mix_size is None and not row.probes
    }
    names = {"slowdown": "slowdowns", "time": "times of mixes", "power": "power"}
    parts = {name: results[quantity] for quantity, name in names.items() if quantity in results}
    return held_out_sentence(card, parts, "mape coverage")


def suggested_mixes(suggestion: SuggestedMixes | None, where: str) -> list[str]:
    """Sentence about mixes to measure, and the expected errors of slowdowns with and without them."""
    if suggestion is None:
        return []
    labels = [" with ".join(names) for names in suggestion.names]
    return [
        f"Measure {', and '.join(labels)} (--probe): slowdowns {where} are expected to be wrong by "
        f"{percent(suggestion.error)} then, and by {percent(suggestion.error_before)} now."
    ]


def corun_forecast_report(
    forecast: MixForecast,
    card: CoRunCard,
    translation: TranslationCard | None = None,
    suggestion: SuggestedMixes | None = None,
) -> Report:
    """Make the tables of the prediction for one mix."""
    rows = [
        {
            "run": run,
            "slowdown": slowdown,
            "in_mix_s": slowdown and run.time_s and slowdown.value * run.time_s,
        }
        for run, slowdown in zip(forecast.mix, forecast.slowdown, strict=True)
    ]
    table = table_of(
        rows,
        {
            "application": "run.name",
            "alone": "run.time_s",
            "slowdown": "slowdown.value",
            "interval": ("slowdown.low", "slowdown.high"),
            "in the mix": "in_mix_s",
        },
        caption=f"{forecast.label} on {forecast.mix[0].device}",
        ranges=("slowdown.low", "slowdown.value", "slowdown.high"),
    )
    notes = suggested_mixes(suggestion, "in this mix")
    notes += [f"{card.model}, {trained_on(card)}", *held_out_errors(card)]
    notes += [] if translation is None else [_translated_by(translation)]
    return Report([table, *_of_mix(forecast, card), "", *notes], "Predicted slowdowns")


def _of_mix(forecast: MixForecast, card: CoRunCard) -> list[str]:
    lines = []
    time, serial = forecast.time_s, forecast.serial_s
    if time is not None:
        interval = f"{times(time.low, time.high)}, {level_percent(time.reached)} interval"
        sentence = f"Time of the mix: {format_seconds(time.value)} ({interval})"
        if serial is not None:
            sentence += f"; one after another {format_seconds(serial)}: {_gain(time, serial)}"
        lines.append(f"{sentence}.")
        if _ends_before_all(forecast, time):
            lines.append(
                "It is less than each time in the mix, which is of a mix that goes on: in training, jobs "
                "from a common start took somewhat less."
            )
    if forecast.measured:
        lines.append("Slowdowns are as measured (--probe), with the noise of measurements in the training.")
    power = forecast.power_w
    if power is not None:
        low, high = three_digits(power.low), three_digits(power.high)
        watts = f"{three_digits(power.value)} W ({low} to {high} W, {level_percent(power.reached)} interval)"
        lines.append(f"Power while all run: {watts}.")
    else:
        lines.append(f"Power: n/a ({_why_no_power(forecast, card)}).")
    if forecast.fits is not None:
        lines.append(f"Probability that they fit on the device together: {percent(forecast.fits)}.")
    if forecast.memory_bytes is not None:
        lines.append(f"Memory of all: {format_bytes(forecast.memory_bytes)}.")
    return lines


def _ends_before_all(forecast: MixForecast, time: Estimate) -> bool:
    """Whether a mix takes less than each of its jobs would in a mix that goes on."""
    return all(
        run.time_s is not None and slowdown is not None and time.value < run.time_s * slowdown.value
        for run, slowdown in zip(forecast.mix, forecast.slowdown, strict=True)
    )


def _why_no_power(forecast: MixForecast, card: CoRunCard) -> str:
    if forecast.mix[0].device != card.device:
        return "power is not translated to other devices"
    unknown = dict.fromkeys(run.name for run in forecast.mix if not run.power_w)
    if unknown:
        return f"no isolated power measurement of {format_names(list(unknown), 5)}"
    return "the model was trained on mixes without power"


def _gain(time: Estimate, serial: float) -> str:
    share = 1 - time.value / serial
    gain = f"{percent(abs(share))} {'saved' if share > 0 else 'lost'}"
    is_certain = time.high < serial or time.low > serial
    return gain if is_certain else f"{gain}, but the interval includes no change"


def line_errors(card: TranslationCard) -> list[TranslationScore]:
    """Read the errors of all forms of lines, each application left out in turn."""
    scores = card.training.get("scores")
    listed = scores if isinstance(scores, list) else ()
    return [decode(TranslationScore, score, "training.scores") for score in listed]


def lines_table(scores: Sequence[TranslationScore], error: Callable[[float], str], caption: str) -> Table:
    """Make the table of errors of translation lines, by form, quantity and number of co-runners."""
    counts = sorted({score.members for score in scores if score.members is not None})
    errors = {(score.form, score.quantity, score.members): error(score.mape) for score in scores}
    rows = [
        [form, quantity, *(errors.get((form, quantity, count)) for count in (*counts, None))]
        for form, quantity in dict.fromkeys((score.form, score.quantity) for score in scores)
    ]
    headings = ["line", "of", *("alone" if count == 1 else f"mixes of {count}" for count in counts), "all"]
    return Table(headings, rows, caption, words=(0, 1))


def translation_report(card: TranslationCard) -> Report:
    """Describe a translation's data, formula and errors."""
    training, line = card.training, card.line
    names = training.get("applications")
    applications = len(names) if isinstance(names, list) else 0
    if line.form == LOGARITHMIC:
        formula = f"ln(time there) = {line.slope:.4g} × ln(time here) {line.intercept:+.4g}, in seconds"
    else:
        formula = f"time there = {line.slope:.4g} × time here {line.intercept:+.4g} s"
    return Report(
        [
            Heading(
                f"{card.source} to {card.target}: a {line.form} line through "
                f"{plural(count_in(training, 'times'), 'time')} of {plural(applications, 'application')} of "
                f"{training.get('dataset')}",
                1,
            ),
            formula,
            lines_table(line_errors(card), _error_of(card), "MAPE, each application left out:"),
        ]
    )


def _translated_by(card: TranslationCard) -> str:
    """Sentence about a translation and its errors."""
    scores = [
        score
        for score in line_errors(card)
        if score.form == card.line.form and score.quantity == "time" and score.members is None
    ]
    error = f"; MAPE of held-out applications {_error_of(card)(scores[0].mape)}" if scores else ""
    return f"Times on {card.source} are translated to {card.target} by a {card.line.form} line{error}."


def _error_of(card: TranslationCard) -> Callable[[float], str]:
    """Format of a card's errors, which are in per cent in version 1 and fractions since."""
    return (lambda mape: error_percent(mape / 100)) if card.version == 1 else error_percent


def colocation_report(
    plan: ColocationPlan, names: Sequence[str], card: CoRunCard, suggestion: SuggestedMixes | None = None
) -> Report:
    """Make the tables of jobs that share a device, jobs that run alone, and the gain."""
    parts: list[Part] = [_shared(plan, names, card)] if plan.shared else []
    if plan.alone:
        parts.append(Heading(f"alone on {card.device}", 3))
        parts += [f"{names[job.job]} ({format_seconds(job.time_s)}): {job.reason}" for job in plan.alone]
    notes = suggested_mixes(suggestion, "in the other pairs")
    notes += [f"{card.model}, {trained_on(card)}", *held_out_errors(card)]
    return Report([*parts, "", *_totals(plan), "", *notes], "Jobs that share a device")


def _shared(plan: ColocationPlan, names: Sequence[str], card: CoRunCard) -> Table:
    """Make a table with a row for each job; cells about the mix are in its first two rows."""
    fits = any(mix.fits is not None for mix in plan.shared)
    headings = ["jobs", "slowdown", "interval", "together", "one by one", *(["fit"] if fits else []), "gain"]
    rows: list[list[object]] = []
    for mix in plan.shared:
        of_mix = [
            *map(format_seconds, (mix.together_s, mix.serial_s)),
            *([percent(mix.fits)] if fits else []),
        ]
        beside = [[*of_mix, _seconds(mix.gain_s.value)], [*("" for _ in of_mix), _interval(mix.gain_s)]]
        for position, (job, slowdown) in enumerate(zip(mix.jobs, mix.slowdown, strict=True)):
            name = f"{'+ ' if position else ''}{names[job]}"
            interval = f"{factor(slowdown.low)} to {factor(slowdown.high)}"
            rows.append([name, slowdown.value, interval, *(beside[position] if position < 2 else ())])
    return Table(
        headings,
        rows,
        f"together on {card.device}",
        {"slowdown": factor},
        words=(0, 2),
        sorts=False,
        ranges=Ranges(
            [(each.low, each.value, each.high) for mix in plan.shared for each in mix.slowdown],
            factor,
            "slowdown",
        ),
    )


def _share_of_time(gain: float) -> str:
    """A gain as a percentage, which is not 0 for one that is above 0."""
    return "less than 1 %" if 0 < gain < 0.005 else percent(gain)


def _totals(plan: ColocationPlan) -> list[str]:
    count = sum(len(mix.jobs) for mix in plan.shared) + len(plan.alone)
    serial = format_seconds(plan.serial_s)
    if not plan.shared:
        return [f"All {plural(count, 'job')} one after another: {serial}; nothing is gained by sharing."]
    time, gain = plan.time_s, plan.gain_s
    lines = [
        f"All {plural(count, 'job')}: {format_seconds(time.value)} instead of {serial} one after another.",
        f"Gain: {_seconds(gain.value)} ({_interval(gain)}, {level_percent(gain.reached)} interval), "
        f"{_share_of_time(gain.value / plan.serial_s)} of the time.",
    ]
    if gain.low <= 0:
        lines.append("The interval includes 0: sharing may gain nothing.")
    if any(mix.fits is not None for mix in plan.shared):
        lines.append("Gains are weighted by the probability that the jobs fit on the device together.")
    return lines


def _interval(gain: Estimate) -> str:
    return f"{_seconds(gain.low)} to {_seconds(gain.high)}"


def _seconds(value: float) -> str:
    return format_seconds(value) if value >= 0 else f"−{format_seconds(-value)}"


_ORDER = ("slowdown", "speed", "time", "power", "fits")
_HELD_OUT = {
    "leave-benchmark-out": "Each application was left out in turn, with all mixes that it is in; all "
    "co-runners of these were predicted by models fitted to the other mixes.",
    "leave-mix-out": "Mixes were left out in folds, those of the same applications at the same sizes "
    "together: the applications are known from other mixes.",
    "random-80-20": "As published, a fifth of the mixes was left out at random: the applications are known "
    "from other mixes. See leave-benchmark-out for applications that are new.",
}


def evaluation_report(evaluation: CoRunEvaluation) -> Report:
    """Make the tables of an evaluation, and the legend."""
    return Report([*tables_of(evaluation), "", *legend_of(evaluation)])


def tables_of(evaluation: CoRunEvaluation) -> list[Part]:
    """Make the heading and the tables of an evaluation."""
    results = sorted(evaluation.results, key=_sort_key)
    has_sizes = len({result.mix_size for result in results if result.mix_size is not None}) > 1
    shown = [result for result in results if (result.mix_size is None or has_sizes)]
    return [
        Heading(_subject(evaluation), 1),
        "",
        error_table([msgspec.convert(result.to_dict(), HeldOutScores) for result in shown]),
        *(_by_group(best) for best, _ in _best(evaluation)),
    ]


def legend_of(evaluation: CoRunEvaluation) -> list[str]:
    """Explain the columns."""
    return [
        _HELD_OUT[evaluation.split],
        "MAPE: mean of the absolute error over what was measured. Slowdown: time of a job while the "
        "whole mix runs over its time alone; speed is its inverse. Time: from the common start of a job "
        "of each to the end of the last.",
        f"Coverage: share of measured values within their {percent(evaluation.level)} intervals; worst: of "
        "what was left out, the one with the least. AUC: of the probability that a mix fits.",
        "Exact definitions: docs/evaluation.md.",
    ]


def _subject(evaluation: CoRunEvaluation) -> str:
    co_runs = evaluation.co_runs
    sizes = sorted({len(mix.members) for mix in co_runs.mixes})
    first = co_runs.mixes[0]
    shared = "" if first.configuration == "{}" else f" {first.configuration}"
    return (
        f"{co_runs.label}: {plural(len(co_runs.mixes), 'mix', 'mixes')} of {' and '.join(map(str, sizes))} "
        f"of {plural(len(co_runs.applications), 'application')} on {first.device}{shared}; "
        f"{evaluation.split}; seed {evaluation.seed}"
    )


def _sort_key(result: CoRunResult) -> tuple[int, int, bool, int, float]:
    return (
        _ORDER.index(result.quantity),
        -1 if result.mix_size is None else result.mix_size,
        result.baseline,
        result.probes,
        result.mape if result.mape is not None else -(result.auc or 0.0),
    )


def _best(evaluation: CoRunEvaluation) -> Iterator[tuple[CoRunResult, CoRunResult | None]]:
    """The best model of each quantity with errors by held-out group, and the best baseline beside it."""
    for quantity in ("slowdown", "time", "power"):
        of_quantity = (
            result
            for result in evaluation.results
            if result.quantity == quantity and result.mix_size is None and result.by_group
        )
        results = sorted(of_quantity, key=lambda result: np.inf if result.mape is None else result.mape)
        best = next((result for result in results if not result.baseline), None)
        if best is not None:
            rivals = (result for result in results if result.baseline and result.probes == best.probes)
            yield best, next(rivals, None)


def _by_group(best: CoRunResult) -> Table:
    """Make the table of a model's errors by held-out group."""
    coverage, known = best.coverage_by_group or {}, f", {best.probes} known mixes" if best.probes else ""
    return table_of(
        (best.by_group or {}).items(),
        {
            "left out": lambda each: each[0],
            "MAPE": lambda each: each[1],
            "coverage": lambda each: coverage.get(each[0]),
        },
        caption=f"{best.quantity}, {best.model}{known}, by what was left out",
        formats={"MAPE": error_percent, "coverage": percent},
    )


def evaluation_figures(evaluation: CoRunEvaluation) -> dict[str, Figure]:
    """Draw a figure of the errors by held-out group for each quantity."""
    title = f"{Path(evaluation.co_runs.label).name}, {evaluation.co_runs.mixes[0].device}"
    figures = {}
    for best, rival in _best(evaluation):
        of_best, of_rival = (
            {name: 100 * error for name, error in ((result and result.by_group) or {}).items()}
            for result in (best, rival)
        )
        if len(of_best) > 1:
            figures[f"left-out-{best.quantity}"] = groups_figure(
                best.model,
                dict(sorted(of_best.items(), key=lambda item: (-item[1], item[0]))),
                None if rival is None else (rival.model, of_rival),
                f"{title}: {best.quantity}, {evaluation.split}",
                label="MAPE where it is left out, %",
                write="{:.3g}".format,
                line=None if best.mape is None else ("its mean", 100 * best.mape),
            )
    return figures
