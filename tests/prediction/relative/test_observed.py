"""Runs of datasets as observations and vectors: scales, counters, devices, and what cannot be compared."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Flags
from crosscast.data.configuration import Setting
from crosscast.data.dataset import Dataset, validate
from crosscast.data.schema import json_text
from crosscast.prediction.relative import Vectors
from crosscast.prediction.relative.observed import (
    devices_left_out,
    full_devices,
    observations_of,
    scale_of,
    vectors_of,
)
from support.refusals import refusal
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


@pytest.mark.parametrize(
    ("settings", "scale"),
    [
        ({}, "big"),
        ({"clock_hz": 1e9, "compiler": "gcc"}, "big"),
        ({"cores": 4.0}, "4 cores"),
        ({"cores": 36.0, "nodes": 2.0}, "2 nodes, 36 cores"),
        ({"nodes": "all"}, "all nodes"),
        ({"scale": "one node", "nodes": 1.0}, "one node"),
        ({"scale": 2.5}, "2.5"),
    ],
)
def test_the_first_that_is_known_is_the_scale(settings: dict[str, Setting], scale: str) -> None:
    assert scale_of(settings, "big") == scale


def test_counters_are_those_of_a_run_of_each_kernel_of_a_session() -> None:
    seen = observations_of(dataset_of_runs([run("cpu", 1.0, runs=4, counters={"loads": 20, "stores": 2})]))
    assert (seen.names, seen.counters.tolist()) == (("loads", "stores"), [[5, 0.5]])
    seen = observations_of(dataset_of_runs([run("cpu", 1.0, kernels=["sum", "scan"], counters={"loads": 2})]))
    assert (seen.kernel, seen.counters.tolist()) == (("sum", "scan"), [[2], [2]])
    np.testing.assert_array_equal(seen.time_s, [1, np.nan])
    runs = [run("a", 1.0, counters={"loads": None, "ipc": 1}), run("b", 1.0, counters={"loads": 3})]
    np.testing.assert_array_equal(observations_of(dataset_of_runs(runs)).counters, [[1, np.nan], [np.nan, 3]])


def test_settings_that_are_numbers_are_the_configuration() -> None:
    runs = [
        run("cpu", 1.0, settings={"compiler": "gcc", "cores": 4.0, "uses_gpu": 0.0}, counters={"loads": 1}),
        run("gpu", 1.0, settings={"uses_gpu": 1.0, "scale": 2.0}, counters={"loads": 1}),
    ]
    seen = observations_of(dataset_of_runs(runs))
    assert seen.configuration == ("cores", "uses_gpu")
    np.testing.assert_array_equal(seen.settings, [[4, 0], [np.nan, 1]])
    assert seen.scale == ("4 cores", "2")


def test_failed_sessions_and_counters_and_settings_that_are_none_are_refused() -> None:
    many = dataset_of_runs([run("cpu", 1.0, counters={"loads": "many"})])
    assert "sessions: column 'counters' of sums, big, " in refusal(observations_of, many)
    unset = dataset_of_runs([run("cpu", 1.0, settings=NO_SETTINGS, counters=LOADS)])
    assert "cores: expected a finite number or a word" in refusal(observations_of, unset)
    failed = dataset_of_runs([run("cpu", 1.0, failure="wrong", counters=LOADS)])
    none = refusal(observations_of, failed, counters="sessions")
    assert "expected sessions with counters, found none" in none


LOADS = {"loads": 1}
NO_SETTINGS: Any = {"cores": [1]}


def times(known: Flags, devices: list[int]) -> int:
    return len(devices) * int(known[:, devices].all(axis=1).sum())


def nested(rows: list[int], devices: int) -> Flags:
    """Work that the first so many of the devices have, row by row."""
    return np.array([np.arange(devices) < row for row in rows])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=9), st.permutations(range(5)))
def test_of_nested_gaps_no_other_devices_make_a_larger_table(rows: list[int], order: list[int]) -> None:
    known = nested(rows, 5)[:, order]
    chosen = full_devices(known)
    best = max(times(known, list(each)) for k in range(2, 6) for each in combinations(range(5), k))
    assert times(known, chosen) == best if chosen else best == 0


COUNTED: dict[str, Any] = {"counters": {"loads": 5.0}}


def vectors(*runs: Row, **options: Any) -> Vectors:
    return vectors_of(dataset_of_runs(runs), **options)


def test_a_run_has_its_own_time_on_its_source_and_medians_elsewhere() -> None:
    result = vectors(
        run("cpu", 8.0, repeat=0, **COUNTED),
        run("cpu", 10.0, repeat=1, **COUNTED),
        # A session that failed is no run.
        run("cpu", 9.0, repeat=2, failure="wrong result", **COUNTED),
        *(run("gpu", time, repeat=repeat) for repeat, time in enumerate((1.0, 2.0, 6.0))),
    )
    assert result.devices == ("cpu", "gpu")
    assert result.times_s.tolist() == [[8, 2], [10, 2]]
    assert result.vector.tolist() == [[1, 0.25], [1, 0.2]]
    assert result.observations.source == ("cpu", "cpu")
    assert result.observations.time_s.tolist() == [8, 10]


def test_runs_are_compared_at_one_scale() -> None:
    one, two = {"nodes": 1.0}, {"nodes": 2.0}
    result = vectors(
        *(run("a", time, settings=at, **COUNTED) for time, at in ((8.0, one), (5.0, two))),
        *(run("b", time, settings=at) for time, at in ((4.0, one), (1.0, two))),
    )
    assert result.observations.scale == ("1 nodes", "2 nodes")
    assert result.times_s.tolist() == [[8, 4], [5, 1]]
    assert result.observations.configuration == ("nodes",)
    assert result.observations.settings.tolist() == [[1], [2]]


def test_a_device_with_gaps_is_left_out_and_can_be_asked_for() -> None:
    runs = [run(device, 1.0, size=size, **COUNTED) for device in "ab" for size in ("s1", "s2", "s3", "s4")]
    dataset = dataset_of_runs([*runs, run("c", 3.0, size="s1", **COUNTED)])
    vectors = vectors_of(dataset)
    assert (vectors.devices, len(vectors)) == (("a", "b"), 8)
    assert devices_left_out(dataset, vectors) == ("c",)
    chosen = vectors_of(dataset, devices=["c", "a", "b"])
    assert chosen.devices == ("c", "a", "b")
    assert chosen.times_s.tolist() == [[3, 1, 1]] * 3
    assert chosen.observations.source == ("a", "b", "c")
    assert devices_left_out(dataset, chosen) == ()


ONE_RUN, OTHER = run("a", 1.0, **COUNTED), run("b", 1.0)
PAIR, AB = [ONE_RUN, OTHER], ["a", "b"]
ELSEWHERE = [run("b", 1.0, size="small"), run("b", 1.0, kernel="scan")]
SCANS = [run("a", 1.0, kernel="scan"), run("b", 2.0, kernel="scan")]
NOT_TWO = "made up: expected counted work with times on two devices or more, found none (devices with times: "
TWICE = "devices: expected two or more, each once, found"
WITHOUT = "with times on all of a, b, found none"


@pytest.mark.parametrize(
    ("runs", "devices", "sources", "sentence"),
    [
        ([ONE_RUN, *ELSEWHERE], None, None, f"{NOT_TWO}a, b)"),
        ([ONE_RUN], None, None, f"{NOT_TWO}a)"),
        ([OTHER], None, None, "made up: expected profiles or sessions with counters, found neither"),
        (PAIR, ["a"], None, f"{TWICE} a"),
        (PAIR, ["a", "b", "a"], None, f"{TWICE} a, b, a"),
        (PAIR, [], None, f"{TWICE} none"),
        (PAIR, ["a", "x"], None, "devices: expected some of those with times in made up (a, b), found 'x'"),
        (PAIR, None, ["b"], "sources: expected some of those with counters in made up (a), found 'b'"),
        ([run(key, 1.0, size=key, **COUNTED) for key in AB], AB, None, f"work counted {WITHOUT}"),
        ([ONE_RUN, *SCANS], AB, None, f"work counted {WITHOUT}"),
        ([*PAIR, run("c", 1.0, size="s", **COUNTED)], None, ["c"], f"work counted on c {WITHOUT}"),
        ([ONE_RUN, run("b", 0.0)], None, None, "times above 0, found 0 for sums, sum, big on b"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    runs: list[Row], devices: list[str] | None, sources: list[str] | None, sentence: str
) -> None:
    assert refusal(vectors, *runs, devices=devices, sources=sources).endswith(sentence)
