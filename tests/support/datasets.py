"""A small dataset, made up, whose names can be anything."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosscast.data.dataset import Dataset
from crosscast.profile import METRICS
from support import tables

APPLICATIONS = ("bfs", "crc", "fft", "lud")


def made_dataset(
    applications: Sequence[str] = APPLICATIONS,
    *,
    kernels: Sequence[str] = ("first", "second"),
    sizes: Sequence[str] = ("tiny", "small"),
    devices: Sequence[str] = ("cpu", "gpu"),
    without: Sequence[tuple[str, str]] = (),
) -> Dataset:
    """Every kernel of every application at every size on every device, without some (kernel, device)."""
    rng = np.random.default_rng(1)
    profiles: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    sessions: list[dict[str, Any]] = []
    for application in applications:
        for size in sizes:
            problem = {"application": application, "size": size}
            work = rng.normal(-8, 1.5, len(kernels))
            for kernel in kernels:
                metrics = {metric.name: 7 for metric in METRICS}
                profiles.append({**problem, "kernel": kernel, "invocation": 0, **metrics})
            for place, device in enumerate(devices):
                cell = {**problem, "device": device, "configuration": "{}", "repeat": 0}
                there = [each for each in kernels if (each, device) not in without]
                sessions.append({**cell, "kernels": list(kernels), "runs": 3, "loop_s": 1.0})
                for run in range(3):
                    for kernel in there:
                        log_time = work[list(kernels).index(kernel)] - 0.2 * place + rng.normal(0, 0.3)
                        row = {"kernel": kernel, "run": run, "invocations": 1}
                        records.append({**cell, **row, "time_s": [float(np.exp(log_time))]})
    rows = [
        tables.device(key, name=f"The {key}", type="gpu", vendor=f"maker {place % 3}")
        for place, key in enumerate(devices)
    ]
    return tables.dataset(devices=rows, profiles=profiles, records=records, sessions=sessions)
