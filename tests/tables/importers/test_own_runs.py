"""From one's own runs to a dataset: repeats, powers, and what cannot be compared."""

import json
import math
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosscast.configuration import Configuration
from crosscast.data.dataset import Dataset, read_dataset, validate, write_dataset
from crosscast.data.schema import json_text
from crosscast.data.sources.runs import FoundRuns, OwnRun, dataset_of_own
from crosscast.data.table import notes_of
from crosscast.data.views import configured
from crosscast.errors import InputError


def run(
    power_w: float | None = 40.0, *, threads: float = 1, device: str = "machine", **changed: Any
) -> OwnRun:
    parts: dict[str, Any] = {"application": "sort", "kernel": "sort", "size": "big", "time_s": 2.0}
    parts |= {"power_w": power_w, "domains_w": {}, "counters": {}, "where": "f, line 2"}
    configuration = Configuration(device, {"threads": threads})
    return OwnRun(**(parts | {"configuration": configuration} | changed))


def made(*runs: OwnRun, **rest: Any) -> tuple[Dataset, tuple[str, ...]]:
    dataset, notes = dataset_of_own("folder/f", {"f": FoundRuns(runs, **rest)})
    validate(dataset)
    return dataset, notes


def cells(*runs: OwnRun) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = configured(made(*runs)[0]).to_pylist()
    return rows


def refusal(*runs: OwnRun, **rest: Any) -> str:
    with pytest.raises(InputError) as caught:
        made(*runs, **rest)
    return str(caught.value)


NAMES = st.sampled_from(["sort", "scan", "fill"])
DRAWN = st.builds(
    run,
    st.floats(1e-3, 1e4),
    threads=st.sampled_from([1, 2, 4]),
    device=st.sampled_from(["cpu", "gpu"]),
    application=NAMES,
    kernel=NAMES,
    size=st.sampled_from(["small", "big"]),
    time_s=st.floats(1e-6, 1e6),
    counters=st.fixed_dictionaries({"cycles": st.floats(0, 1e12)}, optional={"misses": st.floats(-1, 1e9)}),
)


@settings(deadline=None, max_examples=30)
@given(st.lists(DRAWN, min_size=1, max_size=12))
def test_cells_have_the_times_powers_and_counters_of_their_own_runs(runs: list[OwnRun]) -> None:
    own = defaultdict(list)
    for each in runs:
        text = json_text(dict(each.configuration.settings))
        own[each.application, each.kernel, each.size, each.configuration.device, text].append(each)
    found = {
        (row["application"], row["kernel"], row["size"], row["device"], row["configuration"]): row
        for row in cells(*runs)
    }
    assert found.keys() == own.keys()
    for key, of_cell in own.items():
        row = found[key]
        assert row["runs"] == len(of_cell)
        assert row["time_s"] == pytest.approx(median(one.time_s for one in of_cell))
        time_s = math.fsum(one.time_s for one in of_cell)
        energy_j = math.fsum((one.power_w or 0) * one.time_s for one in of_cell)
        assert row["power_w"] == pytest.approx(energy_j / time_s)
        counters = json.loads(row["counters"])
        for name in counters:
            counted = [one.counters[name] for one in of_cell if name in one.counters]
            assert counters[name] == pytest.approx(np.mean(counted))


def test_a_dataset_that_is_stored_is_the_same_when_it_is_read(tmp_path: Path) -> None:
    dataset, _ = made(run(), run(), run(threads=2, domains_w={"cpu": 3.0}))
    write_dataset(dataset, tmp_path)
    assert configured(read_dataset(tmp_path)) == configured(dataset)


def test_repeats_of_a_cell_are_numbered_from_zero() -> None:
    dataset, _ = made(run(), run(), run(threads=2))
    assert sorted(dataset.records.column("repeat").to_pylist()) == [0, 0, 1]
    assert dataset.sessions.column("runs").to_pylist() == [1, 1, 1]


