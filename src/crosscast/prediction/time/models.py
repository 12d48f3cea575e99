"""Models of times by name: the means, the nearest kernel, the published forest, and the default.

The default corrects a model of physical terms by how devices differ on similar kernels.

One vendor's driver takes longer for a single launch, another vendor's compiler makes branches cheap. No
physical term covers that, but errors on training kernels show it. The correction is a Gaussian process on a
kernel's errors less their mean over the devices: how devices differ can be learned from few applications, how
slow a kernel is on all of them cannot. On each device the correction is a sum of two parts, one weighted by
the launch's share of the time, the other by the share of the work; each has its own metrics. Their sizes on a
kind of device are chosen by how well the errors of each training application follow from those of the others.

The metrics of each part were chosen once, by hand, in view of the errors on held-out applications of the
published dataset. That choice is not nested in their evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Annotated

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError, expect_known
from crosscast.prediction.serialization import Array, Nested, Stored
from crosscast.prediction.time import Grid, ProfileBatch, application_weights, device_groups, impute
from crosscast.prediction.time.gaussian import Gaussian
from crosscast.prediction.time.physical import (
    Physical,
    PhysicalPredictor,
    Quantities,
    check_metrics,
    invalid_metrics,
    quantities_of,
    standardized,
)
from crosscast.prediction.trained import squared_distances
from crosscast.prediction.trees import Rows, Trees, device_codes, draw_trees, exported, joined
from crosscast.profile import METRICS

_PAIRS = tuple(product((0.0, 1.0, 4.0), (0.0, 1.0, 4.0)))
"""Candidate sizes of the two parts."""

_MOST_ERROR = 1.5
_ROBUSTNESS = 0.6
_ROWS_AT_ONCE = 4096


def _features(profiles: ProfileBatch, q: Quantities) -> tuple[Reals, Reals]:
    """Features of the two parts, of shapes ``(n, _OF_LAUNCH)`` and ``(n, _OF_WORK)``."""
    check_metrics(profiles, ("unique_branches",))
    branches = np.log1p(profiles.metric("unique_branches"))
    shared = [q.repetition, np.log(q.work_items), np.log(q.per_item), branches]
    of_work = [
        np.log1p(q.bytes),
        np.log1p(q.bytes) - np.log(q.instructions),
        np.log(q.addresses_per_item + 1 / q.work_items),
        np.log1p(q.barriers),
        np.log(q.critical_path / q.per_item),
        q.opcode_mix,
        q.locality,
    ]
    return np.stack(shared, 1), np.stack(shared + of_work, 1)


_OF_LAUNCH, _OF_WORK = 4, 11
_LIMIT = 3.0
_LEAST_SCALE = 1e-9


@dataclass(frozen=True, eq=False)
class Neighbours(Stored):
    """Known kernels in a space of features."""

    centre: Annotated[Reals, Array("f")]  # Mean and standard deviation of each feature over the known kernels
    scale: Annotated[Reals, Array("f", above=0)]
    points: Annotated[Reals, Array("n f")]  # Their features, standardized

    @classmethod
    def of(cls, features: Reals) -> Neighbours:
        """Standardize the features ``(n, f)`` of kernels."""
        centre, scale = features.mean(axis=0), features.std(axis=0) + _LEAST_SCALE
        return cls(centre, scale, standardized(features, centre, scale, _LIMIT))

    def similarity(self, features: Reals) -> Reals:
        """Similarity ``(m, n)`` to the known kernels: 1 where all features are equal, near 0 far away.

        Matern's covariance with a smoothness of 3/2, of the root mean square of the differences between
        standardized features; these are limited to three standard deviations.
        """
        queries = standardized(features, self.centre, self.scale, _LIMIT)
        distances = np.sqrt(squared_distances(queries, self.points) * (3 / len(self.centre)))
        similarity: Reals = (1 + distances) * np.exp(-distances)
        return similarity


@dataclass(frozen=True, eq=False)
class KernelCorrection(Stored):
    """A fitted correction of ``n`` training kernels on ``d`` devices."""

    launch: Neighbours  # The training kernels in the features of the two parts
    work: Neighbours
    by_launch: Annotated[Reals, Array("n d")]  # Weights of the training kernels in the two parts
    by_work: Annotated[Reals, Array("n d")]

    def check(self) -> None:
        """Raise InputError unless both parts are of these kernels and features."""
        n = len(self.by_launch)
        for name, part, features in (("launch", self.launch, _OF_LAUNCH), ("work", self.work, _OF_WORK)):
            if part.points.shape != (n, features):
                expected, found = f"shape {(n, features)}, kernels and features", part.points.shape
                raise InputError.of(field=f"{name}.points", expected=expected, found=found)

    def log_factor(self, profiles: ProfileBatch, quantities: Quantities, shares: Reals) -> Reals:
        """Logarithms of the factors by which to correct times. Of shape ``(n, d)``."""
        of_launch, of_work = _features(profiles, quantities)
        total = np.empty_like(shares)
        # The similarity to every training kernel of a million kernels would need much memory at once.
        for start in range(0, len(profiles), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            total[rows] = shares[rows] * (self.launch.similarity(of_launch[rows]) @ self.by_launch)
            total[rows] += (1 - shares[rows]) * (self.work.similarity(of_work[rows]) @ self.by_work)
        return total


def fit_correction(
    profiles: ProfileBatch, quantities: Quantities, errors: Reals, shares: Reals, devices: Sequence[Device]
) -> KernelCorrection:
    """Fit a correction to errors on training kernels."""
    of_launch, of_work = _features(profiles, quantities)
    launches, works = Neighbours.of(of_launch), Neighbours.of(of_work)
    similarity = launches.similarity(of_launch), works.similarity(of_work)
    known = np.isfinite(errors)
    # A single device has no difference to others.
    known &= known.sum(axis=1, keepdims=True) > 1
    differences, weights = _differences(errors, known), application_weights(profiles)
    groups, kinds = profiles.groups("application"), device_groups(devices)
    by_launch, by_work = np.zeros((2, *differences.shape))
    for kind in np.unique(kinds):
        problems = {}
        for column in np.flatnonzero(kinds == kind).tolist():
            rows = known[:, column]
            pairs, share = np.ix_(rows, rows), shares[rows, column]
            problems[column] = Regression(
                similarity[0][pairs] * np.outer(share, share),
                similarity[1][pairs] * np.outer(1 - share, 1 - share),
                differences[rows, column],
                share,
                weights[rows],
                groups[rows],
            )
        # The smaller sizes where the loss on all devices of a kind is the same.
        losses = [sum(each.loss(pair) for each in problems.values()) for pair in _PAIRS]
        sizes = _PAIRS[int(np.argmin(losses))]
        for column, problem in problems.items():
            rows = known[:, column]
            counts = problem.solve(sizes)[1]
            by_launch[rows, column] = sizes[0] * problem.share * counts
            by_work[rows, column] = sizes[1] * (1 - problem.share) * counts
    return KernelCorrection(launches, works, by_launch, by_work)


def _differences(errors: Reals, known: Flags) -> Reals:
    """Errors less their mean over devices, large ones limited; 0 where not known."""
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)
    differences = np.where(known, errors, 0.0)
    for limit in (np.inf, _MOST_ERROR):
        differences = np.clip(differences, -limit, limit)
        differences = np.where(known, differences - differences.sum(axis=1, keepdims=True) / count, 0.0)
    return differences


@dataclass(frozen=True)
class Regression:
    """Of errors on one device, on the ``n`` kernels that were measured there."""

    launches: Reals  # `(n, n)` Covariances of the two parts at a size of one
    works: Reals
    target: Reals  # `(n,)` Errors less their mean over devices
    share: Reals  # `(n,)` Share of the launch
    weights: Reals  # `(n,)` Weight of each kernel
    applications: Integers  # Number of its application

    def solve(self, sizes: tuple[float, float]) -> tuple[Reals, Reals]:
        """Inverse of the covariance, and its product with the target; a kernel of weight 1 has noise of 1."""
        covariance = sizes[0] * self.launches + sizes[1] * self.works + np.diag(1 / self.weights)
        inverse = np.asarray(np.linalg.inv(covariance), np.float64)
        return inverse, inverse @ self.target

    def loss(self, sizes: tuple[float, float]) -> float:
        """Weighted pseudo-Huber loss on each application, of the process fitted to the others.

        The errors of a Gaussian process on kernels left out follow from the inverse for all (Rasmussen and
        Williams 2006, equation 5.12, for several at a time).
        """
        inverse, counts = self.solve(sizes)
        total = 0.0
        for application in np.unique(self.applications):
            rows = np.flatnonzero(self.applications == application)
            left_out_errors = np.asarray(
                np.linalg.solve(inverse[np.ix_(rows, rows)], counts[rows]), np.float64
            )
            total += float(self.weights[rows] @ np.sqrt(1 + (left_out_errors / _ROBUSTNESS) ** 2))
        return total


@dataclass(frozen=True, eq=False)
class CombinedPredictor(Stored, kind="combined"):
    """A fitted physical model with its correction."""

    physical: Annotated[PhysicalPredictor, Nested(flat=True)]
    correction: Annotated[KernelCorrection, Nested(flat=True)]

    def check(self) -> None:
        """Raise InputError unless the correction is of as many devices."""
        columns, devices = self.correction.by_launch.shape[1], len(self.physical.gpu)
        if columns != devices:
            raise InputError.of(field="by_launch", expected=f"{devices} devices", found=columns)

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds, of shape ``(n, d)``."""
        quantities = quantities_of(profiles)
        times, shares = self.physical.log_time_and_launch_share(quantities)
        return times + self.correction.log_factor(profiles, quantities, shares)


