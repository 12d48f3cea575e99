"""Made-up kernels on a machine with two power caps: each is bound by one domain, or by both."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Reals
from crosscast.configuration import Configuration
from crosscast.predict.configuration.data import KernelAt, Space, Surfaces

CPU_CAPS = (60.0, 80.0, 100.0)
GPU_CAPS = (100.0, 150.0, 200.0, 250.0)


def made_space() -> Space:
    return Space(
        tuple(Configuration("node", {"cpu_cap_w": c, "gpu_cap_w": g}) for c in CPU_CAPS for g in GPU_CAPS)
    )


def made_surfaces(applications: int = 6, *, noise: float = 0.0, seed: int = 0) -> Surfaces:
    """Two sizes of each application; even ones wait for the CPU, odd ones for the GPU.

    Time grows as the demand of the domain that binds exceeds its cap; a domain takes what it demands, up to
    its cap. Counter ``stalls`` tells the two kinds apart.
    """
    space = made_space()
    rng = np.random.default_rng(seed)
    caps = space.matrix
    kernels: list[KernelAt] = []
    times: list[Reals] = []
    powers: list[Reals] = []
    cpus: list[Reals] = []
    gpus: list[Reals] = []
    stalls: list[Reals] = []
    for number in range(applications):
        on_cpu = number % 2 == 0
        for size, scale in (("big", 1.0), ("small", 0.2)):
            kernels.append(KernelAt(f"app{number}", f"app{number}", size))
            gpu = (80.0 if on_cpu else 230.0) * (1 - 0.02 * number) * (0.9 + 0.1 * scale)
            share = 0.9 if on_cpu else 0.1
            cpu_slow = np.maximum(95 / caps[:, 0], 1) ** 1.5
            gpu_slow = np.maximum(gpu / caps[:, 1], 1) ** 0.7
            wobble = np.exp(noise * rng.standard_normal((3, len(space))))
            cpus.append(np.minimum(caps[:, 0], 92.0) * wobble[0])
            gpus.append(np.minimum(caps[:, 1] * 0.97, gpu) * wobble[1])
            times.append(10 * scale * (1 + number) * (share * cpu_slow + (1 - share) * gpu_slow) * wobble[2])
            powers.append(cpus[-1] + gpus[-1])
            stalls.append(np.full(len(space), 0.7 if on_cpu else 0.2))
    return Surfaces(
        "made up",
        tuple(kernels),
        space,
        np.array(times),
        np.array(powers),
        {"cpu": np.array(cpus), "gpu": np.array(gpus)},
        {"stalls": np.array(stalls)},
    )
