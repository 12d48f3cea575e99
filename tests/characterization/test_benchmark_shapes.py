"""The stencils of the benchmark: each shape computes what NumPy does, and is held to its figure."""

from __future__ import annotations

import pytest
from benchmarks import subject
from benchmarks.kernels.shapes import SHAPES
from benchmarks.rows import Row
from benchmarks.verdict import SHAPE, judge


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_computes_what_numpy_does(name: str) -> None:
    case = SHAPES[name]
    # Groups of 1024 need as many columns.
    workload = case.workload(32 if case.size == 128 else 1024 if "1024" in name else 128)
    assert subject.characterize(case, workload, threads=1).fault is None


def row(ratio: float) -> Row:
    return Row(SHAPE, 2048, 1 << 25, native_cpu_s=[1.0], one_cpu_s=[ratio])


@pytest.mark.parametrize(("ratio", "met"), [(2.9, True), (3.1, False)])
def test_groups_of_16_by_4_have_a_figure(ratio: float, met: bool) -> None:
    (verdict,) = (each for each in judge([], [row(ratio)]) if "16 x 4" in each.title)
    assert verdict.met is met
    (verdict,) = (each for each in judge([row(ratio)]) if "16 x 4" in each.title)
    assert verdict.met is None