@dataclass(frozen=True)
class Combined:
    """The physical model with a correction for how devices differ."""

    name: str = "combined"

    def fit(self, grid: Grid, seed: int) -> CombinedPredictor:
        """Fit the physical model, then the correction to its errors on the same kernels."""
        physical = Physical().fit(grid, seed)
        quantities = quantities_of(grid.profiles)
        times, shares = physical.log_time_and_launch_share(quantities)
        errors = grid.log_time - times
        correction = fit_correction(grid.profiles, quantities, errors, shares, grid.devices)
        return CombinedPredictor(physical, correction)


@dataclass(frozen=True)
class DeviceMean:
    """The geometric mean of a device's times for any kernel: always the same recommended device.

    Each kernel at a size counts the same. Weighting by application would be the worse baseline: applications
    with few kernels have long ones.
    """

    name: str = "device-mean"

    def fit(self, grid: Grid, seed: int) -> FittedMean:
        """Fit the means; cells without a time are imputed, so that long kernels make no device look slow."""
        return FittedMean(impute(grid).log_time.mean(axis=0))


@dataclass(frozen=True, eq=False)
class FittedMean(Stored, kind="mean"):
    """Means of ``d`` devices."""

    mean: Annotated[Reals, Array("d")]  # Mean logarithms of times in seconds

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        return np.tile(self.mean, (len(profiles), 1))


