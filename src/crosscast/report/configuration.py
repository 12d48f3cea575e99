"""Choices of configurations: what to take, how a model was trained, and how methods compare."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.files import whole_file
from crosscast.decide.samples import SampledKernel
from crosscast.errors import InputError
from crosscast.evaluation.configuration.evaluation import (
    ALONE,
    TOGETHER,
    ConfigurationEvaluation,
    MachineChoices,
)
from crosscast.evaluation.configuration.scores import REPEATS, ChoiceResult, Metrics
from crosscast.evaluation.resampling import DRAWS, SHARE
from crosscast.prediction.configuration.artefact import ConfigurationCard
from crosscast.prediction.configuration.choice import Choice, Option
from crosscast.prediction.configuration.data import KernelAt, Surfaces, pareto_frontier
from crosscast.report.document import Heading, Part, Ranges, Report, Table, Text, markdown_rows
from crosscast.report.numbers import (
    MARK,
    NONE,
    configuration_text,
    level_percent,
    percent,
    plural,
    setting_heading,
    setting_text,
    shown_settings,
    three_digits,
    times,
)
from crosscast.units import format_count, format_seconds

_TENTH = "{:.1f}".format
_OBJECTIVES = {
    "performance": "the most performance",
    "energy": "the least energy",
    "edp": "the least energy times time",
    "power": "the least power",
}


def samples_report(card: ConfigurationCard, columns: Sequence[str]) -> Report:
    """Where a new kernel has to be run, and what to write down."""
    written = f"To write down: {', '.join(columns)}; --template FILE makes the file."
    return Report([f"{card.model}, {trained_on(card)}", *_samples_lines(card), written], "Sample runs")


def chosen_report(found: Sequence[tuple[SampledKernel, Sequence[Choice]]], card: ConfigurationCard) -> Report:
    """What is chosen for each kernel under each cap, and the predicted frontier."""
    parts: list[Part] = []
    for kernel, choices in found:
        first = choices[0]
        on_it = {each.configuration for each in first.frontier}
        taken = [each.recommended for each in choices if each.recommended is not None]
        off = any(each.configuration not in on_it for each in taken)
        below = "; below it what was chosen off it, as it is more likely to keep to its cap" if off else ""
        parts += [Heading(kernel.name, 2), *map(_choice_sentence, choices), ""]
        parts.append(f"Predicted frontier, with {level_percent(first.level)} intervals{below}:")
        parts += [_choice_table(choices, card), "", _measured_at(kernel, card)]
        parts += [f"{card.model}, {trained_on(card)}", *held_out_errors(card)]
    return Report(parts, "Chosen configurations")


def _choice_sentence(choice: Choice) -> str:
    capped = choice.power_cap < float("inf")
    wish = f"Under {choice.power_cap:g} W, for" if capped else "For"
    wish += f" {_OBJECTIVES[choice.objective]}"
    if choice.max_slowdown is not None and choice.baseline is not None:
        wish += f", at most {percent(choice.max_slowdown)} slower than {configuration_text(choice.baseline)}"
    if choice.confidence is not None:
        wish += f" that keeps to it with {level_percent(choice.confidence)}"
    chosen = choice.recommended
    if chosen is None:
        return f"{wish}: nothing is chosen."
    power, time = f"{_TENTH(chosen.power_w)} W", format_seconds(chosen.time_s)
    if not chosen.measured and chosen.power_low_w is not None and chosen.power_high_w is not None:
        power += f" ({_TENTH(chosen.power_low_w)} to {_TENTH(chosen.power_high_w)} W)"
    if not chosen.measured and chosen.time_low_s is not None and chosen.time_high_s is not None:
        time += f" ({times(chosen.time_low_s, chosen.time_high_s)})"
    sure, likely = "", chosen.probability_under
    if likely is not None and capped:
        # Nothing that is predicted is certain.
        text = "over 99.9 %" if likely >= 0.9995 else f"of {level_percent(likely)}"
        sure = f"; it keeps to the cap with a probability {text}"
    said = "measured" if chosen.measured else "predicted"
    return f"{wish}: {configuration_text(chosen.configuration)}; {said} power {power}, time {time}{sure}."


def _choice_table(choices: Sequence[Choice], card: ConfigurationCard) -> Table:
    names = shown_settings(card.space)
    listed = {each.configuration: each for each in choices[0].frontier}
    caps: defaultdict[object, list[str]] = defaultdict(list)
    for choice in choices:
        if choice.recommended is not None:
            listed.setdefault(choice.recommended.configuration, choice.recommended)
            cap = f"{choice.power_cap:g} W" if choice.power_cap < float("inf") else "any"
            caps[choice.recommended.configuration].append(cap)
    rows = [
        [
            option.configuration.device,
            *(setting_text(name, option.configuration.settings.get(name)) for name in names),
            _TENTH(option.power_w),
            _between(option, option.power_low_w, option.power_high_w, _TENTH),
            f"{option.relative_performance:.2f}",
            three_digits(option.time_s),
            _between(option, option.time_low_s, option.time_high_s, three_digits),
            f"← {', '.join(caps[configuration])}" if configuration in caps else "",
        ]
        for configuration, option in listed.items()
    ]
    settings = [*map(setting_heading, names)]
    count = len(names)
    return Table(
        ["device", *settings, "power, W", "between", "performance", "time, s", "between", ""],
        rows,
        words=(0, *range(1 + len(card.space.knobs), count + 1), count + 2, count + 5, count + 6),
        bold=[place for place, configuration in enumerate(listed) if configuration in caps],
        ranges=Ranges(
            [
                (option.power_low_w or option.power_w, option.power_w, option.power_high_w or option.power_w)
                for option in listed.values()
            ],
            lambda watts: f"{three_digits(watts)} W",
            "power",
        ),
    )


def _between(option: Option, low: float | None, high: float | None, write: Callable[[float], str]) -> str:
    if option.measured:
        return "measured"
    return NONE if low is None or high is None else f"{write(low)} to {write(high)}"


def _measured_at(kernel: SampledKernel, card: ConfigurationCard) -> str:
    at = kernel.configurations(card)
    listed = "; ".join(map(configuration_text, at)) if len(at) <= 4 else plural(len(at), "configuration")
    return f"Measured in {plural(sum(kernel.runs), 'run')} at {listed}."


def training_report(card: ConfigurationCard, folder: Path, tree: tuple[str, str] | None = None) -> Report:
    """What a model was trained on, what it has to be told, and how good it is."""
    command = f"crosscast choose sample --model {folder} --template runs.csv"
    parts: list[Part] = [f"{folder}: {card.model}, {trained_on(card)}", "", *_samples_lines(card)]
    parts += [f"To write the file for these runs: {command}", ""]
    if tree is not None:
        parts += [f"{tree[0]}.", Text(tree[1].splitlines(), "code"), ""]
    parts += held_out_errors(card)
    choices = card.errors.get("choices") or []
    if choices:
        columns = {
            "method": "method",
            "under the cap": "under_limit_share",
            "performance, under": "under_performance",
            "power, over": "over_power",
            "score": "score",
            "extra runs": "extra_runs",
        }
        rows = [[result.get(name) for name in columns.values()] for result in choices]
        formats = {**dict.fromkeys(columns, percent), "extra runs": _TENTH}
        parts += [
            Table(list(columns), rows, formats=formats),
            "Caps are the powers on each kernel's true frontier; power and performance are relative to the "
            "best choice under them. Score: performance, where what is over the cap counts 0. +fl: with "
            "limiting, after so many extra runs.",
        ]
    return Report(parts)


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


def _samples_lines(card: ConfigurationCard) -> list[str]:
    """Which configurations must be run for a new kernel, a line each."""
    listed = [f"  {configuration_text(each)}" for each in card.sample_configurations]
    return ["A new kernel must be run once at:", *listed]


def held_out_errors(card: ConfigurationCard) -> list[str]:
    """How good the model was on held-out applications; none if the card does not say."""
    errors = card.errors
    parts = []
    for what in ("time", "power"):
        rmse, median = errors.get(f"rmse_log_{what}"), errors.get(f"median_ape_{what}")
        if rmse is None:
            continue
        coverage = errors.get(f"coverage_{what}")
        level = level_percent(errors.get("level", 0.9))
        held = "" if coverage is None else f", coverage of {level} intervals {percent(coverage)}"
        error = "" if median is None else f"median error {level_percent(median)}, "
        parts.append(f"{what}: {error}RMSE of the logarithm {rmse:.3f}{held}")
    return [f"On held-out applications: {'; '.join(parts)}."] if parts else []


_NAMED = 3
"""Kernels that are named of those left out for the same reason."""

_MOST_TOGETHER = 12
"""Most groups, and programs of a group, that are named."""


def evaluation_report(found: ConfigurationEvaluation, *, programs: bool = False) -> Report:
    """The tables of an evaluation, machine by machine; with `programs` also those by program."""
    parts: list[Part] = []
    for machine in found.machines:
        parts += _machine(found, machine, programs)
    return Report([*parts, "", *_LEGEND])


def _machine(study: ConfigurationEvaluation, machine: MachineChoices, programs: bool) -> list[Part]:
    alone = [each for each in machine.results if each.protocol == ALONE]
    together = [each for each in machine.results if each.protocol == TOGETHER]
    limit = "" if alone[0].budget is None else f", at most {plural(alone[0].budget, 'extra run')}"
    parts: list[Part] = [
        Heading(_subject(study, machine), 1),
        *_samples(machine),
        *_left_out(machine),
        _clusters(machine),
        _main_table(alone, f"each program left out{limit}: % of cases, % of the oracle's"),
        _interval_table(alone),
        *_difference_table(alone),
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
        shown = "--programs or --figures shows it."
        parts += ["", f"The longest frontier, of {frontier.kernel}, has {count}: {shown}"]
    return parts


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
    "Exact definitions: docs/evaluation.md.",
)


_REFERENCE = "oracle"
_LARGE = 10.0
_Column = tuple[str, Callable[[ChoiceResult], str]]


def share(value: float | None) -> str:
    """A fraction of one, or of the oracle's, as a percentage without its sign."""
    if value is None:
        return NONE
    return f"{100 * value:.1f}" if value < _LARGE else f"{100 * value:,.0f}"


