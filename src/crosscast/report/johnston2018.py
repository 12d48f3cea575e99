"""The study of Johnston, Falzon and Milthorpe (2018) on a terminal: the value of the paper beside ours."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosscast.report.text import console_of_numbers
from crosscast.studies.johnston2018 import (
    FIGURE_3_MAE,
    MAE_LOG,
    MISPREDICTION_S,
    NODE_SIZES,
    R2,
    RELATIVE_LOG,
    WORST_ERROR,
    WORST_KERNEL,
    Johnston2018,
    published_kernel,
    table_3,
)
from crosscast.studies.johnston2018_forests import NODE_SIZE, TREES, TRIED
from crosscast.units import format_count, format_seconds

__all__ = ["print_study"]

_WIDTH = 120
_NONE = ""
_SHOWN_TRIED = (1, 5, 10, 20, 25, 30)
_SHOWN_TREES = (10, 100, 500, 10_000)
_SHOWN_NODE_SIZES = (1, 9, 14, 20, 30, 50)


def print_study(study: Johnston2018, stream: TextIO) -> None:
    """Print the tables of the study."""
    console = console_of_numbers(stream, _WIDTH)
    grid = study.runs.grid
    console.print(
        Text(
            f"The published study (Johnston, Falzon and Milthorpe 2018) on {study.label}: "
            f"{len(grid.profiles)} kernels at a size, {len(grid.devices)} devices, "
            f"{format_count(len(study.runs))} runs, {study.runs.features.shape[1]} features and the device",
            style="bold",
        ),
        soft_wrap=True,
    )
    _print_headline(console, study)
    _print_honest(console, study)
    _print_tuning(console, study)
    _print_omitted(console, study)
    _print_learning(console, study)
    _print_energy(console, study)
    console.print(Text(f"Seed {study.seed}."))


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"), soft_wrap=True)


def _say(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)


def _table(first: str, others: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _percent(share: float | None, digits: int = 1) -> str:
    return _NONE if share is None else f"{100 * share:.{digits}f} %"


def _real(value: float | None, digits: int = 2) -> str:
    return _NONE if value is None else f"{value:.{digits}f}"


def _print_headline(console: Console, study: Johnston2018) -> None:
    found = study.headline
    forest, lookup = found.forest, found.lookup
    _heading(console, "Headline: known cells (a random fifth of the runs trained on, the others tested)")
    rows = [
        ("relative error of ln(µs), over cells", _percent(RELATIVE_LOG), "relative_log_cells"),
        ("relative error of ln(µs), run by run", _NONE, "relative_log_rows"),
        ("the same in real time, over cells: mean", _NONE, "mape_cells"),
        ("  median", _NONE, "median_ape_cells"),
        ("the same in real time, run by run: mean", _NONE, "mape_rows"),
        ("  median", _NONE, "median_ape_rows"),
    ]
    lines = [
        (title, paper, *(_percent(getattr(errors, name)) for errors in (forest, lookup)))
        for title, paper, name in rows
    ]
    lines += [
        (
            "mean absolute error of ln(time)",
            f"~{MAE_LOG}",
            _real(forest.mae_log, 3),
            _real(lookup.mae_log, 3),
        ),
        ("R², runs that were not trained on", _NONE, _real(forest.r2, 3), _real(lookup.r2, 3)),
        ("R² out of the bag, all runs", _real(R2), _real(found.oob_r2, 3), _NONE),
    ]
    console.print(_table("", ("paper", "forest", "lookup table"), lines))
    units = found.relative_log_by_unit
    sizes = ", ".join(f"{size} {format_seconds(error)}" for size, error in found.misprediction_s.items())
    for text in (
        f"Forest: {found.trees} trees, {TRIED} features tried, node size {NODE_SIZE}. The lookup table is "
        "the mean of the same cell's training runs; it knows no feature and predicts no other kernel.",
        f"A percentage of a logarithm depends on its unit: the same predictions are {_percent(units['ns'])} "
        f"off in ln(ns), {_percent(units['us'])} in ln(µs) and {_percent(units['ms'])} in ln(ms).",
        f"Mean misprediction in real time: {sizes} (paper: {format_seconds(MISPREDICTION_S[0])} to "
        f"{format_seconds(MISPREDICTION_S[1])} by size).",
        f"Worst kernel, in ln(µs): {found.worst_kernel}, {_percent(found.worst_error)} (paper: "
        f"{WORST_KERNEL}, {_percent(WORST_ERROR)}).",
    ):
        _say(console, text)


def _print_honest(console: Console, study: Johnston2018) -> None:
    found, known = study.honest, study.headline
    _heading(console, "The same forest on applications that it has not seen (leave-application-out)")
    if found is None:
        _say(console, "There is one application only: nothing to hold out.")
        return
    rows = [
        (
            "median error in real time, over cells",
            _percent(known.forest.median_ape_cells),
            _percent(found.median_ape, 0),
        ),
        ("  mean over applications", _NONE, _percent(found.median_ape_by_application, 0)),
        ("mean error in real time, over cells", _percent(known.forest.mape_cells), _percent(found.mape, 0)),
        ("RMSE of ln(time)", _NONE, _real(found.rmse_log)),
        ("fastest device found", _percent(known.top1, 0), _percent(found.top1, 0)),
        ("pairs of devices in the right order", _percent(known.pairs_in_order, 0), _NONE),
        ("slowdown on the device chosen, mean", _NONE, _real(found.slowdown_mean)),
        ("  always taking one device instead", _NONE, _real(found.always_one_slowdown_mean)),
    ]
    console.print(_table("", ("known cells", "held out"), rows))
    _say(console, f"Held out: {found.trees} trees a forest, one row a cell.")


def _print_tuning(console: Console, study: Johnston2018) -> None:
    found = study.tuning
    _heading(console, "Figures 1 and 2: 100 x mean square error of ln(time) out of the bag")
    sizes = ", ".join(
        f"{size}: {100 * found.node_size_errors[NODE_SIZES.index(size)]:.1f}" for size in _SHOWN_NODE_SIZES
    )
    _say(console, f"Figure 1, by node size (300 trees, {TRIED} tried): {sizes} (paper: least below 15)")
    tried = sorted({*(each for each in _SHOWN_TRIED if each <= found.tried[-1]), found.tried[-1]})
    rows = [
        (
            f"{format_count(trees)} trees",
            *(f"{100 * found.heat[found.trees.index(trees)][each - 1]:.1f}" for each in tried),
        )
        for trees in _SHOWN_TREES
    ]
    console.print(_table("Figure 2", [f"{each} tried" for each in tried], rows))
    search = found.search
    best = search.best
    for text in (
        f"On {format_count(found.rows)} runs, ten a cell as in the published scripts; {found.grown} trees "
        "grown for each number tried; errors of more trees are extrapolated, linear in 1 / trees.",
        f"Annealing over all three, {len(search.error)} steps from {search.trees[0]} trees, "
        f"{search.tried[0]} tried, node size {search.node_size[0]} ({100 * search.error[0]:.2f}): least "
        f"{100 * search.error[best]:.2f} with {format_count(search.trees[best])} trees, {search.tried[best]} "
        f"tried, node size {search.node_size[best]} (paper: {TREES}, {TRIED}, {NODE_SIZE}).",
    ):
        _say(console, text)


def _print_omitted(console: Console, study: Johnston2018) -> None:
    _heading(console, "Table III (Algorithm 1): tuned without one kernel, and that kernel's own error")
    rows = []
    for row in study.omitted:
        paper = published_kernel(row.kernel)
        published = [_NONE] * 3 if paper is None else [*map(str, paper)]
        rows.append(
            [
                row.kernel,
                *published,
                str(row.trees),
                str(row.tried),
                f"{100 * row.oob_error:.1f}",
                f"{row.r2:.3f}",
                _percent(row.median_ape, 0),
                _real(row.rmse_log),
            ]
        )
    rows.append(_medians(study))
    heads = ("trees", "tried", "error", "trees", "tried", "error", "R²", "true error", "RMSE ln")
    paper_heads = [f"paper: {heads[0]}", *heads[1:3], f"here: {heads[3]}", *heads[4:]]
    console.print(_table("kernel left out", paper_heads, rows))
    preset = study.preset
    for text in (
        "'error' is 100 x the mean square error of ln(time) out of the bag of all other kernels, the paper's "
        "'prediction error (%)'; the kernel left out has no part in it. 'true error' is its own: median over "
        "its cells, in real time.",
        f"Node size {NODE_SIZE}; {preset.omitted_steps} steps of annealing for each kernel on forests of "
        f"{preset.omitted_trees} trees; errors of more trees are extrapolated, linear in 1 / trees.",
    ):
        _say(console, text)


def _medians(study: Johnston2018) -> list[str]:
    of_paper = table_3().values()
    rows = study.omitted
    trees, tried = study.median_parameters()
    return [
        "median",
        f"{statistics.median(row.trees for row in of_paper):g}",
        f"{statistics.median(row.tried for row in of_paper):g}",
        f"{statistics.median(row.error_percent for row in of_paper):.1f}",
        f"{trees:g}",
        f"{tried:g}",
        f"{100 * statistics.median(row.oob_error for row in rows):.1f}",
        f"{statistics.median(row.r2 for row in rows):.3f}",
        _percent(statistics.median(row.median_ape for row in rows), 0),
        _real(statistics.median(row.rmse_log for row in rows)),
    ]


def _print_learning(console: Console, study: Johnston2018) -> None:
    _heading(console, "Figure 3 (Algorithm 2): mean absolute error of ln(time) by kernels trained on")
    rows = [
        (
            str(row.kernels),
            _real(FIGURE_3_MAE.get(row.kernels)),
            _real(row.mae_published),
            _percent(row.known_share, 0),
            _real(row.mae_corrected),
        )
        for row in study.learning
    ]
    heads = ("paper", "as published", "tested on known cells", "corrected")
    console.print(_table("kernels", heads, rows))
    for text in (
        "As published, R repeats the drawn kernels along the rows: one row in so many of each is trained on, "
        "and all its other rows are tested on. Corrected, all rows of the drawn kernels are trained on, and "
        "the other kernels tested.",
        f"{study.preset.samples} samples for each number (paper: 500), {study.preset.sample_trees} trees a "
        f"forest (paper: {TREES}).",
    ):
        _say(console, text)


def _print_energy(console: Console, study: Johnston2018) -> None:
    found = study.energy
    _heading(console, "Energy in place of time (section VII)")
    if found is None:
        _say(console, "The dataset holds energy of too few applications.")
        return
    rows = [
        ("known cells, mean error", _percent(found.mape), "lookup table", _percent(found.lookup_mape)),
        (
            "application held out, median error",
            _percent(found.held_out_median_ape, 0),
            "device's mean",
            _percent(found.baseline_median_ape, 0),
        ),
        (
            "application held out, RMSE of ln(energy)",
            _real(found.held_out_rmse_log),
            "device's mean",
            _real(found.baseline_rmse_log),
        ),
    ]
    console.print(_table("", ("forest", "baseline", ""), rows))
    _say(
        console,
        f"{found.rows} watched runs of {found.applications} applications with profiles on {found.devices} "
        f"devices; {found.trees} trees. On known cells R² is {found.r2:.3f} and the mean absolute error of "
        f"ln(energy) {found.mae_log:.3f}.",
    )
