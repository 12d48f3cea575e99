"""What is known of a device, or of a kernel on another device, and what that is worth to forecasts of times.

``python -m benchmarks.device_knowledge TABLES`` prints two tables of errors.

- Each device of the tables is held out of the model, and its times are predicted by its data sheet alone,
  with what holds for its architecture, and with its measured rates as well.
- Each application is held out, and its times are predicted with none of them known, and with that on one
  other device, each in turn, by what the two devices have in common.

It takes a quarter of an hour.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.table import text_table
from crosscast.arrays import Flags, Reals
from crosscast.data.times import LaunchTables, read_launch_tables
from crosscast.device import Device
from crosscast.devices.catalogue import device_named
from crosscast.evaluation.time.launch_times import Outside, forecast_cells, scores
from crosscast.prediction.time.datasets import TrainingTimes, read_training
from crosscast.prediction.time.launch_times import IN_COMMON, DeviceErrors, LaunchTimes, in_common
from crosscast.prediction.time.training_times import cells_of_launches, fit_launch_times, forecasts_of

LEVEL = 0.9

KNOWLEDGE: Mapping[str, Callable[[Device], Device]] = {
    "data sheet": lambda device: replace(device, series="", measured={}),
    "and architecture": lambda device: replace(device, measured={}),
    "and measured rates": lambda device: device,
}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device_knowledge", description=__doc__)
    parser.add_argument("tables", type=Path, help="folder of launch times with their profiles")
    tables = read_launch_tables(parser.parse_args().tables)
    trained = read_training(tables)
    print(_by_facts(tables, trained), _by_probe(trained), sep="\n\n")


def _folds(trained: TrainingTimes, by: str) -> Iterator[Flags]:
    labels = trained.labels(by)
    names = sorted(set(labels.tolist()))
    for number, name in enumerate(names, 1):
        print(f"{by} {name}, {number} of {len(names)}", file=sys.stderr)
        yield labels == name


def _by_facts(tables: LaunchTables, trained: TrainingTimes) -> str:
    variants = [read_training(_described(tables, change)) for change in KNOWLEDGE.values()]
    parts: list[list[Outside]] = [[] for _ in variants]
    order = []
    for held in _folds(trained, "device"):
        fitted = fit_launch_times(trained.take(~held))
        order.append(np.flatnonzero(held))
        for forecasts, variant in zip(parts, variants, strict=True):
            forecasts.append(forecast_cells(variant.take(held), fitted, LEVEL))
    cells = np.argsort(np.concatenate(order))
    joined = [Outside(*(np.concatenate(each)[cells] for each in zip(*part, strict=True))) for part in parts]
    head = [f"{what}, {name}" for what in ("error", "RMSE", "inside") for name in KNOWLEDGE]
    return text_table(["times of", "cells", *head], _rows(trained, joined))


def _described(tables: LaunchTables, change: Callable[[Device], Device]) -> LaunchTables:
    keys = {row.device for row in tables.times}
    devices = {key: tables.devices.get(key) or device_named(key) for key in keys}
    return replace(tables, devices={key: change(device) for key, device in devices.items()})


def _rows(trained: TrainingTimes, forecasts: Sequence[Outside]) -> list[list[str]]:
    """Scores of each source's times on each kind of device."""
    source = trained.labels("source")
    kind = np.array([device.kind for device in trained.devices])[trained.times.device]
    rows = []
    for name, of_kind in sorted(set(zip(source.tolist(), kind.tolist(), strict=True))):
        cells = (source == name) & (kind == of_kind)
        found = [scores(trained, each, cells) for each in forecasts]
        errors = [f"{each['median_ape']:.0%}" for each in found]
        spread = [f"{each['rmse_log']:.2f}" for each in found]
        inside = [f"{each.inside[cells].mean():.0%}" for each in forecasts]
        rows.append([f"{name}, {of_kind}", str(cells.sum()), *errors, *spread, *inside])
    return rows


def _by_probe(trained: TrainingTimes) -> str:
    errors: dict[tuple[str, int], list[Reals]] = {}
    for held in _folds(trained, "application"):
        part = trained.take(held)
        for source, common, pair in _pairs(part, fit_launch_times(trained.take(~held), of_devices=False)):
            errors.setdefault((source, common), []).append(pair)
    rows = []
    for (source, common), pairs in sorted(errors.items()):
        before, after, width_before, width_after = np.array(pairs).T
        row = [f"{source}, {IN_COMMON[common]}", str(len(pairs))]
        row += [f"{np.median(np.abs(np.expm1(each))):.0%}" for each in (before, after)]
        row += [f"{np.sqrt(np.mean(each**2)):.2f}" for each in (before, after)]
        row += [
            f"{np.mean(np.abs(error) <= width):.0%}"
            for error, width in ((before, width_before), (after, width_after))
        ]
        rows.append(row)
    head = [f"{what}, {name}" for what in ("error", "RMSE", "inside") for name in ("none known", "one")]
    return text_table(["times of, the same", "pairs", *head], rows)


def _pairs(part: TrainingTimes, fitted: LaunchTimes) -> Iterator[tuple[str, int, Reals]]:
    """For each time, and another known: source, what the devices have in common, errors, half widths."""
    log_time, deviation, shared = forecasts_of(part, fitted)
    measured_less = part.times.log_time - log_time
    common = in_common(part.devices)
    factor = fitted.doubt.factor(LEVEL)
    for cells in cells_of_launches(part, ~part.noted):
        columns = part.times.device[cells]
        of_pairs = common[np.ix_(columns, columns)]
        for known in range(len(cells)):
            error = np.where(np.arange(len(cells)) == known, measured_less[cells], np.nan)
            keys = tuple(part.rows[cell].device for cell in cells)
            errors = DeviceErrors(
                keys, deviation[None, cells], shared[None, cells], fitted.together[of_pairs], error[None]
            )
            moved, left = errors.conditioned(np.zeros((1, len(cells))))
            for other in np.flatnonzero(np.arange(len(cells)) != known).tolist():
                before = measured_less[cells[other]]
                after = before - moved[0, other]
                widths = factor * deviation[cells[other]], factor * left[0, other]
                yield (
                    part.rows[cells[0]].source,
                    int(of_pairs[known, other]),
                    np.array([-before, -after, *widths]),
                )


if __name__ == "__main__":
    main()
