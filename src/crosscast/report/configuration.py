"""Choices of configurations on a terminal: what to take, how a model was trained, how methods compare."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosscast.arrays import Integers, Reals
from crosscast.data.files import whole_file
from crosscast.decide.evaluation import ALONE, TOGETHER, ConfigurationEvaluation, MachineChoices
from crosscast.decide.samples import SampledKernel
from crosscast.decide.scores import REPEATS, ChoiceResult, Metrics
from crosscast.errors import InputError
from crosscast.evaluation.resampling import DRAWS, SHARE, Interval
from crosscast.predict.configuration.artefact import ConfigurationCard
from crosscast.predict.configuration.choice import Choice, Option
from crosscast.predict.configuration.data import KernelAt, Surfaces, pareto_frontier
from crosscast.report.numbers import NONE, percent, plural, three_digits
from crosscast.report.text import (
    configuration_text,
    console_of_numbers,
    number_table,
    setting_heading,
    setting_text,
    shown_settings,
)
from crosscast.units import format_count, format_seconds

MARK = "*"
"""After what is better than the best baseline beyond doubt."""

_MOST_COLUMNS = 1000

_OBJECTIVES = {
    "performance": "the most performance",
    "energy": "the least energy",
    "edp": "the least energy times time",
}


def print_samples_to_run(card: ConfigurationCard, columns: Sequence[str], stream: TextIO) -> None:
    """Print where a new kernel has to be run, and what to write down."""
    console = console_of_numbers(stream)
    lines = [f"{card.model}, {trained_on(card)}", *samples_lines(card)]
    lines.append(f"To write down: {', '.join(columns)}; --template FILE makes the file.")
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def print_chosen(
    kernel: SampledKernel, choices: Sequence[Choice], card: ConfigurationCard, stream: TextIO
) -> None:
    """Print what is chosen for a kernel under each cap, and the predicted frontier."""
    table = _choice_table(choices, card)
    console = console_of_numbers(stream)
    # A number that is cut off says another number.
    whole = console.measure(table, options=console.options.update(width=_MOST_COLUMNS)).maximum
    console.width = max(console.width, whole)
    console.print(Text(kernel.name, style="bold"), soft_wrap=True)
    for choice in choices:
        console.print(Text(_choice_sentence(choice)), soft_wrap=True)
    console.print()
    console.print(Text(_choice_heading(choices)), soft_wrap=True)
    console.print(table)
    console.print()
    for line in (
        _measured_at(kernel, card),
        f"{card.model}, {trained_on(card)}",
        *honest_errors(card),
    ):
        console.print(Text(line), soft_wrap=True)


def _choice_heading(choices: Sequence[Choice]) -> str:
    first = choices[0]
    on_it = {each.configuration for each in first.frontier}
    others = [
        each
        for each in choices
        if each.recommended is not None and each.recommended.configuration not in on_it
    ]
    below = "; below it what was chosen off it, as it is surer to keep to its cap" if others else ""
    return f"Predicted frontier, with intervals of {100 * first.level:g} %{below}:"


def _choice_sentence(choice: Choice) -> str:
    wish = f"Under {choice.power_cap:g} W, for {_OBJECTIVES[choice.objective]}"
    if choice.confidence is not None:
        wish += f" that keeps to it with {100 * choice.confidence:.3g} %"
    chosen = choice.recommended
    if chosen is None:
        return f"{wish}: nothing is chosen."
    parts = [
        f"power {_watts(chosen.power_w)}{_watts_between(chosen)}",
        f"time {format_seconds(chosen.time_s)}{_times_between(chosen)}",
    ]
    sure = (
        ""
        if chosen.probability_under is None
        else f"; it keeps to the cap with a probability {_probability(chosen.probability_under)}"
    )
    said = "measured" if chosen.measured else "predicted"
    return f"{wish}: {configuration_text(chosen.configuration)}; {said} {', '.join(parts)}{sure}."


def _probability(value: float) -> str:
    # Nothing that is predicted is certain.
    return "over 99.9 %" if value >= 0.9995 else f"of {100 * value:.3g} %"


def _choice_table(choices: Sequence[Choice], card: ConfigurationCard) -> Table:
    names = shown_settings(card.space)
    table = Table(box=None, pad_edge=False)
    table.add_column("device", no_wrap=True)
    for heading in (*map(setting_heading, names), "power, W"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("between", no_wrap=True)
    for heading in ("performance", "time, s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("between", no_wrap=True)
    table.add_column("", no_wrap=True)
    taken: dict[object, list[str]] = {}
    for choice in choices:
        if choice.recommended is not None:
            taken.setdefault(choice.recommended.configuration, []).append(f"{choice.power_cap:g} W")
    listed = {each.configuration: each for each in choices[0].frontier}
    for choice in choices:
        if choice.recommended is not None:
            listed.setdefault(choice.recommended.configuration, choice.recommended)
    for option in listed.values():
        caps = taken.get(option.configuration, [])
        mark = f"← {', '.join(caps)}" if caps else ""
        settings = [setting_text(name, option.configuration.settings.get(name)) for name in names]
        cells = [
            option.configuration.device,
            *settings,
            _tenths(option.power_w),
            _interval_text(option, option.power_low_w, option.power_high_w, _tenths),
            f"{option.relative_performance:.2f}",
            three_digits(option.time_s),
            _interval_text(option, option.time_low_s, option.time_high_s, three_digits),
            mark,
        ]
        table.add_row(*(Text(cell, style="bold" if caps else "") for cell in cells))
    return table


def _interval_text(
    option: Option, low: float | None, high: float | None, text: Callable[[float], str]
) -> str:
    if option.measured:
        return "measured"
    return NONE if low is None or high is None else f"{text(low)} to {text(high)}"


def _tenths(value: float) -> str:
    return f"{value:.1f}"


def _watts(power_w: float) -> str:
    return f"{power_w:.1f} W"


def _watts_between(option: Option) -> str:
    if option.measured or option.power_low_w is None or option.power_high_w is None:
        return ""
    return f" ({option.power_low_w:.1f} to {option.power_high_w:.1f} W)"


def _times_between(option: Option) -> str:
    if option.measured or option.time_low_s is None or option.time_high_s is None:
        return ""
    return f" ({format_seconds(option.time_low_s)} to {format_seconds(option.time_high_s)})"


def _measured_at(kernel: SampledKernel, card: ConfigurationCard) -> str:
    at = kernel.configurations(card)
    listed = "; ".join(map(configuration_text, at)) if len(at) <= 4 else plural(len(at), "configuration")
    return f"Measured in {plural(sum(kernel.runs), 'run')} at {listed}."


_TRAINING_COLUMNS = (
    ("under the cap", "under_limit_share"),
    ("performance, under", "under_performance"),
    ("power, over", "over_power"),
    ("score", "score"),
)


def print_training(
    card: ConfigurationCard, folder: Path, stream: TextIO, tree: tuple[str, str] | None = None
) -> None:
    """Print a card."""
    console = console_of_numbers(stream)
    lines = [f"{folder}: {card.model}, {trained_on(card)}", "", *samples_lines(card)]
    command = f"crosscast choose sample --model {folder} --template runs.csv"
    lines += [f"To write the file for these runs: {command}", ""]
    if tree is not None:
        lines += [f"{tree[0]}.", tree[1], ""]
    for line in [*lines, *honest_errors(card)]:
        console.print(Text(line), soft_wrap=True)
    choices = card.errors.get("choices") or []
    if choices:
        console.print(_training_table(choices))
        console.print(
            Text(
                "Caps are the powers on each kernel's true frontier; power and performance are relative to "
                "the best choice under them. Score: performance, where what is over the cap counts 0. "
                "+fl: with limiting, after so many extra runs."
            ),
            soft_wrap=True,
        )


def trained_on(card: ConfigurationCard) -> str:
    """What a model was trained on, as a sentence without its subject."""
    facts = card.training
    devices = card.space.devices
    return (
        f"trained on {facts.get('dataset')}: {plural(int(facts.get('cells', 0)), 'run')} of "
        f"{facts.get('kernels_at_a_size')} kernels at a size ({facts.get('applications')} applications) at "
        f"{plural(len(card.space), 'configuration')} of {plural(len(devices), 'device')} "
        f"({', '.join(devices)})."
    )


def samples_lines(card: ConfigurationCard) -> list[str]:
    """Which configurations must be run for a new kernel, a line each."""
    listed = [f"  {configuration_text(each)}" for each in card.sample_configurations]
    return ["A new kernel must be run once at:", *listed]


def honest_errors(card: ConfigurationCard) -> list[str]:
    """How good the model was on applications that it had not seen; none if the card does not say."""
    errors = card.errors
    parts = []
    for what in ("time", "power"):
        rmse, median = errors.get(f"rmse_log_{what}"), errors.get(f"median_ape_{what}")
        if rmse is None:
            continue
        coverage = errors.get(f"coverage_{what}")
        held = (
            ""
            if coverage is None
            else f", {100 * errors.get('level', 0.9):g} % intervals held {percent(coverage)}"
        )
        error = "" if median is None else f"median error {100 * median:.3g} %, "
        parts.append(f"{what}: {error}RMSE of the logarithm {rmse:.3f}{held}")
    return [f"On applications that it had not seen: {'; '.join(parts)}."] if parts else []


def _training_table(choices: list[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for heading, _ in _TRAINING_COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("extra runs", justify="right", no_wrap=True)
    for result in choices:
        runs = result.get("extra_runs")
        table.add_row(
            Text(str(result["method"])),
            *(percent(result.get(name)) for _, name in _TRAINING_COLUMNS),
            NONE if runs is None else f"{runs:.1f}",
        )
    return table


_NAMED = 3
"""Kernels that are named of those left out for the same reason."""

_MOST_TOGETHER = 12
"""Most groups, and programs of a group, that are named."""


def print_evaluation(found: ConfigurationEvaluation, stream: TextIO, *, programs: bool = False) -> None:
    """Print the tables of an evaluation, machine by machine; with `programs` also those by program."""
    console = console_of_numbers(stream)
    for place, machine in enumerate(found.machines):
        if place:
            console.print()
        _print_machine(console, found, machine, programs)
    console.print()
    for line in _LEGEND:
        console.print(Text(line), soft_wrap=True)


def _print_machine(
    console: Console, study: ConfigurationEvaluation, machine: MachineChoices, programs: bool
) -> None:
    console.print(Text(_subject(study, machine), style="bold"), soft_wrap=True)
    for line in [*_samples(machine), *_left_out(machine), _clusters(machine)]:
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
    for line in _above_promise(alone):
        console.print(Text(line), soft_wrap=True)
    _print_together(console, machine)
    _print_tree(console, machine)
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
    groups = [" + ".join(_few_names(group, _MOST_TOGETHER)) for group in machine.groups]
    console.print(Text(f"Together: {'; '.join(_few_names(groups, _MOST_TOGETHER))}."), soft_wrap=True)


def _print_tree(console: Console, machine: MachineChoices) -> None:
    """How the published model tells clusters apart, where there are any."""
    if machine.published.fitted.clusters.nothing_to_cluster:
        return
    console.print()
    console.print(Text("tree of the published model on all programs", style="bold"), soft_wrap=True)
    for line in machine.published.fitted.tree.text().splitlines():
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


def _few_names(names: Sequence[str], most: int) -> list[str]:
    """The first names, and how many more there are."""
    rest = len(names) - most
    return [*names[:most], f"{rest} more"] if rest > 0 else list(names)


def _subject(study: ConfigurationEvaluation, machine: MachineChoices) -> str:
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
        f"Left out, {reason}: {plural(len(kernels), 'kernel')} ({', '.join(_few_names(kernels, _NAMED))})."
        for reason, kernels in reasons.items()
    ]


def _clusters(machine: MachineChoices) -> str:
    """What the published model finds in all programs."""
    found = machine.published.fitted.clusters
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


def _above_promise(results: Sequence[ChoiceResult]) -> list[str]:
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


_REFERENCE = "oracle"
_LARGE = 10.0


class _Column(NamedTuple):
    heading: str
    text: Callable[[ChoiceResult], str]


def share(value: float | None) -> str:
    """A fraction of one, or of the oracle's, as a percentage without its sign."""
    if value is None:
        return NONE
    return f"{100 * value:.1f}" if value < _LARGE else f"{100 * value:,.0f}"


