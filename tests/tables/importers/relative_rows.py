"""Small files in the forms of the data of relative performance, with rows that a test may change."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, Any]

TOPDOWN = (
    *("retiring", "frontend_bound", "backend_bound", "bad_speculation", "branch_mispredict"),
    *("machine_clears", "frontend_latency", "frontend_bandwidth", "memory_bound", "core_bound"),
    *("ext_mem_bound", "l1_bound", "l2_bound", "l3_bound"),
)


def _suite(file: str, cluster: str, compiler: str, time_s: float) -> Row:
    place = {"file": file, "cluster": cluster, "variant": "Base", "tuning": "any", "compiler": compiler}
    work = {"size": 8388608.0, "group": "Stream", "kernel": "Stream_ADD", "BlockSize": None}
    analytic = {
        "Bytes/Rep": 201326592.0,
        "Flops/Rep": 8388608.0,
        "Iterations/Rep": 8388608.0,
        "Kernels/Rep": 1.0,
        "ProblemSize": 8388608.0,
        "Reps": 1000.0,
    }
    return {**place, **work, **analytic, **{f"topdown.{name}": None for name in TOPDOWN}, "time_s": time_s}


def quartz(level: str = "O2", number: int = 1, **changed: Any) -> Row:
    """A row of rajaperf on the CPU: 1,000 repetitions in 36 s, every share 0.1."""
    file = f"quartz/GCC_10.3.1_BaseSeq_08388608/{level}/GCC_1031_BaseSeq_{level}_8388608_{number:02}.cali"
    counted = {f"topdown.{name}": 0.1 for name in TOPDOWN}
    return _suite(file, "quartz", "g++-10.3.1", 36.0) | counted | changed


def lassen(block: float = 256, **changed: Any) -> Row:
    """A row of rajaperf on the GPU: 1,000 repetitions in 0.25 s."""
    file = f"lassen/clang10.0.1_nvcc10.2.89_8388608/1/Base_CUDA-block_{block:g}.cali"
    return _suite(file, "lassen", "clang++-10.0.1", 0.25) | {"BlockSize": block, **changed}


def launch(gpu: str = "Tesla-K40", kernel: str = "bpnn_layerforward_CUDA", **changed: Any) -> Row:
    """A row of rodinia9: 0.1 ms, with three of its counters."""
    sizes = {"input.size.1": 8192, "input.size.2": 0}
    grid = {"grid.x": 1, "grid.y": 512, "block.x": 16, "block.y": 16}
    counted = {"registers.per.thread": 11.0, "static.smem": 1088.0, "inst_executed": 213017.0}
    numbers = {"device": 2.0, "kernel": 1.0}
    return {
        "kernel_file": kernel,
        "gpu": gpu,
        **sizes,
        **grid,
        "duration": 1e-4,
        **counted,
        **numbers,
        **changed,
    }


def write_parquet_rows(path: Path, rows: list[Row]) -> Path:
    """Write a Parquet file with these rows."""
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path
