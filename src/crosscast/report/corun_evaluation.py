"""An evaluation of models of co-running on a terminal."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.text import Text

from crosscast.evaluation.corun import CoRunResult
from crosscast.report.console import console_of_numbers
from crosscast.report.corun_errors import corun_error_table
from crosscast.report.corun_studies import print_corun_studies
from crosscast.report.number_table import number_table, print_table
from crosscast.report.numbers import percent, plural, three_digits
from crosscast.studies.moolchandani2022 import CoRunStudy

__all__ = ["print_corun_evaluation"]

_WIDTH = 140
_ORDER = ("slowdown", "speed", "time", "power", "fits")
_HELD_OUT = {
    "leave-benchmark-out": "Each application was left out in turn, with all bags that it is in; all members "
    "of these were predicted by models fitted to the other bags.",
    "leave-bag-out": "Bags were left out in folds, those of the same applications at the same sizes "
    "together: the applications are known from other bags.",
    "random-80-20": "As published, a fifth of the bags was left out at random: the applications are known "
    "from other bags. See leave-benchmark-out for applications that are new.",
}


def print_corun_evaluation(study: CoRunStudy, stream: TextIO) -> None:
    """Print the tables of an evaluation, and what they are of.

    Parameters
    ----------
    study
        The evaluation, with studies if there are any.
    stream
        Where to print; colours only on a terminal.
    """
    console = console_of_numbers(stream, _WIDTH)
    evaluation = study.evaluation
    console.print(Text(_subject(study), style="bold"), soft_wrap=True)
    console.print()
    results = sorted(evaluation.results, key=_place)
    several = len({each.bag_size for each in results if each.bag_size is not None}) > 1
    shown = [each for each in results if (each.bag_size is None or several)]
    console.print(corun_error_table([each.to_dict() for each in shown]))
    _print_groups(study, console)
    if study.studies is not None:
        print_corun_studies(study.studies, console)
    console.print()
    for line in (
        _HELD_OUT[evaluation.split],
        "MAPE: mean of the absolute error over what was measured. Slowdown: time of a job while the whole "
        "bag runs over its time alone; speed is its inverse. Time: from the common start of a job of each to "
        "the end of the last.",
        f"Coverage: share of the {percent(evaluation.level)} intervals that held what was measured; worst: "
        "of what was left out, the one of which they held least. AUC: of the probability that a bag fits.",
        "Exact definitions: docs/corun-evaluation.md.",
    ):
        console.print(Text(line), soft_wrap=True)


def _subject(study: CoRunStudy) -> str:
    co_runs, evaluation = study.evaluation.co_runs, study.evaluation
    sizes = sorted({len(bag.members) for bag in co_runs.bags})
    first = co_runs.bags[0]
    shared = "" if first.configuration == "{}" else f" {first.configuration}"
    return (
        f"{co_runs.label}: {plural(len(co_runs.bags), 'bag')} of {' and '.join(map(str, sizes))} of "
        f"{plural(len(co_runs.applications), 'application')} on {first.device}{shared}; {evaluation.split}; "
        f"seed {evaluation.seed}"
    )


def _place(result: CoRunResult) -> tuple[int, int, bool, int, float]:
    return (
        _ORDER.index(result.quantity),
        -1 if result.bag_size is None else result.bag_size,
        result.baseline,
        result.probes,
        result.mape if result.mape is not None else -(result.auc or 0.0),
    )


def _print_groups(study: CoRunStudy, console: Console) -> None:
    """What was left out, one by one, by the model that is best and no baseline."""
    for quantity in _ORDER:
        found = [
            each
            for each in study.evaluation.results
            if each.quantity == quantity and each.bag_size is None and not each.baseline and each.by_group
        ]
        if found and quantity != "speed":
            best = min(found, key=lambda each: each.mape or 0.0)
            table = number_table("left out", ["MAPE"])
            for name, mape in (best.by_group or {}).items():
                table.add_row(Text(name), f"{three_digits(100 * mape)} %")
            known = f", {best.probes} known bags" if best.probes else ""
            print_table(console, f"{quantity}, {best.model}{known}, by what was left out", table)
