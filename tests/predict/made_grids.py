"""Small grids whose truth is known."""

from collections.abc import Sequence

import numpy as np

from crosscast.arrays import Reals
from crosscast.device import Device
from crosscast.predict.time.data import Grid, Profiles
from crosscast.profile import METRICS

DEVICES = (
    Device("big", "Big", "Nvidia", "gpu"),
    Device("bigger", "Bigger", "Nvidia", "gpu"),
    Device("red", "Red", "AMD", "gpu"),
    Device("host", "Host", "Intel", "cpu"),
)
NAMES = [each.name for each in METRICS]


def metrics_of(rows: int, seed: int) -> Reals:
    """Metrics of made-up kernels that fit together."""
    rng = np.random.default_rng(seed)
    values = np.full((rows, len(METRICS)), np.nan)

    def put(name: str, column: Reals) -> None:
        values[:, NAMES.index(name)] = column

    items = np.exp(rng.uniform(2, 14, rows))
    per_item = np.exp(rng.uniform(2, 7, rows))
    addresses = items * np.exp(rng.uniform(-1, 2, rows))
    entropy = np.log2(addresses)
    put("work_items", items)
    put("total_instruction_count", items * per_item)
    put("max_itb", per_item * np.exp(rng.uniform(0, 1, rows)))
    put("total_barriers_hit", items * rng.integers(0, 3, rows))
    put("total_memory_footprint", addresses * 1.1)
    put("footprint_90", addresses)
    put("opcode", rng.integers(6, 16, rows).astype(np.float64))
    put("unique_branches", rng.integers(0, 9, rows).astype(np.float64))
    put("global_memory_address_entropy", entropy)
    for bits in range(1, 11):
        put(f"local_memory_address_entropy_{bits}", np.maximum(entropy - max(bits - 2, 0), 0))
    return values


def profiles_of(applications: Sequence[str], kernels: int, seed: int = 0) -> Profiles:
    """Some kernels of each application."""
    names = [name for name in applications for _ in range(kernels)]
    numbers = [str(number % kernels) for number in range(len(names))]
    return Profiles(
        tuple(names),
        tuple(f"{name}{number}" for name, number in zip(names, numbers, strict=True)),
        ("tiny",) * len(names),
        metrics_of(len(names), seed),
    )


def grid_with(profiles: Profiles, log_time: Reals) -> Grid:
    """A grid with these times, each measured ten times."""
    return Grid(
        profiles,
        DEVICES[: log_time.shape[1]],
        log_time,
        np.full(log_time.shape, 0.02),
        np.full(log_time.shape, 10),
    )


def law(profiles: Profiles) -> Reals:
    """Times that follow from the metrics: a launch, and instructions at a rate of each device."""
    instructions = profiles.metrics[:, NAMES.index("total_instruction_count")]
    launches, rates = np.array([1e-5, 9e-6, 3e-5, 4e-6]), np.array([2e12, 3e12, 1e12, 5e10])
    times: Reals = np.log(launches + instructions[:, None] / rates)
    return times


def lawful_grid() -> Grid:
    """Times that the physical model can tell."""
    profiles = profiles_of("abcdef", 8)
    return grid_with(profiles, law(profiles))


def noisy_grid() -> Grid:
    """The same with an error of each kernel that all devices share, and one of each cell."""
    lawful = lawful_grid()
    rng = np.random.default_rng(7)
    n, d = lawful.log_time.shape
    return grid_with(
        lawful.profiles, lawful.log_time + rng.normal(0, 0.4, (n, 1)) + rng.normal(0, 0.1, (n, d))
    )
