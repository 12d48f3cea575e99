"""Linear models of performance and power, a pair for each cluster (Bailey et al. 2014, section III-B)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.configuration.published.design import Design
from crosscast.predict.state import kept_integers

__all__ = ["ClusterModels", "fit_cluster_models"]


@dataclass(frozen=True, eq=False)
class ClusterModels:
    """Models of ``k`` clusters.

    Parameters
    ----------
    design
        ``p`` variables of ``c`` configurations of ``d`` devices.
    logarithms
        Whether the models are of the logarithms of performance and power.
    performance
        ``(k, p)`` Coefficients of the performance relative to that at the sample; ``(k, p + d)`` with the
        devices' intercepts if of logarithms: without, all would be as fast as the sample where every variable
        is 0. NaN for a device of which nothing was learned.
    power
        ``(k, p + d)`` Coefficients of the power in watts, the devices' intercepts last.
    least_performance, least_power
        ``(k, d)`` Least values that the cluster's kernels have on a device: a line may run below 0, and is
        cut there.
    """

    design: Design
    logarithms: bool
    performance: Reals
    power: Reals
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
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged, or has other shapes than the design.
        """
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

    Parameters
    ----------
    design
        Variables of the configurations.
    relative, power_w
        ``(n, c)`` Performance relative to that at the sample, and power in watts; NaN where not known.
    clusters
        ``(n,)`` Cluster of each kernel, from 0 on without gaps.
    logarithms
        Whether to fit the logarithms.
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
