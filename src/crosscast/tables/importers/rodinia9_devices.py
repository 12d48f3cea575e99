"""The nine GPUs of the Rodinia data, with the source of every number."""

from __future__ import annotations

from typing import Any

from crosscast.tables.importers.configured_runs import device_row

__all__ = ["rodinia9_devices"]

_ORIGIN = "github.com/marcosamaris/gpuperfpredict, R-code/deviceInfo.csv"
_GTX970 = "GeForce GTX 970 (https://en.gamegpu.com/geforce-gtx-9xx-series/geforce-gtx-970)"
_P100 = "NVIDIA Tesla V100: Worlds Advanced Data Center GPU, table 1 (http://www.xenon.com.au/nvidia-tesla-volta-worlds-advanced-data-center-gpu/)"

_COLUMNS = ("name", "series", "cores", "clock_turbo_hz", "l2_bytes", "bandwidth_bytes_per_s")
_OF_ORIGIN: dict[str, tuple[Any, ...]] = {
    "gtx-680": ("GeForce GTX 680", "Kepler", 1536, 1.058e9, 512 * 1024, 192.256e9),
    "gtx-980": ("GeForce GTX 980", "Maxwell", 2048, 1.216e9, 2048 * 1024, 224.32e9),
    "quadro": ("Quadro with 2304 cores", "Kepler", 2304, 0.771e9, 1024 * 1024, 192.256e9),
    "tesla-k20": ("Tesla K20", "Kepler", 2496, 0.706e9, 1024 * 1024, 208e9),
    "tesla-k40": ("Tesla K40", "Kepler", 2880, 0.745e9, 1536 * 1024, 288.384e9),
    "titan": ("GTX Titan", "Kepler", 2688, 0.876e9, 1536 * 1024, 288.384e9),
    "titanx": ("GTX Titan X", "Maxwell", 3072, 1.076e9, 3072 * 1024, 336.48e9),
}


def rodinia9_devices() -> list[dict[str, Any]]:
    """Rows of the table of devices, by their keys in lower case.

    The origin's row of the GTX 970 has the cores and the clock of the Titan X, so that another source stands
    in, and it has no row of the P100.
    """
    kind = {"vendor": "NVIDIA", "type": "gpu"}
    rows = [
        device_row(key, _ORIGIN, **kind, **dict(zip(_COLUMNS, cells, strict=True)))
        for key, cells in _OF_ORIGIN.items()
    ]
    gtx970 = device_row(
        "gtx-970",
        _GTX970,
        **kind,
        name="GeForce GTX 970",
        series="Maxwell",
        cores=1664,
        clock_hz=1.05e9,
        clock_turbo_hz=1.178e9,
    )
    gtx970 |= {"bandwidth_bytes_per_s": 224.32e9}
    gtx970["sources"]["bandwidth_bytes_per_s"] = _ORIGIN
    p100 = device_row(
        "tesla-p100",
        _P100,
        **kind,
        name="Tesla P100",
        series="Pascal",
        compute_units=56,
        cores=3584,
        l2_bytes=4096 * 1024,
    )
    return sorted([*rows, gtx970, p100], key=lambda row: str(row["device"]))
