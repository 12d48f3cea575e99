"""Tables and figures of evaluations of methods that choose configurations, by machine."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from crosscast.evaluation.configuration.evaluation import (
    ALONE,
    TOGETHER,
    ConfigurationEvaluation,
    MachineChoices,
)
from crosscast.evaluation.configuration.scores import REPEATS, ChoiceResult
from crosscast.prediction.trained import format_names
from crosscast.report import figures as draw
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.fields import (
    Column,
    bootstrap_sentence,
    explained,
    named,
    plural,
    score_table,
    scores_of,
    share,
    table_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMED = 3
"""Largest number of kernels left out for one reason that are named."""

_MOST_TOGETHER = 12
"""Largest number of groups of near-duplicates that are named."""


def evaluation_report(study: ConfigurationEvaluation, *, programs: bool = False) -> Report:
    """Make the tables of an evaluation, by machine; with `programs` also those by program."""
    parts: list[Part] = []
    for machine in study.machines:
        parts += _machine(study, machine, programs)
    return Report([*parts, "", *_LEGEND])


def _machine(study: ConfigurationEvaluation, machine: MachineChoices, programs: bool) -> list[Part]:
    alone, together = (_sorted(machine.results, protocol) for protocol in (ALONE, TOGETHER))
    limit = "" if alone[0].budget is None else f", at most {plural(alone[0].budget, 'extra run')}"
    parts: list[Part] = [
        Heading(_subject(study, machine), 1),
        *_samples(machine),
        *_left_out(machine),
        _main_table(alone, f"each program left out{limit}: % of cases, % of the oracle's"),
        _curve_table(alone),
        _repeats_table(machine),
        _tails_table(alone),
        *_confidence_table(alone),
    ]
    if together:
        groups = [" + ".join(group) for group in machine.groups]
        parts.append(_main_table(together, "near-duplicates left out together"))
        parts.append(f"Together: {format_names(groups, _MOST_TOGETHER)}.")
    return [*parts, *(_program_table(result) for result in alone if programs)]


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
        f"Left out, {reason}: {plural(len(kernels), 'kernel')} ({format_names(kernels, _NAMED)})."
        for reason, kernels in reasons.items()
    ]


REFERENCE = "oracle"
_SCORES = scores_of(
    "under_limit_share± under_performance under_power over_power over_performance score± extra_runs"
)
"""Columns of Table III of Bailey et al. 2014, and score and extra runs."""

_LEGEND = (
    "Each program is left out in turn of all that is learned; caps are the powers on each kernel's measured "
    "frontier. Programs weigh equally.",
    explained(_SCORES),
    "Again: the choice is run again. Repeats: the same, with 1 % tolerance. Told less: the method is told a "
    "cap lower by 1 %, and the choice is run again without tolerance.",
    bootstrap_sentence("programs"),
    "Exact definitions: docs/evaluation.md.",
)


Row = ChoiceResult | Mapping[str, object]
"""A row of a table: a result, or what else there is with names of its parts."""


def _label(row: Row) -> str:
    """Name of the method, with its confidence where it has one, and marked if it is a baseline."""
    if isinstance(row, Mapping):
        return str(row["method"])
    name = f"{row.method} {100 * row.confidence:g} %" if row.confidence else row.method
    return named(name, row.baseline)


def _sorted(results: Iterable[ChoiceResult], protocol: str = ALONE) -> list[ChoiceResult]:
    """Results of a protocol: methods, then baselines, last the oracle."""
    of_protocol = (result for result in results if result.protocol == protocol)
    return sorted(of_protocol, key=lambda result: (result.method == REFERENCE, result.baseline))


def _method_table(rows: Sequence[Row], columns: Mapping[str, Column[Any]], caption: str) -> Table:
    """Make a table of shares with a row for each method."""
    return table_of(
        rows, {"method": _label, **columns}, caption=caption, formats=dict.fromkeys(columns, share)
    )


def _main_table(results: Sequence[ChoiceResult], caption: str) -> Table:
    rows = [
        # The oracle is no method, and is not compared.
        (
            [_label(each)],
            each.metrics,
            replace(each.bootstrap, differences={}) if each.method == REFERENCE else each.bootstrap,
        )
        for each in results
    ]
    return score_table(["method"], rows, _SCORES, caption=caption)


def _curve_table(results: Sequence[ChoiceResult]) -> Table:
    """Make the table of the score by the number of extra runs."""
    rows = [
        {"method": _label(each), **{str(budget): metrics.score for budget, metrics in each.curve.items()}}
        for each in results
    ]
    return _method_table(
        rows, {name: name for name in list(rows[0])[1:]}, "S by the extra runs that are allowed"
    )


_ON_REPEATS = {
    "≤ 1 %": "metrics.under_limit_share_within_1pct",
    "perf. ≤ 1 %": "metrics.under_performance_within_1pct",
    "again": "on_repeats.under_limit_share",
    "perf. again": "on_repeats.under_performance",
    "repeats": "on_repeats.under_limit_share_within_1pct",
    "perf. repeats": "on_repeats.under_performance_within_1pct",
    "told less": "told_less.under_limit_share",
    "perf. told less": "told_less.under_performance",
    "S told less": "told_less.score",
}
_ON_SAME_RUN = 2
"""Number of the first columns that need no repeats."""


def _on_repeats(machine: MachineChoices) -> list[Row]:
    """Results, and the split-half oracle, which has results on repeats alone."""
    split_half = machine.split_half
    oracle = {"method": "split-half oracle", "on_repeats": split_half}
    return [*_sorted(machine.results), *([] if split_half is None else [oracle])]


def _repeats_table(machine: MachineChoices) -> Table:
    """Make the table of results with 1 % tolerance, on other repeats, and with caps lower by 1 %."""
    columns, caption = dict(list(_ON_REPEATS.items())[:_ON_SAME_RUN]), "with 1 % tolerance"
    if machine.split_half is not None:
        columns = _ON_REPEATS
        violations = 100 * (machine.split_half.violations or 0.0)
        caption += (
            f", and on {REPEATS} other repeats, which are simulated: repeats alone take "
            f"{violations:.0f} % of the oracle's choices over the limit"
        )
    return _method_table(_on_repeats(machine), columns, caption)


def _tails_table(results: Sequence[ChoiceResult]) -> Table:
    """Make the table of worst cases: percentiles of lost performance within the cap, and worst programs."""

    def least(name: str, result: ChoiceResult) -> float | None:
        values = [getattr(metrics, name) for metrics in result.programs.values()]
        return min((value for value in values if value is not None), default=None)

    columns: dict[str, Column[ChoiceResult]] = {
        "lost: median": "regret.median",
        "90 %": "regret.percentile_90",
        "95 %": "regret.percentile_95",
        "least under": partial(least, "under_limit_share"),
        "least perf.": partial(least, "under_performance"),
        "least S": partial(least, "score"),
    }
    return _method_table(results, columns, "performance lost under the limit; worst programs")


def _confidence_table(results: Sequence[ChoiceResult]) -> list[Part]:
    """Make the table of promised and kept confidence, and list programs that exceed the promise."""
    promised = [result for result in results if result.confidence is not None]
    columns: dict[str, Column[ChoiceResult]] = {
        "allowed over": lambda result: 1 - (result.confidence or 0.0),
        "over": "metrics.violations",
        "perf.": "metrics.under_performance",
        "programs above": lambda result: f"{len(result.above)} of {len(result.programs)}",
    }
    return [
        *([_method_table(promised, columns, "what was promised")] if promised else []),
        *(
            f"Above it with {result.method}: {', '.join(result.above)}."
            for result in promised
            if result.above
        ),
    ]


def _program_table(result: ChoiceResult) -> Table:
    """Make the table of the main metrics of one method, with a row for each program."""
    rows = [([program], metrics, None) for program, metrics in result.programs.items()]
    return score_table([result.method], rows, _SCORES, caption="by program")


_LONGEST_NAME = 40


def evaluation_figures(study: ConfigurationEvaluation) -> dict[str, Figure]:
    """Draw the methods, the score by extra runs and results on repeats, by name.

    The names begin with a folder for each machine where there are several. Results on repeats have a figure
    only where there are any.
    """
    figures: dict[str, Figure] = {}
    for machine, folder in with_folders(study):
        results, title = _sorted(machine.results), machine.machine
        rows = [
            draw.ScoredModel(_label(each), each.baseline, each.metrics, each.bootstrap.intervals)
            for each in results
        ]
        figures |= {
            f"{folder}methods": draw.scores_figure(rows, _PANELS, f"{title}: {ALONE}"),
            f"{folder}curve": curve_figure(results, f"{title}: S by the extra runs that are allowed"),
        }
        if machine.split_half is not None:
            repeats = [
                draw.ScoredModel(_label(each), isinstance(each, Mapping) or each.baseline, each, {})
                for each in _on_repeats(machine)
            ]
            figures[f"{folder}repeats"] = draw.scores_figure(
                repeats, _REPEATS, f"{title}: cases within the cap, by what is scored"
            )
    return figures


_PANELS = {
    "under_limit_share": "cases within the cap, %",
    "under_performance": "performance in these, % of the oracle's",
    "score": "S: performance with violations counting 0, %",
}
_REPEATS = {
    "metrics.under_limit_share": "same run, %",
    "metrics.under_limit_share_within_1pct": "same run, 1 % tolerance, %",
    "on_repeats.under_limit_share_within_1pct": "other repeats (simulated), 1 % tolerance, %",
    "told_less.under_limit_share": "other repeats (simulated), told 1 % less, %",
}


def with_folders(study: ConfigurationEvaluation) -> Iterator[tuple[MachineChoices, str]]:
    """Each machine with the folder that its figures' names begin with, empty for a single machine."""
    names = machine_folders([machine.machine for machine in study.machines])
    for machine, name in zip(study.machines, names, strict=True):
        yield machine, f"{name}/" if len(study.machines) > 1 else ""


