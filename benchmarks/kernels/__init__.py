"""The kernels of the benchmark: OpenCL C files, and for each what to launch and what must come out.

Needs NumPy alone, because the peers run it in an environment without Crosscast.
"""

from __future__ import annotations

from benchmarks.kernels import (
    bitonic,
    collatz,
    gather,
    histogram,
    matmul,
    nbody,
    reduce,
    spmv,
    stencil,
    tiled_matmul,
    vecadd,
)
from benchmarks.kernels.case import Argument, Array, Case, LocalBytes, Workload

__all__ = ["CASES", "Argument", "Array", "Case", "LocalBytes", "Workload"]

CASES: dict[str, Case] = {
    module.CASE.name: module.CASE
    for module in (
        vecadd,
        matmul,
        tiled_matmul,
        spmv,
        collatz,
        gather,
        stencil,
        nbody,
        bitonic,
        reduce,
        histogram,
    )
}
"""Every case by name, in the order of the table."""
