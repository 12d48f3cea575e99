"""Clusters of bags by fairness and misses, and how tight they are (paper 004, figures 4 and 5).

The paper finds three clusters, which three microbenchmarks stand for, with a silhouette score of 0.75. It has
the misses of the bags themselves. Here a bag's share of misses is taken as the mean of its members' alone.
Where there are no counters, what its members do to the microbenchmark High, their traffic, or how much of the
device they use, all summed, stands in for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError, MissingExtraError
from crosscast.evaluation.corun import (
    CoRunEvaluation,
    CoRunTask,
    answers_of,
    evaluate_corun,
    folds_of,
    of_one_device,
)
from crosscast.evaluation.processes import Progress
from crosscast.evaluation.translation import (
    SharedTimes,
    TranslationScore,
    bag_key,
    shared_times,
    translation_scores,
)
from crosscast.predict.corun.forecast import CoRunModel
from crosscast.predict.corun.models import BASELINES, MODELS, models_named
from crosscast.predict.corun.moolchandani2022 import Published
from crosscast.predict.corun.translation import LOGARITHMIC, PLAIN, TimeLine
from crosscast.studies.moolchandani2022 import (
    CombinationStudy,
    NotMade,
    PathStudy,
    SizeStudy,
    performance_combinations,
    performance_paths,
    power_combinations,
    power_paths,
    sizes_study,
)
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.view import CoRuns

COUNTS = range(2, 9)
"""Numbers of clusters that are tried."""

PUBLISHED = 3
"""Clusters of the paper."""

TIGHT = 0.7
"""Silhouette score above which the paper calls clusters tightly bound."""

_FAIRNESS = "fairness"
_MOST = 2000
"""Bags that are clustered: silhouettes take the distances of all pairs."""

_SHARES = {"llc_miss": "LLC misses", "l1_miss": "L1 misses"}
_SUMS = {
    "inflicted_high": "slowdown of High, summed",
    "bandwidth_bytes_per_s": "bandwidth in bytes/s, summed",
    "memory_utilisation": "memory utilisation, summed",
    "utilisation": "utilisation, summed",
}
_PLACES: tuple[tuple[str, ...], ...] = (
    ("llc_miss", "inflicted_high", "bandwidth_bytes_per_s", "memory_utilisation"),
    ("l1_miss", "bandwidth_bytes_per_s", "utilisation"),
)
"""What may be the second and the third feature, the published one first."""


@dataclass(frozen=True)
class Cluster:
    """One of the three clusters."""

    bags: int  # How many there are
    means: Mapping[str, float]  # Mean of each feature
    # The application most of whose bags are in this cluster, and the share of its bags that are
    application: str
    share: float


@dataclass(frozen=True, eq=False)
class Clusters:
    """What k-means finds."""

    features: tuple[str, ...]  # What the bags were clustered by
    values: Reals  # Features of `n` bags, of shape `(n, f)`
    labels: Integers  # Cluster of each, of three, by descending mean of the second feature, of shape `(n,)`
    silhouettes: Reals  # Silhouette of each among three clusters, of shape `(n,)`
    scores: Mapping[int, float]  # Mean silhouette by number of clusters
    clusters: tuple[Cluster, ...]  # The three

    @property
    def best(self) -> int:
        """Number of clusters with the highest score."""
        return max(self.scores, key=lambda count: self.scores[count])

    @property
    def as_published(self) -> bool:
        """Whether three is best."""
        return self.best == PUBLISHED

    def to_dict(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {
            "features": list(self.features),
            "bags": len(self.values),
            "silhouette": {str(count): score for count, score in self.scores.items()},
            "best": self.best,
            "three_is_best": self.as_published,
            "clusters": [dict(vars(each)) for each in self.clusters],
        }


def cluster_bags(bags: Sequence[Bag], seed: int) -> Clusters | NotMade:
    """Cluster bags of any sizes, each feature scaled to 0 to 1, by k-means."""
    found = _different(bags)
    if len(found) <= COUNTS[-1]:
        return NotMade(f"clusters take more than {COUNTS[-1]} different bags with slowdowns")
    chosen: list[str] = []
    for names in _PLACES:
        counts = {name: _told(found, name) for name in names if name not in chosen}
        best = max(counts, key=lambda name: counts[name])
        if counts[best]:
            chosen.append(best)
    kept = [bag for bag in found if all(_value(bag, name) is not None for name in chosen)]
    if not chosen or len(kept) <= COUNTS[-1]:
        return NotMade("clusters take misses, bandwidth or utilisation of applications, and none is known")
    if len(kept) > _MOST:
        places = np.random.default_rng(seed).choice(len(kept), _MOST, replace=False)
        kept = [kept[place] for place in sorted(places.tolist())]
    values = np.array([[_value(bag, name) for name in (_FAIRNESS, *chosen)] for bag in kept], np.float64)
    span = np.ptp(values, axis=0)
    scaled = (values - values.min(axis=0)) / np.where(span > 0, span, 1.0)
    if len(np.unique(scaled, axis=0)) <= COUNTS[-1]:
        return NotMade(f"clusters take more than {COUNTS[-1]} bags that differ in what is known of them")
    names = (_FAIRNESS, *({**_SHARES, **_SUMS}[name] for name in chosen))
    return _clusters(kept, names, values, scaled, seed)


def _clusters(
    bags: Sequence[Bag], names: tuple[str, ...], values: Reals, scaled: Reals, seed: int
) -> Clusters:
    try:
        from sklearn.cluster import KMeans
        from sklearn.metrics import silhouette_samples
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingExtraError("train", "clustering") from error
    scores, three, silhouettes = {}, np.zeros(len(values), np.int64), np.zeros(len(values))
    with threadpool_limits(1):
        for count in COUNTS:
            labels = KMeans(count, n_init=10, random_state=seed % 2**31).fit_predict(scaled)
            each = silhouette_samples(scaled, labels)
            scores[count] = float(each.mean())
            if count == PUBLISHED:
                three, silhouettes = labels.astype(np.int64), each
    order = np.argsort([-values[three == label, 1].mean() for label in range(PUBLISHED)], kind="stable")
    three = np.argsort(order)[three]
    clusters = tuple(_cluster(bags, names, values, three == label, three) for label in range(PUBLISHED))
    return Clusters(names, values, three, silhouettes, scores, clusters)


def _cluster(
    bags: Sequence[Bag], names: Sequence[str], values: Reals, here: Any, labels: Integers
) -> Cluster:
    of_application: dict[str, list[bool]] = {}
    for bag, inside in zip(bags, here.tolist(), strict=True):
        for name in sorted(bag.applications):
            of_application.setdefault(name, []).append(inside)
    shares = {name: sum(flags) / len(flags) for name, flags in sorted(of_application.items())}
    most = max(shares, key=lambda name: shares[name])
    means = dict(zip(names, values[here].mean(axis=0).tolist(), strict=True))
    return Cluster(int(here.sum()), means, most, shares[most])


def _different(bags: Sequence[Bag]) -> list[Bag]:
    first: dict[tuple[tuple[str, str], ...], Bag] = {}
    for bag in bags:
        if not bag.failed and all(member.slowdown for member in bag.members):
            first.setdefault(tuple(sorted((solo.application, solo.size) for solo in bag.solos)), bag)
    return list(first.values())


def _value(bag: Bag, name: str) -> float | None:
    """A feature of a bag; ``None`` where it is not known."""
    if name == _FAIRNESS:
        slowdowns = [member.slowdown for member in bag.members if member.slowdown]
        return min(slowdowns) / max(slowdowns)
    known = [solo.features[name] for solo in bag.solos if name in solo.features]
    if len(known) < len(bag.members):
        return None
    return sum(known) / len(known) if name in _SHARES else sum(known)


def _told(bags: Sequence[Bag], name: str) -> int:
    """Of how many bags a feature is known; none if it is the same of all."""
    known = [value for bag in bags if (value := _value(bag, name)) is not None]
    return len(known) if len(set(known)) > 1 else 0


_SPLIT = "leave-benchmark-out"


@dataclass(frozen=True)
class Predicted:
    """Slowdowns of members on the other device, each benchmark left out of model and line."""

    model: str  # The model that predicts slowdowns on the first device
    form: str  # Form of the line
    # Its mean absolute percentage error there: of times of jobs in bags, and of slowdowns alike
    own_mape: float
    time_mape: float  # Errors of what is made of that on the other device
    slowdown_mape: float
    rows: int  # Members of bags


@dataclass(frozen=True)
class TranslationStudy:
    """From one device to another."""

    source: str  # Keys of the devices
    target: str
    applications: int  # How many were timed on both
    scores: tuple[TranslationScore, ...]  # Errors of lines alone
    predicted: tuple[Predicted, ...]  # Errors with a model, by form; none where no bags ran on both

    def to_dict(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {
            "from": self.source,
            "to": self.target,
            "applications": self.applications,
            "scores": [each.to_dict() for each in self.scores],
            "predicted": [dict(vars(each)) for each in self.predicted],
        }


def translation_studies(
    co_runs: CoRuns,
    device: str,
    model: CoRunModel,
    seed: int,
    *,
    progress: Progress | None,
    cache: Path | None,
    jobs: int,
) -> tuple[TranslationStudy, ...] | NotMade:
    """Translate from a device to each other one on which the same bags ran."""
    others = sorted({bag.device for bag in co_runs.bags} - {device})
    if not others:
        return NotMade("translation takes bags on at least two devices")
    found = []
    for target in others:
        try:
            shared = shared_times(co_runs, device, target)
            scores = translation_scores(shared)
        except InputError:
            # Too little ran on both.
            continue
        predicted = _predicted(co_runs, shared, model, seed, progress, cache, jobs)
        found.append(TranslationStudy(device, target, len(shared.names), tuple(scores), predicted))
    if not found:
        return NotMade(f"too few applications were timed on {device} and another device")
    return tuple(found)


def _predicted(
    co_runs: CoRuns,
    shared: SharedTimes,
    model: CoRunModel,
    seed: int,
    progress: Progress | None,
    cache: Path | None,
    jobs: int,
) -> tuple[Predicted, ...]:
    here = of_one_device(co_runs, shared.source)
    there = {bag_key(bag): bag for bag in co_runs.bags if bag.device == shared.target and not bag.failed}
    folds = folds_of(here.bags, _SPLIT, seed)
    tasks = [CoRunTask(model, fold, _SPLIT, 0, None, seed) for fold in folds]
    answers = answers_of(here, tasks, progress=progress, cache=cache, jobs=jobs)
    errors: dict[str, list[tuple[float, float, float]]] = {PLAIN: [], LOGARITHMIC: []}
    for fold, answer in zip(folds, answers, strict=True):
        left = ~shared.having(fold.held_out)
        lines = {form: TimeLine.fit(form, shared.source_s[left], shared.target_s[left]) for form in errors}
        slowdowns = iter(answer.values["slowdown"].tolist())
        for place in fold.test.tolist():
            bag = here.bags[place]
            values = np.array([next(slowdowns) for _ in bag.members])
            other = there.get(bag_key(bag))
            if other is None or bag.failed:
                continue
            for form, line in lines.items():
                errors[form] += _errors(line, bag, other, values)
    return tuple(
        _summary(model.name, form, 100 * np.mean(found, axis=0), len(found))
        for form, found in errors.items()
        if found
    )


def _summary(model: str, form: str, means: Reals, rows: int) -> Predicted:
    own, time, slowdown = means.tolist()
    return Predicted(model, form, own, time, slowdown, rows)


def _errors(line: TimeLine, here: Bag, there: Bag, slowdowns: Reals) -> list[tuple[float, float, float]]:
    """For each member: relative error of its slowdown here, and of its time and slowdown there."""
    rows = []
    for one, other, found in zip(here.members, there.members, slowdowns.tolist(), strict=True):
        a, b = one.solo.time_s, other.solo.time_s
        if not (a and b and one.slowdown and other.slowdown and np.isfinite(found)):
            continue
        time = float(line(np.array([a * found]))[0])
        slowdown = float(line.slowdown(np.array([a]), np.array([found]))[0])
        rows.append(
            (
                abs(found / one.slowdown - 1),
                abs(time / (b * other.slowdown) - 1),
                abs(slowdown / other.slowdown - 1),
            )
        )
    return rows


@dataclass(frozen=True, eq=False)
class CoRunStudies:
    """What paper 004 looks at besides, or why it could not be."""

    clusters: Clusters | NotMade  # Figures 4 and 5
    performance: CombinationStudy | NotMade  # Combinations of features: figures 7 and 8, and table 7
    power: CombinationStudy | NotMade
    performance_paths: PathStudy | NotMade  # Figures 9 and 10
    power_paths: PathStudy | NotMade
    sizes: SizeStudy | NotMade  # Section 8
    translations: tuple[TranslationStudy, ...] | NotMade  # Section 9, to each other device

    def to_dict(self) -> dict[str, Any]:
        """As an object of JSON; what could not be made says why."""
        return {
            name: [one.to_dict() for one in each] if isinstance(each, tuple) else each.to_dict()
            for name, each in vars(self).items()
        }


def make_studies(
    co_runs: CoRuns,
    chosen: CoRuns,
    models: Sequence[CoRunModel],
    seed: int,
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> CoRunStudies:
    """Make all studies that a dataset allows."""
    way: dict[str, Any] = {"progress": progress, "cache": cache, "jobs": jobs}
    tree = Published("decision-tree")
    # What is not published may predict any size.
    others = models_named([name for name in MODELS if name not in BASELINES])
    asked = [tree, *models, *(each for each in others if not isinstance(each, Published))]
    compared = list({model.name: model for model in asked}.values())
    return CoRunStudies(
        clusters=cluster_bags(chosen.bags, seed),
        performance=performance_combinations(chosen, seed, **way),
        power=power_combinations(chosen, seed, **way),
        performance_paths=performance_paths(chosen, seed),
        power_paths=power_paths(chosen, seed),
        sizes=sizes_study(chosen, compared, seed, **way),
        translations=translation_studies(
            co_runs, chosen.bags[0].device, models[0] if models else tree, seed, **way
        ),
    )


@dataclass(frozen=True, eq=False)
class CoRunStudy:
    """An evaluation with what belongs beside it."""

    evaluation: CoRunEvaluation  # The evaluation
    studies: CoRunStudies | None = None  # The studies of paper 004; `None` if they were not asked for

    def to_dict(self) -> dict[str, Any]:
        """Everything but predictions, as ``--json`` prints it: what is not known is null."""
        evaluation = self.evaluation
        co_runs = evaluation.co_runs
        told = {
            "dataset": co_runs.label,
            "target": "corun",
            "protocol": evaluation.split,
            "seed": evaluation.seed,
            "level": evaluation.level,
            "device": co_runs.bags[0].device,
            "configuration": co_runs.bags[0].configuration,
            "bags": len(co_runs.bags),
            "failed_bags": sum(bag.failed for bag in co_runs.bags),
            "applications": list(co_runs.applications),
            "results": [result.to_dict() for result in evaluation.results],
        }
        return told if self.studies is None else {**told, "studies": self.studies.to_dict()}


def study_corun(
    co_runs: CoRuns,
    models: Sequence[CoRunModel],
    split: str,
    *,
    baselines: Sequence[CoRunModel] = (),
    device: str | None = None,
    probes: Sequence[int] = (0,),
    level: float | None = 0.9,
    studies: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> CoRunStudy:
    """Evaluate models on the bags of one device, and make the studies."""
    chosen = of_one_device(co_runs, device)
    evaluation = evaluate_corun(
        chosen,
        [*models, *baselines],
        split,
        baselines=[each.name for each in baselines],
        probes=probes,
        level=level,
        seed=seed,
        progress=progress,
        cache=cache,
        jobs=jobs,
    )
    if not studies:
        return CoRunStudy(evaluation)
    return CoRunStudy(
        evaluation,
        make_studies(co_runs, chosen, models, seed, progress=progress, cache=cache, jobs=jobs),
    )
