"""Forecasts beside published times of the kernels with which a textbook begins, on three GPUs.

``python -m benchmarks.published_textbook`` profiles own kernels that do what those of
https://github.com/R100001/Programming-Massively-Parallel-Processors do, and predicts their times without an
interval between launches (`Batch GPU`), from 6 microseconds on. None is in the training data of the model.
It takes 4 minutes: of large launches only some work-groups run.

Left out is an RTX 2060 that reached 60 % of its bandwidth.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.published_times import Argument, Case, buffer, run, value

_case = partial(Case, Path(__file__).with_suffix(".cu"))
_DEVICES = ("rtx3080", "rtx3060ti", "rtx3060")

_Microseconds = Sequence[float | None]
"""By device, in their order."""
_ROWS: Mapping[int, _Microseconds] = {
    512: (None, 7.02, 11.16),
    2048: (74.67, 123.7, 152.0),
    8192: (1149.9, 1939.1, 2390.3),
}
_COLUMNS: Mapping[int, _Microseconds] = {
    512: (None, 8.02, 11.77),
    2048: (120.44, 151.5, 246.5),
    8192: (2130.1, 2541.9, 4655.0),
}
_GRAY: Mapping[int, _Microseconds] = {
    1024: (None, 15.49, 19.41),
    2048: (31.03, 53.37, 68.60),
    4096: (118.64, 204.1, 265.4),
    8192: (465.3, 803.6, 1067.9),
}
_HISTOGRAM: Mapping[int, _Microseconds] = {  # By threads of a block
    32: (22606.6, 22623.0, 22587.0),
    64: (11307.0, 11311.0, 11451.9),
    128: (5667.7, 5677.0, 5739.0),
    256: (2841.0, 2854.9, 2876.7),
    512: (1429.9, 1443.2, 1461.2),
    1024: (730.8, 1182.9, 1523.9),
}
_HISTOGRAM_OF_ALL: Mapping[int, _Microseconds] = {  # By logarithm of the values, which are all 0
    16: (36.64, 36.562, 36.469),
    20: (565.9, 567.4, 565.884),
    24: (9040.5, 9050.0, 9025.0),
    26: (36155.0, 36194.0, 36092.0),
}
_CONVOLUTION: Mapping[
    tuple[int, int], _Microseconds
] = {  # By logarithm of the values, and values of the mask
    (18, 5): (None, 9.956, None),
    (20, 5): (20.78, 35.766, None),
    (24, 5): (290.3, 515.373, None),
    (26, 3): (1148.2, 2047.627, None),
    (26, 5): (1151.3, 2050.277, None),
    (26, 7): (1183.7, 2061.933, None),
    (26, 11): (1264.6, 2195.2, None),
}
_MATRIX_VECTOR: Mapping[tuple[int, int], _Microseconds] = {  # By rows and columns
    (1 << 21, 2): (39.04, 63.14, 77.35),
    (1 << 25, 2): (663.7, 970.9, 1195.2),
    (1 << 13, 32): (10.61, 10.41, 10.46),
    (1 << 17, 32): (41.87, 66.84, 90.61),
    (1 << 21, 32): (542.0, 960.1, 1299.4),
    (512, 512): (142.9, 142.9, 142.4),
    (8192, 512): (140.8, 142.0, 141.0),
    (1 << 17, 512): (2987.0, 2953.8, 4411.6),
    (512, 8192): (2226.0, 2223.2, 2213.1),
    (8192, 8192): (2224.0, 2231.6, 2256.2),
    (512, 1 << 17): (35374.0, 35450.8, 35338.6),
}
_PRODUCT: Mapping[int, _Microseconds] = {  # Of square matrices
    1024: (1064.3, 1839.0, None),
    4096: (68205.0, 117832.0, None),
}
_TILES: Mapping[tuple[int, int], _Microseconds] = {  # By size and width of a tile
    (1024, 16): (1207.1, None, None),
    (4096, 4): (486042.0, None, None),
    (4096, 8): (105581.0, None, None),
    (4096, 16): (75954.0, None, None),
    (4096, 32): (84133.0, None, None),
}


def cases(_: Path) -> Iterator[Case]:
    """The launches."""
    for kernel, by_size in (("rows", _ROWS), ("columns", _COLUMNS)):
        for n, taken in by_size.items():
            arguments = [*[buffer("uint", n * n)] * 3, value(n), value(n)]
            yield _of(f"add-{kernel}-{n}", f"add_along_{kernel}", (n // 16, n // 16), arguments, taken)
    for n, taken in _GRAY.items():
        arguments = [buffer("uchar", 3 * n * n), buffer("uchar", n * n), value(n), value(n)]
        yield _of(f"gray-{n}", "gray", (n // 16, n // 16), arguments, taken)
    n = 1 << 26
    for block, taken in _HISTOGRAM.items():
        arguments = [buffer("uint", n), buffer("uint", 512), value(n), value(512)]
        yield _of(f"histogram-{block}", "histogram", n // block, arguments, taken, block, shared=2048)
    for power, taken in _HISTOGRAM_OF_ALL.items():
        n = 1 << power
        arguments = [buffer("uint", n), buffer("uint", 512), value(n), value(512)]
        yield _of(f"zeros-{n}", "histogram_of_all", n // 512, arguments, taken, 512)
    for (power, width), taken in _CONVOLUTION.items():
        n = 1 << power
        arguments = [buffer("float", n), buffer("float", width), buffer("float", n), value(width), value(n)]
        yield _of(f"convolution-{n}-{width}", "convolution", n // 512, arguments, taken, 512)
    for (m, n), taken in _MATRIX_VECTOR.items():
        arguments = [buffer("uint", m), buffer("uint", m * n), buffer("uint", n), value(m), value(n)]
        yield _of(f"matvec-{m}x{n}", "matrix_vector", m // 512, arguments, taken, 512)
    for n, taken in _PRODUCT.items():
        yield _of(f"product-{n}", "product", (n // 16, n // 16), _squares(n), taken)
    for (n, width), taken in _TILES.items():
        blocks, shared = (n // width, n // width), 8 * width**2
        name = f"tiles-{n}-{width}"
        yield _of(name, "product_of_tiles", blocks, _squares(n), taken, (width, width), shared)


def _squares(n: int) -> Sequence[Argument]:
    """Return three matrices, and their sizes."""
    return [*[buffer("uint", n * n)] * 3, *[value(n)] * 3]


def _of(
    name: str,
    kernel: str,
    grid: int | tuple[int, int],
    arguments: Sequence[Argument],
    taken: _Microseconds,
    block: int | tuple[int, int] = (16, 16),
    shared: int = 0,
) -> Case:
    """Return a launch, and its times on the devices that have one."""
    times = {device: us * 1e-6 for device, us in zip(_DEVICES, taken, strict=True) if us is not None}
    return _case(name, kernel, grid, block, arguments, times, shared)


if __name__ == "__main__":
    sys.exit(run(__doc__, cases))
