"""A grid without gaps: cells without a time get what the other cells of their row and column suggest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.grid import Grid, Profiles

__all__ = ["Filled", "device_effects", "filled"]


@dataclass(frozen=True)
class Filled:
    """Times of ``n`` kernels on ``d`` devices.

    Parameters
    ----------
    profiles
        The kernels.
    log_time
        Natural logarithms of times in seconds, of shape ``(n, d)``; finite.
    """

    profiles: Profiles
    log_time: Reals


def filled(grid: Grid) -> Filled:
    """Leave out kernels without any time, and fill the cells that are left without one.

    The logarithm of a time is taken as a kernel's effect plus a device's, by least squares over the measured
    cells (`device_effects`). Measured cells stay as they are.

    Raises
    ------
    InputError
        If the grid has no time, or none on a device.
    """
    known = np.isfinite(grid.log_time)
    there = np.count_nonzero(known, axis=0)
    if not known.any():
        raise InputError("grid: expected kernels with times, found none")
    lacking = [each.key for each, timed in zip(grid.devices, there, strict=True) if not timed]
    if lacking:
        raise InputError(f"grid: expected times on every device, found none on {', '.join(lacking)}")
    measured = grid.take(np.flatnonzero(np.count_nonzero(known, axis=1)))
    times = measured.log_time
    effects = device_effects(times)
    level = np.nanmean(times - effects, axis=1, keepdims=True)
    return Filled(measured.profiles, np.where(np.isfinite(times), times, level + effects))


def device_effects(log_time: Reals) -> Reals:
    """How much slower each device is, by the kernels that were measured on several of them.

    Parameters
    ----------
    log_time
        Of shape ``(n, d)``; not a number where not measured. Each row and column has a number.

    Returns
    -------
    array
        Effects with mean 0, of shape ``(d,)``; where devices fall apart into sets that share no kernel, with
        mean 0 within each set.
    """
    known = np.isfinite(log_time)
    counts = known.sum(axis=1)
    centred = np.where(known, log_time - np.nanmean(log_time, axis=1, keepdims=True), 0.0)
    # Normal equations after elimination of the rows' effects: a Laplacian, singular by one constant a set.
    shares = known / counts[:, None]
    laplacian = np.diag(known.sum(axis=0).astype(np.float64)) - known.T.astype(np.float64) @ shares
    effects: Reals = np.linalg.pinv(laplacian, hermitian=True) @ centred.sum(axis=0)
    return effects
