"""Forecasts beside published times of kernels of optimization studies, on 61 GPUs.

``python -m benchmarks.published_kernels`` profiles kernels that do what published ones do, and predicts them
with the bundled model. None of the times is in its training data. They follow from the published rates of

- matrix products by step of optimization: https://github.com/siboehm/SGEMM_CUDA (RTX A6000),
  https://github.com/leimao/CUDA-GEMM-Optimization (RTX 3090), https://github.com/seb-v/fp32_sgemm_amd
  (RX 7900 XTX);
- a lattice Boltzmann method: https://github.com/ProjectPhysX/FluidX3D;
- Laplacians by size of the box: https://github.com/amd/amd-lab-notes, finite-difference;
- transposes: https://github.com/ayush-os/transpose (A100);
- variants of HotSpot: https://github.com/fjwillemsen/kernel_tuner_paper, compare_real_world_impact;
- reads with multiply-adds: https://github.com/ekondis/mixbench, results of `read-only`.

It takes 5 minutes: of large launches only some work-groups run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.published_times import Case, buffer, run, times, value

_case = partial(Case, Path(__file__).with_suffix(".cu"))
_N = 4096
_PRODUCTS: Mapping[str, tuple[str, int | tuple[int, int], int, Mapping[str, float]]] = {
    # Kernel, its block, the side of the block's results, and Gflop/s by device.
    "columns": ("columns_by_lane", (32, 32), 32, {"rtx-a6000": 309, "rtx3090": 278}),
    "rows": ("rows_by_lane", (32, 32), 32, {"rtx-a6000": 1986.5, "rtx3090": 1721.8}),
    "tiled": ("tiled", 1024, 32, {"rtx-a6000": 2980.3, "rtx3090": 2661.6}),
    "column": ("column_of_results<64, 64, 8, 8>", 512, 64, {"rtx-a6000": 8474.7, "rtx3090": 8913.2}),
    "block": ("block_of_results<128, 128, 8, 8, 8>", 256, 128, {"rtx-a6000": 15971.7}),
    "block-16": ("block_of_results<128, 128, 16, 8, 8>", 256, 128, {"rtx3090": 13024.7}),
    "vectors": ("vectors<128, 128, 8, 8, 8>", 256, 128, {"rtx-a6000": 18237.3}),
    "vectors-16": ("vectors<128, 128, 16, 8, 8>", 256, 128, {"rtx3090": 19668.8}),
    "warps-64": ("warps<128, 128, 16, 64, 64, 8, 4, 4, 128>", 128, 128, {"rtx-a6000": 21779.3}),
    "warps-32": ("warps<128, 128, 8, 32, 64, 4, 4, 2, 256>", 256, 128, {"rx7900xtx": 22777.0}),
}

_SIDE = 256
_CELLS = {  # Million cells a second, in single precision
    "a100-pcie-40gb": 8526,
    "a100-pcie-80gb": 9657,
    "a100-sxm-40gb": 8522,
    "a100-sxm-80gb": 10228,
    "arc-a770": 2663,
    "gtx-titan": 1460,
    "gtx1080": 1623,
    "gtx1080ti": 2631,
    "gtx1660": 1016,
    "gtx1660ti": 1467,
    "gtx970": 980,
    "h100-pcie": 11128,
    "k20c": 861,
    "k40c": 1131,  # K40m
    "k80-gpu": 916,
    "l40s": 3788,
    "m1": 384,
    "max-1100": 3487,
    "mi100": 5093,
    "mi210": 6517,
    "mi250x-gcd": 5638,  # MI250
    "p100-pcie-16gb": 3295,
    "quadro-gv100": 3442,
    "radeon-780m": 443,
    "radeon-pro-w7900": 3107,
    "radeon-vii": 4898,
    "rtx-6000-ada": 4997,
    "rtx-a4000": 2500,
    "rtx-a6000": 4421,
    "rtx2060": 1681,
    "rtx2080-super": 2434,
    "rtx2080ti": 3194,
    "rtx3060": 2108,
    "rtx3060-laptop": 2019,
    "rtx3060ti": 2644,
    "rtx3070": 2578,
    "rtx3080": 4230,
    "rtx3090": 5418,
    "rtx4070": 2646,
    "rtx4080": 3914,
    "rtx4080-laptop": 2577,
    "rtx4090": 5624,
    "rx-vega64": 1875,
    "rx5700xt": 1368,
    "rx6700xt": 1408,
    "rx6800xt": 2008,
    "rx6900xt": 1968,
    "rx7600": 1250,
    "rx7900xtx": 3665,
    "t4": 1356,
    "titan-rtx": 3471,
    "titan-v": 3601,
    "uhd-graphics-630": 151,
    "v100-pcie": 5128,
    "v100-sxm2": 4471,
}

_HEAT = {  # Block, results of a thread, steps, unrolled, whether power is kept; milliseconds
    "a100-pcie-40gb": (
        ((16, 4, 4, 7, 10, 2, 1), 2.583),
        ((4, 8, 9, 9, 4, 2, 0), 1.502),
        ((2, 16, 4, 3, 5, 5, 0), 1.737),
        ((160, 4, 1, 5, 4, 1, 0), 0.770),
        ((8, 16, 6, 3, 10, 1, 0), 1.696),
        ((32, 2, 6, 6, 2, 2, 1), 0.869),
        ((352, 2, 1, 1, 5, 5, 0), 4.397),
        ((8, 4, 3, 1, 10, 2, 0), 5.205),
        ((32, 2, 2, 10, 9, 9, 0), 3.071),
        ((8, 32, 9, 1, 4, 1, 1), 0.555),
        ((16, 8, 6, 4, 3, 3, 0), 0.748),
        ((64, 8, 1, 2, 5, 1, 1), 0.909),
        ((32, 4, 1, 5, 5, 1, 1), 0.855),
        ((4, 32, 6, 1, 10, 5, 1), 2.333),
        ((4, 16, 6, 8, 4, 4, 0), 2.249),
        ((16, 8, 9, 2, 5, 5, 0), 0.627),
        ((16, 32, 2, 4, 3, 3, 0), 0.868),
        ((32, 16, 1, 2, 2, 2, 0), 0.729),
        ((96, 2, 1, 6, 8, 1, 1), 3.180),
        ((4, 8, 3, 9, 10, 1, 0), 6.557),
        ((96, 1, 1, 4, 9, 3, 1), 4.415),
    ),
    "rtx-a4000": (
        ((4, 16, 5, 5, 6, 3, 0), 13.36),
        ((8, 16, 3, 4, 6, 2, 0), 16.62),
        ((128, 2, 2, 4, 2, 2, 0), 3.353),
        ((4, 8, 9, 7, 6, 6, 0), 12.91),
        ((288, 2, 1, 6, 4, 4, 0), 8.890),
        ((8, 8, 6, 3, 8, 8, 0), 21.39),
        ((64, 1, 1, 2, 8, 1, 1), 73.54),
        ((4, 8, 8, 9, 4, 1, 1), 9.729),
        ((160, 4, 1, 2, 4, 1, 0), 10.60),
        ((1, 32, 5, 2, 10, 2, 0), 57.31),
        ((8, 8, 1, 6, 8, 4, 1), 29.66),
        ((2, 32, 2, 2, 5, 5, 0), 16.93),
        ((16, 2, 4, 1, 10, 1, 0), 97.25),
    ),
}

_STRAIGHT = {(512, 512, 128): {"mi250x-gcd": 808}}
_OF_ROWS = {  # Rows of a thread, its block, and the bandwidth by box as read from the bars of the figure
    "rx6900xt": (16, 256, (407, 419, 408, 404, 416)),
    "rx7900xtx": (8, 256, (729, 841, 784, 764, 751)),
    "mi50": (4, 256, (596, 393, 377, 377, 366)),
    "mi100": (4, 128, (818, 911, 747, 510, 503)),
    "mi210": (8, 256, (1008, 1161, 1113, 723, 563)),
    "mi250x-gcd": (8, 256, (1014, 1167, 1083, 744, 557)),
}
# Some were larger in z, of which the bandwidth is independent.
_BOXES = ((256, 256, 256), (512, 512, 128), (768, 512, 128), (768, 768, 64), (1024, 1024, 64))

_MIXED = {  # Rounds of a thread, and milliseconds by type and multiply-adds of a value
    "gtx660": (4, (1.16, 1.43, 4.82, 2.30, 7.30, 48.64, 1.16, 3.32, 18.21)),
    "gtx960": (4, (1.51, 1.52, 3.61, 3.01, 7.14, 48.35, 1.51, 1.52, 7.14)),
    "gtx1060-6gb": (4, (0.81, 0.81, 1.91, 1.70, 4.85, 32.02, 0.81, 0.94, 4.62)),
    "k20c": (4, (0.87, 0.95, 3.00, 1.78, 1.78, 3.95, 0.87, 2.13, 11.38)),
    "r7-260x": (4, (1.56, 1.60, 4.62, 3.13, 4.83, 33.72, 1.56, 3.07, 16.01)),
    "r9-nano": (1, (0.31, 0.36, 1.16, 0.60, 1.23, 8.72, 0.31, 0.75, 4.04)),
    "rx5700xt": (1, (0.30, 0.31, 0.89, 0.61, 0.96, 6.86, 0.31, 0.59, 3.26)),
}
_STEPS = {"float": (0, 32, 128), "double": (0, 8, 64), "int": (0, 16, 96)}
_VALUES = 32 << 20

_TRANSPOSES = {"rows": 161.143, "columns": 143.597}  # Microseconds, by what neighbours read


def cases(_: Path) -> Iterator[Case]:
    """The launches."""
    yield from _products()
    yield from _transposes()
    n = _SIDE**3
    arguments = [buffer("float", 19 * n), buffer("uchar", n), *map(value, (n, _SIDE, 0, 1.0))]
    taken = times(n, {device: 1e-3 * rate for device, rate in _CELLS.items()})
    yield _case("lattice", "lattice_boltzmann", n // 64, 64, arguments, taken)
    yield from _heat()
    yield from _laplacians()
    yield from _mixed()


def _products() -> Iterator[Case]:
    arguments = [*[buffer("float", _N * _N)] * 3, value(_N), value(1.0), value(0.0)]
    for name, (kernel, block, side, rates) in _PRODUCTS.items():
        grid = (_N // side, _N // side)
        yield _case(f"product-{name}", kernel, grid, block, arguments, times(2.0 * _N**3, rates))


def _transposes() -> Iterator[Case]:
    arguments = [*[buffer("float", _N * _N)] * 2, value(_N)]
    for name, us in _TRANSPOSES.items():
        kernel, grid = f"transpose_{name}", (_N // 16, _N // 16)
        yield _case(f"transpose-{name}", kernel, grid, (16, 16), arguments, {"a100-sxm-40gb": us * 1e-6})


def _heat() -> Iterator[Case]:
    side = 4096 + 20
    arguments = [*[buffer("float", side * (side + 20))] * 2, buffer("float", 4096 * 4096)]
    arguments += map(value, (0.1, 0.1, 0.1, 0.1))
    for device, each in _HEAT.items():
        for shape, taken in each:
            bx, by, tx, ty, *_ = shape
            grid = (-(-4096 // (bx * tx)), -(-4096 // (by * ty)))
            numbers = ", ".join(map(str, shape))
            yield _case(
                f"heat-{numbers}", f"heat<{numbers}>", grid, (bx, by), arguments, {device: taken * 1e-3}
            )


def _laplacians() -> Iterator[Case]:
    for box, rates in _STRAIGHT.items():
        yield _laplacian("laplacian", box, 1, 256, rates)
    for column, box in enumerate(_BOXES):
        by_shape: dict[tuple[int, int], dict[str, float]] = {}
        for device, (rows, block, by_box) in _OF_ROWS.items():
            by_shape.setdefault((rows, block), {})[device] = by_box[column]
        for (rows, block), by_device in by_shape.items():
            yield _laplacian(f"laplacian_of_rows<{rows}>", box, rows, block, by_device)


def _laplacian(
    kernel: str, box: tuple[int, int, int], rows: int, block: int, rates: Mapping[str, float]
) -> Case:
    nx, ny, nz = box
    read = nx * ny * nz - 8 - 4 * (nx + ny + nz - 6)
    moved = 8 * (read + (nx - 2) * (ny - 2) * (nz - 2))
    arguments = [*[buffer("double", nx * ny * nz)] * 2, *map(value, (*box, 1.0, 1.0, 1.0, -6.0))]
    grid, size = (nx // block, ny // rows, nz), f"{nx}x{ny}x{nz}"
    return _case(f"laplacian-{rows}-{size}", kernel, grid, (block, 1, 1), arguments, times(moved, rates))


def _mixed() -> Iterator[Case]:
    settings = [(kind, steps) for kind, by_type in _STEPS.items() for steps in by_type]
    for rounds in sorted({rounds for rounds, _ in _MIXED.values()}):
        grid = _VALUES // (8 * 256 * rounds)
        for column, (kind, steps) in enumerate(settings):
            taken = {device: each[column] * 1e-3 for device, (r, each) in _MIXED.items() if r == rounds}
            arguments = [value(1), buffer(kind, _VALUES)]
            kernel = f"mixed<{kind}, {rounds}, {steps}>"
            yield _case(f"mixed-{kind}-{steps}", kernel, grid, 256, arguments, taken)


if __name__ == "__main__":
    sys.exit(run(__doc__, cases))
