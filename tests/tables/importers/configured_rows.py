"""Small files in the forms of the published data of configurations, with rows that a test may change."""

import csv
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def powercap(cpu_cap_w: float = 65, gpu_cap_w: float = 100, **changed: Any) -> Row:
    """A row of powercap: 4 s at 60 W of the CPUs and 40 W of the GPU."""
    caps = {"cpu_cap_w": cpu_cap_w, "gpu_cap_w": gpu_cap_w}
    numbers = {"runtime_s": 4.0, "n": 3, "cpu_w": 60.0, "gpu_w": 40.0, "node_w": 100.0}
    return {"suite": "altis", "benchmark": "sort", **caps, **numbers, "size": "big", **changed}


def multicore(system: str = "amd", mode: str | None = None, cores: int = 1, **changed: Any) -> Row:
    """A row of multicore_energy: 10 s at 30 W, while the source's energy says 0."""
    place = {"system": system, "mode": mode, "app": "bs", "procs": 1, "cores": cores}
    numbers = {"time_s": 10.0, "energy_wh": 0.0, "energy_j": 0.0, "avg_power_w": 30.0, "freq_ghz": 2.1}
    return {**place, **numbers, **changed}


def epoch(power_limit: float = 100, **changed: Any) -> Row:
    """A row of gpu_power_limit: an epoch of 20 s at 90 W."""
    job = {"dataset": "cifar100", "network": "shufflenetv2", "batch_size": 1024, "optimizer": "adadelta"}
    numbers = {"power_limit": power_limit, "time_per_epoch": 20.0, "average_power": 90.0}
    return {**job, **numbers, **changed}


def gtx1080ti(core: float = 1600, memory: float = 4000, **changed: Any) -> Row:
    """A row of gtx1080ti: 2 ms at 200 W, with two counters."""
    place = {"Unnamed: 0": 4, "appName": "vectors", "coreF": core, "memF": memory, "argNo": "input00"}
    counted = {"blocks": "(224000 1 1) (128 1 1)", "warps": 896000.0, "executed_ipc": 1.5}
    return {**place, "kernel": "add", "time/ms": 2.0, **counted, "power/W": 200.0, **changed}


def titanx(core: float = 595, memory: float = 810, **changed: Any) -> Row:
    """A row of titanx: 20 ms at 80 W."""
    place = {"suite": "realbenchmarks", "kernel": "2mm", "mem_mhz": memory, "core_mhz": core}
    return {**place, "time_ms": 20.0, "power_w": 80.0, "energy_mj": 1600.0, **changed}


def write_rows(path: Path, rows: list[Row]) -> Path:
    """Write a CSV file with these rows; its columns are those of the first one."""
    path.parent.mkdir(exist_ok=True, parents=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), extrasaction="raise")
        writer.writeheader()
        writer.writerows(rows)
    return path