def _extra_runs(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}"


def _method_table(
    results: Sequence[ChoiceResult], columns: Sequence[_Column], heading: str = "method"
) -> Table:
    """A row a method: those that are compared with the baselines first, the oracle last."""
    table = number_table(heading, [column.heading for column in columns])
    own = [each for each in results if not each.baseline and each.method != _REFERENCE]
    baselines = [each for each in results if each.baseline]
    for result in [*own, *baselines]:
        if own and baselines and result is baselines[0]:
            table.add_row(Text("baselines", style="dim italic"))
        _add_method(table, result, columns, "")
    for result in results:
        if result.method == _REFERENCE:
            _add_method(table, result, columns, "dim")
    return table


def _add_method(table: Table, result: ChoiceResult, columns: Sequence[_Column], style: str) -> None:
    cells = [column.text(result) for column in columns]
    styles = ["bold" if cell.endswith(MARK) else style for cell in cells]
    name = Text(
        f"{result.method} {100 * result.confidence:g} %" if result.confidence else result.method, style
    )
    table.add_row(name, *(Text(cell, each) for cell, each in zip(cells, styles, strict=True)))


def main_table(results: Sequence[ChoiceResult]) -> Table:
    """The columns of Table III of the paper, the score and the extra runs."""
    return _method_table(results, [_Column(heading, _metric(*of)) for heading, of in _METRICS.items()])


