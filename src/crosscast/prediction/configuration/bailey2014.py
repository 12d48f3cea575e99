"""The model of Bailey et al. 2014: clusters of kernels, a linear model of each, and a tree of clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.configuration import (
    ConfigurationSpace,
    KernelAt,
    Observed,
    SurfaceForecast,
    Surfaces,
    pareto_frontier,
    plain_forecast,
    reference_samples,
    sample_indices,
)
from crosscast.prediction.configuration.features import Design, SampleFeatures, TrainingRuns, design_of
from crosscast.prediction.serialization import Array, Stored
from crosscast.prediction.trained import single_threaded

_SAME = 1e-9


def groupings(distances: Reals, most: int) -> tuple[Integers, ...]:
    """Groups of ``n`` kernels by dissimilarities ``(n, n)``, for each number of groups from 1 on.

    By average linkage; the relational clustering of R's fossil, which the paper takes, starts at random.
    """
    # Imported here: predicting needs it not.
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import squareform

    n = len(distances)
    if n == 1 or (distances <= _SAME).all():
        return (np.zeros(n, np.int64),)
    links = linkage(squareform(distances, checks=False), "average")
    # The tree is cut at all levels: with numbers of groups as arguments, SciPy 1.17 errs in the last one.
    cut = cut_tree(links)[:, ::-1].astype(np.int64)
    labels = []
    for column in cut.T[: min(most, n)]:
        _, first, inverse = np.unique(column, return_index=True, return_inverse=True)
        # Groups are numbered in the order of their first kernels.
        labels.append(np.argsort(np.argsort(first))[inverse].astype(np.int64))
    return tuple(labels)


def rank_correlation(first: Integers, second: Integers) -> float:
    """Kendall's tau between the orders of the configurations that two frontiers share.

    >>> rank_correlation(np.array([7, 1, 2, 3]), np.array([1, 3, 2, 9]))  # doctest: +ELLIPSIS
    0.333...
    """
    _, first_ranks, second_ranks = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    if len(first_ranks) < 2:
        return float("nan")
    ranks = second_ranks[np.argsort(first_ranks)]
    discordant = int(np.triu(ranks[:, None] > ranks).sum())
    if not discordant:
        return 1.0
    pairs = len(ranks) * (len(ranks) - 1) // 2
    # Rounded as `scipy.stats.kendalltau` does, which takes ties and twenty times as long.
    return max(-1.0, float((pairs - 2 * discordant) / np.sqrt(pairs) / np.sqrt(pairs)))


def rank_correlations(frontiers: Sequence[Integers]) -> Reals:
    """`rank_correlation` of each two of ``n`` frontiers, of shape ``(n, n)``; 1 of each with itself."""
    correlations = np.eye(len(frontiers))
    for one, other in combinations(range(len(frontiers)), 2):
        tau = rank_correlation(frontiers[other], frontiers[one])
        correlations[one, other] = correlations[other, one] = tau
    return correlations


def dissimilarities(correlations: Reals) -> Reals:
    """``(1 - tau) / 2``: 0 for the same order, 1 for the opposite one, 1/2 where none is defined."""
    return (1 - np.where(np.isnan(correlations), 0.0, correlations)) / 2


@dataclass(frozen=True, eq=False)
class ClassificationTree(Stored):
    """A tree of ``m`` nodes, the root first, over ``f`` features and ``k`` clusters."""

    names: Annotated[tuple[str, ...], Array("f")]
    threshold: Annotated[Reals, Array("m", least=1)]  # At most this, in single precision, goes left
    feature: Annotated[Integers, Array("m", low=-1, below="f")]  # Tested by each node; -1 in leaves
    left: Annotated[Integers, Array("m", low=-1, below="m")]  # Children, which come after it; -1 in leaves
    right: Annotated[Integers, Array("m", low=-1, below="m")]
    # Training kernels of each cluster in each node
    counts: Annotated[Integers, Array("m k", low=0)]

    def check(self) -> None:
        """Raise InputError unless the arrays are a tree."""
        inner = np.flatnonzero(self.feature >= 0)
        below = np.sort(np.concatenate([self.left[inner], self.right[inner]]))
        rising = (np.minimum(self.left, self.right)[inner] > inner).all()
        if not rising or not np.array_equal(below, np.arange(1, len(self.feature))):
            expected = "every node but the root below one before it"
            raise InputError.of(field="tree", expected=expected, found=below.tolist())

    @property
    def is_pure(self) -> bool:
        """Whether each leaf has kernels of one cluster only, so that a deeper tree would be the same."""
        return bool((np.count_nonzero(self.counts[self.feature < 0], axis=1) == 1).all())

    def cluster_of(self, values: Reals) -> int:
        """Cluster of a kernel with these features, of shape ``(f,)``."""
        node = 0
        while self.feature[node] >= 0:
            # As scikit-learn, compare in single precision, so that thresholds separate the same values.
            goes_left = np.float32(values[self.feature[node]]) <= self.threshold[node]
            node = int(self.left[node] if goes_left else self.right[node])
        return int(self.counts[node].argmax())

    def text(self) -> str:
        """The tree for people: a line for each branch, indented by depth."""

        def lines(node: int, indent: str) -> Iterator[str]:
            if self.feature[node] < 0:
                cluster, count = int(self.counts[node].argmax()), int(self.counts[node].sum())
                yield f"{indent}cluster {cluster} ({count} training kernel{'s' if count != 1 else ''})"
                return
            for sign, child in (("<=", self.left[node]), (">", self.right[node])):
                yield f"{indent}{self.names[self.feature[node]]} {sign} {self.threshold[node]:.6g}"
                yield from lines(int(child), f"{indent}|   ")

        return "\n".join(lines(0, ""))


def fit_classification_tree(
    names: Sequence[str], features: Reals, clusters: Integers, *, depth: int, seed: int
) -> ClassificationTree:
    """Fit a tree that predicts clusters from features."""
    counts = np.bincount(clusters)
    if len(counts) == 1 or not names:
        none = np.full(1, -1, np.int64)
        return ClassificationTree(tuple(names), np.zeros(1), none, none, none, counts[None].astype(np.int64))
    # Imported here: predicting needs it not.
    from sklearn import config_context
    from sklearn.tree import DecisionTreeClassifier

    # Checks would take longer than such a small tree.
    with config_context(skip_parameter_validation=True, assume_finite=True):
        classifier = DecisionTreeClassifier(max_depth=depth, random_state=seed)
        grown = classifier.fit(np.float32(features), clusters, check_input=False).tree_
    inner = grown.children_left >= 0
    shares = grown.value[:, 0, :] * grown.weighted_n_node_samples[:, None]
    return ClassificationTree(
        tuple(names),
        np.where(inner, grown.threshold, 0.0),
        np.where(inner, grown.feature, -1).astype(np.int64),
        grown.children_left.astype(np.int64),
        grown.children_right.astype(np.int64),
        np.rint(shares).astype(np.int64),
    )


@dataclass(frozen=True, eq=False)
class ClusterModels(Stored):
    """Linear models of ``k`` clusters in ``p`` variables of `Design` and constants of ``d`` devices."""

    # (k, p) of the performance relative to that at the sample
    performance: Annotated[Reals, Array("k v", nan=True, least=1)]
    power: Annotated[Reals, Array("k b", nan=True)]  # (k, p + d) of the power in watts
    # Least values of the cluster's kernels on a device, where predictions are cut: a line may fall below 0
    least_performance: Annotated[Reals, Array("k d", nan=True)]
    least_power: Annotated[Reals, Array("k d", nan=True)]

    def __len__(self) -> int:
        return len(self.performance)

    def relative_performance(self, design: Design) -> Reals:
        """``(k, c)`` Performance relative to that at the sample of the same device."""
        return self._cut(self.performance, design.matrix, self.least_performance, design)

    def power_w(self, design: Design) -> Reals:
        """``(k, c)`` Power in watts."""
        return self._cut(self.power, design.with_constants, self.least_power, design)

    def _cut(self, coefficients: Reals, variables: Reals, least: Reals, design: Design) -> Reals:
        # Variables of other devices, whose coefficients may be NaN, do not count.
        used = (variables != 0)[None]
        values: Reals = np.where(used, coefficients[:, None, :] * variables[None], 0.0).sum(axis=2)
        return np.maximum(values, least[:, design.on_device.argmax(axis=1)])


def fit_cluster_models(design: Design, relative: Reals, power_w: Reals, clusters: Integers) -> ClusterModels:
    """Fit the models by least squares, for all kernels of a cluster together, of minimum norm.

    On a device without a run of the cluster, the model is that of all kernels.
    """
    count = int(clusters.max()) + 1
    known = np.isfinite(relative) & np.isfinite(power_w)
    fitted = []
    for variables, values in ((design.matrix, relative), (design.with_constants, power_w)):
        coefficients = np.full((count, variables.shape[1]), np.nan)
        least = np.full((count, len(design.devices)), np.nan)
        for number, on_device in enumerate(design.on_device.T > 0):
            used = variables[on_device].any(axis=0)
            for cluster in range(count):
                rows = known & on_device & (clusters == cluster)[:, None]
                kernel, configuration = np.nonzero(rows if rows.any() else known & on_device)
                if len(kernel):
                    target, inputs = values[kernel, configuration], variables[configuration][:, used]
                    least[cluster, number] = target.min()
                    coefficients[cluster, used] = np.linalg.lstsq(inputs, target, rcond=None)[0]
        fitted.append((coefficients, least))
    (performance, least_performance), (power, least_power) = fitted
    return ClusterModels(performance, power, least_performance, least_power)


_MANY = 1 << 31


@dataclass(frozen=True)
class Clusters(Stored):
    """Clusters of training kernels, for people."""

    application: Annotated[tuple[str, ...], Array("n")]  # Of the kernels, cluster after cluster
    kernel: Annotated[tuple[str, ...], Array("n")]
    size: Annotated[tuple[str, ...], Array("n")]
    sizes: Annotated[tuple[int, ...], Array("k", low=1, high=_MANY, least=1)]  # Kernels of each cluster
    # Requested number of clusters; None where it was chosen within the training data
    asked: Annotated[int | None, Array(low=1, high=_MANY)]
    # Range of the rank correlations of two kernels' frontiers; None where no two share two configurations
    least_correlation: float | None
    most_correlation: float | None
    undefined: Annotated[int, Array(low=0, high=_MANY)]  # Pairs that share fewer than two configurations

    @classmethod
    def of(
        cls, kernels: Sequence[KernelAt], clusters: Integers, correlations: Reals, asked: int | None
    ) -> Clusters:
        """The clusters of ``n`` kernels."""
        pairs = correlations[np.triu_indices(len(kernels), 1)]
        known = pairs[np.isfinite(pairs)]
        low, high = (float(known.min()), float(known.max())) if known.size else (None, None)
        ordered = [kernels[row] for row in np.argsort(clusters, kind="stable")]
        applications, names, sizes = zip(*ordered, strict=True)
        counts = tuple(np.bincount(clusters).tolist())
        return cls(applications, names, sizes, counts, asked, low, high, len(pairs) - len(known))

    def check(self) -> None:
        """Raise InputError unless sizes add up to the kernels, and the range has both ends or none."""
        if sum(self.sizes) != len(self.kernel):
            expected = f"a sum of {len(self.kernel)}"
            raise InputError.of(field="sizes", expected=expected, found=sum(self.sizes))
        ends = self.least_correlation, self.most_correlation
        if (ends[0] is None) != (ends[1] is None):
            raise InputError.of(field="least_correlation", expected="two numbers or none", found=ends)

    @property
    def members(self) -> tuple[tuple[KernelAt, ...], ...]:
        """The kernels of each cluster."""
        kernels = [KernelAt(*each) for each in zip(self.application, self.kernel, self.size, strict=True)]
        ends = np.cumsum(self.sizes).tolist()
        return tuple(tuple(kernels[end - size : end]) for end, size in zip(ends, self.sizes, strict=True))

    @property
    def nothing_to_cluster(self) -> bool:
        """Whether the frontiers of all kernels have the same order: tau is 1 throughout."""
        return self.least_correlation == 1 and not self.undefined

    @property
    def note(self) -> str:
        """One sentence for people."""
        if self.nothing_to_cluster:
            return "nothing to cluster: Kendall's tau is 1 for every pair of kernels, so there is one cluster"
        count, sizes = len(self.sizes), ", ".join(map(str, self.sizes))
        start = f"{count} cluster{'s' if count != 1 else ''} of {sizes} kernels"
        if self.asked is None:
            return f"{start}, as many as predict best inside the training data"
        few = f" instead of the {self.asked} asked for, as there are no more kernels"
        return f"{start}, as many as asked for" if self.asked == count else start + few


@dataclass(frozen=True, eq=False)
class Training:
    """Training data of ``n`` kernels in the offline stage."""

    design: Design  # Variables of the c configurations
    # (n, n) rank correlations of their frontiers; NaN where two share less than two points
    correlations: Reals
    features: Reals  # (n, f) features of their sample runs, in watts, as ratios and as counts
    relative: Reals  # (n, c) performance relative to that at the sample of the same device
    power_w: Reals  # (n, c)
    groups: Integers  # (n,) a number for each application

    @classmethod
    def of(cls, runs: TrainingRuns) -> Training:
        """Derive the training data from runs."""
        time_s, power_w = runs.surfaces.time_s, runs.surfaces.power_w
        return cls(
            design_of(runs.surfaces.space),
            rank_correlations([pareto_frontier(*each) for each in zip(time_s, power_w, strict=True)]),
            runs.features.readable(runs.values),
            time_s[:, runs.scaled_from] / time_s,
            power_w,
            runs.groups,
        )


class Amounts(NamedTuple):
    """Hyperparameters: the number of clusters and the depth of the tree."""

    clusters: int
    depth: int  # Of the tree


def choose_amounts(
    training: Training, clusters: Sequence[int], depths: Sequence[int], *, seed: int
) -> Amounts:
    """Choose the hyperparameters of the least error, the smaller ones of equals; candidates are rising.

    The error is the mean square of log performance and power on each application, held out in turn; without
    two of them the largest are taken.
    """
    if max(clusters) == 1:
        return Amounts(1, min(depths))  # One cluster needs no tree.
    pairs = [Amounts(count, depth) for count in clusters for depth in depths]
    applications = np.unique(training.groups)
    if len(pairs) == 1 or len(applications) < 2:
        return pairs[-1]
    errors = [_held_out_errors(training, each, clusters, depths, seed=seed) for each in applications]
    mean = np.mean(errors, axis=0).ravel()
    # Differences by rounding do not count.
    return pairs[int(np.flatnonzero(mean <= mean.min() * (1 + 1e-9) + 1e-12)[0])]


def _held_out_errors(
    training: Training, group: int, clusters: Sequence[int], depths: Sequence[int], *, seed: int
) -> Reals:
    """Error on one application, of shape ``(clusters, depths)``."""
    out, design, features = training.groups == group, training.design, training.features
    names = [str(each) for each in range(features.shape[1])]
    labels = groupings(dissimilarities(training.correlations[np.ix_(~out, ~out)]), max(clusters))
    errors = np.zeros((len(clusters), len(depths)))
    for row, count in enumerate(clusters):
        if row and clusters[row - 1] >= len(labels):
            errors[row] = errors[row - 1]
            continue
        clusters_of_kernels = labels[min(count, len(labels)) - 1]
        known = training.relative[~out], training.power_w[~out]
        models = fit_cluster_models(design, *known, clusters_of_kernels)
        relative, power_w = models.relative_performance(design), models.power_w(design)
        for column, depth in enumerate(depths):
            tree = fit_classification_tree(names, features[~out], clusters_of_kernels, depth=depth, seed=seed)
            predicted = np.array([tree.cluster_of(values) for values in features[out]], np.int64)
            squares = np.log(relative[predicted] / training.relative[out]) ** 2
            squares += np.log(power_w[predicted] / training.power_w[out]) ** 2
            # Cells at which no training kernel ran are not predicted.
            known_cells = np.isfinite(squares)
            errors[row, column:] = float(np.mean(squares[known_cells])) if known_cells.any() else 0.0
            if tree.is_pure:
                break
    return errors


PUBLISHED_CLUSTERS = 5
"""The best number of clusters in the paper."""

_MOST_CLUSTERS = 8
_DEPTHS = (1, 2, 3, 4)


@dataclass(frozen=True)
class PublishedModel:
    """The offline stage (section III-B)."""

    # Number of clusters, or fewer with fewer kernels; by default the best one when each training application
    # is held out in turn, up to 8
    clusters: int | None = None

    def __post_init__(self) -> None:
        if self.clusters is not None and self.clusters < 1:
            raise InputError.of(field="clusters", expected="at least 1", found=f"{self.clusters}")

    @property
    def name(self) -> str:
        """``published``, with the number of clusters where that is set."""
        return "published" if self.clusters is None else f"published-{self.clusters}"

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> PublishedPredictor:
        """Group the kernels that ran at all samples; fit each group's models and the tree."""
        runs = TrainingRuns.of(surfaces, samples)
        features = runs.features
        # Synchronizing BLAS threads takes longer than these small matrices do.
        with single_threaded():
            training = Training.of(runs)
            labels = groupings(dissimilarities(training.correlations), self.clusters or _MOST_CLUSTERS)
            counts = tuple(range(1, len(labels) + 1)) if self.clusters is None else (len(labels),)
            amounts = choose_amounts(training, counts, _DEPTHS, seed=seed)
            cluster_of_kernel, names = labels[amounts.clusters - 1], features.readable_names
            depth, values = amounts.depth, (training.relative, training.power_w)
            tree = fit_classification_tree(
                names, training.features, cluster_of_kernel, depth=depth, seed=seed
            )
            models = fit_cluster_models(training.design, *values, cluster_of_kernel)
            kernels = runs.surfaces.kernels
            clusters = Clusters.of(kernels, cluster_of_kernel, training.correlations, self.clusters)
        fitted = FittedClusters(features, tree, models, clusters)
        return PublishedPredictor(surfaces.space, tuple(samples), fitted)

    def tested_on(self, programs: Sequence[str]) -> PublishedModel:
        """Return the model: it has no intervals."""
        return self


