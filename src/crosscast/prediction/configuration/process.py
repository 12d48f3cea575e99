"""The default model: a Gaussian process over kernels and configurations, for time and each part of power."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.configuration import (
    ConfigurationSpace,
    Observed,
    Quantity,
    SurfaceForecast,
    Surfaces,
    reference_samples,
    sample_indices,
)
from crosscast.prediction.configuration.features import SampleFeatures, SpeedLimits, TrainingRuns
from crosscast.prediction.configuration.gaussian_process import (
    QuantityPosterior,
    SparseProcess,
    TrainingCovariances,
    fit_covariance,
    inducing_points,
    sum_of_parts,
)
from crosscast.prediction.intervals import group_weights
from crosscast.prediction.serialization import Array, Nested, Stored
from crosscast.prediction.trained import single_threaded

TIME = "time"
TOTAL = "power"
"""Name of the power that a cap limits, where it is not split into domains."""

_AGREE = 1e-3
_CAP = re.compile(r"(?:(?P<domain>\w+)_)?(?:cap|limit)_w")
_BEYOND = 0.3
"""Log ratio of a cap over a kernel's power beyond which the cap has no effect."""


def power_parts(surfaces: Surfaces) -> tuple[str, ...]:
    """Domains whose powers add up to the total, as each has its own cap; else `TOTAL`."""
    known = surfaces.known
    power_w = surfaces.power_w[known]
    parts = {
        name: of_domain
        for name, values in sorted(surfaces.domains.items())
        if np.isfinite(of_domain := values[known]).all()
        and (of_domain > 0).all()
        and not np.allclose(of_domain, power_w, rtol=_AGREE, atol=0)
    }
    total = sum(parts.values(), np.zeros_like(power_w))
    # A domain of that name would be confused with the time.
    is_sum = len(parts) > 1 and TIME not in parts and np.allclose(total, power_w, rtol=_AGREE, atol=0)
    return tuple(parts) if is_sum else (TOTAL,)


def logarithms(names: Sequence[str], runs: Observed | Surfaces) -> dict[str, Reals]:
    """Logarithms of time and of the power or its parts; NaN or infinite where a run lacks one."""
    totals = {TIME: runs.time_s} if len(names) > 2 else {TIME: runs.time_s, TOTAL: runs.power_w}
    columns = {**runs.domains, **totals}
    with np.errstate(divide="ignore", invalid="ignore"):
        return {name: np.log(columns.get(name, np.full_like(runs.power_w, np.nan))) for name in names}


def cap_domains(space: ConfigurationSpace, domains: Sequence[str]) -> dict[str, str]:
    """Knobs that cap power, and the domain that each caps; an empty text for the total."""
    domain_of = {knob: match["domain"] or "" for knob in space.knobs if (match := _CAP.fullmatch(knob))}
    return {knob: domain if domain in domains else "" for knob, domain in domain_of.items()}


@dataclass(frozen=True, eq=False)
class SettingInputs:
    """Coordinates of ``c`` configurations, some of which depend on a kernel's power."""

    fixed: Reals  # (c, a) logarithms of the knobs, and a column for each word and device; standardised
    caps: Reals  # (c, b) logarithm of each cap in watts; 0 where a device has none
    has_cap: Reals  # (c, b) 1 where it has one, else 0
    domains: tuple[str, ...]  # (b,) the domain that each caps; empty for the total
    reference: Integers  # (c,) index of the sample run with the power without cap

    @classmethod
    def of(cls, space: ConfigurationSpace, samples: Sequence[int], domains: Sequence[str]) -> SettingInputs:
        """The inputs of a space."""
        columns = []
        for values in space.matrix.T:
            known = np.isfinite(values)
            # Effects of knobs are ratios: twice the clock, twice the cores.
            positive = bool((values[known] > 0).all())
            scaled = np.log(np.where(known, values, 1.0)) if positive else np.where(known, values, 0.0)
            columns.append(np.where(known, scaled, scaled[known].mean()))
        for name in space.words:
            settings = space.values_of(name)
            columns += [(settings == word).astype(np.float64) for word in np.unique(settings)[1:]]
        for number in range(1, len(space.devices)):
            columns.append((space.device_numbers == number).astype(np.float64))
        fixed = np.stack(columns, axis=1) if columns else np.empty((len(space), 0))
        spread = fixed.std(axis=0)
        capped = cap_domains(space, domains)
        caps = space.matrix[:, [space.knobs.index(knob) for knob in capped]]
        known = np.isfinite(caps)
        return cls(
            (fixed - fixed.mean(axis=0)) / np.where(spread > 0, spread, 1.0),
            np.log(np.where(known, caps, 1.0)),
            known.astype(np.float64),
            tuple(capped.values()),
            reference_samples(space, samples),
        )

    def points(self, features: SampleFeatures, observed: Observed, indices: Sequence[int]) -> Reals:
        """Features and settings ``(c, f + s)``; a cap as its log ratio over the kernel's power."""
        samples = np.array(indices)
        standardized = features.standardized(features.values(observed, indices))
        columns = [np.broadcast_to(standardized, (len(self.fixed), len(standardized))), self.fixed]
        for number, domain in enumerate(self.domains):
            powers = observed.domains.get(domain, observed.power_w)[samples]
            powers = np.where(powers > 0, powers, observed.power_w[samples])
            margin = self.caps[:, number] - np.log(powers)[self.reference]
            near = np.clip(margin, -1.0, _BEYOND) / _BEYOND
            columns.append((near * self.has_cap[:, number])[:, None])
        return np.hstack(columns)


