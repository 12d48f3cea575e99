"""How methods chose configurations under power caps, on a terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosscast.decide.evaluation import ALONE, TOGETHER, ChoiceStudy, MachineChoices
from crosscast.decide.scores import REPEATS, ChoiceResult
from crosscast.decide.training import OfflineStage
from crosscast.evaluation.confidence import DRAWS, SHARE
from crosscast.report.choice_frontier import KernelFrontier, frontier_table, longest_frontier
from crosscast.report.choice_tables import (
    MARK,
    confidence_table,
    curve_table,
    difference_table,
    interval_table,
    main_table,
    program_table,
    repeats_table,
    tails_table,
)
from crosscast.report.console import console_of_numbers
from crosscast.report.numbers import plural
from crosscast.report.settings import configuration_text
from crosscast.units import format_count

__all__ = ["print_choices"]

_NAMED = 3
"""Kernels that are named of those left out for the same reason."""

_MOST_TOGETHER = 12
"""Most groups, and programs of a group, that are named."""


def print_choices(
    study: ChoiceStudy, stages: Sequence[OfflineStage], stream: TextIO, *, programs: bool = False
) -> None:
    """Print the tables of an evaluation of choices, machine by machine, and what they are of.

    Parameters
    ----------
    study
        The evaluation.
    stages
        The published offline stage of each machine.
    stream
        Where to print; colours only on a terminal.
    programs
        Whether to print a table by program for each method, and the longest frontier, as well.
    """
    console = console_of_numbers(stream)
    for place, (machine, stage) in enumerate(zip(study.machines, stages, strict=True)):
        if place:
            console.print()
        _print_machine(console, study, machine, stage, programs)
    console.print()
    for line in _LEGEND:
        console.print(Text(line), soft_wrap=True)


def _print_machine(
    console: Console, study: ChoiceStudy, machine: MachineChoices, stage: OfflineStage, programs: bool
) -> None:
    console.print(Text(_subject(study, machine), style="bold"), soft_wrap=True)
    for line in [*_samples(machine), *_left_out(machine), _clusters(stage)]:
        console.print(Text(line), soft_wrap=True)
    alone = [each for each in machine.results if each.protocol == ALONE]
    budget = alone[0].budget
    limit = "" if budget is None else f", at most {plural(budget, 'extra run')}"
    _print(console, f"each program left out{limit}: % of cases, % of the oracle's", main_table(alone))
    _print(console, f"{100 * SHARE:g} % of draws of the programs are", interval_table(alone))
    _print(console, "difference from the best baseline", difference_table(alone))
    _print(console, "S by the extra runs that are allowed", curve_table(alone))
    _print(console, _repeats_heading(machine), repeats_table(alone, machine.split_half))
    _print(console, "performance lost under the limit; worst programs", tails_table(alone))
    _print(console, "what was promised", confidence_table(alone))
    for line in _above(alone):
        console.print(Text(line), soft_wrap=True)
    _print_together(console, machine)
    _print_tree(console, stage)
    for result in alone if programs else ():
        _print(console, "by program", program_table(result))
    _print_frontier(console, longest_frontier(machine), programs)


def _print(console: Console, heading: str, table: Table | None) -> None:
    if table is not None:
        console.print()
        console.print(Text(heading, style="bold"), soft_wrap=True)
        console.print(table)


def _print_together(console: Console, machine: MachineChoices) -> None:
    together = [each for each in machine.results if each.protocol == TOGETHER]
    if not together:
        return
    _print(console, "near-duplicates left out together", main_table(together))
    groups = [" + ".join(_few(group, _MOST_TOGETHER)) for group in machine.groups]
    console.print(Text(f"Together: {'; '.join(_few(groups, _MOST_TOGETHER))}."), soft_wrap=True)


def _print_tree(console: Console, stage: OfflineStage) -> None:
    """How the published model tells clusters apart, where there are any."""
    if stage.predictor.clusters.nothing_to_cluster:
        return
    console.print()
    console.print(Text("tree of the published model on all programs", style="bold"), soft_wrap=True)
    for line in stage.predictor.tree.text().splitlines():
        console.print(Text(f"  {line}"), soft_wrap=True)


def _print_frontier(console: Console, found: KernelFrontier, programs: bool) -> None:
    if programs:
        _print(console, f"configurations on the longest frontier, of {found.kernel}", frontier_table(found))
        return
    count = plural(len(found.frontier), "configuration")
    console.print()
    console.print(
        Text(f"The longest frontier, of {found.kernel}, has {count}: --programs or --figures shows it."),
        soft_wrap=True,
    )


def _few(names: Sequence[str], most: int) -> list[str]:
    """The first names, and how many more there are."""
    rest = len(names) - most
    return [*names[:most], f"{rest} more"] if rest > 0 else list(names)


def _subject(study: ChoiceStudy, machine: MachineChoices) -> str:
    cases = machine.cases
    counts = (
        (len(cases), "case"),
        (len(set(cases.kernel.tolist())), "kernel"),
        (len(cases.programs), "program"),
    )
    of, kernels, programs = (plural(number, noun) for number, noun in counts)
    weights = "their time" if study.weighting == "time" else "their number"
    return (
        f"{study.label}, {machine.machine}: {of} of {kernels} at a size ({programs}) over "
        f"{plural(len(machine.surfaces.space), 'configuration')}; kernels weighted by {weights}; "
        f"seed {study.seed}"
    )


def _samples(machine: MachineChoices) -> list[str]:
    """The sample configurations, and in how many folds where they differ."""
    folds: defaultdict[tuple[int, ...], int] = defaultdict(int)
    for numbers in machine.samples.values():
        folds[numbers] += 1
    lines = []
    for numbers, count in folds.items():
        names = "; ".join(configuration_text(machine.surfaces.space.configurations[each]) for each in numbers)
        where = "" if len(folds) == 1 else f" in {plural(count, 'fold')} of {sum(folds.values())}"
        lines.append(f"Sample configurations{where}: {names}.")
    return lines


def _left_out(machine: MachineChoices) -> list[str]:
    """Kernels that nobody was asked about, by reason."""
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for each in machine.cases.left_out:
        reasons[each.reason].append(str(each.kernel))
    return [
        f"Left out, {reason}: {plural(len(kernels), 'kernel')} ({', '.join(_few(kernels, _NAMED))})."
        for reason, kernels in reasons.items()
    ]


def _clusters(stage: OfflineStage) -> str:
    """What the published model finds in all programs."""
    found = stage.predictor.clusters
    note = f"The published model on all programs: {found.note}."
    if found.nothing_to_cluster:
        return note
    between = (
        f" Kendall's tau of two frontiers is {found.least_correlation:.2f} to {found.most_correlation:.2f}"
        if found.least_correlation is not None and found.most_correlation is not None
        else " No two frontiers share two configurations"
    )
    pairs = f"; {plural(found.undefined, 'pair')} of kernels share fewer than 2 configurations"
    return f"{note}{between}{pairs if found.undefined else ''}."


def _above(results: Sequence[ChoiceResult]) -> list[str]:
    """The programs that are more often over the cap than was promised: all of them."""
    return [f"Above it with {each.method}: {', '.join(each.above)}." for each in results if each.above]


def _repeats_heading(machine: MachineChoices) -> str:
    if machine.split_half is None:
        return "with 1 % tolerance"
    failed = machine.split_half.violations or 0.0
    return (
        f"with 1 % tolerance, and on {REPEATS} other repeats, which are simulated: repeats alone take "
        f"{100 * failed:.0f} % of the oracle's choices over the limit"
    )


_LEGEND = (
    "Each program is left out in turn of all that is learned; caps are the powers on each kernel's measured "
    "frontier. Programs weigh equally.",
    "Under: share of cases within the cap. perf., power: relative to the oracle's, mean over the cases "
    "within the cap, or over it.",
    "S: performance relative to the oracle, with cases over the cap counting 0. Extra runs: changes after "
    "the first choice.",
    "Again: the choice is run again. Repeats: the same, with 1 % tolerance. Told less: the method is told a "
    "cap lower by 1 %, and the choice is run again without tolerance.",
    f"Draws: {format_count(DRAWS)} of a bootstrap over programs. {MARK} better than the best baseline, where "
    "the bootstrap of the difference excludes 0.",
    "Exact definitions: docs/choosing-evaluation.md.",
)
