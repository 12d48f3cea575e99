"""Made kernels on a CPU and a GPU, as the dataset of Cummins et al. 2017 has them."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from crosscast.data.dataset import Dataset
from crosscast.data.sources import import_source
from support.tables import ADD, Row, mapped, write_rows

KERNELS, SIZES = 3, 4


def mapped_rows(programs: int) -> list[Row]:
    """Rows of two suites, of which the GPU is faster where much is computed for each access."""
    rng = np.random.default_rng(0)
    rows = []
    for program in range(programs):
        for kernel in range(KERNELS):
            comp, mem = (int(each) for each in rng.integers(1, 200, 2))
            for size in range(SIZES):
                gain = np.log(comp / mem) + rng.normal(0, 0.1)
                name = f"{'ab'[program % 2]}-1.0-p{program}-k{kernel}"
                cpu, transfer = float(2.0**size), 4096 * 4**size
                counted = {"comp": comp, "mem": mem, "transfer": transfer}
                cells = {**counted, "runtime_cpu": cpu, "runtime_gpu": cpu * float(np.exp(-gain))}
                rows.append(mapped(name, "SWAB"[size], **cells))
    return rows


def mapped_dataset(programs: int = 6) -> Dataset:
    """The dataset of these rows, without profiles."""
    rows = mapped_rows(programs)
    names = dict.fromkeys(str(row["benchmark"]) for row in rows)
    with TemporaryDirectory() as folder:
        write_rows(Path(folder) / "cgo17_nvidia.csv", rows)
        write_rows(Path(folder) / "cgo17_sources.csv", [{"benchmark": name, "src": ADD} for name in names])
        return import_source("cgo17", folder)
