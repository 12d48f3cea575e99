"""Fit the model of launch times, with its uncertainty, to times with the launches of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from crosscast.arrays import AnyArray, Flags, Integers, Reals
from crosscast.data.times import LaunchTables
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.prediction.time.card import HeldOut, Range
from crosscast.prediction.time.datasets import TrainingTimes, read_training
from crosscast.prediction.time.launch_model import TrainedLaunchTimes
from crosscast.prediction.time.launch_times import (
    BETWEEN_KINDS,
    DOUBT_LEVELS,
    IN_COMMON,
    INTO_KINDS,
    KINDS,
    NO_GPUS,
    SIDES,
    Correction,
    Doubt,
    LaunchModels,
    LaunchTimes,
    deviation_of,
    in_common,
    narrowed,
    shared_part,
)
from crosscast.prediction.time.terms import MEMORY, Efficiencies, Times, fit, log_times
from crosscast.prediction.time.work import TRAITS

_DEVICE_FOLDS, _LAUNCH_FOLDS = 6, 5
_IS_NEAR, _NEAREST = 0.5, 0.3
_MOST_TOGETHER = 0.95
_ITERATIONS = 2
_EXPECTED = np.log([0.7, 0.5, 0.5, 0.2, 0.5])  # Prior medians of the deviations
_DRAWN = 0.005
_DRAWN_SIDE = 0.02  # Sides have fewer applications
_LEAST_DEVIATION = 0.04
_TAIL = 0.9  # Level from which on single applications decide the quantiles
_FREEDOM = 12.0
"""Of Student's distribution: of 2 to 1000, with the best score of intervals (Winkler 1972) held out."""


def doubt_of(errors: Reals, shares: Reals, weights: Reals, sides: Integers, applications: int) -> Doubt:
    """Fit deviations to errors of held-out times ``(c,)``, and quantiles to the standardized errors.

    Deviations of GPUs are drawn to those of all GPUs, others to those of all devices. As single applications
    decide the quantiles of high levels, these are in Student's ratio to that of 90 %.
    """
    # Imported here: predicting needs no SciPy.
    from scipy.stats import t

    overall = _fit_deviations(errors, shares, weights, np.exp(_EXPECTED), _DRAWN)

    def of(rows: Flags, expected: Reals, drawn: float) -> Reals:
        if not rows.any():
            return expected
        return _fit_deviations(errors[rows], shares[rows], weights[rows], expected, drawn)

    of_gpus = of(~np.isin(sides, NO_GPUS), overall, _DRAWN)
    expected = [overall if side in NO_GPUS else of_gpus for side in range(SIDES)]
    deviations = np.stack([of(sides == side, each, _DRAWN_SIDE) for side, each in enumerate(expected)])
    ratio = np.abs(errors) / deviation_of(shares, deviations[sides])
    order = np.argsort(ratio)
    scaled = weights / weights.sum()
    below = np.cumsum(scaled[order]) - 0.5 * scaled[order]
    tail = np.maximum(t.ppf((1 + DOUBT_LEVELS) / 2, _FREEDOM) / t.ppf((1 + _TAIL) / 2, _FREEDOM), 1.0)
    quantiles = np.interp(np.minimum(DOUBT_LEVELS, _TAIL), below, ratio[order]) * tail
    return Doubt(deviations, quantiles, float(applications))


def _fit_deviations(errors: Reals, shares: Reals, weights: Reals, expected: Reals, drawn: float) -> Reals:
    """Deviations by kind ``(len(KINDS),)``, of maximum likelihood under Student's distribution.

    A prior draws their logarithms to those `expected`, as if there were `drawn` times as many more errors of
    the expected size: an error adds about 2 to the precision of a logarithm.
    """
    # Imported here: predicting needs no SciPy.
    from scipy.optimize import minimize

    kinds = shares @ INTO_KINDS
    scaled = weights / weights.sum()
    centre = np.log(expected)

    def loss(values: Reals) -> tuple[float, Reals]:
        squares = np.exp(2 * values)
        variance = kinds @ squares
        ratio = errors**2 / variance
        terms = 0.5 * np.log(variance) + 0.5 * (_FREEDOM + 1) * np.log1p(ratio / _FREEDOM)
        slope = 0.5 / variance - 0.5 * (_FREEDOM + 1) * ratio / variance / (_FREEDOM + ratio)
        away = values - centre
        total = float(scaled @ terms) + drawn * float(away @ away)
        return total, (scaled * slope) @ kinds * 2 * squares + 2 * drawn * away

    limits = [(np.log(_LEAST_DEVIATION), 1.0)] * len(KINDS)
    deviations: Reals = np.exp(minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=limits).x)
    return deviations


