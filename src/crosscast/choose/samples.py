"""At which two configurations a new kernel is run first."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.choose.steps import highest, lowest
from crosscast.errors import InputError
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["two_samples"]

_RIDGE = 0.1
_COMMON = 0.9
"""Share of the kernels of the pair that most have run at that other pairs must have."""


def two_samples(surfaces: Surfaces, seed: int = 0) -> tuple[int, ...]:
    """Choose two sample configurations by the training kernels.

    On one device the highest configuration and the lowest are taken: what a kernel does without limits, and
    how much they cost it. Of several devices, two are taken, and the highest or lowest configuration of each:
    those from whose times and powers a linear regression predicts best what a kernel takes elsewhere, each
    training kernel left out, among pairs at which most kernels have run. (The paper has two devices, and
    takes one configuration of each: Bailey et al. 2014, table II.)

    Parameters
    ----------
    surfaces
        The training kernels.
    seed
        Does not matter, as nothing is random.

    Raises
    ------
    InputError
        If there are not two configurations at which a kernel has run.
    """
    known = surfaces.known
    space = surfaces.space
    ran: Flags = np.any(known, axis=0)
    devices = [
        device for number, device in enumerate(space.devices) if ran[space.device_numbers == number].any()
    ]
    # On a device, configurations that few kernels ran at are no samples.
    common = _common(surfaces)
    high = [highest(space, common, device) for device in devices]
    low = [lowest(space, common, device) for device in devices]
    if len(devices) == 1:
        pairs = [(high[0], low[0])] if high != low else []
    else:
        corners = [
            (number, corner) for number, pair in enumerate(zip(high, low, strict=True)) for corner in pair
        ]
        pairs = [
            (a, b)
            for (one, a), (other, b) in combinations(dict.fromkeys(corners), 2)
            if one != other and (known[:, a] & known[:, b]).any()
        ]
    if not pairs:
        raise InputError(f"{surfaces.label}: expected two configurations at which kernels ran, found fewer")
    if len(pairs) == 1:
        return pairs[0]
    counts = np.array([(known[:, a] & known[:, b]).sum() for a, b in pairs])
    frequent = [pair for pair, count in zip(pairs, counts, strict=True) if count >= _COMMON * counts.max()]
    return min(frequent, key=lambda pair: (_error(surfaces, pair), pair))


def _common(surfaces: Surfaces) -> Flags:
    counts = surfaces.known.sum(axis=0)
    numbers = surfaces.space.device_numbers
    most = np.array([counts[numbers == number].max() for number in range(len(surfaces.space.devices))])
    common: Flags = (counts >= _COMMON * most[numbers]) & (counts > 0)
    return common


def _error(surfaces: Surfaces, pair: tuple[int, int]) -> float:
    """Mean squared error of the logarithms of time and power elsewhere, each kernel left out."""
    columns = list(pair)
    told = surfaces.known[:, columns].all(axis=1)
    if told.sum() < 2:
        return np.inf
    time, power = np.log(surfaces.time_s[told]), np.log(surfaces.power_w[told])
    inputs = np.hstack([time[:, columns], power[:, columns]])
    errors = [_left_out(inputs, time - time[:, columns[:1]]), _left_out(inputs, power)]
    return float(np.nanmean(np.concatenate(errors, axis=1)))


def _left_out(inputs: Reals, values: Reals) -> Reals:
    """``(n, c)`` Squared errors of a ridge regression at each kernel that it is not fitted to."""
    squared = np.full(values.shape, np.nan)
    for column in range(values.shape[1]):
        there = np.isfinite(values[:, column])
        if there.sum() < 2:
            continue
        rows = inputs[there]
        spread = rows.std(axis=0)
        rows = (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        wanted = values[there, column] - values[there, column].mean()
        inner = rows.T @ rows + _RIDGE * len(rows) * np.eye(rows.shape[1])
        hat = rows @ np.linalg.solve(inner, rows.T) + 1 / len(rows)
        squared[there, column] = ((wanted - hat @ wanted) / (1 - np.diag(hat))) ** 2
    return squared
