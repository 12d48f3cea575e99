"""Rows of a small made-up dataset, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosscast.data.dataset import Dataset
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import BAGS, DEVICES, ENERGY, RECORDS, SESSIONS, SOLOS
from crosscast.data.table import table_of

Row = dict[str, Any]
PIECE = {"application": "sums", "size": "tiny", "device": "cpu", "configuration": "{}", "repeat": 0}


def device(key: str = "cpu", **cells: Any) -> Row:
    return {"device": key, "name": f"the {key}", "type": "cpu", "sources": {}, **cells}


def profile(kernel: str = "sum", invocation: int = 0, **cells: Any) -> Row:
    return {"application": "sums", "size": "tiny", "kernel": kernel, "invocation": invocation, **cells}


def record(run: int = 0, time_s: Sequence[float] = (1e-3,), **cells: Any) -> Row:
    times = list(time_s)
    row = {**PIECE, "kernel": "sum", "run": run, "time_s": times, "invocations": len(times)}
    return row | cells


def energy(**cells: Any) -> Row:
    return {**PIECE, "sensor": "rapl", "domain": "package-0", "energy_j": 2.0, "runs": 50, **cells}


def session(**cells: Any) -> Row:
    return {**PIECE, "kernels": ["sum"], "runs": 50, "loop_s": 3.0, **cells}


def solo(application: str = "sums", **cells: Any) -> Row:
    row = {"application": application, "size": "tiny", "device": "cpu", "configuration": "{}"}
    return {**row, "time_s": 0.5, "runs": 4, "features": {"ipc": 1.5}, **cells}


def bag(*slowdowns: float | None, name: str = "pair", **cells: Any) -> list[Row]:
    """Rows of a bag: as many applications as slowdowns."""
    row = {"bag": name, "size": "tiny", "device": "cpu", "configuration": "{}", "repeat": 0}
    return [
        {**row, "position": place, "application": "sums", "slowdown": slowdown, **cells}
        for place, slowdown in enumerate(slowdowns)
    ]


def dataset(
    *,
    devices: Sequence[Row] | None = None,
    profiles: Sequence[Row] = (),
    records: Sequence[Row] = (),
    energies: Sequence[Row] = (),
    sessions: Sequence[Row] = (),
    solos: Sequence[Row] = (),
    bags: Sequence[Row] = (),
) -> Dataset:
    return Dataset(
        "made up",
        table_of(DEVICES, [device()] if devices is None else devices),
        table_of(PROFILES, profiles),
        table_of(RECORDS, records),
        table_of(ENERGY, energies),
        table_of(SESSIONS, sessions),
        table_of(SOLOS, solos),
        table_of(BAGS, bags),
    )
