"""The default model: a Gaussian process over kernels and configurations, for time and each part of power."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.configuration.data import (
    ConfigurationSpace,
    Observed,
    Quantity,
    SurfaceForecast,
    Surfaces,
    reference_samples,
    sample_places,
)
from crosscast.prediction.configuration.features import SampleFeatures, TrainingRuns
from crosscast.prediction.configuration.gaussian_process import (
    QuantityPosterior,
    SparseProcess,
    TrainingCovariances,
    fit_covariance,
    inducing_points,
    sum_of_parts,
)
from crosscast.prediction.serialization import Array, Nested, Stored

TIME = "time"
TOTAL = "power"
"""Name of the power that a cap limits, where it is predicted as a whole."""

_AGREE = 1e-3
_CAP = re.compile(r"(?:(?P<domain>\w+)_)?(?:cap|limit)_w")
_BEYOND = 0.3
"""A cap that is this far above what a kernel takes, in logarithms, is as good as none."""


def power_parts(surfaces: Surfaces) -> tuple[str, ...]:
    """Domains whose powers add up to the power, as each follows its own cap; else `TOTAL`."""
    known = surfaces.known
    power_w = surfaces.power_w[known]
    parts = {
        name: own
        for name, values in sorted(surfaces.domains.items())
        if np.isfinite(own := values[known]).all()
        and (own > 0).all()
        and not np.allclose(own, power_w, rtol=_AGREE, atol=0)
    }
    total = sum(parts.values(), np.zeros_like(power_w))
    # A domain of that name would be taken for the time.
    added = len(parts) > 1 and TIME not in parts and np.allclose(total, power_w, rtol=_AGREE, atol=0)
    return tuple(parts) if added else (TOTAL,)


def logarithms(names: Sequence[str], runs: Observed | Surfaces) -> dict[str, Reals]:
    """Logarithms of time and of the power or its parts; NaN or infinite where a run does not tell one."""
    whole = {TIME: runs.time_s} if len(names) > 2 else {TIME: runs.time_s, TOTAL: runs.power_w}
    every = {**runs.domains, **whole}
    with np.errstate(divide="ignore", invalid="ignore"):
        return {name: np.log(every.get(name, np.full_like(runs.power_w, np.nan))) for name in names}


def cap_domains(space: ConfigurationSpace, domains: Sequence[str]) -> dict[str, str]:
    """Knobs that cap power, and the domain that each caps; an empty text for all power."""
    found = {knob: match["domain"] or "" for knob in space.knobs if (match := _CAP.fullmatch(knob))}
    return {knob: domain if domain in domains else "" for knob, domain in found.items()}


@dataclass(frozen=True, eq=False)
class SettingInputs:
    """Coordinates of ``c`` configurations, some of which depend on what a kernel takes."""

    fixed: Reals  # (c, a) logarithms of the knobs, and a column for each word and device; standardised
    caps: Reals  # (c, b) logarithm of each cap in watts; 0 where a device has none
    has_cap: Reals  # (c, b) 1 where it has one, else 0
    domains: tuple[str, ...]  # (b,) the domain that each caps; empty for all power
    reference: Integers  # (c,) from which sample run the power without cap is read

    @classmethod
    def of(cls, space: ConfigurationSpace, samples: Sequence[int], domains: Sequence[str]) -> SettingInputs:
        """Those of a space."""
        columns = []
        for values in space.matrix.T:
            known = np.isfinite(values)
            # Knobs act by ratios: twice the clock, twice the cores.
            positive = bool((values[known] > 0).all())
            scaled = np.log(np.where(known, values, 1.0)) if positive else np.where(known, values, 0.0)
            columns.append(np.where(known, scaled, scaled[known].mean()))
        for name in space.words:
            words = space.values_of(name)
            columns += [(words == word).astype(np.float64) for word in np.unique(words)[1:]]
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

    def points(self, features: SampleFeatures, observed: Observed, places: Sequence[int]) -> Reals:
        """``(c, f + s)`` Features, and settings: a cap as how far it is below what the kernel takes."""
        at = np.array(places)
        own = features.standardized(features.values(observed, places))
        columns = [np.broadcast_to(own, (len(self.fixed), len(own))), self.fixed]
        for number, domain in enumerate(self.domains):
            powers = observed.domains[domain][at] if domain in observed.domains else observed.power_w[at]
            powers = np.where(powers > 0, powers, observed.power_w[at])
            margin = self.caps[:, number] - np.log(powers)[self.reference]
            near = np.clip(margin, -1.0, _BEYOND) / _BEYOND
            columns.append((near * self.has_cap[:, number])[:, None])
        return np.hstack(columns)


@dataclass(frozen=True, eq=False)
class FittedQuantity(Stored):
    """What was learned of the logarithm of time, or of the power of a domain, relative to the sample run."""

    mean: Annotated[Reals, Array("c")]  # Mean over the training programs
    process: Annotated[SparseProcess, Nested(flat=True)]  # How kernels differ from it


@dataclass(frozen=True, eq=False)
class FittedProcess(Stored):
    """What training gives."""

    features: SampleFeatures
    domains: tuple[str, ...]  # Domains that have a cap of their own
    names: Annotated[tuple[str, ...], Array("q", least=2)]  # Time first, then the parts of the power
    quantities: tuple[FittedQuantity, ...]  # Of the same names
    time_errors: Annotated[Reals, Array("t")]  # Standardised errors on left-out programs, rising
    power_errors: Annotated[Reals, Array("p")]
    plain: FittedProcess | None = None  # For kernels whose runs do not tell the powers of the parts

    def check(self) -> None:
        """Refuse quantities that are not time and powers, and errors that do not rise."""
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
    """What is known of a kernel by the features that its sample runs give it, before the runs themselves."""

    quantities: Mapping[str, QuantityPosterior]  # Time and the parts of the power, by name
    errors: tuple[Reals, Reals]  # Standardised errors on left-out programs of time and of power

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Condition on runs; see `ConfigurationPredictor.forecast`."""
        logs = logarithms(tuple(self.quantities), observed)
        after = {
            name: each.condition_on(observed.numbers, logs[name]) for name, each in self.quantities.items()
        }
        time = after.pop(TIME)
        found, sound = [], np.ones(len(observed), np.bool_)
        for logarithm, errors, values in (
            (time, self.errors[0], observed.time_s),
            (sum_of_parts(after), self.errors[1], observed.power_w),
        ):
            centre, spread = np.exp(logarithm.mean), np.sqrt(logarithm.variance)
            # What can have been measured: a sensor that fails returns no finite number above 0.
            known = (values > 0) & np.isfinite(values)
            at = observed.numbers[known]
            centre[at], spread[at] = values[known], 0.0
            found.append(Quantity(centre, spread, errors))
            sound &= known
        measured = np.zeros(len(time.mean), np.bool_)
        measured[observed.numbers[sound]] = True
        return SurfaceForecast(found[0], found[1], measured)