@dataclass(frozen=True, eq=False)
class FittedQuantity(Stored):
    """Fitted logarithm of time, or of the power of a domain, relative to the sample run."""

    mean: Annotated[Reals, Array("c")]  # Mean over the training programs
    process: Annotated[SparseProcess, Nested(flat=True)]  # Differences of kernels from it


@dataclass(frozen=True, eq=False)
class ProgramErrors(Stored):
    """Quantiles of standardised errors on programs like new ones, which have equal weights."""

    time: Annotated[Reals, Array("t")]
    power: Annotated[Reals, Array("p")]
    programs: Annotated[int, Array(low=1)]  # Number of these programs


_NOT_KNOWN = ProgramErrors(np.empty(0), np.empty(0), 0)


@dataclass(frozen=True, eq=False)
class FittedProcess(Stored):
    """The fitted model."""

    features: SampleFeatures
    domains: tuple[str, ...]  # Domains with their own cap
    names: Annotated[tuple[str, ...], Array("q", least=2)]  # Time first, then the parts of the power
    quantities: tuple[FittedQuantity, ...]  # Of the same names
    time_errors: Annotated[Reals, Array("t")]  # Standardised errors on held-out programs, rising
    power_errors: Annotated[Reals, Array("p")]
    held_out: ProgramErrors | None = None  # Errors for intervals; `None` in models of earlier versions
    plain: FittedProcess | None = None  # For kernels whose runs lack the powers of the parts

    def check(self) -> None:
        """Raise InputError unless quantities are time and powers, and errors rise."""
        once = len({*self.names}) == len(self.names) == len(self.quantities)
        if self.names[0] != TIME or not once:
            expected = "time and powers, each once"
            raise InputError.of(field="names", expected=expected, found=", ".join(self.names))
        if self.plain is not None and self.plain.names != (TIME, TOTAL):
            expected = f"{TIME}, {TOTAL}"
            raise InputError.of(field="plain.names", expected=expected, found=", ".join(self.plain.names))
        for name, errors in (("time_errors", self.time_errors), ("power_errors", self.power_errors)):
            falls = np.flatnonzero(np.diff(errors) < 0)
            if falls.size:
                found = errors[falls[0] : falls[0] + 2].tolist()
                raise InputError.of(field=name, expected="rising numbers", found=found)


