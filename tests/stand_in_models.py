"""Models simple enough to know what they must score, and small grids, for tests of evaluations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from crosscast.arrays import Reals
from crosscast.device import Device
from crosscast.predict.time.data import Grid, Profiles
from crosscast.predict.time.gaussian import Forecast
from crosscast.profile import METRICS

Fit = Callable[[Grid, int], None]


def make_grid(log_time: Reals, application: Sequence[str], kernel: Sequence[str] | None = None) -> Grid:
    """A grid of these times; the first metric is the number of the kernel."""
    n, d = log_time.shape
    metrics = np.ones((n, len(METRICS)))
    metrics[:, 0] = np.arange(n)
    kernels = kernel or [f"k{row}" for row in range(n)]
    profiles = Profiles(tuple(application), tuple(kernels), ("tiny",) * n, metrics)
    devices = tuple(Device(f"d{place}", type="gpu" if place else "cpu") for place in range(d))
    runs = np.where(np.isnan(log_time), 0, 5)
    return Grid(profiles, devices, log_time, np.full((n, d), 0.1), runs)


def random_grid(n: int = 12, d: int = 4, applications: int = 4, seed: int = 0) -> Grid:
    """Kernels in turn of each application, with random times around a millisecond."""
    rng = np.random.default_rng(seed)
    names = [f"a{row % applications}" for row in range(n)]
    return make_grid(rng.normal(-7, 1, (n, 1)) + rng.normal(0, 1, (n, d)), names)


def keys_of(devices: Sequence[str | Device] | None, known: Sequence[Device]) -> tuple[str, ...]:
    asked = known if devices is None else devices
    return tuple(device if isinstance(device, str) else device.key for device in asked)


@dataclass(frozen=True)
class MeanPredictor:
    """The mean of each device; of all devices for one that is not known."""

    devices: tuple[Device, ...]
    means: Reals

    def predict(
        self,
        profiles: Profiles,
        devices: Sequence[str | Device] | None = None,
        *,
        probes: Reals | None = None,
        level: float = 0.9,
    ) -> Forecast:
        known = {device.key: mean for device, mean in zip(self.devices, self.means, strict=True)}
        keys = keys_of(devices, self.devices)
        row = np.array([known.get(key, self.means.mean()) for key in keys])
        centre = np.tile(row, (len(profiles), 1))
        if probes is not None:
            # Kernels of which nothing is known stay where they are.
            errors = np.nan_to_num(np.log(probes) - self.means)
            centre += (errors.sum(axis=1) / np.maximum(np.isfinite(probes).sum(axis=1), 1))[:, None]
        return Forecast(keys, np.exp(centre), np.exp(centre - 2), np.exp(centre + 2), level)


@dataclass(frozen=True)
class MeanModel:
    """Fits `MeanPredictor`; `when_fitted` is told each grid that it sees."""

    name: str = "device-mean"
    shift: float = 0.0
    when_fitted: Fit | None = field(default=None, repr=False, compare=False)

    def fit(self, grid: Grid, seed: int) -> MeanPredictor:
        if self.when_fitted is not None:
            self.when_fitted(grid, seed)
        return MeanPredictor(grid.devices, np.nanmean(grid.log_time, axis=0) + self.shift)


@dataclass(frozen=True)
class Oracle:
    """Answers with the times of a grid that it was given beforehand, as no honest model can."""

    grid: Grid
    name: str = "oracle"

    def fit(self, grid: Grid, seed: int) -> "OraclePredictor":
        return OraclePredictor(self.grid, grid.devices)


@dataclass(frozen=True)
class OraclePredictor:
    """Finds a kernel by its first metric."""

    grid: Grid
    devices: tuple[Device, ...]

    def predict(
        self,
        profiles: Profiles,
        devices: Sequence[str | Device] | None = None,
        *,
        probes: Reals | None = None,
        level: float = 0.9,
    ) -> Forecast:
        keys = keys_of(devices, self.devices)
        places = {device.key: place for place, device in enumerate(self.grid.devices)}
        rows = profiles.metrics[:, 0].astype(int)
        centre = np.exp(self.grid.log_time[rows][:, [places[key] for key in keys]])
        return Forecast(keys, centre, centre / 1.01, centre * 1.01, level)
