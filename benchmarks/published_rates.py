"""Forecasts beside published rates and times of many kinds of kernels, on 52 GPUs.

``python -m benchmarks.published_rates`` profiles own kernels that do what published ones do, and predicts
them with the bundled model. None of the times is in its training data. They are

- hashes of brute force: https://github.com/tnAnGel/HashCat-Benchmark, the table of `hashcat -b`, whose pages
  name the sources. Some GPUs were overclocked, and the driver of Arc B580 makes its SHA slow;
- all bodies attract each other: outputs of `nbody` of NVIDIA's CUDA samples in public notes. A T4 that two
  programs shared is left out. A twelfth of the tiles is computed, in so much less time;
- energies of ligands by work-group and poses of a work-item: 2022, bude, A100 with CUDA in
  https://github.com/UoB-HPC/performance-portability. Of 938 atoms of the protein 12 are computed, in so much
  less time;
- loops in double precision on a V100: https://github.com/LLNL/RAJAPerf, as run for
  https://github.com/LLNL/thicket-tutorial, Base_CUDA in blocks of 256. Its reductions are left out: their
  time has two copies;
- kernels of Rodinia by the profiler: https://github.com/marcosamaris/gpuperfpredict. What `forward` took on
  Kepler is left out: another compiler had computed its powers, and counters show half of the instructions.

In view of these times three things of the model were chosen: long code with few accesses runs at the usual
rate, units for functions work beside the others, and integers are arithmetic. It takes a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.published_times import Argument, Case, Size, buffer, run, times, uniform, value

_case = partial(Case, Path(__file__).with_suffix(".cu"))

_HASHES = {"md5": ("md5", "uint"), "sha256": ("sha2<unsigned, 60>", "uint")}
_HASHES["sha512"] = ("sha2<unsigned long long, 76>", "ulong")
_CANDIDATES, _FIRSTS = 1 << 18, 32
_HASH_RATES = {  # 10^9 a second, by hash
    "a100-pcie-40gb": (64.9, 9.4, 3.1),
    "arc-b580": (24.7, 1.3, 0.318),
    "gtx1060-3gb": (10.7, 1.1, 0.362),
    "gtx1060-6gb": (13.1, 1.7, 0.535),
    "gtx1070": (19.6, 2.5, 0.809),
    "gtx1080": (24.7, 3.1, 1.0),
    "gtx1080ti": (35.2, 4.4, 1.4),
    "gtx1650": (12.6, 1.7, 0.577),
    "gtx1660": (19.0, 2.4, 0.795),
    "gtx960": (6.5, 0.862, 0.255),
    "gtx970": (10.4, 1.3, 0.410),
    "gtx980": (11.4, 1.5, 0.490),
    "gtx980ti": (18.9, 2.3, 0.793),
    "gtx-titanx": (15.8, 2.2, 0.742),
    "h100-pcie": (87.5, 12.2, 4.1),
    "k80-gpu": (4.6, 0.785, 0.257),
    "radeon-vii": (33.1, 4.9, 1.5),
    "rtx2060": (27.1, 3.6, 1.2),
    "rtx2070": (26.9, 4.0, 1.3),
    "rtx2080": (37.1, 5.4, 1.8),
    "rtx2080-super": (40.1, 5.7, 1.8),
    "rtx2080ti": (53.4, 7.3, 2.4),
    "rtx3060": (25.2, 3.4, 1.1),
    "rtx3060ti": (34.8, 4.7, 1.6),
    "rtx3070": (35.5, 4.8, 1.6),
    "rtx3080": (51.0, 6.9, 2.3),
    "rtx3090": (71.7, 9.6, 3.2),
    "rtx4060": (28.6, 4.0, 1.2),
    "rtx4060ti": (43.0, 5.7, 2.0),
    "rtx4070": (58.8, 7.9, 2.7),
    "rtx4080": (98.3, 13.1, 4.5),
    "rtx4090": (164, 22.0, 7.5),
    "rtx5070": (60.7, 7.8, 2.3),
    "rtx5070ti": (88.2, 11.4, 4.1),
    "rtx5080": (105, 13.6, 4.9),
    "rtx5090": (221, 28.4, 10.0),
    "rtx-6000-ada": (132, 19.2, 6.4),
    "rtx-a4000": (33.3, 2.9, 1.3),
    "rx5700xt": (23.8, 4.1, 1.1),
    "rx6700xt": (32.1, 5.4, 1.4),
    "rx6800xt": (52.4, 8.7, 2.3),
    "rx-vega64": (31.6, 4.6, 1.2),
    "titan-rtx": (64.0, 8.7, 2.8),
    "v100-sxm2": (55.7, 7.6, 2.4),
}

_BODIES = {  # Bodies, and milliseconds of a step
    "a100-pcie-80gb": (110592, 17.8296),
    "gtx1060-3gb": (9216, 0.7874),
    "gtx1070": (15360, 1.1949),
    "gtx1080": (256000, 236.4),
    "gtx1650-super": (20480, 3.0007),
    "rtx2060": (30720, 6.2380),
    "rtx2070": (36864, 6.7554),
    "rtx3060ti": (38912, 3.3305),
    "rtx3070": (47104, 3.7394),
    "rtx3080": (69632, 5.6990),
    "rtx4080-laptop": (1000192, 1408.7),
    "rtx4090": (131072, 7.5182),
    "v100-sxm2": (1000192, 1870.2),
}
_BODIES_FP64 = {"a100-sxm-40gb": (512000, 1057.08)}

_POSES, _ATOMS = 65536, 12
_DOCKING = {
    (1, 4): 100.94,
    (1, 32): 14.902,
    (1, 128): 14.926,
    (2, 32): 11.137,
    (4, 4): 41.36,
    (4, 32): 10.518,
}

_N, _SIDE, _CUBE, _ZONES = 1 << 23, 2897, 204, 203
_LOOPS = {  # Microseconds on a V100
    "daxpy": 241.4,
    "daxpy_atomic": 243.6,
    "copy8": 1314.7,
    "roots": 525.8,
    "state": 329.2,
    "planck": 406.1,
    "fir": 173.7,
    "differences": 2306.8,
    "nodes": 549.8,
    "pi_atomic": 17429.2,
    "rows_by_vector": 792.0,
    "jacobi": 181.5,
    "heat3": 190.7,
    "shortest": 181.3,
}

_OF_RODINIA = ("gtx970", "gtx980", "gtx-titanx", "p100-pcie-16gb", "gtx-titan", "k20c", "k40c")
_RODINIA: Mapping[str, tuple[float | None, ...]] = {  # Microseconds by device, in their order
    "forward-65536": (206.4, 174.0, 135.2, 58.0, None, None, None),
    "adjust-65536": (308.7, 259.0, 256.8, 45.0, 277.6, 338.1, 346.0),
    "hotspot-128": (20.2, 18.0, 14.2, 4.0, 9.3, 11.6, 10.5),
    "hotspot-1024": (996.2, 811.5, 602.4, 127.0, 387.8, 495.1, 426.7),
    "perimeter-65": (None, 23.0, None, 22.0, 62.1, 74.3, 60.6),
    "perimeter-495": (None, 78.0, None, 29.0, 178.6, 213.4, 184.1),
}


def cases(folder: Path) -> Iterator[Case]:
    """The launches."""
    for column, (name, (kernel, kind)) in enumerate(_HASHES.items()):
        of_hash = {device: rates[column] for device, rates in _HASH_RATES.items()}
        arguments = [buffer(kind, 16 * _CANDIDATES), buffer(kind, _FIRSTS), {"type": kind, "value": 1}]
        arguments += [buffer("uint", 1), value(_FIRSTS)]
        yield _case(name, kernel, _CANDIDATES // 256, 256, arguments, times(_CANDIDATES * _FIRSTS, of_hash))
    for kind, by_device in (("float", _BODIES), ("double", _BODIES_FP64)):
        for device, (n, ms) in by_device.items():
            all_tiles, tiles = n // 256, n // 3072
            arguments = [*[buffer(kind, 4 * n)] * 3, *[{"type": kind, "value": 0.1}] * 2, value(tiles)]
            taken = {device: ms * 1e-3 * tiles / all_tiles}
            options = ("-ftz=true",)  # As the sample's Makefile
            name = f"bodies<{kind}>"
            yield _case(f"bodies-{n}", name, all_tiles, 256, arguments, taken, options=options)
    for (poses, group), ms in _DOCKING.items():
        arguments = [value(26), value(_ATOMS), buffer("float", 4 * _ATOMS), buffer("float", 4 * 26)]
        arguments += [
            uniform("float", 6 * _POSES, 0.0, 1.0),
            buffer("float", _POSES),
            buffer("float", 4 * 34),
        ]
        arguments += [value(_POSES)]
        taken = {"a100-sxm-40gb": ms * 1e-3 * _ATOMS / 938}
        grid = _POSES // (poses * group)
        name, options = f"dock<{poses}>", ("-use_fast_math",)  # As bude's CMake file
        yield _case(f"docking-{poses}-{group}", name, grid, group, arguments, taken, options=options)
    yield from _loops(folder)
    for name, each in _RODINIA.items():
        on = {d: us * 1e-6 for d, us in zip(_OF_RODINIA, each, strict=True) if us is not None}
        yield _of_rodinia(name, on)


def _doubles(*lengths: int) -> list[Argument]:
    return [buffer("double", length) for length in lengths]


def _loops(folder: Path) -> Iterator[Case]:
    """Loops of RAJAPerf; a plane of work-items has blocks of 32 x 8."""
    n, half = _N, {"type": "double", "value": 0.5}
    size, side, cube = ({"type": "long", "value": each} for each in (n, _SIDE, _CUBE))
    at = np.arange((_ZONES + 1) ** 3).reshape((_ZONES + 1,) * 3)[:_ZONES, :_ZONES, :_ZONES]
    np.save(folder / "zones.npy", at.ravel())
    zones = {"type": "long", "file": str(folder / "zones.npy")}
    plane, square = (-(-_SIDE // 32), -(-_SIDE // 8)), _SIDE * _SIDE
    inside = (-(-(_CUBE - 2) // 32), -(-(_CUBE - 2) // 8), _CUBE - 2)
    strides = [{"type": "long", "value": each} for each in (_ZONES + 1, (_ZONES + 1) ** 2, _ZONES**3)]
    coefficients = [uniform("double", n, low, high) for low, high in ((0.5, 1.0), (0.5, 3.0), (0.5, 1.0))]
    launches: Mapping[str, tuple[Size, Size, list[Argument]]] = {
        "daxpy": (n // 256, 256, [*_doubles(n, n), half, size]),
        "daxpy_atomic": (n // 256, 256, [*_doubles(n, n), half, size]),
        "copy8": (n // 256, 256, [*_doubles(8 * n, 8 * n), size]),
        "roots": (n // 256, 256, [*coefficients, *_doubles(n, n), size]),
        "state": (n // 256, 256, [*_doubles(n, n, n, n + 8), half, half, half, size]),
        "planck": (n // 256, 256, [*_doubles(n, n, n, n, n), size]),
        "fir": (n // 256, 256, [*_doubles(n, n + 16), size]),
        "differences": (n // 256, 256, [*_doubles(14 * n, 14 * n), size]),
        "nodes": (
            -(-(_ZONES**3) // 256),
            256,
            [*_doubles((_ZONES + 2) ** 3, int(at.max()) + 1), zones, *strides],
        ),
        "pi_atomic": (n // 256, 256, [half, *_doubles(1), size]),
        "rows_by_vector": (
            -(-_SIDE // 256),
            256,
            [*_doubles(square, square, _SIDE, _SIDE), half, half, side],
        ),
        "jacobi": (plane, (32, 8), [*_doubles(square, square), side]),
        "heat3": (inside, (32, 8), [*_doubles(_CUBE**3, _CUBE**3), cube]),
        "shortest": (plane, (32, 8), [*_doubles(square, square), {"type": "long", "value": 1448}, side]),
    }
    for kernel, (grid, block, arguments) in launches.items():
        group = kernel if kernel in ("nodes", "pi_atomic", "rows_by_vector") else "loops"
        yield _case(f"{group}-{kernel}", kernel, grid, block, arguments, {"v100-sxm2": _LOOPS[kernel] * 1e-6})


def _of_rodinia(name: str, on: Mapping[str, float]) -> Case:
    """A kernel of Rodinia at a size, with its times."""
    kind, _, number = name.partition("-")
    n = int(number)
    floats = partial(buffer, "float")
    if kind == "hotspot":
        numbers = [{"type": "float", "value": each} for each in (0.5, 1.0, 1.0, 10.0, 0.001)]
        arguments = [value(2), *[floats(n * n)] * 3, value(n), value(n), *numbers]
        return _case(name, "hot_spot", (-(-n // 12), -(-n // 12)), (16, 16), arguments, on)
    if kind == "perimeter":
        side = 2048 if n < 100 else 8192
        return _case(name, "perimeter", n, 32, [floats(side**2), value(side), value(side - 16 * (n + 1))], on)
    nodes, weights = floats(n + 1), floats(17 * (n + 1))
    if kind == "forward":
        return _case(
            name, "layer_forward", (1, n // 16), (16, 16), [nodes, weights, floats(16 * n), value(16)], on
        )
    arguments = [floats(17), value(16), nodes, weights, weights]
    return _case(name, "adjust_weights", (1, n // 16), (16, 16), arguments, on)


if __name__ == "__main__":
    sys.exit(run(__doc__, cases))
