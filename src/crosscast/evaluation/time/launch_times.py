"""Evaluate and train the model of launch times, with sources, applications and devices held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Unpack

import numpy as np

from crosscast.arrays import Arrays, Flags, Reals
from crosscast.data.times import LaunchTables
from crosscast.errors import InputError
from crosscast.evaluation import JSON_VERSION
from crosscast.evaluation.loop import Fold, RunArguments, folds_by_group, run_tasks
from crosscast.prediction.intervals import check_level
from crosscast.prediction.time.card import Range, TimeCard
from crosscast.prediction.time.datasets import TrainingTimes, read_training
from crosscast.prediction.time.launch_model import MODEL, TrainedLaunchTimes
from crosscast.prediction.time.launch_times import LaunchModels, LaunchTimes, limits
from crosscast.prediction.time.training_times import cells_of_launches, fit_launch_times, forecasts_of
from crosscast.results import Tabular, columns_of

FOLDS: Mapping[str, str] = {
    "leave-application-out": "application",
    "leave-source-out": "source",
    "leave-device-out": "device",
}
"""Names of folds, and the labels by which they group times."""

_SOURCES = ("prediction", "devices")
_KINDS = {"gpu": "GPU", "cpu": "CPU"}


class Outside(NamedTuple):
    """Forecasts of ``c`` cells by models whose training lacked them."""

    log_error: Reals  # Predicted less measured; NaN where no training data remained
    low: Reals  # Limits of the intervals over the predicted time
    high: Reals
    inside: Flags


def forecast_cells(part: TrainingTimes, fitted: LaunchTimes, level: float) -> Outside:
    """Forecasts of cells that a model was not fitted to."""
    log_time, deviation, _ = forecasts_of(part, fitted)
    clipped = limits(np.exp(log_time), deviation, fitted.doubt.factor(level), part.least, part.most)
    middle, least, most = map(np.log, clipped)
    measured = part.times.log_time
    return Outside(middle - measured, least - middle, most - middle, (least <= measured) & (measured <= most))


@dataclass(frozen=True, eq=False)
class _LaunchTask:
    """A fit without some cells, and forecasts of these."""

    fold: Fold
    level: float

    @property
    def label(self) -> str:
        return f"{MODEL}, {self.fold.held_out} held out"

    @property
    def kind(self) -> str:
        return MODEL

    @property
    def cache_keys(self) -> list[object]:
        return [{"model": MODEL, "away": self.fold.test.tolist(), "level": self.level}]

    def run(self, data: TrainingTimes, queries: Sequence[int]) -> list[Arrays]:
        held = np.isin(np.arange(len(data.rows)), self.fold.test)
        rest, part = data.take(~held), data.take(held)
        of_devices = bool({row.device for row in part.rows} - {row.device for row in rest.rows})
        fitted = fit_launch_times(rest, of_devices=of_devices)
        return [{**forecast_cells(part, fitted, self.level)._asdict()}]

    def is_valid(self, data: TrainingTimes, query: int, arrays: Arrays) -> bool:
        shape = self.fold.test.shape
        return set(arrays) == set(Outside._fields) and all(each.shape == shape for each in arrays.values())


def forecast_held_out(
    training: TrainingTimes, folds: Sequence[Fold], level: float, **run: Unpack[RunArguments]
) -> Outside:
    """Forecast the cells of each fold by a model of the others; factors and intervals are fitted within."""
    error, low, high = np.full((3, len(training.rows)), np.nan)
    outside = Outside(error, low, high, np.zeros(len(training.rows), dtype=np.bool_))
    tasks = [_LaunchTask(fold, level) for fold in folds]
    for fold, (answer,) in zip(folds, run_tasks(tasks, training, sources=_SOURCES, **run), strict=True):
        for name, values in answer.items():
            getattr(outside, name)[fold.test] = values
    return outside


def _folds(training: TrainingTimes, name: str) -> tuple[Fold, ...]:
    """Hold out each source, application or device in turn."""
    by = FOLDS[name]
    return folds_by_group(name, f"{by}s", training.labels(by).tolist())


def scores(training: TrainingTimes, outside: Outside, rows: Flags) -> dict[str, float]:
    """Scores of some forecasts: errors, coverage, width, and the slowdown on the recommended device."""
    rows = rows & np.isfinite(outside.log_error)
    error, inside = outside.log_error[rows], outside.inside[rows]
    errors = np.abs(np.expm1(error))
    by_application = np.unique(training.labels("application")[rows], return_inverse=True)[1]
    parts = [by_application == number for number in range(int(by_application.max()) + 1)]
    covered = [inside[part].mean() for part in parts]
    values = {
        "bias": float(np.exp(error.mean())),
        "rmse_log": float(np.sqrt((error**2).mean())),
        "median_ape": float(np.median(errors)),
        "median_ape_by_application": float(np.mean([np.median(errors[part]) for part in parts])),
        "coverage": float(np.mean(covered)),
        "coverage_worst_application": float(min(covered)),
        "width": float(np.exp(np.median(outside.high[rows] - outside.low[rows]))),
    }
    slowdowns = _slowdowns(training, outside, rows)
    return values | ({"slowdown_mean": float(np.mean(slowdowns))} if slowdowns else {})


_DEVICES_TO_CHOOSE = 5


def _slowdowns(training: TrainingTimes, outside: Outside, rows: Flags) -> list[float]:
    """Time on the device with the least forecast over the least time, of launches on several devices."""
    slowdowns = []
    for cells in cells_of_launches(training, rows):
        if len(cells) >= _DEVICES_TO_CHOOSE:
            measured = training.times.log_time[cells]
            recommended = int(np.argmin(measured + outside.log_error[cells]))
            slowdowns.append(float(np.exp(measured[recommended] - measured.min())))
    return slowdowns


@dataclass(frozen=True, eq=False)
class LaunchEvaluation(Tabular):
    """Forecasts of held-out times; scores by source, application and device."""

    label: str  # Of the tables
    training: TrainingTimes  # Times that folds split
    folds: str  # Their name
    level: float
    outside: Outside

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of times, kernels, applications, sources and devices."""
        rows = self.training.rows
        return {
            "cells": len(rows),
            "kernels_at_a_size": len({row.cell for row in rows}),
            "applications": len({row.application for row in rows}),
            "sources": len({row.source for row in rows}),
            "devices": len({row.device for row in rows}),
        }

    @property
    def shared_kernels(self) -> dict[str, list[str]]:
        """Kernels that several sources timed, with these; without one source, others' times remain."""
        sources: dict[str, set[str]] = {}
        for row in self.training.rows:
            sources.setdefault(f"{row.application}/{row.kernel}", set()).add(row.source)
        return {kernel: sorted(names) for kernel, names in sorted(sources.items()) if len(names) > 1}

    def results(self) -> list[dict[str, object]]:
        """Scores of all times, of each source on each kind of device, and of each group held out."""
        training = self.training
        kind_of = np.array([_KINDS.get(device.type, device.type) for device in training.devices])
        source, kinds = training.labels("source"), kind_of[training.times.device]
        all_rows = np.ones(len(kinds), dtype=np.bool_)
        rows = [self._scored({"source": None, "kind": None}, all_rows)]
        for name in np.unique(source).tolist():
            rows.append(self._scored({"source": name, "kind": None}, source == name))
            of_source = np.unique(kinds[source == name]).tolist()
            for kind in of_source if len(of_source) > 1 else ():
                rows.append(self._scored({"source": name, "kind": kind}, (source == name) & (kinds == kind)))
        return [row for row in rows if row["cells"]]

    def groups(self, by: str) -> list[dict[str, object]]:
        """Scores of each ``application`` or ``device`` alone."""
        labels = self.training.labels(by)
        rows = [self._scored({by: name}, labels == name) for name in np.unique(labels).tolist()]
        return [row for row in rows if row["cells"]]

    def columns(self) -> Mapping[str, Sequence[object]]:
        """The scores, a row for each source."""
        return columns_of(self.results())

    def to_dict(self) -> dict[str, object]:
        """All scores, for JSON."""
        return {
            "version": JSON_VERSION,
            "dataset": self.label,
            "question": "time",
            "model": MODEL,
            "folds": self.folds,
            "level": self.level,
            "counts": self.counts,
            "results": self.results(),
            "applications": self.groups("application"),
            "devices": self.groups("device"),
            "shared_kernels": self.shared_kernels,
        }

    def _scored(self, names: dict[str, object], rows: Flags) -> dict[str, object]:
        counted = rows & np.isfinite(self.outside.log_error)
        row: dict[str, object] = {**names, "cells": int(counted.sum())}
        if not row["cells"]:
            return row
        inside = float(self.outside.inside[counted].mean())
        return row | scores(self.training, self.outside, counted) | {"coverage_over_cells": inside}


