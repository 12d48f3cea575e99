"""What it is worth to know a device: errors of held-out devices by what is known of them.

``python -m benchmarks.device_knowledge TABLES`` reads the tables of `benchmarks.training_profiles`, holds
each device out in turn with all that is fitted, and prints how far its times are from those forecast: by its
data sheet alone (units of an average GPU, no factor by architecture), with what its architecture holds, and
with what was measured: the share of the bandwidth that it or its siblings reach, and launches.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.devices import architectures
from crosscast.devices.architectures import sheets_of
from crosscast.devices.catalogue import device_named
from crosscast.errors import CrosscastError
from crosscast.prediction.time import training_times
from crosscast.prediction.time.correction import no_correction
from crosscast.prediction.time.terms import TERMS
from crosscast.prediction.time.training_times import TrainingTimes, held_out, read_training

# What a GPU reaches of its bandwidth, and what a launch takes, where the factors' expectations are right.
_READ, _LAUNCH_S = 0.85, 6e-6


def by_sheet_alone(tables: Path, training: TrainingTimes) -> TrainingTimes:
    """The same times, with devices that have no architecture."""
    plain = {
        device.key: replace(
            device,
            series="",
            numbers={k: v for k, v in device.numbers.items() if k != "peak_fp64_flop_per_s"},
        )
        for device in map(device_named, sorted(set(training.key)))
    }
    with (
        patch.object(architectures, "_UNITS", {}),
        patch.object(architectures, "_BY_VENDOR", {}),
        patch.object(training_times, "device_named", plain.__getitem__),
    ):
        return read_training(tables)


def with_facts(training: TrainingTimes, *facts: str) -> TrainingTimes:
    """The same times, with terms at the rates that were measured on the GPUs or their siblings."""
    sheets = sheets_of(training.devices)
    factors: Mapping[str, tuple[str, Reals]] = {
        "read": ("memory", _READ / sheets.fact("read")),
        "launch_s": ("launch", np.sqrt(sheets.fact("launch_s") / _LAUNCH_S)),
    }
    seconds = training.times.seconds.copy()
    for fact in facts:
        term, factor = factors[fact]
        of_device = np.where(sheets.gpu & np.isfinite(factor), factor, 1.0)
        seconds[:, TERMS.index(term)] *= of_device[training.times.device[training.times.cell]]
    return replace(training, times=replace(training.times, seconds=seconds))


def errors_of(training: TrainingTimes) -> Reals:
    """Logarithms of forecast over measured, each device held out."""
    errors, _, _ = held_out(training, training.labels("device"), no_correction())
    centre = training.times.log_time - errors
    with np.errstate(divide="ignore"):
        cut: Reals = np.clip(centre, np.log(training.least), np.log(training.most)) - training.times.log_time
    return cut


def main() -> int:
    """Print the table, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device_knowledge", description=__doc__)
    parser.add_argument("tables", type=Path, help="folder of benchmarks.training_profiles")
    options = parser.parse_args()
    try:
        training = read_training(options.tables)
        variants = {
            "data sheet alone": by_sheet_alone(options.tables, training),
            "and architecture": training,
            "and bandwidth measured": with_facts(training, "read"),
            "and launches measured": with_facts(training, "read", "launch_s"),
        }
    except CrosscastError as error:
        print(f"device_knowledge: {error}", file=sys.stderr)
        return 2
    gpus = {device.key for device in training.devices if device.type == "gpu"}
    gpu = np.array([key in gpus for key in training.key])
    source = training.labels("source")
    groups = {"all": np.ones(len(gpu), np.bool_), "GPUs": gpu}
    groups |= {name: gpu & (source == name) for name in sorted(set(source.tolist()))}
    print(f"{len(gpu)} times on {len(training.devices)} devices; median error, RMSE of the logarithm")
    print(f"{'known':24}" + "".join(f"{name:>18}" for name in groups))
    for label, variant in variants.items():
        errors = errors_of(variant)
        print(f"{label:24}" + "".join(f"{_score(errors, rows):>18}" for rows in groups.values()))
    return 0


def _score(errors: Reals, rows: Flags) -> str:
    of = errors[rows & np.isfinite(errors)]
    return f"{100 * np.median(np.abs(np.expm1(of))):.1f} %, {np.sqrt((of**2).mean()):.3f}"


if __name__ == "__main__":
    sys.exit(main())
