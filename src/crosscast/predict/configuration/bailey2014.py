"""Groups of kernels whose frontiers are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_integers, kept_names, kept_reals
from crosscast.predict.configuration.data import (
    KernelAt,
    Observed,
    Space,
    Surfaces,
    kept_space,
    pareto_frontier,
    references,
    sample_places,
    sampled,
    space_state,
)
from crosscast.predict.configuration.features import SampleFeatures
from crosscast.predict.configuration.forecast import SurfaceForecast, plain_forecast

_SAME = 1e-9


def nothing_to_group(apart: Reals) -> bool:
    """Whether all kernels are the same to a dissimilarity, of shape ``(n, n)``."""
    return bool((apart <= _SAME).all())


def groupings(apart: Reals, most: int) -> tuple[Integers, ...]:
    """Groups of ``n`` kernels, for each number of groups from 1 on.

    By average linkage: the paper takes relational clustering from R's fossil, which works on dissimilarities
    alone too, but starts at random and may end elsewhere each time. The groups of one number are parts of
    those of a smaller one.
    """
    # Imported here: predicting needs it not.
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import squareform

    n = len(apart)
    if n == 1 or nothing_to_group(apart):
        return (np.zeros(n, np.int64),)
    joined = linkage(squareform(apart, checks=False), "average")
    # The whole tree is cut: where numbers of groups are asked for, SciPy 1.17 mistakes the last one.
    cut = cut_tree(joined)[:, ::-1].astype(np.int64)
    return tuple(_in_order(cut[:, column]) for column in range(min(most, n)))


def _in_order(labels: Integers) -> Integers:
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


@dataclass(frozen=True)
class Design:
    """``p`` variables of ``c`` configurations, and a constant for each of ``d`` devices."""

    names: tuple[str, ...]  # `(p,)` `device: variable`
    # `(c, p)` Their values; a variable is 0 at the configurations of other devices. Each is divided by its
    # largest size, which leaves a linear model what it is, and makes it well scaled
    matrix: Reals
    devices: tuple[str, ...]  # `(d,)` Keys of the devices
    on_device: Reals  # `(c, d)` 1 for the device of a configuration

    @property
    def with_constants(self) -> Reals:
        """``(c, p + d)`` The variables, and the devices' constants."""
        return np.hstack([self.matrix, self.on_device])


def design_of(space: Space) -> Design:
    """Variables of the configurations of a space, apart for each device.

    They are the numbers that vary on the device, one variable for each value of a setting of words, and the
    products of two of them (Bailey et al. 2014, section III-B: first-order interactions). A device on which
    nothing varies has the variable 1.
    """
    names: list[str] = []
    columns: list[Reals] = []
    for number, device in enumerate(space.devices):
        rows = space.device_numbers == number
        for name, values in _with_products(_variables(space, rows)):
            names.append(f"{device}: {name}")
            columns.append(np.where(rows, values, 0.0))
    matrix = np.stack(columns, axis=1)
    on_device = (space.device_numbers[:, None] == np.arange(len(space.devices))).astype(np.float64)
    return Design(tuple(names), matrix / np.abs(matrix).max(axis=0), space.devices, on_device)


_Variable = tuple[str, Reals]


def _variables(space: Space, rows: Flags) -> list[_Variable]:
    found: list[_Variable] = []
    for name, values in zip(space.knobs, space.matrix.T, strict=True):
        if len(np.unique(values[rows])) > 1:
            # A configuration of the device that lacks the setting: as if it were 0.
            found.append((name, np.where(np.isfinite(values), values, 0.0)))
    for name in space.words:
        settings = np.array([str(each.settings.get(name, "")) for each in space.configurations])
        words = np.unique(settings[rows])
        if len(words) > 1:
            found += [(f"{name}={word}", (settings == word).astype(np.float64)) for word in words]
    return found or [("1", np.ones(len(space)))]


def _with_products(variables: Sequence[_Variable]) -> list[_Variable]:
    found = list(variables)
    for place, (name, values) in enumerate(variables):
        for other, others in variables[:place]:
            product = values * others
            if product.any():
                found.append((f"{other} * {name}", product))
    return found


