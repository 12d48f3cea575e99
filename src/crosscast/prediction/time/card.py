"""Trained models of times: their card, how all of them are asked, and suggestions of probes.

Probes are measured times of a kernel on some devices, which narrow the forecast for others.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Annotated, TypeVar

import msgspec
import numpy as np

from crosscast.arrays import Reals
from crosscast.data.fields import decode
from crosscast.device import Device
from crosscast.errors import ImplausibleError, InputError, expect_known
from crosscast.prediction.intervals import check_level
from crosscast.prediction.time import ProfileBatch, Toolchain
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.prediction.time.gaussian import GaussianPredictor, Scatter
from crosscast.prediction.trained import StructCard, Trained
from crosscast.profile import Profile
from crosscast.units import format_seconds

_ABSURD = 1e3
_DRAWS = 4000
_MOST_SETS = 500
"""Beyond this number of sets, devices are chosen one at a time."""


@dataclass(frozen=True)
class Suggestion:
    """Devices to measure on, and the expected error on the others."""

    devices: tuple[str, ...]
    error: float  # Expected factor between predicted and true times, less 1, from its mean logarithm
    error_before: float  # Without measurements on these devices

    def to_dict(self) -> dict[str, object]:
        """The suggestion, for JSON."""
        return {"devices": list(self.devices), "error": self.error, "error_before": self.error_before}


def check_count(count: int, free: int) -> None:
    """Refuse to suggest as many probes as there are unmeasured devices: one is to be predicted."""
    if free < 2:
        expected = "at least two devices that are not measured"
        raise InputError.of(where="suggest-probes", expected=expected, found=free)
    if not 0 < count < free:
        expected = f"from 1 to {free - 1}, as {free} devices are not measured"
        raise InputError.of(where="suggest-probes", expected=expected, found=count)


def suggest_probes(
    predictor: GaussianPredictor,
    count: int,
    *,
    among: Sequence[str] | None = None,
    measured: Sequence[str] = (),
) -> Suggestion:
    """Choose `count` devices among some to measure a kernel on, beside those where it is measured.

    Errors of the model are drawn from their distribution over the devices (the covariance on held-out
    applications, with large errors that devices of a kind sometimes share), which is that of all kernels. For
    each set of devices, the remaining absolute errors of log times on the others are averaged.
    """
    keys = predictor.keys
    expect_known(measured, keys, where="measured")
    candidates = keys if among is None else [key for key in keys if key in set(among)]
    free = [keys.index(key) for key in candidates if key not in measured]
    check_count(count, len(free))
    draws = _drawn(predictor.scatter)
    known = [keys.index(key) for key in measured]

    def error_left(probes: Sequence[int]) -> float:
        """Mean absolute error over the devices of interest with some measured."""
        given = np.full_like(draws, np.nan)
        columns = [*known, *probes]
        given[:, columns] = draws[:, columns]
        others = [column for column in free if column not in probes]
        sums = np.eye(len(keys))[others]
        mean, _ = predictor.scatter.moments(given, sums)
        return float(np.abs(draws[:, others] - mean).mean(axis=0).sum() / len(free))

    chosen: tuple[int, ...] = ()
    step = count if comb(len(free), count) <= _MOST_SETS else 1
    while len(chosen) < count:
        rest = [column for column in free if column not in chosen]
        chosen = min(((*chosen, *more) for more in combinations(rest, step)), key=error_left)
    remaining = len(free) / (len(free) - count)
    return Suggestion(
        tuple(keys[column] for column in chosen),
        float(np.expm1(error_left(chosen) * remaining)),
        float(np.expm1(error_left(()))),
    )


def _drawn(scatter: Scatter) -> Reals:
    """Errors ``(_DRAWS, d)`` drawn from their distribution."""
    random = np.random.default_rng(0)
    sets, variances, odds = scatter.mixture()
    errors: Reals = random.normal(size=(_DRAWS, len(scatter.covariance)))
    errors = errors @ np.linalg.cholesky(scatter.covariance).T
    shared = random.choice(len(sets), _DRAWS, p=odds / odds.sum())
    return errors + sets[shared] * (np.sqrt(variances)[shared] * random.normal(size=_DRAWS))[:, None]


_LEAST_S, _MOST_S = 1e-9, 1e6


class Range(msgspec.Struct, frozen=True):
    """Least and greatest value in the training."""

    low: float
    high: float


class MetricRange(msgspec.Struct, frozen=True):
    """A metric on which predictions depend."""

    name: str
    required: bool  # Whether nothing can be predicted without it
    low: float  # Least and greatest value among the training kernels
    high: float


class Effect(msgspec.Struct, frozen=True):
    """How predictions from another toolchain's profiles differ from those from the training's toolchain."""

    compiler: str
    options: tuple[str, ...]
    kernels: int  # Kernels at a size that were profiled with both
    factor: float  # Median of the predicted time from its profile over that from the training's
    low: float  # The 10 % and 90 % quantiles of these ratios
    high: float

    @property
    def sentence(self) -> str:
        """The effect as a clause of a warning."""
        return (
            f"on {self.kernels} kernels profiled with both, that gives {self.factor:.2f} times the predicted "
            f"time in the median, and {self.low:.2g} to {self.high:.2g} times for 80 % of them"
        )


class HeldOut(msgspec.Struct, frozen=True):
    """Errors on one device of applications that the model was not fitted to."""

    median_error: float  # Of the predicted time over the measured one, less one, absolute
    rmse_log: float  # Root mean square error of the logarithm
    coverage: float  # Share of the times within their intervals, mean over applications
    coverage_worst: float  # In the application with the least
    level: float  # Probability with which the intervals are to hold

    def to_dict(self) -> dict[str, float]:
        """The errors, for JSON."""
        return msgspec.structs.asdict(self)


class Calibrated(msgspec.Struct, frozen=True):
    """The device that joined a model, and its measurements."""

    device: str
    kernels_at_a_size: int
    applications: tuple[str, ...]
    held_out: HeldOut


class TimeCard(StructCard, frozen=True, kw_only=True):
    """Description of a fitted model, stored beside its arrays."""

    model: str
    seed: Annotated[int, msgspec.Meta(ge=0)]
    training: dict[str, object]  # For people: sources of the training data, its counts, a hash
    toolchains: tuple[Toolchain, ...]  # Of the training profiles
    other_toolchains: tuple[Effect, ...] = ()  # Measured effects of others
    devices: tuple[Device, ...]  # In the order of the arrays
    metrics: tuple[MetricRange, ...]
    time_s: Range
    errors: dict[str, object]  # Out-of-fold errors; see `crosscast.evaluation.time.question.train_time`

    @property
    def optimized(self) -> bool:
        """Whether the training's OpenCL C is compiled at ``-O3``; so that what is asked has to be, too."""
        return not self.toolchains or any("-O3" in toolchain.options for toolchain in self.toolchains)

    @property
    def calibrated(self) -> Calibrated | None:
        """The device that joined it by calibration, if one did."""
        facts = self.training.get("calibrated")
        return decode(Calibrated, facts, "training.calibrated") if facts else None


