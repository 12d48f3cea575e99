"""The models of configurations by name, and a trained one: its card, its folder, and its choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, TypedDict

import msgspec
import numpy as np

from crosscast.arrays import Arrays, Reals
from crosscast.data.configuration import Configuration, Objective
from crosscast.data.fields import decode
from crosscast.errors import InputError, expect_known
from crosscast.prediction.configuration import (
    ConfigurationModel,
    ConfigurationPredictor,
    ConfigurationSpace,
    Observed,
    SurfaceForecast,
    Surfaces,
    plain_forecast,
    reference_samples,
    sample_indices,
    sample_numbers,
)
from crosscast.prediction.configuration.bailey2014 import (
    PUBLISHED_CLUSTERS,
    FittedClusters,
    PublishedModel,
    PublishedPredictor,
)
from crosscast.prediction.configuration.choice import LEVEL, NO_CAP, Choice, choice_of
from crosscast.prediction.configuration.features import SampleFeatures, TrainingRuns
from crosscast.prediction.configuration.process import FittedProcess, ProcessModel, ProcessPredictor
from crosscast.prediction.intervals import CONFORMAL
from crosscast.prediction.serialization import Stored
from crosscast.prediction.store import StoredModel
from crosscast.prediction.trained import StructCard, Trained

DEFAULT_MODEL = "model"

MODELS: Mapping[str, Callable[[], ConfigurationModel]] = MappingProxyType(
    {
        "model": ProcessModel,
        "published": PublishedModel,
        f"published-{PUBLISHED_CLUSTERS}": lambda: PublishedModel(PUBLISHED_CLUSTERS),
    }
)
"""Models that can be trained and stored."""


def model_named(name: str) -> ConfigurationModel:
    """Return a new model of `MODELS`."""
    expect_known(name, MODELS, field="model")
    return MODELS[name]()


_KERNELS = 3
_LEAST_DISTANCE = 1e-6


@dataclass(frozen=True)
class NearestKernels:
    """Changes of time and power of the three nearest training kernels, weighted by inverse distance."""

    name = "nearest"

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> NearestPredictor:
        """Store the kernels that ran at all samples; nothing is random."""
        runs = TrainingRuns.of(surfaces, samples)
        time_s, power_w = runs.surfaces.time_s, runs.surfaces.power_w
        changes = np.log([each / each[:, runs.scaled_from] for each in (time_s, power_w)])
        points = runs.features.standardized(runs.values)
        return NearestPredictor(surfaces.space, tuple(samples), runs.features, points, changes)

    def tested_on(self, programs: Sequence[str]) -> NearestKernels:
        """Return the model: it has no intervals."""
        return self


@dataclass(frozen=True, eq=False)
class NearestPredictor:
    """The stored kernels; see `ConfigurationPredictor`. It cannot be kept."""

    kind: ClassVar[str] = ""
    fitted: ClassVar[None] = None
    notes: ClassVar[tuple[tuple[str, str], ...]] = ()

    space: ConfigurationSpace
    samples: tuple[int, ...]
    features: SampleFeatures
    points: Reals  # (n, f) Standardised features of the kernels
    changes: Reals  # (2, n, c) Logarithms of times and of powers over those of the sample run

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict time and power; measured values replace predictions where there are runs.

        Where none of the nearest ran, all that did are used; NaN where none ran.
        """
        indices = sample_indices(self.space, self.samples, observed)
        point = self.features.standardized(self.features.values(observed, indices))
        runs = np.array(indices)[reference_samples(self.space, self.samples)]
        distances = np.sqrt(((self.points - point) ** 2).sum(axis=1))
        weights = 1 / np.maximum(distances, _LEAST_DISTANCE)
        near = np.argsort(distances, kind="stable")[:_KERNELS]
        of_near = [_mean(values[near], weights[near]) for values in self.changes]
        of_all = [_mean(values, weights) for values in self.changes]
        time, power = np.exp(np.where(np.isnan(of_near), of_all, of_near))
        return plain_forecast(observed.time_s[runs] * time, observed.power_w[runs] * power, observed)

    def far_features(self, observed: Observed) -> list[tuple[str, float, float, float]]:
        """Features of a kernel that are far from those of the stored kernels."""
        return self.features.far(observed, sample_indices(self.space, self.samples, observed))


