"""Score the variants that a forecast and a search choose, on devices on which all variants were measured.

The model is fitted without the kernel's application and without the device. Measurements of one search are
not known to another.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.data.dataset import Dataset
from crosscast.device import Device
from crosscast.errors import InputError, importing
from crosscast.evaluation import JSON_VERSION
from crosscast.prediction.time import ProfileBatch
from crosscast.prediction.time.datasets import TrainingTimes
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.prediction.time.launch_model import TrainedLaunchTimes
from crosscast.prediction.time.launch_times import LaunchModels
from crosscast.prediction.time.training_times import fit_launch_times
from crosscast.results import Tabular
from crosscast.tuning import Space, Variants, label_of, variants_of
from crosscast.tuning.profiling import Begin, Progress
from crosscast.tuning.ranking import PROFILES, Ranking, TermsModel, model_for, rank
from crosscast.tuning.search import Candidates, Search, Strategy

BUDGETS = (0, 1, 5, 10, 20, 50, 200)
"""Variants that are measured; of none, the variant that is forecast to be fastest is taken."""

_FIRST_STEPS, _AT_ONCE, _REPEATS = 25, 5, 5
_SHARE_OF_VARIANTS = 0.8
"""Of all variants, among which searches after the first one are repeated, to show how much they differ."""

_MOST_SEARCHED = 5000


@dataclass(frozen=True, eq=False)
class Measured:
    """Times of the variants of a kernel on devices."""

    application: str
    kernel: str
    variants: Variants
    devices: tuple[str, ...]
    time_s: Reals  # `(n, d)`; NaN where a variant did not run


def measured_of(dataset: Dataset) -> dict[str, Measured]:
    """Collect times by kernel from the records whose sizes are variants, such as ``A=1;B=2``.

    A kernel's name that several applications have follows theirs and a hyphen.
    """
    times: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for row in dataset.records.to_pylist():
        if "=" in (row["size"] or ""):
            cells = times.setdefault((row["application"], row["kernel"]), {})
            cells[row["size"], row["device"]] = float(np.median(row["time_s"]))
    kernels, applications = {}, Counter(kernel for _, kernel in times)
    for (application, kernel), cells in times.items():
        name = kernel if applications[kernel] == 1 else f"{application}-{kernel}"
        labels = list(dict.fromkeys(label for label, _ in cells))
        devices = tuple(sorted({device for _, device in cells}))
        time_s = np.array([[cells.get((each, device), np.nan) for device in devices] for each in labels])
        kernels[name] = Measured(application, name, variants_of(labels), devices, time_s)
    if not kernels:
        raise InputError.of(where="dataset", expected="times of variants, such as A=1;B=2", found="none")
    return kernels


@dataclass(frozen=True, eq=False)
class PerDevice:
    """A model for each device, fitted without it; together they predict as one."""

    models: Mapping[str, TermsModel]

    def predict(
        self, profiles: ProfileBatch, devices: Sequence[str | Device] | None = None, *, level: float = 0.9
    ) -> TimeForecast:
        """Predict times on each device by its model."""
        by_key = {device if isinstance(device, str) else device.key: device for device in devices or ()}
        parts = [self.models[key].predict(profiles, [device], level=level) for key, device in by_key.items()]
        centre, low, high = (
            np.concatenate([getattr(part, name) for part in parts], axis=1)
            for name in ("centre", "low", "high")
        )
        terms = [part.terms for part in parts if part.terms is not None]
        return replace(
            parts[0],
            devices=tuple(by_key),
            centre=centre,
            low=low,
            high=high,
            measured=None,
            warnings=(),
            terms=np.concatenate(terms, axis=1) if len(terms) == len(parts) else None,
        )


def held_out_model(training: TrainingTimes, application: str, device: str, base: Any) -> TrainedLaunchTimes:
    """Fit the model of launch times without an application and without a device."""
    applications, keys = training.labels("application"), training.labels("device")
    mask: Flags = (applications != application) & (keys != device)
    if not mask.any():
        raise InputError.of(where="training", expected=f"times without {application}", found="none")
    return TrainedLaunchTimes(base.card, LaunchModels(fit_launch_times(training.take(mask)), None))


@dataclass(frozen=True)
class OptimumShare:
    """The share of the optimum that a method reaches on a device after each number of runs."""

    kernel: str
    device: str
    method: str
    fraction: tuple[float, ...]  # For each of `BUDGETS`: the least time of all over that of the choice
    variants: int  # Number that ran on the device
    deviation: tuple[float, ...] | None = None  # Of one search from their mean; of Crosscast's alone


@dataclass(frozen=True, eq=False)
class TuningEvaluation(Tabular):
    """Scores of all methods on all kernels and devices."""

    scores: tuple[OptimumShare, ...]
    held_out: bool  # Whether the model saw neither the kernels nor the devices
    profiled: Mapping[str, int]  # Variants that were profiled, by kernel
    curves: Mapping[tuple[str, str], Reals]  # Crosscast's fraction after each run, by kernel and device
    rankings: Mapping[str, Ranking]
    measured: Mapping[str, Measured]

    def columns(self) -> Mapping[str, Sequence[object]]:
        """Return a row for each kernel, device and method."""
        return {
            **{
                name: [getattr(each, name) for each in self.scores] for name in ("kernel", "device", "method")
            },
            "variants": [each.variants for each in self.scores],
            **{f"after_{n}": [each.fraction[k] for each in self.scores] for k, n in enumerate(BUDGETS)},
        }

    def means(self) -> list[tuple[str, str, tuple[float, ...]]]:
        """Return means over devices, by kernel and method."""
        groups: dict[tuple[str, str], list[OptimumShare]] = {}
        for each in self.scores:
            groups.setdefault((each.kernel, each.method), []).append(each)
        return [
            (kernel, method, tuple(np.mean([score.fraction for score in scores], axis=0).tolist()))
            for (kernel, method), scores in groups.items()
        ]

    def deviations(self) -> tuple[float, ...]:
        """Return how far one search is from the mean of its repetitions, by budget."""
        squares = [np.square(each.deviation) for each in self.scores if each.deviation is not None]
        return tuple(np.sqrt(np.mean(squares, axis=0)).tolist())

    def to_dict(self) -> dict[str, object]:
        """Return the scores for JSON."""
        return {
            "version": JSON_VERSION,
            "question": "tune",
            "held_out": self.held_out,
            "profiled": dict(self.profiled),
            "budgets": list(BUDGETS),
            "results": [
                {
                    "kernel": each.kernel,
                    "device": each.device,
                    "method": each.method,
                    "variants": each.variants,
                    "fraction": [None if np.isnan(f) else f for f in each.fraction],
                    **({} if each.deviation is None else {"deviation": list(each.deviation)}),
                }
                for each in self.scores
            ],
        }


def evaluate_tuning(
    dataset: Dataset,
    spaces: Sequence[Space],
    *,
    training: TrainingTimes | None = None,
    model: str | Path | None = None,
    devices: Sequence[str] | None = None,
    profiles: int = PROFILES,
    strategies: Sequence[str] = (),
    progress: Progress = lambda state: None,
    begin: Begin = lambda variants, seconds: None,
    tell: Callable[[str], None] = lambda text: None,
) -> TuningEvaluation:
    """Choose variants on each device without its measurements, and score the choices.

    The model is fitted to the times of `training`, without the kernel's application and the device; by
    default the trained model forecasts, which may have been fitted to both. After the first of `_REPEATS`,
    Crosscast's searches are among 80 % of the variants, drawn at random. `tell` is called with the name of
    each step.
    """
    pairs = list(_paired(spaces, measured_of(dataset)))
    scores: list[OptimumShare] = []
    curves: dict[tuple[str, str], Reals] = {}
    rankings: dict[str, Ranking] = {}
    for space, measured in pairs:
        keys = [key for key in measured.devices if devices is None or key in devices]
        if not keys:
            continue
        base, described = model_for(model, keys)
        models: dict[str, TermsModel] = dict.fromkeys(keys, base)
        if training is not None:
            for key in keys:
                tell(f"{measured.kernel}: the model without {measured.application} and {key}")
                models[key] = held_out_model(training, measured.application, key, base)
        ranking = rank(
            space,
            described,
            PerDevice(models),
            profiles=profiles,
            variants=measured.variants,
            progress=progress,
            begin=begin,
        )
        rankings[measured.kernel] = ranking
        for key in keys:
            tell(f"{measured.kernel}: searches on {key}")
            shares, curves[measured.kernel, key] = _methods(ranking, measured, key, strategies)
            scores += shares
    if not scores:
        raise InputError.of(where="devices", expected="some that the dataset has", found="none")
    profiled = {kernel: int(ranking.profiled.sum()) for kernel, ranking in rankings.items()}
    return TuningEvaluation(
        tuple(scores), training is not None, profiled, curves, rankings, {m.kernel: m for _, m in pairs}
    )


def _paired(spaces: Sequence[Space], kernels: Mapping[str, Measured]) -> Iterator[tuple[Space, Measured]]:
    """Pair each space with the times of its kernel."""
    for space in spaces:
        names = [Path(space.where).stem, space.kernel]
        matches = [measured for name, measured in kernels.items() if name in names]
        matches = matches or [
            measured for measured in kernels.values() if set(measured.variants.names) == set(space.parameters)
        ]
        if len(matches) != 1:
            expected = f"the name of one kernel of the dataset ({', '.join(kernels)}) as the file's"
            raise InputError.of(where=space.where, expected=expected, found=names[0])
        unknown = set(space.parameters) - set(matches[0].variants.names)
        if unknown:
            raise InputError.of(
                where=space.where,
                field="parameters",
                expected=f"those of the dataset ({', '.join(matches[0].variants.names)})",
                found=sorted(unknown)[0],
            )
        yield space, matches[0]


def _methods(
    ranking: Ranking, measured: Measured, key: str, strategies: Sequence[str]
) -> tuple[list[OptimumShare], Reals]:
    """Score each method on a device; return the scores, and Crosscast's mean fraction after each run."""
    labels = {label: row for row, label in enumerate(measured.variants.labels)}
    rows = np.array([labels[label] for label in ranking.variants.labels])
    time_s = measured.time_s[rows, measured.devices.index(key)]
    ran = np.flatnonzero(np.isfinite(time_s))
    least = float(time_s[ran].min())
    forecast = ranking.candidates(key).take(ran)
    without_forecast = replace(
        forecast,
        log_time=np.full(len(ran), float(np.log(np.median(time_s[ran])))),
        deviation=np.full(len(ran), 0.7),
        shares=np.zeros((len(ran), 0)),
    )
    shares = []

    def add(method: str, fractions: Reals, *, repeated: bool = False) -> None:
        deviation = tuple(np.std(fractions, axis=0).tolist()) if repeated else None
        mean = tuple(np.mean(fractions, axis=0).tolist())
        shares.append(OptimumShare(measured.kernel, key, method, mean, len(ran), deviation))

    curves = _repeated(forecast, time_s[ran], from_forecast=True)
    searches = _with_runs(curves)
    searches[:, 0] = searches[:, 1]  # Of no runs, the variant that would be measured first
    add("crosscast", searches, repeated=True)
    others = _repeated(without_forecast, time_s[ran], from_forecast=False)
    add("search without a forecast", _with_runs(others))
    add("random", np.array([[np.nan, *(expected_of_random(time_s[ran], n) for n in BUDGETS[1:])]]))
    fractions = []
    for column, other in enumerate(measured.devices):
        other_time_s = np.where(np.isfinite(time_s), measured.time_s[rows, column], np.nan)
        if other != key and np.isfinite(other_time_s).any():
            fractions.append(float(least / time_s[int(np.nanargmin(other_time_s))]))
    if fractions:
        add("best of another device", np.array([[np.mean(fractions), *(np.nan,) * (len(BUDGETS) - 1)]]))
    for strategy in strategies:
        variants = ranking.variants.take(ran)
        simulations = [
            least / simulated(variants, time_s[ran], strategy, max(BUDGETS), seed) for seed in range(_REPEATS)
        ]
        add(f"Kernel Tuner's {strategy}", _with_runs(simulations))
    length = min(map(len, curves))
    return shares, np.mean([curve[:length] for curve in curves], axis=0)


