"""A trained model of times: its folder, and its forecasts with warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from itertools import chain
from typing import Protocol, runtime_checkable

import numpy as np

from crosscast.arrays import Arrays, Reals
from crosscast.data.fields import decode
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.prediction.intervals import CAUTIOUS
from crosscast.prediction.named_models import PLUGINS
from crosscast.prediction.serialization import register_homes
from crosscast.prediction.store import StoredModel
from crosscast.prediction.time import ProfileBatch, Toolchain
from crosscast.prediction.time.card import (
    MetricRange,
    Probes,
    Range,
    Suggestion,
    TimeCard,
    TrainedTimes,
    doubt_of_probe,
    suggest_probes,
)
from crosscast.prediction.time.forecast import PointPredictor, TimeForecast
from crosscast.prediction.time.gaussian import GaussianPredictor, Posterior
from crosscast.prediction.time.launch_model import MODEL, TrainedLaunchTimes
from crosscast.prediction.trained import format_names, of_counts, outside_training
from crosscast.profile import METRICS, Profile
from crosscast.units import format_seconds

register_homes(
    {
        "combined": "crosscast.prediction.time.models",
        "doubt": "crosscast.prediction.time.launch_times",
        "forest": "crosscast.prediction.time.models",
        "mean": "crosscast.prediction.time.models",
        "nearest": "crosscast.prediction.time.models",
        "physical": "crosscast.prediction.time.physical",
        "terms": "crosscast.prediction.time.launch_times",
    }
)


_ENOUGH = 64


def metric_ranges(point: PointPredictor, profiles: ProfileBatch) -> tuple[MetricRange, ...]:
    """Find the metrics on which predictions depend, by removing each in turn."""
    sample = profiles.take(np.arange(0, len(profiles), max(1, len(profiles) // _ENOUGH)))
    ranges = []
    with np.errstate(all="ignore"):
        before = point.log_time(sample)
        for column, metric in enumerate(METRICS):
            values = profiles.metrics[np.isfinite(profiles.metrics[:, column]), column]
            metrics = sample.metrics.copy()
            metrics[:, column] = np.nan
            try:
                required, unchanged = (
                    False,
                    np.array_equal(point.log_time(replace(sample, metrics=metrics)), before),
                )
            except InputError:
                required, unchanged = True, False
            if values.size and not unchanged:
                ranges.append(MetricRange(metric.name, required, float(values.min()), float(values.max())))
    return tuple(ranges)


_FAR = 0.999
_MORE_INSTRUCTIONS = 1.25
_COUNTS = [
    column
    for column, metric in enumerate(METRICS)
    if metric.name == "total_instruction_count" or metric.name.endswith(("_itb", "_ipt"))
]


_MOST_DEVICES = 4
_WORDS = {
    "peak_flop_per_s": "peak rate",
    "clock_hz": "clock",
    "bandwidth_bytes_per_s": "bandwidth",
    "compute_units": "compute units",
    "l1_bytes": "first cache",
    "l2_bytes": "second cache",
    "tdp_w": "power",
}
"""Names of a device's numbers in warnings."""


