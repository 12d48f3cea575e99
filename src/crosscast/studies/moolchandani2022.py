"""The studies of Moolchandani et al. 2022 besides errors: clusters, features, sizes and other devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import CoRuns, MeasuredMix
from crosscast.data.corun import co_runs as mixes_of
from crosscast.data.dataset import Dataset
from crosscast.errors import InputError, importing
from crosscast.evaluation.corun.evaluation import (
    CoRunEvaluation,
    CoRunResult,
    CoRunTask,
    answers_of,
    evaluate_corun,
    folds_of,
    of_one_device,
    results_of,
    with_mixes,
)
from crosscast.evaluation.loop import Fold, RunArguments
from crosscast.prediction.corun import CoRunModel
from crosscast.prediction.corun.features import count_known
from crosscast.prediction.corun.models import BASELINES, DEFAULT_MODEL, MODELS, models_named
from crosscast.prediction.corun.moolchandani2022 import Published
from crosscast.prediction.corun.training import applications_in
from crosscast.prediction.corun.translation import (
    LOGARITHMIC,
    PLAIN,
    Form,
    SharedTimes,
    TimeLine,
    TranslationScore,
    mix_key,
    shared_times,
    translation_scores,
)
from crosscast.prediction.trained import single_threaded
from crosscast.results import Tabular
from crosscast.studies.moolchandani2022_features import (
    PUBLISHED_COUNT,
    CombinationStudy,
    PathStudy,
    combination_study,
    path_study,
)

CLUSTER_COUNTS = range(2, 9)
"""Numbers of clusters that are tried."""

SAME_SIZE, ALL_SIZES = "mixes of that size", "mixes of all sizes"
"""Training sets of models; the third is mixes of the smallest size alone."""

_FAIRNESS = "fairness"
_MOST_MIXES = 2000
"""Largest number of mixes that are clustered, as silhouettes need the distances of all pairs."""

_SHARES = {"llc_miss": "LLC misses", "l1_miss": "L1 misses"}
_SUMS = {
    "inflicted_high": "slowdown of High, summed",
    "bandwidth_bytes_per_s": "bandwidth in bytes/s, summed",
    "memory_utilisation": "memory utilisation, summed",
    "utilisation": "utilisation, summed",
}
_CANDIDATES: tuple[tuple[str, ...], ...] = (
    ("llc_miss", "inflicted_high", "bandwidth_bytes_per_s", "memory_utilisation"),
    ("l1_miss", "bandwidth_bytes_per_s", "utilisation"),
)
"""Candidates for the second and the third feature, the published one first."""

_SPLIT, _SHOWN = "leave-benchmark-out", ("slowdown", "time", "power")


@dataclass(frozen=True)
class MixCluster:
    """One of the three clusters."""

    mixes: int  # Number of its mixes
    means: Mapping[str, float]  # Mean of each feature
    application: str  # Application with the largest share of its mixes in this cluster
    share: float  # That share


@dataclass(frozen=True, eq=False)
class ClusterStudy:
    """Clusters of mixes by fairness and misses, and their silhouettes (figures 4 and 5)."""

    features: tuple[str, ...]  # Features by which the mixes were clustered
    mixes: int  # Number of mixes
    scores: Mapping[int, float]  # Mean silhouette by number of clusters
    clusters: tuple[MixCluster, ...]  # The three, by descending mean of the second feature

    @property
    def best(self) -> int:
        """Number of clusters with the highest score."""
        return max(self.scores, key=lambda count: self.scores[count])

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        return {
            "features": list(self.features),
            "mixes": self.mixes,
            "silhouette": {str(count): score for count, score in self.scores.items()},
            "best": self.best,
            "three_is_best": self.best == PUBLISHED_COUNT,
            "clusters": [dict(vars(cluster)) for cluster in self.clusters],
        }


def cluster_mixes(mixes: Sequence[MeasuredMix], seed: int) -> ClusterStudy | str:
    """Cluster mixes of any sizes by k-means, each feature scaled to 0 to 1; or say why that is impossible.

    The paper measured the misses of the mixes. Here a mix's share of misses is the mean over its co-runners
    alone. Without counters, it is replaced by the sum over the co-runners of the slowdown of the
    microbenchmark High, of the bandwidth, or of the utilisation.
    """
    most = CLUSTER_COUNTS[-1]
    first: dict[tuple[tuple[str, str], ...], MeasuredMix] = {}
    for mix in mixes:
        if not mix.failed and all(member.slowdown for member in mix.members):
            first.setdefault(tuple(sorted((run.application, run.size) for run in mix.isolated_runs)), mix)
    if len(first) <= most:
        return f"clusters take more than {most} different mixes with slowdowns"
    chosen: list[str] = []
    for names in _CANDIDATES:
        known = {name: count_known([_value(mix, name) for mix in first.values()]) for name in names}
        best = max((name for name in names if name not in chosen), key=known.__getitem__)
        chosen += [best] if known[best] else []
    table = np.array([[_value(mix, name) for name in (_FAIRNESS, *chosen)] for mix in first.values()])
    indices = np.flatnonzero(~np.isnan(table).any(axis=1))
    if not chosen or len(indices) <= most:
        return "clusters take misses, bandwidth or utilisation of applications, and none is known"
    if len(indices) > _MOST_MIXES:
        indices = np.sort(np.random.default_rng(seed).choice(indices, _MOST_MIXES, replace=False))
    mixes, values = [list(first.values())[index] for index in indices], table[indices]
    span = np.ptp(values, axis=0)
    scaled = (values - values.min(axis=0)) / np.where(span > 0, span, 1.0)
    if len(np.unique(scaled, axis=0)) <= most:
        return f"clusters take more than {most} mixes that differ in what is known of them"
    titles = (_FAIRNESS, *({**_SHARES, **_SUMS}[name] for name in chosen))
    labels, scores = _k_means(scaled, seed)
    order = sorted(range(PUBLISHED_COUNT), key=lambda label: -values[labels == label, 1].mean())
    clusters = tuple(_cluster(mixes, titles, values, labels == label) for label in order)
    return ClusterStudy(titles, len(values), scores, clusters)


def _k_means(scaled: Reals, seed: int) -> tuple[Integers, dict[int, float]]:
    """Labels of three clusters, and the mean silhouette by number of clusters."""
    with importing("train", "clustering"):
        from sklearn.cluster import KMeans
        from sklearn.metrics import silhouette_score
    labels, scores = {}, {}
    with single_threaded():
        for count in CLUSTER_COUNTS:
            labels[count] = KMeans(count, n_init=10, random_state=seed % 2**31).fit_predict(scaled)
            scores[count] = float(silhouette_score(scaled, labels[count]))
    return labels[PUBLISHED_COUNT].astype(np.int64), scores


def _cluster(mixes: Sequence[MeasuredMix], titles: Sequence[str], values: Reals, mask: Flags) -> MixCluster:
    names, counts = sorted({name for mix in mixes for name in mix.applications}), applications_in(mixes)
    shares = counts[mask].sum(axis=0) / counts.sum(axis=0)
    most = int(shares.argmax())
    means = dict(zip(titles, values[mask].mean(axis=0).tolist(), strict=True))
    return MixCluster(int(mask.sum()), means, names[most], float(shares[most]))


def _value(mix: MeasuredMix, name: str) -> float:
    """Feature of a mix; NaN where it is not known."""
    if name == _FAIRNESS:
        slowdowns = [member.slowdown for member in mix.members if member.slowdown]
        return min(slowdowns) / max(slowdowns)
    known = [run.features[name] for run in mix.isolated_runs if name in run.features]
    if len(known) < len(mix.members):
        return np.nan
    return sum(known) / len(known) if name in _SHARES else sum(known)


@dataclass(frozen=True)
class SizeResult:
    """Error of a model at mixes of one size."""

    model: str  # Its name
    fitted_to: str  # `SAME_SIZE`, `ALL_SIZES`, or mixes of the smallest size alone
    mix_size: int
    quantity: str
    rows: int  # Number of predicted values
    mape: float  # Mean absolute relative error, a fraction


@dataclass(frozen=True, eq=False)
class SizeStudy:
    """Models on mixes of several sizes, each benchmark left out (section 8)."""

    sizes: tuple[int, ...]  # Co-runners of the mixes, ascending
    results: tuple[SizeResult, ...]  # By quantity, model, training set, and size
    of_one_size: tuple[str, ...]  # Models that can predict only mixes of the size that they were fitted to

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        return {
            "sizes": list(self.sizes),
            "one_predictor_a_size": list(self.of_one_size),
            "results": [dict(vars(result)) for result in self.results],
        }


def size_study(
    co_runs: CoRuns, models: Sequence[CoRunModel], seed: int, **run: Unpack[RunArguments]
) -> SizeStudy | str:
    """Fit models to mixes of the predicted size, of all sizes, and of the smallest size alone."""
    counts = np.array([len(mix.members) for mix in co_runs.mixes], dtype=np.int64)
    sizes = tuple(size for size in np.unique(counts).tolist() if size > 1)
    if len(sizes) < 2:
        reason = f"all have {sizes[0]} members" if sizes else "there are none"
        return f"sizes take mixes of at least two sizes, and {reason}"
    folds = folds_of(co_runs.mixes, _SPLIT, seed)
    training_sets = {
        SAME_SIZE: None,
        ALL_SIZES: counts > 1,
        f"mixes of {sizes[0]} alone": counts == sizes[0],
    }
    # The paper's models have a separate predictor for each size.
    of_one_size = tuple(model.name for model in models if model.is_by_size)
    cases = [
        (model, fitted_to, _folds(folds, counts == size if train is None else train, counts == size))
        for model in models
        for fitted_to, train in training_sets.items()
        for size in sizes
        if fitted_to == SAME_SIZE
        or (model.name not in of_one_size and (fitted_to == ALL_SIZES or size > sizes[0]))
    ]
    tasks = [CoRunTask(model, fold, seed, _SPLIT, 0, None) for model, _, parts in cases for fold in parts]
    answers = iter(answers_of(co_runs, tasks, **run))
    results = [
        SizeResult(model.name, fitted_to, row.mix_size, row.quantity, row.rows, row.mape)
        for model, fitted_to, parts in cases
        if parts
        for row in results_of(
            co_runs, parts, [next(answers) for _ in parts], CoRunResult(model.name, False, _SPLIT, 0)
        )
        if row.mix_size and row.mape is not None and row.quantity in _SHOWN
    ]
    results.sort(key=lambda result: _SHOWN.index(result.quantity))
    return SizeStudy(sizes, tuple(results), of_one_size)


def _folds(folds: Sequence[Fold], train: Flags, test: Flags) -> list[Fold]:
    """Restrict folds to some of the mixes; drop those without training or test mixes."""
    restricted = (
        Fold(fold.held_out, fold.train[train[fold.train]], fold.test[test[fold.test]]) for fold in folds
    )
    return [fold for fold in restricted if len(fold.train) and len(fold.test)]


@dataclass(frozen=True)
class TranslatedErrors:
    """Errors of predictions translated to another device, each benchmark left out of model and line."""

    model: str  # The model that predicts slowdowns on the first device
    form: str  # Form of the line
    own_mape: float  # Mean absolute relative error on the first device, equal for times and slowdowns
    time_mape: float  # Errors of the translated times and slowdowns on the other device
    slowdown_mape: float
    rows: int  # Number of co-runners


@dataclass(frozen=True)
class TranslationStudy:
    """Translation of times from one device to another (section 9)."""

    source: str  # Keys of the devices
    target: str
    applications: int  # Number of applications timed on both
    scores: tuple[TranslationScore, ...]  # Errors of lines alone
    predicted: tuple[TranslatedErrors, ...]  # Errors with a model, by form; none where no mixes ran on both

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        return {
            "from": self.source,
            "to": self.target,
            "applications": self.applications,
            "scores": [score.to_dict() for score in self.scores],
            "predicted": [dict(vars(errors)) for errors in self.predicted],
        }


def translation_studies(
    co_runs: CoRuns, device: str, model: CoRunModel, seed: int, **run: Unpack[RunArguments]
) -> tuple[TranslationStudy, ...] | str:
    """Translate from a device to each other device on which the same mixes ran."""
    others = sorted({mix.device for mix in co_runs.mixes} - {device})
    if not others:
        return "translation takes mixes on at least two devices"
    studies = []
    for target in others:
        try:
            shared = shared_times(co_runs, device, target)
            scores = translation_scores(shared)
        except InputError:
            # Too few applications ran on both.
            continue
        predicted = _translated_errors(co_runs, shared, model, seed, run)
        studies.append(TranslationStudy(device, target, len(shared.names), tuple(scores), predicted))
    return tuple(studies) or f"too few applications were timed on {device} and another device"


def _translated_errors(
    co_runs: CoRuns, shared: SharedTimes, model: CoRunModel, seed: int, run: RunArguments
) -> tuple[TranslatedErrors, ...]:
    source = of_one_device(co_runs, shared.source)
    on_target = {mix_key(mix): mix for mix in co_runs.mixes if mix.device == shared.target and not mix.failed}
    folds = folds_of(source.mixes, _SPLIT, seed)
    tasks = [CoRunTask(model, fold, seed, _SPLIT, 0, None) for fold in folds]
    errors: dict[Form, list[Reals]] = {PLAIN: [], LOGARITHMIC: []}
    for fold, answer in zip(folds, answers_of(source, tasks, **run), strict=True):
        training = ~shared.having(fold.held_out)
        slowdowns = iter(answer["slowdown"].tolist())
        rows = []
        for mix in with_mixes(source, fold.test).mixes:
            predicted = [next(slowdowns) for _ in mix.members]
            other = on_target.get(mix_key(mix))
            if other is not None and not mix.failed:
                for one, two, slowdown in zip(mix.members, other.members, predicted, strict=True):
                    times_s = one.isolated_run.time_s, two.isolated_run.time_s
                    rows.append((*times_s, one.slowdown, two.slowdown, slowdown))
        table = np.array(rows, dtype=np.float64).reshape(-1, 5)
        is_known = np.isfinite(table).all(axis=1) & (table[:, :4] > 0).all(axis=1)
        source_s, target_s, source_slowdown, target_slowdown, forecast = table[is_known].T
        for form, by_fold in errors.items():
            line = TimeLine.fit(form, shared.source_s[training], shared.target_s[training])
            values = np.array([forecast, line(source_s * forecast), line.slowdown(source_s, forecast)])
            measured = [source_slowdown, target_s * target_slowdown, target_slowdown]
            by_fold.append(np.abs(values / measured - 1))
    joined = {form: np.concatenate(parts, axis=1) for form, parts in errors.items()}
    return tuple(
        TranslatedErrors(model.name, form, source_mape, time_mape, slowdown_mape, all_errors.shape[1])
        for form, all_errors in joined.items()
        if all_errors.size
        for source_mape, time_mape, slowdown_mape in [all_errors.mean(axis=1).tolist()]
    )


@dataclass(frozen=True, eq=False)
class CoRunStudies:
    """The paper's studies besides errors; instead of a study that could not be made, the reason."""

    clusters: ClusterStudy | str  # Figures 4 and 5
    performance: CombinationStudy | str  # Combinations of features: figures 7 and 8, and table 7
    power: CombinationStudy | str
    performance_paths: PathStudy | str  # Figures 9 and 10
    power_paths: PathStudy | str
    sizes: SizeStudy | str  # Section 8
    translations: tuple[TranslationStudy, ...] | str  # Section 9, to each other device

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints; a study that could not be made is its reason."""
        return {name: _plain(study) for name, study in vars(self).items()}


def _plain(study: Any) -> object:
    if isinstance(study, tuple):
        return [part.to_dict() for part in study]
    return {"not_made": study} if isinstance(study, str) else study.to_dict()


def run_studies(
    co_runs: CoRuns, chosen: CoRuns, models: Sequence[CoRunModel], seed: int, **run: Unpack[RunArguments]
) -> CoRunStudies:
    """Make all studies that the chosen device's mixes allow; `run` are arguments of `run_tasks`."""
    tree = Published("decision-tree")
    others = models_named([name for name in MODELS if name not in BASELINES])
    candidates = [tree, *models, *(model for model in others if not model.is_by_size)]
    compared = list({model.name: model for model in candidates}.values())
    return CoRunStudies(
        clusters=cluster_mixes(chosen.mixes, seed),
        performance=combination_study(chosen, "performance", seed, **run),
        power=combination_study(chosen, "power", seed, **run),
        performance_paths=path_study(chosen, "performance", seed, **run),
        power_paths=path_study(chosen, "power", seed, **run),
        sizes=size_study(chosen, compared, seed, **run),
        translations=translation_studies(
            co_runs, chosen.mixes[0].device, models[0] if models else tree, seed, **run
        ),
    )


@dataclass(frozen=True, eq=False)
class CoRunStudy(Tabular):
    """An evaluation, and studies."""

    evaluation: CoRunEvaluation
    studies: CoRunStudies

    def columns(self) -> dict[str, list[object]]:
        """A row for each result of the evaluation."""
        return self.evaluation.columns()

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints, without predictions; unknown values are null."""
        return {**self.evaluation.to_dict(), "studies": self.studies.to_dict()}


def reproduce(dataset: Dataset, *, seed: int = 0, **run: Unpack[RunArguments]) -> CoRunStudy:
    """Evaluate the paper's models and ours on one device's mixes, and make the studies.

    Each application is held out; `run` are arguments of `run_tasks`.
    """
    names = [DEFAULT_MODEL, *(name for name in MODELS if name.startswith("published-"))]
    models, baselines = models_named(names), models_named(BASELINES)
    co_runs = mixes_of(dataset)
    chosen = of_one_device(co_runs)
    evaluation = evaluate_corun(chosen, [*models, *baselines], _SPLIT, baselines=BASELINES, seed=seed, **run)
    return CoRunStudy(evaluation, run_studies(co_runs, chosen, models, seed, **run))
