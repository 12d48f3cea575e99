"""Fits of models that several methods choose by: each is made once."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.decide.cases import Integers, Weighting, cases_of
from crosscast.decide.power_cap import (
    GUARD,
    TOLERANCE,
    Chooser,
    Method,
    Objective,
    Walk,
    check_confidence,
    highest,
    merit,
    probability_under,
    select,
    step_down,
    step_up,
    within_cap,
)
from crosscast.errors import InputError
from crosscast.predict.configuration.bailey2014 import PUBLISHED_CLUSTERS, PublishedModel
from crosscast.predict.configuration.baselines import GaussianProcess, GlobalRegression, NearestKernels
from crosscast.predict.configuration.data import Observed, Space, Surfaces, surfaces_digest
from crosscast.predict.configuration.forecast import (
    ConfigurationModel,
    ConfigurationPredictor,
    SurfaceForecast,
)
from crosscast.predict.configuration.process import ProcessModel, ProcessPredictor

Predictor = TypeVar("Predictor", covariant=True)

_MOST = 4
_LATEST: OrderedDict[tuple[object, ...], Any] = OrderedDict()
"""The latest fits of this process, by all that they depend on."""
_LOCK = threading.Lock()


class _Model(Protocol[Predictor]):
    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Predictor: ...


def fitted(model: _Model[Predictor], surfaces: Surfaces, samples: Sequence[int], seed: int) -> Predictor:
    """Fit a model, or give the fit that another method has just made of the same.

    Models are the same if they are equal, as frozen dataclasses with the same parameters are. What cannot be
    looked up, as it may change, is fitted each time.
    """
    if not _has_hash(model):
        return model.fit(surfaces, samples, seed)
    key = (model, surfaces_digest(surfaces), tuple(samples), seed)
    with _LOCK:
        found: Predictor | None = _LATEST.get(key)
    if found is None:
        found = model.fit(surfaces, samples, seed)
        with _LOCK:
            _LATEST[key] = found
            while len(_LATEST) > _MOST:
                _LATEST.popitem(last=False)
    return found


def _has_hash(model: object) -> bool:
    # A frozen dataclass has one only if all of its fields have.
    try:
        hash(model)
    except TypeError:
        return False
    return True


def model_of(method: object) -> object | None:
    """The model that a method learns, or the method that it limits does; ``None`` for one without."""
    inner: object | None = getattr(method, "inner", None)
    model: object | None = getattr(method, "model", None)
    return model if inner is None else model_of(inner)


@dataclass(frozen=True)
class Limiter:
    """Starts with all knobs at their maximum, and steps down while the measured power is over the cap.

    The first knob, by name, is stepped down to its minimum, then the next one. This is the frequency
    limiting of Bailey et al. 2014, section V-A, for the knobs at hand.
    """

    name: str = "limiter"  # Its name
    knobs: tuple[str, ...] | None = None  # The knobs that it steps; all by default
    device: str | None = None  # The device that it uses; that of the first sample configuration by default
    baseline: bool = True

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Nothing is learned; see `Method.fit`."""
        space = surfaces.space
        device = self.device if self.device is not None else space.configurations[samples[0]].device
        return _LimiterChooser(space, self.knobs or space.knobs, device)


@dataclass(frozen=True)
class _LimiterChooser:
    space: Space
    knobs: tuple[str, ...]
    device: str
    uses_budget: bool = False

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        number: int | None = highest(self.space, available, self.device)
        while number is not None:
            run = yield number
            if within_cap(float(run.power_w[0]), power_cap):
                return
            number = step_down(self.space, number, available, self.knobs)


