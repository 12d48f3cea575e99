"""Cost of learning a machine: each model fitted to all runs of a dataset, as ``crosscast train`` does once.

``python -m benchmarks.offline DATASET`` prints times, and whether the figure of 10 s for the data with two
power caps is met. DATASET is a folder with runs over configurations.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

from benchmarks.table import text_table
from benchmarks.verdict import Verdict
from crosscast.data.dataset import read_dataset
from crosscast.decide.samples import two_samples
from crosscast.evaluation.configuration.question import machine_of
from crosscast.prediction.configuration.data import ConfigurationModel, Surfaces
from crosscast.prediction.configuration.models import MODELS, model_named

_FIT_S = 10.0


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    start = time.perf_counter()
    surfaces = machine_of(read_dataset(options.dataset))
    read_s = time.perf_counter() - start
    samples = two_samples(surfaces)
    fits = {
        name: [_fit_s(model_named(name), surfaces, samples) for _ in range(options.repeat)] for name in MODELS
    }
    print(
        f"load: {os.getloadavg()[0]:.2f}; {len(surfaces.kernels)} kernels at a size, {len(surfaces.space)} "
        f"configurations; least / median of {options.repeat} in s\n"
    )
    rows = [["read the dataset", f"{read_s:.2f}"]]
    rows += [
        [f"fit {name}", f"{min(each):.2f} / {statistics.median(each):.2f}"] for name, each in fits.items()
    ]
    print(text_table(["", "s"], rows), end="\n\n")
    verdicts = [
        Verdict(f"fit {name} <= {_FIT_S:g} s", f"median {found:.2f} s", found <= _FIT_S)
        for name, found in ((name, statistics.median(each)) for name, each in fits.items())
    ]
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.offline", description=__doc__)
    parser.add_argument("dataset", type=Path, help="folder of a dataset")
    parser.add_argument("--repeat", type=int, default=3, help="fits of each model (3)")
    return parser.parse_args()


def _fit_s(model: ConfigurationModel, surfaces: Surfaces, samples: tuple[int, ...]) -> float:
    start = time.perf_counter()
    model.fit(surfaces, samples)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
