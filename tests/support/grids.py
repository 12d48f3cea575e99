"""Small grids whose truth is known."""

from collections.abc import Mapping, Sequence

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.configuration import Configuration
from crosscast.device import Device
from crosscast.prediction.configuration import ConfigurationSpace, KernelAt, Surfaces
from crosscast.prediction.time import Grid, ProfileBatch
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


def profiles_of(applications: Sequence[str], kernels: int, seed: int = 0) -> ProfileBatch:
    """Some kernels of each application."""
    names = [name for name in applications for _ in range(kernels)]
    numbers = [str(number % kernels) for number in range(len(names))]
    return ProfileBatch(
        tuple(names),
        tuple(f"{name}{number}" for name, number in zip(names, numbers, strict=True)),
        ("tiny",) * len(names),
        metrics_of(len(names), seed),
    )


def grid_with(profiles: ProfileBatch, log_time: Reals, devices: Sequence[Device] = DEVICES) -> Grid:
    """A grid with these times, each measured ten times."""
    known = tuple(devices[: log_time.shape[1]])
    return Grid(profiles, known, log_time, np.full(log_time.shape, 0.02), np.full(log_time.shape, 10))


def law(profiles: ProfileBatch) -> Reals:
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


_DEFAULTS = {
    "total_instruction_count": 1e5,
    "work_items": 1024.0,
    "work_groups": 16.0,
    "total_memory_footprint": 4096.0,
    "footprint_90": 3000.0,
    "total_reads": 2e4,
    "total_writes": 1e4,
    "mean_simd_width": 1.0,
    "global_memory_address_entropy": 12.0,
    "local_memory_address_entropy_6": 8.0,
    "local_memory_address_entropy_10": 4.0,
}


def small_profiles(n: int, columns: Mapping[str, Reals]) -> ProfileBatch:
    """Profiles of `n` kernels with plausible metrics; named ones get the given columns."""
    metrics = np.stack([columns.get(name, np.full(n, _DEFAULTS.get(name, 2.0))) for name in NAMES], axis=1)
    names = tuple(f"app{row % 4}" for row in range(n))
    return ProfileBatch(names, tuple(f"k{row}" for row in range(n)), ("tiny",) * n, metrics)


def small_grid(n: int = 40, seed: int = 0) -> Grid:
    """A grid of kernels whose time is work on the lanes that a device has, with some noise."""
    rng = np.random.default_rng(seed)
    work, items = np.exp(rng.uniform(8, 18, n)), np.floor(np.exp(rng.uniform(0, 12, n)))
    footprint = np.exp(rng.uniform(5, 14, n))
    columns = {"total_instruction_count": work, "work_items": items, "total_memory_footprint": footprint}
    lanes, rate = 16.0 ** np.arange(1, 4), 1e8 / np.arange(1, 4)
    log_time = np.log(1e-6 + work[:, None] / np.minimum(items[:, None], lanes) / rate)
    log_time += rng.normal(0, 0.05, log_time.shape)
    return grid_of_times(small_profiles(n, columns), log_time)


def grid_of_times(profiles: ProfileBatch, log_time: Reals) -> Grid:
    """A grid of these times on devices ``d0``, ``d1`` and so on."""
    known = np.isfinite(log_time)
    keys = tuple(Device(f"d{place}") for place in range(log_time.shape[1]))
    return Grid(profiles, keys, log_time, np.where(known, 0.1, np.nan), known.astype(np.int64))


CLOCKS = (1e9, 2e9, 3e9)
THREADS = (1.0, 2.0, 4.0)


def linear_space() -> ConfigurationSpace:
    cpu = [Configuration("cpu", {"clock_hz": c, "threads": t}) for c in CLOCKS for t in THREADS]
    return ConfigurationSpace((*cpu, *(Configuration("gpu", {"clock_hz": c}) for c in CLOCKS)))


def linear_samples(space: ConfigurationSpace) -> tuple[int, int]:
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


MAKERS = (("Nvidia", "gpu"), ("AMD", "gpu"), ("Intel", "cpu"))


def kin_devices(each: int = 4) -> list[Device]:
    """Some devices of each maker, of two series."""
    rng = np.random.default_rng(3)
    devices = []
    for vendor, kind in MAKERS:
        for number in range(each):
            peak = (1e12 if kind == "gpu" else 2e11) * float(np.exp(rng.uniform(0, 1.5)))
            clock = (1e9 if kind == "gpu" else 3e9) * float(np.exp(rng.uniform(0, 0.3)))
            numbers = {"peak_flop_per_s": peak, "clock_hz": clock, "bandwidth_bytes_per_s": peak / 20}
            series = f"{vendor} {number % 2}"
            devices.append(Device(f"{vendor}{number}".lower(), vendor, vendor, kind, series, numbers))
    return devices


def kin_times(devices: list[Device], rows: int) -> Reals:
    """Times by maker, kernel and the rates of the device, with a little noise."""
    rng = np.random.default_rng(4)
    kernels, tastes = rng.normal(-7, 2, rows), rng.normal(0, 0.5, (len(MAKERS), rows))
    columns = []
    for device in devices:
        maker = MAKERS.index((device.vendor, device.type))
        rate = np.log(device.numbers["peak_flop_per_s"] * device.numbers["clock_hz"]) / 2
        columns.append(kernels + tastes[maker] - 0.8 * (rate - 24) + rng.normal(0, 0.02, rows))
    return np.stack(columns, axis=1)


def kin_grid() -> Grid:
    """All of them."""
    devices, profiles = kin_devices(), profiles_of("abcdef", 6)
    return grid_with(profiles, kin_times(devices, len(profiles)), devices)
