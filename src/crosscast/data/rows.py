"""Types of the rows that measurements add to the tables of sessions, records and energy: cells by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

__all__ = ["EnergyRow", "RecordRow", "SessionKey", "SessionRow"]


class SessionKey(TypedDict):
    """Key of a session, which is one measuring process."""

    application: str
    size: str
    device: str
    configuration: str
    repeat: int


class SessionRow(SessionKey, total=False):
    """Row of the table of sessions."""

    kernels: str
    failure: str
    started_s: float
    warmups: int
    runs: int
    loop_s: float
    working_set_bytes: int
    parameters: str
    seed: int | None
    source_sha256: str
    timer_resolution_s: float
    clock_before_hz: float | None
    clock_after_hz: float | None
    load_before: float | None
    load_after: float | None
    counters: str | None
    environment: str


class RecordRow(SessionKey, total=False):
    """Row of the table of records."""

    kernel: str
    run: int
    invocations: int
    time_s: Sequence[float]
    transfer_s: float
    host_s: float
    started_s: float


class EnergyRow(SessionKey, total=False):
    """Row of the table of energy."""

    sensor: str | None
    domain: str
    energy_j: float
    duration_s: float
    runs: int
    samples: int
    times_s: Sequence[float]
    energies_j: Sequence[float]