def _repeated(candidates: Candidates, time_s: Reals, *, from_forecast: bool) -> list[Reals]:
    """Return the fractions of the optimum after each run of several searches."""
    rng = np.random.default_rng(0)
    n = len(candidates)
    fractions = []
    for number in range(_REPEATS):
        count = n if number == 0 else math.ceil(_SHARE_OF_VARIANTS * n)
        rows = np.sort(rng.permutation(n)[:count])
        first = None if from_forecast else number
        least = searched(candidates.take(rows), time_s[rows], max(BUDGETS), first)
        fractions.append(time_s[rows].min() / least)
    return fractions


def _with_runs(curves: Sequence[Reals]) -> Reals:
    """Return fractions by budget of curves, ``(len(curves), len(BUDGETS))``; NaN without a run."""
    return np.array([[np.nan, *(curve[min(n, len(curve)) - 1] for n in BUDGETS[1:])] for curve in curves])


def searched(candidates: Candidates, time_s: Reals, runs: int, seed: int | None = None) -> Reals:
    """Return the least time in seconds after each run of a search that looks up its measurements.

    If a seed is given, the first variant is drawn at random.
    """
    # A large space is searched among its fastest forecasts, or among random variants without a forecast.
    rng = np.random.default_rng(0 if seed is None else seed)
    order = rng.permutation(len(candidates)) if seed is not None else np.argsort(candidates.log_time)
    rows = np.sort(order[:_MOST_SEARCHED])
    candidates, time_s = candidates.take(rows), time_s[rows]
    search = Search(candidates)
    least: list[float] = []
    if seed is not None:
        first = int(rng.integers(len(candidates)))
        search.add({first: float(time_s[first])})
        least.append(float(time_s[first]))
    while search.done < len(candidates) and len(least) < runs:
        for row in search.next(1 if len(least) < _FIRST_STEPS else _AT_ONCE).tolist():
            search.add({row: float(time_s[row])})
            least.append(min(float(time_s[row]), least[-1] if least else np.inf))
    return np.array(least or [np.inf])