@dataclass(frozen=True, eq=False)
class Probes:
    """Measured times of ``n`` kernels on ``d`` devices."""

    devices: Sequence[Device]
    seconds: Reals  # `(n, d)`, NaN where not measured


FittedT = TypeVar("FittedT")


@dataclass(frozen=True, eq=False)
class TrainedTimes(Trained[TimeCard, FittedT]):
    """A model of the times of kernels on devices."""

    question = "time"

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it was trained on."""
        return self.card.devices

    @property
    def predictor(self) -> FittedT:
        """The fitted predictor."""
        return self.fitted

    def predict(
        self,
        profiles: Profile | Sequence[Profile] | ProfileBatch,
        devices: Sequence[str | Device] | None = None,
        *,
        probes: Mapping[str, float] | Reals | None = None,
        level: float = 0.9,
    ) -> TimeForecast:
        """Predict times of kernels on devices, with intervals, the device to take, and warnings.

        Profiles of launches of one kernel, as `crosscast.characterize` returns them, are invocations
        in one run. Devices are keys of those that the model knows, or descriptions of others; by default all
        that it knows. Probes are measured times in seconds: of one kernel by name of the device, or of all of
        shape ``(n, d)`` with the devices that the model knows, NaN where not measured. The level is
        the probability that the intervals are to hold.

        Raises
        ------
        InputError
            If a device is unknown, the level is no probability, or profiles or probes are not what the model
            takes.
        """
        if not isinstance(profiles, ProfileBatch):
            profiles = ProfileBatch.of([profiles] if isinstance(profiles, Profile) else profiles)
        check_level(level)
        known = {device.key: device for device in self.devices}
        chosen = []
        for device in self.devices if devices is None else devices:
            if isinstance(device, str) and device not in known:
                expected = f"a device that the model knows ({', '.join(known)})"
                raise InputError.of(where="devices", expected=expected, found=repr(device))
            chosen.append(known[device] if isinstance(device, str) else device)
        if not chosen:
            raise InputError.of(where="devices", expected="at least one", found="none")
        if isinstance(probes, Mapping):
            measured = probe_times(self._named_probes(probes, chosen), profiles, probes) if probes else None
        else:
            measured = None if probes is None else self._all_probes(np.asarray(probes), len(profiles))
        return self._predict(profiles, chosen, measured, level)

    @abstractmethod
    def _predict(
        self, batch: ProfileBatch, devices: Sequence[Device], probes: Probes | None, level: float
    ) -> TimeForecast:
        """Predict times; by default, probes are of all devices that the model knows."""

    def _all_probes(self, seconds: Reals, kernels: int) -> Probes:
        """Measured times of all kernels on the devices that the model knows."""
        shape = (kernels, len(self.devices))
        if seconds.shape != shape:
            raise InputError.of(where="probes", expected=f"times of shape {shape}", found=seconds.shape)
        invalid = np.isfinite(seconds) & (seconds <= 0) | np.isinf(seconds)
        if invalid.any():
            found = f"{seconds[invalid][0]:g}"
            raise InputError.of(where="probes", expected="times above 0 s", found=found)
        return Probes(self.devices, seconds)

    def _named_probes(self, names: Iterable[str], devices: Sequence[Device]) -> Mapping[str, Device]:
        """Devices whose measured times say something, by name: those that the model knows."""
        return {device.key: device for device in self.devices}

    @abstractmethod
    def suggest_probes(
        self, count: int, *, among: Sequence[str] | None = None, measured: Sequence[str] = ()
    ) -> Suggestion:
        """Devices whose measured times reduce errors most, and the expected errors."""


def probe_times(devices: Mapping[str, Device], batch: ProfileBatch, probes: Mapping[str, float]) -> Probes:
    """Measured times of one kernel, by names of the devices."""
    if len(batch) > 1:
        found = f"{len(batch)} ({', '.join(batch.kernel)})"
        raise InputError.of(where="probe", expected="one kernel to predict", found=found)
    keys = list(devices)
    times = np.full((len(batch), len(keys)), np.nan)
    for key, seconds in probes.items():
        if key not in keys:
            expected = f"a device that the model knows ({', '.join(keys)})"
            raise InputError.of(where="probe", expected=expected, found=repr(key))
        if not _LEAST_S <= seconds <= _MOST_S:
            raise InputError.of(
                field="probe",
                problem=f"{key}: expected a time from {_LEAST_S:g} to {_MOST_S:g} seconds, found {seconds:g}",
            )
        times[0, keys.index(key)] = seconds
    return Probes(tuple(devices.values()), times)


def doubt_of_probe(key: str, seconds: float, log_time: float, half: float, level: float) -> str | None:
    """Sentence on a measured time outside of a wide interval about the logarithm that was predicted.

    Raise ImplausibleError if it is so far outside that another unit or kernel is likely.
    """
    low, high = float(np.exp(log_time - half)), float(np.exp(log_time + half))
    beyond = max(low / seconds, seconds / high)
    interval = f"{format_seconds(low)} to {format_seconds(high)}"
    if beyond > _ABSURD:
        raise ImplausibleError.of(
            field="probe",
            problem=(
                f"{key}: expected about {interval} ({100 * level:g} % interval of the model), found "
                f"{format_seconds(seconds)}: is it in seconds, and of this kernel?"
            ),
        )
    if beyond <= 1:
        return None
    return (
        f"the time measured on {key}, {format_seconds(seconds)}, is outside of the model's {100 * level:g} % "
        f"interval ({interval}): check its unit and kernel"
    )