@dataclass(frozen=True)
class Limited:
    """A method whose first choice is corrected by what is measured: see `limited`.

    With `returns`, the last change that is left is spent on the fastest that was measured within the cap, if
    any was: that is better than a step down where the first choice is far above the cap, and worse where it
    is near.
    """

    inner: Method
    ups: bool
    name: str
    confidence: float | None = None
    baseline: bool = False
    returns: bool = False

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Fit the method that is limited; see `Method.fit`."""
        chooser = self.inner.fit(surfaces, samples, seed)
        return _LimitedChooser(chooser, surfaces.space, self.ups, self.returns, self.ups or self.returns)


def limited(method: Method, ups: bool = False) -> Limited:
    """Add limiting to a method that chooses once (Model+FL of Bailey et al. 2014, section V-A).

    It starts at the method's choice and steps down, as `step_down` does with all knobs, while the measured
    power is over the cap. In the end it takes the fastest of all configurations that were measured within
    the cap, the samples included.
    """
    return Limited(
        method,
        ups,
        f"{method.name}+{'steps' if ups else 'fl'}",
        getattr(method, "confidence", None),
        getattr(method, "baseline", False),
    )


@dataclass(frozen=True)
class _LimitedChooser:
    inner: Chooser
    space: Space
    ups: bool
    returns: bool
    uses_budget: bool

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        first = self.inner.walk(observed, power_cap, available, 0)
        number = next(first)
        first.close()
        path = _Path(self.space, available, power_cap, number, budget)
        path.add(observed)
        path.add((yield number))
        yield from _down(path, self.returns)
        if self.ups:
            yield from _up(path) if path.within(path.number) else _sideways(path)
        best = path.best()
        if best is not None and best != path.number:
            yield best


@dataclass
class _Path:
    """Where a walk is, what it has measured, and how many changes are left."""

    space: Space
    available: Flags
    power_cap: float
    number: int
    left: int
    time_s: dict[int, float] = field(default_factory=dict)
    power_w: dict[int, float] = field(default_factory=dict)

    def add(self, runs: Observed) -> None:
        numbers = runs.numbers.tolist()
        self.time_s.update(zip(numbers, runs.time_s.tolist(), strict=True))
        self.power_w.update(zip(numbers, runs.power_w.tolist(), strict=True))

    def take(self, number: int) -> Walk:
        self.number, self.left = number, self.left - 1
        self.add((yield number))

    def within(self, number: int) -> bool:
        return within_cap(self.power_w[number], self.power_cap)

    def best(self) -> int | None:
        """The fastest of those within the cap; of several the first measured."""
        inside = [number for number in self.time_s if self.within(number)]
        return min(inside, key=self.time_s.__getitem__, default=None)


def _down(path: _Path, returns: bool) -> Walk:
    """Step down while over the cap."""
    while not path.within(path.number):
        if returns and path.left == 1 and path.best() is not None:
            return
        down = step_down(path.space, path.number, path.available, path.space.knobs)
        if down is None:
            return
        yield from path.take(down)


def _sideways(path: _Path) -> Walk:
    """While over the cap at the bottom: step up what costs no power."""
    bottom = path.number
    for knob in reversed(path.space.knobs):
        base = bottom
        while path.left > 0 and not path.within(path.number):
            up = step_up(path.space, base, path.available, (knob,))
            if up is None or path.power_w[base] > path.power_w[bottom] * (1 + GUARD):
                break
            if up not in path.power_w:
                yield from path.take(up)
            base = up


def _up(path: _Path) -> Walk:
    """While under the cap: step up what makes it faster, as long as there is a change left to go back."""
    base = path.number
    for knob in path.space.knobs:
        while path.left >= 2 and path.within(base):
            up = step_up(path.space, base, path.available, (knob,))
            if up is None:
                break
            if up not in path.time_s:
                yield from path.take(up)
            if not path.within(up) or path.time_s[up] >= path.time_s[base]:
                break
            base = up


def knob_limiters(space: Space) -> tuple[Limiter, ...]:
    """The limiters that Bailey et al. 2014 (section V-A) compare with, generalised.

    The paper limits the clock of one device and holds the other's. Here, for each numeric knob one limiter
    starts with all knobs at their maximum and steps that knob alone down, so all others stay at their
    maximum. It is named after the knob, without what says its unit and kind: ``cpu+fl`` for ``cpu_cap_w``,
    ``core_clock+fl`` for ``core_clock_hz``. Where there are several devices, there is one limiter for each
    device, which steps all its knobs, in place of those.
    """
    if len(space.devices) > 1:
        return tuple(Limiter(f"{device}+fl", device=device) for device in space.devices)
    return tuple(Limiter(f"{_short(knob)}+fl", knobs=(knob,)) for knob in space.knobs)


def _short(knob: str) -> str:
    return re.sub(r"(_cap)?(_w|_hz|_s|_j)?$", "", knob) or knob


@dataclass(frozen=True)
class Oracle:
    """Takes the fastest configuration that was measured within the cap; a reference, not a method.

    ``sees_all`` asks the evaluation for the kernel's runs at all configurations in place of the samples.
    Where nothing is within the cap, it takes what needs the least power.
    """

    name: str = "oracle"
    sees_all: bool = True

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Nothing is learned; see `Method.fit`."""
        return _OracleChooser()


