"""Made-up kernels on a machine with two power caps: each is bound by one domain, or by both."""

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.configuration import Configuration
from crosscast.data.dataset import Dataset
from crosscast.data.schema import json_text
from crosscast.prediction.configuration import ConfigurationSpace, KernelAt, Surfaces
from crosscast.prediction.configuration.gaussian_process import Covariance
from support import tables

CPU_CAPS = (60.0, 80.0, 100.0)
GPU_CAPS = (100.0, 150.0, 200.0, 250.0)


def made_space() -> ConfigurationSpace:
    return ConfigurationSpace(
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
    times, cpus, gpus, stalls = (list[Reals]() for _ in range(4))
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
            stalls.append(np.full(len(space), 0.7 if on_cpu else 0.2))
    return Surfaces(
        "made up",
        tuple(kernels),
        space,
        np.array(times),
        np.array(cpus) + np.array(gpus),
        {"cpu": np.array(cpus), "gpu": np.array(gpus)},
        {"stalls": np.array(stalls)},
    )


def configured_dataset(*machines: Surfaces) -> Dataset:
    """A dataset with one run of each kernel at each configuration, and the energy of each domain."""
    records, energies = [], []
    for surfaces in machines:
        for row, kernel in enumerate(surfaces.kernels):
            for number in np.flatnonzero(surfaces.known[row]).tolist():
                configuration = surfaces.space.configurations[number]
                at = {
                    "application": kernel.application,
                    "size": kernel.size,
                    "device": configuration.device,
                    "configuration": json_text(dict(configuration.settings)),
                    "repeat": 0,
                    "run": 0,
                }
                time_s = float(surfaces.time_s[row, number])
                records.append({**at, "kernel": kernel.kernel, "time_s": [time_s], "invocations": 1})
                domains = surfaces.domains or {"gpu": surfaces.power_w}
                at |= {"sensor": "made", "duration_s": time_s, "runs": 1}
                energies += [
                    {**at, "domain": domain, "energy_j": float(power[row, number]) * time_s}
                    for domain, power in domains.items()
                ]
    devices = sorted({str(record["device"]) for record in records})
    rows = [tables.device(key, type="node") for key in devices]
    return tables.dataset(devices=rows, records=records, energy=energies)


FEATURES = 2


def made_covariance(*, own: float = 0.2, noise: float = 0.05) -> Covariance:
    return Covariance(np.array([1.5, 3.0, 0.8, 2.0]), 1.3, np.array([0.7, 1.2]), own, noise)


def made_points(kernels: int = 4, settings: int = 6, seed: int = 0) -> tuple[Reals, Integers]:
    """Points ``(n, 4)`` of kernels with two features, at the same settings each, and their kernels."""
    rng = np.random.default_rng(seed)
    features, places = rng.normal(size=(kernels, FEATURES)), rng.normal(size=(settings, 2))
    points = np.hstack([np.repeat(features, settings, axis=0), np.tile(places, (kernels, 1))])
    return points, np.repeat(np.arange(kernels), settings)