@dataclass(frozen=True, eq=False)
class ProcessPredictor:
    """A fitted process on its configurations; see `ConfigurationPredictor`."""

    space: ConfigurationSpace
    samples: tuple[int, ...]
    fitted: FittedProcess
    kind: ClassVar[str] = "process"
    inputs: SettingInputs = field(init=False)
    plain: ProcessPredictor | None = field(init=False)  # Of kernels whose runs do not tell the parts' powers

    def __post_init__(self) -> None:
        inputs = SettingInputs.of(self.space, self.samples, self.fitted.domains)
        object.__setattr__(self, "inputs", inputs)
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
            own = [len(covariance.lengths), len(covariance.own_lengths), len(each.mean)]
            if own != widths:
                expected = f"{widths[0]} and {widths[1]} lengths, and {widths[2]} configurations"
                raise InputError.of(where="model", field=name, expected=expected, found=own)

    def posterior(self, observed: Observed) -> KernelPosterior:
        """What the runs at the samples tell, before they are used as measurements."""
        places = sample_places(self.space, self.samples, observed)
        logs = logarithms(self.fitted.names, observed)
        if self.plain is not None and not all(np.isfinite(values[places]).all() for values in logs.values()):
            return self.plain.posterior(observed)
        points = self.inputs.points(self.fitted.features, observed, places)
        references = np.array(places)[self.inputs.reference]
        found = {}
        for name, fitted in zip(self.fitted.names, self.fitted.quantities, strict=True):
            relative = fitted.process.at(points, len(self.fitted.features.names))
            found[name] = replace(relative, mean=fitted.mean + relative.mean + logs[name][references])
        return KernelPosterior(found, (self.fitted.time_errors, self.fitted.power_errors))

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict one kernel; see `ConfigurationPredictor.forecast`."""
        return self.posterior(observed).forecast(observed)


_INDUCING = 100
"""Inducing points: more change no forecast and take longer."""

_FOR_LIKELIHOOD = 260
"""Values of which the likelihood is maximised: each step costs the cube of their number."""

_LEAST_OF_A_KERNEL = 6
_ERRORS = 201
"""Quantiles that are kept of the errors on left-out programs."""


@dataclass(frozen=True)
class ProcessModel:
    """A Gaussian process over kernels and configurations together.

    Logarithms of time and of each domain's power, relative to the sample run, are a mean over the training
    programs plus a process over the features of the sample runs and the settings; they stabilise the
    variance, as section VI of Bailey et al. 2014 proposes. How wrong it is, is learned by leaving each
    program out.
    """

    name: str = field(default="model", init=False)

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> ProcessPredictor:
        """Fit it to the kernels that ran at all samples."""
        # Imported here: predicting needs it not.
        from threadpoolctl import threadpool_limits

        count = len(surfaces.space)
        if len(set(samples)) < len(samples) or not all(0 <= each < count for each in samples):
            named = ", ".join(map(str, samples))
            raise InputError.of(
                field="samples", expected=f"places from 0 to {count - 1}, each once", found=f"{named}"
            )
        known = TrainingRuns.of(replace(surfaces, counters={}), samples)
        programs = known.surfaces.applications
        if len(programs) < 2:
            expected, found = "at least 2 programs that ran at all samples", ", ".join(programs)
            raise InputError.of(where=surfaces.label, expected=expected, found=found)
        # Threads of BLAS take longer to agree than these small matrices take.
        with threadpool_limits(1):
            fitted = _Training.of(known, tuple(samples)).fitted(seed)
            if TOTAL not in fitted.names:
                whole = TrainingRuns.of(replace(known.surfaces, domains={}), samples)
                fitted = replace(fitted, plain=_Training.of(whole, tuple(samples)).fitted(seed))
        return ProcessPredictor(surfaces.space, tuple(samples), fitted)


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
        places = range(len(samples))
        observed = [surfaces.observed(row, samples) for row in range(len(surfaces.kernels))]
        points = np.stack([inputs.points(runs.features, each, places) for each in observed])
        logs = logarithms((TIME, *parts), surfaces)
        relative = {name: values - values[:, runs.scaled_from] for name, values in logs.items()}
        points = points[kernels, configurations]
        return cls(runs, samples, domains, kernels, configurations, points, relative)

    def fitted(self, seed: int) -> FittedProcess:
        """Fit all quantities, and learn how wrong they are."""
        covariances = self.covariances(seed)
        time, power = self._errors(covariances)
        everyone = np.ones(len(self.runs.groups), np.bool_)
        return replace(self.conditioned(covariances, everyone), time_errors=time, power_errors=power)

    def covariances(self, seed: int) -> dict[str, TrainingCovariances]:
        """The likeliest covariance of each quantity, by as many values of each of all or some kernels."""
        count, found = len(self.runs.groups), {}
        rng = np.random.default_rng(seed)
        each = max(_FOR_LIKELIHOOD // count, _LEAST_OF_A_KERNEL)
        kernels = rng.permutation(count)[: max(_FOR_LIKELIHOOD // each, 1)]
        rows = [rng.permutation(np.flatnonzero(self.kernels == kernel))[:each] for kernel in kernels]
        part, f = np.sort(np.concatenate(rows)), len(self.runs.features.names)
        for name in self.relative:
            values = self._values(name, self._mean(name, np.ones(count, np.bool_)))
            covariance = fit_covariance(self.points[part], f, self.kernels[part], values[part])
            inducing = inducing_points(covariance, self.points, _INDUCING)
            found[name] = TrainingCovariances.of(covariance, self.points, inducing)
        return found

    def _mean(self, name: str, used: Flags) -> Reals:
        """``(c,)`` Mean over programs of some kernels, each of the mean over its own; 0 where none ran."""
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
        """Fit with all kernels of some programs alone; nothing is known of its errors."""
        quantities = []
        for name, each in covariances.items():
            mean = self._mean(name, used)
            process = each.condition_on(self._values(name, mean), used[self.kernels])
            quantities.append(FittedQuantity(mean, process))
        none, features = np.empty(0), self.runs.features
        return FittedProcess(features, self.domains, tuple(covariances), tuple(quantities), none, none)

    def _errors(self, covariances: Mapping[str, TrainingCovariances]) -> tuple[Reals, Reals]:
        """Quantiles of standardised errors on each program, left out: of time and of power.

        They are of few programs: a normal variable of which there are `n` values lies about their mean with
        ``(n + 1) / (n - 1)`` times their variance.
        """
        surfaces, groups = self.runs.surfaces, self.runs.groups
        count = len(surfaces.applications)
        factor = np.sqrt((count + 1) / (count - 1))
        found: tuple[list[Reals], list[Reals]] = ([], [])
        for program in range(count):
            fitted = self.conditioned(covariances, groups != program)
            predictor = ProcessPredictor(surfaces.space, self.samples, fitted)
            for row in np.flatnonzero(groups == program).tolist():
                forecast = predictor.forecast(surfaces.observed(row, self.samples))
                asked = surfaces.known[row] & ~forecast.measured
                true = (surfaces.time_s[row], surfaces.power_w[row])
                for kept, values, each in zip(found, true, (forecast.time, forecast.power), strict=True):
                    errors = np.log(values) - np.log(each.centre)
                    kept.append((errors / np.where(asked, each.spread, 1.0))[asked])
        shares = np.linspace(0, 1, _ERRORS)
        time, power = (factor * np.concatenate(errors) for errors in found)
        return tuple(np.quantile(each, shares) if each.size else each for each in (time, power))
