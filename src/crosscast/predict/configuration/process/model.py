"""The model that `crosscast train --target configuration` takes by default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.configuration.process.covariance import Covariance
from crosscast.predict.configuration.process.inputs import SettingInputs, capped_domains
from crosscast.predict.configuration.process.likelihood import likeliest
from crosscast.predict.configuration.process.predictor import ProcessPredictor, points_of
from crosscast.predict.configuration.process.prior import FittedQuantity
from crosscast.predict.configuration.process.quantities import TIME, TOTAL, power_parts, powers_of
from crosscast.predict.configuration.process.sparse import Weighed, pivots
from crosscast.predict.configuration.sample_features import SampleFeatures
from crosscast.predict.configuration.sample_runs import sampled
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["ProcessModel"]

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
        """Fit it to the kernels that ran at all samples.

        Raises
        ------
        InputError
            If there are not two programs with such kernels, or a sample is not in the space or there twice.
        """
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