@dataclass(frozen=True)
class _OracleChooser:
    uses_budget: bool = False

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        within = within_cap(observed.power_w, power_cap)
        if within.any():
            place = np.argmin(np.where(within, observed.time_s, np.inf))
        else:
            place = np.argmin(observed.power_w)
        yield int(observed.numbers[place])


@dataclass(frozen=True)
class SelectedModel:
    """Takes the best configuration by the forecast of a model, open loop (Bailey et al. 2014, section III-C).

    Where none is likely enough to keep to the cap, it takes what `least_bad` says.
    """

    model: ConfigurationModel  # The model
    name: str  # Name of the method
    # Probability with which the cap must be kept; see `crosscast.decide.power_cap.select`
    confidence: float | None = None
    baseline: bool = False  # Whether other methods are compared with it
    # Share of the cap by which a predicted power may be above it, without a confidence; none, as published
    tolerance: float = 0.0

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Fit the model; see `Method.fit`."""
        predictor = fitted(self.model, surfaces, samples, seed)
        return _SelectedChooser(predictor, self.confidence, self.tolerance)


def least_bad(forecast: SurfaceForecast, power_cap: float, available: Flags) -> int:
    """What to take where nothing is likely enough to keep to a cap."""
    known = available & np.isfinite(forecast.power.centre)
    probability = np.where(known, probability_under(forecast, power_cap, known), 0.0)
    power = np.where(known, forecast.power.centre, np.inf)
    return int(np.lexsort((power, -probability, ~known, ~available))[0])


@dataclass(frozen=True)
class _SelectedChooser:
    predictor: ConfigurationPredictor
    confidence: float | None
    tolerance: float
    latest: list[tuple[Observed, SurfaceForecast]] = field(default_factory=list)
    uses_budget: bool = False

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        forecast = self._forecast(observed)
        chosen = select(
            forecast,
            power_cap,
            confidence=self.confidence,
            tolerance=self.tolerance,
            available=available,
        )
        yield least_bad(forecast, power_cap, available) if chosen is None else chosen

    def _forecast(self, observed: Observed) -> SurfaceForecast:
        """The forecast, which is the same whatever the cap: a new cap needs no new one."""
        if not self.latest or self.latest[0][0] is not observed:
            self.latest[:] = [(observed, self.predictor.forecast(observed))]
        return self.latest[0][1]


WORTH = 0.03
"""Share of the best performance expected that a change of configuration must bring on average."""

_QUANTILES = np.linspace(0.02, 0.98, 25)
"""Quantiles of time over which a gain is averaged."""


@dataclass(frozen=True)
class Steered:
    """The model with limiting: each run corrects the forecast, and the next configuration is chosen by it.

    The first configuration is the one with the best expected performance, where it is worth nothing over the
    cap. After each run the configuration is tried that is expected to gain most over the best that was
    measured within the cap (the expected improvement of Mockus 1975, times the probability of keeping to the
    cap), as long as that is `WORTH` a change. It ends at the best that was measured within the cap. The last
    change that is left is spent on what is best without another.
    """

    model: ProcessModel = field(default_factory=ProcessModel)  # The model
    name: str = "model+fl"  # Name of the method
    worth: float = WORTH  # Share of the best performance expected that a change must bring

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Fit the model; see `Method.fit`."""
        return _SteeredChooser(fitted(self.model, surfaces, samples, seed), self.worth)