def method_label(result: ChoiceResult) -> str:
    """The name, with the confidence where there is one."""
    return f"{result.method} {100 * result.confidence:g} %" if result.confidence else result.method


def _method_table(results: Sequence[ChoiceResult], columns: Sequence[_Column], caption: str) -> Table:
    """A row a method: those that are compared with the baselines first, the oracle last."""
    own = [each for each in results if not each.baseline and each.method != _REFERENCE]
    baselines = [each for each in results if each.baseline]
    reference = [each for each in results if each.method == _REFERENCE]

    def rows(of: Sequence[ChoiceResult]) -> list[list[str]]:
        return [[method_label(each), *(text(each) for _, text in columns)] for each in of]

    divider = [["baselines"]] if own and baselines else []
    lines = [*rows(own), *divider, *rows(baselines), *rows(reference)]
    return Table(["method", *(heading for heading, _ in columns)], lines, caption)


_METRICS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "under": ("under_limit_share", share),
    "perf.": ("under_performance", share),
    "power": ("under_power", share),
    "power over": ("over_power", share),
    "perf. over": ("over_performance", share),
    "S": ("score", share),
    "extra runs": ("extra_runs", lambda value: NONE if value is None else f"{value:.1f}"),
}


def _score(heading: str, name: str, of: str = "metrics") -> _Column:
    """A score of a method, of its metrics or of those on repeats."""
    return heading, lambda result: share(getattr(getattr(result, of) or Metrics(), name))


