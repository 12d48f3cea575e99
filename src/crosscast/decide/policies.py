"""Methods of choosing configurations under power caps, by name: the model's, published ones, baselines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.data.configuration import Objective
from crosscast.decide import (
    GUARD,
    Decisions,
    FittedMethod,
    Method,
    Predictor,
    cases_of,
    highest,
    step,
)
from crosscast.errors import InputError, expect_known
from crosscast.prediction.configuration import (
    ConfigurationModel,
    ConfigurationSpace,
    Observed,
    SurfaceForecast,
    Surfaces,
)
from crosscast.prediction.configuration.artefact import NearestKernels
from crosscast.prediction.configuration.bailey2014 import PUBLISHED_CLUSTERS, PublishedModel
from crosscast.prediction.configuration.choice import (
    check_choice,
    merit,
    probability_under,
    select,
    within_cap,
)
from crosscast.prediction.configuration.process import ProcessModel, ProcessPredictor

TOLERANCE = 0.02
"""Share of a cap by which a forecast of the method ``model`` may miss it.

It makes choices faster, and more of them exceed the cap, most by less than the spread of repeated runs."""


@dataclass(frozen=True)
class FeedbackCapping(Method):
    """Starts with all knobs at their maximum, and steps down, knob by knob, while the power is over the cap.

    The frequency limiting of Bailey et al. 2014, section V-A, for any knobs.
    """

    name: str = "limiter"
    knobs: tuple[str, ...] | None = None  # Its knobs; all by default
    device: str | None = None  # Its device; that of the first sample configuration by default
    baseline: bool = True

    def _policy(self, surfaces: Surfaces, samples: Sequence[int], predictor: Predictor) -> FittedMethod:
        space, knobs = surfaces.space, self.knobs or surfaces.space.knobs
        device = self.device if self.device is not None else space.configurations[samples[0]].device

        def decide(observed: Observed, power_cap: float, available: Flags, budget: int) -> Decisions:
            number: int | None = highest(space, available, device)
            while number is not None:
                run = yield number
                if within_cap(float(run.power_w[0]), power_cap):
                    return
                number = step(space, number, available, knobs, -1)

        return FittedMethod(decide, uses_budget=False)


def knob_methods(space: ConfigurationSpace) -> tuple[FeedbackCapping, ...]:
    """Return the feedback capping of each numeric knob, ``cpu+fl`` of ``cpu_cap_w``, or of each device."""
    if len(space.devices) > 1:
        return tuple(FeedbackCapping(f"{device}+fl", device=device) for device in space.devices)
    short = {knob: re.sub(r"(_cap)?(_w|_hz|_s|_j)?$", "", knob) or knob for knob in space.knobs}
    return tuple(FeedbackCapping(f"{short[knob]}+fl", knobs=(knob,)) for knob in space.knobs)


@dataclass(frozen=True)
class WithFeedback(Method):
    """A method whose first choice is corrected by measurement (Model+FL of section V-A).

    It steps down while over the cap, with `ups` then up knobs that make it faster or cost no power, and ends
    at the fastest measured configuration within the cap. With `returns` the last change is spent on that one,
    if any: better than a step down where the first choice is far above the cap, worse where it is near.
    """

    inner: Method
    name: str
    ups: bool = False
    returns: bool = False

    @property
    def confidence(self) -> float | None:
        """The confidence of the corrected method."""
        return self.inner.confidence

    @property
    def baseline(self) -> bool:
        """Whether the corrected method is a baseline."""
        return self.inner.baseline

    @property
    def learner(self) -> ConfigurationModel | None:
        """The model of the corrected method."""
        return self.inner.learner

    def _policy(self, surfaces: Surfaces, samples: Sequence[int], predictor: Predictor) -> FittedMethod:
        inner = self.inner.fit(surfaces, samples, predictor=predictor)

        def decide(observed: Observed, power_cap: float, available: Flags, budget: int) -> Decisions:
            first = inner.decide(observed, power_cap, available, 0)
            path = _Path(surfaces.space, available, power_cap, next(first), budget)
            first.close()
            path.add(observed)
            path.add((yield path.number))
            yield from path.down(self.returns)
            if self.ups:
                yield from path.up() if path.within(path.number) else path.sideways()
            best = path.best()
            if best is not None and best != path.number:
                yield best

        return FittedMethod(decide, uses_budget=self.ups or self.returns)


@dataclass
class _Path:
    """The state of a correction: its configuration, measurements and remaining changes."""

    space: ConfigurationSpace
    available: Flags
    power_cap: float
    number: int
    changes_left: int
    time_s: dict[int, float] = field(default_factory=dict)
    power_w: dict[int, float] = field(default_factory=dict)

    def add(self, runs: Observed) -> None:
        numbers = runs.numbers.tolist()
        self.time_s.update(zip(numbers, runs.time_s.tolist(), strict=True))
        self.power_w.update(zip(numbers, runs.power_w.tolist(), strict=True))

    def take(self, number: int) -> Decisions:
        self.number, self.changes_left = number, self.changes_left - 1
        self.add((yield number))

    def within(self, number: int) -> bool:
        return bool(within_cap(self.power_w[number], self.power_cap))

    def best(self) -> int | None:
        """Return the fastest measured configuration within the cap; of several, the first."""
        inside = [number for number in self.time_s if self.within(number)]
        return min(inside, key=self.time_s.__getitem__, default=None)

    def down(self, returns: bool) -> Decisions:
        """Step down while over the cap."""
        while not self.within(self.number):
            if returns and self.changes_left == 1 and self.best() is not None:
                return
            down = step(self.space, self.number, self.available, self.space.knobs, -1)
            if down is None:
                return
            yield from self.take(down)

    def sideways(self) -> Decisions:
        """While over the cap at the bottom, step up knobs that cost no power."""
        bottom = self.number
        for knob in reversed(self.space.knobs):
            base = bottom
            while self.changes_left > 0 and not self.within(self.number):
                up = step(self.space, base, self.available, (knob,), 1)
                if up is None or self.power_w[base] > self.power_w[bottom] * (1 + GUARD):
                    break
                if up not in self.power_w:
                    yield from self.take(up)
                base = up

    def up(self) -> Decisions:
        """While under the cap, step up knobs that make it faster, with one change in reserve to go back."""
        base = self.number
        for knob in self.space.knobs:
            while self.changes_left >= 2 and self.within(base):
                up = step(self.space, base, self.available, (knob,), 1)
                if up is None:
                    break
                if up not in self.time_s:
                    yield from self.take(up)
                if not self.within(up) or self.time_s[up] >= self.time_s[base]:
                    break
                base = up


@dataclass(frozen=True)
class Oracle(Method):
    """Takes the fastest measured configuration within the cap, else the one of least power: a reference."""

    name: str = "oracle"
    sees_all: bool = True

    def _policy(self, surfaces: Surfaces, samples: Sequence[int], predictor: Predictor) -> FittedMethod:
        def decide(observed: Observed, power_cap: float, available: Flags, budget: int) -> Decisions:
            within = within_cap(observed.power_w, power_cap)
            fastest = np.argmin(np.where(within, observed.time_s, np.inf))
            yield int(observed.numbers[fastest if within.any() else np.argmin(observed.power_w)])

        return FittedMethod(decide, uses_budget=False)


@dataclass(frozen=True)
class SelectedModel(Method):
    """Takes the best by the forecast of a model, open loop (section III-C), or else `least_bad`."""

    model: ConfigurationModel
    name: str
    confidence: float | None = None  # Probability with which the cap must be kept; see `choice.select`
    baseline: bool = False  # Whether other methods are compared with it
    # Share of the cap by which a predicted power may be above it, without a confidence; none, as published
    tolerance: float = 0.0

    @property
    def learner(self) -> ConfigurationModel:
        """The model."""
        return self.model

    def tested_on(self, programs: Sequence[str]) -> Self:
        """Make the method whose model has intervals by errors on these programs."""
        return replace(self, model=self.model.tested_on(programs))

    def _policy(self, surfaces: Surfaces, samples: Sequence[int], predictor: Predictor) -> FittedMethod:
        assert predictor is not None
        latest: list[tuple[Observed, SurfaceForecast]] = []

        def decide(observed: Observed, power_cap: float, available: Flags, budget: int) -> Decisions:
            # The forecast does not depend on the cap, so a new cap needs no new one.
            if not latest or latest[0][0] is not observed:
                latest[:] = [(observed, predictor.forecast(observed))]
            forecast = latest[0][1]
            chosen = select(
                forecast, power_cap, confidence=self.confidence, tolerance=self.tolerance, available=available
            )
            if chosen is None:
                chosen = least_bad(forecast, probability_under(forecast, power_cap, available), available)
            yield chosen

        return FittedMethod(decide, uses_budget=False)


def least_bad(forecast: SurfaceForecast, within: Reals, available: Flags) -> int:
    """Return the configuration to take where none is likely enough to keep to a cap, as it is `within`."""
    known = available & np.isfinite(forecast.power.centre)
    probability = np.where(known, within, 0.0)
    power = np.where(known, forecast.power.centre, np.inf)
    return int(np.lexsort((power, -probability, ~known, ~available))[0])


WORTH = 0.03
"""Least expected gain of a change of configuration, as a share of the best expected performance."""

_QUANTILES = np.linspace(0.02, 0.98, 25)
"""Quantiles of time over which a gain is averaged."""


@dataclass(frozen=True)
class ClosedLoopSearch(Method):
    """The model with feedback: each run corrects the forecast, by which `next_number` chooses the next.

    It continues while the expected improvement (Mockus 1975), times the probability of keeping to the cap, is
    at least `WORTH`, and ends at the best measured configuration within the cap.
    """

    model: ProcessModel = field(default_factory=ProcessModel)
    name: str = "model+fl"

    @property
    def learner(self) -> ConfigurationModel:
        """The model."""
        return self.model

    def tested_on(self, programs: Sequence[str]) -> Self:
        """Make the method whose model has intervals by errors on these programs."""
        return replace(self, model=self.model.tested_on(programs))

    def _policy(self, surfaces: Surfaces, samples: Sequence[int], predictor: Predictor) -> FittedMethod:
        assert isinstance(predictor, ProcessPredictor)

        def decide(observed: Observed, power_cap: float, available: Flags, budget: int) -> Decisions:
            posterior = predictor.posterior(observed)
            current: int | None = None
            for runs_left in range(budget + 1, 0, -1):
                forecast = posterior.forecast(observed)
                number = next_number(forecast, power_cap, available, current=current, runs_left=runs_left)
                if number == current:
                    return
                current = number
                observed = observed.with_runs((yield number))

        return FittedMethod(decide)


def next_number(
    forecast: SurfaceForecast,
    power_cap: float,
    available: Flags,
    *,
    current: int | None,
    runs_left: int,
    objective: Objective = "performance",
) -> int:
    """Return the number of the configuration to take next; `runs_left` counts its run."""
    within = probability_under(forecast, power_cap, available)
    worths = merit(forecast.time.centre, forecast.power.centre, objective)
    expected = np.where(available & np.isfinite(worths), within * worths, 0.0)
    if not expected.any():
        # None is expected to keep to the cap.
        return least_bad(forecast, within, available)
    needed = WORTH * expected.max()
    if current is None:
        # A configuration that proves over the cap can be left for the best otherwise, if a change remains.
        rescued = (1 - within) * (expected.max() - needed) if runs_left > 1 else 0.0
        return int(np.argmax(np.where(expected > 0, expected + rescued, -1.0)))
    measured = np.where(forecast.measured, expected, -1.0)
    best = int(np.argmax(measured))
    if runs_left == 1:
        number = int(np.argmax(expected))
        return number if expected[number] > expected[current] + needed else current
    # Expected improvement of each configuration over the best measured one.
    times = np.stack([forecast.time.quantile(share) for share in _QUANTILES])
    better = np.maximum(merit(times, forecast.power.centre, objective) - max(measured[best], 0.0), 0.0)
    gains = np.where(np.isfinite(worths), within * better.mean(axis=0), 0.0)
    number = int(np.argmax(np.where(available & ~forecast.measured, gains, -1.0)))
    if gains[number] > needed and not forecast.measured[number]:
        return number
    return best if measured[best] > expected[current] else current


@dataclass(frozen=True)
class Fixed(Method):
    """Always takes the available configuration of the best score over training kernels and their caps."""

    name: str = "fixed"
    baseline: bool = True

    def _policy(self, surfaces: Surfaces, samples: Sequence[int], predictor: Predictor) -> FittedMethod:
        cases = cases_of(surfaces, samples)
        if not len(cases):
            raise InputError.of(where=surfaces.label, expected="training kernels under caps", found="none")
        within = within_cap(surfaces.power_w[cases.kernel], cases.power_cap[:, None])
        performance = cases.oracle_time_s[:, None] / surfaces.time_s[cases.kernel]
        scores = cases.share @ np.where(within, performance, 0.0)
        best_first = np.argsort(-scores, kind="stable")

        def decide(observed: Observed, power_cap: float, available: Flags, budget: int) -> Decisions:
            yield int(best_first[available[best_first]][0])

        return FittedMethod(decide, uses_budget=False)


CONFIDENCE = 0.9
"""Default probability with which methods with forecast errors keep to caps."""


def _by_name(confidence: float) -> Mapping[str, Method]:
    """Return the methods that every machine has, in the order of tables."""
    methods: list[Method] = [
        Fixed(),
        FeedbackCapping(),
        WithFeedback(FeedbackCapping(), "limiter-returns", returns=True),
    ]
    for model in (PublishedModel(), PublishedModel(PUBLISHED_CLUSTERS), NearestKernels()):
        selected = SelectedModel(model, model.name, baseline=True)
        methods += [selected, WithFeedback(selected, f"{model.name}+fl")]
    nearest = methods[-2]
    methods.append(WithFeedback(nearest, f"{nearest.name}+steps", ups=True))
    process = ProcessModel()
    methods += [
        SelectedModel(process, "model", tolerance=TOLERANCE),
        SelectedModel(process, "model-strict"),
        SelectedModel(process, "model-confident", confidence=confidence),
        ClosedLoopSearch(),
        Oracle(),
    ]
    return {method.name: method for method in methods}


_METHODS = _by_name(CONFIDENCE)
MAIN = tuple(name for name in _METHODS if not name.startswith(f"published-{PUBLISHED_CLUSTERS}"))
"""The methods of comparisons by default, besides those of single knobs."""


def method_names(space: ConfigurationSpace) -> tuple[str, ...]:
    """Return the names of all methods for a machine, in the order of tables: single knobs come second."""
    knob_names = [each.name for each in knob_methods(space)]
    return ("fixed", *knob_names, *(name for name in _METHODS if name != "fixed"))


def check_method_names(names: Sequence[str], spaces: Sequence[ConfigurationSpace]) -> None:
    """Refuse names that no machine has."""
    known = tuple(dict.fromkeys(name for space in spaces for name in method_names(space)))
    for index, name in enumerate(names):
        expect_known(name, known, field="methods", words="all or some of")
        if name in names[:index]:
            raise InputError.of(field="methods", expected="each once", found=f"{name} twice")


def methods_of(
    space: ConfigurationSpace, names: Sequence[str] | None = None, confidence: float = CONFIDENCE
) -> tuple[Method, ...]:
    """Return the methods for the configurations of a machine, in the order of tables."""
    check_choice(confidence=confidence)
    by_knob = {each.name: each for each in knob_methods(space)}
    known = {**_by_name(confidence), **by_knob}
    wanted = {*MAIN, *by_knob} if names is None else set(names)
    return tuple(known[name] for name in method_names(space) if name in wanted)