def rank_correlation(first: Integers, second: Integers) -> float:
    """Kendall's tau between the orders of the configurations that two frontiers share.

    >>> rank_correlation(np.array([7, 1, 2, 3]), np.array([1, 3, 2, 9]))  # doctest: +ELLIPSIS
    0.333...
    """
    # Imported here: predicting needs it not.
    from scipy.stats import kendalltau

    _, there, here = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    if len(there) < 2:
        return float("nan")
    if (np.argsort(there) == np.argsort(here)).all():
        return 1.0
    return float(kendalltau(there, here).statistic)


def rank_correlations(frontiers: Sequence[Integers]) -> Reals:
    """`rank_correlation` of each two of ``n`` frontiers, of shape ``(n, n)``; 1 of each with itself."""
    found = np.eye(len(frontiers))
    for row, first in enumerate(frontiers):
        for column in range(row):
            found[row, column] = found[column, row] = rank_correlation(first, frontiers[column])
    return found


def dissimilarities(correlations: Reals) -> Reals:
    """``(1 - tau) / 2``: 0 for the same order, 1 for the opposite one, of the same shape.

    Two frontiers that share fewer than two configurations are 1/2 apart, as orders that have nothing to do
    with each other.
    """
    apart: Reals = (1 - np.where(np.isnan(correlations), 0.0, correlations)) / 2
    return apart


class TreeNode(NamedTuple):
    """A node, as plain data for text and drawings."""

    feature: str | None  # Name of the feature that it asks for; None in a leaf
    threshold: float | None  # Kernels whose feature is at most this go left; None in a leaf
    left: int | None  # Numbers of the nodes below; None in a leaf
    right: int | None
    cluster: int  # Cluster of most of the training kernels that came here
    counts: tuple[int, ...]  # How many of them are of each cluster


@dataclass(frozen=True, eq=False)
class ClassificationTree:
    """A tree of ``m`` nodes, the root first, over ``f`` features and ``k`` clusters."""

    names: tuple[str, ...]  # `(f,)` Names of the features
    feature: Integers  # `(m,)` Feature that each node asks for; -1 in leaves
    # `(m,)` Kernels whose feature, in single precision, is at most this go left; 0 in leaves
    threshold: Reals
    left: Integers  # `(m,)` Nodes below, which come after it; -1 in leaves
    right: Integers
    counts: Integers  # `(m, k)` Training kernels of each cluster that came to each node

    def cluster_of(self, values: Reals) -> int:
        """Cluster of a kernel with these features, of shape ``(f,)``."""
        node = 0
        while self.feature[node] >= 0:
            # scikit-learn compares in single precision; so thresholds between equal numbers stay between.
            goes_left = np.float32(values[self.feature[node]]) <= self.threshold[node]
            node = int(self.left[node] if goes_left else self.right[node])
        return int(self.counts[node].argmax())

    @property
    def nodes(self) -> tuple[TreeNode, ...]:
        """All nodes, the root first."""
        return tuple(self._node(number) for number in range(len(self.feature)))

    @property
    def depth(self) -> int:
        """Most questions between the root and a leaf."""
        depths = np.zeros(len(self.feature), np.int64)
        for node in np.flatnonzero(self.feature >= 0):
            depths[[self.left[node], self.right[node]]] = depths[node] + 1
        return int(depths.max())

    def _node(self, number: int) -> TreeNode:
        counts = tuple(int(each) for each in self.counts[number])
        cluster = int(self.counts[number].argmax())
        if self.feature[number] < 0:
            return TreeNode(None, None, None, None, cluster, counts)
        return TreeNode(
            self.names[self.feature[number]],
            float(self.threshold[number]),
            int(self.left[number]),
            int(self.right[number]),
            cluster,
            counts,
        )

    def text(self) -> str:
        """The tree for people: a line a branch, further in the deeper it is."""
        return "\n".join(self._lines(0, 0))

    def _lines(self, number: int, depth: int) -> list[str]:
        node, indent = self._node(number), "|   " * depth
        if node.feature is None or node.left is None or node.right is None:
            kernels = f"{sum(node.counts)} training kernel{'s' if sum(node.counts) != 1 else ''}"
            return [f"{indent}cluster {node.cluster} ({kernels})"]
        return [
            f"{indent}{node.feature} <= {node.threshold:.6g}",
            *self._lines(node.left, depth + 1),
            f"{indent}{node.feature} > {node.threshold:.6g}",
            *self._lines(node.right, depth + 1),
        ]

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "tree_feature": self.feature,
            "tree_threshold": self.threshold,
            "tree_left": self.left,
            "tree_right": self.right,
            "tree_counts": self.counts,
        }

    @classmethod
    def from_state(
        cls, state: Mapping[str, npt.NDArray[Any]], names: Sequence[str], clusters: int
    ) -> ClassificationTree:
        """Make it from its arrays, and check that they are a tree."""
        threshold = kept_reals(state, "tree_threshold", 1)
        m = len(threshold)
        feature = kept_integers(state, "tree_feature", 1, (-1, len(names)))
        left, right = (kept_integers(state, name, 1, (-1, m)) for name in ("tree_left", "tree_right"))
        counts = kept_integers(state, "tree_counts", 2, (0, np.iinfo(np.int64).max))
        if m == 0 or not len(feature) == len(left) == len(right) == m or counts.shape != (m, clusters):
            raise InputError(
                f"model: tree_counts: expected a node at least, and for each of {m} the counts of {clusters} "
                f"clusters, found shape {counts.shape}"
            )
        inner, own = feature >= 0, np.arange(m)
        below = np.sort(np.concatenate([left[inner], right[inner]]))
        rising = (left[inner] > own[inner]).all() and (right[inner] > own[inner]).all()
        if not rising or not np.array_equal(below, own[1:]):
            raise InputError("model: tree_left: expected every node but the root below one before it")
        return cls(tuple(names), feature, threshold, left, right, counts)


