"""How wrong a model of configurations is on programs that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.choose.evaluation.sampler import Sampler
from crosscast.errors import InputError
from crosscast.evaluate.processes import Progress, check_jobs, done_pieces, one_thread, told
from crosscast.predict.configuration.forecast import Quantity
from crosscast.predict.configuration.model import ConfigurationModel
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["LeftOutErrors", "errors_left_out"]


@dataclass(frozen=True, eq=False)
class LeftOutErrors:
    """Errors at the configurations that were not measured, of each program left out.

    Parameters
    ----------
    level
        Probability that the intervals were to hold.
    time, power
        For each program ``(m,)`` logarithms of predicted over true values; without programs that did not run
        at the samples.
    time_inside, power_inside
        For each program ``(m,)`` whether the true value was within the interval; none where the model does
        not know how sure it is.
    """

    level: float
    time: dict[str, Reals]
    power: dict[str, Reals]
    time_inside: dict[str, Flags]
    power_inside: dict[str, Flags]

    def to_dict(self) -> dict[str, Any]:
        """Scores in which programs weigh the same, as a JSON object; what is not known is null.

        Root mean squared errors of logarithms, medians of the absolute errors over the true values, and
        shares of values within the intervals.
        """
        return {
            "protocol": "leave-application-out",
            "level": self.level,
            "programs": len(self.time),
            "cells": sum(len(each) for each in self.time.values()),
            "rmse_log_time": _rmse(self.time),
            "rmse_log_power": _rmse(self.power),
            "median_ape_time": _median(self.time),
            "median_ape_power": _median(self.power),
            "coverage_time": _mean(self.time_inside),
            "coverage_power": _mean(self.power_inside),
            "by_program": {
                name: {
                    "rmse_log_time": _rmse({name: self.time[name]}),
                    "rmse_log_power": _rmse({name: self.power[name]}),
                }
                for name in self.time
            },
        }


def _rmse(errors: dict[str, Reals]) -> float | None:
    squares = [float(np.mean(each**2)) for each in errors.values()]
    return float(np.sqrt(np.mean(squares))) if squares else None


def _median(errors: dict[str, Reals]) -> float | None:
    medians = [float(np.median(np.abs(np.expm1(each)))) for each in errors.values()]
    return float(np.mean(medians)) if medians else None


def _mean(inside: dict[str, Flags]) -> float | None:
    shares = [float(np.mean(each)) for each in inside.values()]
    return float(np.mean(shares)) if shares else None


def errors_left_out(
    surfaces: Surfaces,
    model: ConfigurationModel,
    *,
    samples: Sequence[int] | Sampler,
    level: float = 0.9,
    seed: int = 0,
    progress: Progress | None = None,
    jobs: int = 1,
) -> LeftOutErrors:
    """Fit a model to all applications but one, and predict the kernels of that one, for each.

    Parameters
    ----------
    surfaces
        All kernels.
    model
        The model.
    samples
        Numbers of the sample configurations, or what chooses them by the training kernels.
    level
        Probability that intervals are to hold.
    seed
        Start of all random numbers.
    progress
        Called whenever a fit is done.
    jobs
        Processes that work at the same time; the errors are the same.

    Raises
    ------
    InputError
        If the model cannot be fitted to so little.
    EnvironmentFault
        If a process that worked was ended by another.
    """
    check_jobs(jobs)
    names = surfaces.applications
    pieces = {name: name for name in names}
    done = done_pieces(pieces, _worker, (surfaces, model, samples, level, seed), jobs, "fitted a model")
    labelled = told(done, len(names), lambda name: f"{model.name}, {name} held out", progress)
    by_name = dict(labelled)
    found = {name: by_name[name] for name in names if len(by_name[name].time)}
    return LeftOutErrors(
        level,
        {name: each.time for name, each in found.items()},
        {name: each.power for name, each in found.items()},
        {name: each.time_inside for name, each in found.items() if each.time_inside is not None},
        {name: each.power_inside for name, each in found.items() if each.power_inside is not None},
    )


@dataclass(frozen=True, eq=False)
class _Fold:
    """Errors of one program."""

    time: Reals
    power: Reals
    time_inside: Flags | None
    power_inside: Flags | None


def _worker(*arguments: Any) -> Callable[[str], _Fold]:
    return partial(_fold, *arguments)


def _fold(
    surfaces: Surfaces,
    model: ConfigurationModel,
    samples: Sequence[int] | Sampler,
    level: float,
    seed: int,
    held_out: str,
) -> _Fold:
    own = surfaces.rows_of([held_out])
    train = surfaces.take(~own)
    numbers = samples(train, seed) if callable(samples) else tuple(samples)
    with one_thread("training a model"):
        try:
            fitted = model.fit(train, numbers, seed)
        except InputError as error:
            raise InputError(f"{model.name}, {held_out} held out: {error}") from error
        found = []
        for row in np.flatnonzero(own & surfaces.known[:, list(numbers)].all(axis=1)).tolist():
            forecast = fitted.forecast(surfaces.observed(row, numbers))
            asked = surfaces.known[row] & ~forecast.measured & np.isfinite(forecast.time.centre)
            found.append(
                (
                    *_errors(forecast.time, surfaces.time_s[row], asked, level),
                    *_errors(forecast.power, surfaces.power_w[row], asked, level),
                )
            )
    time, time_inside, power, power_inside = zip(*found, strict=True) if found else [()] * 4
    return _Fold(_joined(time), _joined(power), _known(time_inside), _known(power_inside))


def _errors(quantity: Quantity, true: Reals, asked: Flags, level: float) -> tuple[Reals, Flags | None]:
    errors: Reals = np.log(quantity.centre[asked] / true[asked])
    if not quantity.errors.size:
        return errors, None
    low, high = (quantity.quantile(share)[asked] for share in ((1 - level) / 2, (1 + level) / 2))
    return errors, (low <= true[asked]) & (true[asked] <= high)


def _joined(parts: Sequence[Reals]) -> Reals:
    return np.concatenate(parts) if parts else np.empty(0)


def _known(parts: Sequence[Flags | None]) -> Flags | None:
    there = [each for each in parts if each is not None]
    return np.concatenate(there) if there else None
