"""Evaluate the model of launch times on held-out sources, applications and devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import numpy as np

from crosscast.arrays import Arrays, Flags
from crosscast.data.times import LaunchTables
from crosscast.errors import InputError
from crosscast.evaluation.loop import Fold, RunArguments, folds_by_group, run_tasks
from crosscast.prediction.intervals import check_level
from crosscast.prediction.time.launch_model import MODEL, TrainedLaunchTimes
from crosscast.prediction.time.training_times import (
    HeldOut,
    Outside,
    TrainingTimes,
    evaluate,
    forecast_held_out,
    read_training,
    scores,
    train_launch_times,
)
from crosscast.results import Tabular

FOLDS: Mapping[str, str] = {
    "leave-application-out": "application",
    "leave-source-out": "source",
    "leave-device-out": "device",
}
"""Names of folds, and the labels by which they group times."""

_SOURCES = ("prediction/time", "devices")
_KINDS = {"gpu": "GPU", "cpu": "CPU"}
_ARRAYS = ("log_error", "low", "high", "inside")


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
        training = self.training
        launches = zip(training.application, training.kernel, training.launch, strict=True)
        return {
            "cells": len(training.key),
            "kernels_at_a_size": len(set(launches)),
            "applications": len(set(training.application)),
            "sources": len(set(training.source)),
            "devices": len(set(training.key)),
        }

    @property
    def shared_kernels(self) -> dict[str, list[str]]:
        """Kernels that several sources timed, with these; without one source, others' times remain."""
        sources: dict[str, set[str]] = {}
        labels = zip(self.training.application, self.training.kernel, self.training.source, strict=True)
        for application, kernel, source in labels:
            sources.setdefault(f"{application}/{kernel}", set()).add(source)
        return {kernel: sorted(names) for kernel, names in sorted(sources.items()) if len(names) > 1}

    def results(self) -> list[dict[str, object]]:
        """Scores of all times, of each source on each kind of device, and of each group held out."""
        training = self.training
        kind_of = np.array([_KINDS.get(device.type, device.type) for device in training.devices])
        source, kinds = training.labels("source"), kind_of[training.times.device]
        all_rows = np.ones(len(kinds), dtype=np.bool_)
        rows = [self._scored({"source": None, "kind": None}, all_rows)]
        for name in sorted(set(training.source)):
            rows.append(self._scored({"source": name, "kind": None}, source == name))
            of_source = sorted(set(kinds[source == name].tolist()))
            for kind in of_source if len(of_source) > 1 else ():
                rows.append(self._scored({"source": name, "kind": kind}, (source == name) & (kinds == kind)))
        return [row for row in rows if row["cells"]]

    def groups(self, by: str) -> list[dict[str, object]]:
        """Scores of each ``application`` or ``device`` alone."""
        labels = self.training.labels(by)
        rows = [self._scored({by: name}, labels == name) for name in sorted(set(labels.tolist()))]
        return [row for row in rows if row["cells"]]

    def columns(self) -> Mapping[str, Sequence[object]]:
        """The scores, a row for each source."""
        rows = self.results()
        return {name: [row.get(name) for row in rows] for name in rows[0]}

    def to_dict(self) -> dict[str, object]:
        """All scores, for JSON."""
        return {
            "dataset": self.label,
            "model": MODEL,
            "protocol": self.folds,
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
        held = np.zeros(len(data.key), dtype=np.bool_)
        held[self.fold.test] = True
        return [forecast_held_out(data, held, self.level) for _ in queries]

    def is_valid(self, data: TrainingTimes, query: int, arrays: Arrays) -> bool:
        shape = self.fold.test.shape
        return set(arrays) == set(_ARRAYS) and all(array.shape == shape for array in arrays.values())


def _run(run: RunArguments, training: TrainingTimes, folds: Sequence[HeldOut], level: float) -> list[Arrays]:
    tasks = [_LaunchTask(Fold.of(name, held), level) for name, held in folds]
    return [answers[0] for answers in run_tasks(tasks, training, sources=_SOURCES, **run)]


def evaluate_launch_times(
    tables: LaunchTables, folds: str, *, level: float = 0.9, seed: int = 0, **run: Unpack[RunArguments]
) -> LaunchEvaluation:
    """Hold out each source, application or device in turn."""
    del seed  # Nothing is random.
    check_level(level)
    if folds not in FOLDS:
        expected = f"one of {', '.join(FOLDS)} for times of launches"
        raise InputError.of(where="folds", expected=expected, found=repr(folds))
    training, by = read_training(tables), FOLDS[folds]
    folds_by_group(folds, f"{by}s", training.labels(by).tolist())
    return LaunchEvaluation(
        tables.label, training, folds, level, evaluate(training, by, level, partial(_run, run))
    )


def train_terms(
    tables: LaunchTables, *, level: float = 0.9, seed: int = 0, **run: Unpack[RunArguments]
) -> TrainedLaunchTimes:
    """Fit the model, and evaluate it with each application and each source held out in turn."""
    del seed
    check_level(level)
    names = [row.application for row in tables.times]
    folds_by_group("leave-application-out", "applications", names)
    return train_launch_times(tables, level, partial(_run, run))