_AMOUNTS = {
    "instructions": "total_instruction_count",
    "work_items": "work_items",
    "footprint": "total_memory_footprint",
}
_AT_ONCE = 4096


def _logs(names: Sequence[str], profiles: ProfileBatch) -> Reals:
    """Logarithms of amounts, each plus one, of shape ``(n, f)``."""
    metrics = [_AMOUNTS[name] for name in names]
    check_metrics(profiles, metrics)
    return np.log1p(np.column_stack([profiles.metric(metric) for metric in metrics]))


@dataclass(frozen=True)
class Nearest:
    """The times of the training kernel that is most similar in work, in work-items and in data.

    Nearest in the logarithms of these three, or of those that all training kernels have, each scaled to
    deviation 1. Kernels that agree in all of them count as one, with the geometric mean of their times.
    """

    name: str = "nearest"

    def fit(self, grid: Grid, seed: int) -> FittedNearest:
        """Fit the points; cells without a time are imputed."""
        complete = impute(grid)
        invalid = invalid_metrics(complete.profiles, list(_AMOUNTS.values()))
        names = tuple(name for name, row in zip(_AMOUNTS, invalid, strict=True) if not row.any())
        if not names:
            expected = f"one of the metrics {', '.join(_AMOUNTS.values())} of all kernels"
            raise InputError.of(where="profiles", expected=expected, found="none")
        points, number = np.unique(_logs(names, complete.profiles), axis=0, return_inverse=True)
        times = np.zeros((len(points), len(grid.devices)))
        np.add.at(times, number, complete.log_time)
        return FittedNearest(names, points, times / np.bincount(number)[:, None])


