"""A sweep: small kernels on each number of threads, for a model that is to choose that number under a cap.

``python examples/sweep.py HISTORY.jsonl [SENSORS]`` appends each run to the history. Put your own kernels in
`KERNELS` (three programs at least, better a dozen that are unlike) and your own knobs in `configurations`;
caps and clocks have to be set before a run, as `crosscast.profiled` does with its argument ``apply``. Then:

    crosscast dataset import runs HISTORY.jsonl --out mine/
    crosscast train configuration mine/ --out model/

SENSORS are as `crosscast.profiled` knows them, ``auto`` by default. Without power there is nothing to train.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

import crosscast

Array = npt.NDArray[np.float64]

ELEMENTS = 1 << 20
REPEATS = 5

KERNELS: dict[str, Callable[[Array], object]] = {
    "scale": lambda part: part * 3.0,
    "waves": lambda part: np.sin(part) + np.cos(part),
    "sort": np.sort,
    "transform": np.fft.rfft,
    "sums": np.cumsum,
}
"""Each works on a part of the data; NumPy lets other threads run meanwhile."""


def configurations() -> list[crosscast.Configuration]:
    """All numbers of threads that are powers of two, and that of the processors."""
    most = os.cpu_count() or 1
    counts = sorted({1 << power for power in range(most.bit_length())} | {most})
    return [crosscast.Configuration("machine", {"threads": count}) for count in counts]


def sweep(history: str, sensors: str) -> None:
    """Run each kernel on each configuration, some times in turn."""
    data = np.random.default_rng(0).random(ELEMENTS)
    for configuration in configurations():
        threads = int(configuration.settings["threads"])
        parts = np.array_split(data, 4 * threads)
        with ThreadPoolExecutor(threads) as pool:
            for name, kernel in KERNELS.items():
                list(pool.map(kernel, parts))  # Once before, to warm up.
                region = crosscast.profiled(
                    name, arguments=(data,), history=history, configuration=configuration, sensors=sensors
                )
                for _ in range(REPEATS):
                    with region:
                        list(pool.map(kernel, parts))
        print(f"{configuration}: {len(KERNELS)} kernels, {REPEATS} runs of each")


def main() -> None:
    """Sweep, and say whether the history has what a model needs."""
    path, sensors = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "auto"
    sweep(path, sensors)
    history = crosscast.read_history(path)
    keys, places = history.keys(), configurations()
    known = {(key, run.configuration) for key in keys for run in history.runs(key) if run.power_w is not None}
    lacking = [f"{key.name} on {place}" for key in keys for place in places if (key, place) not in known]
    if not known:
        print("no sensor has told a power, so no model can be trained with this: see docs/sensors.md")
    elif lacking:
        print(f"no power is known yet of {', '.join(lacking)}: sweep again, or take more repeats")
    else:
        print(f"times and powers are in {path}")


if __name__ == "__main__":
    main()
