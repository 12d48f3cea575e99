"""Forecasts beside published times: launches of own kernels that do what published ones did."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.table import text_table
from crosscast import predict
from crosscast.report.fields import percent

Argument = Mapping[str, object]
"""An argument as a launch file has it."""
Size = int | Sequence[int]


@dataclass(frozen=True)
class Case:
    """A launch, and its published times in seconds by device."""

    source: Path
    name: str
    kernel: str
    grid: Size
    block: Size
    arguments: Sequence[Argument]
    times: Mapping[str, float]
    shared: int = 0
    options: Sequence[str] = ()  # Of the compiler

    def text(self) -> str:
        """The launch file."""
        head: dict[str, object] = {"source": str(self.source), "kernel": self.kernel}
        head |= {"grid": self.grid, "block": self.block}
        head |= {"shared": self.shared} if self.shared else {}
        head |= {"options": list(self.options)} if self.options else {}
        tables = [head, *self.arguments]
        parts = ["\n".join(f"{key} = {json.dumps(value)}" for key, value in each.items()) for each in tables]
        return "\n[[arg]]\n".join(parts) + "\n"


def buffer(kind: str, length: int) -> Argument:
    """An array of zeros."""
    return {"type": kind, "length": length, "fill": "zeros"}


def uniform(kind: str, length: int, low: float, high: float) -> Argument:
    """An array of random numbers between bounds."""
    return {"type": kind, "length": length, "fill": "uniform", "low": low, "high": high}


def value(number: float) -> Argument:
    """A number."""
    return {"value": number}


def times(moved: float, rates: Mapping[str, float]) -> dict[str, float]:
    """Seconds in which devices move bytes, or do operations, at 10^9 a second."""
    return {device: moved / (rate * 1e9) for device, rate in rates.items()}


@dataclass(frozen=True)
class Row:
    """A launch on a device; times in seconds."""

    launch: str
    device: str
    published_s: float
    predicted_s: float
    low_s: float
    high_s: float

    @property
    def error(self) -> float:
        """Logarithm of the predicted over the published time."""
        return float(np.log(self.predicted_s / self.published_s))


def rows(cases: Iterable[Case], folder: Path, only: str) -> Iterator[Row]:
    """Profile the launches whose names contain a text, and predict them."""
    for case in cases:
        if only not in case.name:
            continue
        path = folder / "launch.toml"
        path.write_text(case.text(), encoding="utf-8")
        forecast = predict(path, devices=list(case.times)).on_device()
        for column, (device, time) in enumerate(case.times.items()):
            limits = (forecast.centre, forecast.low, forecast.high)
            yield Row(case.name, device, time, *(float(each[0, column]) for each in limits))


def scores(chosen: Sequence[Row]) -> dict[str, float]:
    """Scores of some rows."""
    errors = np.array([row.error for row in chosen])
    return {
        "times": len(chosen),
        "ratio": float(np.exp(np.median(errors))),
        "median_error": float(np.median(np.abs(np.expm1(errors)))),
        "rmse_log": float(np.sqrt((errors**2).mean())),
        "coverage": float(np.mean([row.low_s <= row.published_s <= row.high_s for row in chosen])),
        "width": float(np.median([row.high_s / row.low_s for row in chosen])),
        "beyond_2.5": float(np.mean(np.abs(errors) > np.log(2.5))),
    }


def run(description: str | None, cases: Callable[[Path], Iterable[Case]]) -> int:
    """Run a benchmark from the command line and return the exit status; cases get a folder for files."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="launches whose names contain this")
    parser.add_argument("--by-device", action="store_true", help="a line a device, not a family of launches")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="crosscast-") as name:
        found = list(rows(cases(Path(name)), Path(name), given.only))
    groups: dict[str, list[Row]] = {}
    for row in found:
        groups.setdefault(row.device if given.by_device else row.launch.split("-")[0], []).append(row)
    table = {**groups, "all": found}
    if given.json:
        all_scores = {name: scores(each) for name, each in table.items()}
        print(json.dumps({"scores": all_scores, "rows": [asdict(row) for row in found]}))
        return 0
    head = ("device" if given.by_device else "launches", "times", "predicted / published", "median error")
    lines = []
    for name, each in table.items():
        of = scores(each)
        figures = (f"{of['ratio']:.2f}", percent(of["median_error"]), f"{of['rmse_log']:.2f}")
        intervals = (percent(of["coverage"]), f"{of['width']:.1f}", percent(of["beyond_2.5"]))
        lines.append((name, str(len(each)), *figures, *intervals))
    print(text_table((*head, "RMSE of ln t", "inside 90 %", "high / low", "beyond 2.5x"), lines))
    return 0
