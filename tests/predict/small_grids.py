"""Small grids whose times are known, for tests of models."""

from collections.abc import Mapping

import numpy as np

from crosscast.arrays import Reals
from crosscast.device import Device
from crosscast.predict.time.data import Grid, Profiles
from crosscast.profile import METRICS

_DEFAULTS = {
    "total_instruction_count": 1e5,
    "work_items": 1024.0,
    "work_groups": 16.0,
    "total_memory_footprint": 4096.0,
    "footprint_90": 3000.0,
    "total_reads": 2e4,
    "total_writes": 1e4,
    "mean_simd_width": 1.0,
    "global_memory_address_entropy": 12.0,
    "local_memory_address_entropy_6": 8.0,
    "local_memory_address_entropy_10": 4.0,
}


def small_profiles(n: int, columns: Mapping[str, Reals], applications: int = 4) -> Profiles:
    """Profiles of `n` kernels with plausible metrics; named ones get the given columns."""
    metrics = np.ones((n, len(METRICS)))
    for place, each in enumerate(METRICS):
        metrics[:, place] = columns.get(each.name, np.full(n, _DEFAULTS.get(each.name, 2.0)))
    names = tuple(f"app{row % applications}" for row in range(n))
    return Profiles(names, tuple(f"k{row}" for row in range(n)), ("tiny",) * n, metrics)


def small_grid(n: int = 40, devices: int = 3, seed: int = 0, gaps: float = 0.0) -> Grid:
    """A grid of kernels whose time is work on the lanes that a device has, with some noise and gaps."""
    rng = np.random.default_rng(seed)
    work, items = np.exp(rng.uniform(8, 18, n)), np.floor(np.exp(rng.uniform(0, 12, n)))
    footprint = np.exp(rng.uniform(5, 14, n))
    columns = {"total_instruction_count": work, "work_items": items, "total_memory_footprint": footprint}
    lanes = 16.0 ** (np.arange(devices) + 1)
    rate = 1e8 / (np.arange(devices) + 1)
    log_time = np.log(1e-6 + work[:, None] / np.minimum(items[:, None], lanes) / rate)
    log_time += rng.normal(0, 0.05, log_time.shape)
    gap = rng.random(log_time.shape) < gaps
    gap[np.arange(n), rng.integers(devices, size=n)] = False
    log_time[gap] = np.nan
    return grid_of_times(small_profiles(n, columns), log_time)


def grid_of_times(profiles: Profiles, log_time: Reals) -> Grid:
    """A grid of these times on devices ``d0``, ``d1`` and so on."""
    known = np.isfinite(log_time)
    keys = tuple(Device(f"d{place}") for place in range(log_time.shape[1]))
    return Grid(profiles, keys, log_time, np.where(known, 0.1, np.nan), known.astype(np.int64))


def rms(errors: Reals) -> float:
    """Root of the mean square of those that are numbers."""
    return float(np.sqrt(np.nanmean(errors**2)))
