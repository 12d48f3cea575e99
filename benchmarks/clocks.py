"""Configurations for less energy, chosen from two runs of a program that a model has not seen.

``python -m benchmarks.clocks titanx.csv`` fits models to 140 microbenchmarks of Guerreiro et al.
2019 alone, and chooses among 32 pairs of clocks for their 24 programs: the least energy, energy times
time, and power, with any slowdown and with at most so much over the default clocks. Runs are known at the
default clocks and at one other pair, which is the one that predicts times of microbenchmarks best whose kinds
are left out (``--choose-sample`` compares some; it takes ten minutes).

``--choose-level`` chooses by the default model for microbenchmarks whose kinds are left out, at several
probabilities with which the limit of the slowdown has to be kept: the least one is taken at which at least
95 % keep to it, for sure to 95 % (the exact bound of Clopper and Pearson 1934).

A dataset in place of ``titanx.csv`` is evaluated with each of its programs left out; the first sample is what
slowdowns are over, and the samples are those that ``crosscast evaluate configuration`` would take.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from benchmarks.table import Verdict, text_table
from crosscast.arrays import Integers, Reals
from crosscast.data.configuration import Objective
from crosscast.data.dataset import dataset_named
from crosscast.data.sources import import_source
from crosscast.data.views import configured
from crosscast.decide.samples import two_samples
from crosscast.prediction.configuration import (
    ConfigurationModel,
    ConfigurationPredictor,
    SurfaceForecast,
    Surfaces,
    choice,
    machines_of,
)
from crosscast.prediction.configuration.artefact import DEFAULT_MODEL, NearestKernels, model_named
from crosscast.prediction.configuration.bailey2014 import PublishedModel
from crosscast.prediction.configuration.choice import NO_CAP, choice_of, merit

_DEFAULT = (975e6, 3505e6)
"""Core and memory clock of the GTX Titan X as its makers set them (Guerreiro et al. 2019)."""

_SECOND = (1088e6, 810e6)
_CANDIDATES = [(core, 810e6) for core in (595e6, 785e6, 975e6, 1088e6, 1164e6)]
_CANDIDATES += [(core, 3505e6) for core in (595e6, 785e6, 1164e6)]
_SHARE, _KEPT = 0.92, 0.95
_OBJECTIVES: tuple[Objective, ...] = ("energy", "edp", "power")
_LEVELS = (0.9, 0.95, 0.96, 0.97, 0.98, 0.99)


class Case(NamedTuple):
    """A kernel that was left out: what was forecast, and what was measured."""

    method: str
    forecast: SurfaceForecast
    time_s: Reals  # (c,)
    power_w: Reals
    baseline: int  # Number of the configuration that slowdowns are over


def main() -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("place", type=Path, metavar="titanx.csv or DATASET")
    parser.add_argument("--max-slowdown", type=float, default=0.05)
    parser.add_argument("--choose-sample", action="store_true")
    parser.add_argument("--choose-level", action="store_true")
    options = parser.parse_args()
    if options.place.is_dir():
        for surfaces in machines_of(configured(dataset_named(str(options.place))), options.place.name):
            print(f"{' + '.join(surfaces.space.devices)}:")
            _print(surfaces, _left_out(surfaces), options.max_slowdown)
        return 0
    with options.place.open(encoding="utf-8") as lines:
        programs = {row["kernel"] for row in csv.DictReader(lines) if row["suite"] == "realbenchmarks"}
    surfaces = _surfaces(options.place)
    tested = surfaces.rows_of(sorted(programs))
    micro = surfaces.take(~tested)
    if options.choose_sample:
        errors = [[_text(each), f"{_error(micro, each):.4f}"] for each in _CANDIDATES]
        print(text_table(["second sample", "error of ln t"], errors))
        return 0
    samples = _number(surfaces, _DEFAULT), _number(surfaces, _SECOND)
    if options.choose_level:
        _print_levels(micro, list(_of_kinds(micro, samples)), options.max_slowdown)
        return 0
    cases = [
        case
        for model in _models()
        for case in _cases(
            surfaces, np.flatnonzero(tested), model.fit(micro, samples, 0), model.name, samples
        )
    ]
    found = _print(surfaces, cases, options.max_slowdown)
    saved, best, kept = found[DEFAULT_MODEL, "energy", options.max_slowdown]
    any_saved, any_best, _ = found[DEFAULT_MODEL, "energy", None]
    verdicts = [
        Verdict(f"energy: of what the oracle saves >= {_SHARE:.0%}", f"{part:.1%}", part >= _SHARE)
        for part in (any_saved / any_best, saved / best)
    ]
    verdicts.append(Verdict(f"limit kept >= {_KEPT:.0%}", f"{kept:.1%}", kept >= _KEPT))
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


def _models() -> list[ConfigurationModel]:
    return [model_named(DEFAULT_MODEL), NearestKernels(), PublishedModel()]


def _cases(
    surfaces: Surfaces,
    rows: Integers,
    model: ConfigurationPredictor,
    name: str,
    samples: tuple[int, ...],
) -> Iterator[Case]:
    for row in rows.tolist():
        forecast = model.forecast(surfaces.observed(row, samples))
        # Where it was not run, it cannot be said what a choice would have cost.
        time = np.where(surfaces.known[row], forecast.time.centre, np.nan)
        forecast = replace(forecast, time=replace(forecast.time, centre=time))
        yield Case(name, forecast, surfaces.time_s[row], surfaces.power_w[row], samples[0])


def _left_out(surfaces: Surfaces) -> list[Case]:
    """Each program left out in turn of the samples and models."""
    cases = list[Case]()
    for name in surfaces.applications:
        tested = surfaces.rows_of([name])
        training = surfaces.take(~tested)
        samples = two_samples(training, 0)
        rows = np.flatnonzero(tested & surfaces.known[:, list(samples)].all(axis=1))
        for model in _models():
            cases += _cases(surfaces, rows, model.fit(training, samples, 0), model.name, samples)
    return cases


def _chosen(case: Case, surfaces: Surfaces, objective: Objective, most: float | None) -> Reals:
    """Share saved by the choice and by the oracle, and whether the choice keeps to the limit."""
    found = choice_of(
        case.forecast, surfaces.space, NO_CAP, objective=objective, max_slowdown=most, baseline=case.baseline
    )
    assert found.recommended is not None
    place = surfaces.space.number_of(found.recommended.configuration)
    cost = 1 / merit(case.time_s, case.power_w, objective)
    limit = case.time_s[case.baseline] * (1 + (np.inf if most is None else most) + 1e-9)
    oracle = float(np.nanmin(np.where(case.time_s <= limit, cost, np.nan)))
    saved = 1 - np.array([cost[place], oracle]) / cost[case.baseline]
    return np.array([*saved, float(case.time_s[place] <= limit)])


def _print(
    surfaces: Surfaces, cases: Sequence[Case], most: float
) -> dict[tuple[str, Objective, float | None], list[float]]:
    """Print a table, and return for each method, objective and limit the means of `_chosen`."""
    found, table = {}, []
    for limit in (None, most):
        for objective in _OBJECTIVES:
            for method in dict.fromkeys(case.method for case in cases):
                own = [_chosen(each, surfaces, objective, limit) for each in cases if each.method == method]
                means = saved, best, kept = np.mean(own, axis=0).tolist()
                found[method, objective, limit] = means
                name = f"{objective}, {'any slowdown' if limit is None else f'at most {limit:.0%} slower'}"
                share = f"{saved / best:.0%}" if best > 0 else "-"
                table.append([name, method, f"{saved:.1%}", f"{best:.1%}", share, f"{kept:.0%}"])
    head = ["objective", "model", "saved", "oracle saves", "share", "limit kept"]
    print(text_table(head, table), end="\n\n")
    return found


def _print_levels(micro: Surfaces, cases: Sequence[Case], most: float) -> None:
    """What choices for microbenchmarks of other kinds save and keep, by probability and objective."""
    rows, chosen = [], choice.LIMIT_PROBABILITY
    try:
        for level in _LEVELS:
            choice.LIMIT_PROBABILITY = level
            for objective in _OBJECTIVES:
                found = np.array([_chosen(case, micro, objective, most) for case in cases])
                kept = int(found[:, 2].sum())
                at_least = beta.ppf(1 - _KEPT, kept, len(cases) - kept + 1)
                saved, best, _ = found.mean(axis=0).tolist()
                share = f"{saved / best:.0%}"
                rows.append([f"{level:.0%}", objective, share, f"{kept} of {len(cases)}", f"{at_least:.1%}"])
    finally:
        choice.LIMIT_PROBABILITY = chosen
    print(text_table(["probability", "objective", "share", "limit kept", "surely"], rows))


def _surfaces(file: Path) -> Surfaces:
    (machine,) = machines_of(configured(import_source("gpu-dvfs", file)), file.name, ["titanx"])
    return machine


def _number(surfaces: Surfaces, clocks: tuple[float, float]) -> int:
    same = np.isclose(surfaces.space.matrix, clocks).all(axis=1)
    return int(np.flatnonzero(same)[0])


def _text(clocks: tuple[float, float]) -> str:
    return f"{clocks[0] / 1e6:g} and {clocks[1] / 1e6:g} MHz"


def _of_kinds(micro: Surfaces, samples: tuple[int, ...]) -> Iterator[Case]:
    """Microbenchmarks by the default model, a third of their kinds left out at a time."""
    kinds = np.array(["".join(filter(str.isalpha, each.application.split("_")[0])) for each in micro.kernels])
    names = np.unique(kinds)
    part = dict(
        zip(names.tolist(), (np.random.default_rng(0).permutation(len(names)) % 3).tolist(), strict=True)
    )
    folds = np.array([part[kind] for kind in kinds.tolist()])
    for fold in range(3):
        model = model_named(DEFAULT_MODEL).fit(micro.take(folds != fold), samples, 0)
        yield from _cases(micro, np.flatnonzero(folds == fold), model, DEFAULT_MODEL, samples)


def _error(micro: Surfaces, second: tuple[float, float]) -> float:
    """Mean absolute error of logarithms of times of microbenchmarks, a third of their kinds left out."""
    cases = _of_kinds(micro, (_number(micro, _DEFAULT), _number(micro, second)))
    return float(np.mean([np.abs(np.log(case.forecast.time.centre / case.time_s)) for case in cases]))


if __name__ == "__main__":
    sys.exit(main())