def _main_table(results: Sequence[ChoiceResult], caption: str) -> Table:
    """The columns of Table III of Bailey et al. 2014, the score and the extra runs."""

    def column(heading: str) -> _Column:
        name, write = _METRICS[heading]

        def text(result: ChoiceResult) -> str:
            difference = result.bootstrap.differences.get(name)
            better = difference is not None and difference.better and result.method != _REFERENCE
            return write(getattr(result.metrics, name)) + (MARK if better else "")

        return heading, text

    return _method_table(results, [*map(column, _METRICS)], caption)


def _interval_table(results: Sequence[ChoiceResult]) -> Table:
    """Between which values a bootstrap over programs leaves the main metrics."""

    def column(heading: str) -> _Column:
        def text(result: ChoiceResult) -> str:
            found = result.bootstrap.intervals.get(_METRICS[heading][0])
            return NONE if found is None else f"{share(found.low)} to {share(found.high)}"

        return heading, text

    columns = [*map(column, ("under", "perf.", "power over", "S"))]
    return _method_table(results, columns, f"{100 * SHARE:g} % of draws of the programs are")


def _difference_table(results: Sequence[ChoiceResult]) -> list[Part]:
    """Score and share under the limit against the best baseline in each, if there is one."""
    compared = [each for each in results if each.bootstrap.differences and each.method != _REFERENCE]

    def column(heading: str) -> _Column:
        def text(result: ChoiceResult) -> str:
            found = result.bootstrap.differences.get(_METRICS[heading][0])
            if found is None:
                return NONE
            value, low, high = (
                f"{100 * each:+.1f}" for each in (found.value, found.interval.low, found.interval.high)
            )
            return f"{value} [{low}, {high}] against {found.baseline}{MARK if found.better else ''}"

        return heading, text

    columns = [*map(column, ("under", "S"))]
    return [_method_table(compared, columns, "difference from the best baseline")] if compared else []


