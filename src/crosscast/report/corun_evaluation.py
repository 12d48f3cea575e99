"""Evaluations of models of co-running, and the studies of Moolchandani et al. 2022."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosscast.evaluation.corun.scores import CoRunResult
from crosscast.report.corun import error_table, lines_table
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.numbers import error_percent, percent, plural, three_digits
from crosscast.studies.moolchandani2022 import (
    ClusterStudy,
    CoRunStudies,
    CoRunStudy,
    SizeStudy,
    TranslationStudy,
)
from crosscast.studies.moolchandani2022_features import SPLITS, CombinationStudy, PathStudy, why_missing
from crosscast.studies.moolchandani2022_published import REPORTED_MAPE, TIGHT, TRANSLATION_ERRORS
from crosscast.units import format_count

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


def _translation(study: TranslationStudy) -> Table:
    caption = (
        f"times on {study.source} translated to {study.target}, each of {study.applications} "
        "applications left out: MAPE"
    )
    scores = [
        {"form": each.form, "quantity": each.quantity, "members": each.members, "mape": each.mape}
        for each in study.scores
    ]
    table = lines_table(scores, error_percent, caption)
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
    "leave-mix-out": "Mixes were left out in folds, those of the same applications at the same sizes "
    "together: the applications are known from other mixes.",
    "random-80-20": "As published, a fifth of the mixes was left out at random: the applications are known "
    "from other mixes. See leave-benchmark-out for applications that are new.",
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
            error_table([each.to_dict() for each in shown]),
            *_by_group(study),
            *(_studies(study.studies) if study.studies is not None else ()),
            "",
            _HELD_OUT[evaluation.split],
            "MAPE: mean of the absolute error over what was measured. Slowdown: time of a job while the "
            "whole mix runs over its time alone; speed is its inverse. Time: from the common start of a job "
            "of each to the end of the last.",
            f"{_COVERAGE.format(percent(evaluation.level))} AUC: of the probability that a mix fits.",
            "Exact definitions: docs/evaluation.md.",
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
            coverage = best.coverage_by_group or {}
            rows = [(name, each, coverage.get(name)) for name, each in (best.by_group or {}).items()]
            known = f", {best.probes} known mixes" if best.probes else ""
            caption = f"{quantity}, {best.model}{known}, by what was left out"
            formats = {"MAPE": error_percent, "coverage": percent}
            parts.append(Table(["left out", "MAPE", "coverage"], rows, caption, formats))
    return parts
