import json

import dataset_rows as rows
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosscast.data.dataset import Dataset
from crosscast.data.description import describe
from crosscast.data.profiles import PROFILES
from crosscast.data.table import table_of


def test_names_and_counts_are_those_of_the_tables() -> None:
    dataset = rows.dataset(
        devices=[rows.device("gpu"), rows.device()],
        profiles=[rows.profile(), rows.profile(invocation=1), rows.profile("k", application="b")],
        records=[rows.record(), rows.record(1), rows.record(size="small"), rows.record(device="gpu")],
        energies=[rows.energy()],
        sessions=[rows.session(application="c", size="large", kernels=["x", "y"])],
    )
    found = describe(dataset).to_dict()
    assert found["applications"] == ["b", "c", "sums"]
    assert found["kernels"] == ["b/k", "c/x", "c/y", "sums/sum"]
    assert found["sizes"] == ["tiny", "small", "large"]
    assert found["devices"] == ["cpu", "gpu"]
    counts = {name: found[name] for name in ("cells", "profiles", "records", "energy", "sessions")}
    assert found["repeats"] == 1
    assert counts == {"cells": 3, "profiles": 3, "records": 4, "energy": 1, "sessions": 1}


def test_everything_can_be_printed_as_json() -> None:
    dataset = rows.dataset(
        profiles=[rows.profile()],
        records=[rows.record(configuration='{"cores": 1}'), rows.record(repeat=1)],
        sessions=[rows.session(failure="wrong result")],
    )
    found = describe(dataset).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_session_that_failed_says_where_and_why() -> None:
    dataset = rows.dataset(
        records=[rows.record()],
        sessions=[rows.session(failure="sum is 3, expected 4"), rows.session(repeat=1)],
    )
    found = describe(dataset).to_dict()
    where = {"application": "sums", "size": "tiny", "device": "cpu", "configuration": {}, "repeat": 0}
    assert found["failed"] == [{**where, "reason": "sum is 3, expected 4"}]
    assert (found["cells"], found["records"]) == (0, 1)
    assert ("sum", "tiny", "cpu", "records") in [
        (m["kernel"], m["size"], m["device"], m["lacks"]) for m in found["missing"]
    ]


def test_what_the_full_grid_lacks_is_missing() -> None:
    dataset = rows.dataset(
        devices=[rows.device(), rows.device("gpu")],
        profiles=[rows.profile(), rows.profile(size="small")],
        records=[rows.record(), rows.record(device="gpu"), rows.record(kernel="other", size="small")],
    )
    found = [(m.kernel, m.size, m.device, m.lacks) for m in describe(dataset).missing]
    assert found == [
        ("other", "tiny", None, "profile"),
        ("other", "tiny", "cpu", "records"),
        ("other", "tiny", "gpu", "records"),
        ("other", "small", None, "profile"),
        ("other", "small", "gpu", "records"),
        ("sum", "small", "cpu", "records"),
        ("sum", "small", "gpu", "records"),
    ]


def test_a_size_that_is_a_kernels_own_is_not_missing_of_others() -> None:
    dataset = rows.dataset(
        devices=[rows.device(), rows.device("gpu")],
        records=[rows.record(kernel="long", size="4096x4"), rows.record(kernel="square", size="64x64")],
        sessions=[rows.session(size="128x128", kernels=["square"], device="gpu", failure="out of memory")],
    )
    found = describe(dataset)
    assert found.kernel_sizes == {"sums/long": ("4096x4",), "sums/square": ("128x128", "64x64")}
    assert [(m.kernel, m.size, m.device) for m in found.missing if m.lacks == "records"] == [
        ("long", "4096x4", "gpu"),
        ("square", "128x128", "cpu"),
        ("square", "128x128", "gpu"),
        ("square", "64x64", "gpu"),
    ]


def test_repeats_are_processes_of_the_same_work() -> None:
    kernels = [(kernel, repeat) for repeat, kernel in enumerate(["a", "a", "b", "b", "b", "c"])]
    dataset = rows.dataset(
        records=[rows.record(repeat=repeat, kernel=kernel) for kernel, repeat in kernels],
        sessions=[rows.session(repeat=repeat, kernels=[kernel]) for kernel, repeat in kernels],
    )
    assert describe(dataset).repeats == 3


def test_sessions_that_left_no_records_are_repeats_too() -> None:
    sessions = [rows.session(repeat=repeat, failure="wrong result") for repeat in range(2)]
    assert describe(rows.dataset(sessions=sessions)).repeats == 2
    assert describe(rows.dataset(profiles=[rows.profile()])).repeats == 0


def test_the_noise_of_a_cell_is_its_spread_and_quartiles() -> None:
    records = [rows.record(run, [time]) for run, time in enumerate([1.0, 2.0, 3.0, 4.0])]
    (noise,) = describe(rows.dataset(records=records)).noise
    assert noise.runs == 4
    assert noise.relative_sd == pytest.approx(np.std([1, 2, 3, 4], ddof=1) / 2.5)
    assert noise.quartiles_s == (1.75, 2.5, 3.25)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=3))
def test_noise_is_a_number_or_absent(times: list[float]) -> None:
    dataset = rows.dataset(records=[rows.record(run, [value]) for run, value in enumerate(times)])
    (noise,) = describe(dataset).noise
    known = len(times) > 1 and any(times)
    assert (noise.relative_sd is not None) == known
    json.dumps(describe(dataset).to_dict(), allow_nan=False)


def test_warnings_are_those_of_records_and_sessions() -> None:
    found = describe(rows.dataset(records=[rows.record()], sessions=[rows.session(load_after=2.0, runs=1)]))
    assert [warning.rule for warning in found.warnings] == ["load", "runs"]


def test_notes_are_shown_by_table() -> None:
    profiles = table_of(PROFILES, [rows.profile()], {"origin": "made up"})
    assert describe(Dataset("x", profiles=profiles)).to_dict()["notes"] == {"profiles": {"origin": "made up"}}


def test_a_kernel_outside_a_suite_goes_by_its_own_name() -> None:
    dataset = rows.dataset(devices=[], profiles=[rows.profile(application=None, size=None)])
    found = describe(dataset)
    assert (found.applications, found.kernels, found.sizes) == ((), ("sum",), ())
    assert found.missing == ()
