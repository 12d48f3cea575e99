"""The studies of an evaluation of co-running on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosscast.evaluation.translation import REPORTED
from crosscast.report.number_table import number_table, print_table
from crosscast.report.numbers import NONE, percent, three_digits
from crosscast.studies.moolchandani2022 import (
    TIGHT,
    ClusterStudy,
    CoRunStudies,
    SizeStudy,
    TranslationStudy,
)
from crosscast.studies.moolchandani2022_features import (
    REPORTED_MAPE,
    SPLITS,
    CombinationStudy,
    PathStudy,
    why_missing,
)

__all__ = ["print_corun_studies"]

_PUBLISHED = (
    f"Published: {REPORTED[0]:g} to {REPORTED[1]:g} % (an accuracy of 91 to 93 %) from a Tesla T4 to a P100, "
    "of examples of one library."
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
    """Print each study, or why it could not be made.

    Parameters
    ----------
    studies
        The studies.
    console
        Where to print.
    """
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
    for fitted_to, each in study.results:
        key = each.quantity, each.model, fitted_to
        rows.setdefault(key, {})[each.bag_size or 0] = each.mape
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
