"""A table of how good models of co-running are, from their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosscast.data.corun import Solo
from crosscast.decide.colocation import ColocationPlan, SharedMix
from crosscast.evaluation.corun_scores import CoRunResult
from crosscast.evaluation.partition import PartitionEvaluation
from crosscast.measure.corun.profile import Calibration
from crosscast.predict.corun.artefact import CoRunCard
from crosscast.predict.corun.forecast import Estimate, MixForecast
from crosscast.predict.corun.translation import LOGARITHMIC, TranslationCard
from crosscast.predict.warnings import format_names
from crosscast.report.numbers import NONE, factor, percent, plural, three_digits
from crosscast.report.text import console_of_numbers, console_on, number_table, print_table
from crosscast.studies.moolchandani2022 import (
    ClusterStudy,
    CoRunStudies,
    CoRunStudy,
    SizeStudy,
    TranslationStudy,
)
from crosscast.studies.moolchandani2022_features import (
    SPLITS,
    CombinationStudy,
    PathStudy,
    why_missing,
)
from crosscast.studies.moolchandani2022_published import REPORTED_MAPE, TIGHT, TRANSLATION_ERRORS
from crosscast.units import format_bytes, format_count, format_seconds


def corun_error_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """A row for each result."""
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


_MOST_NAMED = 8
_SHOWN = ("slowdown", "time", "power", "fits")


def print_corun_training(card: CoRunCard, folder: Path, stream: TextIO) -> None:
    """Print a card."""
    console = console_of_numbers(stream)
    console.print(Text(f"{folder}: {card.model}, {corun_trained_on(card)}"), soft_wrap=True)
    console.print()
    results = [each for each in card.errors.get("results", ()) if each["quantity"] in _SHOWN]
    console.print(corun_error_table([each for each in results if each["bag_size"] is None]))
    for line in (
        "Each application was left out in turn with all bags that it is in, and these were predicted by the "
        "model fitted to the others.",
        f"Coverage: how many {percent(card.errors.get('level'))} intervals held what was measured; worst: of "
        "the application whose intervals held least often.",
        "Exact definitions: docs/corun-evaluation.md.",
    ):
        console.print(Text(line), soft_wrap=True)


def corun_trained_on(card: CoRunCard) -> str:
    """What a model was trained on, as a sentence without its subject."""
    facts = card.training
    sizes = " and ".join(map(str, card.sizes))
    return (
        f"trained on {facts.get('dataset')}: {plural(int(facts.get('bags', 0)), 'bag')} of {sizes} of "
        f"{plural(len(card.applications), 'application')} ({format_names(card.applications, _MOST_NAMED)}) "
        f"on {card.device}."
    )


def honest_corun_errors(card: CoRunCard) -> list[str]:
    """How good the model was on applications that it had not seen."""
    own = {
        each["quantity"]: each
        for each in card.errors.get("results", ())
        if each.get("model") == card.model and each.get("bag_size") is None and not each.get("probes")
    }
    parts = [
        f"{name} {three_digits(100 * own[quantity]['mape'])} %"
        for quantity, name in (("slowdown", "slowdowns"), ("time", "times of bags"), ("power", "powers"))
        if own.get(quantity, {}).get("mape") is not None
    ]
    if not parts:
        return []
    said = f"Mean absolute error on applications that it had not seen: {', '.join(parts)}."
    return [said, *_held(card, own)]


def _held(card: CoRunCard, own: Mapping[str, Mapping[str, Any]]) -> list[str]:
    found = own.get("time") or own.get("slowdown")
    if found is None or found.get("coverage") is None:
        return []
    what = "times" if "time" in own else "slowdowns"
    return [
        f"{percent(card.errors.get('level'))} intervals held {percent(found['coverage'])} of its {what}; of "
        f"{found['worst']} {percent(found['worst_coverage'])}."
    ]


_CORUN_FORECAST_MOST_NAMED = 5


def print_corun_forecast(forecast: MixForecast, card: CoRunCard, stream: TextIO) -> None:
    """Print what is predicted of one bag."""
    console = console_of_numbers(stream)
    console.print(Text(f"{forecast.label} on {forecast.mix[0].device}", style="bold"), soft_wrap=True)
    table = number_table("application", ["alone", "slowdown", "interval", "in the bag"])
    for solo, slowdown in zip(forecast.mix, forecast.slowdown, strict=True):
        table.add_row(
            Text(solo.name),
            NONE if solo.time_s is None else format_seconds(solo.time_s),
            NONE if slowdown is None else factor(slowdown.value),
            NONE if slowdown is None else f"{factor(slowdown.low)} to {factor(slowdown.high)}",
            NONE if slowdown is None or solo.time_s is None else format_seconds(slowdown.value * solo.time_s),
        )
    console.print(table)
    for line in (*_whole(forecast, card), ""):
        console.print(Text(line), soft_wrap=True)
    for line in (f"{card.model}, {corun_trained_on(card)}", *honest_corun_errors(card)):
        console.print(Text(line), soft_wrap=True)


def _whole(forecast: MixForecast, card: CoRunCard) -> list[str]:
    lines = []
    time, serial = forecast.time_s, forecast.serial_s
    if time is not None:
        said = (
            f"All together: {format_seconds(time.value)} ({format_seconds(time.low)} to "
            f"{format_seconds(time.high)}, {_level(time)} interval)"
        )
        if serial is not None:
            said += f"; one after another {format_seconds(serial)}: {_gain(time, serial)}"
        lines.append(f"{said}.")
    if forecast.power_w is not None:
        power = forecast.power_w
        lines.append(
            f"Power while all run: {three_digits(power.value)} W ({three_digits(power.low)} to "
            f"{three_digits(power.high)} W, {_level(power)} interval)."
        )
    elif forecast.mix[0].device != card.device:
        lines.append("Power: not known, as it is not translated.")
    elif unknown := list(dict.fromkeys(solo.name for solo in forecast.mix if not solo.power_w)):
        lines.append(
            f"Power: not known, as that of {format_names(unknown, _CORUN_FORECAST_MOST_NAMED)} alone is not."
        )
    else:
        lines.append("Power: not known, as the model was trained on bags without.")
    if forecast.fits is not None:
        lines.append(f"They fit on the device together with a probability of {percent(forecast.fits)}.")
    if forecast.memory_bytes is not None:
        lines.append(f"Memory of all: {format_bytes(forecast.memory_bytes)}.")
    return lines


def _level(value: Estimate) -> str:
    return f"{100 * value.reached:.3g} %"


def _gain(time: Estimate, serial: float) -> str:
    share = 1 - time.value / serial
    said = f"{percent(abs(share))} {'saved' if share > 0 else 'lost'}"
    sure = time.high < serial or time.low > serial
    return said if sure else f"{said}, but the interval holds both"


_MIX = {
    "mix_sse": "vectors",
    "mix_alu": "integers",
    "mix_mem": "memory",
    "mix_fp": "reals",
    "mix_stack": "stack",
    "mix_string": "copies",
    "mix_shift": "shifts and multiplications",
    "mix_control": "control",
}
_MISSES = {
    "llc_miss": "last-level cache",
    "l1_miss": "first-level cache",
    "dtlb_miss": "TLB",
    "branch_miss": "branch predictor",
}


@dataclass(frozen=True)
class CoRunProfile:
    """A profile, and how it was made."""

    solo: Solo  # What is known of the application
    device: str  # Id of the device
    device_name: str  # Its name
    calibration: Calibration  # The stressors there
    notes: Sequence[str]  # What went wrong without ending it, as sentences
    file: Path  # Where it was written to

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        solo = self.solo
        return {
            "application": solo.application,
            "size": solo.size,
            "device": {"id": self.device, "key": solo.device, "name": self.device_name},
            "runs": solo.runs,
            "time_s": solo.time_s,
            "power_w": solo.power_w,
            "memory_bytes": solo.memory_bytes,
            "features": dict(solo.features),
            "microbenchmarks": self.calibration.to_dict(),
            "notes": list(self.notes),
            "file": str(self.file),
        }


def print_corun_profile(profile: CoRunProfile, stream: TextIO) -> None:
    """Print what was measured alone, and below it a row for each stressor."""
    console = console_on(stream)
    console.print(Text(f"{profile.solo.name} on {profile.device} ({profile.device_name})", style="bold"))
    for line in _lines(profile.solo):
        console.print(Text(line), soft_wrap=True)
    table = number_table("beside", ("slowdown", "slowdown of the other", "fairness", "power"))
    for level in profile.calibration.levels:
        table.add_row(level.name, *_cells(profile.solo, level.name))
    print_table(console, "beside each stressor", table)
    console.print(Text(profile.calibration.sentence), soft_wrap=True)
    for doubt in (*profile.calibration.doubts, *profile.notes):
        console.print(Text(f"warning: {doubt}"), soft_wrap=True)


def _cells(solo: Solo, level: str) -> list[str]:
    texts = []
    for name in (f"slowdown_{level}", f"inflicted_{level}", f"fairness_{level}"):
        value = solo.features.get(name)
        texts.append(NONE if value is None else f"{value:.3f}")
    return [*texts, _power(solo.features.get(f"power_{level}_w"))]


def _power(power_w: float | None) -> str:
    return NONE if power_w is None else f"{power_w:.4g} W"


def _lines(solo: Solo) -> list[str]:
    features = solo.features
    runs = "1 run" if solo.runs == 1 else f"{format_count(solo.runs)} runs"
    lines = [f"a job of {runs}: {format_seconds(solo.time_s or 0.0)} alone"]
    lines.append(
        "power: no sensor (crosscast devices says why)"
        if solo.power_w is None
        else f"power {_power(solo.power_w)}"
    )
    if solo.memory_bytes is not None:
        lines.append(f"memory {format_bytes(solo.memory_bytes)}")
    if "utilisation" in features:
        lines.append(f"cores used {100 * features['utilisation']:.0f} %")
    mix = [f"{title} {_percent(features[name])}" for name, title in _MIX.items() if features.get(name)]
    lines.append(f"instructions: {', '.join(mix)}" if mix else "instructions: not characterized")
    counted = [
        f"misses of the {title} {_percent(features[name])}"
        for name, title in _MISSES.items()
        if name in features
    ]
    if "ipc" in features:
        counted.insert(0, f"{features['ipc']:.3g} instructions a cycle")
    lines.append(
        f"CPU counters: {', '.join(counted)}"
        if counted
        else "CPU counters: none that work here (crosscast devices says why)"
    )
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


_PUBLISHED = (
    "Published: {:g} to {:g} % (an accuracy of 91 to 93 %) from a Tesla T4 to a P100, of examples of one "
    "library.".format(*TRANSLATION_ERRORS)
)
_MOST_REASONS = 6
_NAMES = {
    "clusters": "clusters of bags",
    "performance": "features for times",
    "power": "features for power",
    "performance_paths": "decision paths for times",
    "power_paths": "decision paths for power",
    "sizes": "bags of several sizes",
    "translations": "translation to another device",
}


def print_corun_studies(studies: CoRunStudies, console: Console) -> None:
    """Print each study, or why it could not be made."""
    left: dict[str, list[str]] = {}
    for name, study in vars(studies).items():
        if isinstance(study, str):
            left.setdefault(study, []).append(_NAMES[name])
        elif isinstance(study, ClusterStudy):
            _print_clusters(study, console)
        elif isinstance(study, CombinationStudy):
            _print_combinations(study, console)
        elif isinstance(study, PathStudy):
            _print_paths(study, console)
        elif isinstance(study, SizeStudy):
            _print_sizes(study, console)
        else:
            _print_translations(study, console)
    if left:
        console.print()
        for reason, names in left.items():
            console.print(Text(f"Not studied: {', '.join(names)}, as {reason}."), soft_wrap=True)


def _print_clusters(study: ClusterStudy, console: Console) -> None:
    table = number_table("clusters", ["silhouette"])
    for count, score in study.scores.items():
        best = " (best)" if count == study.best else ""
        table.add_row(Text(f"{count}{best}"), f"{score:.3f}")
    heading = f"clusters of {len(study.values):,} bags by {', '.join(study.features)}: mean silhouette"
    print_table(console, heading, table)
    said = "Three are best, as published" if study.as_published else "Three are not best, unlike published"
    tight = "tightly bound" if study.scores[3] > TIGHT else "not tightly bound"
    console.print(
        Text(f"{said} (0.75 there); above {TIGHT:g} clusters count as tightly bound: these are {tight}."),
        soft_wrap=True,
    )
    parts = number_table("of three", ["bags", *study.features, "application", "of its bags"])
    for place, each in enumerate(study.clusters, start=1):
        means = [three_digits(each.means[name]) for name in study.features]
        parts.add_row(str(place), f"{each.bags:,}", *means, each.application, percent(each.share))
    print_table(console, "means of three clusters, and the application most of whose bags are there", parts)


def _print_combinations(study: CombinationStudy, console: Console) -> None:
    for split in SPLITS:
        table = number_table("features", study.kinds)
        values = study.mape(split)
        for name, row in zip(study.names, values, strict=True):
            table.add_row(Text(name), *(_mape(value) for value in row.tolist()))
        heading = f"{study.quantity} of bags of {study.members} by features, {split}: MAPE"
        print_table(console, heading, table)
    reported = [name for name in study.names if name in REPORTED_MAPE]
    if study.quantity == "power" and reported:
        table = number_table("features", study.kinds)
        for name in reported:
            table.add_row(Text(name), *(_mape(REPORTED_MAPE[name][kind] / 100) for kind in study.kinds))
        print_table(console, "the same as published, of pairs on a Tesla T4, leave-benchmark-out", table)
    _print_missing(study, console)


def _print_missing(study: CombinationStudy, console: Console) -> None:
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, features in study.missing.items():
        groups.setdefault(features, []).append(name)
    if len(groups) > _MOST_REASONS:
        every = tuple(dict.fromkeys(feature for features in groups for feature in features))
        groups = {every: [f"{len(study.missing)} published combinations"]}
    for features, names in groups.items():
        console.print(Text(f"Not made: {', '.join(names)} ({why_missing(features)})."), soft_wrap=True)


def _print_paths(study: PathStudy, console: Console) -> None:
    table = number_table("feature", ["bags", "splits a bag", "most"])
    for place, name in enumerate(study.features):
        times = study.times[:, place]
        if times.any():
            share = float(study.share[place])
            table.add_row(Text(name), percent(share), f"{times.mean():.2f}", str(int(times.max())))
    of = "published features" if study.as_published else "all that is known"
    heading = f"{study.quantity}: bags with a feature on their path through a decision tree of {of}"
    print_table(console, heading, table)
    never = [name for place, name in enumerate(study.features) if not study.times[:, place].any()]
    if never:
        console.print(Text(f"On no path: {', '.join(never)}."), soft_wrap=True)


def _print_sizes(study: SizeStudy, console: Console) -> None:
    rows: dict[tuple[str, str, str], dict[int, float | None]] = {}
    for each in study.results:
        rows.setdefault((each.quantity, each.model, each.fitted_to), {})[each.bag_size] = each.mape
    table = number_table("model", ["quantity", "fitted to", *(f"bags of {size}" for size in study.sizes)])
    for (quantity, model, fitted_to), values in rows.items():
        table.add_row(Text(model), quantity, fitted_to, *(_mape(values.get(size)) for size in study.sizes))
    print_table(console, "bags of several sizes, leave-benchmark-out: MAPE", table)
    if study.of_one_size:
        console.print(
            Text(f"One predictor a size, as published: {', '.join(study.of_one_size)}."), soft_wrap=True
        )


def _print_translations(studies: Sequence[TranslationStudy], console: Console) -> None:
    for study in studies:
        heading = (
            f"times on {study.source} translated to {study.target}, each of {study.applications} "
            "applications left out: MAPE"
        )
        print_table(console, heading, _translation(study))
        console.print(Text(_PUBLISHED), soft_wrap=True)


def _translation(study: TranslationStudy) -> Table:
    counts = sorted({each.members for each in study.scores if each.members is not None})
    found = {(each.form, each.quantity, each.members): each for each in study.scores}
    table = number_table("line", ["of", *("alone" if n == 1 else f"bags of {n}" for n in counts), "all"])
    for form, quantity in dict.fromkeys((each.form, each.quantity) for each in study.scores):
        cells = [found.get((form, quantity, n)) for n in (*counts, None)]
        table.add_row(form, quantity, *(NONE if each is None else _mape(each.mape) for each in cells))
    blank = [NONE] * len(counts)
    for each in study.predicted:
        with_model = f"{each.form}, {each.model}"
        table.add_row(Text(with_model), "time", *blank, _mape(each.time_mape))
        table.add_row(Text(with_model), "slowdown", *blank, _mape(each.slowdown_mape))
    if study.predicted:
        first = study.predicted[0]
        table.add_row(
            Text(f"on {study.source} itself, {first.model}"), "slowdown", *blank, _mape(first.own_mape)
        )
    return table


def _mape(value: float | None) -> str:
    return NONE if value is None or value != value else f"{three_digits(round(100 * value, 4))} %"


_WIDTH = 140
_ORDER = ("slowdown", "speed", "time", "power", "fits")
_HELD_OUT = {
    "leave-benchmark-out": "Each application was left out in turn, with all bags that it is in; all members "
    "of these were predicted by models fitted to the other bags.",
    "leave-bag-out": "Bags were left out in folds, those of the same applications at the same sizes "
    "together: the applications are known from other bags.",
    "random-80-20": "As published, a fifth of the bags was left out at random: the applications are known "
    "from other bags. See leave-benchmark-out for applications that are new.",
}


def print_corun_evaluation(study: CoRunStudy, stream: TextIO) -> None:
    """Print the tables of an evaluation, and what they are of."""
    console = console_of_numbers(stream, _WIDTH)
    evaluation = study.evaluation
    console.print(Text(_subject(study), style="bold"), soft_wrap=True)
    console.print()
    results = sorted(evaluation.results, key=_place)
    several = len({each.bag_size for each in results if each.bag_size is not None}) > 1
    shown = [each for each in results if (each.bag_size is None or several)]
    console.print(corun_error_table([each.to_dict() for each in shown]))
    _print_groups(study, console)
    if study.studies is not None:
        print_corun_studies(study.studies, console)
    console.print()
    for line in (
        _HELD_OUT[evaluation.split],
        "MAPE: mean of the absolute error over what was measured. Slowdown: time of a job while the whole "
        "bag runs over its time alone; speed is its inverse. Time: from the common start of a job of each to "
        "the end of the last.",
        f"Coverage: share of the {percent(evaluation.level)} intervals that held what was measured; worst: "
        "of what was left out, the one of which they held least. AUC: of the probability that a bag fits.",
        "Exact definitions: docs/corun-evaluation.md.",
    ):
        console.print(Text(line), soft_wrap=True)


def _subject(study: CoRunStudy) -> str:
    co_runs, evaluation = study.evaluation.co_runs, study.evaluation
    sizes = sorted({len(bag.members) for bag in co_runs.bags})
    first = co_runs.bags[0]
    shared = "" if first.configuration == "{}" else f" {first.configuration}"
    return (
        f"{co_runs.label}: {plural(len(co_runs.bags), 'bag')} of {' and '.join(map(str, sizes))} of "
        f"{plural(len(co_runs.applications), 'application')} on {first.device}{shared}; {evaluation.split}; "
        f"seed {evaluation.seed}"
    )


def _place(result: CoRunResult) -> tuple[int, int, bool, int, float]:
    return (
        _ORDER.index(result.quantity),
        -1 if result.bag_size is None else result.bag_size,
        result.baseline,
        result.probes,
        result.mape if result.mape is not None else -(result.auc or 0.0),
    )


def _print_groups(study: CoRunStudy, console: Console) -> None:
    """What was left out, one by one, by the model that is best and no baseline."""
    for quantity in _ORDER:
        found = [
            each
            for each in study.evaluation.results
            if each.quantity == quantity and each.bag_size is None and not each.baseline and each.by_group
        ]
        if found and quantity != "speed":
            best = min(found, key=lambda each: each.mape or 0.0)
            table = number_table("left out", ["MAPE"])
            for name, mape in (best.by_group or {}).items():
                table.add_row(Text(name), f"{three_digits(100 * mape)} %")
            known = f", {best.probes} known bags" if best.probes else ""
            print_table(console, f"{quantity}, {best.model}{known}, by what was left out", table)


_CORUN_PARTITION_WIDTH = 140
_CORUN_PARTITION_HELD_OUT = {
    "leave-benchmark-out": "Each application was left out in turn, with all mixes that it is in; it was "
    "predicted by models fitted to the other mixes.",
    "leave-bag-out": "Mixes were left out in folds, those of the same applications together: applications "
    "are known from other mixes, which makes this nearly a lookup.",
}


def print_partition_evaluation(evaluation: PartitionEvaluation, stream: TextIO) -> None:
    """Print the table of an evaluation, and what it is of."""
    console = console_of_numbers(stream, _CORUN_PARTITION_WIDTH)
    console.print(Text(_corun_partition_subject(evaluation), style="bold"), soft_wrap=True)
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
        _CORUN_PARTITION_HELD_OUT[evaluation.split],
        "MAE: mean absolute error of the relative time alone on a part of so many slices, which is the time "
        "over that on the part on which the application is slowest.",
        f"Coverage: share of the {percent(evaluation.level)} intervals that held what was measured; worst: "
        "of what was left out, the one of which they held least.",
        "Exact definitions: docs/corun-evaluation.md, Partitions.",
    ):
        console.print(Text(line), soft_wrap=True)


def _corun_partition_subject(evaluation: PartitionEvaluation) -> str:
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


def print_translation(card: TranslationCard, stream: TextIO) -> None:
    """Print what a card was made of, and how far it is off."""
    console = console_of_numbers(stream)
    training = card.training
    console.print(
        Text(
            f"{card.source} to {card.target}: a {card.line.form} line through "
            f"{plural(int(training.get('times', 0)), 'time')} of "
            f"{plural(len(training.get('applications', ())), 'application')} of {training.get('dataset')}",
            style="bold",
        ),
        soft_wrap=True,
    )
    console.print(Text(_formula(card)), soft_wrap=True)
    scores = list(training.get("scores", ()))
    counts = sorted({each["members"] for each in scores if each["members"] is not None})
    table = number_table("line", ["of", *("alone" if n == 1 else f"bags of {n}" for n in counts), "all"])
    found = {
        (each["form"], each["quantity"], each["members"]): _corun_translation_percent(card, each["mape"])
        for each in scores
    }
    for form, quantity in dict.fromkeys((each["form"], each["quantity"]) for each in scores):
        values = [found.get((form, quantity, n)) for n in (*counts, None)]
        table.add_row(form, quantity, *(NONE if value is None else value for value in values))
    console.print()
    console.print(Text("MAPE, each application left out:", style="bold"))
    console.print(table)


def translated_by(card: TranslationCard) -> str:
    """How far a card is off, as a sentence."""
    scores = [
        each
        for each in card.training.get("scores", ())
        if each["form"] == card.line.form and each["quantity"] == "time" and each["members"] is None
    ]
    off = (
        f"; with applications left out, it is off by {_corun_translation_percent(card, scores[0]['mape'])}"
        if scores
        else ""
    )
    return f"Times on {card.source} are translated to {card.target} by a {card.line.form} line{off}."


def _corun_translation_percent(card: TranslationCard, mape: float) -> str:
    """An error of a card; those of version 1 are in per cent, others are fractions."""
    return f"{three_digits(mape if card.version == 1 else 100 * mape)} %"


def _formula(card: TranslationCard) -> str:
    line = card.line
    if line.form == LOGARITHMIC:
        return f"ln(time there) = {line.slope:.4g} × ln(time here) {line.intercept:+.4g}, in seconds"
    return f"time there = {line.slope:.4g} × time here {line.intercept:+.4g} s"


def print_colocation(plan: ColocationPlan, names: Sequence[str], card: CoRunCard, stream: TextIO) -> None:
    """Print a plan."""
    console = console_of_numbers(stream)
    if plan.shared:
        _print_shared(plan, names, card, console)
    if plan.alone:
        console.print()
        console.print(Text(f"alone on {card.device}", style="bold"), soft_wrap=True)
        for each in plan.alone:
            line = f"{names[each.job]} ({format_seconds(each.time_s)}): {each.reason}"
            console.print(Text(line), soft_wrap=True)
    console.print()
    for line in (
        *_totals(plan),
        "",
        f"{card.model}, {corun_trained_on(card)}",
        *honest_corun_errors(card),
    ):
        console.print(Text(line), soft_wrap=True)


def _print_shared(plan: ColocationPlan, names: Sequence[str], card: CoRunCard, console: Console) -> None:
    told = any(each.fits is not None for each in plan.shared)
    headings = ["slowdown", "interval", "together", "one by one", *(["fit"] if told else []), "gain"]
    table = number_table("jobs", headings)
    for mix in plan.shared:
        whole = _colocation_whole(mix, told)
        for place, (job, slowdown) in enumerate(zip(mix.jobs, mix.slowdown, strict=True)):
            table.add_row(
                Text(f"{'+ ' if place else ''}{names[job]}"),
                factor(slowdown.value),
                f"{factor(slowdown.low)} to {factor(slowdown.high)}",
                *(whole[place] if place < len(whole) else ()),
            )
    print_table(console, f"together on {card.device}", table)


def _colocation_whole(mix: SharedMix, told: bool) -> tuple[list[str], list[str]]:
    """What is said of the whole mix, beside its first two jobs."""
    fits = [percent(mix.fits)] if told else []
    times = [format_seconds(mix.together_s), format_seconds(mix.serial_s), *fits]
    return [*times, _seconds(mix.gain_s.value)], [*("" for _ in times), _interval(mix.gain_s)]


def _totals(plan: ColocationPlan) -> list[str]:
    count = sum(len(each.jobs) for each in plan.shared) + len(plan.alone)
    serial = format_seconds(plan.serial_s)
    if not plan.shared:
        return [f"All {plural(count, 'job')} one after another: {serial}; nothing is gained by sharing."]
    time, gain = plan.time_s, plan.gain_s
    lines = [
        f"All {plural(count, 'job')}: {format_seconds(time.value)} instead of {serial} one after another.",
        f"Gain: {_seconds(gain.value)} ({_interval(gain)}, {100 * gain.reached:.3g} % interval), "
        f"{percent(gain.value / plan.serial_s)} of the time.",
    ]
    if gain.low <= 0:
        lines.append("The interval holds 0: it may be that nothing is gained.")
    if any(each.fits is not None for each in plan.shared):
        lines.append("Each gain counts by the probability that the jobs fit on the device together.")
    return lines


def _interval(gain: Estimate) -> str:
    return f"{_seconds(gain.low)} to {_seconds(gain.high)}"


def _seconds(value: float) -> str:
    return format_seconds(value) if value >= 0 else f"−{format_seconds(-value)}"
