"""A trained model of times: what its card says, its folder, and its forecasts with warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from crosscast.arrays import Arrays, Reals
from crosscast.data.fields import decode
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.prediction.intervals import CAUTIOUS
from crosscast.prediction.serialization import register_homes
from crosscast.prediction.store import StoredModel
from crosscast.prediction.time.card import MetricRange, TimeCard, probe_times
from crosscast.prediction.time.data import ProfileBatch, Toolchain
from crosscast.prediction.time.forecast import PointPredictor, TimeForecast
from crosscast.prediction.time.gaussian import GaussianPredictor, Posterior
from crosscast.prediction.time.launch_model import MODEL, TrainedLaunchTimes
from crosscast.prediction.time.suggestion import Suggestion, suggest_probes
from crosscast.prediction.trained import Trained
from crosscast.prediction.warnings import format_names, of_counts, outside_training
from crosscast.profile import METRICS, Profile
from crosscast.units import format_seconds

register_homes(
    {
        "combined": "crosscast.prediction.time.combined",
        "doubt": "crosscast.prediction.time.launch_times",
        "forest": "crosscast.prediction.time.johnston2018",
        "mean": "crosscast.prediction.time.models",
        "nearest": "crosscast.prediction.time.models",
        "physical": "crosscast.prediction.time.physical",
        "terms": "crosscast.prediction.time.launch_times",
        "trees": "crosscast.prediction.time.models",
    }
)


_ENOUGH = 64


def metric_ranges(point: PointPredictor, profiles: ProfileBatch) -> tuple[MetricRange, ...]:
    """Find the metrics on which predictions depend, by taking each away."""
    some = profiles.take(np.arange(0, len(profiles), max(1, len(profiles) // _ENOUGH)))
    found = []
    with np.errstate(all="ignore"):
        before = point.log_time(some)
        for place, each in enumerate(METRICS):
            values = profiles.metrics[np.isfinite(profiles.metrics[:, place]), place]
            metrics = some.metrics.copy()
            metrics[:, place] = np.nan
            try:
                required, same = False, np.array_equal(point.log_time(replace(some, metrics=metrics)), before)
            except InputError:
                required, same = True, False
            if values.size and not same:
                found.append(MetricRange(each.name, required, float(values.min()), float(values.max())))
    return tuple(found)


_ABSURD = 1e3
_FAR = 0.999
_MORE_INSTRUCTIONS = 1.25
_COUNTS = [
    place
    for place, each in enumerate(METRICS)
    if each.name == "total_instruction_count" or each.name.endswith(("_itb", "_ipt"))
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
"""Numbers of a device as people call them."""


@dataclass(frozen=True, eq=False)
class TrainedTimeModel(Trained[TimeCard, GaussianPredictor]):
    """A model of the times of kernels on devices."""

    question = "time"
    intervals = CAUTIOUS

    @classmethod
    def read(cls, card: TimeCard, stored: StoredModel) -> GaussianPredictor:
        """What predicts on the devices of the card."""
        return GaussianPredictor.from_state(stored.arrays, str(stored.path), devices=card.devices)

    def arrays(self) -> Arrays:
        """The arrays of what predicts."""
        return self.predictor.state()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it was trained on."""
        return self.card.devices

    @property
    def predictor(self) -> GaussianPredictor:
        """What predicts."""
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

        Profiles of launches of one kernel, as `crosscast.characterize` gives them, are taken as invocations
        in one run. Devices are keys of those that the model knows, or descriptions of others; by default all
        that it knows. Probes are measured times in seconds: of one kernel by key of the device, or of all of
        shape ``(n, d)`` with the devices that the model knows, not a number where not measured. The level is
        the probability that the intervals are to hold.
        """
        batch = ProfileBatch.asked(profiles)
        measured = probe_times(self.devices, batch, probes) if isinstance(probes, Mapping) else probes
        forecast = self.predictor.predict(batch, devices, probes=measured, level=level)
        made_of = forecast.posterior
        assert made_of is not None
        found: list[list[str]] = [[] for _ in range(len(batch))]
        warned = [
            self._far_devices(len(batch), devices or ()),
            self._other_toolchains(batch, made_of),
            self._outside(batch, forecast),
            ((row, text) for row, launches in enumerate(batch.launches) for text in of_counts(launches)),
        ]
        if measured is not None:
            warned.append(self._far_probes(made_of))
        for row, sentence in chain.from_iterable(warned):
            found[row].append(sentence)
        return replace(forecast, warnings=tuple(map(tuple, found)))

    def suggest_probes(
        self, count: int, *, among: Sequence[str] | None = None, measured: Sequence[str] = ()
    ) -> Suggestion:
        """Name devices whose measured times would tell most; see `crosscast.prediction.time.suggestion`."""
        return suggest_probes(self.predictor, count, among=among, measured=measured)

    def _far_devices(self, rows: int, devices: Sequence[str | Device]) -> Iterator[tuple[int, str]]:
        """Devices that are far outside of those of the training, whose intervals are wider for that."""
        unseen, known = self.predictor.unseen, self.predictor.keys
        far: dict[str, Mapping[str, tuple[float, float, float]]] = {}
        for device in devices:
            if unseen is not None and not isinstance(device, str) and device.key not in known:
                far[device.key] = unseen.far(device)
        names = [key for key, numbers in far.items() if numbers]
        if not names:
            return
        ways = {
            name: max(far[key].get(name, (0, 0, 0))[2] for key in names) for key in names for name in far[key]
        }
        most = [_WORDS.get(name, name) for name in sorted(ways, key=lambda name: -ways[name])]
        are, their = ("is", "its interval is") if len(names) == 1 else ("are", "their intervals are")
        for row in range(rows):
            yield (
                row,
                f"{format_names(names, _MOST_DEVICES)} {are} far outside of the {len(known)} devices that "
                f"the model was trained on in: {', '.join(most)}; {their} wider for that, and may still be "
                "too narrow",
            )

    def _other_toolchains(self, batch: ProfileBatch, made_of: Posterior) -> Iterator[tuple[int, str]]:
        """How profiles of other toolchains change predictions: as was measured, or as counts matter.

        Counts of instructions are what compilers change most.
        """
        trained = " and ".join(map(str, self.card.toolchains))
        known = {Toolchain(each.compiler, each.options) for each in self.card.other_toolchains}
        for row, toolchains in enumerate(batch.toolchains):
            for each in toolchains:
                if each in self.card.toolchains:
                    continue
                if each in known:
                    # Of every profile that Crosscast makes; the card says what that changes.
                    continue
                one = batch.take(np.array([row]))
                metrics = one.metrics.copy()
                metrics[:, _COUNTS] *= _MORE_INSTRUCTIONS
                moved = self.predictor.point.log_time(replace(one, metrics=metrics)) - made_of.centre[row]
                more, change = 100 * (_MORE_INSTRUCTIONS - 1), 100 * np.expm1(np.median(moved))
                said = (
                    f"the effect of that was not measured; {more:.0f} % more instructions would change "
                    f"the predicted times by {change:+.0f} %"
                )
                made = f"its profile was made with {each}, and those of the model's training with {trained}"
                yield row, f"{made}: {said}"

    def _outside(self, batch: ProfileBatch, forecast: TimeForecast) -> Iterator[tuple[int, str]]:
        """Metrics and predicted times that are outside of those of the training."""
        titles = {metric.name: metric.title for metric in METRICS}
        ranges = [(each, batch.metric(each.name)) for each in self.card.metrics if each.name in titles]
        outside = np.zeros(len(batch), dtype=np.bool_)
        for each, values in ranges:
            outside |= (values < each.low) | (values > each.high)
        for row in np.flatnonzero(outside).tolist():
            features = [
                (titles[each.name], float(values[row]), each.low, each.high) for each, values in ranges
            ]
            yield from ((row, sentence) for sentence in outside_training(features))
        low, high = self.card.time_s.low, self.card.time_s.high
        least, most = forecast.centre.min(axis=1), forecast.centre.max(axis=1)
        for row in np.flatnonzero((least < low) | (most > high)).tolist():
            worst = format_seconds(float(most[row] if most[row] > high else least[row]))
            trained = f"{format_seconds(low)} to {format_seconds(high)}"
            times = f"the times that the model was trained on ({trained})"
            yield row, f"a predicted time of {worst} is outside of {times}"

    def _far_probes(self, made_of: Posterior) -> Iterator[tuple[int, str]]:
        """Compare measured times with the forecast without them."""
        predictor = self.predictor
        # Without probes, all kernels are as unsure.
        nothing = np.full((1, len(predictor.keys)), np.nan)
        sd = predictor.scatter.moments(nothing, np.eye(len(predictor.keys)))[1][0]
        halves = predictor.factors(0, _FAR) * sd * predictor.spread_at(made_of.centre)
        for row, place in np.argwhere(np.isfinite(made_of.errors)).tolist():
            key, middle = predictor.keys[place], made_of.centre[row, place]
            seconds = float(np.exp(middle + made_of.errors[row, place]))
            low, high = (float(np.exp(middle + side * halves[row, place])) for side in (-1, 1))
            beyond = max(low / seconds, seconds / high)
            interval = f"{format_seconds(low)} to {format_seconds(high)}"
            if beyond > _ABSURD:
                raise InputError.of(
                    field="probe",
                    problem=(
                        f"{key}: expected about {interval} ({100 * _FAR:g} % interval of the model), found "
                        f"{format_seconds(seconds)}: is it in seconds, and of this kernel?"
                    ),
                )
            if beyond > 1:
                yield (
                    row,
                    f"the time measured on {key}, {format_seconds(seconds)}, is outside of the model's "
                    f"{100 * _FAR:g} % interval ({interval}): check its unit and kernel",
                )


def open_model(stored: StoredModel) -> TrainedTimeModel | TrainedLaunchTimes:
    """The model of a folder; arrays are read when they are needed."""
    card = decode(TimeCard, stored.card, stored.where)
    keys = [device.key for device in card.devices]
    if not keys or len(set(keys)) < len(keys):
        expected = "at least one, and each once"
        raise InputError.of(where=stored.where, field="devices", expected=expected, found=keys)
    if card.model == MODEL:
        return TrainedLaunchTimes(card, stored)
    return TrainedTimeModel(card, stored)
