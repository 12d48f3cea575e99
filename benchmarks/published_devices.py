"""Forecasts beside published times on 42 devices of which other collections have few, most of AMD.

``python -m benchmarks.published_devices`` profiles own kernels that do what published ones do, and predicts
them with the bundled model. None of the times is in its training data, nor had any been seen when they were
first predicted. They are

- exercises of https://github.com/amd/HPCTrainingExamples on MI210 and MI300A, most by the profiler:
  `rocprof-compute` (of its matrix a sixteenth is computed, in so much less time), `HIP/transpose`,
  `HIP/jacobi`, and BabelStream;
- matrix products by step of optimization: ports of https://github.com/siboehm/SGEMM_CUDA to an RX 7900 GRE
  (RTX 4060 Laptop is left out, whose library reaches 40 % of its peak) and to an RTX 4090,
  https://github.com/seb-v/fp32_sgemm_amd (RX 7900 XTX), of an RTX 4070, and on a UHD Graphics 630
  https://github.com/melgenek/opencl-playground, by the host's clock;
- transposes of NVIDIA's blog on an RTX 4090, in a public note;
- a lattice Boltzmann method, as `benchmarks.published_kernels`: https://github.com/ProjectPhysX/FluidX3D;
- reads with multiply-adds: https://github.com/ekondis/mixbench, issue 49;
- hashes, as `benchmarks.published_rates`: https://github.com/hashcat/hashcat, issue 3918.

It takes 2 minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.published_times import Argument, Case, Size, buffer, run, times, value

_case = partial(Case, Path(__file__).with_suffix(".cu"))
_of_kernels = partial(Case, Path(__file__).with_name("published_kernels.cu"))
_of_rates = partial(Case, Path(__file__).with_name("published_rates.cu"))

_SIDE = 32768  # Of a matrix between vectors; a part of it
_PART = 2048
_YAX: Mapping[tuple[str, int], Mapping[str, float]] = {  # Milliseconds, by kernel and blocks
    ("by_row", 4): {"mi210": 751.342, "mi300a": 541.264},
    ("by_row", 2048): {"mi210": 69.513, "mi300a": 9.483},
    ("by_column", 2048): {"mi210": 12.364, "mi300a": 12.104},
    ("by_row_and_local<8192>", 2048): {"mi210": 176.225},
    ("by_row_and_local<256>", 2048): {"mi210": 51.239},
    ("by_block", 2048): {"mi210": 7.775},
}
_TRANSPOSES = {"of_rows": 4439.6, "to_rows": 2899.8, "through_tile": 2686.8}  # Microseconds on an MI210
_STREAMS = {"copy": (2, 1110), "mul": (2, 1130), "add": (3, 1730), "triad": (3, 1700)}  # On an MI300A
_TILES = {  # GB/s on an RTX 4090
    "copy_four_rows": 2293.67,
    "copy_through_tile": 2281.89,
    "transpose_naive": 271.71,
    "transpose_tile<0>": 1383.78,
    "transpose_tile<1>": 2267.09,
}
_PRODUCTS: Mapping[str, tuple[str, Size, int, int, Mapping[str, float]]] = {
    # Kernel, its block, the side of the block's results, of the matrices, and Gflop/s by device.
    "columns": ("columns_by_lane", (32, 32), 32, 4096, {"rx7900gre": 261.8, "rtx4090": 681.3}),
    "rows": ("rows_by_lane", (32, 32), 32, 4096, {"rx7900gre": 320.8, "rtx4090": 4834}),
    "rows-16": ("rows_by_lane", (16, 16), 16, 4096, {"rx7900xtx": 1010.54, "rtx4070": 1646}),
    "rows-1024": ("rows_by_lane", (16, 16), 16, 1024, {"rtx4070": 1761}),
    "tiled": ("tiled", 1024, 32, 4096, {"rx7900gre": 2733.9, "rx7900xtx": 4017.99, "rtx4090": 6552}),
    "tiled-1024": ("tiled", 1024, 32, 1024, {"rtx4070": 2180}),
    "column": ("column_of_results<64, 64, 8, 8>", 512, 64, 4096, {"rx7900gre": 5343, "rtx4090": 19282.1}),
    "block": (
        "block_of_results<128, 128, 8, 8, 8>",
        256,
        128,
        4096,
        {"rx7900gre": 10269.3, "rtx4090": 36052.5},
    ),
    "vectors": ("vectors<128, 128, 8, 8, 8>", 256, 128, 4096, {"rx7900gre": 14820.4, "rtx4090": 43326.3}),
    "warps": ("warps<128, 128, 16, 64, 64, 8, 4, 4, 128>", 128, 128, 4096, {"rtx4090": 46349.9}),
}
_ON_UHD: Mapping[str, tuple[Size, Size, float]] = {
    # Kernel, grid, block, and milliseconds on a UHD Graphics 630
    "product_by_item<1024>": ((4, 1024), 256, 417),
    "product_by_item<1920>": ((8, 1920), 240, 1858),
    "product_by_row<1024>": (16, 64, 364),
    "product_by_tiles<1024>": ((64, 64), (16, 16), 56),
}
_CELLS = {  # Million cells a second, in single precision
    "arc-a380": 622,
    "arc-a580": 2534,
    "arc-a750": 2555,
    "arc-b570": 2078,
    "arc-b580": 2549,
    "arc-pro-b60": 2540,
    "b200": 42152,
    "fiji-furyx": 1628,
    "grace": 1323,
    "h100-nvl": 20303,
    "h100-sxm": 17602,
    "h200-sxm": 23056,
    "hawaii-r9-290x": 1245,
    "l4": 1490,
    "mi300x": 22867,
    "mi355x": 30380,
    "mi50": 4446,
    "mi60": 3570,
    "polaris-rx480": 1104,
    "radeon-8060s": 1231,
    "radeon-ai-pro-r9700": 3176,
    "radeon-pro-w6800": 1620,
    "radeon-pro-w7800": 1872,
    "rtx-pro-6000-blackwell": 10349,
    "rtx5070": 3658,
    "rtx5080": 5174,
    "rtx5090": 9522,
    "rx6600": 963,
    "rx7700xt": 1405,
    "rx7800xt": 1704,
    "rx7900gre": 1996,
    "rx7900xt": 3013,
    "rx9070": 3007,
    "rx9070xt": 3089,
    "threadripper-3970x": 376,
}
_MIXED = {"float": {64: 0.57, 128: 0.99, 256: 1.88}, "int": {40: 0.82, 64: 1.23, 128: 2.35}}  # On an Arc A750
_VALUES = 32 << 20
_HASHES = {"md5": 42.2418, "sha2<unsigned, 60>": 7.0159}  # 10^9 a second on an RX 6800
_CANDIDATES, _FIRSTS = 1 << 18, 32


def cases(_: Path) -> Iterator[Case]:
    """The launches."""
    for (kernel, blocks), ms in _YAX.items():
        n, m = (_PART, _SIDE) if kernel == "by_block" else (_SIDE, _PART)
        arguments = [_doubles(n), _doubles(n * m), _doubles(m), value(n), value(m), _doubles(1)]
        taken = {device: each * 1e-3 * _PART / _SIDE for device, each in ms.items()}
        yield _case(f"yax-{kernel}-{blocks}", kernel, blocks, 64, arguments, taken)
    n = 8192
    for name, us in _TRANSPOSES.items():
        arguments = [_doubles(n * n), _doubles(n * n), value(n)]
        yield _on(
            "mi210", us, f"transposes-{name}", f"transpose_{name}", (n // 16, n // 16), (16, 16), arguments
        )
    for name, (arrays, us) in _STREAMS.items():  # An eighth of the array
        arguments = [_doubles(1 << 25)] * arrays
        yield _on("mi300a", us / 8, f"stream-{name}", name, (1 << 25) // 256, 256, arguments)
    yield from _jacobi(4096)
    for name, rate in _TILES.items():
        arguments = [buffer("float", 1 << 20)] * 2
        yield _on("rtx4090", (8 << 20) / rate * 1e-3, f"tiles-{name}", name, (32, 32), (32, 8), arguments)
    for name, (kernel, block, side, n, rates) in _PRODUCTS.items():
        arguments = [*[buffer("float", n * n)] * 3, value(n), value(1.0), value(0.0)]
        taken = times(2.0 * n**3, rates)
        yield _of_kernels(f"product-{name}", kernel, (n // side, n // side), block, arguments, taken)
    for kernel, (grid, block, took_ms) in _ON_UHD.items():
        arguments = [buffer("float", 1920 * 1920)] * 3
        yield _on("uhd-graphics-630", took_ms * 1e3, f"uhd-{kernel}", kernel, grid, block, arguments)
    n = 256**3
    arguments = [buffer("float", 19 * n), buffer("uchar", n), *map(value, (n, 256, 0, 1.0))]
    taken = times(n, {device: 1e-3 * rate for device, rate in _CELLS.items()})
    yield _of_kernels("lattice", "lattice_boltzmann", n // 64, 64, arguments, taken)
    for kind, by_steps in _MIXED.items():
        for steps, step_ms in by_steps.items():
            arguments, kernel = [value(1), buffer(kind, _VALUES)], f"mixed<{kind}, 4, {steps}>"
            taken = {"arc-a750": step_ms * 1e-3}
            yield _of_kernels(
                f"mixed-{kind}-{steps}", kernel, _VALUES // (8 * 256 * 4), 256, arguments, taken
            )
    for kernel, giga_a_second in _HASHES.items():
        arguments = [buffer("uint", 16 * _CANDIDATES), buffer("uint", _FIRSTS), {"type": "uint", "value": 1}]
        arguments += [buffer("uint", 1), value(_FIRSTS)]
        taken = times(_CANDIDATES * _FIRSTS, {"rx6800": giga_a_second})
        yield _of_rates(f"hash-{kernel}", kernel, _CANDIDATES // 256, 256, arguments, taken)


def _jacobi(n: int) -> Iterator[Case]:
    """Kernels of a solver on a square."""
    of_all, half = [_doubles(n * n)] * 4, value(0.5)
    yield _on("mi300a", 171, "jacobi-step", "step", n * n // 512, 512, [value(n * n), half, *of_all])
    arguments = [*map(value, (n - 2, n - 2, n)), half, half, *of_all[:2]]
    yield _on("mi300a", 145, "jacobi-laplacian", "laplacian", (n // 16, n // 16), (16, 16), arguments)
    arguments = [value(n * n), half, half, of_all[0], _doubles(128)]
    yield _on("mi300a", 355.6, "jacobi-norm", "norm", 128, 128, arguments)


def _doubles(length: int) -> Argument:
    return buffer("double", length)


def _on(
    device: str, us: float, name: str, kernel: str, grid: Size, block: Size, arguments: list[Argument]
) -> Case:
    """Return a launch, and its microseconds on a device."""
    return _case(name, kernel, grid, block, arguments, {device: us * 1e-6})


if __name__ == "__main__":
    sys.exit(run(__doc__, cases))