_RANGE = 0.5
"""Distance over which errors fall to 1/e of their covariance.

The likelihood of the errors on training data is highest for 2, as kernels of one application are
neighbours. But then errors of FFTs made streams, stencils and multiply-adds of other sources 1.3 times too
slow (``python -m benchmarks.published_kernels``).
"""
_VARIANCES = (0.02, 0.05, 0.1, 0.2)
_NOISES = (0.02, 0.05, 0.1)
_STARTS = (_RANGE, 0.1, np.full(len(BETWEEN_KINDS), 0.05))
_SWEEPS = 2
_LARGEST = 1.5
_MOST_OF_APPLICATION = 25


def _no_correction() -> Correction:
    """A correction without any known launch: zero everywhere."""
    no_errors, no_indices = np.zeros(0), np.zeros(0, dtype=np.int64)
    no_traits = np.zeros((0, len(TRAITS)))
    return Correction((), no_traits, no_indices, no_indices, no_errors, no_errors, no_errors, *_STARTS)


def fit_correction(
    traits: Reals,
    names: Sequence[tuple[str, str, str]],
    kinds: Integers,
    memory: Reals,
    errors: Reals,
    template: Correction | None = None,
) -> Correction:
    """Fit a correction to errors ``(c,)``, measured less predicted logarithms, of the cells of some launches.

    Traits ``(c, len(TRAITS))`` and names (application, kernel, size) are of the launches, kinds of the
    devices, and the share of memory of the predicted times. Each application contributes a limited number of
    launches, spread in their order, so that none outweighs the others. Range, variance and noise are those of
    the template, or the latter two maximize the likelihood of the errors.
    """
    chosen = _spread(names)
    number = {name: k for k, name in enumerate(chosen)}
    groups: dict[tuple[int, int], list[int]] = {}
    for cell, name in enumerate(names):
        if name in number:
            groups.setdefault((number[name], int(kinds[cell])), []).append(cell)
    if not groups:
        return _no_correction()
    first = {launch: cells[0] for (launch, _), cells in groups.items()}
    correction = Correction(
        tuple(f"{application} {kernel} at {size}".strip() for application, kernel, size in chosen),
        np.stack([traits[first[k]] for k in range(len(chosen))]),
        np.array([launch for launch, _ in groups]),
        np.array([kind for _, kind in groups]),
        np.array([np.median(memory[cells]) for cells in groups.values()]),
        np.clip([np.median(errors[cells]) for cells in groups.values()], -_LARGEST, _LARGEST),
        np.array([float(len(cells)) for cells in groups.values()]),
        *(_STARTS if template is None else (template.range, template.variance, template.noise)),
    )
    if template is not None:
        return correction
    for _ in range(_SWEEPS):
        tried = [replace(correction, variance=variance) for variance in _VARIANCES]
        correction = max(tried, key=Correction.log_likelihood)
        for kind in np.unique(correction.side):
            of_kind = np.arange(len(BETWEEN_KINDS)) == kind
            tried = [
                replace(correction, noise=np.where(of_kind, noise, correction.noise)) for noise in _NOISES
            ]
            correction = max(tried, key=Correction.log_likelihood)
    return correction


