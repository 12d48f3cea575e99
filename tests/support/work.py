"""Made-up kernels whose times are sums of what their work costs on a CPU and a GPU."""

import numpy as np

from crosscast.arrays import Reals
from crosscast.prediction.relative import Observations, Vectors

DEVICES = ("cpu", "gpu")
NAMES = ("Bytes/Rep", "Flops/Rep", "Iterations/Rep", "Kernels/Rep", "topdown.memory_bound")
PRICES = np.array([[2e-7, 5e-6], [1e-10, 1e-12], [5e-10, 2e-13], [1e-9, 2e-8]])
"""Seconds for a launch, a byte, an operation, and a byte of one item in each launch."""


def made_work(kernels: int = 10, sizes: int = 4, *, noise: float = 0.0, seed: int = 1) -> Vectors:
    """Runs that were counted on the CPU."""
    rng = np.random.default_rng(seed)
    rows = kernels * sizes
    per_item = np.repeat(10 ** rng.uniform(0, 3, (kernels, 2)), sizes, axis=0)
    launches = np.repeat(rng.integers(1, 30, kernels), sizes).astype(np.float64)
    items = 10 ** rng.uniform(1, 7, rows)
    moved, done = items * per_item[:, 0], items * per_item[:, 1]
    terms = np.column_stack([launches, moved, done, launches * moved / items])
    times_s = terms @ PRICES * np.exp(rng.normal(0, noise, (rows, len(DEVICES))))
    kernel = tuple(f"kernel{row // sizes}" for row in range(rows))
    size = tuple(f"size{row % sizes}" for row in range(rows))
    observations = Observations(
        tuple(f"app{row // sizes % 3}" for row in range(rows)),
        kernel,
        size,
        size,
        ("cpu",) * rows,
        NAMES,
        np.column_stack([moved, done, items, launches, rng.uniform(0, 1, rows)]),
        (),
        np.empty((rows, 0)),
        times_s[:, 0],
    )
    return Vectors(observations, DEVICES, times_s)


def changed(observations: Observations, **counters: float | Reals) -> Observations:
    """The same with other values of counters, by their first words in small letters."""
    table = observations.counters.copy()
    for key, values in counters.items():
        (place,) = [at for at, name in enumerate(observations.names) if name.lower().startswith(key)]
        table[:, place] = values
    return Observations(**{**vars(observations), "counters": table})