def _curve_table(results: Sequence[ChoiceResult]) -> Table:
    """The score by the number of extra runs."""

    def column(budget: int) -> _Column:
        return str(budget), lambda result: share(result.curve[budget].score)

    return _method_table(results, [*map(column, results[0].curve)], "S by the extra runs that are allowed")


def _repeats_table(results: Sequence[ChoiceResult], machine: MachineChoices) -> Table:
    """With 1 % tolerance on the runs themselves; on other repeats without it, with it, and told 1 % less."""
    under, performance = "under_limit_share", "under_performance"
    columns = [_score("≤ 1 %", f"{under}_within_1pct"), _score("perf.", f"{performance}_within_1pct")]
    split_half = machine.split_half
    if split_half is None:
        return _method_table(results, columns, "with 1 % tolerance")
    again = [("again", under), ("perf.", performance)]
    again += [("repeats", f"{under}_within_1pct"), ("perf.", f"{performance}_within_1pct")]
    told = (("told less", under), ("perf.", performance), ("S", "score"))
    columns += [_score(*each, "on_repeats") for each in again] + [_score(*each, "told_less") for each in told]
    caption = (
        f"with 1 % tolerance, and on {REPEATS} other repeats, which are simulated: repeats alone take "
        f"{100 * (split_half.violations or 0.0):.0f} % of the oracle's choices over the limit"
    )
    table = _method_table(results, columns, caption)
    last = ["split-half oracle", "", "", *(share(getattr(split_half, name)) for _, name in again)]
    return Table(table.headings, [*table.rows, last], caption)


def _tails_table(results: Sequence[ChoiceResult]) -> Table:
    """What is lost at worst: percentiles over the cases under the limit, and the worst programs."""

    def lost(heading: str, name: str) -> _Column:
        return heading, lambda result: NONE if result.regret is None else share(getattr(result.regret, name))

    def least(heading: str) -> _Column:
        def text(result: ChoiceResult) -> str:
            found = [getattr(each, _METRICS[heading][0]) for each in result.programs.values()]
            return share(min((each for each in found if each is not None), default=None))

        return f"least {heading}", text

    columns = [
        lost("lost: median", "median"),
        lost("90 %", "percentile_90"),
        lost("95 %", "percentile_95"),
        *map(least, ("under", "perf.", "S")),
    ]
    return _method_table(results, columns, "performance lost under the limit; worst programs")


def _confidence_table(results: Sequence[ChoiceResult]) -> list[Part]:
    """What methods promised and kept, and the programs that are more often over the cap than was promised."""
    promised = [each for each in results if each.confidence is not None]
    if not promised:
        return []
    columns: list[_Column] = [
        ("allowed over", lambda each: share(1 - (each.confidence or 0.0))),
        _score("over", "violations"),
        _score("perf.", "under_performance"),
        ("programs above", lambda each: f"{len(each.above)} of {len(each.programs)}"),
    ]
    return [
        _method_table(promised, columns, "what was promised"),
        *(f"Above it with {each.method}: {', '.join(each.above)}." for each in results if each.above),
    ]


def _program_table(result: ChoiceResult) -> Table:
    """The main metrics of one method, a row a program."""
    rows = [
        [name, *(write(getattr(metrics, of)) for of, write in _METRICS.values())]
        for name, metrics in result.programs.items()
    ]
    return Table([result.method, *_METRICS], rows, "by program")


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


def frontier_table(found: KernelFrontier, caption: str = "") -> Table:
    """The configurations on the frontier, with their settings, power and normalised performance."""
    names = shown_settings(found.surfaces.space)
    rows = []
    for number in found.frontier.tolist():
        each = found.surfaces.space.configurations[number]
        settings = [setting_text(name, each.settings.get(name)) for name in names]
        rows.append(
            [each.device, *settings, _TENTH(found.power_w[number]), f"{found.performance[number]:.2f}"]
        )
    headings = ["device", *map(setting_heading, names), "power, W", "performance"]
    return Table(headings, rows, caption)


def write_frontier(found: KernelFrontier, folder: Path) -> list[Path]:
    """Write the table as ``frontier.csv``, in SI units, and as ``frontier.md``."""
    paths = [folder / "frontier.csv", folder / "frontier.md"]
    for path, write in zip(paths, (_write_csv, _write_markdown), strict=True):
        try:
            with whole_file(path) as temporary:
                write(found, temporary)
        except OSError as error:
            raise InputError.of(
                field="figures", problem=f"cannot write {path} ({error.strerror or error})"
            ) from error
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
    title = f"Configurations on the frontier of {found.kernel}; performance relative to the fastest."
    path.write_text("\n".join([title, "", *markdown_rows(frontier_table(found))]) + "\n", encoding="utf-8")