def _spread(names: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    by_application: dict[str, list[tuple[str, str, str]]] = {}
    for name in sorted(set(names)):
        by_application.setdefault(name[0], []).append(name)
    return [
        launches[len(launches) * k // most]
        for launches in by_application.values()
        for most in (min(len(launches), _MOST_OF_APPLICATION),)
        for k in range(most)
    ]


def _predicted(times: Times, known: Efficiencies, devices: Sequence[Device]) -> tuple[Reals, Reals]:
    """Logarithms of the cells' times, and shares of the terms in them."""
    return log_times(times, np.stack([known.of(device) for device in devices])[times.device])


_Fit = Callable[[TrainingTimes], tuple[Efficiencies, Correction]]


def _held_out(training: TrainingTimes, labels: AnyArray, fit_to: _Fit) -> tuple[Reals, Reals, Reals]:
    """Errors of cells, shares of their terms, and explained variance, each label held out in turn.

    Errors are measured less predicted logarithms; NaN where nothing remains to fit to.
    """
    errors, explained = np.full((2, len(labels)), np.nan)
    shares = np.zeros((len(labels), training.times.seconds.shape[1]))
    for held in (labels == label for label in np.unique(labels)):
        if held.all():
            continue
        rest, part = training.take(~held), training.take(held)
        known, correction = fit_to(rest)
        centre, shares[held] = _predicted(part.times, known, part.devices)
        shift, explained[held] = _corrected(part, correction, shares[held])
        errors[held] = part.times.log_time - centre - shift
    return errors, shares, explained


def _correction_of(
    training: TrainingTimes, known: Efficiencies, template: Correction | None = None
) -> Correction:
    """Fit a correction to the errors of the fitted terms; times with a note are not used."""
    centre, shares = _predicted(training.times, known, training.devices)
    errors, sound = training.times.log_time - centre, ~training.noted
    launches = [row.cell for row in training.rows if not row.note]
    traits, kinds, memory = training.traits[sound], training.kinds[sound], shares[sound, MEMORY]
    return fit_correction(traits, launches, kinds, memory, errors[sound], template)


def _corrected(training: TrainingTimes, correction: Correction, shares: Reals) -> tuple[Reals, Reals]:
    """Logarithms to add to the cells' times, and the share of their errors' variance explained.

    Given the shares of the terms in the times, ``(c, len(TERMS))``.
    """
    shift, explained = np.zeros((2, len(shares)))
    for kind in np.unique(training.kinds).tolist():
        rows = training.kinds == kind
        distances = correction.distances(training.traits[rows])
        of_kind = correction.of(distances, np.array([kind]), shares[rows, MEMORY, None])
        shift[rows], explained[rows] = (each[:, 0] for each in of_kind)
    return shift, explained


def _as(template: Correction) -> _Fit:
    """Fit factors, and a correction with the covariance of a template."""

    def fit_to(training: TrainingTimes) -> tuple[Efficiencies, Correction]:
        known = fit(training.times, training.devices)
        return known, _correction_of(training, known, template)

    return fit_to


def _folds(keys: Sequence[Any], count: int) -> Integers:
    """Fold of each cell by a key, of which all in their order are dealt to so many folds."""
    fold = {key: number % count for number, key in enumerate(sorted(set(keys)))}
    return np.array([fold[key] for key in keys])


def fit_launch_times(training: TrainingTimes, *, of_devices: bool = True) -> LaunchTimes:
    """Fit factors to all times, and deviations to errors on held-out applications, launches and devices.

    Times with a note are not used for the deviations.
    """
    times = training.times
    known = fit(times, training.devices)
    correction = _correction_of(training, known)
    applications = training.labels("application")
    errors, shares, explained = _held_out(training, applications, _as(correction))
    sound = np.isfinite(errors) & ~training.noted
    weights = _equal_weights(applications)
    # The next application is one more of those on its kind of device.
    kinds = training.kinds
    number = max(len(set(applications[sound & (kinds == kind)].tolist())) for kind in np.unique(kinds))
    # Their kernels have other launches in the training.
    launches = _folds([row.cell for row in training.rows], _LAUNCH_FOLDS)
    near_known = _held_out(training, launches, _as(correction))
    # Alternate between deviations far from all measured launches, and their ratio near one.
    near = np.ones(SIDES)
    for _ in range(_ITERATIONS):
        far_errors = errors[sound] / narrowed(explained[sound], near[training.sides[sound]])
        doubt = doubt_of(far_errors, shares[sound], weights[sound], training.sides[sound], number)
        near = _near(training, near_known, doubt)
    unseen = _unseen(training, correction, doubt, near) if of_devices else doubt.deviations
    together = _together(training, errors, shares, doubt, sound)
    names = tuple(known.factors)
    factors = np.stack([known.factors[name] for name in names])
    return LaunchTimes(
        names, factors, doubt, unseen, together, correction, near, (), np.zeros((0, len(KINDS)))
    )


def _equal_weights(applications: AnyArray) -> Reals:
    """Weights of cells with equal sums for all applications."""
    _, number, count = np.unique(applications, return_inverse=True, return_counts=True)
    weights: Reals = 1.0 / count[number]
    return weights


def _widening(
    training: TrainingTimes,
    errors: Reals,
    deviation: Reals,
    doubt: Doubt,
    rows: Flags,
    *,
    few: bool = False,
) -> float:
    """Factor of the deviations with which intervals hold nine of ten errors.

    With `few` these are errors of one more application than those given, as in `Doubt.factor`.
    """
    chosen = np.flatnonzero(rows & np.isfinite(errors) & ~training.noted)
    if not len(chosen):
        return 1.0
    ratio = np.abs(errors) / deviation
    chosen = chosen[np.argsort(ratio[chosen])]
    applications = training.labels("application")[chosen]
    weights = _equal_weights(applications)
    below = np.cumsum(weights) / weights.sum()
    share = min(0.9 * (1 + few / len(set(applications.tolist()))), 1.0)
    return float(np.interp(share, below, ratio[chosen])) / (doubt.factor if few else doubt.quantile)(0.9)


def _near(training: TrainingTimes, near_known: tuple[Reals, Reals, Reals], doubt: Doubt) -> Reals:
    """Deviation of times of launches near known ones, over that far from all, by side."""
    errors, shares, explained = near_known
    deviation = doubt.deviation(shares, training.sides)
    is_near = [(explained > _IS_NEAR) & (training.sides == side) for side in range(SIDES)]
    near: Reals = np.array([_widening(training, errors, deviation, doubt, rows) for rows in is_near])
    return np.clip(near, _NEAREST, 1.0)


def _unseen(training: TrainingTimes, correction: Correction, doubt: Doubt, near: Reals) -> Reals:
    """Deviations by kind on devices of each side that were not measured."""
    devices = _folds(training.labels("device").tolist(), _DEVICE_FOLDS)
    errors, shares, explained = _held_out(training, devices, _as(correction))
    narrower = narrowed(explained, near[training.sides])
    sound = np.isfinite(errors) & ~training.noted
    weights = _equal_weights(training.labels("application"))
    # Accelerators of many small cores are neither CPUs nor GPUs.
    usual_type = np.array([device.type in ("gpu", "cpu") for device in training.devices])
    by_side = []
    for side, usual in enumerate(doubt.deviations):
        of_side = (training.sides == side) & usual_type[training.times.device]
        rows, deviations = sound & of_side, usual
        if rows.any():
            scaled = errors[rows] / narrower[rows]
            deviations = _fit_deviations(scaled, shares[rows], weights[rows], usual, _DRAWN)
        of_cells = deviation_of(shares, deviations) * narrower
        wider = _widening(training, errors, of_cells, doubt, of_side)
        by_side.append(np.maximum(deviations * wider, usual))
    return np.stack(by_side)


def _together(training: TrainingTimes, errors: Reals, shares: Reals, doubt: Doubt, sound: Flags) -> Reals:
    """Correlation of the shared parts of a kernel's errors on two devices, by what these have in common.

    Of each application the mean over pairs of devices; devices that have more in common share no less.
    """
    # Imported here: predicting needs no SciPy.
    from scipy.optimize import isotonic_regression

    device, common = training.times.device, in_common(training.devices)
    scaled = np.clip(errors / doubt.deviation(shares, training.sides), -4, 4)
    shared = shared_part(shares, doubt.deviations[training.sides])
    products: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for cells in cells_of_launches(training, sound):
        first, second = np.triu_indices(len(cells), 1)
        one, other = cells[first], cells[second]
        of_pairs = common[device[one], device[other]]
        product = scaled[one] * scaled[other]
        expected = shared[one] * shared[other] * (scaled[one] ** 2 + scaled[other] ** 2) / 2
        for level, *pair in zip(of_pairs.tolist(), product.tolist(), expected.tolist(), strict=True):
            products.setdefault((level, training.rows[cells[0]].application), []).append((pair[0], pair[1]))
    sums, count = np.zeros((len(IN_COMMON), 2)), np.zeros(len(IN_COMMON))
    for (level, _), pairs in products.items():
        sums[level] += np.mean(pairs, axis=0)
        count[level] += 1
    known = np.flatnonzero((count > 0) & (sums[:, 1] > 0))
    if not len(known):
        return np.zeros(len(IN_COMMON))
    rising = isotonic_regression(sums[known, 0] / sums[known, 1], weights=count[known]).x
    together: Reals = np.clip(np.interp(np.arange(len(IN_COMMON)), known, rising), 0.0, _MOST_TOGETHER)
    return together


def cells_of_launches(training: TrainingTimes, sound: Flags) -> Iterator[Integers]:
    """Cells of each source's times of a launch on different devices."""
    cells: dict[tuple[str, ...], dict[str, int]] = {}
    for number in np.flatnonzero(sound).tolist():
        row = training.rows[number]
        cells.setdefault((row.source, *row.cell), {})[row.device] = number
    return (np.array(list(numbers.values())) for numbers in cells.values())


def forecasts_of(part: TrainingTimes, fitted: LaunchTimes) -> tuple[Reals, Reals, Reals]:
    """Log times of cells by a fitted model, their deviations, and the part of these that devices share."""
    centre, shares = _predicted(part.times, fitted.efficiencies(), part.devices)
    shift, explained = _corrected(part, fitted.correction, shares)
    deviations = fitted.on(part.devices).deviations[part.times.device]
    deviation = deviation_of(shares, deviations) * narrowed(explained, fitted.near[part.sides])
    return centre + shift, deviation, shared_part(shares, deviations)


LEVEL = 0.9
_WORTH_APPLICATIONS = 1.0
"""Weight of the deviations on other devices, in applications."""


def with_device(
    base: TrainedLaunchTimes, tables: LaunchTables, **about: object
) -> tuple[TrainedLaunchTimes, HeldOut]:
    """Add the one device of some times to a model; also return its errors, each application held out in turn.

    Factors of other devices stay as they are. `about` is added to the card's training.
    """
    counted = read_training(tables)
    models = base.predictor
    joined_model, errors = _joined(models.counted, counted)
    estimated = models.estimated and _joined(models.estimated, read_training(tables, counted=False))[0]
    (device,) = counted.devices
    times = np.exp(counted.times.log_time)
    card = base.card
    training = {
        **card.training,
        **about,
        "devices": len(card.devices) + 1,
        "calibrated": {
            "device": device.key,
            "kernels_at_a_size": len({row.cell for row in counted.rows}),
            "applications": sorted({row.application for row in counted.rows}),
            "held_out": errors.to_dict(),
        },
    }
    time_range = Range(min(card.time_s.low, float(times.min())), max(card.time_s.high, float(times.max())))
    new = msgspec.structs.replace(card, training=training, devices=(*card.devices, device), time_s=time_range)
    return TrainedLaunchTimes(new, LaunchModels(joined_model, estimated)), errors


def _joined(model: LaunchTimes, training: TrainingTimes) -> tuple[LaunchTimes, HeldOut]:
    """Fit a device's factors; fit its uncertainty to held-out errors, drawn to that of other devices."""
    applications = training.labels("application")

    def fit_to(times: TrainingTimes) -> tuple[Efficiencies, Correction]:
        known = fit(times.times, times.devices, model.efficiencies())
        return known, model.correction.with_launches(_correction_of(times, known, model.correction))

    errors, shares, explained = _held_out(training, applications, fit_to)
    names: list[str] = np.unique(applications).tolist()
    if not np.isfinite(errors).any():
        expected = "times of two applications or more"
        raise InputError.of(where="training", expected=expected, found=names[0])
    narrower = narrowed(explained, model.near[training.sides])
    usual: Reals = model.doubt.deviations[training.sides[0]]

    def deviations(rows: Flags) -> Reals:
        """Deviations by kind of time, fitted to some of the cells, of which they cover nine of ten errors.

        A few applications say little about a kind of times: the deviations on other devices weigh as much as
        one application, and are the least.
        """
        chosen = rows & np.isfinite(errors) & ~training.noted
        if not chosen.any():
            return usual
        scaled, weights = errors[chosen] / narrower[chosen], _equal_weights(applications[chosen])
        pull = _WORTH_APPLICATIONS / len(np.unique(applications[chosen]))
        of_kinds = _fit_deviations(scaled, shares[chosen], weights, usual, pull)
        of_cells = deviation_of(shares, of_kinds) * narrower
        wider = _widening(training, errors, of_cells, model.doubt, rows, few=True)
        return np.maximum(of_kinds * wider, usual)

    factor, inside = model.doubt.factor(LEVEL), []
    for rows in (applications == name for name in names):
        deviation = deviation_of(shares[rows], deviations(~rows)) * narrower[rows]
        inside.append(float(np.mean(np.abs(errors[rows]) <= factor * deviation)))
    scores = HeldOut(
        float(np.median(np.abs(np.expm1(-errors)))),
        float(np.sqrt(np.mean(errors**2))),
        float(np.mean(inside)),
        min(inside),
        LEVEL,
    )
    known, correction = fit_to(training)
    wider = deviations(np.ones(len(errors), dtype=np.bool_)) / usual
    fitted = replace(
        model,
        keys=tuple(known.factors),
        factors=np.stack([*known.factors.values()]),
        correction=correction,
        joined=(*model.joined, *(device.key for device in training.devices)),
        wider=np.vstack([model.wider, wider]),
    )
    return fitted, scores
