"""The trained model of launch times as all models are asked: its card, its folder, and its forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from crosscast.arrays import Arrays, Reals
from crosscast.device import Device
from crosscast.devices.architectures import missing, sheets_of
from crosscast.devices.device_files import NUMBERS
from crosscast.devices.siblings import Filled, filled
from crosscast.errors import InputError
from crosscast.prediction.intervals import POOLED, check_level
from crosscast.prediction.store import StoredModel
from crosscast.prediction.time.card import TimeCard, probe_times
from crosscast.prediction.time.data import ProfileBatch
from crosscast.prediction.time.forecast import Assumed, NearestLaunch, TimeForecast
from crosscast.prediction.time.launch_times import LaunchModels, bounds, conditioned, limits
from crosscast.prediction.time.suggestion import Suggestion
from crosscast.prediction.time.terms import TERMS
from crosscast.prediction.time.work import Work, traits_of, work_of
from crosscast.prediction.trained import Trained
from crosscast.prediction.warnings import format_names, of_counts
from crosscast.profile import Profile
from crosscast.units import format_quantity

_WORTH = 0.005
"""Share of a variance from which on a number is worth finding out."""

_NEEDED = {"compute_units", "clock_hz", "bandwidth_bytes_per_s", "peak_flop_per_s"}
"""Numbers without which a forecast is said to be doubtful."""

MODEL = "terms"
"""Name of the model on its card."""


_MOST_DEVICES = 4
_METRICS_ALONE = "its profile has no counts by sub-groups, so that times are less sure: characterize it again"


def _is_counted(launches: Sequence[Profile]) -> bool:
    """Whether profiles counted by sub-groups, all of them."""
    return all(launch.launch.get("sub_groups") is not None for launch in launches)


@dataclass(frozen=True, eq=False)
class _Launches:
    """The launches of ``n`` kernels that are asked about, with their work, which no device changes."""

    batch: ProfileBatch
    work: Work  # Of all launches, one kernel's after another's
    counted: Sequence[bool]  # Of each kernel, whether its profiles counted by sub-groups

    @property
    def middle(self) -> list[int]:
        """Number of the launch in the middle of each kernel's."""
        counts = [len(launches) for launches in self.batch.launches]
        return [end - count + count // 2 for end, count in zip(accumulate(counts), counts, strict=True)]


@dataclass(frozen=True, eq=False)
class TrainedLaunchTimes(Trained[TimeCard, LaunchModels]):
    """A model of the times of kernels on devices, from terms with units."""

    question = "time"
    intervals = POOLED

    @classmethod
    def read(cls, card: TimeCard, stored: StoredModel) -> LaunchModels:
        """What predicts."""
        return LaunchModels.from_state(stored.arrays, str(stored.path))

    def arrays(self) -> Arrays:
        """The arrays of what predicts."""
        return self.predictor.state()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it was trained on."""
        return self.card.devices

    @property
    def predictor(self) -> LaunchModels:
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

        As of `crosscast.prediction.time.artefact.TrainedTimeModel`. A profile without counts by sub-groups,
        as of the published tool, is asked a model that was fitted to metrics alone, and less sure.
        """
        batch = ProfileBatch.asked(profiles)
        check_level(level)
        known = {device.key: device for device in self.devices}
        chosen = [self._device(each, known) for each in (self.devices if devices is None else devices)]
        measured = probe_times(self.devices, batch, probes) if isinstance(probes, Mapping) else probes
        # Probes may be of devices that are not asked about.
        probed = [] if measured is None else np.flatnonzero(np.isfinite(measured).any(axis=0)).tolist()
        asked = {each.key: each for each in (*chosen, *(self.devices[place] for place in probed))}
        lacking = {
            key: filled(each) for key, each in asked.items() if not self.predictor.counted.measured(each)
        }
        every = [lacking[key].device if key in lacking else each for key, each in asked.items()]
        if not batch.launches:
            raise InputError.of(where="profiles", expected="profiles of launches", found="metrics alone")
        counted = [_is_counted(launches) for launches in batch.launches]
        work = work_of([launch for launches in batch.launches for launch in launches])
        launches = _Launches(batch, work, counted)
        centre, shares, deviation, least, most = self._of_launches(launches, every)
        assumed = []
        for column, each in enumerate(asked):
            if each in lacking and lacking[each].taken:
                moved = self._moved(launches, lacking[each], centre[:, column])
                # What physics allows at least, if these numbers are all better than is thought.
                least[:, column] = self._of_launches(launches, [_better(lacking[each])])[3][:, 0]
                assumed.append(_assumed(lacking[each], moved, deviation[:, column]))
                deviation[:, column] = np.sqrt(deviation[:, column] ** 2 + (moved**2).sum(axis=0))
        log_time = np.log(centre)
        is_measured = np.zeros(centre.shape, dtype=np.bool_)
        if measured is not None and probed:
            times = np.full(centre.shape, np.nan)
            for place in probed:
                times[:, list(asked).index(self.devices[place].key)] = measured[:, place]
            log_time, deviation, is_measured = conditioned(
                log_time, deviation, times, self.predictor.counted.together
            )
            least, most = np.where(is_measured, 0.0, least), np.where(is_measured, np.inf, most)
        factor = np.array([[self.predictor.of(each).doubt.factor(level)] for each in counted])
        middle, low, high = limits(np.exp(log_time), deviation, factor, least, most)
        columns = [list(asked).index(each.key) for each in chosen]
        keys = [each.key for each in chosen]
        said = tuple(each for each in assumed if each.device in keys)
        of_devices = (*self._lacking(chosen), *_sentences(said))
        return TimeForecast(
            batch,
            tuple(each.key for each in chosen),
            middle[:, columns],
            low[:, columns],
            high[:, columns],
            level,
            is_measured[:, columns],
            warnings=tuple(
                (*(() if each else (_METRICS_ALONE,)), *of_devices, *of_counts(of_kernel))
                for each, of_kernel in zip(counted, batch.launches, strict=True)
            ),
            terms=shares[:, columns],
            nearest=self._nearest(launches),
            deviation=deviation[:, columns],
            together=self.predictor.counted.together,
            assumed=said,
        )

    def _moved(self, launches: _Launches, sheet: Filled, centre: Reals) -> Reals:
        """How far logarithms of times move with a deviation of each number of siblings, ``(numbers, n)``."""
        variants = [
            replace(
                sheet.device,
                numbers={**sheet.device.numbers, name: each.value * float(np.exp(each.deviation))},
            )
            for name, each in sheet.taken.items()
        ]
        moved: Reals = np.log(self._of_launches(launches, variants)[0] / centre[:, None]).T
        return moved

    def _nearest(self, launches: _Launches) -> tuple[NearestLaunch, ...]:
        """Of each kernel the launch most like that in the middle, which stands for all."""
        found = []
        traits = traits_of(launches.work.take(launches.middle))
        for row, counted in enumerate(launches.counted):
            (name,), (apart,) = self.predictor.of(counted).correction.nearest(traits[row : row + 1])
            found.append(NearestLaunch(name, round(float(np.exp(-apart)), 4)))
        return tuple(found)

    def suggest_probes(
        self, count: int, *, among: Sequence[str] | None = None, measured: Sequence[str] = ()
    ) -> Suggestion:
        """Name devices whose measured times would tell most: the first that are not measured.

        A kernel's errors are as alike on any two devices, so that no choice tells more than another.
        """
        keys = [device.key for device in self.devices if among is None or device.key in among]
        left = [key for key in keys if key not in measured]
        if count > len(left):
            raise InputError.of(where="suggest_probes", expected=f"at most {len(left)} devices", found=count)
        together = self.predictor.counted.together

        def error(n: int) -> float:
            explained = n * together**2 / (1 + (n - 1) * together) if n else 0.0
            deviation = float(np.median(self.predictor.counted.doubt.deviations)) * np.sqrt(1 - explained)
            return float(np.expm1(deviation * np.sqrt(2 / np.pi)))

        return Suggestion(tuple(left[:count]), error(len(measured) + count), error(len(measured)))

    def _device(self, device: str | Device, known: Mapping[str, Device]) -> Device:
        if isinstance(device, Device):
            return device
        if device not in known:
            expected = f"a device that the model knows ({', '.join(known)})"
            raise InputError.of(where="devices", expected=expected, found=repr(device))
        return known[device]

    def _of_launches(
        self, launches: _Launches, devices: Sequence[Device]
    ) -> tuple[Reals, Reals, Reals, Reals, Reals]:
        """Mean times over each kernel's launches, shares, deviations, physical limits, ``(n, d)`` each."""
        batch, work = launches.batch, launches.work
        # A kernel is asked as one whose launches were all counted, or as one of metrics alone.
        counted = np.repeat(launches.counted, [len(each) for each in batch.launches])
        seconds, deviation = np.zeros((2, len(work), len(devices)))
        shares = np.zeros((len(work), len(devices), len(TERMS)))
        for kind in np.unique(counted).tolist():
            rows = counted == kind
            found = self.predictor.of(kind).predict(work.take(rows), devices)
            seconds[rows], shares[rows], deviation[rows] = found
        least, most = bounds(work, sheets_of(devices))
        mean = batch.mean_of_launches
        centre = mean(seconds)
        parts = mean(shares * seconds[..., None]) / centre[..., None]
        return centre, parts, mean(deviation * seconds) / centre, mean(least), mean(most)

    def _lacking(self, devices: Sequence[Device]) -> tuple[str, ...]:
        """Which numbers the sheets of devices that it knows lack, so that usual ones stand for them."""
        lacks = {each.key: missing(each) for each in devices if self.predictor.counted.measured(each)}
        lacking = {key: names for key, names in lacks.items() if names}
        if not lacking:
            return ()
        numbers = ", ".join(dict.fromkeys(name for names in lacking.values() for name in names))
        which = format_names(list(lacking), _MOST_DEVICES)
        sheets = f"the data sheet of {which} lacks" if len(lacking) == 1 else f"data sheets of {which} lack"
        return (f"{sheets} {numbers}: usual numbers are taken",)


def _assumed(sheet: Filled, moved: Reals, deviation: Reals) -> Assumed:
    """The numbers of siblings with their shares of the doubt, given how far each moves the times."""
    variance = (moved**2).mean(axis=1)
    shares = variance / float(variance.sum() + (deviation**2).mean())
    order = np.argsort(-shares, kind="stable").tolist()
    names = list(sheet.taken)
    return Assumed(sheet.device.key, sheet.taken, {names[k]: round(float(shares[k]), 4) for k in order})


def _better(sheet: Filled) -> Device:
    """The device with more of each number that was taken from siblings."""
    more = {name: each.value * float(np.exp(2 * each.deviation)) for name, each in sheet.taken.items()}
    return replace(sheet.device, numbers={**sheet.device.numbers, **more})


def _sentences(said: Sequence[Assumed]) -> tuple[str, ...]:
    """One sentence for all devices that lack numbers which matter."""
    found = [(each, text) for each in said if (text := _sentence(each))]
    if len(found) < 2:
        return tuple(text for _, text in found)
    gains = [f"{each.most} of {each.device}" for each, _ in found if each.shares[each.most] >= _WORTH]
    most = f"; forecasts would gain most from {format_names(gains, _MOST_DEVICES)}" if gains else ""
    which = format_names([each.device for each, _ in found], _MOST_DEVICES)
    return (f"data sheets of {which} lack numbers, for which siblings stand{most}",)


def _sentence(assumed: Assumed) -> str:
    """Which numbers a data sheet lacks, and which of them to find out; empty if none of them matters."""
    share = assumed.shares[assumed.most]
    if share < _WORTH and not assumed.numbers.keys() & _NEEDED:
        return ""
    taken = ", ".join(
        f"{name} ({format_quantity(each.value, NUMBERS[name].unit.replace('count', '')).strip()}, as "
        f"{each.count} of its {each.of} have)"
        for name, each in assumed.numbers.items()
    )
    gains = (
        f"the forecast would gain most from {assumed.most}, {100 * share:.0f} % of its doubt"
        if share >= _WORTH
        else "none of them matters to the forecast, which would gain from times measured on it"
    )
    return f"the data sheet of {assumed.device} lacks {taken}, for which siblings stand; {gains}"
