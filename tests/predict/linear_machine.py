"""Made-up kernels of two kinds on two devices, whose performance and power are linear in the settings."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Reals
from crosscast.configuration import Configuration
from crosscast.predict.configuration.data import KernelAt, Space, Surfaces

CLOCKS = (1e9, 2e9, 3e9)
THREADS = (1.0, 2.0, 4.0)


def linear_space() -> Space:
    cpu = [Configuration("cpu", {"clock_hz": c, "threads": t}) for c in CLOCKS for t in THREADS]
    return Space((*cpu, *(Configuration("gpu", {"clock_hz": c}) for c in CLOCKS)))


def linear_samples(space: Space) -> tuple[int, int]:
    """All of each device."""
    return (
        space.number_of(Configuration("cpu", {"clock_hz": 3e9, "threads": 4.0})),
        space.number_of(Configuration("gpu", {"clock_hz": 3e9})),
    )


def linear_surfaces(applications: int = 6) -> Surfaces:
    """Even applications gain by clocks and pay for threads, odd ones the other way round.

    The GPU is slow and frugal for even ones, fast and costly for odd ones: so their frontiers have other
    orders. Within a kind only the amount of work differs. Counter ``stalls`` tells the kinds apart.
    """
    space = linear_space()
    clock = np.array([each.settings["clock_hz"] for each in space.configurations], np.float64) / 1e9
    threads = np.array([each.settings.get("threads", 0.0) for each in space.configurations], np.float64)
    on_gpu = np.array([each.device == "gpu" for each in space.configurations])
    kernels, times, powers, stalls = [], list[Reals](), list[Reals](), list[Reals]()
    for number in range(applications):
        odd = number % 2 == 1
        speed = 0.1 * clock + threads + 0.3 * clock * threads if odd else clock + 0.1 * threads
        watts = 10 + 9 * clock + threads if odd else 10 + clock + 9 * threads + 0.5 * clock * threads
        speed = np.where(on_gpu, (20 if odd else 0.1) * clock, speed)
        watts = np.where(on_gpu, (100 if odd else 4) + 2 * clock, watts)
        kernels.append(KernelAt(f"app{number}", f"app{number}", "only"))
        times.append((1.0 + number) / speed)
        powers.append(watts)
        stalls.append(np.full(len(space), 0.7 if odd else 0.2))
    return Surfaces(
        "linear", tuple(kernels), space, np.array(times), np.array(powers), {}, {"stalls": np.array(stalls)}
    )