@dataclass(frozen=True, eq=False)
class FittedNearest(Stored, kind="nearest"):
    """``k`` points in the space of the amounts, and their times."""

    features: Annotated[tuple[str, ...], Array("f", least=1, among=tuple(_AMOUNTS))]
    points: Annotated[Reals, Array("k f", least=1)]
    times: Annotated[Reals, Array("k d")]  # Natural logarithms of seconds

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        scale = self.points.std(axis=0)
        # A feature that is equal for all points does not change distances.
        scale[scale == 0] = np.inf
        points, rows = self.points / scale, _logs(self.features, profiles) / scale
        nearest = np.empty(len(rows), dtype=np.int64)
        for first in range(0, len(rows), _AT_ONCE):
            part = rows[first : first + _AT_ONCE]
            squares = ((part[:, None, :] - points) ** 2).sum(axis=2)
            nearest[first : first + _AT_ONCE] = squares.argmin(axis=1)
        return self.times[nearest]


@dataclass(frozen=True)
class PublishedForest:
    """A random forest on all metrics and the device, with a row for each cell.

    The paper has a row for each run, as `crosscast.studies.johnston2018` does. As in the
    published scripts, an undefined metric is 0, and the device is one feature: its rank in the
    order of the devices' mean log times (ranger's ``respect.unordered.factors = "order"``).
    """

    trees: int = 505  # Number of trees (`num.trees`)
    tried: int = 30  # Features that are tried at each node (`mtry`); all where there are fewer
    node_size: int = 9  # Most rows of a node that is not split (`min.node.size`)
    name: str = "published-forest"

    def fit(self, grid: Grid, seed: int) -> FittedForest:
        """Fit the forest to a grid that may have cells without a time."""
        kernel, device = np.nonzero(~np.isnan(grid.log_time))
        if len(kernel) == 0:
            raise InputError.of(
                where="published-forest", expected="a cell with a time to fit to", found="none"
            )
        log_time = grid.log_time[kernel, device]
        defined = np.flatnonzero(np.isfinite(grid.profiles.metrics).any(axis=0)).tolist()
        metrics = tuple(METRICS[column].name for column in defined)
        codes = device_codes(device, log_time, len(grid.devices))
        features = np.column_stack([_matrix(grid.profiles, metrics)[kernel], codes[device]])
        rows = Rows(features, np.arange(len(kernel)), log_time)
        drawn = draw_trees(rows, self.trees, tried=self.tried, seed=seed)
        exports = []
        for tree in (each.tree.cut(self.node_size) for each in drawn):
            value = tree.value[:, None] * (1.0 / self.trees)
            exports.append(
                exported(tree.left < 0, tree.feature, tree.threshold, tree.left, tree.right, value)
            )
        return FittedForest(metrics, codes, joined(exports))


@dataclass(frozen=True, eq=False)
class FittedForest(Stored, kind="forest"):
    """A fitted forest; see `PublishedForest`."""

    metrics: Annotated[tuple[str, ...], Array("m", among=tuple(each.name for each in METRICS))]  # Features
    device_codes: Annotated[Reals, Array("d")]  # Feature of each device
    trees: Annotated[Trees, Nested(flat=True)]  # On the metrics and the device

    def check(self) -> None:
        """Raise InputError unless the trees are on these metrics."""
        self.trees.check_width(len(self.metrics) + 1, outputs=1)

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        n, d = len(profiles), len(self.device_codes)
        metrics = np.repeat(_matrix(profiles, self.metrics), d, axis=0)
        rows = np.column_stack([metrics, np.tile(self.device_codes, n)])
        return self.trees.sum(rows).reshape(n, d)


def _matrix(profiles: ProfileBatch, metrics: Sequence[str]) -> Reals:
    """Metrics of ``n`` profiles, 0 where not defined, of shape ``(n, number of metrics)``."""
    values = np.column_stack([np.empty((len(profiles), 0)), *map(profiles.metric, metrics)])
    return np.where(np.isfinite(values), values, 0.0)


DEFAULT_MODEL = "combined"

BASELINES = ("device-mean", "nearest")
"""Names of the models that all others must beat."""

_FEW_TREES = 60

MODELS: Mapping[str, Callable[[], Gaussian]] = {
    "device-mean": partial(Gaussian, DeviceMean()),
    "nearest": partial(Gaussian, Nearest()),
    "published-forest": partial(Gaussian, PublishedForest(), PublishedForest(trees=_FEW_TREES)),
    "physical": partial(Gaussian, Physical()),
    "combined": partial(Gaussian, Combined(), trivial=DeviceMean(), adaptive=True),
}
"""Factories of the models by name, from the trivial to the strong."""


def model_named(name: str) -> Gaussian:
    """Return a new model by its name."""
    expect_known(name, MODELS, where="model")
    return MODELS[name]()
