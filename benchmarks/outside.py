"""Programs from outside of all training data: measured here, predicted by the calibrated bundled model.

``python -m benchmarks.outside`` runs 19 programs in the style of PolyBench under ``crosscast capture`` on
PoCL's CPU, and predicts each from its trace for the device that ``crosscast calibrate`` has measured: its
kernels are in no training data, and nothing in Crosscast was chosen in view of them. On a busy machine run
both on one core, which others disturb less: ``POCL_MAX_PTHREAD_COUNT=1``.

A program does its work several times. The time of a launch is the median over these, that of a program the
sum of its launches.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.table import text_table
from crosscast.devices.launch_work import amounts_of
from crosscast.devices.roofline import verdict_of
from crosscast.forecasting import forecast_application
from crosscast.prediction.named_models import load_model
from crosscast.report.fields import percent
from crosscast.tracing.summary import Trace, replayed, summary_of
from crosscast.units import format_seconds

SOURCE = Path(__file__).with_suffix(".cl")
REPEATS = 20
_ALPHA, _BETA = 1.5, 1.2
_SEED = 0

Step = tuple[Any, ...]
"""A launch: kernel, global size, and arguments: names of arrays, integers and reals."""


@dataclass(frozen=True)
class Program:
    """What a program does: arrays by name with how many values they have, and launches in order."""

    arrays: dict[str, int]
    steps: Sequence[Step]


def _square(names: str, vectors: str, n: int, *steps: Step) -> Program:
    """A program of matrices and vectors, named by a letter each."""
    return Program({**dict.fromkeys(names, n * n), **dict.fromkeys(vectors, n)}, steps)


def _programs() -> dict[str, Program]:
    """The programs by name; sizes make launches last for milliseconds, so that few are interrupted."""
    n, wide, cube = 128, 1024, 64
    grid, line, field, plane = (n, n), (wide,), (wide, wide), (cube, cube)
    factors = (_ALPHA, _BETA, n)
    centred = [("mean", (n,), "d", "m", n), ("centre", grid, "d", "m", n)]
    return {
        "2mm": _square(
            "abcde",
            "",
            n,
            ("gemm", grid, "a", "b", "c", _ALPHA, 0.0, n),
            ("gemm", grid, "c", "d", "e", *factors),
        ),
        "3mm": _square("abcdefg", "", n, *(("product", grid, *names, n) for names in ("abe", "cdf", "efg"))),
        "atax": _square(
            "a", "xyt", wide, ("rows", line, "a", "x", "t", wide), ("columns", line, "a", "t", "y", wide)
        ),
        "bicg": _square(
            "a", "pqrs", wide, ("rows", line, "a", "p", "q", wide), ("columns", line, "a", "r", "s", wide)
        ),
        "conv2d": _square("ab", "", wide, ("convolve", field, "a", "b", wide)),
        "conv3d": Program(
            dict.fromkeys("ab", cube**3),
            [("convolve_layer", plane, "a", "b", cube, layer) for layer in range(1, cube - 1)],
        ),
        "correlation": _square(
            "dc",
            "ms",
            n,
            ("mean", (n,), "d", "m", n),
            ("deviation", (n,), "d", "m", "s", n),
            ("standardize", grid, "d", "m", "s", n),
            ("pairs", (n,), "d", "c", n),
        ),
        "covariance": _square("dc", "m", n, *centred, ("pairs", (n,), "d", "c", n)),
        "doitgen": Program(
            {"a": cube**3, "s": cube**3, "c": cube**2},
            [
                step
                for r in range(cube)
                for step in (("doitgen", plane, "a", "c", "s", cube, r), ("slice", plane, "a", "s", cube, r))
            ],
        ),
        "fdtd2d": _square(
            "xyz",
            "s",
            wide // 2,
            *(
                (kernel, (wide // 2, wide // 2), *args)
                for t in range(10)
                for kernel, *args in (
                    ("field_y", "s", "y", "z", wide // 2, t),
                    ("field_x", "x", "z", wide // 2),
                    ("field_z", "x", "y", "z", wide // 2),
                )
            ),
        ),
        "gemm": _square("abc", "", n, ("gemm", grid, "a", "b", "c", *factors)),
        "gemver": _square(
            "a",
            "uvpqxyzw",
            wide,
            ("rank_two", field, "a", "u", "v", "p", "q", wide),
            ("columns", line, "a", "y", "x", wide),
            ("add", line, "x", "z"),
            ("rows", line, "a", "x", "w", wide),
        ),
        "gesummv": _square("ab", "xy", wide, ("gesummv", line, "a", "b", "x", "y", _ALPHA, _BETA, wide)),
        "gramschmidt": _square(
            "arq",
            "",
            n,
            *(
                step
                for k in range(n)
                for step in (
                    ("norm", (1,), "a", "r", n, k),
                    ("unit", (n,), "a", "r", "q", n, k),
                    ("orthogonal", (n,), "a", "r", "q", n, k),
                )
            ),
        ),
        "jacobi1d": Program(
            dict.fromkeys("ab", wide * n),
            [
                (kernel, (wide * n,), "a", "b", wide * n)
                for _ in range(20)
                for kernel in ("smooth_line", "copy_line")
            ],
        ),
        "jacobi2d": _square(
            "ab",
            "",
            wide // 2,
            *(("smooth", (wide // 2,) * 2, *("ab", "ba")[t % 2], wide // 2) for t in range(20)),
        ),
        "mvt": _square(
            "a", "uvpq", wide, ("rows", line, "a", "p", "u", wide), ("columns", line, "a", "q", "v", wide)
        ),
        "syr2k": _square("abc", "", n, ("syr2k", grid, "a", "b", "c", *factors)),
        "syrk": _square("ac", "", n, ("syrk", grid, "a", "c", *factors)),
    }


def run(program: Program) -> None:
    """Run a program several times on PoCL, as any program of PyOpenCL would."""
    # Imported here: the benchmark itself needs no driver.
    import pyopencl

    from crosscast.measure.opencl import name_unknown_cpu

    cl: Any = pyopencl
    (device, *_) = [each for platform in cl.get_platforms() for each in platform.get_devices()]
    name_unknown_cpu(device)
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    built = cl.Program(context, SOURCE.read_text()).build()
    rng = np.random.default_rng(_SEED)
    contents = {name: rng.random(size, np.float32) for name, size in program.arrays.items()}
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = {name: cl.Buffer(context, flags, hostbuf=each) for name, each in contents.items()}
    kinds = {int: np.int32, float: np.float32}
    kernels = {name: cl.Kernel(built, name) for name, *_ in program.steps}
    for _ in range(REPEATS):
        for name, content in contents.items():
            cl.enqueue_copy(queue, buffers[name], content)
        for name, size, *args in program.steps:
            kernels[name].set_args(*(buffers[a] if isinstance(a, str) else kinds[type(a)](a) for a in args))
            local = {1: (min(size[0], 64),), 2: (16, 16)}[len(size)]
            cl.enqueue_nd_range_kernel(queue, kernels[name], size, local)
        queue.finish()


@dataclass(frozen=True)
class Row:
    """How a program was predicted; times in seconds, of one repetition."""

    program: str
    kernels: int
    launches: int
    measured_s: float  # By medians over the repetitions
    least_s: float  # By the least of them: how busy the machine was
    predicted_s: float
    low_s: float
    high_s: float
    worst: str  # The kernel that moves the sum most, by how many times it was predicted longer or shorter
    worst_ratio: float
    bound: str  # What bounds that kernel, by the data sheet of the device

    @property
    def ratio(self) -> float:
        """Predicted over measured time."""
        return self.predicted_s / self.measured_s

    @property
    def held(self) -> bool:
        """Whether the time is in its interval."""
        return self.low_s <= self.measured_s <= self.high_s


def measured(name: str, model: str, place: Path) -> Row:
    """Capture a program, and predict it from its trace."""
    crosscast = (sys.executable, "-m", "crosscast", "capture", "--runs", "2", "--out", str(place), "--")
    subprocess.run([*crosscast, sys.executable, "-m", "benchmarks.outside", "--run", name], check=True)
    summary = summary_of(Trace(place))
    found = replayed(summary)
    (device,) = [each for each in load_model(model).devices if each.key == model]
    forecast = forecast_application(summary, found, model, devices=[device.key]).kernels
    # Of each class of launches, those of a repetition, by what each took over the repetitions.
    by_repeat = [np.array(each.times).reshape(REPEATS, -1) for each in summary.classes]
    times = np.array([float(np.median(each, axis=0).sum()) for each in by_repeat])
    least = sum(float(each.min(axis=0).sum()) for each in by_repeat)
    total, low, high = (float(each[0]) for each in forecast.of_all_launches(1 / REPEATS))
    predicted = forecast.centre[:, 0] * forecast.profiles.invocations / REPEATS
    worst = int(np.argmax(np.abs(predicted - times)))
    each = summary.classes[worst]
    profile = found[worst].profile
    amounts = None if profile is None else amounts_of(profile)
    return Row(
        name,
        len(summary.classes),
        summary.launches // REPEATS,
        float(times.sum()),
        least,
        total,
        low,
        high,
        each.kernel,
        float(predicted[worst] / times[worst]),
        verdict_of(amounts, device).bound if amounts else "",
    )


def main() -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--name", default="mine", help="the calibrated device, and its model")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    given = parser.parse_args()
    programs = _programs()
    if given.run:
        run(programs[given.run])
        return 0
    with TemporaryDirectory(prefix="crosscast-") as folder:
        rows = [measured(name, given.name, Path(folder) / name) for name in programs if given.only in name]
    logs = np.log([row.ratio for row in rows])
    of_least = np.log([row.predicted_s / row.least_s for row in rows])
    scores = {
        "programs": len(rows),
        "median_error": float(np.median(np.abs(np.expm1(logs)))),
        "geometric_mean_factor": float(np.exp(np.mean(np.abs(logs)))),
        "geometric_mean_ratio": float(np.exp(np.mean(logs))),
        "median_error_of_least": float(np.median(np.abs(np.expm1(of_least)))),
        "geometric_mean_factor_of_least": float(np.exp(np.mean(np.abs(of_least)))),
        "coverage": float(np.mean([row.held for row in rows])),
    }
    if given.json:
        print(json.dumps({**scores, "rows": [asdict(row) for row in rows]}))
        return 0
    head = [
        "program",
        "kernels",
        "launches",
        "measured",
        "least",
        "predicted",
        "ratio",
        "in interval",
        "worst kernel",
        "its ratio",
        "bound",
    ]
    print(
        text_table(
            head,
            [
                [
                    row.program,
                    str(row.kernels),
                    str(row.launches),
                    format_seconds(row.measured_s),
                    format_seconds(row.least_s),
                    format_seconds(row.predicted_s),
                    f"{row.ratio:.2f}",
                    "yes" if row.held else "no",
                    row.worst,
                    f"{row.worst_ratio:.2f}",
                    row.bound,
                ]
                for row in rows
            ],
        )
    )
    print(
        f"\n{len(rows)} programs: median error {percent(scores['median_error'])}, off by a factor of "
        f"{scores['geometric_mean_factor']:.2f} (geometric mean), predicted/measured "
        f"{scores['geometric_mean_ratio']:.2f}; {percent(scores['coverage'])} within 90 % intervals. "
        f"Of the least times: {percent(scores['median_error_of_least'])}, "
        f"{scores['geometric_mean_factor_of_least']:.2f}."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
