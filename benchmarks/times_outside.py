"""How good the model of launch times is on what it has not seen.

``python -m benchmarks.times_outside TABLES [--by source,application,device] [--out MODEL]`` reads the
tables that `benchmarks.training_profiles` wrote. Each source, application or device is held out in turn,
with all that is fitted, and scored: geometric mean of predicted over measured, median error, RMSE of the
logarithm, and coverage and width (high over low) of 90 % intervals.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from crosscast.errors import CrosscastError
from crosscast.prediction.time.training_times import (
    Outside,
    TrainingTimes,
    evaluate,
    read_training,
    train_launch_times,
)


def main() -> int:
    """Print the tables, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.times_outside", description=__doc__)
    parser.add_argument("tables", type=Path, help="folder of benchmarks.training_profiles")
    parser.add_argument("--by", default="source,application,device", help="what to hold out (default: all)")
    parser.add_argument("--out", type=Path, help="also train the model on all, and write it to this folder")
    options = parser.parse_args()
    try:
        training = read_training(options.tables)
        print(
            f"{len(training.source)} times of {training.profiles} profiles on {len(training.devices)} devices"
        )
        for by in options.by.split(","):
            _print(training, evaluate(training, by, tell=lambda said: print(said, file=sys.stderr)))
        if options.out is not None:
            train_launch_times(options.tables).save(options.out)
    except CrosscastError as error:
        print(f"times_outside: {error}", file=sys.stderr)
        return 2
    return 0


def _print(training: TrainingTimes, found: Outside) -> None:
    gpus = {device.key for device in training.devices if device.type == "gpu"}
    kind = np.array(["GPU" if key in gpus else "CPU" for key in training.key])
    source = training.labels("source")
    print(f"\nleave-{found.by}-out\n{'source':14}kind      n   bias  median  RMSE  inside  width")
    for name in sorted(set(source.tolist())):
        for of in ("GPU", "CPU"):
            _row(f"{name:14}{of}", found, (source == name) & (kind == of))
        clean = (source == name) & ~training.noted
        if clean.sum() < (source == name).sum():
            _row(f"{name:14}sound", found, clean)
    if found.by == "application":
        labels = training.labels("application")
        for name in sorted(set(labels.tolist())):
            _row(f"  {name:15}", found, labels == name)
    if found.by == "device":
        for name in sorted(set(training.key)):
            _row(f"  {name:15}", found, training.labels("device") == name)


def _row(label: str, found: Outside, rows: np.ndarray) -> None:
    rows = rows & np.isfinite(found.log_error)
    if not rows.any():
        return
    error = found.log_error[rows]
    width = np.exp(np.median(found.high[rows] - found.low[rows]))
    median = 100 * np.median(np.abs(np.expm1(error)))
    print(
        f"{label:18}{rows.sum():6}{np.exp(error.mean()):7.2f}{median:6.1f} %"
        f"{np.sqrt((error**2).mean()):7.3f}{100 * found.inside[rows].mean():5.0f} %{width:7.1f}"
    )


if __name__ == "__main__":
    sys.exit(main())
