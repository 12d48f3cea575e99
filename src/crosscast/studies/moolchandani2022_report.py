"""Tables of the studies of Moolchandani et al. 2022, between those of the evaluation and its legend."""

from __future__ import annotations

from collections.abc import Sequence

from crosscast.report.corun import legend_of, lines_table, tables_of
from crosscast.report.document import Part, Report, Table
from crosscast.report.fields import error_percent, percent, three_digits
from crosscast.studies.moolchandani2022 import (
    ClusterStudy,
    CoRunStudies,
    CoRunStudy,
    SizeStudy,
    TranslationStudy,
)
from crosscast.studies.moolchandani2022_features import (
    REPORTED_MAPE,
    SPLITS,
    TIGHT,
    TRANSLATION_ERRORS,
    CombinationStudy,
    PathStudy,
    why_missing,
)
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


def study_report(study: CoRunStudy) -> Report:
    """Make the tables of the evaluation and of each study, and the legend."""
    return Report([*tables_of(study.evaluation), *_studies(study.studies), "", *legend_of(study.evaluation)])


def _studies(studies: CoRunStudies) -> list[Part]:
    """Make the tables of each study, and sentences about studies that could not be made."""
    parts: list[Part] = []
    reasons: dict[str, list[str]] = {}
    for name, study in vars(studies).items():
        if isinstance(study, str):
            reasons.setdefault(study, []).append(_NAMES[name])
        elif isinstance(study, ClusterStudy):
            parts += _clusters(study)
        elif isinstance(study, CombinationStudy):
            parts += _combinations(study)
        elif isinstance(study, PathStudy):
            parts += _paths(study)
        elif isinstance(study, SizeStudy):
            parts += _sizes(study)
        else:
            for translation in study:
                parts += [_translation(translation), _PUBLISHED]
    missing = [f"Not studied: {', '.join(names)}, as {reason}." for reason, names in reasons.items()]
    return [*parts, *([""] if missing else []), *missing]


def _clusters(study: ClusterStudy) -> list[Part]:
    scores = [
        [f"{count}{' (best)' if count == study.best else ''}", score] for count, score in study.scores.items()
    ]
    best = "Three are best, as published" if study.best == 3 else "Three are not best, unlike published"
    tight = "tightly bound" if study.scores[3] > TIGHT else "not tightly bound"
    rows = [
        [
            str(number),
            cluster.mixes,
            *(cluster.means[name] for name in study.features),
            cluster.application,
            percent(cluster.share),
        ]
        for number, cluster in enumerate(study.clusters, start=1)
    ]
    return [
        Table(
            ["clusters", "silhouette"],
            scores,
            f"clusters of {study.mixes:,} mixes by {', '.join(study.features)}: mean silhouette",
            {"silhouette": "{:.3f}".format},
        ),
        f"{best} (0.75 there); above {TIGHT:g} clusters count as tightly bound: these are {tight}.",
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
        all_features = tuple(dict.fromkeys(feature for features in groups for feature in features))
        groups = {all_features: [f"{len(study.missing)} published combinations"]}
    missing = [
        f"Not made: {', '.join(names)} ({why_missing(features)})." for features, names in groups.items()
    ]
    return [*parts, *missing]


def _paths(study: PathStudy) -> list[Part]:
    columns = {name: study.times[:, column] for column, name in enumerate(study.features)}
    shares = dict(zip(study.features, study.share.tolist(), strict=True))
    rows = [
        [name, percent(shares[name]), f"{counts.mean():.2f}", str(int(counts.max()))]
        for name, counts in columns.items()
        if counts.any()
    ]
    features = "published features" if study.as_published else "all that is known"
    caption = f"{study.quantity}: mixes with a feature on their path through a decision tree of {features}"
    never = [name for name, counts in columns.items() if not counts.any()]
    table = Table(["feature", "mixes", "splits a mix", "most"], rows, caption)
    return [table, *([f"On no path: {', '.join(never)}."] if never else [])]


def _sizes(study: SizeStudy) -> list[Part]:
    errors: dict[tuple[str, str, str], dict[int, float | None]] = {}
    for result in study.results:
        by_size = errors.setdefault((result.model, result.quantity, result.fitted_to), {})
        by_size[result.mix_size] = result.mape
    rows = [
        [*names, *(error_percent(values.get(size)) for size in study.sizes)]
        for names, values in errors.items()
    ]
    headings = ["model", "quantity", "fitted to", *(f"mixes of {size}" for size in study.sizes)]
    table = Table(headings, rows, "mixes of several sizes, leave-benchmark-out: MAPE", words=(0, 1, 2))
    note = f"One predictor a size, as published: {', '.join(study.of_one_size)}."
    return [table, *([note] if study.of_one_size else [])]


def _translation(study: TranslationStudy) -> Table:
    caption = (
        f"times on {study.source} translated to {study.target}, each of {study.applications} "
        "applications left out: MAPE"
    )
    table = lines_table(study.scores, error_percent, caption)
    blank = [None] * (len(table.headings) - 3)
    rows: list[Sequence[object]] = [*table.rows]
    for errors in study.predicted:
        label = f"{errors.form}, {errors.model}"
        rows += [[label, "time", *blank, error_percent(errors.time_mape)]]
        rows += [[label, "slowdown", *blank, error_percent(errors.slowdown_mape)]]
    if study.predicted:
        first = study.predicted[0]
        rows.append(
            [f"on {study.source} itself, {first.model}", "slowdown", *blank, error_percent(first.own_mape)]
        )
    return Table(table.headings, rows, caption, words=(0, 1))
