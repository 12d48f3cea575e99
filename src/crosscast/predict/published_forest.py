"""The published forest (Johnston, Falzon and Milthorpe 2018, section III): time from metrics and device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.cell_trees import Rows, Tree, draw_trees
from crosscast.predict.grid import Grid, Profiles, metric
from crosscast.predict.grown import trees_of_forest
from crosscast.predict.state import kept_names, kept_reals
from crosscast.predict.trees import Trees
from crosscast.profile import METRICS

__all__ = ["FittedForest", "PublishedForest", "device_codes"]


@dataclass(frozen=True)
class PublishedForest:
    """A random forest on all metrics and the device, with a row for each cell.

    The paper has a row for each run; `crosscast.evaluate.published` does it in that way. As in the
    published scripts, a metric that is not defined is 0, and the device is one feature: its place in the
    order of the devices' mean log times (ranger's ``respect.unordered.factors = "order"``).

    Parameters
    ----------
    trees
        Number of trees (``num.trees``).
    tried
        Features that are tried at each node (``mtry``); all where there are fewer.
    node_size
        A node of at most so many rows is not split (``min.node.size``).
    """

    trees: int = 505
    tried: int = 30
    node_size: int = 9

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "published-forest"

    def fit(self, grid: Grid, seed: int) -> FittedForest:
        """Fit it to a grid that may have cells without a time.

        Raises
        ------
        InputError
            If no cell has a time.
        MissingExtraError
            If scikit-learn is not installed.
        """
        kernel, device = np.nonzero(~np.isnan(grid.log_time))
        if len(kernel) == 0:
            raise InputError("published-forest: expected a cell with a time to fit to, found none")
        log_time = grid.log_time[kernel, device]
        defined = np.flatnonzero(np.isfinite(grid.profiles.metrics).any(axis=0)).tolist()
        metrics = tuple(METRICS[place].name for place in defined)
        codes = device_codes(device, log_time, len(grid.devices))
        features = np.column_stack([_matrix(grid.profiles, metrics)[kernel], codes[device]])
        rows = Rows(features, np.arange(len(kernel)), log_time)
        drawn = draw_trees(rows, self.trees, tried=self.tried, seed=seed)
        return FittedForest(metrics, codes, _as_trees([each.tree.cut(self.node_size) for each in drawn]))


@dataclass(frozen=True)
class FittedForest:
    """A fitted forest; see `PublishedForest`.

    Parameters
    ----------
    metrics
        Names of the metrics that it looks at.
    codes
        Feature of each of the ``d`` devices, of shape ``(d,)``.
    trees
        Its trees, on the metrics and the device.
    """

    metrics: tuple[str, ...]
    codes: Reals
    trees: Trees

    def log_time(self, profiles: Profiles) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        n, d = len(profiles), len(self.codes)
        metrics = np.repeat(_matrix(profiles, self.metrics), d, axis=0)
        rows = np.column_stack([metrics, np.tile(self.codes, n)])
        return self.trees.sum(rows).reshape(n, d)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {"metrics": np.array(self.metrics), "device_codes": self.codes, **self.trees.state()}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedForest:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged, or a metric is not known.
        """
        metrics, codes = kept_names(state, "metrics"), kept_reals(state, "device_codes", 1)
        unknown = sorted(set(metrics) - {metric.name for metric in METRICS})
        if unknown:
            raise InputError(f"model: metrics: expected names of metrics, found {', '.join(unknown)}")
        trees = Trees.from_state(state, len(metrics) + 1)
        if trees.value.shape[1] != 1:
            raise InputError(f"model: leaf_value: expected one output, found {trees.value.shape[1]}")
        return cls(metrics, codes, trees)


def _as_trees(trees: Sequence[Tree]) -> Trees:
    """The trees in the form in which they are kept, by way of scikit-learn's names for their arrays."""
    return trees_of_forest(
        SimpleNamespace(estimators_=[SimpleNamespace(tree_=_named(each)) for each in trees])
    )


def _named(tree: Tree) -> SimpleNamespace:
    return SimpleNamespace(
        children_left=tree.left,
        children_right=tree.right,
        feature=tree.feature,
        threshold=tree.threshold,
        value=tree.value[:, None, None],
    )


def device_codes(device: Integers, response: Reals, devices: int) -> Reals:
    """Place of each device in the order of their mean responses; those without a row come last.

    Parameters
    ----------
    device
        Number of each row's device, of shape ``(n,)``.
    response
        Response of each row, of shape ``(n,)``.
    devices
        How many devices there are.

    Returns
    -------
    array
        The places, of shape ``(devices,)``.
    """
    counts = np.bincount(device, minlength=devices)
    sums = np.bincount(device, response, minlength=devices)
    means = np.divide(sums, counts, out=np.full(devices, np.inf), where=counts > 0)
    codes = np.empty(devices)
    codes[np.argsort(means, kind="stable")] = np.arange(devices)
    return codes


def _matrix(profiles: Profiles, metrics: Sequence[str]) -> Reals:
    """Metrics of ``n`` profiles, 0 where not defined, of shape ``(n, number of metrics)``."""
    values = np.column_stack([np.empty((len(profiles), 0)), *(metric(profiles, name) for name in metrics)])
    return np.where(np.isfinite(values), values, 0.0)
