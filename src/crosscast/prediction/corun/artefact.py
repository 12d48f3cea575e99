"""A trained model of co-runs: its card, its folder, and its forecasts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from crosscast.arrays import Arrays
from crosscast.data.corun import IsolatedRun, MeasuredMix, Member
from crosscast.data.fields import decode
from crosscast.errors import InputError
from crosscast.prediction.corun import (
    CoRunForecast,
    CoRunPrediction,
    CoRunPredictor,
    CoRunResiduals,
    Estimate,
    Mix,
    MixForecast,
    check_profile,
    estimates,
    is_plausible,
    longest_alone,
    physical,
)
from crosscast.prediction.corun.features import Traits, raw_value
from crosscast.prediction.corun.probes import (
    NO_MIXES,
    MeasuredMixes,
    SuggestedMixes,
    suggest_mixes,
    with_measured,
)
from crosscast.prediction.corun.slowdowns import SlowdownProcess
from crosscast.prediction.intervals import check_level
from crosscast.prediction.serialization import Nested, Stored, register_homes
from crosscast.prediction.store import StoredModel
from crosscast.prediction.trained import StructCard, Trained, format_names, outside_training

_HOMES = {
    "corun-mean": "crosscast.prediction.corun.models",
    "corun-process": "crosscast.prediction.corun.models",
    "corun-published": "crosscast.prediction.corun.moolchandani2022",
    "corun-sum": "crosscast.prediction.corun.models",
}
register_homes(_HOMES)


class CoRunCard(StructCard, frozen=True):
    """Description of a fitted model, stored beside its arrays."""

    model: str
    seed: Annotated[int, Meta(ge=0)]  # Of the fit
    device: str  # Key of the device that the mixes shared
    configuration: str  # Settings of the device, and how it was shared, as JSON
    sizes: Annotated[tuple[Annotated[int, Meta(ge=2)], ...], Meta(min_length=1)]  # Of the mixes, ascending
    applications: tuple[str, ...]  # Names of the applications of these mixes
    memory_bytes: Annotated[int, Meta(ge=1)] | None  # Memory of the device; `None` if not known
    # For people: sources of the training data, its counts, a hash
    training: dict[str, object]
    # Scores on held-out mixes; see `crosscast.evaluation.corun.question.train_corun`
    errors: dict[str, object]
    inputs: tuple[str, ...] | None = None  # These applications with their sizes; `None` for any sizes
    runs: tuple[IsolatedRun, ...] = ()  # Their isolated runs, which mixes can name

    def to_dict(self) -> dict[str, object]:
        """The card as a JSON object, as ``--json`` prints it: without the isolated runs."""
        card: dict[str, object] = {"question": TrainedCoRunModel.question, **self.stored()}
        del card["runs"]
        return card


_MOST_NAMED = 5


def outside_sentences(mix: Sequence[IsolatedRun], ranges: Mapping[str, tuple[float, float]]) -> list[str]:
    """Warnings of traits of a mix outside of these ranges (`Traits.ranges`)."""
    return outside_training(
        (f"{name} of {run.name}", value, low, high)
        for run in {run.name: run for run in mix}.values()
        for name, (low, high) in ranges.items()
        if (value := raw_value(run, name)) is not None
    )


def corun_warnings(
    card: CoRunCard, mix: Sequence[IsolatedRun], ranges: Mapping[str, tuple[float, float]], *, known: bool
) -> tuple[str, ...]:
    """Warnings of a forecast of a mix; sentences without a full stop."""
    warnings = outside_sentences(mix, ranges)
    if len(mix) not in card.sizes:
        sizes = " and ".join(map(str, card.sizes))
        warnings.append(
            f"{len(mix)} applications at once, and the model was trained on mixes of {sizes}: it is asked "
            "beyond what it was tested on, and its intervals are those of these"
        )
    untimed = list(dict.fromkeys(run.name for run in mix if run.time_s is None))
    if untimed:
        names = format_names(untimed, _MOST_NAMED)
        warnings.append(f"no isolated time is known of {names}, so that no time of the mix is told")
    new = sorted({run.application for run in mix} - set(card.applications))
    if not known and len(new) > 1:
        warnings.append(
            f"{format_names(new, _MOST_NAMED)} are all new to the model, and its intervals come from "
            "mixes with one new application"
        )
    return tuple(warnings)


NEW, KNOWN = "new", "known"
"""Residuals of mixes with a held-out application, and of held-out mixes of known applications."""

CoRunErrors = Mapping[str, Mapping[str, CoRunResiduals]]
"""Residuals by `NEW` or `KNOWN`, and quantity."""


@dataclass(frozen=True, eq=False)
class _AnyPredictor(Stored):
    """A stored predictor of any kind."""

    model: Annotated[CoRunPredictor, Nested(kinds=tuple(_HOMES))]


class FittedCoRun(NamedTuple):
    """A fitted model with its out-of-fold residuals."""

    predictor: CoRunPredictor
    errors: CoRunErrors


@dataclass(frozen=True, eq=False)
class TrainedCoRunModel(Trained[CoRunCard, FittedCoRun]):
    """A trained model of applications that share a device.

    Parameters
    ----------
    base
        The model before `with_probes`; ``None`` without mixes that were measured after the training.
    measured
        Mixes that were measured after the training.
    """

    question = "corun"
    intervals = CoRunResiduals.method
    base: TrainedCoRunModel | None = None
    measured: MeasuredMixes = NO_MIXES

    @classmethod
    def read(cls, card: CoRunCard, stored: StoredModel) -> FittedCoRun:
        """Read the predictor of any kind, and the residuals of each quantity."""
        where, arrays = str(stored.path), stored.arrays
        errors: dict[str, dict[str, CoRunResiduals]] = {}
        for prefix in sorted({name.rpartition(".")[0] for name in arrays if name.startswith(_ERRORS)}):
            mixes, _, quantity = prefix.removeprefix(_ERRORS).partition(".")
            state = {
                name[len(prefix) + 1 :]: arrays[name] for name in arrays if name.startswith(f"{prefix}.")
            }
            errors.setdefault(mixes, {})[quantity] = CoRunResiduals.from_state(state, f"{where}: {prefix}")
        return FittedCoRun(_AnyPredictor.from_state(arrays, where).model, errors)

    def arrays(self) -> Arrays:
        """The arrays of the predictor and the residuals."""
        arrays = _AnyPredictor(self.predictor).state()
        for mixes, by_quantity in sorted(self.errors.items()):
            for quantity, residuals in sorted(by_quantity.items()):
                for name, array in residuals.state().items():
                    arrays[f"{_ERRORS}{mixes}.{quantity}.{name}"] = array
        return arrays

    @property
    def predictor(self) -> CoRunPredictor:
        """The fitted model, which predicts without intervals."""
        return self.fitted.predictor

    def predicted(self, mixes: Sequence[Mix]) -> CoRunPrediction:
        """Predict mixes without intervals; those of `measured` are as measured."""
        predict = self.predictor.predict
        prediction = predict(mixes)
        return self.measured.replaced(physical(prediction, mixes), mixes, prediction, predict)

    @property
    def errors(self) -> CoRunErrors:
        """Out-of-fold residuals."""
        return self.fitted.errors

    def predict(self, mixes: Sequence[Sequence[IsolatedRun | str]], *, level: float = 0.9) -> CoRunForecast:
        """Predict mixes with intervals.

        Widths of intervals come from errors on mixes with a held-out application; if all applications of a
        mix are among those of the training, from errors on held-out mixes.

        Parameters
        ----------
        mixes
            Isolated runs of two or more applications for each mix; or names of the training's runs, with
            their sizes, as in ``"kmeans/small"``.
        level
            Probability that the intervals are to hold.

        Returns
        -------
        CoRunForecast
            A forecast of each mix: slowdowns as ratios, times in seconds, power in watts.

        Raises
        ------
        InputError
            If a mix has fewer than two applications, one is unknown or of another device, or the level is no
            probability.
        """
        check_level(level)
        requested = self._mixes(mixes)
        return self.forecast(requested, self.predicted(requested), level)

    def forecast(self, mixes: Sequence[Mix], predicted: CoRunPrediction, level: float) -> CoRunForecast:
        """Forecasts from predictions: with intervals, and with warnings."""
        forecasts = [self._forecast(mix, predicted, index, level) for index, mix in enumerate(mixes)]
        return CoRunForecast(tuple(forecasts))

    def with_probes(
        self, probes: Sequence[tuple[Sequence[IsolatedRun | str], Sequence[float]]]
    ) -> TrainedCoRunModel:
        """Condition the model on measurements of further mixes.

        Forecasts of these mixes are the measured slowdowns, with the noise of measurements as intervals.
        Intervals of other mixes do not change, as errors with so many probes were not measured.

        Parameters
        ----------
        probes
            Mixes, as in `predict`, and the slowdown of each of their co-runners.

        Raises
        ------
        InputError
            If a mix is invalid, a co-runner has no slowdown above 0, or the model is no process.
        """
        if not probes:
            return self
        requested, mixes = self._mixes([mix for mix, _ in probes]), []
        for mix, (_, slowdowns) in zip(requested, probes, strict=True):
            if len(slowdowns) != len(mix) or not all(map(is_plausible, slowdowns)):
                expected = f"a slowdown above 0 for each of {len(mix)} co-runners"
                found = ", ".join(f"{each:g}" for each in slowdowns) or "none"
                raise InputError.of(where="probe", expected=expected, found=found)
            members = tuple(Member(run, float(each)) for run, each in zip(mix, slowdowns, strict=True))
            mixes.append(MeasuredMix(" + ".join(run.name for run in mix), self.card.device, members))
        predictor = self.predictor.with_process(with_measured(self._process, mixes))
        measured = self.measured.with_mixes(list(zip(requested, (each for _, each in probes), strict=True)))
        source = FittedCoRun(predictor, self.errors)
        return replace(self, source=source, base=self.base or self, measured=measured)

    def suggest_probes(
        self,
        count: int,
        mixes: Sequence[Sequence[IsolatedRun | str]],
        *,
        among: Sequence[Sequence[IsolatedRun | str]],
    ) -> SuggestedMixes:
        """Choose mixes to measure that reduce the errors of slowdowns in others most.

        Parameters
        ----------
        count
            Number of mixes to choose.
        mixes
            Mixes of interest, as in `predict`.
        among
            Mixes that can be measured.

        Raises
        ------
        InputError
            If fewer than `count` + 1 mixes can be measured, or there are too many to compare.
        """
        requested = self._mixes(mixes)
        errors = self.errors_of(known=all(map(self.knows, requested)))["slowdown"]
        typical = float(np.average(np.abs(errors.log_error), weights=errors.weights))
        base = None if self.base is None else self.base._process
        return suggest_mixes(self._process, count, requested, self._mixes(among), typical, base)

    @property
    def _process(self) -> SlowdownProcess:
        process = self.predictor.process
        if process is None:
            expected = "a process, as 'crosscast train corun' makes by default"
            raise InputError.of(where="model", expected=expected, found=self.card.model)
        return process

    def _mixes(self, mixes: Sequence[Sequence[IsolatedRun | str]]) -> list[Mix]:
        """Resolve mixes to isolated runs."""
        resolved = [tuple(self._run(each) for each in mix) for mix in mixes]
        few = next((mix for mix in resolved if len(mix) < 2), None)
        if few is not None:
            raise InputError.of(where="mix", expected="at least 2 applications", found=len(few))
        return resolved

    def _run(self, run: IsolatedRun | str) -> IsolatedRun:
        """Resolve a run, or the name of one of the training; raise InputError for those it cannot predict."""
        if isinstance(run, str):
            by_name = {each.qualified_name: each for each in reversed(self.card.runs)}
            if run not in by_name:
                known = format_names([*reversed(by_name)], _MOST_NAMED) or "none"
                expected = f"an isolated run, or the name of one of the training ({known})"
                raise InputError.of(where="mix", expected=expected, found=repr(run))
            run = by_name[run]
        check_profile(run, self.card.device)
        return run

    @cached_property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Ranges of the traits of the training's applications; empty for a card without their runs."""
        runs = self.card.runs
        return Traits.of(runs).ranges(runs) if runs else {}

    def knows(self, mix: Mix) -> bool:
        """Whether all applications of a mix are among those of the training, at the same sizes."""
        if self.card.inputs is not None:
            return {run.name for run in mix} <= set(self.card.inputs)
        return {run.application for run in mix} <= set(self.card.applications)

    def errors_of(self, *, known: bool) -> Mapping[str, CoRunResiduals]:
        """Residuals by quantity for the intervals of a mix; empty if none are stored."""
        errors = self.errors
        return errors.get(KNOWN if known else NEW) or errors.get(NEW) or {}

    def _forecast(self, mix: Mix, predicted: CoRunPrediction, index: int, level: float) -> MixForecast:
        known, measured = self.knows(mix), mix in self.measured
        errors, row = self.errors_of(known=known), slice(index, index + 1)
        slowdown = estimates(predicted.slowdown[index], errors, "slowdown", level)
        (time_s,) = estimates(predicted.time_s[row], errors, "time", level)
        (power_w,) = estimates(predicted.power_w[row], errors, "power", level)
        if measured:
            slowdown = self._measured(mix, slowdown, level)
            time_s = time_s and time_s.within(_widest(slowdown))
            least_s = longest_alone(mix, predicted.slowdown[index].tolist())
        else:
            least = min(errors["slowdown"].least or 1.0, 1.0) if "slowdown" in errors else 1.0
            slowdown = tuple(each and each.at_least(least) for each in slowdown)
            least_s = longest_alone(mix)
        time_s = time_s and time_s.at_least(least_s)
        value = float(predicted.time_s[index])
        if time_s is None and all(slowdown) and is_plausible(value):
            # Without measured times, the interval is that of the least certain slowdown.
            factor = _widest(slowdown)
            time_s = Estimate(value, value / factor, value * factor, level).at_least(least_s)
        times = [run.time_s for run in mix if run.time_s is not None]
        fits = float(predicted.fits[index])
        memory = [run.memory_bytes for run in mix if run.memory_bytes is not None]
        return MixForecast(
            mix,
            slowdown,
            time_s,
            sum(times) if len(times) == len(mix) else None,
            power_w,
            fits if math.isfinite(fits) else None,
            sum(memory) if len(memory) == len(mix) else None,
            level,
            corun_warnings(self.card, mix, self.ranges, known=known),
            measured,
        )

    def _measured(
        self, mix: Mix, slowdown: Sequence[Estimate | None], level: float
    ) -> tuple[Estimate | None, ...]:
        """Limit intervals of measured slowdowns to the noise that the process found in measurements."""
        deviation = math.sqrt(self._process.sizes.noise / self.measured.repeats(mix))
        deviations = NormalDist().inv_cdf((1 + level) / 2) * deviation
        factor = self._process.scale.noise_factor
        return tuple(
            each and each.within(float(factor(np.array(each.value), deviations))) for each in slowdown
        )


def _widest(slowdown: Sequence[Estimate | None]) -> float:
    """Largest factor between a value and the upper limit of its interval."""
    return max((each.high / each.value for each in slowdown if each is not None), default=math.inf)


_ERRORS = "errors."


def open_model(stored: StoredModel) -> TrainedCoRunModel:
    """The model of a folder; its arrays are read when first needed."""
    card = decode(CoRunCard, stored.card, stored.where)
    return TrainedCoRunModel(card, stored)