@dataclass(frozen=True, eq=False)
class KernelPosterior:
    """Posterior of a kernel given the features of its sample runs, before the runs themselves."""

    quantities: Mapping[str, QuantityPosterior]  # Time and the parts of the power, by name
    errors: tuple[Reals, Reals]  # Standardised errors on held-out programs of time and of power
    held_out: ProgramErrors
    speed: SpeedLimits

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Condition on runs; see `ConfigurationPredictor.forecast`."""
        logs = logarithms(tuple(self.quantities), observed)
        after = {
            name: each.condition_on(observed.numbers, logs[name]) for name, each in self.quantities.items()
        }
        time = after.pop(TIME)
        quantities, valid = [], np.ones(len(observed), np.bool_)
        unlimited = np.zeros(1), np.full(1, np.inf)
        by_program = self.held_out
        for logarithm, errors, of_programs, values, limits in (
            (time, self.errors[0], by_program.time, observed.time_s, self._least_and_most(observed)),
            (sum_of_parts(after), self.errors[1], by_program.power, observed.power_w, unlimited),
        ):
            centre, spread = np.exp(logarithm.mean).clip(*limits), np.sqrt(logarithm.variance)
            # A sensor that fails returns no finite number above 0.
            known = (values > 0) & np.isfinite(values)
            indices, noise = observed.numbers[known], np.zeros_like(spread)
            # The spread where a kernel was run is that of a further run.
            noise[indices] = spread[indices]
            centre[indices], spread[indices] = values[known], 0.0
            programs = by_program.programs
            quantities.append(Quantity(centre, spread, errors, of_programs, programs, noise, *limits))
            valid &= known
        measured = np.zeros(len(time.mean), np.bool_)
        measured[observed.numbers[valid]] = True
        return SurfaceForecast(quantities[0], quantities[1], measured)

    def _least_and_most(self, observed: Observed) -> tuple[Reals, Reals]:
        known = (observed.time_s > 0) & np.isfinite(observed.time_s)
        least, most = self.speed.times(observed.numbers[known], observed.time_s[known])
        # A run is what it is, whatever others say.
        least[observed.numbers], most[observed.numbers] = 0.0, np.inf
        return least, most


@dataclass(frozen=True, eq=False)
class ProcessPredictor:
    """A fitted process on its configurations; see `ConfigurationPredictor`."""

    space: ConfigurationSpace
    samples: tuple[int, ...]
    fitted: FittedProcess
    kind: ClassVar[str] = "process"
    notes: ClassVar[tuple[tuple[str, str], ...]] = ()
    inputs: SettingInputs = field(init=False)
    speed: SpeedLimits = field(init=False)
    plain: ProcessPredictor | None = field(init=False)  # For runs without the parts' powers

    def __post_init__(self) -> None:
        inputs = SettingInputs.of(self.space, self.samples, self.fitted.domains)
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "speed", SpeedLimits.of(self.space))
        plain = self.fitted.plain
        predictor = None if plain is None else ProcessPredictor(self.space, self.samples, plain)
        object.__setattr__(self, "plain", predictor)
        self.fitted.features.check_samples(len(self.samples))
        capped = tuple(sorted({*inputs.domains} - {""}))
        if self.fitted.domains != capped:
            expected, found = "domains that a cap is of", ", ".join(self.fitted.domains)
            raise InputError.of(where="model", field="domains", expected=expected, found=found)
        settings = inputs.fixed.shape[1] + inputs.caps.shape[1]
        widths = [len(self.fitted.features.names) + settings, settings, len(self.space)]
        for name, each in zip(self.fitted.names, self.fitted.quantities, strict=True):
            covariance = each.process.covariance
            sizes = [len(covariance.lengths), len(covariance.own_lengths), len(each.mean)]
            if sizes != widths:
                expected = f"{widths[0]} and {widths[1]} lengths, and {widths[2]} configurations"
                raise InputError.of(where="model", field=name, expected=expected, found=sizes)

    def posterior(self, observed: Observed) -> KernelPosterior:
        """Posterior given the features of the sample runs, before these are used as measurements."""
        indices = sample_indices(self.space, self.samples, observed)
        logs = logarithms(self.fitted.names, observed)
        if self.plain is not None and not all(np.isfinite(values[indices]).all() for values in logs.values()):
            return self.plain.posterior(observed)
        points = self.inputs.points(self.fitted.features, observed, indices)
        references = np.array(indices)[self.inputs.reference]
        quantities = {}
        for name, fitted in zip(self.fitted.names, self.fitted.quantities, strict=True):
            relative = fitted.process.at(points, len(self.fitted.features.names))
            quantities[name] = replace(relative, mean=fitted.mean + relative.mean + logs[name][references])
        errors = self.fitted.time_errors, self.fitted.power_errors
        return KernelPosterior(quantities, errors, self.fitted.held_out or _NOT_KNOWN, self.speed)

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict one kernel; see `ConfigurationPredictor.forecast`."""
        return self.posterior(observed).forecast(observed)

    def far_features(self, observed: Observed) -> list[tuple[str, float, float, float]]:
        """Features of a kernel that are far from those of the training kernels."""
        indices = sample_indices(self.space, self.samples, observed)
        return self.fitted.features.far(observed, indices)


