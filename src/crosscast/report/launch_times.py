"""How well times of launches were predicted whose source, application or device was held out."""

from __future__ import annotations

from typing import Any

from crosscast.evaluation.launch_times import LaunchEvaluation
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.numbers import Score, factor, level_percent, percent

_SCORES = (
    Score("bias", "bias", factor),
    Score("median APE", "median_ape", percent),
    Score("RMSE of ln t", "rmse_log", "{:.2f}".format),
    Score("coverage", "coverage_over_cells", percent),
    Score("worst application", "coverage_worst_application", percent),
    Score("width", "width", factor),
    Score("slowdown", "slowdown_mean", factor),
)


def launch_evaluation_report(study: LaunchEvaluation) -> Report:
    """A table by source, one by what was held out, and what their columns are."""
    counts = study.counts
    parts: list[Part] = [
        Heading(
            f"{study.label}: {counts['cells']:,} times of {counts['applications']} applications on "
            f"{counts['devices']} devices from {counts['sources']} sources; {study.folds}",
            1,
        ),
        _table("source", study.results()),
    ]
    if study.folds != "leave-source-out":
        by = "device" if study.folds == "leave-device-out" else "application"
        parts += ["", _table(by, study.groups(by))]
    parts += [
        "",
        "Bias: geometric mean of predicted over measured times. APE: median error of a time. RMSE: of the "
        "logarithm of the time.",
        f"Coverage: share of the times within {level_percent(study.level)} intervals, and in the application "
        "that has least. Width: upper over lower limit, median.",
        "Slowdown: time on the device forecast to be fastest over that on the fastest, mean over launches "
        "timed on at least five.",
    ]
    if study.shared_kernels:
        parts.append(
            f"{len(study.shared_kernels)} kernels were timed by several sources: with one source held out, "
            "the others' times of the same kernel are known."
        )
    return Report(parts)


def _table(by: str, rows: list[dict[str, Any]]) -> Table:
    cells = [[_name(by, row), row["cells"], *(each.text(row) for each in _SCORES)] for row in rows]
    return Table([by, "times", *(each.heading for each in _SCORES)], cells)


def _name(by: str, row: dict[str, Any]) -> str:
    name = row[by] or "all"
    return f"{name}, {row['kind']}" if row.get("kind") else str(name)