def fit_classification_tree(
    names: Sequence[str], features: Reals, clusters: Integers, *, depth: int, seed: int
) -> ClassificationTree:
    """Learn which features tell the clusters apart."""
    counts = np.bincount(clusters)
    if len(counts) == 1 or not names:
        none = np.full(1, -1, np.int64)
        return ClassificationTree(tuple(names), none, np.zeros(1), none, none, counts[None].astype(np.int64))
    # Imported here: predicting needs it not.
    from sklearn.tree import DecisionTreeClassifier

    grown = DecisionTreeClassifier(max_depth=depth, random_state=seed).fit(features, clusters).tree_
    inner = grown.children_left >= 0
    shares = grown.value[:, 0, :] * grown.weighted_n_node_samples[:, None]
    return ClassificationTree(
        tuple(names),
        np.where(inner, grown.feature, -1).astype(np.int64),
        np.where(inner, grown.threshold, 0.0),
        grown.children_left.astype(np.int64),
        grown.children_right.astype(np.int64),
        np.rint(shares).astype(np.int64),
    )


@dataclass(frozen=True, eq=False)
class ClusterModels:
    """Models of ``k`` clusters."""

    design: Design  # `p` variables of `c` configurations of `d` devices
    logarithms: bool  # Whether the models are of the logarithms of performance and power
    # `(k, p)` Coefficients of the performance relative to that at the sample; `(k, p + d)` with the devices'
    # intercepts if of logarithms: without, all would be as fast as the sample where every variable is 0. NaN
    # for a device of which nothing was learned
    performance: Reals
    power: Reals  # `(k, p + d)` Coefficients of the power in watts, the devices' intercepts last
    # `(k, d)` Least values that the cluster's kernels have on a device: a line may run below 0, and is cut
    # there
    least_performance: Reals
    least_power: Reals

    def __len__(self) -> int:
        """Number of clusters."""
        return len(self.performance)

    @cached_property
    def relative_performance(self) -> Reals:
        """``(k, c)`` Performance relative to that at the sample of the same device."""
        variables = self.design.with_constants if self.logarithms else self.design.matrix
        return self._cut(self.performance, variables, self.least_performance)

    @cached_property
    def power_w(self) -> Reals:
        """``(k, c)`` Power in watts."""
        return self._cut(self.power, self.design.with_constants, self.least_power)

    def _cut(self, coefficients: Reals, variables: Reals, least: Reals) -> Reals:
        values = _values(coefficients, variables)
        values = np.exp(values) if self.logarithms else values
        return np.maximum(values, least[:, self.design.on_device.argmax(axis=1)])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "logarithms": np.array([self.logarithms], np.int64),
            "performance_coefficients": self.performance,
            "power_coefficients": self.power,
            "least_performance": self.least_performance,
            "least_power": self.least_power,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]], design: Design) -> ClusterModels:
        """Make it from its arrays."""
        logarithms = kept_integers(state, "logarithms", 1, (0, 2))
        if len(logarithms) != 1:
            raise InputError(f"model: logarithms: expected one number, found {len(logarithms)}")
        variables, devices = len(design.names), len(design.devices)
        performance = _reals_or_nan(
            state, "performance_coefficients", variables + devices * int(logarithms[0])
        )
        power = _reals_or_nan(state, "power_coefficients", variables + devices)
        least = [_reals_or_nan(state, name, devices) for name in ("least_performance", "least_power")]
        found = {len(each) for each in (performance, power, *least)}
        if len(found) != 1 or 0 in found:
            raise InputError(f"model: expected models of as many clusters throughout, found {sorted(found)}")
        return cls(design, bool(logarithms[0]), performance, power, *least)