_METRICS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "under": ("under_limit_share", share),
    "perf.": ("under_performance", share),
    "power": ("under_power", share),
    "power over": ("over_power", share),
    "perf. over": ("over_performance", share),
    "S": ("score", share),
    "extra runs": ("extra_runs", _extra_runs),
}


def _metric(name: str, write: Callable[[float | None], str]) -> Callable[[ChoiceResult], str]:
    def text(result: ChoiceResult) -> str:
        difference = result.bootstrap.differences.get(name)
        better = difference is not None and difference.better and result.method != _REFERENCE
        mark = MARK if better else ""
        return write(getattr(result.metrics, name)) + mark

    return text


_WITH_INTERVALS = {
    "under": "under_limit_share",
    "perf.": "under_performance",
    "power over": "over_power",
    "S": "score",
}


def interval_table(results: Sequence[ChoiceResult]) -> Table:
    """Between which values a bootstrap over programs leaves the main metrics."""
    return _method_table(
        results, [_Column(heading, _interval(name)) for heading, name in _WITH_INTERVALS.items()]
    )


def _interval(name: str) -> Callable[[ChoiceResult], str]:
    def text(result: ChoiceResult) -> str:
        return _interval_between(result.bootstrap.intervals.get(name))

    return text


def _interval_between(found: Interval | None) -> str:
    return NONE if found is None else f"{share(found.low)} to {share(found.high)}"


