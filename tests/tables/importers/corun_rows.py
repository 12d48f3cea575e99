"""Small files in the forms of the published data of co-running, with rows that a test may change."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
SMALL, LARGE = "LM (batch size 5)", "LM (batch size 80)"


def alone(job: str = SMALL, gpu: str = "v100", steps: float = 8.0, **cells: Any) -> Row:
    """A job alone, as Gavel's file has it."""
    return {
        "file": "simulation_throughputs",
        "gpu": gpu,
        "job": job,
        "gpus": 1,
        "steps_per_s": steps,
        **cells,
    }


def pair(
    jobs: tuple[str, str] = (SMALL, LARGE),
    steps: tuple[float, float] = (4.0, 1.0),
    gpu: str = "v100",
    gpus: int = 1,
    **cells: Any,
) -> Row:
    """A pair, as Gavel's file has it."""
    row: Row = {"file": "simulation_throughputs", "gpu": gpu}
    for member, (job, speed) in enumerate(zip(jobs, steps, strict=True), start=1):
        row |= {f"job{member}": job, f"gpus{member}": gpus, f"steps_per_s{member}": speed}
    return {**row, **cells}


def single(model: str = "ResNet18", dataset: str = "CIFAR-10", **cells: Any) -> Row:
    """A job alone, as Lucid's file has it."""
    row = {"model": model, "dataset": dataset, "batchsize": 32, "amp": 0, "speed": 2000.0}
    return {**row, "gpu_util": 58.0, "gmem_util": 25.0, "gmem": 2360.0, "label": 1, **cells}


def packed(first: Row, second: Row, speeds: tuple[float, float] = (0.8, 0.5), **cells: Any) -> Row:
    """A pair of such jobs, as Lucid's file has it."""
    row: Row = {}
    for member, (job, speed) in enumerate(zip((first, second), speeds, strict=True), start=1):
        row |= {f"{name}{member}": job[name] for name in ("model", "dataset", "batchsize", "amp")}
        row |= {f"gpu_num{member}": 1, f"speed{member}": speed}
    return {**row, "gpu_util": 90.0, "gmem_util": 40.0, "gmem": 5000.0, **cells}


def write_csv(path: Path, rows: Sequence[Row]) -> Path:
    """A CSV file of rows that have the same columns."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
