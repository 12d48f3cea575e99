"""Made-up devices of a few makers, and times that follow from what describes them."""

import numpy as np
from made_grids import profiles_of

from crosscast.arrays import Reals
from crosscast.device import Device
from crosscast.predict.time.data import Grid

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
    log_time = kin_times(devices, len(profiles))
    return Grid(
        profiles, tuple(devices), log_time, np.full(log_time.shape, 0.02), np.full(log_time.shape, 10)
    )