def fit_cluster_models(
    design: Design, relative: Reals, power_w: Reals, clusters: Integers, *, logarithms: bool
) -> ClusterModels:
    """Fit the models by least squares, all kernels of a cluster together.

    A cluster without a run on a device takes the model of all kernels there. Where the variables are more
    than the configurations that were run, the smallest coefficients are taken.
    """
    count = int(clusters.max()) + 1
    both = design.with_constants
    variables = both if logarithms else design.matrix
    shape = count, len(design.devices)
    performance = np.full((count, variables.shape[1]), np.nan)
    power = np.full((count, both.shape[1]), np.nan)
    least_performance, least_power = np.full(shape, np.nan), np.full(shape, np.nan)
    for number in range(len(design.devices)):
        on_it = design.on_device[:, number] > 0
        known = np.isfinite(relative) & np.isfinite(power_w) & on_it
        for cluster in range(count):
            rows = known & (clusters == cluster)[:, None]
            kernel, configuration = np.nonzero(rows if rows.any() else known)
            if not len(kernel):
                continue
            ratios, watts = relative[kernel, configuration], power_w[kernel, configuration]
            least_performance[cluster, number], least_power[cluster, number] = ratios.min(), watts.min()
            if logarithms:
                np.log(ratios, out=ratios)
                np.log(watts, out=watts)
            own, own_both = variables[on_it].any(axis=0), both[on_it].any(axis=0)
            performance[cluster, own] = _least_squares(variables[configuration][:, own], ratios)
            power[cluster, own_both] = _least_squares(both[configuration][:, own_both], watts)
    return ClusterModels(design, logarithms, performance, power, least_performance, least_power)


def _least_squares(variables: Reals, wanted: Reals) -> Reals:
    return np.asarray(np.linalg.lstsq(variables, wanted, rcond=None)[0], np.float64)


def _values(coefficients: Reals, variables: Reals) -> Reals:
    """Sums of coefficients times variables; those of other devices, which may be NaN, do not count."""
    used = variables != 0
    values: Reals = np.where(used[None], coefficients[:, None, :] * variables[None], 0.0).sum(axis=2)
    return values


def _reals_or_nan(state: Mapping[str, npt.NDArray[Any]], name: str, width: int) -> Reals:
    array = state.get(name)
    if array is None or array.dtype.kind != "f" or array.ndim != 2 or array.shape[1] != width:
        found = "none" if array is None else f"{array.dtype} of shape {array.shape}"
        raise InputError(f"model: {name}: expected numbers of shape (clusters, {width}), found {found}")
    if np.isinf(array).any():
        raise InputError(f"model: {name}: expected finite numbers, or NaN where unknown, found infinite ones")
    return array.astype(np.float64)


_MANY = 1 << 31


