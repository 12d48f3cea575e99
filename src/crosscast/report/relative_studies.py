"""The studies of an evaluation of relative performance on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosscast.evaluation.relative import RelativeEvaluation
from crosscast.report.number_table import number_table, print_table
from crosscast.report.numbers import percent
from crosscast.studies.nichols2024 import CAUTION, BySource, Importances, RelativeStudies, Selection

__all__ = ["print_relative_studies"]

_MOST_FEATURES = 20


def print_relative_studies(studies: RelativeStudies, console: Console) -> None:
    """Print a table for each study that could be made.

    Parameters
    ----------
    studies
        The studies.
    console
        Where to print.
    """
    if studies.by_source is not None:
        found = studies.by_source
        heading = f"by source: fitted to and tested on counters of one device, {found.split}"
        print_table(console, heading, _by_source(found))
    for name, evaluation in (("scale", studies.by_scale), ("application", studies.by_application)):
        if evaluation is not None:
            print_table(console, f"by {name}: MAE where it is left out", _by_group(evaluation, name))
    split = studies.importances.split
    print_table(
        console, f"importances of {studies.importances.model}, {split}", _importances(studies.importances)
    )
    console.print(Text(CAUTION), soft_wrap=True)
    print_table(
        console, f"features of the most gain alone, {studies.selection.split}", _selection(studies.selection)
    )


def _by_source(found: BySource) -> Table:
    table = number_table("MAE / same order", found.sources)
    for model, metrics in found.metrics.items():
        table.add_row(Text(model), *(f"{each.mae:.4f} / {percent(each.same_order)}" for each in metrics))
    return table


def _by_group(evaluation: RelativeEvaluation, name: str) -> Table:
    results = evaluation.results
    table = number_table(name, [result.model for result in results])
    for group in results[0].per_group:
        table.add_row(Text(group), *(f"{result.per_group[group].mae:.4f}" for result in results))
    return table


def _importances(found: Importances) -> Table:
    table = number_table("feature", ["average gain", "rise of MAE when shuffled"])
    for each in found.features[:_MOST_FEATURES]:
        table.add_row(Text(each.feature), percent(each.gain), f"{each.rise:+.4f}")
    left = len(found.features) - _MOST_FEATURES
    if left > 0:
        table.add_row(Text(f"and {left} more", style="dim"), "", "")
    return table


def _selection(found: Selection) -> Table:
    table = number_table("features", ["MAE", "same order"])
    for count, each in zip(found.counts, found.metrics, strict=True):
        table.add_row(str(count), f"{each.mae:.4f}", percent(each.same_order))
    return table