def _mean(values: Reals, weights: Reals) -> Reals:
    """Mean over the first axis of the known values; NaN where none is known."""
    known = np.isfinite(values)
    total = weights @ known
    means: Reals = np.full(len(total), np.nan)
    return np.divide(weights @ np.where(known, values, 0.0), total, out=means, where=total > 0)


Runs = Mapping[Configuration, Mapping[str, float]]
"""Measurements of a kernel at each configuration, by the names of columns."""

KINDS: Mapping[str, tuple[type[Stored], Callable[..., ConfigurationPredictor]]] = {
    "process": (FittedProcess, ProcessPredictor),
    "published": (FittedClusters, PublishedPredictor),
}
"""The stored part and the predictor of a model, by its kind."""


class ChoiceOptions(TypedDict, total=False):
    """Keyword arguments of `choice_of`."""

    objective: Objective
    confidence: float | None
    level: float
    max_slowdown: float | None


_MOST_CONFIGURATIONS = 100_000
_Domains = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class _Entry(msgspec.Struct, frozen=True):
    device: str
    settings: dict[str, float | str]

    @property
    def configuration(self) -> Configuration:
        return Configuration(self.device, self.settings)


class PowerCard(msgspec.Struct, frozen=True):
    """The power that a cap limits."""

    domain: str | None  # Of the training; `None` for the device's default
    totals: dict[str, tuple[_Domains, ...]]  # For each device the sets of domains whose powers sum to it