def machine_folders(machines: Sequence[str]) -> list[str]:
    """Unique names of the machines' folders that are safe in any file system.

    >>> machine_folders(["titanx", "cpu + gpu", "..", "cpu+gpu"])
    ['titanx', 'cpu-gpu', 'machine', 'cpu-gpu-2']
    """
    names: list[str] = []
    for machine in machines:
        plain = re.sub(r"[^\w]+", "-", machine).strip("-")[:_LONGEST_NAME] or "machine"
        name, count = plain, 1
        while name.casefold() in {other.casefold() for other in names}:
            count += 1
            name = f"{plain}-{count}"
        names.append(name)
    return names


def curve_figure(results: Sequence[ChoiceResult], title: str) -> Figure:
    """Draw a line for each method, and dashed ones for baselines."""
    figure, axes = draw.one_figure(8, 6.0)
    for result, look in zip(results, draw.looks(map(_label, results)).values(), strict=True):
        scores = [100 * (metrics.score or 0.0) for metrics in result.curve.values()]
        line = draw.DASHES[1] if result.baseline else "solid"
        draw.points(axes, list(result.curve), scores, look, _label(result), linestyle=line, clip_on=False)
    axes.set_ylim(0, 100)
    axes.set_xticks(list(results[0].curve))
    draw.style_axes(
        axes,
        x="extra runs that are allowed after the first choice",
        y="S: performance with violations counting 0, % of the oracle's",
    )
    draw.legend_below(figure, 4)
    return draw.titled(figure, title)