@dataclass(frozen=True)
class Clusters:
    """Clusters of training kernels."""

    members: tuple[tuple[KernelAt, ...], ...]  # The kernels of each cluster
    # How many clusters were asked for; None where the number was chosen inside the training data
    asked: int | None
    # Range of the rank correlations of two kernels' frontiers; None where no two share two configurations
    least_correlation: float | None
    most_correlation: float | None
    undefined: int  # How many pairs of kernels share fewer than two configurations

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of kernels of each."""
        return tuple(len(each) for each in self.members)

    @property
    def nothing_to_cluster(self) -> bool:
        """Whether the frontiers of all kernels have the same order: tau is 1 throughout."""
        return self.least_correlation == 1 and not self.undefined

    @property
    def note(self) -> str:
        """One sentence for people."""
        if self.nothing_to_cluster:
            return "nothing to cluster: Kendall's tau is 1 for every pair of kernels, so there is one cluster"
        count = len(self.members)
        sizes = ", ".join(str(each) for each in self.sizes)
        start = f"{count} cluster{'s' if count != 1 else ''} of {sizes} kernels"
        if self.asked is None:
            return f"{start}, as many as predict best inside the training data"
        if self.asked == count:
            return f"{start}, as many as asked for"
        return f"{start} instead of the {self.asked} asked for, as there are no more kernels"

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        kernels = [each for of in self.members for each in of]
        known = [each for each in (self.least_correlation, self.most_correlation) if each is not None]
        return {
            "member_application": np.array([each.application for each in kernels], np.str_),
            "member_kernel": np.array([each.kernel for each in kernels], np.str_),
            "member_size": np.array([each.size for each in kernels], np.str_),
            "cluster_sizes": np.array(self.sizes, np.int64),
            "clusters_asked": np.array([] if self.asked is None else [self.asked], np.int64),
            "correlation_range": np.array(known, np.float64),
            "correlations_undefined": np.array([self.undefined], np.int64),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Clusters:
        """Make it from its arrays."""
        columns = [kept_names(state, f"member_{name}") for name in ("application", "kernel", "size")]
        sizes = kept_integers(state, "cluster_sizes", 1, (1, _MANY))
        if {len(each) for each in columns} != {int(sizes.sum())} or not len(sizes):
            raise InputError(
                f"model: cluster_sizes: expected those of {len(columns[0])} kernels, found a sum of "
                f"{sizes.sum()}"
            )
        asked = kept_integers(state, "clusters_asked", 1, (1, _MANY))
        between = kept_reals(state, "correlation_range", 1)
        undefined = kept_integers(state, "correlations_undefined", 1, (0, _MANY))
        if len(asked) > 1 or len(between) not in (0, 2) or len(undefined) != 1:
            raise InputError(
                f"model: correlation_range: expected two numbers or none, found {len(between)}, and "
                f"{len(asked)} and {len(undefined)} numbers of clusters and pairs"
            )
        kernels = [KernelAt(*each) for each in zip(*columns, strict=True)]
        ends = np.cumsum(sizes)
        return cls(
            tuple(tuple(kernels[end - size : end]) for end, size in zip(ends, sizes, strict=True)),
            int(asked[0]) if len(asked) else None,
            float(between[0]) if len(between) else None,
            float(between[1]) if len(between) else None,
            int(undefined[0]),
        )


def clusters_of(
    kernels: tuple[KernelAt, ...], clusters: Integers, correlations: Reals, asked: int | None
) -> Clusters:
    """What was found, for ``n`` kernels."""
    pairs = correlations[np.triu_indices(len(kernels), 1)]
    known = pairs[np.isfinite(pairs)]
    members = tuple(
        tuple(kernels[row] for row in np.flatnonzero(clusters == number))
        for number in range(int(clusters.max()) + 1)
    )
    return Clusters(
        members,
        asked,
        float(known.min()) if known.size else None,
        float(known.max()) if known.size else None,
        len(pairs) - len(known),
    )


@dataclass(frozen=True, eq=False)
class Training:
    """``n`` training kernels."""

    design: Design  # Variables of the `c` configurations
    # `(n, n)` Rank correlations of their frontiers; NaN where two share fewer than two configurations
    correlations: Reals
    features: Reals  # `(n, f)` Features of their sample runs, in watts, as ratios and as counts
    relative: Reals  # `(n, c)` Performance relative to that at the sample of the same device, and power
    power_w: Reals
    groups: Integers  # `(n,)` A number for each application

    def take(self, rows: Flags) -> Training:
        """Some of the kernels alone."""
        return Training(
            self.design,
            self.correlations[np.ix_(rows, rows)],
            self.features[rows],
            self.relative[rows],
            self.power_w[rows],
            self.groups[rows],
        )

    @property
    def apart(self) -> Reals:
        """``(n, n)`` Dissimilarities."""
        return dissimilarities(self.correlations)

    def models(self, clusters: Integers, *, logarithms: bool) -> ClusterModels:
        """Fit the models of clusters."""
        return fit_cluster_models(self.design, self.relative, self.power_w, clusters, logarithms=logarithms)

    def tree(self, names: Sequence[str], clusters: Integers, depth: int, seed: int) -> ClassificationTree:
        """Fit the tree of clusters."""
        return fit_classification_tree(names, self.features, clusters, depth=depth, seed=seed)


def training_of(surfaces: Surfaces, samples: Sequence[int]) -> tuple[Training, SampleFeatures]:
    """What kernels tell, all of which ran at the samples."""
    features, values = SampleFeatures.of(surfaces, samples)
    frontiers = [
        pareto_frontier(time, power) for time, power in zip(surfaces.time_s, surfaces.power_w, strict=True)
    ]
    sample = np.array(samples)[references(surfaces.space, samples)]
    applications = [each.application for each in surfaces.kernels]
    groups = np.unique(applications, return_inverse=True)[1].astype(np.int64)
    training = Training(
        design_of(surfaces.space),
        rank_correlations(frontiers),
        features.readable(values),
        surfaces.time_s[:, sample] / surfaces.time_s,
        surfaces.power_w,
        groups,
    )
    return training, features


class Amounts(NamedTuple):
    """Numbers that are chosen."""

    clusters: int  # How many clusters
    depth: int  # Most questions that the tree asks


@dataclass(frozen=True)
class Tried:
    """What may be chosen from."""

    clusters: tuple[int, ...]  # Numbers of clusters, rising
    depths: tuple[int, ...]  # Depths of the tree, rising


def amounts_of(training: Training, tried: Tried, *, logarithms: bool, seed: int) -> Amounts:
    """Choose the numbers of the least error, of equals the smaller ones.

    The error is that of the whole model, clusters, tree and all, on the kernels of each application in turn
    when it is fitted to the others: the mean square of the logarithms of performance and of power, where
    applications count the same. With one application there is none to leave out: the largest of `tried` are
    taken.
    """
    if max(tried.clusters) == 1:
        return Amounts(1, min(tried.depths))  # One cluster leaves nothing to ask.
    pairs = [Amounts(clusters, depth) for clusters in tried.clusters for depth in tried.depths]
    applications = np.unique(training.groups)
    if len(pairs) == 1 or len(applications) < 2:
        return pairs[-1]
    errors = np.mean(
        [_errors(training, group, tried, logarithms, seed) for group in applications], axis=0
    ).ravel()
    # What differs by rounding alone is equal.
    return pairs[int(np.flatnonzero(errors <= errors.min() * (1 + 1e-9) + 1e-12)[0])]


def _errors(training: Training, left_out: int, tried: Tried, logarithms: bool, seed: int) -> Reals:
    """Error on one application, of shape ``(clusters, depths)``."""
    out = training.groups == left_out
    known, asked = training.take(~out), training.take(out)
    names = [str(each) for each in range(known.features.shape[1])]
    labels = groupings(known.apart, max(tried.clusters))
    errors = np.empty((len(tried.clusters), len(tried.depths)))
    for row, clusters in enumerate(tried.clusters):
        own = labels[min(clusters, len(labels)) - 1]
        models = known.models(own, logarithms=logarithms)
        for column, depth in enumerate(tried.depths):
            tree = known.tree(names, own, depth, seed)
            found = np.array([tree.cluster_of(values) for values in asked.features], np.int64)
            errors[row, column] = _error(asked, models.relative_performance, models.power_w, found)
    return errors


def _error(asked: Training, relative: Reals, power_w: Reals, clusters: Integers) -> float:
    squares = (
        np.log(relative[clusters] / asked.relative) ** 2 + np.log(power_w[clusters] / asked.power_w) ** 2
    )
    # What the others did not run is not predicted.
    return float(np.mean(squares[np.isfinite(squares)])) if np.isfinite(squares).any() else 0.0


PUBLISHED_CLUSTERS = 5
"""How many the paper has found best for its kernels."""

_MOST_CLUSTERS = 8
_DEPTHS = (1, 2, 3, 4)


@dataclass(frozen=True)
class PublishedModel:
    """The offline stage."""

    # How many clusters, or fewer where there are fewer kernels; by default as many as predict best when each
    # training application is left out in turn, up to 8
    clusters: int | None = None
    # Whether the linear models are of the logarithms of performance and power, which stabilises variances:
    # the future work that the paper names
    logarithms: bool = False

    def __post_init__(self) -> None:
        if self.clusters is not None and self.clusters < 1:
            raise InputError(f"clusters: expected at least 1, found {self.clusters}")

    @property
    def name(self) -> str:
        """Its name: ``published``, with ``-log`` and the number of clusters where these are set."""
        count = f"-{self.clusters}" if self.clusters is not None else ""
        return f"published{'-log' if self.logarithms else ''}{count}"

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> PublishedPredictor:
        """Group the kernels that ran at all samples; fit each group's models, and the tree.

        The tree's depth is chosen as the number of clusters is, inside the training data.
        """
        # Imported here: predicting needs it not.
        from threadpoolctl import threadpool_limits

        kernels = sampled(surfaces, samples)
        # Threads of BLAS take longer to agree than these small matrices take.
        with threadpool_limits(1):
            training, features = training_of(kernels, samples)
            labels = groupings(training.apart, self.clusters or _MOST_CLUSTERS)
            counts = tuple(range(1, len(labels) + 1)) if self.clusters is None else (len(labels),)
            amounts = amounts_of(training, Tried(counts, _DEPTHS), logarithms=self.logarithms, seed=seed)
            own = labels[amounts.clusters - 1]
            return PublishedPredictor(
                surfaces.space,
                tuple(samples),
                features,
                training.tree(features.readable_names, own, amounts.depth, seed),
                training.models(own, logarithms=self.logarithms),
                clusters_of(kernels.kernels, own, training.correlations, self.clusters),
            )


@dataclass(frozen=True, eq=False)
class PublishedPredictor:
    """The online stage; see `crosscast.predict.configuration.forecast.ConfigurationPredictor`."""

    space: Space  # The configurations
    # Where a new kernel is run first. Its performance on a device is scaled from the first of them there
    samples: tuple[int, ...]
    features: SampleFeatures  # What the tree asks for
    tree: ClassificationTree  # Finds a kernel's cluster
    models: ClusterModels  # Performance and power of each cluster
    clusters: Clusters  # What the clusters are, for reports

    @cached_property
    def _references(self) -> Integers:
        return references(self.space, self.samples)

    def cluster_of(self, observed: Observed) -> int:
        """Cluster of a kernel by its sample runs."""
        places = sample_places(self.space, self.samples, observed)
        return self._cluster_of(observed, places)

    def _cluster_of(self, observed: Observed, places: Sequence[int]) -> int:
        return self.tree.cluster_of(self.features.readable(self.features.values(observed, places)))

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict time and power; measured values stand where there are runs."""
        places = sample_places(self.space, self.samples, observed)
        cluster = self._cluster_of(observed, places)
        at_sample = observed.time_s[np.array(places)[self._references]]
        return plain_forecast(
            at_sample / self.models.relative_performance[cluster], self.models.power_w[cluster], observed
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            **space_state(self.space, self.samples),
            **self.features.state(),
            **self.tree.state(),
            **self.models.state(),
            **self.clusters.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> PublishedPredictor:
        """Make it from its arrays."""
        space, samples = kept_space(state)
        features = SampleFeatures.from_state(state, len(samples))
        models = ClusterModels.from_state(state, design_of(space))
        clusters = Clusters.from_state(state)
        if len(clusters.members) != len(models):
            raise InputError(
                f"model: cluster_sizes: expected those of {len(models)} clusters, found "
                f"{len(clusters.members)}"
            )
        tree = ClassificationTree.from_state(state, features.readable_names, len(models))
        return cls(space, samples, features, tree, models, clusters)