class ConfigurationCard(StructCard, frozen=True, dict=True):
    """Description of a fitted model, stored beside its arrays."""

    model: str
    kind: str
    seed: Annotated[int, msgspec.Meta(ge=0)]
    # For people: sources of the training data, its counts, names, a hash
    training: dict[str, object]
    samples: Annotated[tuple[_Entry, ...], msgspec.Meta(min_length=1)]  # Where a new kernel is run first
    power: PowerCard
    domains: tuple[str, ...]  # Names of the domains and of the counters in the training data
    counters: tuple[str, ...]
    # Errors on held-out applications; see `crosscast.evaluation.configuration.question.train_configuration`
    errors: dict[str, object]
    configurations: Annotated[tuple[_Entry, ...], msgspec.Meta(min_length=1, max_length=_MOST_CONFIGURATIONS)]

    @cached_property
    def space(self) -> ConfigurationSpace:
        """The configurations, in order."""
        return ConfigurationSpace(tuple(each.configuration for each in self.configurations))

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the sample configurations, where a new kernel is run first."""
        return sample_numbers(self.space, [each.configuration for each in self.samples])

    @property
    def sample_configurations(self) -> tuple[Configuration, ...]:
        """Where a new kernel is run first."""
        return tuple(self.space.configurations[number] for number in self.numbers)

    def to_dict(self) -> dict[str, object]:
        """The card as a JSON object."""
        return {"question": TrainedConfigurationModel.question, **self.stored()}


def entries(configurations: Sequence[Configuration]) -> tuple[_Entry, ...]:
    """Configurations as entries of a card."""
    return tuple(_Entry(each.device, dict(each.settings)) for each in configurations)


@dataclass(frozen=True, eq=False)
class TrainedConfigurationModel(Trained[ConfigurationCard, ConfigurationPredictor]):
    """A model that chooses configurations."""

    question = "configuration"
    intervals = CONFORMAL

    @classmethod
    def read(cls, card: ConfigurationCard, stored: StoredModel) -> ConfigurationPredictor:
        """Read the predictor of the card's kind."""
        fitted, predictor = KINDS[card.kind]
        try:
            return predictor(card.space, card.numbers, fitted.from_state(stored.arrays))
        except InputError as error:
            in_folder = str(error).startswith(str(stored.folder))
            raise error if in_folder else error.within(stored.where) from error

    def arrays(self) -> Arrays:
        """The arrays of the fitted part."""
        fitted = self.predictor.fitted
        if fitted is None:
            expected = f"one that can be kept ({', '.join(KINDS)})"
            raise InputError.of(where="model", expected=expected, found=self.card.model)
        return fitted.state()

    @property
    def predictor(self) -> ConfigurationPredictor:
        """The fitted predictor."""
        return self.fitted

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """Texts that show how the fitted predictor decides."""
        return self.predictor.notes

    @property
    def samples(self) -> tuple[Configuration, ...]:
        """Where a new kernel has to be run first."""
        return self.card.sample_configurations

    def predict(self, runs: Runs) -> SurfaceForecast:
        """Predict time and power of one kernel at every configuration.

        `runs` has for each configuration of `samples`, and any others where it ran, ``time_s`` in seconds,
        ``power_w`` in watts, and as far as they are known ``<domain>_w`` and counters by their names.
        """
        return self.predictor.forecast(self._observed(runs))

    def _observed(self, runs: Runs) -> Observed:
        space = self.predictor.space
        by_number = sorted((space.number_of(each), values) for each, values in runs.items())

        def column(name: str, *, required: bool = False) -> Reals:
            cells = [values.get(name) for _, values in by_number]
            for (number, values), cell in zip(by_number, cells, strict=True):
                if not isinstance(cell, Real) and (required or cell is not None):
                    where = f"runs: {space.configurations[number]}"
                    found = repr(cell) if name in values else ", ".join(values) or "nothing"
                    raise InputError.of(where=where, field=name, expected="a number", found=found)
            # What is not known is NaN.
            return np.array(cells, np.float64)

        time_s, power_w = column("time_s", required=True), column("power_w", required=True)
        domains = {name: column(f"{name}_w") for name in self.card.domains}
        counters = {name: column(name) for name in self.card.counters}
        numbers = np.array([number for number, _ in by_number], np.int64)
        return Observed(numbers, time_s, power_w, domains, counters)

    def warnings(self, observed: Observed) -> tuple[str, ...]:
        """Applicability warnings of a kernel's runs, where it is unlike all that were learned from."""
        return tuple(
            f"{name} ({self.samples[int(name.rpartition(' ')[2]) - 1]}) is {value:,.4g}, beyond three "
            f"deviations of the programs that the model has learned from ({low:,.4g} to {high:,.4g}), "
            "so that nothing tells how sure this is"
            for name, value, low, high in self.predictor.far_features(observed)
        )

    def choose(
        self,
        runs: Runs,
        power_cap: float = NO_CAP,
        objective: Objective | Literal["time"] = "time",
        confidence: float | None = None,
        *,
        level: float = LEVEL,
        max_slowdown: float | None = None,
    ) -> Choice:
        """Choose the best configuration under a power cap in watts, from runs as in `predict`.

        The objective is ``time`` (or ``performance``), ``energy``, ``edp`` or ``power``; the cap is kept with
        the probability `confidence`, without one on average; intervals hold with the probability `level`.
        `max_slowdown` is the share by which it may be slower than the first sample configuration.
        """
        best: Objective = "performance" if objective == "time" else objective
        options = ChoiceOptions(objective=best, confidence=confidence, level=level, max_slowdown=max_slowdown)
        return self.choices(self._observed(runs), [power_cap], options)[1][0]

    def choices(
        self, observed: Observed, power_caps: Sequence[float], options: ChoiceOptions
    ) -> tuple[SurfaceForecast, list[Choice]]:
        """The forecast of a kernel, and the choice under each power cap in watts."""
        forecast, warnings = self.predictor.forecast(observed), self.warnings(observed)
        space, baseline = self.predictor.space, self.card.numbers[0]
        choices = (choice_of(forecast, space, cap, baseline=baseline, **options) for cap in power_caps)
        return forecast, [replace(choice, warnings=warnings) for choice in choices]


def open_model(stored: StoredModel) -> TrainedConfigurationModel:
    """The model of a folder; its arrays are read when first needed."""
    card = decode(ConfigurationCard, stored.card, stored.where)
    if card.kind not in KINDS:
        expected, found = " or ".join(KINDS), repr(card.kind)
        raise InputError.of(where=stored.where, field="kind", expected=expected, found=found)
    try:
        for device in card.space.devices:
            if device not in card.power.totals:
                field, found = f"power.totals.{device}", ", ".join(card.power.totals) or "none"
                raise InputError.of(field=field, expected="lists of domains", found=found)
    except InputError as error:
        raise error.within(stored.where) from error
    return TrainedConfigurationModel(card, stored)