def expected_of_random(time_s: Reals, runs: int) -> float:
    """Return the expected share of the optimum that the best of `runs` different random variants reaches."""
    ordered = np.sort(time_s)
    n = len(ordered)
    runs = min(runs, n)
    # The best is the k-th if all others are slower than it.
    slower = np.arange(n - 1, runs - 1, -1, dtype=np.float64)
    weights = np.cumprod([runs / n, *((slower - runs + 1) / slower)])
    return float((weights * ordered[0] / ordered[: len(weights)]).sum())


def simulated(variants: Variants, time_s: Reals, strategy: str | Strategy, runs: int, seed: int) -> Reals:
    """Return the least time after each run of a strategy of Kernel Tuner, in its simulation mode.

    A variant that a strategy chooses again is not another run, as Kernel Tuner counts runs.
    """
    with importing("tune", "Kernel Tuner"):
        import kernel_tuner

    known = dict(zip(variants.labels, time_s.tolist(), strict=True))
    names = variants.names

    def is_known(variant: Any) -> bool:
        return label_of({name: variant[name] for name in names}) in known

    # Kernel Tuner prints its steps, and warns that the simulated kernel has no arguments.
    quiet = contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore")
    with _cache(variants, time_s) as cache, _seeded(seed), quiet[0], quiet[1]:
        results, _ = kernel_tuner.tune_kernel(
            "kernel",
            "void kernel() {}",
            (1,),
            [],
            {name: list(values) for name, values in zip(names, variants.values, strict=True)},
            restrictions=is_known,
            strategy=strategy,
            strategy_options={"max_fevals": min(runs, len(variants))},
            simulation_mode=True,
            cache=str(cache),
            block_size_names=[],
            verbose=False,
            quiet=True,
            lang="C",
        )
    times_ms = {label_of({name: each[name] for name in names}): each["time"] for each in results}
    times = [1e-3 * each for each in times_ms.values() if isinstance(each, int | float)]
    return np.minimum.accumulate(np.array(times[:runs], dtype=np.float64))


@contextlib.contextmanager
def _cache(variants: Variants, time_s: Reals) -> Iterator[Path]:
    """Write known times to a temporary cache file of Kernel Tuner."""
    entries = {}
    for row, seconds in enumerate(time_s.tolist()):
        variant = dict(variants[row])
        milliseconds = 1e3 * seconds
        entries[",".join(map(str, variant.values()))] = {
            **variant,
            "time": milliseconds,
            "times": [milliseconds],
            **{
                f"{what}_time": 0
                for what in ("compile", "verification", "benchmark", "strategy", "framework")
            },
            "timestamp": "2024-01-01 00:00:00+00:00",
        }
    content = {
        "device_name": "known times",
        "kernel_name": "kernel",
        "problem_size": [1],
        "tune_params_keys": list(variants.names),
        "tune_params": {name: list(v) for name, v in zip(variants.names, variants.values, strict=True)},
        "objective": "time",
        "cache": entries,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cache.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        yield path


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global random generators, from which Kernel Tuner draws, and restore them afterwards."""
    before = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