def test_kernels_of_an_application_keep_their_own_powers_and_counters() -> None:
    rows = cells(run(30.0, counters={"cycles": 1.0}), run(50.0, kernel="merge", counters={"cycles": 9.0}))
    assert {row["kernel"]: (row["power_w"], row["counters"]) for row in rows} == {
        "sort": (30.0, '{"cycles": 1.0}'),
        "merge": (50.0, '{"cycles": 9.0}'),
    }


def test_the_power_of_the_whole_is_the_node() -> None:
    (row,) = cells(run(100.0, domains_w={"cpu": 30.0, "gpu": 50.0}))
    assert (row["power_w"], json.loads(row["powers"])) == (100.0, {"cpu": 30.0, "gpu": 50.0, "node": 100.0})


def test_a_whole_that_is_the_sum_of_domains_is_not_kept_beside_them() -> None:
    (row,) = cells(run(80.0, domains_w={"package-0": 30.0, "gpu": 50.0, "package-0/core": 20.0}))
    assert (row["power_w"], set(json.loads(row["powers"]))) == (80.0, {"package-0", "gpu", "package-0/core"})


def test_the_whole_is_kept_everywhere_on_a_device_if_it_is_no_sum_anywhere() -> None:
    rows = cells(run(80.0, domains_w={"cpu": 80.0}), run(90.0, threads=2, domains_w={"cpu": 80.0}))
    assert [row["power_w"] for row in rows] == [80.0, 90.0]
    assert all("node" in row["powers"] for row in rows)


def test_domains_alone_sum_to_the_whole() -> None:
    (row,) = cells(run(None, domains_w={"cpu": 30.0, "gpu": 50.0}))
    assert row["power_w"] == 80.0


def test_devices_may_have_unlike_powers() -> None:
    rows = cells(run(None, domains_w={"cpu": 30.0}), run(50.0, device="gpu"))
    assert {row["device"]: row["power_w"] for row in rows} == {"machine": 30.0, "gpu": 50.0}


def test_a_run_without_power_stays_where_another_one_tells_it() -> None:
    dataset, notes = made(run(), run(None, time_s=4.0), run(None, threads=2))
    (row,) = configured(dataset).to_pylist()
    assert (row["runs"], row["time_s"], row["power_w"]) == (2, 3.0, 40.0)
    assert notes == (
        "runs: 2, cells: 1, applications: 1, configurations: 1 (machine)",
        "runs left out: 1 (1 without power)",
    )


def test_what_files_left_out_is_told_with_the_rest() -> None:
    _, notes = made(run(), left_out={"failed": 3})
    assert notes[-1] == "runs left out: 3 (3 failed)"


def test_notes_go_with_the_tables() -> None:
    dataset, _ = made(run(), notes=["f: settings: threads"])
    assert notes_of(dataset.records)["origin"] == "Runs of one's own: f."
    assert "f: settings: threads." in notes_of(dataset.records)["what they are"]
    assert "folder" not in str(notes_of(dataset.energy))


@pytest.mark.parametrize(
    ("runs", "found"),
    [
        ([], "folder/f: expected runs with a power, found none"),
        ([run(None)], "folder/f: expected runs with a power, found none (1 without power)"),
        (
            [run(), run(None, domains_w={"cpu": 2.0}, where="f, line 3")],
            "f, line 3: power_w: expected watts, as in other runs on machine, found nothing",
        ),
        (
            [run(None, domains_w={"cpu": 2.0, "gpu": 1.0}), run(None, domains_w={"cpu": 2.0})],
            "f, line 2: gpu_w: expected watts, as in other runs on machine, found nothing",
        ),
        (
            [run(), run(configuration=Configuration("machine", {"threads": "all"}))],
            "f, line 2: threads: expected numbers or words throughout, found both",
        ),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(runs: list[OwnRun], found: str) -> None:
    assert refusal(*runs) == found


def test_an_energy_that_no_number_holds_is_refused() -> None:
    assert "energy_j" in refusal(run(1e200, time_s=1e200))