@dataclass(frozen=True)
class _SteeredChooser:
    predictor: ProcessPredictor
    worth: float
    uses_budget: bool = True

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        prior = self.predictor.prior(observed)
        current: int | None = None
        left = budget + 1
        while left > 0:
            forecast = prior.forecast(observed)
            number = next_number(forecast, power_cap, available, current=current, left=left, worth=self.worth)
            if number == current:
                return
            current, left = number, left - 1
            run = yield number
            observed = observed.and_run(run)


def next_number(
    forecast: SurfaceForecast,
    power_cap: float,
    available: Flags,
    *,
    current: int | None,
    left: int,
    worth: float = WORTH,
    objective: Objective = "performance",
) -> int:
    """Which configuration to take next."""
    within = probability_under(forecast, power_cap, available)
    worths = merit(forecast.time.centre, forecast.power.centre, objective)
    expected = np.where(available & np.isfinite(worths), within * worths, 0.0)
    if not expected.any():
        # Nothing is thought to keep to the cap.
        return least_bad(forecast, power_cap, available)
    needed = worth * expected.max()
    if current is None:
        # What turns out to be over the cap can be left for what is best without, if a change is left.
        rescued = (1 - within) * (expected.max() - needed) if left > 1 else 0.0
        return int(np.argmax(np.where(expected > 0, expected + rescued, -1.0)))
    kept = np.where(forecast.measured, expected, -1.0)
    best = int(np.argmax(kept))
    if left == 1:
        number = int(np.argmax(expected))
        return number if expected[number] > expected[current] + needed else current
    gains = _gains(forecast, within, worths, max(kept[best], 0.0), objective)
    number = int(np.argmax(np.where(available & ~forecast.measured, gains, -1.0)))
    if gains[number] > needed and not forecast.measured[number]:
        return number
    return best if kept[best] > expected[current] else current


def _gains(
    forecast: SurfaceForecast, within: Reals, worths: Reals, best: float, objective: Objective
) -> Reals:
    """``(c,)`` By how much each configuration is expected to be better than the best that is measured."""
    times = np.stack([forecast.time.quantile(share) for share in _QUANTILES])
    values = merit(times, forecast.power.centre, objective)
    better: Reals = within * np.maximum(values - best, 0.0).mean(axis=0)
    return np.where(np.isfinite(worths), better, 0.0)


