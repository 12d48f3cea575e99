"""Made-up datasets of runs with counters, for tests of relative performance."""

from collections.abc import Mapping, Sequence
from typing import Any

from crosscast.data.dataset import Dataset, validate
from crosscast.data.schema import json_text
from support.tables import Row, dataset, device


def run(
    device: str,
    time_s: float,
    *,
    kernel: str = "sum",
    size: str = "big",
    repeat: int = 0,
    settings: Mapping[str, float | str] | None = None,
    **session: Any,
) -> Row:
    """A run of one kernel, with what its session has, such as `counters` and `runs`."""
    place = {"application": "sums", "size": size, "device": device, "repeat": repeat}
    configuration = json_text(dict(settings or {}))
    return {**place, "configuration": configuration, "kernel": kernel, "time_s": time_s, "session": session}


def dataset_of_runs(runs: Sequence[Row]) -> Dataset:
    """A record for each run, and a session for each that has one."""
    keys = sorted({each["device"] for each in runs})
    names = ("application", "size", "device", "configuration", "repeat")
    places = [({name: each[name] for name in names}, each) for each in runs]
    found = dataset(
        devices=[device(key, type="gpu") for key in keys],
        records=[{**at, "kernel": r["kernel"], "run": 0, "time_s": [r["time_s"]]} for at, r in places],
        sessions=[{**at, "kernels": [r["kernel"]], **r["session"]} for at, r in places if r["session"]],
    )
    validate(found)
    return found