@dataclass(frozen=True, eq=False)
class FittedClusters(Stored):
    """The fitted offline stage."""

    features: SampleFeatures  # Of the tree
    tree: ClassificationTree  # Finds a kernel's cluster
    models: ClusterModels  # Performance and power of each cluster
    clusters: Clusters

    def check(self) -> None:
        """Raise InputError unless all parts are of the same clusters and features."""
        counts = [len(self.models), self.tree.counts.shape[1], len(self.clusters.sizes)]
        if len(set(counts)) > 1:
            expected = f"those of {counts[0]} clusters throughout"
            raise InputError.of(field="clusters", expected=expected, found=counts)
        if self.tree.names != self.features.readable_names:
            expected, found = ", ".join(self.features.readable_names), ", ".join(self.tree.names)
            raise InputError.of(field="tree.names", expected=expected, found=found)


@dataclass(frozen=True, eq=False)
class PublishedPredictor:
    """The online stage (section III-C); see `ConfigurationPredictor`."""

    space: ConfigurationSpace
    samples: tuple[int, ...]  # Performance on a device is scaled from the first of them there
    fitted: FittedClusters
    kind: ClassVar[str] = "published"

    def __post_init__(self) -> None:
        self.fitted.features.check_samples(len(self.samples))
        models, design = self.fitted.models, design_of(self.space)
        names, devices = len(design.names), len(design.devices)
        widths = [names, names + devices, devices]
        counts = [each.shape[1] for each in (models.performance, models.power, models.least_power)]
        if counts != widths:
            expected = f"coefficients of {widths} variables and devices"
            raise InputError.of(where="model", field="models", expected=expected, found=counts)

    @cached_property
    def _surfaces(self) -> tuple[Reals, Reals, Integers]:
        """Relative performance and power of each cluster, and the samples from which they are scaled."""
        models, design = self.fitted.models, design_of(self.space)
        references = reference_samples(self.space, self.samples)
        return models.relative_performance(design), models.power_w(design), references

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict time and power; measured values replace predictions where there are runs."""
        indices = sample_indices(self.space, self.samples, observed)
        features = self.fitted.features
        cluster = self.fitted.tree.cluster_of(features.readable(features.values(observed, indices)))
        relative, power_w, references = self._surfaces
        at_sample = observed.time_s[np.array(indices)[references]]
        return plain_forecast(at_sample / relative[cluster], power_w[cluster], observed)

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """The note on the clusters, with the tree that finds them."""
        return ((self.fitted.clusters.note, self.fitted.tree.text()),)

    def far_features(self, observed: Observed) -> list[tuple[str, float, float, float]]:
        """Features of a kernel that are far from those of the training kernels."""
        indices = sample_indices(self.space, self.samples, observed)
        return self.fitted.features.far(observed, indices)

    def to_dict(self) -> dict[str, object]:
        """The clusters and the tree as a JSON object; no clusters where there is nothing to cluster."""
        clusters = self.fitted.clusters
        is_trivial = clusters.nothing_to_cluster
        return {
            "note": clusters.note,
            "nothing_to_cluster": is_trivial,
            "least_correlation": clusters.least_correlation,
            "most_correlation": clusters.most_correlation,
            "pairs_without_correlation": clusters.undefined,
            "clusters": [[*map(str, each)] for each in (() if is_trivial else clusters.members)],
            "tree": None if is_trivial else self.fitted.tree.text(),
        }
