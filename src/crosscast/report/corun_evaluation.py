"""Tables and figures of evaluations of models of co-running."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from crosscast.evaluation.corun.evaluation import CoRunEvaluation, CoRunResult
from crosscast.report.cards import HeldOutScores
from crosscast.report.corun import error_table
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.fields import table_of
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