def evaluate_launch_times(
    tables: LaunchTables, folds: str, *, level: float = 0.9, **run: Unpack[RunArguments]
) -> LaunchEvaluation:
    """Hold out each source, application or device in turn; nothing is random."""
    check_level(level)
    if folds not in FOLDS:
        expected = f"one of {', '.join(FOLDS)} for times of launches"
        raise InputError.of(where="folds", expected=expected, found=repr(folds))
    training = read_training(tables)
    outside = forecast_held_out(training, _folds(training, folds), level, **run)
    return LaunchEvaluation(tables.label, training, folds, level, outside)


def train_launch_times(
    tables: LaunchTables, *, level: float = 0.9, **run: Unpack[RunArguments]
) -> TrainedLaunchTimes:
    """Fit the model, and evaluate it with each application and each source held out in turn."""
    check_level(level)
    training, estimated = (read_training(tables, counted=counted) for counted in (True, False))
    of_applications = _folds(training, "leave-application-out")
    # A machine that tables describe beside devices of the catalogue is nobody else's.
    listed = [device for device in training.devices if device.key not in tables.devices] or training.devices
    fitted = LaunchModels(fit_launch_times(training), fit_launch_times(estimated))
    sound = ~training.noted & np.isin(training.labels("device"), [device.key for device in listed])
    source = training.labels("source")
    names = np.unique(source).tolist()
    of_sources = _folds(training, "leave-source-out") if len(names) > 1 else ()
    without_application, by_metrics, without_source = (
        forecast_held_out(data, folds, level, **run)
        for data, folds in ((training, of_applications), (estimated, of_applications), (training, of_sources))
    )
    result: dict[str, object] = {"model": MODEL, "folds": "leave-application-out", "probes": 0}
    result |= scores(training, without_application, sound)
    # One source has most of the cells, and they are easy.
    result["median_ape"] = result["median_ape_by_application"]
    times, applications = np.exp(training.times.log_time), np.unique(training.labels("application")).tolist()
    card = TimeCard(
        model=MODEL,
        seed=0,
        training={
            "dataset": " and ".join(names),
            "origin": "times of launches, each with its profile",
            "cells": len(times),
            "kernels_at_a_size": len({row.cell for row in training.rows}),
            "kernels": len({row.cell[:2] for row in training.rows}),
            "applications": len(applications),
            "devices": len(training.devices),
            "names": applications,
            "records": len(times),
        },
        toolchains=training.toolchains,
        devices=tuple(listed),
        metrics=(),
        time_s=Range(float(times.min()), float(times.max())),
        errors={
            "folds": "leave-application-out",
            "seed": 0,
            "level": level,
            "results": [result],
            "sources_held_out": {
                name: scores(training, without_source, source == name) for name in names if of_sources
            },
            "metrics_alone": scores(estimated, by_metrics, sound),
        },
    )
    return TrainedLaunchTimes(card, fitted)