_INDUCING = 100
"""Inducing points: with more, forecasts do not change."""

_FOR_LIKELIHOOD = 260
"""Values in the likelihood: each step costs the cube of their number."""

_LEAST_OF_A_KERNEL = 6
_ERRORS = 201
"""Stored quantiles of the errors on held-out programs."""


@dataclass(frozen=True)
class ProcessModel:
    """A Gaussian process over kernels and configurations together.

    Logarithms of time and of each domain's power, relative to the sample run, are a mean over the training
    programs plus a process over the features of the sample runs and the settings; they stabilise the
    variance, as section VI of Bailey et al. 2014 proposes. The distribution of errors comes from holding out
    each program.
    """

    name: str = field(default="model", init=False)
    # Programs that are like new ones, by whose errors intervals are made; by default all
    tested: tuple[str, ...] | None = None

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> ProcessPredictor:
        """Fit to the kernels that ran at all samples."""
        count = len(surfaces.space)
        if len(set(samples)) < len(samples) or not all(0 <= each < count for each in samples):
            expected, found = f"indices from 0 to {count - 1}, each once", ", ".join(map(str, samples))
            raise InputError.of(field="samples", expected=expected, found=found)
        training_runs = TrainingRuns.of(replace(surfaces, counters={}), samples)
        programs = training_runs.surfaces.applications
        if len(programs) < 2:
            expected, found = "at least 2 programs that ran at all samples", ", ".join(programs)
            raise InputError.of(where=surfaces.label, expected=expected, found=found)
        # Synchronizing BLAS threads takes longer than these small matrices do.
        with single_threaded():
            fitted = _Training.of(training_runs, tuple(samples)).fitted(seed, self.tested)
            if TOTAL not in fitted.names:
                without_domains = TrainingRuns.of(replace(training_runs.surfaces, domains={}), samples)
                plain = _Training.of(without_domains, tuple(samples)).fitted(seed, self.tested)
                fitted = replace(fitted, plain=plain)
        return ProcessPredictor(surfaces.space, tuple(samples), fitted)

    def tested_on(self, programs: Sequence[str]) -> ProcessModel:
        """Make the model whose intervals follow from errors on these programs."""
        return replace(self, tested=tuple(programs))


