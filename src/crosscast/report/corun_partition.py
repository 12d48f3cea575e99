"""An evaluation of models of parts of a GPU on a terminal."""

from __future__ import annotations

from typing import TextIO

from rich.text import Text

from crosscast.evaluation.partition import PartitionEvaluation
from crosscast.report.console import console_of_numbers
from crosscast.report.number_table import number_table
from crosscast.report.numbers import NONE, percent, plural

__all__ = ["print_partition_evaluation"]

_WIDTH = 140
_HELD_OUT = {
    "leave-benchmark-out": "Each application was left out in turn, with all mixes that it is in; it was "
    "predicted by models fitted to the other mixes.",
    "leave-bag-out": "Mixes were left out in folds, those of the same applications together: applications "
    "are known from other mixes, which makes this nearly a lookup.",
}


def print_partition_evaluation(evaluation: PartitionEvaluation, stream: TextIO) -> None:
    """Print the table of an evaluation, and what it is of.

    Parameters
    ----------
    evaluation
        The evaluation.
    stream
        Where to print; colours only on a terminal.
    """
    console = console_of_numbers(stream, _WIDTH)
    console.print(Text(_subject(evaluation), style="bold"), soft_wrap=True)
    console.print()
    headings = ["slices", "MAE", "coverage", "worst", "width", "predicted"]
    table = number_table("model", headings)
    places = [None, *evaluation.mixes.slices]
    for each in sorted(evaluation.results, key=lambda each: (places.index(each.slices), each.mae or 0.0)):
        table.add_row(
            Text(f"{each.model} (baseline)" if each.baseline else each.model),
            "all" if each.slices is None else f"{each.slices:g}",
            NONE if each.mae is None else f"{each.mae:.4f}",
            percent(each.coverage),
            f"{each.worst} {percent(each.worst_coverage)}",
            NONE if each.width is None else f"{each.width:.3f}",
            f"{each.rows:,}",
        )
    console.print(table)
    console.print()
    for line in (
        _HELD_OUT[evaluation.split],
        "MAE: mean absolute error of the relative time alone on a part of so many slices, which is the time "
        "over that on the part on which the application is slowest.",
        f"Coverage: share of the {percent(evaluation.level)} intervals that held what was measured; worst: "
        "of what was left out, the one of which they held least.",
        "Exact definitions: docs/corun-evaluation.md, Partitions.",
    ):
        console.print(Text(line), soft_wrap=True)


def _subject(evaluation: PartitionEvaluation) -> str:
    mixes = evaluation.mixes
    copies = f" ({evaluation.copies:,} copies left out)" if evaluation.copies else ""
    levels = ", ".join(f"{level:g}" for level in mixes.levels)
    slices = ", ".join(f"{slices:g}" for slices in mixes.slices)
    applications = len(set(mixes.job[mixes.judged].tolist()))
    return (
        f"{mixes.label}: {len(mixes):,} mixes{copies} of {plural(applications, 'application')} on "
        f"{mixes.device}; from MPS at {levels} % to parts of {slices} slices; {evaluation.split}; seed "
        f"{evaluation.seed}"
    )