def difference_table(results: Sequence[ChoiceResult]) -> Table | None:
    """Score and share under the limit against the best baseline in each; ``None`` without any to compare."""
    compared = [each for each in results if each.bootstrap.differences and each.method != _REFERENCE]
    if not compared:
        return None
    names = {"under": "under_limit_share", "S": "score"}
    return _method_table(compared, [_Column(heading, _difference(name)) for heading, name in names.items()])


def _difference(name: str) -> Callable[[ChoiceResult], str]:
    def text(result: ChoiceResult) -> str:
        found = result.bootstrap.differences.get(name)
        if found is None:
            return NONE
        low, high = (f"{100 * limit:+.1f}" for limit in (found.interval.low, found.interval.high))
        mark = MARK if found.better else ""
        return f"{100 * found.value:+.1f} [{low}, {high}] against {found.baseline}{mark}"

    return text


def repeats_table(results: Sequence[ChoiceResult], split_half: Metrics | None) -> Table:
    """With 1 % tolerance on the runs themselves; on other repeats without it, with it, and told 1 % less."""
    columns = [
        _Column("≤ 1 %", lambda each: share(each.metrics.under_limit_share_within_1pct)),
        _Column("perf.", lambda each: share(each.metrics.under_performance_within_1pct)),
    ]
    none = Metrics()
    if split_half is not None:
        columns += [
            _Column("again", lambda each: share((each.on_repeats or none).under_limit_share)),
            _Column("perf.", lambda each: share((each.on_repeats or none).under_performance)),
            _Column("repeats", lambda each: share((each.on_repeats or none).under_limit_share_within_1pct)),
            _Column("perf.", lambda each: share((each.on_repeats or none).under_performance_within_1pct)),
            _Column("told less", lambda each: share((each.told_less or none).under_limit_share)),
            _Column("perf.", lambda each: share((each.told_less or none).under_performance)),
            _Column("S", lambda each: share((each.told_less or none).score)),
        ]
    table = _method_table(results, columns)
    if split_half is not None:
        cells = [
            split_half.under_limit_share,
            split_half.under_performance,
            split_half.under_limit_share_within_1pct,
            split_half.under_performance_within_1pct,
        ]
        table.add_row(Text("split-half oracle", "dim"), "", "", *(Text(share(each), "dim") for each in cells))
    return table


def confidence_table(results: Sequence[ChoiceResult]) -> Table | None:
    """What methods promised and kept; ``None`` if none promised anything."""
    promised = [each for each in results if each.confidence is not None]
    if not promised:
        return None
    return _method_table(
        promised,
        [
            _Column("allowed over", lambda each: share(1 - (each.confidence or 0.0))),
            _Column("over", lambda each: share(each.metrics.violations)),
            _Column("perf.", lambda each: share(each.metrics.under_performance)),
            _Column("programs above", lambda each: f"{len(each.above)} of {len(each.programs)}"),
        ],
    )


