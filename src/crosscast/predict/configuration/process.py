"""What the process predicts: time, and the powers whose sum is what a cap limits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_names, kept_reals
from crosscast.predict.configuration.data import (
    Observed,
    Space,
    Surfaces,
    kept_space,
    references,
    sample_places,
    sampled,
    space_state,
)
from crosscast.predict.configuration.features import SampleFeatures
from crosscast.predict.configuration.forecast import Quantity, SurfaceForecast
from crosscast.predict.configuration.gaussian_process import (
    Belief,
    Covariance,
    Posterior,
    SparseProcess,
    Weighed,
    likeliest,
    pivots,
    total_of,
)

TIME = "time"
TOTAL = "power"
"""Name of the power that a cap limits, where it is predicted as a whole."""

_AGREE = 1e-3


def power_parts(surfaces: Surfaces) -> tuple[str, ...]:
    """Domains whose powers add up to the power, sorted; `TOTAL` alone where none do.

    Parts are easier to predict than their sum: each follows its own cap.
    """
    known = surfaces.known
    names = [
        name
        for name, values in sorted(surfaces.domains.items())
        if np.isfinite(values[known]).all() and (values[known] > 0).all() and not _is_total(surfaces, values)
    ]
    total = sum((surfaces.domains[name] for name in names), np.zeros_like(surfaces.power_w))
    # A domain of that name would be taken for the time.
    added = len(names) > 1 and TIME not in names and _is_total(surfaces, total)
    return tuple(names) if added else (TOTAL,)


def _is_total(surfaces: Surfaces, values: Reals) -> bool:
    known = surfaces.known
    return bool(np.allclose(values[known], surfaces.power_w[known], rtol=_AGREE, atol=0))


def powers_of(parts: tuple[str, ...], power_w: Reals, domains: Mapping[str, Reals]) -> dict[str, Reals]:
    """Power of each part; those of a kernel that does not tell its domains are NaN."""
    if parts == (TOTAL,):
        return {TOTAL: power_w}
    return {name: domains.get(name, np.full_like(power_w, np.nan)) for name in parts}


_CAP = re.compile(r"(?:(?P<domain>\w+)_)?(?:cap|limit)_w")
_BEYOND = 0.3
"""A cap that is this far above what a kernel takes, in logarithms, is as good as none."""


def cap_domains(space: Space, domains: Sequence[str]) -> dict[str, str]:
    """Knobs that cap power, and the domain that each caps; an empty text for all power."""
    found = {}
    for knob in space.knobs:
        match = _CAP.fullmatch(knob)
        if match:
            domain = match["domain"] or ""
            found[knob] = domain if domain in domains else ""
    return found


def capped_domains(space: Space, domains: Sequence[str]) -> tuple[str, ...]:
    """Those of some domains that have a cap of their own, sorted."""
    return tuple(sorted({*cap_domains(space, domains).values()} - {""}))


@dataclass(frozen=True, eq=False)
class SettingInputs:
    """Coordinates of ``c`` configurations, some of which depend on what a kernel takes."""

    fixed: Reals  # `(c, a)` Logarithms of the knobs, and a column for each word and device; standardised
    caps: Reals  # `(c, b)` Logarithm of each cap in watts; 0 where a device has none
    has_cap: Reals  # `(c, b)` 1 where it has one, else 0
    domains: tuple[str, ...]  # `(b,)` The domain that each caps; empty for all power
    reference: Integers  # `(c,)` From which sample run the power without cap is read

    @classmethod
    def of(cls, space: Space, samples: Sequence[int], domains: Sequence[str]) -> SettingInputs:
        """Those of a space."""
        capped = cap_domains(space, domains)
        columns = [space.knobs.index(knob) for knob in capped]
        caps = space.matrix[:, columns]
        known = np.isfinite(caps)
        return cls(
            _standardized(_columns(space)),
            np.log(np.where(known, caps, 1.0)),
            known.astype(np.float64),
            tuple(capped.values()),
            references(space, samples),
        )

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return int(self.fixed.shape[1] + self.caps.shape[1])

    def seen_by(self, observed: Observed, places: Sequence[int]) -> Reals:
        """``(c, a + b)`` Coordinates; a cap counts by how far it is below what the kernel takes."""
        at = np.array(places)
        columns = [self.fixed]
        for number, domain in enumerate(self.domains):
            powers = observed.domains[domain][at] if domain in observed.domains else observed.power_w[at]
            powers = np.where(powers > 0, powers, observed.power_w[at])
            margin = self.caps[:, number] - np.log(powers)[self.reference]
            near = np.clip(margin, -1.0, _BEYOND) / _BEYOND
            columns.append((near * self.has_cap[:, number])[:, None])
        return np.hstack(columns)


def _columns(space: Space) -> Reals:
    columns = []
    for values in space.matrix.T:
        known = np.isfinite(values)
        # Knobs act by ratios: twice the clock, twice the cores.
        positive = bool((values[known] > 0).all())
        scaled = np.log(np.where(known, values, 1.0)) if positive else np.where(known, values, 0.0)
        columns.append(np.where(known, scaled, scaled[known].mean()))
    for name in space.words:
        words = np.array([str(each.settings.get(name, "")) for each in space.configurations])
        columns += [(words == word).astype(np.float64) for word in np.unique(words)[1:]]
    columns += [
        (space.device_numbers == number).astype(np.float64) for number in range(1, len(space.devices))
    ]
    return np.stack(columns, axis=1) if columns else np.empty((len(space), 0))


def _standardized(columns: Reals) -> Reals:
    spread = columns.std(axis=0)
    scaled: Reals = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return scaled


@dataclass(frozen=True, eq=False)
class FittedQuantity:
    """What was learned of time, or of the power of one domain.

    Its logarithm relative to the sample run from which a configuration is scaled is `mean` plus the process.
    """

    mean: Reals  # `(c,)` Mean over the training programs
    process: SparseProcess  # How kernels differ from it

    def prior(self, points: Reals, features: int, references: Reals) -> Belief:
        """What is known of a kernel by its features alone."""
        relative = self.process.at(points, features)
        return replace(relative, mean=self.mean + relative.mean + references)


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known of a kernel by the features that its sample runs give it."""

    quantities: Mapping[str, Belief]  # Time and the parts of the power, by name
    errors: tuple[Reals, Reals]  # Standardised errors on left-out programs of time and of power

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """What is known after runs; see `ConfigurationPredictor.forecast`."""
        parts = tuple(name for name in self.quantities if name != TIME)
        powers = powers_of(parts, observed.power_w, observed.domains)
        with np.errstate(divide="ignore", invalid="ignore"):
            told = {name: np.log(values) for name, values in {TIME: observed.time_s, **powers}.items()}
        after = {name: each.given(observed.numbers, told[name]) for name, each in self.quantities.items()}
        time = after.pop(TIME)
        power = total_of(after)
        sound = positive(observed.time_s) & positive(observed.power_w)
        measured = np.zeros(len(power.mean), np.bool_)
        measured[observed.numbers[sound]] = True
        return SurfaceForecast(
            _quantity(time, self.errors[0], observed, observed.time_s),
            _quantity(power, self.errors[1], observed, observed.power_w),
            measured,
        )


