"""Co-running applications: evaluations and their studies, trained models, predictions, profiles, plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosscast.data.corun import Solo
from crosscast.decide.colocation import ColocationPlan
from crosscast.evaluation.corun_scores import CoRunResult
from crosscast.evaluation.partition import PartitionEvaluation
from crosscast.measure.corun.profile import Calibration
from crosscast.predict.corun.artefact import CoRunCard
from crosscast.predict.corun.forecast import Estimate, MixForecast
from crosscast.predict.corun.translation import LOGARITHMIC, TranslationCard
from crosscast.predict.warnings import format_names
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.numbers import (
    error_percent,
    factor,
    level_percent,
    named,
    percent,
    plural,
    three_digits,
    times,
)
from crosscast.studies.moolchandani2022 import (
    ClusterStudy,
    CoRunStudies,
    CoRunStudy,
    SizeStudy,
    TranslationStudy,
)
from crosscast.studies.moolchandani2022_features import SPLITS, CombinationStudy, PathStudy, why_missing
from crosscast.studies.moolchandani2022_published import REPORTED_MAPE, TIGHT, TRANSLATION_ERRORS
from crosscast.units import format_bytes, format_count, format_seconds

_MOST_NAMED = 8
_SHOWN = ("slowdown", "time", "power", "fits")


def _error_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """A row for each result."""
    columns: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        "model": lambda each: named(each["model"], each["baseline"]),
        "quantity": lambda each: each["quantity"],
        "mix of": lambda each: "any" if each["bag_size"] is None else each["bag_size"],
        "known mixes": lambda each: each["probes"],
        "MAPE": lambda each: error_percent(each["mape"]),
        "coverage": lambda each: percent(each["coverage"]),
        "worst": lambda each: (
            None if each["worst"] is None else f"{each['worst']} {percent(each['worst_coverage'])}"
        ),
        "AUC": lambda each: each["auc"],
        "predicted": lambda each: each["rows"],
    }
    if not any(each["probes"] for each in results):
        del columns["known mixes"]
    return Table.of(
        results, columns, formats={"AUC": "{:.3f}".format, "predicted": format_count}, words=(0, 1)
    )


def corun_training_report(card: CoRunCard, folder: Path) -> Report:
    """What a model was trained on, and how good it is."""
    results = [each for each in card.errors.get("results", ()) if each["quantity"] in _SHOWN]
    return Report(
        [
            f"{folder}: {card.model}, {trained_on_mixes(card)}",
            "",
            _error_table([each for each in results if each["bag_size"] is None]),
            "Each application was left out in turn with all mixes that it is in, and these were predicted by "
            "the model fitted to the others.",
            f"Coverage: share of measured values within their {percent(card.errors.get('level'))} intervals; "
            "worst: the application with the least.",
            "Exact definitions: docs/corun-evaluation.md.",
        ]
    )


def trained_on_mixes(card: CoRunCard) -> str:
    """What a model was trained on, as a sentence without its subject."""
    facts = card.training
    sizes = " and ".join(map(str, card.sizes))
    return (
        f"trained on {facts.get('dataset')}: {plural(int(facts.get('bags', 0)), 'mix', 'mixes')} of {sizes} "
        f"of {plural(len(card.applications), 'application')} "
        f"({format_names(card.applications, _MOST_NAMED)}) on {card.device}."
    )


def held_out_corun_errors(card: CoRunCard) -> list[str]:
    """How good the model was on held-out applications."""
    own = {
        each["quantity"]: each
        for each in card.errors.get("results", ())
        if each.get("model") == card.model and each.get("bag_size") is None and not each.get("probes")
    }
    parts = [
        f"{name} {error_percent(own[quantity]['mape'])}"
        for quantity, name in (("slowdown", "slowdowns"), ("time", "times of mixes"), ("power", "power"))
        if own.get(quantity, {}).get("mape") is not None
    ]
    if not parts:
        return []
    said = f"Mean absolute error on held-out applications: {', '.join(parts)}."
    found = own.get("time") or own.get("slowdown")
    if found is None or found.get("coverage") is None:
        return [said]
    what = "times" if "time" in own else "slowdowns"
    worst = f"{found['worst']} {percent(found['worst_coverage'])}"
    level = percent(card.errors.get("level"))
    return [
        said,
        f"Coverage of {level} intervals of {what}: {percent(found['coverage'])} (worst application {worst}).",
    ]


def corun_forecast_report(
    forecast: MixForecast, card: CoRunCard, translation: TranslationCard | None = None
) -> Report:
    """What is predicted of one mix."""
    both = zip(forecast.mix, forecast.slowdown, strict=True)
    rows = [
        [
            solo.name,
            solo.time_s,
            *(
                [None, None, None]
                if slowdown is None
                else [
                    factor(slowdown.value),
                    f"{factor(slowdown.low)} to {factor(slowdown.high)}",
                    None if solo.time_s is None else slowdown.value * solo.time_s,
                ]
            ),
        ]
        for solo, slowdown in both
    ]
    table = Table(
        ["application", "alone", "slowdown", "interval", "in the mix"],
        rows,
        f"{forecast.label} on {forecast.mix[0].device}",
        {"alone": format_seconds, "in the mix": format_seconds},
    )
    about = [f"{card.model}, {trained_on_mixes(card)}", *held_out_corun_errors(card)]
    about += [] if translation is None else [_translated_by(translation)]
    return Report([table, *_of_mix(forecast, card), "", *about])


def _of_mix(forecast: MixForecast, card: CoRunCard) -> list[str]:
    lines = []
    time, serial = forecast.time_s, forecast.serial_s
    if time is not None:
        interval = f"{times(time.low, time.high)}, {_level(time)} interval"
        said = f"Time of the mix: {format_seconds(time.value)} ({interval})"
        if serial is not None:
            said += f"; one after another {format_seconds(serial)}: {_gain(time, serial)}"
        lines.append(f"{said}.")
    power = forecast.power_w
    if power is not None:
        low, high = three_digits(power.low), three_digits(power.high)
        watts = f"{three_digits(power.value)} W ({low} to {high} W, {_level(power)} interval)"
        lines.append(f"Power while all run: {watts}.")
    else:
        lines.append(f"Power: n/a ({_why_no_power(forecast, card)}).")
    if forecast.fits is not None:
        lines.append(f"Probability that they fit on the device together: {percent(forecast.fits)}.")
    if forecast.memory_bytes is not None:
        lines.append(f"Memory of all: {format_bytes(forecast.memory_bytes)}.")
    return lines


def _why_no_power(forecast: MixForecast, card: CoRunCard) -> str:
    if forecast.mix[0].device != card.device:
        return "power is not translated to other devices"
    unknown = list(dict.fromkeys(solo.name for solo in forecast.mix if not solo.power_w))
    if unknown:
        return f"no isolated power measurement of {format_names(unknown, 5)}"
    return "the model was trained on mixes without power"


def _level(value: Estimate) -> str:
    return level_percent(value.reached)


def _gain(time: Estimate, serial: float) -> str:
    share = 1 - time.value / serial
    said = f"{percent(abs(share))} {'saved' if share > 0 else 'lost'}"
    sure = time.high < serial or time.low > serial
    return said if sure else f"{said}, but the interval includes no change"


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


def corun_profile_report(profile: CoRunProfile) -> Report:
    """What was measured alone, and below it a row for each stressor."""
    features = profile.solo.features
    columns: dict[str, Callable[[str], Any]] = {
        "beside": lambda level: level,
        "slowdown": lambda level: features.get(f"slowdown_{level}"),
        "slowdown of the other": lambda level: features.get(f"inflicted_{level}"),
        "fairness": lambda level: features.get(f"fairness_{level}"),
        "power": lambda level: features.get(f"power_{level}_w"),
    }
    return Report(
        [
            Heading(f"{profile.solo.name} on {profile.device} ({profile.device_name})", 1),
            *_lines(profile.solo),
            Table.of(
                [level.name for level in profile.calibration.levels],
                columns,
                caption="beside each stressor",
                formats={**dict.fromkeys(columns, "{:.3f}".format), "power": "{:.4g} W".format},
            ),
            profile.calibration.sentence,
            *(f"warning: {doubt}" for doubt in (*profile.calibration.doubts, *profile.notes)),
        ]
    )


def _lines(solo: Solo) -> list[str]:
    features = solo.features
    lines = [f"a job of {plural(solo.runs, 'run')}: {format_seconds(solo.time_s or 0.0)} alone"]
    lines.append(
        "power: no sensor (crosscast devices says why)"
        if solo.power_w is None
        else f"power {solo.power_w:.4g} W"
    )
    if solo.memory_bytes is not None:
        lines.append(f"memory {format_bytes(solo.memory_bytes)}")
    if "utilisation" in features:
        lines.append(f"cores used {percent(features['utilisation'])}")
    mix = [f"{title} {level_percent(features[name])}" for name, title in _MIX.items() if features.get(name)]
    lines.append(f"instructions: {', '.join(mix)}" if mix else "instructions: not characterized")
    counted = [
        f"misses of the {title} {level_percent(features[name])}"
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


_PUBLISHED = (
    "Published: {:g} to {:g} % (an accuracy of 91 to 93 %) from a Tesla T4 to a P100, of examples of one "
    "library.".format(*TRANSLATION_ERRORS)
)
_MOST_REASONS = 6
_NAMES = {
    "clusters": "clusters of mixes",
    "performance": "features for times",
    "power": "features for power",
    "performance_paths": "decision paths for times",
    "power_paths": "decision paths for power",
    "sizes": "mixes of several sizes",
    "translations": "translation to another device",
}


def _studies(studies: CoRunStudies) -> list[Part]:
    """Each study, or why it could not be made."""
    parts: list[Part] = []
    left: dict[str, list[str]] = {}
    for name, study in vars(studies).items():
        if isinstance(study, str):
            left.setdefault(study, []).append(_NAMES[name])
        elif isinstance(study, ClusterStudy):
            parts += _clusters(study)
        elif isinstance(study, CombinationStudy):
            parts += _combinations(study)
        elif isinstance(study, PathStudy):
            parts += _paths(study)
        elif isinstance(study, SizeStudy):
            parts += _sizes(study)
        else:
            for each in study:
                parts += [_translation(each), _PUBLISHED]
    missing = [f"Not studied: {', '.join(names)}, as {reason}." for reason, names in left.items()]
    return [*parts, *([""] if missing else []), *missing]


def _clusters(study: ClusterStudy) -> list[Part]:
    scores = [
        [f"{count}{' (best)' if count == study.best else ''}", score] for count, score in study.scores.items()
    ]
    said = "Three are best, as published" if study.as_published else "Three are not best, unlike published"
    tight = "tightly bound" if study.scores[3] > TIGHT else "not tightly bound"
    rows = [
        [
            str(place),
            each.bags,
            *(each.means[name] for name in study.features),
            each.application,
            percent(each.share),
        ]
        for place, each in enumerate(study.clusters, start=1)
    ]
    return [
        Table(
            ["clusters", "silhouette"],
            scores,
            f"clusters of {len(study.values):,} mixes by {', '.join(study.features)}: mean silhouette",
            {"silhouette": "{:.3f}".format},
        ),
        f"{said} (0.75 there); above {TIGHT:g} clusters count as tightly bound: these are {tight}.",
        Table(
            ["of three", "mixes", *study.features, "application", "of its mixes"],
            rows,
            "means of three clusters, and the application most of whose mixes are there",
            {"mixes": format_count, **dict.fromkeys(study.features, three_digits)},
        ),
    ]


def _combinations(study: CombinationStudy) -> list[Part]:
    formats = dict.fromkeys(study.kinds, error_percent)
    parts: list[Part] = []
    for split in SPLITS:
        rows = [[name, *row] for name, row in zip(study.names, study.mape(split).tolist(), strict=True)]
        caption = f"{study.quantity} of mixes of {study.members} by features, {split}: MAPE"
        parts.append(Table(["features", *study.kinds], rows, caption, formats))
    reported = [name for name in study.names if name in REPORTED_MAPE]
    if study.quantity == "power" and reported:
        rows = [[name, *(REPORTED_MAPE[name][kind] / 100 for kind in study.kinds)] for name in reported]
        caption = "the same as published, of pairs on a Tesla T4, leave-benchmark-out"
        parts.append(Table(["features", *study.kinds], rows, caption, formats))
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, features in study.missing.items():
        groups.setdefault(features, []).append(name)
    if len(groups) > _MOST_REASONS:
        every = tuple(dict.fromkeys(feature for features in groups for feature in features))
        groups = {every: [f"{len(study.missing)} published combinations"]}
    missing = [
        f"Not made: {', '.join(names)} ({why_missing(features)})." for features, names in groups.items()
    ]
    return [*parts, *missing]


def _paths(study: PathStudy) -> list[Part]:
    columns = {name: study.times[:, place] for place, name in enumerate(study.features)}
    shares = dict(zip(study.features, study.share.tolist(), strict=True))
    rows = [
        [name, percent(shares[name]), f"{counts.mean():.2f}", str(int(counts.max()))]
        for name, counts in columns.items()
        if counts.any()
    ]
    of = "published features" if study.as_published else "all that is known"
    caption = f"{study.quantity}: mixes with a feature on their path through a decision tree of {of}"
    never = [name for name, counts in columns.items() if not counts.any()]
    table = Table(["feature", "mixes", "splits a mix", "most"], rows, caption)
    return [table, *([f"On no path: {', '.join(never)}."] if never else [])]


def _sizes(study: SizeStudy) -> list[Part]:
    found: dict[tuple[str, str, str], dict[int, float | None]] = {}
    for each in study.results:
        found.setdefault((each.model, each.quantity, each.fitted_to), {})[each.bag_size] = each.mape
    rows = [
        [*names, *(error_percent(values.get(size)) for size in study.sizes)]
        for names, values in found.items()
    ]
    headings = ["model", "quantity", "fitted to", *(f"mixes of {size}" for size in study.sizes)]
    table = Table(headings, rows, "mixes of several sizes, leave-benchmark-out: MAPE", words=(0, 1, 2))
    one = f"One predictor a size, as published: {', '.join(study.of_one_size)}."
    return [table, *([one] if study.of_one_size else [])]


def _lines_table(scores: Sequence[Mapping[str, Any]], error: Callable[[float], str], caption: str) -> Table:
    """Errors of lines that translate times, by form, quantity and applications at a time."""
    counts = sorted({each["members"] for each in scores if each["members"] is not None})
    found = {(each["form"], each["quantity"], each["members"]): error(each["mape"]) for each in scores}
    rows = [
        [form, quantity, *(found.get((form, quantity, count)) for count in (*counts, None))]
        for form, quantity in dict.fromkeys((each["form"], each["quantity"]) for each in scores)
    ]
    headings = ["line", "of", *("alone" if count == 1 else f"mixes of {count}" for count in counts), "all"]
    return Table(headings, rows, caption, words=(0, 1))


def _translation(study: TranslationStudy) -> Table:
    caption = (
        f"times on {study.source} translated to {study.target}, each of {study.applications} "
        "applications left out: MAPE"
    )
    scores = [
        {"form": each.form, "quantity": each.quantity, "members": each.members, "mape": each.mape}
        for each in study.scores
    ]
    table = _lines_table(scores, error_percent, caption)
    blank = [None] * (len(table.headings) - 3)
    rows: list[Sequence[Any]] = [*table.rows]
    for each in study.predicted:
        with_model = f"{each.form}, {each.model}"
        rows += [[with_model, "time", *blank, error_percent(each.time_mape)]]
        rows += [[with_model, "slowdown", *blank, error_percent(each.slowdown_mape)]]
    if study.predicted:
        first = study.predicted[0]
        rows.append(
            [f"on {study.source} itself, {first.model}", "slowdown", *blank, error_percent(first.own_mape)]
        )
    return Table(table.headings, rows, caption, words=(0, 1))


_ORDER = ("slowdown", "speed", "time", "power", "fits")
_HELD_OUT = {
    "leave-benchmark-out": "Each application was left out in turn, with all mixes that it is in; all "
    "co-runners of these were predicted by models fitted to the other mixes.",
    "leave-bag-out": "Mixes were left out in folds, those of the same applications at the same sizes "
    "together: the applications are known from other mixes.",
    "random-80-20": "As published, a fifth of the mixes was left out at random: the applications are known "
    "from other mixes. See leave-benchmark-out for applications that are new.",
}
_PARTITIONS_HELD_OUT = {
    "leave-benchmark-out": "Each application was left out in turn, with all mixes that it is in; it was "
    "predicted by models fitted to the other mixes.",
    "leave-bag-out": "Mixes were left out in folds, those of the same applications together: applications "
    "are known from other mixes, which makes this nearly a lookup.",
}


def corun_evaluation_report(study: CoRunStudy) -> Report:
    """The tables of an evaluation, and what they are of."""
    evaluation = study.evaluation
    results = sorted(evaluation.results, key=_place)
    several = len({each.bag_size for each in results if each.bag_size is not None}) > 1
    shown = [each for each in results if (each.bag_size is None or several)]
    return Report(
        [
            Heading(_subject(study), 1),
            "",
            _error_table([each.to_dict() for each in shown]),
            *_by_group(study),
            *(_studies(study.studies) if study.studies is not None else ()),
            "",
            _HELD_OUT[evaluation.split],
            "MAPE: mean of the absolute error over what was measured. Slowdown: time of a job while the "
            "whole mix runs over its time alone; speed is its inverse. Time: from the common start of a job "
            "of each to the end of the last.",
            f"{_COVERAGE.format(percent(evaluation.level))} AUC: of the probability that a mix fits.",
            "Exact definitions: docs/corun-evaluation.md.",
        ]
    )


_COVERAGE = (
    "Coverage: share of measured values within their {} intervals; worst: of what was left out, the one with "
    "the least."
)


def _subject(study: CoRunStudy) -> str:
    co_runs, evaluation = study.evaluation.co_runs, study.evaluation
    sizes = sorted({len(bag.members) for bag in co_runs.bags})
    first = co_runs.bags[0]
    shared = "" if first.configuration == "{}" else f" {first.configuration}"
    return (
        f"{co_runs.label}: {plural(len(co_runs.bags), 'mix', 'mixes')} of {' and '.join(map(str, sizes))} of "
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


def _by_group(study: CoRunStudy) -> list[Part]:
    """What was left out, one by one, by the model that is best and no baseline."""
    parts: list[Part] = []
    for quantity in (each for each in _ORDER if each != "speed"):
        found = [
            each
            for each in study.evaluation.results
            if each.quantity == quantity and each.bag_size is None and not each.baseline and each.by_group
        ]
        if found:
            best = min(found, key=lambda each: each.mape or 0.0)
            rows = list((best.by_group or {}).items())
            known = f", {best.probes} known mixes" if best.probes else ""
            caption = f"{quantity}, {best.model}{known}, by what was left out"
            parts.append(Table(["left out", "MAPE"], rows, caption, {"MAPE": error_percent}))
    return parts


def partition_evaluation_report(evaluation: PartitionEvaluation) -> Report:
    """The table of an evaluation of partitions, and what it is of."""
    mixes = evaluation.mixes
    places = [None, *mixes.slices]
    copies = f" ({evaluation.copies:,} copies left out)" if evaluation.copies else ""
    levels, slices = (", ".join(f"{each:g}" for each in found) for found in (mixes.levels, mixes.slices))
    applications = plural(len(set(mixes.job[mixes.judged].tolist())), "application")
    table = Table.of(
        sorted(evaluation.results, key=lambda each: (places.index(each.slices), each.mae or 0.0)),
        {
            "model": lambda each: named(each.model, each.baseline),
            "slices": lambda each: "all" if each.slices is None else f"{each.slices:g}",
            "MAE": lambda each: each.mae,
            "coverage": lambda each: percent(each.coverage),
            "worst": lambda each: f"{each.worst} {percent(each.worst_coverage)}",
            "width": lambda each: each.width,
            "predicted": lambda each: each.rows,
        },
        formats={"MAE": "{:.4f}".format, "width": "{:.3f}".format, "predicted": format_count},
    )
    return Report(
        [
            Heading(
                f"{mixes.label}: {len(mixes):,} mixes{copies} of {applications} on {mixes.device}; from MPS "
                f"at {levels} % to parts of {slices} slices; {evaluation.split}; seed {evaluation.seed}",
                1,
            ),
            "",
            table,
            "",
            _PARTITIONS_HELD_OUT[evaluation.split],
            "MAE: mean absolute error of the relative time alone on a part of so many slices, which is the "
            "time over that on the part on which the application is slowest.",
            _COVERAGE.format(percent(evaluation.level)),
            "Exact definitions: docs/corun-evaluation.md, Partitions.",
        ]
    )


def translation_report(card: TranslationCard) -> Report:
    """What a card was made of, and how far it is off."""
    training, line = card.training, card.line
    if line.form == LOGARITHMIC:
        formula = f"ln(time there) = {line.slope:.4g} × ln(time here) {line.intercept:+.4g}, in seconds"
    else:
        formula = f"time there = {line.slope:.4g} × time here {line.intercept:+.4g} s"
    return Report(
        [
            Heading(
                f"{card.source} to {card.target}: a {line.form} line through "
                f"{plural(int(training.get('times', 0)), 'time')} of "
                f"{plural(len(training.get('applications', ())), 'application')} of "
                f"{training.get('dataset')}",
                1,
            ),
            formula,
            _lines_table(training.get("scores", ()), _error_of(card), "MAPE, each application left out:"),
        ]
    )


def _translated_by(card: TranslationCard) -> str:
    """How far a card is off, as a sentence."""
    scores = [
        each
        for each in card.training.get("scores", ())
        if each["form"] == card.line.form and each["quantity"] == "time" and each["members"] is None
    ]
    off = f"; MAPE of held-out applications {_error_of(card)(scores[0]['mape'])}" if scores else ""
    return f"Times on {card.source} are translated to {card.target} by a {card.line.form} line{off}."


def _error_of(card: TranslationCard) -> Callable[[float], str]:
    """How errors of a card are written: those of version 1 are in per cent, others are fractions."""
    return (lambda mape: error_percent(mape / 100)) if card.version == 1 else error_percent


def colocation_report(plan: ColocationPlan, names: Sequence[str], card: CoRunCard) -> Report:
    """Which jobs are recommended to share a device, which run alone, and what that gains."""
    parts: list[Part] = [_shared(plan, names, card)] if plan.shared else []
    if plan.alone:
        parts.append(Heading(f"alone on {card.device}", 3))
        parts += [f"{names[each.job]} ({format_seconds(each.time_s)}): {each.reason}" for each in plan.alone]
    about = [f"{card.model}, {trained_on_mixes(card)}", *held_out_corun_errors(card)]
    return Report([*parts, "", *_totals(plan), "", *about])


def _shared(plan: ColocationPlan, names: Sequence[str], card: CoRunCard) -> Table:
    """A row a job; what is said of the whole mix stands beside its first two."""
    fits = any(each.fits is not None for each in plan.shared)
    headings = ["jobs", "slowdown", "interval", "together", "one by one", *(["fit"] if fits else []), "gain"]
    rows = []
    for mix in plan.shared:
        whole = [
            format_seconds(mix.together_s),
            format_seconds(mix.serial_s),
            *([percent(mix.fits)] if fits else []),
        ]
        beside = [[*whole, _seconds(mix.gain_s.value)], [*("" for _ in whole), _interval(mix.gain_s)]]
        for place, (job, slowdown) in enumerate(zip(mix.jobs, mix.slowdown, strict=True)):
            rows.append(
                [
                    f"{'+ ' if place else ''}{names[job]}",
                    factor(slowdown.value),
                    f"{factor(slowdown.low)} to {factor(slowdown.high)}",
                    *(beside[place] if place < len(beside) else ()),
                ]
            )
    return Table(headings, rows, f"together on {card.device}")


def _totals(plan: ColocationPlan) -> list[str]:
    count = sum(len(each.jobs) for each in plan.shared) + len(plan.alone)
    serial = format_seconds(plan.serial_s)
    if not plan.shared:
        return [f"All {plural(count, 'job')} one after another: {serial}; nothing is gained by sharing."]
    time, gain = plan.time_s, plan.gain_s
    lines = [
        f"All {plural(count, 'job')}: {format_seconds(time.value)} instead of {serial} one after another.",
        f"Gain: {_seconds(gain.value)} ({_interval(gain)}, {_level(gain)} interval), "
        f"{percent(gain.value / plan.serial_s)} of the time.",
    ]
    if gain.low <= 0:
        lines.append("The interval includes 0: sharing may gain nothing.")
    if any(each.fits is not None for each in plan.shared):
        lines.append("Gains are weighted by the probability that the jobs fit on the device together.")
    return lines


def _interval(gain: Estimate) -> str:
    return f"{_seconds(gain.low)} to {_seconds(gain.high)}"


def _seconds(value: float) -> str:
    return format_seconds(value) if value >= 0 else f"−{format_seconds(-value)}"
