"""What Moolchandani et al. 2022 look at besides errors: clusters, features, sizes and other devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Unpack

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import Bag, CoRuns
from crosscast.data.corun import co_runs as mixes_of
from crosscast.data.dataset import Dataset
from crosscast.errors import InputError, importing
from crosscast.evaluation.corun.evaluation import (
    CoRunEvaluation,
    CoRunTask,
    answers_of,
    evaluate_corun,
    folds_of,
    of_one_device,
    results_of,
    with_mixes,
)
from crosscast.evaluation.corun.translation import (
    SharedTimes,
    TranslationScore,
    mix_key,
    shared_times,
    translation_scores,
)
from crosscast.evaluation.loop import Fold, RunArguments
from crosscast.prediction.corun.forecast import CoRunModel
from crosscast.prediction.corun.models import BASELINES, DEFAULT_MODEL, MODELS, models_named
from crosscast.prediction.corun.moolchandani2022 import Published
from crosscast.prediction.corun.moolchandani2022_features import count_known
from crosscast.prediction.corun.training import applications_in
from crosscast.prediction.corun.translation import LOGARITHMIC, PLAIN, Form, TimeLine
from crosscast.results import Tabular
from crosscast.studies.moolchandani2022_features import (
    CombinationStudy,
    PathStudy,
    combination_study,
    path_study,
)
from crosscast.studies.moolchandani2022_published import PUBLISHED_COUNT

CLUSTER_COUNTS = range(2, 9)
"""Numbers of clusters that are tried."""

OWN, ALL = "mixes of that size", "mixes of all sizes"
"""What models were fitted to; the third is mixes of the smallest size alone."""

_FAIRNESS = "fairness"
_MOST = 2000
"""Mixes that are clustered: silhouettes take the distances of all pairs."""

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

_SPLIT, _SHOWN = "leave-benchmark-out", ("slowdown", "time", "power")


@dataclass(frozen=True)
class MixCluster:
    """One of the three clusters."""

    bags: int  # Mixes in it
    means: Mapping[str, float]  # Mean of each feature
    application: str  # The one most of whose mixes are in this cluster
    share: float  # Share of its mixes that are


@dataclass(frozen=True, eq=False)
class ClusterStudy:
    """Clusters of mixes by fairness and misses, and how tight they are (figures 4 and 5)."""

    features: tuple[str, ...]  # What the mixes were clustered by
    values: Reals  # Features of `n` mixes, of shape `(n, f)`
    labels: Integers  # Cluster of each, of three, by descending mean of the second feature, of shape `(n,)`
    silhouettes: Reals  # Silhouette of each among three clusters, of shape `(n,)`
    scores: Mapping[int, float]  # Mean silhouette by number of clusters
    clusters: tuple[MixCluster, ...]  # The three

    @property
    def best(self) -> int:
        """Number of clusters with the highest score."""
        return max(self.scores, key=lambda count: self.scores[count])

    @property
    def as_published(self) -> bool:
        """Whether three is best."""
        return self.best == PUBLISHED_COUNT

    def to_dict(self) -> dict[str, object]:
        """As an object of JSON."""
        return {
            "features": list(self.features),
            "bags": len(self.values),
            "silhouette": {str(count): score for count, score in self.scores.items()},
            "best": self.best,
            "three_is_best": self.as_published,
            "clusters": [dict(vars(each)) for each in self.clusters],
        }


def cluster_mixes(bags: Sequence[Bag], seed: int) -> ClusterStudy | str:
    """Cluster mixes of any sizes, each feature scaled to 0 to 1, by k-means; or why they cannot be.

    The paper has the misses of the mixes themselves. Here a mix's share of misses is the mean of its
    co-runners' alone. Where there are no counters, what these do to the microbenchmark High, their traffic,
    or how much of the device they use, all summed, stands in for them.
    """
    most = CLUSTER_COUNTS[-1]
    first: dict[tuple[tuple[str, str], ...], Bag] = {}
    for bag in bags:
        if not bag.failed and all(member.slowdown for member in bag.members):
            first.setdefault(tuple(sorted((solo.application, solo.size) for solo in bag.solos)), bag)
    if len(first) <= most:
        return f"clusters take more than {most} different bags with slowdowns"
    chosen: list[str] = []
    for names in _PLACES:
        counts = {
            name: count_known([_value(bag, name) for bag in first.values()])
            for name in names
            if name not in chosen
        }
        best = max(counts, key=lambda name: counts[name])
        chosen += [best] if counts[best] else []
    every = np.array([[_value(bag, name) for name in (_FAIRNESS, *chosen)] for bag in first.values()])
    places = np.flatnonzero(~np.isnan(every).any(axis=1))
    if not chosen or len(places) <= most:
        return "clusters take misses, bandwidth or utilisation of applications, and none is known"
    if len(places) > _MOST:
        places = np.sort(np.random.default_rng(seed).choice(places, _MOST, replace=False))
    kept, values = [list(first.values())[place] for place in places], every[places]
    span = np.ptp(values, axis=0)
    scaled = (values - values.min(axis=0)) / np.where(span > 0, span, 1.0)
    if len(np.unique(scaled, axis=0)) <= most:
        return f"clusters take more than {most} bags that differ in what is known of them"
    titles = (_FAIRNESS, *({**_SHARES, **_SUMS}[name] for name in chosen))
    labels, silhouettes, scores = _k_means(scaled, seed)
    order = np.argsort(
        [-values[labels == label, 1].mean() for label in range(PUBLISHED_COUNT)], kind="stable"
    )
    labels = np.argsort(order)[labels]
    clusters = tuple(_cluster(kept, titles, values, labels == label) for label in range(PUBLISHED_COUNT))
    return ClusterStudy(titles, values, labels, silhouettes, scores, clusters)


def _k_means(scaled: Reals, seed: int) -> tuple[Integers, Reals, dict[int, float]]:
    """Labels and silhouettes of three clusters, and the mean silhouette by number of clusters."""
    with importing("train", "clustering"):
        from sklearn.cluster import KMeans
        from sklearn.metrics import silhouette_samples
        from threadpoolctl import threadpool_limits
    labels, silhouettes, scores = {}, {}, {}
    with threadpool_limits(1):
        for count in CLUSTER_COUNTS:
            labels[count] = KMeans(count, n_init=10, random_state=seed % 2**31).fit_predict(scaled)
            silhouettes[count] = silhouette_samples(scaled, labels[count])
            scores[count] = float(silhouettes[count].mean())
    return labels[PUBLISHED_COUNT].astype(np.int64), silhouettes[PUBLISHED_COUNT], scores


def _cluster(bags: Sequence[Bag], titles: Sequence[str], values: Reals, here: Flags) -> MixCluster:
    names, there = sorted({name for bag in bags for name in bag.applications}), applications_in(bags)
    shares = there[here].sum(axis=0) / there.sum(axis=0)
    most = int(shares.argmax())
    means = dict(zip(titles, values[here].mean(axis=0).tolist(), strict=True))
    return MixCluster(int(here.sum()), means, names[most], float(shares[most]))


def _value(bag: Bag, name: str) -> float:
    """A feature of a mix; not a number where it is not known."""
    if name == _FAIRNESS:
        slowdowns = [member.slowdown for member in bag.members if member.slowdown]
        return min(slowdowns) / max(slowdowns)
    known = [solo.features[name] for solo in bag.solos if name in solo.features]
    if len(known) < len(bag.members):
        return np.nan
    return sum(known) / len(known) if name in _SHARES else sum(known)


@dataclass(frozen=True)
class SizeResult:
    """Error of a model at mixes of one size."""

    model: str  # Its name
    fitted_to: str  # `OWN`, `ALL`, or mixes of the smallest size alone
    bag_size: int
    quantity: str
    rows: int  # How many values were predicted
    mape: float  # Mean absolute relative error, a fraction


@dataclass(frozen=True, eq=False)
class SizeStudy:
    """Models on mixes of several sizes, each benchmark left out (section 8)."""

    sizes: tuple[int, ...]  # Co-runners of the mixes, ascending
    results: tuple[SizeResult, ...]  # By quantity, model, what it was fitted to, and size
    of_one_size: tuple[str, ...]  # Models that predict mixes of the sizes that they were fitted to alone

    def to_dict(self) -> dict[str, object]:
        """As an object of JSON."""
        return {
            "sizes": list(self.sizes),
            "one_predictor_a_size": list(self.of_one_size),
            "results": [dict(vars(each)) for each in self.results],
        }


def size_study(
    co_runs: CoRuns, models: Sequence[CoRunModel], seed: int, **run: Unpack[RunArguments]
) -> SizeStudy | str:
    """Fit models to mixes of the size that is asked for, of all sizes, and of the smallest size alone."""
    counts = np.array([len(bag.members) for bag in co_runs.bags], dtype=np.int64)
    sizes = tuple(size for size in np.unique(counts).tolist() if size > 1)
    if len(sizes) < 2:
        found = f"all have {sizes[0]} members" if sizes else "there are none"
        return f"sizes take mixes of at least two sizes, and {found}"
    folds = folds_of(co_runs.bags, _SPLIT, seed)
    ways = {OWN: None, ALL: counts > 1, f"mixes of {sizes[0]} alone": counts == sizes[0]}
    # The paper's models have a predictor a size.
    of_one_size = tuple(model.name for model in models if isinstance(model, Published))
    asked = [
        (model, way, _folds(folds, counts == size if train is None else train, counts == size))
        for model in models
        for way, train in ways.items()
        for size in sizes
        if way == OWN or (model.name not in of_one_size and (way == ALL or size > sizes[0]))
    ]
    tasks = [CoRunTask(model, fold, seed, _SPLIT, 0, None) for model, _, parts in asked for fold in parts]
    answers = iter(answers_of(co_runs, tasks, **run))
    results = [
        SizeResult(model.name, way, each["bag_size"], each["quantity"], each["rows"], each["mape"])
        for model, way, parts in asked
        if parts
        for each in results_of(co_runs, parts, [next(answers) for _ in parts])
        if each["bag_size"] and each["quantity"] in _SHOWN
    ]
    results.sort(key=lambda each: _SHOWN.index(each.quantity))
    return SizeStudy(sizes, tuple(results), of_one_size)


def _folds(folds: Sequence[Fold], train: Flags, test: Flags) -> list[Fold]:
    """The same folds with some of the mixes; none where nothing is left to fit to, or to test on."""
    cut = (Fold(each.held_out, each.train[train[each.train]], each.test[test[each.test]]) for each in folds)
    return [fold for fold in cut if len(fold.train) and len(fold.test)]


@dataclass(frozen=True)
class TranslatedErrors:
    """Errors of slowdowns on the other device, each benchmark left out of model and line."""

    model: str  # The model that predicts slowdowns on the first device
    form: str  # Form of the line
    own_mape: float  # Its mean absolute relative error there: of times in mixes, and of slowdowns alike
    time_mape: float  # Errors of what is made of that on the other device
    slowdown_mape: float
    rows: int  # Co-runners


@dataclass(frozen=True)
class TranslationStudy:
    """Times from one device to another (section 9)."""

    source: str  # Keys of the devices
    target: str
    applications: int  # How many were timed on both
    scores: tuple[TranslationScore, ...]  # Errors of lines alone
    predicted: tuple[TranslatedErrors, ...]  # Errors with a model, by form; none where no mixes ran on both

    def to_dict(self) -> dict[str, object]:
        """As an object of JSON."""
        return {
            "from": self.source,
            "to": self.target,
            "applications": self.applications,
            "scores": [each.to_dict() for each in self.scores],
            "predicted": [dict(vars(each)) for each in self.predicted],
        }


def translation_studies(
    co_runs: CoRuns, device: str, model: CoRunModel, seed: int, **run: Unpack[RunArguments]
) -> tuple[TranslationStudy, ...] | str:
    """Translate from a device to each other one on which the same mixes ran."""
    others = sorted({bag.device for bag in co_runs.bags} - {device})
    if not others:
        return "translation takes bags on at least two devices"
    found = []
    for target in others:
        try:
            shared = shared_times(co_runs, device, target)
            scores = translation_scores(shared)
        except InputError:
            # Too little ran on both.
            continue
        predicted = _translated_errors(co_runs, shared, model, seed, run)
        found.append(TranslationStudy(device, target, len(shared.names), tuple(scores), predicted))
    return tuple(found) or f"too few applications were timed on {device} and another device"


def _translated_errors(
    co_runs: CoRuns, shared: SharedTimes, model: CoRunModel, seed: int, run: RunArguments
) -> tuple[TranslatedErrors, ...]:
    here = of_one_device(co_runs, shared.source)
    there = {mix_key(bag): bag for bag in co_runs.bags if bag.device == shared.target and not bag.failed}
    folds = folds_of(here.bags, _SPLIT, seed)
    tasks = [CoRunTask(model, fold, seed, _SPLIT, 0, None) for fold in folds]
    errors: dict[Form, list[Reals]] = {PLAIN: [], LOGARITHMIC: []}
    for fold, answer in zip(folds, answers_of(here, tasks, **run), strict=True):
        left = ~shared.having(fold.held_out)
        slowdowns = iter(answer["slowdown"].tolist())
        rows = []
        for bag in with_mixes(here, fold.test).bags:
            predicted = [next(slowdowns) for _ in bag.members]
            other = there.get(mix_key(bag))
            if other is not None and not bag.failed:
                for one, two, found in zip(bag.members, other.members, predicted, strict=True):
                    rows.append((one.solo.time_s, two.solo.time_s, one.slowdown, two.slowdown, found))
        known = np.array(rows, dtype=np.float64).reshape(-1, 5)
        a, b, own, elsewhere, found = known[np.isfinite(known).all(axis=1) & (known[:, :4] > 0).all(axis=1)].T
        for form, every in errors.items():
            line = TimeLine.fit(form, shared.source_s[left], shared.target_s[left])
            said = np.array([found, line(a * found), line.slowdown(a, found)])
            every.append(np.abs(said / [own, b * elsewhere, elsewhere] - 1))
    whole = {form: np.concatenate(parts, axis=1) for form, parts in errors.items()}
    return tuple(
        TranslatedErrors(model.name, form, own, time, slowdown, every.shape[1])
        for form, every in whole.items()
        if every.size
        for own, time, slowdown in [every.mean(axis=1).tolist()]
    )


@dataclass(frozen=True, eq=False)
class CoRunStudies:
    """What the paper looks at besides; a reason in the place of each study that could not be run."""

    clusters: ClusterStudy | str  # Figures 4 and 5
    performance: CombinationStudy | str  # Combinations of features: figures 7 and 8, and table 7
    power: CombinationStudy | str
    performance_paths: PathStudy | str  # Figures 9 and 10
    power_paths: PathStudy | str
    sizes: SizeStudy | str  # Section 8
    translations: tuple[TranslationStudy, ...] | str  # Section 9, to each other device

    def to_dict(self) -> dict[str, object]:
        """As an object of JSON; what could not be run says why."""
        return {name: _told(study) for name, study in vars(self).items()}


class _Study(Protocol):
    def to_dict(self) -> dict[str, object]: ...


def _told(study: _Study | tuple[_Study, ...] | str) -> object:
    if isinstance(study, tuple):
        return [each.to_dict() for each in study]
    return {"not_made": study} if isinstance(study, str) else study.to_dict()


def run_studies(
    co_runs: CoRuns, chosen: CoRuns, models: Sequence[CoRunModel], seed: int, **run: Unpack[RunArguments]
) -> CoRunStudies:
    """Run all studies that the mixes of the chosen device allow; the rest is as `run_tasks` has it."""
    tree = Published("decision-tree")
    others = models_named([name for name in MODELS if name not in BASELINES])
    asked = [tree, *models, *(each for each in others if not isinstance(each, Published))]
    compared = list({model.name: model for model in asked}.values())
    return CoRunStudies(
        clusters=cluster_mixes(chosen.bags, seed),
        performance=combination_study(chosen, "performance", seed, **run),
        power=combination_study(chosen, "power", seed, **run),
        performance_paths=path_study(chosen, "performance", seed, **run),
        power_paths=path_study(chosen, "power", seed, **run),
        sizes=size_study(chosen, compared, seed, **run),
        translations=translation_studies(
            co_runs, chosen.bags[0].device, models[0] if models else tree, seed, **run
        ),
    )


@dataclass(frozen=True, eq=False)
class CoRunStudy(Tabular):
    """An evaluation with what belongs beside it."""

    evaluation: CoRunEvaluation  # The evaluation
    studies: CoRunStudies | None = None  # `None` if they were not asked for

    def columns(self) -> dict[str, list[object]]:
        """A row for each result of the evaluation."""
        return self.evaluation.columns()

    def to_dict(self) -> dict[str, object]:
        """Everything but predictions, as ``--json`` prints it: what is not known is null."""
        told = self.evaluation.to_dict()
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
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> CoRunStudy:
    """Evaluate models on the mixes of one device, and run the studies; `run` is as `run_tasks` takes it."""
    chosen = of_one_device(co_runs, device)
    evaluation = evaluate_corun(
        chosen,
        [*models, *baselines],
        split,
        baselines=[each.name for each in baselines],
        probes=probes,
        level=level,
        seed=seed,
        **run,
    )
    return CoRunStudy(evaluation, run_studies(co_runs, chosen, models, seed, **run))


def reproduce(
    dataset: Dataset, *, device: str | None = None, seed: int = 0, **run: Unpack[RunArguments]
) -> CoRunStudy:
    """The models of the paper beside ours, each application held out, and its studies."""
    names = [DEFAULT_MODEL, *(name for name in MODELS if name.startswith("published-"))]
    models, baselines = models_named(names), models_named(BASELINES)
    every_mix = mixes_of(dataset)
    return study_corun(every_mix, models, _SPLIT, baselines=baselines, device=device, seed=seed, **run)