def curve_table(results: Sequence[ChoiceResult]) -> Table:
    """The score by the number of extra runs."""
    return _method_table(results, [_Column(str(each), _score_at(each)) for each in results[0].curve])


def _score_at(budget: int) -> Callable[[ChoiceResult], str]:
    return lambda result: share(result.curve[budget].score)


def tails_table(results: Sequence[ChoiceResult]) -> Table:
    """What is lost at worst: percentiles over the cases under the limit, and the worst programs."""
    return _method_table(
        results,
        [
            _Column("lost: median", _lost("median")),
            _Column("90 %", _lost("percentile_90")),
            _Column("95 %", _lost("percentile_95")),
            _Column("least under", _least("under_limit_share")),
            _Column("least perf.", _least("under_performance")),
            _Column("least S", _least("score")),
        ],
    )


def _lost(name: str) -> Callable[[ChoiceResult], str]:
    return lambda result: NONE if result.regret is None else share(getattr(result.regret, name))


def _least(name: str) -> Callable[[ChoiceResult], str]:
    def text(result: ChoiceResult) -> str:
        found = [getattr(each, name) for each in result.programs.values()]
        return share(min((each for each in found if each is not None), default=None))

    return text


def program_table(result: ChoiceResult) -> Table:
    """The main metrics of one method, a row a program."""
    table = number_table(result.method, list(_METRICS))
    for name, metrics in result.programs.items():
        table.add_row(Text(name), *(Text(write(getattr(metrics, of))) for of, write in _METRICS.values()))
    return table


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
    """The frontier of one kernel, by its row."""
    time_s, power_w = surfaces.time_s[row], surfaces.power_w[row]
    return KernelFrontier(
        surfaces, row, pareto_frontier(time_s, power_w), np.nanmin(time_s) / time_s, power_w
    )


def longest_frontier(machine: MachineChoices) -> KernelFrontier:
    """The frontier with the most configurations, of kernels that were asked about; the first of several."""
    rows, counts = np.unique(machine.cases.kernel, return_counts=True)
    return frontier_of(machine.surfaces, int(rows[counts.argmax()]))


def _frontier_lines(found: KernelFrontier) -> list[list[str]]:
    """Heading and rows, for people."""
    space = found.surfaces.space
    names = shown_settings(space)
    lines = [["device", *map(setting_heading, names), "power, W", "performance"]]
    for number in found.frontier.tolist():
        each = space.configurations[number]
        settings = [setting_text(name, each.settings.get(name)) for name in names]
        watts, performance = f"{found.power_w[number]:.1f}", f"{found.performance[number]:.2f}"
        lines.append([each.device, *settings, watts, performance])
    return lines


def frontier_table(found: KernelFrontier) -> Table:
    """The configurations on the frontier, with their settings, power and normalised performance."""
    heading, *rows = _frontier_lines(found)
    table = Table(box=None, pad_edge=False)
    for place, text in enumerate(heading):
        table.add_column(text, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def write_frontier(found: KernelFrontier, folder: Path) -> list[Path]:
    """Write the table as ``frontier.csv``, in SI units, and as ``frontier.md``."""
    paths = [folder / "frontier.csv", folder / "frontier.md"]
    for path, write in zip(paths, (_write_csv, _write_markdown), strict=True):
        try:
            with whole_file(path) as temporary:
                write(found, temporary)
        except OSError as error:
            raise InputError(f"figures: cannot write {path} ({error.strerror or error})") from error
    return paths


def _write_csv(found: KernelFrontier, path: Path) -> None:
    space = found.surfaces.space
    names = shown_settings(space)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["device", *names, "power_w", "time_s", "performance"])
        for number in found.frontier.tolist():
            each = space.configurations[number]
            settings = [each.settings.get(name, "") for name in names]
            time_s = float(found.surfaces.time_s[found.row, number])
            measured = [float(found.power_w[number]), time_s, float(found.performance[number])]
            writer.writerow([each.device, *settings, *measured])


def _write_markdown(found: KernelFrontier, path: Path) -> None:
    heading, *rows = _frontier_lines(found)
    marks = ["---", *["---:"] * (len(heading) - 1)]
    lines = [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in [heading, marks, *rows]
    ]
    title = f"Configurations on the frontier of {found.kernel}; performance relative to the fastest."
    path.write_text("\n".join([title, "", *lines]) + "\n", encoding="utf-8")
