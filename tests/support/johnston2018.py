"""A small made-up dataset for the study of Johnston, Falzon and Milthorpe (2018)."""

from typing import Any

import numpy as np

from crosscast.data.dataset import Dataset
from crosscast.studies.johnston2018 import Preset
from support import tables

KERNELS = {"sums": ("add", "scale"), "lud": ("lud_diagonal",), "kmeans": ("kmeansPoint",), "crc": ("crc32",)}
SIZES = {"tiny": 1, "large": 64}
SPEEDS = {"cpu": 1e9, "gpu": 2e10, "phi": 4e9}
RUNS = 24
SMALL = Preset(20, 5, 6, 8, 4, 4, 2, 4, 3)


def made_up(*, noise: float = 0.05, scale: dict[str, float] | None = None) -> Dataset:
    """Five kernels at two sizes on three devices; times are work / speed, times a factor by kernel."""
    rng = np.random.default_rng(7)
    profiles: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    factors = scale or {}
    kernels = [(application, name) for application, names in KERNELS.items() for name in names]
    for place, (application, kernel) in enumerate(kernels):
        for size, work in SIZES.items():
            instructions = work * (10_000 + 3_000 * place)
            cell = {"application": application, "kernel": kernel, "size": size}
            published = {"operand_sum": 2.0 * instructions, "granularity": 0.5 / work}
            for invocation in range(2):
                profiles.append(
                    {
                        **cell,
                        "invocation": invocation,
                        "opcode": 3 + place,
                        "total_instruction_count": instructions * (1 + invocation),
                        "work_items": 32 * work,
                        "granularity": 1 / (32 * work),
                        "global_memory_address_entropy": 3.0 + place + work / 64,
                        "program": {"published": published},
                    }
                )
            for device, speed in SPEEDS.items():
                time_s = instructions / speed * factors.get(kernel, 1.0)
                for run in range(RUNS):
                    factor = float(np.exp(rng.normal(0, noise)))
                    at = {"device": device, "configuration": "{}", "repeat": 0, "run": run}
                    records.append({**cell, **at, "time_s": [time_s * factor], "invocations": 1})
    devices = [tables.device(key, type="gpu") for key in SPEEDS]
    return tables.dataset(devices=devices, profiles=profiles, records=records)