@dataclass(frozen=True, eq=False)
class TrainedTimeModel(TrainedTimes[GaussianPredictor]):
    """A model of the times of kernels on devices, fitted to these devices."""

    intervals = CAUTIOUS

    @classmethod
    def read(cls, card: TimeCard, stored: StoredModel) -> GaussianPredictor:
        """Read the predictor for the devices of the card."""
        return GaussianPredictor.from_state(stored.arrays, str(stored.path), devices=card.devices)

    def arrays(self) -> Arrays:
        """The arrays of the predictor."""
        return self.predictor.state()

    def _predict(
        self, batch: ProfileBatch, devices: Sequence[Device], probes: Probes | None, level: float
    ) -> TimeForecast:
        times = None if probes is None else probes.seconds
        forecast = self.predictor.predict(batch, devices, probes=times, level=level)
        posterior = forecast.errors
        assert isinstance(posterior, Posterior)
        of_devices = list(self._far_devices(devices))
        warnings = [list(of_devices) for _ in range(len(batch))]
        sources = [
            self._other_toolchains(batch, posterior),
            self._outside(batch, forecast),
            ((row, text) for row, launches in enumerate(batch.launches) for text in of_counts(launches)),
        ]
        if probes is not None:
            sources.append(self._far_probes(posterior))
        for row, sentence in chain.from_iterable(sources):
            warnings[row].append(sentence)
        return replace(forecast, warnings=tuple(map(tuple, warnings)))

    def suggest_probes(
        self, count: int, *, among: Sequence[str] | None = None, measured: Sequence[str] = ()
    ) -> Suggestion:
        """Devices whose measured times reduce errors most; see `crosscast.prediction.time.card`."""
        return suggest_probes(self.predictor, count, among=among, measured=measured)

    def _far_devices(self, devices: Sequence[Device]) -> Iterator[str]:
        """Warn of devices far outside of the training's, whose intervals are wider for that."""
        unseen, known = self.predictor.unseen, self.predictor.keys
        new = [device for device in devices if device.key not in known]
        far = {each.key: numbers for each in new if unseen is not None and (numbers := unseen.far(each))}
        if not far:
            return
        ways: dict[str, float] = {}
        for numbers in far.values():
            for name, outside in numbers.items():
                ways[name] = max(ways.get(name, 0.0), outside)
        most = ", ".join(_WORDS.get(name, name) for name in sorted(ways, key=lambda name: -ways[name]))
        are, their = ("is", "its interval is") if len(far) == 1 else ("are", "their intervals are")
        yield (
            f"{format_names(list(far), _MOST_DEVICES)} {are} far outside of the {len(known)} devices that "
            f"the model was trained on in: {most}; {their} wider for that, and may still be too narrow"
        )

    def _other_toolchains(self, batch: ProfileBatch, posterior: Posterior) -> Iterator[tuple[int, str]]:
        """Warn of profiles of other toolchains, with the effect of more instructions on the predictions.

        Counts of instructions are what compilers change most.
        """
        trained = " and ".join(map(str, self.card.toolchains))
        known = {Toolchain(toolchain.compiler, toolchain.options) for toolchain in self.card.other_toolchains}
        for row, toolchains in enumerate(batch.toolchains):
            for toolchain in toolchains:
                # The card states the effect of the known others, as of Crosscast's own compiler.
                if toolchain in self.card.toolchains or toolchain in known:
                    continue
                profile = batch.take(np.array([row]))
                metrics = profile.metrics.copy()
                metrics[:, _COUNTS] *= _MORE_INSTRUCTIONS
                shift = (
                    self.predictor.point.log_time(replace(profile, metrics=metrics)) - posterior.centre[row]
                )
                more, change = 100 * (_MORE_INSTRUCTIONS - 1), 100 * np.expm1(np.median(shift))
                effect = (
                    f"the effect of that was not measured; {more:.0f} % more instructions would change "
                    f"the predicted times by {change:+.0f} %"
                )
                origin = (
                    f"its profile was made with {toolchain}, and those of the model's training with {trained}"
                )
                yield row, f"{origin}: {effect}"

    def _outside(self, batch: ProfileBatch, forecast: TimeForecast) -> Iterator[tuple[int, str]]:
        """Warn of metrics and predicted times outside of the training's."""
        titles = {metric.name: metric.title for metric in METRICS}
        ranges = [
            (metric_range, batch.metric(metric_range.name))
            for metric_range in self.card.metrics
            if metric_range.name in titles
        ]
        outside = np.zeros(len(batch), dtype=np.bool_)
        for metric_range, values in ranges:
            outside |= (values < metric_range.low) | (values > metric_range.high)
        for row in np.flatnonzero(outside).tolist():
            features = [
                (titles[metric_range.name], float(values[row]), metric_range.low, metric_range.high)
                for metric_range, values in ranges
            ]
            yield from ((row, sentence) for sentence in outside_training(features))
        low, high = self.card.time_s.low, self.card.time_s.high
        least, most = forecast.centre.min(axis=1), forecast.centre.max(axis=1)
        for row in np.flatnonzero((least < low) | (most > high)).tolist():
            worst = format_seconds(float(most[row] if most[row] > high else least[row]))
            trained = f"{format_seconds(low)} to {format_seconds(high)}"
            times = f"the times that the model was trained on ({trained})"
            yield row, f"a predicted time of {worst} is outside of {times}"

    def _far_probes(self, posterior: Posterior) -> Iterator[tuple[int, str]]:
        """Warn of measured times far from the forecast without them; raise InputError for absurd ones."""
        predictor = self.predictor
        # Without probes, all kernels have the same standard deviation.
        no_probes = np.full((1, len(predictor.keys)), np.nan)
        sd = predictor.scatter.moments(no_probes, np.eye(len(predictor.keys)))[1][0]
        halves = predictor.factors(0, _FAR) * sd * predictor.spread_at(posterior.centre)
        for row, column in np.argwhere(np.isfinite(posterior.errors)).tolist():
            key, middle = predictor.keys[column], posterior.centre[row, column]
            seconds = float(np.exp(middle + posterior.errors[row, column]))
            if doubt := doubt_of_probe(key, seconds, middle, halves[row, column], _FAR):
                yield row, doubt


