"""Cost of choosing with a trained model: to load it, to forecast a kernel, to select, and a region's asking.

``python -m benchmarks.choose MODEL`` prints times, and whether the project's figure of 1 ms a selection is
met. MODEL is a folder that ``crosscast train configuration`` wrote.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.table import text_table
from benchmarks.verdict import Verdict
from crosscast.arrays import Reals
from crosscast.decide.selector import Selector
from crosscast.measure.regions.key import RegionKey, RegionRun
from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
from crosscast.prediction.configuration.choice import select
from crosscast.prediction.configuration.data import Observed, SurfaceForecast
from crosscast.prediction.named_models import load_model

_SELECTION_S = 0.001
_REPEATS = 300


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    model = load_model(options.model, "configuration")
    observed = _observed(model)
    forecast = model.predictor.forecast(observed)
    caps = np.quantile(forecast.power.centre[np.isfinite(forecast.power.centre)], np.linspace(0.1, 1, 50))
    selecting = _selecting(forecast, caps, None)
    confident = _selecting(forecast, caps, 0.9) if forecast.power.errors.size else []
    asking, moving = _online(model, observed, caps)
    rows = {
        "load": [_seconds(lambda: load_model(options.model, "configuration")) for _ in range(20)],
        "forecast of a kernel": [
            _seconds(lambda: model.predictor.forecast(observed)) for _ in range(_REPEATS)
        ],
        "selection": selecting,
        "selection, with a confidence": confident,
        "region asks, nothing new": asking,
        "region asks, after a new cap": moving,
    }
    print(
        f"load: {os.getloadavg()[0]:.2f}; {len(model.predictor.space)} configurations; least / median in µs\n"
    )
    print(text_table(["", "µs"], [[name, _microseconds(times)] for name, times in rows.items()]), end="\n\n")
    verdicts = [
        _judge("a selection", selecting),
        _judge("a region's selection after a new cap", moving),
    ]
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choose", description=__doc__)
    parser.add_argument("model", type=Path, help="folder of a model")
    return parser.parse_args()


def _observed(model: TrainedConfigurationModel) -> Observed:
    """Made-up runs at the samples: what they are does not change what asking costs."""
    count = len(model.predictor.samples)
    power_w = np.linspace(150.0, 100.0, count)
    domains = dict.fromkeys(model.card.domains, power_w / 2)
    counters = {name: np.ones(count) for name in model.card.counters}
    return Observed(
        np.array(model.predictor.samples), np.linspace(1.0, 2.0, count), power_w, domains, counters
    )


def _selecting(forecast: SurfaceForecast, caps: Reals, confidence: float | None) -> list[float]:
    return [
        _seconds(partial(select, forecast, cap, confidence=confidence)) for cap in np.tile(caps, 6).tolist()
    ]


def _online(
    model: TrainedConfigurationModel, observed: Observed, caps: Reals
) -> tuple[list[float], list[float]]:
    """Seconds of asking again, and of asking after another cap."""
    selector = Selector(model, float(caps[-1]))
    key = RegionKey("benchmark")
    for place in range(len(observed)):
        configuration = selector.configuration(key)
        power_w = float(observed.power_w[place])
        time_s = float(observed.time_s[place])
        energy = {"node": power_w * time_s}
        run = RegionRun(key, configuration, 0.0, time_s, time_s, energy, {"node": power_w}, power_w)
        selector.observed(key, run)
    selector.configuration(key)
    asking = [_seconds(lambda: selector.configuration(key)) for _ in range(_REPEATS)]
    moving = []
    for cap in np.tile(caps, 6):
        selector.power_cap = float(cap)
        moving.append(_seconds(lambda: selector.configuration(key)))
    return asking, moving


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _microseconds(times: list[float]) -> str:
    return f"{1e6 * min(times):.1f} / {1e6 * statistics.median(times):.1f}" if times else "-"


def _judge(what: str, times: list[float]) -> Verdict:
    median = statistics.median(times)
    return Verdict(
        f"{what} <= {1e3 * _SELECTION_S:g} ms", f"median {1e3 * median:.3f} ms", median <= _SELECTION_S
    )


if __name__ == "__main__":
    sys.exit(main())
