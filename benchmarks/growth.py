"""Growth of a characterization's time and memory with executed instructions and with touched addresses.

``python -m benchmarks.growth`` runs the whole command over four decades of each and fits a straight line.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.command_line import crosscast_command, environment
from benchmarks.memory import measure_peak
from benchmarks.table import number, text_table

_KERNELS = Path(__file__).with_name("growth_kernels")
_GROUP = 64
_LARGEST_SLOPE = 1.1
"""A slope in log-log above this is no longer called linear."""
_NOTABLE = 0.25
"""Growth above this share of the first value is more than noise."""


Array = npt.NDArray[np.float64]
Power = Callable[[Array, Array], float | None]


@dataclass(frozen=True)
class Axis:
    """Something that grows.

    Parameters
    ----------
    metric
        The metric that says how much of it there was.
    title
        Its name in the table.
    launch
        Launch file for a scale of the axis.
    first
        Scale of the smallest launch.
    """

    metric: str
    title: str
    launch: Callable[[int], str]
    first: int


@dataclass(frozen=True)
class Point:
    """One launch.

    Parameters
    ----------
    amount
        Value of the axis's metric.
    run_s, metrics_s
        Least seconds of the run and of computing the metrics.
    peak_bytes
        Peak memory of the whole command.
    """

    amount: int
    run_s: float
    metrics_s: float
    peak_bytes: int

    @property
    def time_s(self) -> float:
        """Seconds that may grow."""
        return self.run_s + self.metrics_s


@dataclass(frozen=True)
class Fit:
    """A straight line through points, ``fixed + each * amount``, in relative least squares.

    Parameters
    ----------
    fixed, each
        The line.
    error
        Largest relative distance of a point from it.
    slope
        Power of the amount with which the values grow, that is their slope in log-log without the fixed part;
        ``None`` where they do not grow notably.
    """

    fixed: float
    each: float
    error: float
    slope: float | None

    @classmethod
    def through(cls, amounts: Sequence[int], values: Sequence[float], power: Power) -> Fit:
        """Fit the line; `power` finds the slope."""
        x, y = np.asarray(amounts, float), np.asarray(values, float)
        (fixed, each), *_ = np.linalg.lstsq(np.stack([1 / y, x / y], axis=1), np.ones_like(y), rcond=None)
        return cls(float(fixed), float(each), float(np.abs((fixed + each * x) / y - 1).max()), power(x, y))

    @property
    def linear(self) -> bool:
        """Whether the values grow with the amount at most proportionally."""
        return self.slope is None or self.slope <= _LARGEST_SLOPE


def _power_of_sums(x: Array, y: Array) -> float | None:
    """Power p with which ``fixed + each * x^p`` fits best, in relative least squares."""
    if y.max() < (1 + _NOTABLE) * y[0]:
        return None
    errors = {}
    for hundredths in range(50, 201):
        terms = np.stack([1 / y, (x / x[-1]) ** (hundredths / 100) / y], axis=1)
        solution, *_ = np.linalg.lstsq(terms, np.ones_like(y), rcond=None)
        errors[hundredths / 100] = float(((terms @ solution - 1) ** 2).sum())
    return min(errors, key=errors.__getitem__)


def _power_of_increments(x: Array, y: Array) -> float | None:
    """Power of the growth from point to point, where it is notable.

    For peaks, which are the greater of what grows and of what does not: growth is seen only from some point
    on. Of a geometric row of amounts, increments grow with the same power as the values do.
    """
    increments = np.diff(y)
    notable = np.flatnonzero(increments > _NOTABLE * y[0])
    if not notable.size:
        return None
    # The first one may be partly hidden below what does not grow, so it counts only if needed.
    chosen = notable[1:] if notable.size > 2 else np.arange(notable[-1] - 1, notable[-1] + 1)
    logs = np.log(x[1:][chosen]), np.log(np.maximum(increments[chosen], 1e-3 * y[0]))
    return float(np.polyfit(*logs, 1)[0])


def _rounds(scale: int) -> str:
    """1024 work-items of `scale` rounds each."""
    return f"""source = "{_KERNELS / "rounds.cl"}"
kernel = "rounds"
global = 1024
local = {_GROUP}

[[arg]]
type = "uint"
length = 1024

[[arg]]
type = "uint"
value = {scale}
"""


def _touch(scale: int) -> str:
    """`scale` work-groups of 64 addresses each."""
    return f"""source = "{_KERNELS / "touch.cl"}"
kernel = "touch"
global = {scale * _GROUP}
local = {_GROUP}

