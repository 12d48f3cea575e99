"""Forecasts beside published microbenchmarks of GPUs: caches, strides, latencies, streams, groups.

``python -m benchmarks.microbenchmarks`` profiles kernels that do what those of gpu-benches do
(https://github.com/te42kyfo/gpu-benches), and predicts them on devices with the bundled model. Their times
follow from the rates that its result files have, of many launches one after another, so that forecasts are
by the device's clock. These times are in no training data; latencies and rates of caches in
`crosscast.devices.architectures` and some constants of the terms are of the same files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.published_times import Case, buffer, run, times, value

_case = partial(Case, Path(__file__).with_suffix(".cu"))
_MIB = 1 << 20
_STREAMED = 32 * _MIB
_BYTES = {"float": 4, "double": 8, "float4": 16}

# Published sizes are within 1 % of these, except the last.
_SMALL_SIZES = (16350, 130569, 1042953, 4167647, 20979216)
_SMALL = {  # GB/s of reading and writing doubles, by block size and number of values
    "a100-sxm-80gb": {
        16: (76, 236, 326, 338, 344),
        32: (89, 360, 614, 662, 686),
        64: (89, 493, 1128, 1289, 1363),
        256: (97, 641, 2401, 1550, 1705),
        1024: (93, 654, 2408, 1546, 1702),
    },
    "l40s": {
        16: (118, 348, 462, 478, 482),
        32: (135, 548, 880, 944, 763),
        64: (147, 748, 1621, 1843, 761),
        256: (160, 1008, 3401, 4249, 757),
        1024: (141, 1055, 2960, 3826, 757),
    },
    "h200-sxm": {
        32: (98, 424, 759, 821, 844),
        64: (101, 570, 1366, 1578, 1672),
        256: (104, 730, 3169, 2959, 3282),
        1024: (102, 764, 3164, 2763, 3085),
    },
    "mi210": {
        16: (107, 189, 209, 211, 212),
        32: (122, 341, 408, 420, 423),
        64: (121, 567, 777, 826, 840),
        256: (124, 783, 1101, 1295, 1334),
        1024: (118, 750, 1085, 1279, 1305),
    },
    "rx6900xt": {
        32: (79, 487, 1052, 1132, 451),
        64: (79, 507, 1305, 1487, 452),
        256: (79, 509, 1283, 1451, 452),
        1024: (78, 486, 1284, 1482, 451),
    },
    "a40": {
        32: (115, 432, 562, 618, 645),
        64: (129, 601, 541, 610, 645),
        256: (135, 749, 532, 611, 643),
        1024: (118, 666, 568, 607, 645),
    },
}
_STREAMS = {"init": 1, "read": 1, "scale": 2, "triad": 3, "stencil": 2}  # Values moved
_FULL = {  # GB/s of these, with blocks of 1,024
    "v100-pcie": (895, 866, 802, 814, 798),
    "a40": (679, 679, 652, 653, 653),
    "mi210": (1526, 1345, 1358, 1248, 1236),
    "rx6900xt": (499, 502, 456, 421, 455),
    "h200-sxm": (3884, 2756, 3165, 3534, 3128),
}
_TWO_A_UNIT = {  # GB/s of these, with local memory for two blocks a unit, by its KiB and the block size
    ("v100-pcie", 48): {
        128: (595, 262, 423, 545, 403),
        256: (895, 490, 673, 765, 645),
        512: (895, 746, 784, 800, 777),
    },
    ("a40", 48): {128: (679, 304, 514, 625, 466), 256: (679, 552, 643, 660, 630)},
    ("mi210", 32): {
        128: (488, 334, 453, 658, 404),
        256: (908, 608, 840, 1104, 717),
        512: (1430, 1055, 1216, 1225, 958),
    },
    ("h200-sxm", 112): {
        128: (1163, 485, 852, 1129, 779),
        256: (2196, 935, 1395, 1905, 1338),
        512: (3670, 1707, 2263, 2919, 2181),
    },
}
_L2 = {  # GB/s, by type, reads of a thread, and blocks that read different values
    ("double", 64, 6): {"a100-sxm-80gb": 5420, "l40s": 5186, "h200-sxm": 11049},
    ("double", 64, 46): {"a100-sxm-80gb": 5427, "l40s": 5188, "h200-sxm": 9767},
    ("double", 64, 103): {"a100-sxm-80gb": 1945, "l40s": 5240, "h200-sxm": 6467},
    ("double", 64, 550): {"a100-sxm-80gb": 1829, "l40s": 842, "h200-sxm": 3888},
    ("float4", 32, 6): {"mi210": 5076, "rx6900xt": 4645},
    ("float4", 32, 46): {"mi210": 2530, "rx6900xt": 1970},
    ("float4", 32, 103): {"mi210": 2039, "rx6900xt": 1954},
    ("float4", 32, 550): {"mi210": 1355, "rx6900xt": 501},
}
_CACHE = {  # Type, compute units, and GB/s by KiB
    "a40": ("float", 84, {32: 9350, 1024: 2410}),
    "v100-pcie": ("float", 80, {32: 13870, 1024: 2449}),
    "mi210": ("float4", 104, {8: 10590, 1024: 4904}),
    "rx6900xt": ("float4", 40, {8: 12575, 1024: 5449}),
}
_STRIDE_CLOCKS = {"a100-sxm-80gb": 1.41e9, "rx6900xt": 2.57e9}
_STRIDES = {  # Clocks of an access by 32 work-items on these, by type and stride
    "float": {1: (1.02, 1.0), 2: (2.0, 2.0), 4: (4.0, 4.0), 8: (8.0, 8.0), 17: (5.1, 5.0), 33: (8.8, 8.0)},
    "double": {1: (2.0, 4.3), 4: (8.0, 8.0), 16: (32.0, 32.0), 17: (8.9, 8.0)},
}
_LATENCY = {  # Nanoseconds of a load, by KiB
    8: {"h100-pcie": 19.4, "mi210": 73.6, "rx6900xt": 28.4, "l40s": 14.5},
    1024: {"h100-pcie": 151.3, "mi210": 142.0, "rx6900xt": 80.6, "l40s": 111.0},
    65536: {"h100-pcie": 357.0, "mi210": 338.0, "rx6900xt": 159.0, "l40s": 113.0},
}
_ROOFLINE = {0: 1372, 4: 1363, 24: 1322, 56: 1150, 80: 850, 160: 452}  # GB/s of an A100, by multiply-adds


def cases(folder: Path) -> Iterator[Case]:
    """The launches; buffers of pointers go to a folder."""
    yield from _small()
    yield from _streams()
    yield from _caches()
    yield from _strides()
    yield from _chases(folder)
    moved, blocks, rounds = 2 * 864 * 256 * 40 * 4, 864, 40
    for steps, rate in _ROOFLINE.items():
        buffers = [buffer("float", blocks * 256 * rounds)] * 2 + [buffer("float", blocks)]
        taken = times(moved, {"a100-sxm-40gb": rate})
        yield _case(f"roofline-{steps}", f"roofline<{steps}, {rounds}>", blocks, 256, buffers, taken)


def _small() -> Iterator[Case]:
    blocks = sorted({block for rates in _SMALL.values() for block in rates})
    for column, n in enumerate(_SMALL_SIZES):
        for block in blocks:
            rates = {device: rows[block][column] for device, rows in _SMALL.items() if block in rows}
            taken = times(16 * n, rates)
            arguments = [buffer("double", n), buffer("double", n), value(n)]
            yield _case(f"small-{n}-{block}", "small", -(-n // block), block, arguments, taken)


def _streams() -> Iterator[Case]:
    arguments = [*[buffer("double", _STREAMED)] * 3, value(_STREAMED)]
    settings = [(0, 1024, _FULL)] + [
        (shared, block, {device: rates})
        for (device, shared), rows in _TWO_A_UNIT.items()
        for block, rates in rows.items()
    ]
    for shared, block, by_device in settings:
        for column, (kernel, values) in enumerate(_STREAMS.items()):
            rates = {device: each[column] for device, each in by_device.items()}
            taken = times(8 * values * _STREAMED, rates)
            name = f"two-{kernel}-{block}" if shared else f"stream-{kernel}"
            yield _case(name, kernel, _STREAMED // block, block, arguments, taken, shared << 10)


def _caches() -> Iterator[Case]:
    for (kind, reads, different), rates in _L2.items():
        moved = 4000 * 1024 * reads * _BYTES[kind]
        arguments = [buffer(kind, 1024), buffer(kind, different * 1024 * reads), value(different)]
        taken = times(moved, rates)
        yield _case(f"l2-{kind}-{different}", f"l2<{kind}, {reads}>", 4000, 1024, arguments, taken)
    for device, (kind, units, by_size) in _CACHE.items():
        for kib, rate in by_size.items():
            count = (kib << 10) // _BYTES[kind]
            rounds = 8 * _MIB // count
            taken = times(units * rounds * (kib << 10), {device: rate})
            arguments = [buffer(kind, count), buffer(kind, count), value(0)]
            yield _case(f"cache-{kib}", f"cache<{kind}, {count}, {rounds}>", units, 256, arguments, taken)


def _strides() -> Iterator[Case]:
    reads = 32768
    for kind, rows in _STRIDES.items():
        for stride, clocks in rows.items():
            taken = {
                device: each * 32 * reads / rate
                for (device, rate), each in zip(_STRIDE_CLOCKS.items(), clocks, strict=True)
            }
            arguments = [buffer(kind, 64 * 70), buffer(kind, 1024), *map(value, (0, stride, reads))]
            yield _case(f"strides-{kind}-{stride}", f"strides<{kind}>", 1, 1024, arguments, taken)


def _chases(folder: Path) -> Iterator[Case]:
    for kib, nanoseconds in _LATENCY.items():
        lines = (kib << 10) // 64
        order = np.concatenate([[0], np.random.default_rng(0).permutation(lines - 1) + 1])
        following = np.zeros(lines * 16, np.int32)
        following[order * 16] = np.roll(order, -1) * 16
        pointers = folder / f"{kib}.npy"
        np.save(pointers, following)
        steps = max(65536, lines)
        arguments = [{"type": "int", "file": str(pointers)}, buffer("int", 1), value(steps)]
        taken = {device: steps * each * 1e-9 for device, each in nanoseconds.items()}
        yield _case(f"latency-{kib}", "latency", 1, 64, arguments, taken)


if __name__ == "__main__":
    sys.exit(run(__doc__, cases))