@dataclass(frozen=True, eq=False)
class _Training:
    """The ``n`` training values: a kernel at a configuration where it ran."""

    runs: TrainingRuns
    samples: tuple[int, ...]
    domains: tuple[str, ...]
    kernels: Integers  # (n,)
    configurations: Integers  # (n,)
    points: Reals  # (n, f + s)
    relative: dict[str, Reals]  # (kernels, c) logarithms over those of the sample run that is scaled

    @classmethod
    def of(cls, runs: TrainingRuns, samples: tuple[int, ...]) -> _Training:
        surfaces = runs.surfaces
        parts = power_parts(surfaces)
        domains = tuple(sorted({*cap_domains(surfaces.space, parts).values()} - {""}))
        inputs = SettingInputs.of(surfaces.space, samples, domains)
        kernels, configurations = np.nonzero(surfaces.known)
        indices = range(len(samples))
        observed = [surfaces.observed(row, samples) for row in range(len(surfaces.kernels))]
        points = np.stack([inputs.points(runs.features, each, indices) for each in observed])
        logs = logarithms((TIME, *parts), surfaces)
        relative = {name: values - values[:, runs.scaled_from] for name, values in logs.items()}
        points = points[kernels, configurations]
        return cls(runs, samples, domains, kernels, configurations, points, relative)

    def fitted(self, seed: int, tested: Collection[str] | None) -> FittedProcess:
        """Fit all quantities, the distribution of their errors, and that on programs like new ones."""
        covariances, programs = self.covariances(seed), self.runs.surfaces.applications
        errors = [self._held_out(covariances, number) for number in range(len(programs))]
        like_new = [each for name, each in zip(programs, errors, strict=True) if name in (tested or programs)]
        like_new = like_new or errors
        time, power = (_of_programs([each[quantity] for each in like_new]) for quantity in (0, 1))
        fitted = self.conditioned(covariances, np.ones(len(self.runs.groups), np.bool_))
        return replace(
            fitted,
            time_errors=_pooled([of_time for of_time, _ in errors]),
            power_errors=_pooled([of_power for _, of_power in errors]),
            held_out=ProgramErrors(time, power, len(like_new)),
        )

    def covariances(self, seed: int) -> dict[str, TrainingCovariances]:
        """Fitted covariance of each quantity, with equally many values of each of some kernels."""
        count, by_quantity = len(self.runs.groups), {}
        rng = np.random.default_rng(seed)
        each = max(_FOR_LIKELIHOOD // count, _LEAST_OF_A_KERNEL)
        kernels = rng.permutation(count)[: max(_FOR_LIKELIHOOD // each, 1)]
        rows = [rng.permutation(np.flatnonzero(self.kernels == kernel))[:each] for kernel in kernels]
        part, f = np.sort(np.concatenate(rows)), len(self.runs.features.names)
        for name in self.relative:
            values = self._values(name, self._mean(name, np.ones(count, np.bool_)))
            covariance = fit_covariance(self.points[part], f, self.kernels[part], values[part])
            inducing = inducing_points(covariance, self.points, _INDUCING)
            by_quantity[name] = TrainingCovariances.of(covariance, self.points, inducing)
        return by_quantity

    def _mean(self, name: str, used: Flags) -> Reals:
        """Mean ``(c,)`` over the programs of some kernels, each a mean over its kernels; 0 where none ran."""
        relative, groups = self.relative[name], self.runs.groups
        ran = np.isfinite(relative)
        weights = np.zeros(relative.shape)
        for group in np.unique(groups[used]):
            rows = groups == group
            weights[rows] = ran[rows] / np.maximum(ran[rows].sum(axis=0), 1)
        total = weights.sum(axis=0)
        sums = (weights * np.where(ran, relative, 0.0)).sum(axis=0)
        return np.asarray(sums / np.where(total > 0, total, 1.0))

    def _values(self, name: str, mean: Reals) -> Reals:
        return np.asarray((self.relative[name] - mean)[self.kernels, self.configurations])

    def conditioned(self, covariances: Mapping[str, TrainingCovariances], used: Flags) -> FittedProcess:
        """Fit to the kernels of some programs, without the distribution of errors."""
        quantities = []
        for name, each in covariances.items():
            mean = self._mean(name, used)
            process = each.condition_on(self._values(name, mean), used[self.kernels])
            quantities.append(FittedQuantity(mean, process))
        none, features = np.empty(0), self.runs.features
        return FittedProcess(features, self.domains, tuple(covariances), tuple(quantities), none, none)

    def _held_out(self, covariances: Mapping[str, TrainingCovariances], program: int) -> tuple[Reals, Reals]:
        """Standardised errors on one program: of time and of power."""
        surfaces, is_held_out = self.runs.surfaces, self.runs.groups == program
        fitted = self.conditioned(covariances, ~is_held_out)
        predictor = ProcessPredictor(surfaces.space, self.samples, fitted)
        time, power = list[Reals](), list[Reals]()
        for row in np.flatnonzero(is_held_out).tolist():
            forecast = predictor.forecast(surfaces.observed(row, self.samples))
            tested = surfaces.known[row] & ~forecast.measured
            for collected, true, each in (
                (time, surfaces.time_s[row], forecast.time),
                (power, surfaces.power_w[row], forecast.power),
            ):
                errors = np.log(true) - np.log(each.centre)
                collected.append((errors / np.where(tested, each.spread, 1.0))[tested])
        return np.concatenate(time), np.concatenate(power)


def _pooled(errors: Sequence[Reals]) -> Reals:
    """Quantiles of the errors of all programs, by which configurations are chosen.

    With few programs they are too narrow: a further value of a normal variable deviates from the mean of `n`
    values with ``(n + 1) / (n - 1)`` times their variance.
    """
    count = len(errors)
    scaled = np.sqrt((count + 1) / (count - 1)) * np.concatenate(errors)
    return np.asarray(np.quantile(scaled, np.linspace(0, 1, _ERRORS)) if scaled.size else scaled)


def _of_programs(errors: Sequence[Reals]) -> Reals:
    """Quantiles of the errors of programs, which have equal weights; none without errors."""
    known = [each for each in errors if each.size]
    if not known:
        return np.empty(0)
    weights = group_weights(np.repeat(np.arange(len(known)), [len(each) for each in known]))
    shares = np.linspace(0, 1, _ERRORS)
    quantiles = np.quantile(np.concatenate(known), shares, weights=weights, method="inverted_cdf")
    return np.asarray(quantiles)
