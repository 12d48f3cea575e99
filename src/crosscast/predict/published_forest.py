"""The published forest (Johnston, Falzon and Milthorpe 2018, section III): time from metrics and device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.errors import InputError
from crosscast.predict.cell_trees import Rows, draw_trees
from crosscast.predict.grid import Grid, Integers, Profiles, Reals
from crosscast.predict.node_table import NodeTable, node_table

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
        columns = np.flatnonzero(np.isfinite(grid.profiles.metrics).any(axis=0))
        codes = device_codes(device, log_time, len(grid.devices))
        features = np.column_stack([_metrics(grid.profiles, columns)[kernel], codes[device]])
        rows = Rows(features, np.arange(len(kernel)), log_time)
        drawn = draw_trees(rows, self.trees, tried=self.tried, seed=seed)
        return FittedForest(columns, codes, node_table([each.tree for each in drawn], self.node_size))


@dataclass(frozen=True)
class FittedForest:
    """A fitted forest; see `PublishedForest`.

    Parameters
    ----------
    columns
        Metrics that it looks at, by their numbers.
    codes
        Feature of each of the ``d`` devices.
    table
        Its trees.
    """

    columns: Integers
    codes: Reals
    table: NodeTable

    def log_time(self, profiles: Profiles) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        n, d = len(profiles), len(self.codes)
        metrics = np.repeat(_metrics(profiles, self.columns), d, axis=0)
        features = np.column_stack([metrics, np.tile(self.codes, n)])
        return self.table.predict(features).reshape(n, d)


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


def _metrics(profiles: Profiles, columns: Integers) -> Reals:
    metrics = profiles.metrics[:, columns]
    return np.where(np.isfinite(metrics), metrics, 0.0)
