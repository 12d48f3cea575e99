"""Tables and figures of evaluations of models of co-running."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from crosscast.evaluation.corun.evaluation import CoRunEvaluation
from crosscast.evaluation.corun.scores import CoRunResult
from crosscast.report.corun import ErrorRow, error_table
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.figures import groups_figure
from crosscast.report.numbers import error_percent, percent, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        error_table([msgspec.convert(result.to_dict(), ErrorRow) for result in shown]),
        *_by_group(evaluation),
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


def _by_group(evaluation: CoRunEvaluation) -> list[Part]:
    """Make tables of the best model's errors by held-out group."""
    parts: list[Part] = []
    for quantity in (name for name in _ORDER if name != "speed"):
        results = [
            result
            for result in evaluation.results
            if result.quantity == quantity
            and result.mix_size is None
            and not result.baseline
            and result.by_group
        ]
        if results:
            best = min(results, key=lambda result: result.mape or 0.0)
            coverage = best.coverage_by_group or {}
            rows = [(name, mape, coverage.get(name)) for name, mape in (best.by_group or {}).items()]
            known = f", {best.probes} known mixes" if best.probes else ""
            caption = f"{quantity}, {best.model}{known}, by what was left out"
            formats = {"MAPE": error_percent, "coverage": percent}
            parts.append(Table(["left out", "MAPE", "coverage"], rows, caption, formats))
    return parts


_QUANTITIES = ("time", "slowdown", "power")


def evaluation_figures(evaluation: CoRunEvaluation) -> dict[str, Figure]:
    """Draw a figure of the errors by held-out group for each quantity."""
    title = f"{Path(evaluation.co_runs.label).name}, {evaluation.co_runs.mixes[0].device}"
    figures = {}
    for quantity in _QUANTITIES:
        results = [
            result
            for result in evaluation.results
            if result.quantity == quantity and result.mix_size is None and len(result.by_group or {}) > 1
        ]
        models = [result for result in results if not result.baseline]
        if models:
            best = min(models, key=_mape)
            rivals = [result for result in results if result.baseline and result.probes == best.probes]
            rival = min(rivals, key=_mape) if rivals else None
            errors = {name: 100 * error for name, error in (best.by_group or {}).items()}
            figures[f"left-out-{quantity}"] = groups_figure(
                best.model,
                dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
                None
                if rival is None or not rival.by_group
                else (rival.model, {name: 100 * error for name, error in rival.by_group.items()}),
                f"{title}: {quantity}, {evaluation.split}",
                label="MAPE where it is left out, %",
                write="{:.3g}".format,
                mean=None if best.mape is None else 100 * best.mape,
            )
    return figures


def _mape(result: CoRunResult) -> float:
    return np.inf if result.mape is None else result.mape