@dataclass(frozen=True)
class Fixed:
    """Always takes the configuration with the best score over the training kernels, each under its own caps.

    The score is that of the evaluation: the mean of performance relative to the oracle with violations
    counting 0. Where that configuration cannot be taken, the one with the next best score is.
    """

    name: str = "fixed"  # Its name
    weighting: Weighting = "time"  # How the kernels of a program are weighted: see `cases_of`
    baseline: bool = True

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Rank the configurations; see `Method.fit`."""
        cases = cases_of(surfaces, samples, weighting=self.weighting)
        if not len(cases):
            raise InputError(f"{surfaces.label}: expected training kernels under caps, found none")
        within = within_cap(surfaces.power_w[cases.kernel], cases.power_cap[:, None])
        performance = cases.oracle_time_s[:, None] / surfaces.time_s[cases.kernel]
        scores = cases.share @ np.where(within, performance, 0.0)
        return _FixedChooser(np.argsort(-scores, kind="stable"))


@dataclass(frozen=True)
class _FixedChooser:
    best_first: Integers
    uses_budget: bool = False

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        yield int(self.best_first[available[self.best_first]][0])


CONFIDENCE = 0.9
"""Probability with which methods that know how sure they are keep to caps, unless another is asked for."""

_Maker = Callable[[float], Method]


def _baseline(model: ConfigurationModel) -> Method:
    return SelectedModel(model, model.name, baseline=True)


def _published(clusters: int | None = None, *, logarithms: bool = False) -> Method:
    return _baseline(PublishedModel(clusters, logarithms))


_MAKERS: Mapping[str, _Maker] = MappingProxyType(
    {
        "fixed": lambda _: Fixed(),
        "limiter": lambda _: Limiter(),
        "limiter-returns": lambda _: Limited(
            Limiter(), ups=False, name="limiter-returns", baseline=True, returns=True
        ),
        "published": lambda _: _published(),
        "published+fl": lambda _: limited(_published()),
        f"published-{PUBLISHED_CLUSTERS}": lambda _: _published(PUBLISHED_CLUSTERS),
        f"published-{PUBLISHED_CLUSTERS}+fl": lambda _: limited(_published(PUBLISHED_CLUSTERS)),
        "published-log": lambda _: _published(logarithms=True),
        "published-log+fl": lambda _: limited(_published(logarithms=True)),
        "nearest": lambda _: _baseline(NearestKernels()),
        "nearest+fl": lambda _: limited(_baseline(NearestKernels())),
        "nearest+steps": lambda _: limited(_baseline(NearestKernels()), ups=True),
        "regression": lambda _: _baseline(GlobalRegression()),
        "regression+fl": lambda _: limited(_baseline(GlobalRegression())),
        "gaussian-process": lambda _: _baseline(GaussianProcess()),
        "gaussian-process+fl": lambda _: limited(_baseline(GaussianProcess())),
        "model": lambda _: SelectedModel(ProcessModel(), "model", tolerance=TOLERANCE),
        "model-strict": lambda _: SelectedModel(ProcessModel(), "model-strict"),
        "model-confident": lambda confidence: SelectedModel(
            ProcessModel(), "model-confident", confidence=confidence
        ),
        "model+fl": lambda _: Steered(),
        "oracle": lambda _: Oracle(),
    }
)
"""Each made for a confidence, which those that do not know how sure they are pass over."""

_AFTER = "fixed"
"""The limiters of single knobs, which depend on the machine, come after this one."""

MAIN: tuple[str, ...] = (
    "fixed",
    "limiter",
    "limiter-returns",
    "published",
    "published+fl",
    "nearest",
    "nearest+fl",
    "nearest+steps",
    "model",
    "model-strict",
    "model-confident",
    "model+fl",
    "oracle",
)
"""Those that are compared unless others are named, besides the limiters of single knobs."""


def method_names(space: Space) -> tuple[str, ...]:
    """Names of all methods for the configurations of a machine, in the order of tables."""
    own = [each.name for each in knob_limiters(space)]
    place = list(_MAKERS).index(_AFTER) + 1
    names = list(_MAKERS)
    return (*names[:place], *own, *names[place:])


def check_method_names(names: Sequence[str], spaces: Sequence[Space]) -> None:
    """Refuse names that no machine has."""
    known = tuple(dict.fromkeys(name for space in spaces for name in method_names(space)))
    for place, name in enumerate(names):
        if name not in known:
            raise InputError(f"methods: expected all or some of {', '.join(known)}, found {name!r}")
        if name in names[:place]:
            raise InputError(f"methods: expected each once, found {name} twice")


def methods_of(
    space: Space, names: Sequence[str] | None = None, confidence: float = CONFIDENCE
) -> tuple[Method, ...]:
    """Methods for the configurations of a machine, in the order of tables."""
    check_confidence(confidence)
    own = {each.name: each for each in knob_limiters(space)}
    wanted = {*MAIN, *own} if names is None else set(names)
    return tuple(
        own[name] if name in own else _MAKERS[name](confidence)
        for name in method_names(space)
        if name in wanted
    )
