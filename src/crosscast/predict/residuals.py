"""How the errors of a point model on held-out applications hang together between devices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.arrays import Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.grid import Grid
from crosscast.predict.kinds import kinds_of
from crosscast.predict.model import PointModel
from crosscast.predict.weights import application_weights

__all__ = ["covariance_of", "held_out_errors"]

_LEAST_APPLICATIONS = 3
_SHRINKAGE = 0.3
_LIMIT = 1.5
# Median of the absolute value over the standard deviation, for a normal distribution.
_MEDIAN_TO_SD = 0.6745
_LEAST_VARIANCE = 1e-4


def held_out_errors(model: PointModel, grid: Grid, seed: int) -> Reals:
    """Errors of the logarithm on each application, by the model fitted to the others.

    Returns
    -------
    array
        Measured less predicted, of shape ``(n, d)``; not a number where not measured.

    Raises
    ------
    InputError
        If there are fewer than three applications.
    """
    groups = grid.profiles.groups("application")
    found = len(set(groups.tolist()))
    if found < _LEAST_APPLICATIONS:
        raise InputError(
            f"applications: expected at least {_LEAST_APPLICATIONS} with profiles and records, found {found} "
            "(fewer cannot tell how sure a forecast is)"
        )
    errors = np.full(grid.log_time.shape, np.nan)
    for group in range(found):
        out = groups == group
        predictor = model.fit(grid.take(~out), seed)
        errors[out] = grid.log_time[out] - predictor.log_time(grid.profiles.take(out))
    return errors


def covariance_of(errors: Reals, grid: Grid) -> Reals:
    """Covariance of the errors between devices, of shape ``(d, d)``.

    About zero, since a model that is wrong by the same factor everywhere is wrong. Correlations are shrunk to
    one value among devices of a type and vendor and one between such groups, so that the matrix is sound
    also where few kernels were measured. Large errors are limited to 1.5 robust standard deviations, so that
    no kernel sets it alone, and as they are seen apart (`crosscast.predict.conditioning`).
    """
    weights = application_weights(grid.profiles)
    known = np.isfinite(errors)
    limit = _LIMIT * float(np.median(np.abs(errors[known]))) / _MEDIAN_TO_SD if known.any() else 0.0
    limited = np.where(known, np.clip(errors, -limit, limit), 0.0) * np.sqrt(weights)[:, None]
    shared = (known * weights[:, None]).T @ known.astype(np.float64)
    products = np.divide(limited.T @ limited, shared, out=np.zeros_like(shared), where=shared > 0)
    variances, seen = np.diag(products).copy(), known.any(axis=0)
    # Without an error that tells, a device is as unsure as the others, and not perfectly sure.
    variances[~seen] = variances[seen].mean() if seen.any() else 1.0
    np.fill_diagonal(products, variances)
    scale = np.sqrt(np.maximum(variances, _LEAST_VARIANCE))
    correlation = products / scale[:, None] / scale
    shrunk = (1 - _SHRINKAGE) * correlation + _SHRINKAGE * _by_group(correlation, grid.devices)
    covariance: Reals = _positive(shrunk) * scale[:, None] * scale
    return covariance


def _by_group(correlation: Reals, devices: Sequence[Device]) -> Reals:
    kinds = kinds_of(devices)
    alike, off = kinds[:, None] == kinds, ~np.eye(len(kinds), dtype=bool)
    means = np.ones_like(correlation)
    for pairs in (alike & off, ~alike & off):
        if pairs.any():
            means[pairs] = correlation[pairs].mean()
    return means


def _positive(correlation: Reals) -> Reals:
    values, vectors = np.linalg.eigh(correlation)
    positive: Reals = (vectors * np.maximum(values, _LEAST_VARIANCE)) @ vectors.T
    return positive
