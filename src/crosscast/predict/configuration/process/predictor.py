"""A fitted process: a kernel's times and powers from its runs at the samples, and at others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.configuration.forecast import SurfaceForecast
from crosscast.predict.configuration.kept_space import kept_space, space_state
from crosscast.predict.configuration.process.inputs import SettingInputs, capped_domains
from crosscast.predict.configuration.process.prior import FittedQuantity, Prior, positive
from crosscast.predict.configuration.process.quantities import TIME, TOTAL, powers_of
from crosscast.predict.configuration.process.sparse import SparseProcess
from crosscast.predict.configuration.sample_features import SampleFeatures
from crosscast.predict.configuration.sample_runs import sample_places
from crosscast.predict.configuration.space import Space
from crosscast.predict.configuration.surfaces import Observed
from crosscast.predict.state import kept_names, kept_reals

__all__ = ["ProcessPredictor", "points_of"]

_PLAIN = "plain:"
"""Before the names of arrays of the process for kernels that do not tell their domains."""


@dataclass(frozen=True, eq=False)
class ProcessPredictor:
    """The fitted model.

    Parameters
    ----------
    space
        The configurations.
    samples
        Those at which a new kernel must have been run.
    features
        What is told of a kernel by these runs.
    domains
        Domains of power that caps are compared with.
    quantities
        Time and the parts of the power, by name.
    errors
        Standardised errors on left-out programs, rising: of time and of power.
    plain
        The same for kernels that do not tell their domains; ``None`` where the power has no parts.
    """

    space: Space
    samples: tuple[int, ...]
    features: SampleFeatures
    domains: tuple[str, ...]
    quantities: Mapping[str, FittedQuantity]
    errors: tuple[Reals, Reals]
    plain: ProcessPredictor | None = None
    inputs: SettingInputs = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", SettingInputs.of(self.space, self.samples, self.domains))

    def prior(self, observed: Observed) -> Prior:
        """What the runs at the samples tell, before they are used as measurements.

        Parameters
        ----------
        observed
            The kernel's runs.

        Raises
        ------
        InputError
            If a run at a sample configuration is missing.
        """
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
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
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
