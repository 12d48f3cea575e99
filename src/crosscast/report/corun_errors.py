"""A table of how good models of co-running are, from their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from crosscast.report.number_table import number_table
from crosscast.report.numbers import NONE, percent, three_digits

__all__ = ["corun_error_table"]


def corun_error_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """A row for each result.

    Parameters
    ----------
    results
        As `crosscast.evaluation.corun.CoRunResult.to_dict` gives them.
    """
    probed = any(each["probes"] for each in results)
    headings = ["quantity", "bag of", *(["known bags"] if probed else []), "MAPE", "coverage", "worst", "AUC"]
    table = number_table("model", [*headings, "predicted"])
    for each in results:
        table.add_row(
            Text(f"{each['model']} (baseline)" if each["baseline"] else each["model"]),
            each["quantity"],
            "any" if each["bag_size"] is None else str(each["bag_size"]),
            *([str(each["probes"])] if probed else []),
            NONE if each["mape"] is None else f"{three_digits(100 * each['mape'])} %",
            percent(each["coverage"]),
            NONE if each["worst"] is None else f"{each['worst']} {percent(each['worst_coverage'])}",
            NONE if each["auc"] is None else f"{each['auc']:.3f}",
            f"{each['rows']:,}",
        )
    return table
