"""Forecasts beside the times that NVIDIA's CUDA samples print, on five GPUs.

``python -m benchmarks.published_samples`` profiles own kernels that do what those of the samples do, and
predicts them with the bundled model. None of the times is in its training data. In view of them, counts of
copies were corrected: loads wait for stores before them, structures are loaded when they are copied, and
loops over bytes are not made vectors. Before, the median error was 17 %, with 89 % inside.

They are from outputs in public notes: a GTX 1650 Super (CUDA 11.2, the mean of two runs), an RTX 3090, two
A100 SXM4 with 80 GB, a T4G, which has a T4's data sheet, and an RTX 4060 Ti. Of samples with several
kernels those are taken whose others take some microseconds; the time of `binomial` has the copies of its
quotes and results. It takes half a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.published_times import Argument, Case, buffer, run, uniform, value

_case = partial(Case, Path(__file__).with_suffix(".cu"))
_N = 1024
_TRANSPOSES: Mapping[str, tuple[float, float, float]] = {  # Microseconds on these
    "copy_tile": (53.2, 42.2, 6.57),
    "copy_through_tile": (53.4, 47.7, 6.91),
    "transpose_naive": (66.6, 79.5, 36.3),
    "transpose_tile<0>": (56.7, 61.2, 14.7),
    "transpose_tile<1>": (53.0, 50.0, 6.69),
    "transpose_diagonal": (63.6, 58.6, 6.88),
}
_OF_TRANSPOSES = ("gtx1650-super", "t4", "a100-sxm-80gb")
_COPIES: Mapping[str, tuple[str, int, tuple[float, float, float]]] = {  # Type, its size, and microseconds
    "uchar": ("unsigned char", 1, (1271, 955.8, 1583)),
    "ushort": ("unsigned short", 2, (914.5, 495.7, 861.3)),
    "bytes4": ("bytes4", 4, (770.2, 277.3, 507.5)),
    "uint": ("unsigned", 4, (711.8, 268.0, 465.3)),
    "words2": ("words2", 8, (636.8, 164.3, 258.6)),
    "uint2": ("uint2", 8, (637.2, 164.2, 250.5)),
    "words3": ("words3", 12, (714.5, 148.1, 202.8)),
    "words4": ("words4", 16, (666.6, 131.4, 145.3)),
    "uint4": ("uint4", 16, (634.7, 130.8, 143.6)),
}
_OF_COPIES = ("gtx1650-super", "rtx3090", "a100-sxm-80gb")
_COPIED = 49_999_872
_SORTED = {64: 398, 128: 562, 256: 606, 512: 727, 1024: 858}  # Microseconds by length


def cases(_: Path) -> Iterator[Case]:
    """The launches."""
    for kernel, taken in _TRANSPOSES.items():
        arguments = [buffer("float", _N * _N), buffer("float", _N * _N), value(_N)]
        yield _of(f"transpose-{kernel}", kernel, (64, 64), (16, 16), arguments, taken, _OF_TRANSPOSES)
    for name, (kind, nbytes, taken) in _COPIES.items():
        held = name if name.startswith("u") else "uchar"  # Of a structure, bytes
        copied = buffer(held, _COPIED // (nbytes if held == name else 1))
        arguments = [copied, copied, value(_COPIED // nbytes)]
        yield _of(f"copy-{name}", f"copy_elements<{kind}>", 64, 256, arguments, taken, _OF_COPIES)
    yield from _finance()
    yield from _counting()
    words = [buffer("int", 1 << 24), buffer("int", 64), value(1 << 24)]
    yield _of("reduce", "reduce", 64, 256, words, (391.3,))
    yield _of("scan", "scan", 6656, 256, [buffer("uint4", 6656 * 256)] * 2, (340.7,))
    for length, us in _SORTED.items():
        arguments = [*[_random(1 << 20)] * 4, value(length), value(1)]
        yield _of(f"sort-{length}", "sort", 1024, 512, arguments, (us,))
    arguments = [buffer("float", length) for length in (320 * 640, 320 * 320, 320 * 640)]
    arguments += [value(320), value(640)]
    yield _of("product", "product", (20, 10), (32, 32), arguments, (213.8, 46.06), _OF_TRANSPOSES[::2])


def _finance() -> Iterator[Case]:
    n, options = 4_000_000, 1024
    quotes = [uniform("float2", n // 2, *limits) for limits in ((5.0, 30.0), (1.0, 100.0), (0.25, 10.0))]
    arguments = [*[buffer("float2", n // 2)] * 2, *quotes, *_reals(0.02, 0.3), value(n)]
    yield _of("options", "black_scholes", n // 256, 128, arguments, (486.8,))
    arguments = [buffer("float", options), uniform("float4", options, 0.01, 0.02)]
    yield _of("binomial", "binomial", options, 128, arguments, (3128,))
    n = 1 << 20
    arguments = [buffer("float", 3 * n), value(0), value(n)]
    yield _of("quasirandom", "quasirandom", 128, (128, 3), arguments, (224.3,))
    yield _of("inverse", "inverse", 128, 128, [buffer("float", 3 * n), value(3 * n)], (103.1,))


def _counting() -> Iterator[Case]:
    on = ("gtx1650-super", "rtx4060ti")
    words = 1 << 24
    arguments = [buffer("uint", 240 * 256), _random(words), value(words)]
    yield _of("histogram-256", "histogram_256", 240, 192, arguments, (602.4, 260.3), on)
    arguments = [buffer("uint", 4370 * 64), _random(words // 4, "uint4"), value(words // 4)]
    yield _of("histogram-64", "histogram_64", 4370, 64, arguments, (726.4, 287.3), on)


def _reals(*numbers: float) -> list[Argument]:
    return [{"type": "float", "value": number} for number in numbers]


def _random(length: int, kind: str = "uint") -> Argument:
    return uniform(kind, length, 0, 2**32 - 1)


def _of(
    name: str,
    kernel: str,
    grid: int | tuple[int, int],
    block: int | tuple[int, int],
    arguments: list[Argument],
    taken: tuple[float, ...],
    devices: tuple[str, ...] = ("gtx1650-super",),
) -> Case:
    """Return a launch, and its microseconds on these devices."""
    times = {device: us * 1e-6 for device, us in zip(devices, taken, strict=True)}
    return _case(name, kernel, grid, block, arguments, times)


if __name__ == "__main__":
    sys.exit(run(__doc__, cases))