def open_model(stored: StoredModel) -> TrainedTimeModel | TrainedLaunchTimes:
    """The model of a folder; its arrays are read when first needed."""
    card = decode(TimeCard, stored.card, stored.where)
    keys = [device.key for device in card.devices]
    if not keys or len(set(keys)) < len(keys):
        expected = "at least one, and each once"
        raise InputError.of(where=stored.where, field="devices", expected=expected, found=keys)
    if card.model == MODEL:
        return TrainedLaunchTimes(card, stored)
    return TrainedTimeModel(card, stored)


@runtime_checkable
class TimeModel(Protocol):
    """A model of a package: an entry point is a function without arguments that returns one."""

    @property
    def about(self) -> str:
        """One line on what the model predicts."""

    @property
    def devices(self) -> Sequence[Device]:
        """The default devices of predictions."""

    def predict(
        self, profiles: Sequence[Profile], devices: Sequence[Device], level: float
    ) -> tuple[Reals, Reals, Reals]:
        """Seconds of each of ``n`` launches on ``d`` devices, of shape ``(n, d)``: medians, and the lower and
        upper limits of intervals that hold the time with a probability of `level`.
        """


@dataclass(frozen=True, eq=False)
class PluggedTimeModel(TrainedTimes[TimeModel]):
    """A model of another package, with the interface of Crosscast's models."""

    @classmethod
    def read(cls, card: TimeCard, stored: StoredModel) -> TimeModel:
        """Raise InputError: the model is in its package."""
        raise InputError.of(where=stored.folder, expected="a model of Crosscast", found=card.model)

    def arrays(self) -> Arrays:
        """Raise InputError: the model's state is in its package."""
        raise InputError.of(where="model", expected="one that can be kept", found=self.card.model)

    def _predict(
        self, batch: ProfileBatch, devices: Sequence[Device], probes: Probes | None, level: float
    ) -> TimeForecast:
        """Predict times, means over the launches of each kernel."""
        if probes is not None:
            raise InputError.of(field="probe", problem=f"the model {self.card.model} takes no measured times")
        if not batch.launches:
            raise InputError.of(where="profiles", expected="whole profiles", found="metrics alone")
        launches = [launch for group in batch.launches for launch in group]
        answers = self.fitted.predict(launches, devices, level)
        centre, low, high = self._checked(answers, (len(launches), len(devices)))
        middle, least, most = map(batch.mean_of_launches, (centre, low, high))
        keys = tuple(each.key for each in devices)
        return TimeForecast(batch, keys, middle, least, most, level, warnings=((),) * len(batch))

    def suggest_probes(
        self, count: int, *, among: Sequence[str] | None = None, measured: Sequence[str] = ()
    ) -> Suggestion:
        """Raise InputError: such a model takes no measured times."""
        raise InputError.of(
            where="suggest-probes", problem=f"the model {self.card.model} takes no measured times"
        )

    def _checked(self, answers: Sequence[Reals], shape: tuple[int, int]) -> list[Reals]:
        arrays = [np.asarray(each, dtype=np.float64) for each in answers]
        if [each.shape for each in arrays] != [shape] * 3:
            shapes = ", ".join(str(each.shape) for each in arrays)
            raise InputError.of(
                where=f"model {self.card.model}", expected=f"three arrays of shape {shape}", found=f"{shapes}"
            )
        centre, low, high = arrays
        ordered = (low > 0) & (low <= centre) & (centre <= high) & np.isfinite(high)
        if not ordered.all():
            raise InputError.of(
                where=f"model {self.card.model}",
                expected="finite seconds above 0, each median between its limits",
            )
        return arrays


def plugged_model(name: str) -> PluggedTimeModel:
    """Load a model of another package: its code runs. Raise InputError if it is no model of times."""
    entry = {each.name: each for each in metadata.entry_points(group=PLUGINS)}[name]
    package = entry.dist.name if entry.dist else ""
    try:
        model = entry.load()()
    except (ImportError, AttributeError, TypeError) as error:
        raise InputError.of(
            where=f"model {name}", problem=f"{entry.value} of {package} cannot be loaded ({error})"
        ) from error
    if not isinstance(model, TimeModel):
        raise InputError.of(
            where=f"model {name}",
            expected=f"{entry.value} to return a model with about, devices and predict",
            found=type(model).__name__,
        )
    card = TimeCard(
        model=name,
        seed=0,
        training={"about": model.about, "package": package},
        toolchains=(),
        devices=tuple(model.devices),
        metrics=(),
        time_s=Range(0.0, float("inf")),
        errors={},
    )
    return PluggedTimeModel(card, model)
