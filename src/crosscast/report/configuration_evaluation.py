"""Tables of evaluations of methods that choose configurations, by machine, and frontiers."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.files import atomic_file
from crosscast.evaluation.configuration.evaluation import (
    ALONE,
    TOGETHER,
    ConfigurationEvaluation,
    MachineChoices,
)
from crosscast.evaluation.configuration.scores import REPEATS, ChoiceResult
from crosscast.evaluation.resampling import DRAWS, SHARE
from crosscast.prediction.configuration.data import KernelAt, Surfaces, pareto_frontier
from crosscast.report.document import Heading, Part, Report, Table, Text
from crosscast.report.fields import Score, score_table, scores_of, value_of
from crosscast.report.numbers import (
    MARK,
    plural,
    setting_heading,
    setting_text,
    share,
    shown_settings,
)
from crosscast.units import format_count

_NAMED = 3
"""Largest number of kernels left out for one reason that are named."""

_MOST_TOGETHER = 12
"""Largest number of groups, and of programs of a group, that are named."""


def evaluation_report(study: ConfigurationEvaluation, *, programs: bool = False) -> Report:
    """Make the tables of an evaluation, by machine; with `programs` also those by program."""
    parts: list[Part] = []
    for machine in study.machines:
        parts += _machine(study, machine, programs)
    return Report([*parts, "", *_LEGEND])


def _machine(study: ConfigurationEvaluation, machine: MachineChoices, programs: bool) -> list[Part]:
    alone = [result for result in machine.results if result.protocol == ALONE]
    together = [result for result in machine.results if result.protocol == TOGETHER]
    limit = "" if alone[0].budget is None else f", at most {plural(alone[0].budget, 'extra run')}"
    parts: list[Part] = [
        Heading(_subject(study, machine), 1),
        *_samples(machine),
        *_left_out(machine),
        _clusters(machine),
        _main_table(alone, f"each program left out{limit}: % of cases, % of the oracle's"),
        _curve_table(alone),
        _repeats_table(alone, machine),
        _tails_table(alone),
        *_confidence_table(alone),
    ]
    if together:
        groups = [" + ".join(_few_names(group, _MOST_TOGETHER)) for group in machine.groups]
        parts.append(_main_table(together, "near-duplicates left out together"))
        parts.append(f"Together: {'; '.join(_few_names(groups, _MOST_TOGETHER))}.")
    published = machine.published.fitted
    if not published.clusters.nothing_to_cluster:
        lines = [f"  {line}" for line in published.tree.text().splitlines()]
        parts += [Heading("tree of the published model on all programs", 3), Text(lines, "code")]
    parts += [_program_table(result) for result in alone] if programs else []
    frontier = longest_frontier(machine)
    if programs:
        parts.append(
            frontier_table(frontier, f"configurations on the longest frontier, of {frontier.kernel}")
        )
    else:
        count = plural(len(frontier.frontier), "configuration")
        shown = "--html or --figures shows it."
        parts += ["", f"The longest frontier, of {frontier.kernel}, has {count}: {shown}"]
    return parts


def _few_names(names: Sequence[str], most: int) -> list[str]:
    """The first names, and the number of further ones."""
    rest = len(names) - most
    return [*names[:most], f"{rest} more"] if rest > 0 else list(names)


def _subject(study: ConfigurationEvaluation, machine: MachineChoices) -> str:
    cases = machine.cases
    counts = (
        (len(cases), "case"),
        (len(set(cases.kernel.tolist())), "kernel"),
        (len(cases.programs), "program"),
    )
    case_count, kernels, programs = (plural(number, noun) for number, noun in counts)
    return (
        f"{study.label}, {machine.machine}: {case_count} of {kernels} at a size ({programs}) over "
        f"{plural(len(machine.surfaces.space), 'configuration')}; kernels weighted by their time; "
        f"seed {study.seed}"
    )


def _samples(machine: MachineChoices) -> list[str]:
    """Sentences about the sample configurations, with the number of folds where they differ."""
    folds: defaultdict[tuple[int, ...], int] = defaultdict(int)
    for numbers in machine.samples.values():
        folds[numbers] += 1
    lines = []
    for numbers, count in folds.items():
        configurations = machine.surfaces.space.configurations
        names = "; ".join(str(configurations[number]) for number in numbers)
        where = "" if len(folds) == 1 else f" in {plural(count, 'fold')} of {sum(folds.values())}"
        lines.append(f"Sample configurations{where}: {names}.")
    return lines


def _left_out(machine: MachineChoices) -> list[str]:
    """Sentences about kernels without cases, by reason."""
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for exclusion in machine.cases.left_out:
        reasons[exclusion.reason].append(str(exclusion.kernel))
    return [
        f"Left out, {reason}: {plural(len(kernels), 'kernel')} ({', '.join(_few_names(kernels, _NAMED))})."
        for reason, kernels in reasons.items()
    ]


def _clusters(machine: MachineChoices) -> str:
    """Sentence about the clusters of the published model fitted to all programs."""
    clusters = machine.published.fitted.clusters
    note = f"The published model on all programs: {clusters.note}."
    if clusters.nothing_to_cluster:
        return note
    between = (
        f" Kendall's tau of two frontiers is {clusters.least_correlation:.2f} to "
        f"{clusters.most_correlation:.2f}"
        if clusters.least_correlation is not None and clusters.most_correlation is not None
        else " No two frontiers share two configurations"
    )
    pairs = f"; {plural(clusters.undefined, 'pair')} of kernels share fewer than 2 configurations"
    return f"{note}{between}{pairs if clusters.undefined else ''}."


_LEGEND = (
    "Each program is left out in turn of all that is learned; caps are the powers on each kernel's measured "
    "frontier. Programs weigh equally.",
    "Under: share of cases within the cap. perf., power: relative to the oracle's, mean over the cases "
    "within the cap, or over it.",
    "S: performance relative to the oracle, with cases over the cap counting 0. Extra runs: changes after "
    "the first choice.",
    "Again: the choice is run again. Repeats: the same, with 1 % tolerance. Told less: the method is told a "
    "cap lower by 1 %, and the choice is run again without tolerance.",
    f"In brackets: {100 * SHARE:g} % of {format_count(DRAWS)} bootstrap draws of the programs. {MARK} better "
    "than the best baseline, where the bootstrap of the difference excludes 0.",
    "Exact definitions: docs/evaluation.md.",
)


REFERENCE = "oracle"
_Columns = Mapping[str, Callable[[ChoiceResult], str]]
_SCORES = scores_of(
    "under_limit_share± under_performance under_power over_power over_performance score± extra_runs"
)
"""Columns of Table III of Bailey et al. 2014, and score and extra runs."""


def method_label(result: ChoiceResult) -> str:
    """Name of the method, with its confidence where it has one."""
    return f"{result.method} {100 * result.confidence:g} %" if result.confidence else result.method


def _method_table(results: Sequence[ChoiceResult], columns: _Columns, caption: str) -> Table:
    """Make a row for each method: first methods, then baselines, last the oracle."""
    methods = [result for result in results if not result.baseline and result.method != REFERENCE]
    baselines = [result for result in results if result.baseline]
    reference = [result for result in results if result.method == REFERENCE]

    def rows(group: Sequence[ChoiceResult]) -> list[list[str]]:
        return [[method_label(result), *(text(result) for text in columns.values())] for result in group]

    divider = [["baselines"]] if methods and baselines else []
    return Table(
        ["method", *columns], [*rows(methods), *divider, *rows(baselines), *rows(reference)], caption
    )


def _share(path: str) -> Callable[[ChoiceResult], str]:
    """Column of a share by its path in a result; a dash where it is not known."""
    return lambda result: share(value_of(result, path))


def _main_table(results: Sequence[ChoiceResult], caption: str) -> Table:
    def column(score: Score, result: ChoiceResult) -> str:
        return score.text(
            result.metrics, result.bootstrap, marked=False if result.method == REFERENCE else None
        )

    columns = {score.heading: partial(column, score) for score in _SCORES}
    return _method_table(results, columns, caption)


def _curve_table(results: Sequence[ChoiceResult]) -> Table:
    """Make the table of the score by the number of extra runs."""

    def score(budget: int, result: ChoiceResult) -> str:
        return share(result.curve[budget].score)

    columns = {str(budget): partial(score, budget) for budget in results[0].curve}
    return _method_table(results, columns, "S by the extra runs that are allowed")


_ON_REPEATS = (
    "under_limit_share",
    "under_performance",
    "under_limit_share_within_1pct",
    "under_performance_within_1pct",
)


def _repeats_table(results: Sequence[ChoiceResult], machine: MachineChoices) -> Table:
    """Make the table of results with 1 % tolerance, on other repeats, and with caps lower by 1 %."""
    paths = [f"metrics.{name}" for name in _ON_REPEATS[2:]]
    headings, caption, last = ["≤ 1 %", "perf."], "with 1 % tolerance", []
    split_half = machine.split_half
    if split_half is not None:
        paths += [f"on_repeats.{name}" for name in _ON_REPEATS]
        paths += [f"told_less.{name}" for name in (*_ON_REPEATS[:2], "score")]
        headings += ["again", "perf.", "repeats", "perf.", "told less", "perf.", "S"]
        violations = 100 * (split_half.violations or 0.0)
        caption += (
            f", and on {REPEATS} other repeats, which are simulated: repeats alone take "
            f"{violations:.0f} % of the oracle's choices over the limit"
        )
        shares = (share(getattr(split_half, name)) for name in _ON_REPEATS)
        last = [["split-half oracle", "", "", *shares]]
    # Headings repeat, so that they cannot be the keys of columns.
    table = _method_table(results, {path: _share(path) for path in paths}, caption)
    return Table(["method", *headings], [*table.rows, *last], caption)


def _tails_table(results: Sequence[ChoiceResult]) -> Table:
    """Make the table of worst cases: percentiles of lost performance within the cap, and worst programs."""

    def least(name: str, result: ChoiceResult) -> str:
        values = [getattr(metrics, name) for metrics in result.programs.values()]
        return share(min((value for value in values if value is not None), default=None))

    columns: _Columns = {
        "lost: median": _share("regret.median"),
        "90 %": _share("regret.percentile_90"),
        "95 %": _share("regret.percentile_95"),
        "least under": partial(least, "under_limit_share"),
        "least perf.": partial(least, "under_performance"),
        "least S": partial(least, "score"),
    }
    return _method_table(results, columns, "performance lost under the limit; worst programs")


def _confidence_table(results: Sequence[ChoiceResult]) -> list[Part]:
    """Make the table of promised and kept confidence, and list programs that exceed the promise."""
    promised = [result for result in results if result.confidence is not None]
    if not promised:
        return []
    columns: _Columns = {
        "allowed over": lambda result: share(1 - (result.confidence or 0.0)),
        "over": _share("metrics.violations"),
        "perf.": _share("metrics.under_performance"),
        "programs above": lambda result: f"{len(result.above)} of {len(result.programs)}",
    }
    return [
        _method_table(promised, columns, "what was promised"),
        *(f"Above it with {result.method}: {', '.join(result.above)}." for result in results if result.above),
    ]


def _program_table(result: ChoiceResult) -> Table:
    """Make the table of the main metrics of one method, with a row for each program."""
    rows = [([program], metrics, None) for program, metrics in result.programs.items()]
    return score_table([result.method], rows, _SCORES, caption="by program")


@dataclass(frozen=True, eq=False)
class KernelFrontier:
    """One kernel over all configurations, and its frontier."""

    surfaces: Surfaces
    row: int
    frontier: Integers
    performance: Reals
    power_w: Reals

    @property
    def kernel(self) -> KernelAt:
        """The kernel."""
        return self.surfaces.kernels[self.row]


def frontier_of(surfaces: Surfaces, row: int) -> KernelFrontier:
    """Find the frontier of one kernel, given by its row."""
    time_s, power_w = surfaces.time_s[row], surfaces.power_w[row]
    return KernelFrontier(
        surfaces, row, pareto_frontier(time_s, power_w), np.nanmin(time_s) / time_s, power_w
    )


def longest_frontier(machine: MachineChoices) -> KernelFrontier:
    """Find the first frontier with the most configurations, among kernels with cases."""
    rows, counts = np.unique(machine.cases.kernel, return_counts=True)
    return frontier_of(machine.surfaces, int(rows[counts.argmax()]))


def frontier_table(kernel: KernelFrontier, caption: str = "") -> Table:
    """Make the table of configurations on a frontier, with settings, power and normalised performance."""
    names = shown_settings(kernel.surfaces.space)
    rows = []
    for number in kernel.frontier.tolist():
        configuration = kernel.surfaces.space.configurations[number]
        settings = [setting_text(name, configuration.settings.get(name)) for name in names]
        rows.append(
            [
                configuration.device,
                *settings,
                f"{kernel.power_w[number]:.1f}",
                f"{kernel.performance[number]:.2f}",
            ]
        )
    headings = ["device", *map(setting_heading, names), "power, W", "performance"]
    return Table(headings, rows, caption)


def write_frontier(kernel: KernelFrontier, path: Path) -> Path:
    """Write the configurations on the frontier as CSV, in SI units."""
    space = kernel.surfaces.space
    names = shown_settings(space)
    with (
        atomic_file(path, field="figures") as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["device", *names, "power_w", "time_s", "performance"])
        for number in kernel.frontier.tolist():
            configuration = space.configurations[number]
            settings = [configuration.settings.get(name, "") for name in names]
            time_s = float(kernel.surfaces.time_s[kernel.row, number])
            measured = [float(kernel.power_w[number]), time_s, float(kernel.performance[number])]
            writer.writerow([configuration.device, *settings, *measured])
    return path
