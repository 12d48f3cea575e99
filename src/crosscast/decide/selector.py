"""Choice of configurations at run time: the sample configurations first, then the best under the cap.

`choices_for` chooses for kernels whose samples were measured before, under each power cap.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

import numpy as np

from crosscast.data.configuration import Configuration, Objective
from crosscast.decide.policies import next_number
from crosscast.decide.samples import Aggregate, SampledKernel, observed_of
from crosscast.errors import InputError
from crosscast.measure.regions import RegionKey, RegionRun, say_once
from crosscast.prediction.configuration import (
    ConfigurationPredictor,
    SurfaceForecast,
    Totals,
    total_power,
)
from crosscast.prediction.configuration.artefact import ChoiceOptions, TrainedConfigurationModel
from crosscast.prediction.configuration.choice import (
    LEVEL,
    Choice,
    check_choice,
    choice_of,
    select,
    within_cap,
)
from crosscast.prediction.named_models import load_model
from crosscast.prediction.trained import model_facts

_MOST_CHANGES = 8
"""Limit of changes by measurement, for each kernel and cap; most need one or two."""


@dataclass
class _Kernel:
    """The runs of a key, and the state of its choice."""

    aggregates: dict[int, Aggregate] = field(default_factory=dict)  # Its runs by configuration
    observed: set[int] = field(default_factory=set)  # Configurations whose runs the model has
    # Forecast of the model; `None` before the samples have run, and after a new run
    forecast: SurfaceForecast | None = None
    chosen: int | None = None  # Number of the chosen configuration, if any
    chosen_for: float | None = None  # Cap of that choice; `None` if it is outdated
    changes_left: int = 0  # Remaining changes of the choice by measurement under that cap
    lacks_power: bool = False  # Whether no sensor measures its power


class Selector:
    """Chooses the configuration of each run of a program's regions (Bailey et al. 2014, section III-C).

    The first runs of a region are at the model's sample configurations; from then on it is the one that
    is best under the cap. Where nothing keeps to the cap, or no sensor measures the power, it is ``None``:
    the program keeps its default. Regions are identified by name, arguments and call site. All methods are
    thread-safe.

    Give it to `crosscast.profiled`, or call `configuration` before and `observed` after each run.

    Parameters
    ----------
    model
        Folder that ``crosscast train configuration`` wrote, or a model that was loaded or fitted.
    power_cap
        Most power, in watts.
    objective
        The objective: ``performance``, ``energy``, ``edp`` or ``power``.
    confidence
        Probability with which the cap must be kept; by default the best by the predicted means is chosen.
    limit
        Whether runs of the choice correct the forecast, and another one is taken where that is worth it or
        the power was above the cap (Model+FL, section V-A). With a confidence, or a model without forecast
        errors, only the latter.

    Raises
    ------
    InputError
        If there is no such model, or another argument is wrong.
    """

    def __init__(
        self,
        model: str | Path | TrainedConfigurationModel | ConfigurationPredictor,
        power_cap: float,
        objective: Objective = "performance",
        confidence: float | None = None,
        limit: bool = True,
    ) -> None:
        loaded = load_model(model, "configuration") if isinstance(model, (str, Path)) else model
        self._totals: Totals = {}
        self._names: tuple[tuple[str, ...] | None, tuple[str, ...] | None] = (None, None)
        if isinstance(loaded, TrainedConfigurationModel):
            self._totals = loaded.card.power.totals
            self._names = (loaded.card.domains, loaded.card.counters)
            loaded = loaded.predictor
        if not all(hasattr(loaded, name) for name in ("space", "samples", "forecast")):
            expected = "the folder of a model that chooses, or one"
            raise InputError.of(field="model", expected=expected, found=type(loaded).__name__)
        self._predictor = loaded
        check_choice(power_cap, confidence, objective)
        self._power_cap = float(power_cap)
        self._objective: Objective = objective
        self._confidence = confidence
        self._limit = limit
        self._kernels: defaultdict[RegionKey, _Kernel] = defaultdict(_Kernel)
        self._lock = threading.Lock()

    @property
    def power_cap(self) -> float:
        """Most power, in watts. Setting it renews all choices, without new sample runs."""
        return self._power_cap

    @power_cap.setter
    def power_cap(self, power_cap: float) -> None:
        check_choice(power_cap)
        self._power_cap = float(power_cap)

    def configuration(self, key: RegionKey) -> Configuration | None:
        """Choose the configuration of a region's next run; ``None`` is the program's default."""
        with self._lock:
            kernel = self._kernels[key]
            if kernel.lacks_power:
                return None
            for number in self._predictor.samples:
                if number not in kernel.observed:
                    return self._predictor.space.configurations[number]
            if kernel.chosen_for != self._power_cap:
                self._choose(key, kernel)
            chosen = kernel.chosen
        return None if chosen is None else self._predictor.space.configurations[chosen]

    def _choose(self, key: RegionKey, kernel: _Kernel) -> None:
        cap, forecast = self._power_cap, self._forecast(kernel)
        kernel.chosen = select(forecast, cap, objective=self._objective, confidence=self._confidence)
        kernel.chosen_for = cap
        if kernel.chosen is None:
            why = f"no configuration is expected to keep to {cap:g} W"
            say_once(f"{key}: {why}, so it runs as it does by default")
        elif self._limit and self._confidence is None and forecast.power.errors.size:
            kernel.changes_left = _MOST_CHANGES
            kernel.chosen = self._next(forecast, None, _MOST_CHANGES + 1)

    def _next(self, forecast: SurfaceForecast, current: int | None, left: int) -> int:
        cap, every, objective = self._power_cap, np.ones(len(forecast.measured), np.bool_), self._objective
        return next_number(forecast, cap, every, current=current, runs_left=left, objective=objective)

    def _forecast(self, kernel: _Kernel) -> SurfaceForecast:
        if kernel.forecast is None:
            aggregates = {number: kernel.aggregates[number] for number in kernel.observed}
            kernel.forecast = self._predictor.forecast(observed_of(aggregates, *self._names))
        return kernel.forecast

    def observed(self, key: RegionKey, run: RegionRun) -> None:
        """Add a run to the measurements."""
        with self._lock:
            kernel = self._kernels[key]
            if run.configuration is None or run.failure is not None or kernel.lacks_power:
                return
            number = self._predictor.space.number_of(run.configuration)
            power_w = total_power(self._totals.get(run.configuration.device, ()), run.powers_w)
            power_w = run.power_w if power_w is None else power_w
            if power_w is None and (run.powers_w or not run.energy_j):
                # The region has reported that a sensor does not work.
                kernel.lacks_power = True
            elif run.duration_s > 0:
                aggregate = kernel.aggregates.setdefault(number, Aggregate())
                aggregate.add(run.duration_s, power_w or None, run.powers_w, run.counters)
                if aggregate.power_w is not None:
                    self._learn(kernel, number, aggregate.power_w)

    def _learn(self, kernel: _Kernel, number: int, power_w: float) -> None:
        """Add the runs at a configuration to the observations of the model, if it learns from them."""
        is_sample = number in self._predictor.samples and number not in kernel.observed
        is_chosen = number == kernel.chosen and kernel.chosen_for is not None
        is_over = is_chosen and self._limit and not within_cap(power_w, self._power_cap)
        if is_chosen and kernel.changes_left and kernel.chosen_for == self._power_cap:
            kernel.observed.add(number)
            kernel.forecast = None
            kernel.chosen = self._next(self._forecast(kernel), number, kernel.changes_left)
            kernel.changes_left = 0 if kernel.chosen == number else kernel.changes_left - 1
        elif is_sample or is_over:
            kernel.observed.add(number)
            kernel.forecast = kernel.chosen_for = None

    def choice(self, key: RegionKey, level: float = LEVEL) -> Choice | None:
        """Return the choice for a region, its alternatives and their probabilities."""
        with self._lock:
            kernel = self._kernels[key]
            if not kernel.observed.issuperset(self._predictor.samples):
                return None
            given = self._forecast(kernel), self._predictor.space, self._power_cap
            return choice_of(*given, objective=self._objective, confidence=self._confidence, level=level)


@dataclass(frozen=True, eq=False)
class KernelChoices:
    """A kernel, its forecast, and the choice under each cap."""

    kernel: SampledKernel
    forecast: SurfaceForecast
    choices: list[Choice]

    @property
    def label(self) -> str:
        """Name of the kernel, for people."""
        return self.kernel.name

    @property
    def warnings(self) -> tuple[str, ...]:
        """Applicability warnings, the same under each cap."""
        return self.choices[0].warnings


def choices_for(
    trained: TrainedConfigurationModel,
    kernels: Sequence[SampledKernel],
    caps: Sequence[float],
    **options: Unpack[ChoiceOptions],
) -> list[KernelChoices]:
    """Choose for each kernel under each power cap in watts; a slowdown is over the first sample."""
    return [KernelChoices(each, *trained.choices(each.observed, caps, options)) for each in kernels]


def choices_answer(chosen: Sequence[KernelChoices], trained: TrainedConfigurationModel) -> dict[str, object]:
    """Return the JSON object of all choices, with the fields of the first at its top level as well."""
    listed: list[dict[str, object]] = []
    for one in chosen:
        kernel = one.kernel
        measured = kernel.observed.time_s.tolist(), kernel.observed.power_w.tolist()
        samples = [
            {**at.to_dict(), "time_s": time_s, "power_w": power_w, "runs": runs}
            for at, time_s, power_w, runs in zip(
                kernel.configurations(trained.card), *measured, kernel.runs, strict=True
            )
        ]
        listed += [{"kernel": one.label, "samples": samples, **choice.to_dict()} for choice in one.choices]
    model = {**model_facts(trained.card), "errors": dict(trained.card.errors)}
    return {**listed[0], "choices": listed, "model": model}