def _quantity(logarithm: Posterior, errors: Reals, observed: Observed, values: Reals) -> Quantity:
    centre, spread = np.exp(logarithm.mean), np.sqrt(logarithm.variance)
    known = positive(values)
    centre[observed.numbers[known]] = values[known]
    spread[observed.numbers[known]] = 0.0
    return Quantity(centre, spread, errors)


def positive(values: Reals) -> Flags:
    """What can have been measured: finite numbers above 0, which a sensor that fails does not return."""
    found: Flags = (values > 0) & np.isfinite(values)
    return found


_PLAIN = "plain:"
"""Before the names of arrays of the process for kernels that do not tell their domains."""


@dataclass(frozen=True, eq=False)
class ProcessPredictor:
    """The fitted model."""

    space: Space  # The configurations
    samples: tuple[int, ...]  # Those at which a new kernel must have been run
    features: SampleFeatures  # What is told of a kernel by these runs
    domains: tuple[str, ...]  # Domains of power that caps are compared with
    quantities: Mapping[str, FittedQuantity]  # Time and the parts of the power, by name
    errors: tuple[Reals, Reals]  # Standardised errors on left-out programs, rising: of time and of power
    # The same for kernels that do not tell their domains; `None` where the power has no parts
    plain: ProcessPredictor | None = None
    inputs: SettingInputs = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", SettingInputs.of(self.space, self.samples, self.domains))

    def prior(self, observed: Observed) -> Prior:
        """What the runs at the samples tell, before they are used as measurements."""
        places = sample_places(self.space, self.samples, observed)
        parts = tuple(name for name in self.quantities if name != TIME)
        powers = powers_of(parts, observed.power_w, observed.domains)
        if self.plain is not None and not all(positive(values[places]).all() for values in powers.values()):
            return self.plain.prior(observed)
        points = self.points(observed, places)
        references = np.array(places)[self.inputs.reference]
        f = len(self.features.names)
        values = {TIME: observed.time_s, **powers}
        found = {
            name: fitted.prior(points, f, np.log(values[name][references]))
            for name, fitted in self.quantities.items()
        }
        return Prior(found, self.errors)

    def points(self, observed: Observed, places: Sequence[int]) -> Reals:
        """``(c, f + s)`` Features of a kernel, and the settings as they look from it."""
        return points_of(self.features, self.inputs, observed, places)

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict one kernel; see `ConfigurationPredictor.forecast`."""
        return self.prior(observed).forecast(observed)

    def with_errors(self, time: Reals, power: Reals) -> ProcessPredictor:
        """The same with other standardised errors."""
        return replace(self, errors=(time, power))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        arrays = {
            **space_state(self.space, self.samples),
            **self.features.state(),
            "domains": np.array(self.domains, np.str_),
            "quantities": np.array(list(self.quantities), np.str_),
            "time_errors": self.errors[0],
            "power_errors": self.errors[1],
        }
        for name, fitted in self.quantities.items():
            arrays[f"{name}.mean"] = fitted.mean
            arrays |= {f"{name}.{key}": array for key, array in fitted.process.state().items()}
        if self.plain is not None:
            arrays |= {f"{_PLAIN}{key}": array for key, array in self.plain.state().items()}
        return arrays

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> ProcessPredictor:
        """Make it from its arrays."""
        space, samples = kept_space(state)
        names = kept_names(state, "quantities")
        keys = [key for key in state if not key.startswith(_PLAIN)]
        means = [key.removesuffix(".mean") for key in keys if key.endswith(".mean")]
        if len(names) < 2 or names[0] != TIME or sorted(names) != sorted(means):
            raise InputError(
                f"model: quantities: expected time and powers, each once and with a mean, found {names}"
            )
        domains = kept_names(state, "domains")
        if domains != capped_domains(space, names[1:]):
            raise InputError(f"model: domains: expected domains that a cap is of, found {domains}")
        features = SampleFeatures.from_state(state, len(samples))
        found = cls(
            space,
            samples,
            features,
            domains,
            {name: _kept_quantity(state, name, len(space)) for name in names},
            (_kept_errors(state, "time_errors"), _kept_errors(state, "power_errors")),
            None if names[1:] == (TOTAL,) else _kept_plain(state, space, samples),
        )
        settings = found.inputs.width
        for name, fitted in found.quantities.items():
            covariance = fitted.process.covariance
            widths = (len(covariance.lengths), len(covariance.own_lengths))
            if widths != (len(features.names) + settings, settings):
                raise InputError(
                    f"model: {name}.lengths: expected {len(features.names)} + {settings} and {settings} "
                    f"lengths, found {widths[0]} and {widths[1]}"
                )
        return found


def points_of(
    features: SampleFeatures, inputs: SettingInputs, observed: Observed, places: Sequence[int]
) -> Reals:
    """``(c, f + s)`` Features of a kernel, and the settings as they look from it."""
    told = features.standardized(features.values(observed, places))
    settings = inputs.seen_by(observed, places)
    return np.hstack([np.broadcast_to(told, (len(settings), len(told))), settings])


def _kept_plain(
    state: Mapping[str, npt.NDArray[Any]], space: Space, samples: tuple[int, ...]
) -> ProcessPredictor:
    own = {key.removeprefix(_PLAIN): array for key, array in state.items() if key.startswith(_PLAIN)}
    names = kept_names(own, "quantities")
    if names != (TIME, TOTAL):
        raise InputError(f"model: {_PLAIN}quantities: expected {TIME} and {TOTAL}, found {names}")
    plain = ProcessPredictor.from_state(own)
    if (plain.space, plain.samples) != (space, samples):
        raise InputError(f"model: {_PLAIN}samples: expected the same configurations, found others")
    return plain


def _kept_quantity(state: Mapping[str, npt.NDArray[Any]], name: str, count: int) -> FittedQuantity:
    own = {key.removeprefix(f"{name}."): array for key, array in state.items() if key.startswith(f"{name}.")}
    mean = kept_reals(own, "mean", 1)
    if len(mean) != count:
        raise InputError(f"model: {name}.mean: expected {count} values, found {len(mean)}")
    return FittedQuantity(mean, SparseProcess.from_state(own))


def _kept_errors(state: Mapping[str, npt.NDArray[Any]], name: str) -> Reals:
    errors = kept_reals(state, name, 1)
    if (np.diff(errors) < 0).any():
        raise InputError(f"model: {name}: expected rising numbers, found others")
    return errors


_REMEMBERED = 100
"""Points that the process remembers: more change no forecast and take longer."""

_FOR_LIKELIHOOD = 260
"""Values of which the likelihood is climbed: each step costs the cube of their number."""

_LEAST_OF_A_KERNEL = 6
_ERRORS = 201
"""Quantiles that are kept of the errors on left-out programs."""


@dataclass(frozen=True)
class ProcessModel:
    """A Gaussian process over kernels and configurations together.

    Logarithms of time, and of the power of each domain, relative to the sample run, are a mean over the
    training programs plus a process over the features that the sample runs give a kernel and over the
    settings; a cap is seen as how far it is below what the kernel takes without it. The logarithms stabilise
    the variance, as section VI of Bailey et al. 2014 proposes. The kernel's own runs, the samples and any
    others, are measurements of it.

    Of kernels whose runs do not tell the powers of the domains it knows what it would have learned without
    them.

    How wrong it is, is learned by leaving each training program out.
    """

    @property
    def name(self) -> str:
        """Its name."""
        return "model"

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> ProcessPredictor:
        """Fit it to the kernels that ran at all samples."""
        # Imported here: predicting needs it not.
        from threadpoolctl import threadpool_limits

        count = len(surfaces.space)
        if len(set(samples)) < len(samples) or not all(0 <= each < count for each in samples):
            named = ", ".join(map(str, samples))
            raise InputError(f"samples: expected places from 0 to {count - 1}, each once, found {named}")
        known = sampled(replace(surfaces, counters={}), samples)
        if len(known.applications) < 2:
            raise InputError(
                f"{surfaces.label}: expected at least 2 programs that ran at all samples, found "
                f"{', '.join(known.applications)}"
            )
        # Threads of BLAS take longer to agree than these small matrices take.
        with threadpool_limits(1):
            found = _Training.of(known, tuple(samples), seed).predictor()
            if TOTAL in found.quantities:
                return found
            plain = _Training.of(replace(known, domains={}), tuple(samples), seed).predictor()
            return replace(found, plain=plain)


@dataclass(frozen=True, eq=False)
class _Training:
    """The training values, in rows: a kernel at a configuration where it ran."""

    surfaces: Surfaces
    samples: tuple[int, ...]
    features: SampleFeatures
    domains: tuple[str, ...]
    inputs: SettingInputs
    points: Reals
    kernels: Integers
    configurations: Integers
    programs: Integers
    relative: dict[str, Reals]
    """``(n, c)`` Logarithm of each quantity over that of the sample run it is scaled from, by name."""
    seed: int

    @classmethod
    def of(cls, surfaces: Surfaces, samples: tuple[int, ...], seed: int) -> _Training:
        features, _ = SampleFeatures.of(surfaces, samples)
        parts = power_parts(surfaces)
        domains = capped_domains(surfaces.space, parts)
        inputs = SettingInputs.of(surfaces.space, samples, domains)
        kernels, configurations = np.nonzero(surfaces.known)
        places = list(range(len(samples)))
        points = np.stack(
            [
                points_of(features, inputs, surfaces.observed(row, samples), places)
                for row in range(len(surfaces.kernels))
            ]
        )
        programs = np.array([surfaces.applications.index(each.application) for each in surfaces.kernels])
        at = np.array(samples)[inputs.reference]
        logarithms = {
            name: np.log(values)
            for name, values in {
                TIME: surfaces.time_s,
                **powers_of(parts, surfaces.power_w, surfaces.domains),
            }.items()
        }
        return cls(
            surfaces,
            samples,
            features,
            domains,
            inputs,
            points[kernels, configurations],
            kernels,
            configurations,
            programs,
            {name: values - values[:, at] for name, values in logarithms.items()},
            seed,
        )

    def predictor(self) -> ProcessPredictor:
        """Fit all quantities, and learn how wrong they are."""
        rng = np.random.default_rng(self.seed)
        part = self._part(rng)
        weighed = {name: self._weighed(name, part) for name in self.relative}
        everyone = np.ones(len(self.surfaces.applications), np.bool_)
        none = np.empty(0)
        whole = self._predictor(weighed, everyone, (none, none))
        return whole.with_errors(*self._errors(weighed))

    def _part(self, rng: np.random.Generator) -> Integers:
        """Rows of which the likelihood is climbed: as many of each kernel, of all or some kernels."""
        count = len(self.surfaces.kernels)
        each = max(_FOR_LIKELIHOOD // count, _LEAST_OF_A_KERNEL)
        kernels = rng.permutation(count)[: max(_FOR_LIKELIHOOD // each, 1)]
        rows = [rng.permutation(np.flatnonzero(self.kernels == kernel))[:each] for kernel in kernels]
        return np.sort(np.concatenate(rows))

    def _weighed(self, name: str, part: Integers) -> Weighed:
        everyone = np.ones(len(self.surfaces.applications), np.bool_)
        values = self._values(name, self._mean(name, everyone))
        f = len(self.features.names)
        covariance: Covariance = likeliest(self.points[part], f, self.kernels[part], values[part])
        remembered = pivots(covariance, self.points, _REMEMBERED)
        return Weighed.of(covariance, self.points, remembered)

    def _mean(self, name: str, programs: Flags) -> Reals:
        """``(c,)`` Mean over programs, each of the mean over its kernels; 0 where none ran."""
        relative = self.relative[name]
        weights = np.zeros(relative.shape)
        for program in np.flatnonzero(programs):
            rows = self.programs == program
            ran = np.isfinite(relative[rows])
            weights[rows] = ran / np.maximum(ran.sum(axis=0), 1)
        total = weights.sum(axis=0)
        sums = (weights * np.where(np.isfinite(relative), relative, 0.0)).sum(axis=0)
        mean: Reals = sums / np.where(total > 0, total, 1.0)
        return mean

    def _values(self, name: str, mean: Reals) -> Reals:
        values: Reals = (self.relative[name] - mean)[self.kernels, self.configurations]
        return values

    def _predictor(
        self, weighed: dict[str, Weighed], programs: Flags, errors: tuple[Reals, Reals]
    ) -> ProcessPredictor:
        """Fit with some of the programs alone."""
        used = programs[self.programs[self.kernels]]
        quantities = {}
        for name, each in weighed.items():
            mean = self._mean(name, programs)
            quantities[name] = FittedQuantity(mean, each.fitted(self._values(name, mean), used))
        return ProcessPredictor(
            self.surfaces.space, self.samples, self.features, self.domains, quantities, errors
        )

    def _errors(self, weighed: dict[str, Weighed]) -> tuple[Reals, Reals]:
        """Quantiles of standardised errors on each program, left out: of time and of power.

        What the covariance was learned from has the program in it, so they are a little small. And they are
        those of few programs: a normal variable of which there are `n` values lies about their mean with
        ``(n + 1) / (n - 1)`` times their variance.
        """
        count = len(self.surfaces.applications)
        factor = np.sqrt((count + 1) / (count - 1))
        found: tuple[list[Reals], list[Reals]] = ([], [])
        for program in range(count):
            others = np.arange(count) != program
            predictor = self._predictor(weighed, others, (np.empty(0), np.empty(0)))
            for row in np.flatnonzero(self.programs == program):
                for kept, errors in zip(found, self._errors_of(predictor, int(row)), strict=True):
                    kept.append(errors)
        time, power = (_quantiles(factor * np.concatenate(errors)) for errors in found)
        return time, power

    def _errors_of(self, predictor: ProcessPredictor, row: int) -> tuple[Reals, Reals]:
        observed = self.surfaces.observed(row, self.samples)
        forecast = predictor.forecast(observed)
        asked = self.surfaces.known[row] & ~forecast.measured
        true = (self.surfaces.time_s[row], self.surfaces.power_w[row])
        time, power = (
            ((np.log(values) - np.log(each.centre)) / np.where(asked, each.spread, 1.0))[asked]
            for values, each in zip(true, (forecast.time, forecast.power), strict=True)
        )
        return time, power


def _quantiles(errors: Reals) -> Reals:
    if not errors.size:
        return errors
    kept: Reals = np.quantile(errors, np.linspace(0, 1, _ERRORS))
    return kept