[[arg]]
type = "uint"
length = {scale * _GROUP}
"""


AXES = (
    Axis("total_instruction_count", "instructions", _rounds, first=10),
    Axis("total_memory_footprint", "addresses", _touch, first=200),
)


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    linear = True
    grown: list[tuple[Axis, list[Point], Fit, Fit]] = []
    for axis in AXES:
        points = [_measure(axis, scale, options.repeat) for scale in _scales(axis.first, options.decades)]
        amounts = [point.amount for point in points]
        time_fit = Fit.through(amounts, [point.time_s for point in points], _power_of_sums)
        memory_fit = Fit.through(amounts, [point.peak_bytes for point in points], _power_of_increments)
        grown.append((axis, points, time_fit, memory_fit))
        linear = linear and time_fit.linear and memory_fit.linear
        print(_report(axis, points, time_fit, memory_fit), end="\n\n", flush=True)
    if options.plot is not None:
        _plot(grown, options.plot)
    return 0 if linear else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="repeats of each launch (default: 3)")
    parser.add_argument("--decades", type=int, default=4, help="how many decades (default: 4)")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="also draw a picture")
    return parser.parse_args()


def _scales(first: int, decades: int) -> list[int]:
    """Scales from `first` on, two a decade."""
    return [round(first * 10 ** (half / 2)) for half in range(2 * decades + 1)]


def _measure(axis: Axis, scale: int, repeat: int) -> Point:
    """Run the whole command for one scale; times are minima."""
    profiles, peaks = [], []
    with tempfile.TemporaryDirectory(prefix="crosscast-benchmark-") as folder:
        path = Path(folder) / "launch.toml"
        path.write_text(axis.launch(scale), encoding="utf-8")
        command = crosscast_command("characterize", str(path), "--threads", "1", "--json")
        for _ in range(repeat):
            peak = measure_peak(command, environment())
            if peak.status != 0:
                raise SystemExit(f"{axis.title} at {scale}: status {peak.status}: {peak.last_words}")
            profiles.append(json.loads(peak.stdout))
            peaks.append(peak.nbytes)
    print(f"{axis.title} at scale {scale} done", file=sys.stderr)
    return Point(
        profiles[0]["metrics"][axis.metric],
        min(profile["timing_s"]["run"] for profile in profiles),
        min(profile["timing_s"]["metrics"] for profile in profiles),
        # The least: a sample that falls into a fork counts pages twice.
        min(peaks),
    )


def _report(axis: Axis, points: Sequence[Point], time_fit: Fit, memory_fit: Fit) -> str:
    """Table of one axis, and the fits."""
    body = [
        [
            str(point.amount),
            number(1e3 * point.run_s),
            number(1e3 * point.metrics_s),
            number(1e9 * point.time_s / point.amount),
            number(point.peak_bytes / 1e6, 1),
        ]
        for point in points
    ]
    table = text_table([axis.title, "run ms", "metrics ms", "ns each", "peak MB"], body)
    return "\n".join(
        [
            table,
            _sentence("time", time_fit, 1e3, "ms", 1e9, "ns", axis.title),
            _sentence("memory", memory_fit, 1e-6, "MB", 1.0, "bytes", axis.title),
        ]
    )


def _sentence(
    what: str, fit: Fit, scale: float, unit: str, small_scale: float, small_unit: str, title: str
) -> str:
    """What a fit says, in words."""
    word = "PASS" if fit.linear else "FAIL"
    slope = "flat" if fit.slope is None else f"slope {fit.slope:.3f} in log-log"
    line = (
        f"{fit.fixed * scale:.2f} {unit} + {fit.each * small_scale:.3f} {small_unit} for each of the {title}"
    )
    return f"{word}  {what} = {line}, within {100 * fit.error:.0f} %; growth: {slope}"


def _plot(grown: Sequence[tuple[Axis, list[Point], Fit, Fit]], path: Path) -> None:
    """Draw time and memory of each axis, and the fitted lines."""
    # Only a picture needs it: the table must come without.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    panels = figure.subplots(2, len(grown), squeeze=False)
    for column, (axis, points, time_fit, memory_fit) in enumerate(grown):
        x = np.array([point.amount for point in points], float)
        for panel, values, fit, label in (
            (panels[0, column], [point.time_s for point in points], time_fit, "run + metrics, s"),
            (panels[1, column], [point.peak_bytes for point in points], memory_fit, "peak memory, bytes"),
        ):
            panel.loglog(x, values, "o", label="measured")
            panel.loglog(x, fit.fixed + fit.each * x, "-", label="straight line")
            panel.set_xlabel(axis.title)
            panel.set_ylabel(label)
            panel.grid(visible=True, alpha=0.3)
            panel.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    sys.exit(main())
