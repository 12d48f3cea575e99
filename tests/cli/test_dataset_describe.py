"""``crosscast dataset describe``: pages of small datasets with gaps, and the JSON that says the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.dataset import Dataset, write_dataset
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import DEVICES, ENERGY, RECORDS, SESSIONS
from crosscast.data.table import table_of
from support import tables as rows
from support.commands import Command, Output
from support.golden import assert_printed

describe = Command.of("dataset describe")
GOLDEN = Path(__file__).with_name("golden")
DEVICE_ROWS = [{"device": f"cpu:{n}", "name": "a CPU", "type": "cpu", "sources": {}} for n in range(2)]


def record(
    kernel: str, size: str, device: str = "cpu:0", run: int = 0, time_s: float = 1e-3
) -> dict[str, Any]:
    place = {"application": "lud", "kernel": kernel, "size": size, "device": device}
    return {**place, "configuration": "{}", "repeat": 0, "run": run, "time_s": [time_s]}


def session(size: str, device: str = "cpu:0", failure: str | None = None, **cells: Any) -> dict[str, Any]:
    place = {"application": "lud", "size": size, "device": device, "configuration": "{}", "repeat": 0}
    return {**place, "kernels": ["diagonal", "internal"], "failure": failure, **cells}


def dataset(devices: int = 2, **tables: Any) -> Dataset:
    return Dataset("test", devices=table_of(DEVICES, DEVICE_ROWS[:devices]), **tables)


def with_gaps() -> Dataset:
    """Two kernels, two sizes and two devices: one session failed, one cell is noisy, one has no records."""
    records = [
        *(record("internal", "tiny", run=run) for run in range(60)),
        *(record("diagonal", "tiny", run=run, time_s=1e-3 * (1 + run % 2)) for run in range(60)),
        *(record("internal", "small", run=run, time_s=2e-3) for run in range(60)),
    ]
    sessions = [session("tiny"), session("small"), session("tiny", "cpu:1", "it caught fire")]
    return dataset(
        records=table_of(RECORDS, records, {"weather": "It rained [all day]."}),
        sessions=table_of(SESSIONS, sessions),
    )


def of_several_processes() -> Dataset:
    sessions = [session("tiny", repeat=1, runs=1), session("small", repeat=2, failure="it caught fire")]
    return dataset(1, sessions=table_of(SESSIONS, sessions))


def with_settings() -> Dataset:
    settings = '{"cores": 4.0}'
    sessions = [
        session("tiny", configuration=settings, loop_s=0.5),
        session("small", configuration=settings, failure="it caught fire"),
    ]
    return dataset(1, sessions=table_of(SESSIONS, sessions))


def with_nine_sizes() -> Dataset:
    return dataset(records=table_of(RECORDS, [record("internal", f"size {number}") for number in range(9)]))


def with_sizes_of_kernels() -> Dataset:
    return dataset(records=table_of(RECORDS, [record("internal", "4096x4"), record("diagonal", "64x64")]))


def with_a_profile() -> Dataset:
    profile = {"application": "lud", "size": "tiny", "kernel": "internal", "invocation": 0}
    records = [record("internal", "tiny"), record("diagonal", "small")]
    return dataset(1, records=table_of(RECORDS, records), profiles=table_of(PROFILES, [profile]))


def with_configurations_and_power() -> Dataset:
    """One device in three configurations; nothing was set on the other, and one run spreads by nothing."""
    settings = [
        {"cpu_cap_w": cap, "mode": mode, "note": note}
        for cap, mode, note in ((65.0, "fast", "a"), (120.0, "slow", "b"), (90.0, "fast", "a"))
    ]
    records = [{**record("internal", "tiny"), "configuration": each} for each in settings]
    watched = {"sensor": "rapl", "energy_j": 2.0, "duration_s": 0.1, "runs": 1, "repeat": 0}
    place = {"application": "lud", "size": "tiny", "device": "cpu:0", "configuration": settings[0]}
    return dataset(
        records=table_of(RECORDS, [*records, record("internal", "tiny", "cpu:1")]),
        energy=table_of(ENERGY, [{**watched, **place, "domain": name} for name in ("psys", "package-0")]),
    )


def of_co_running() -> Dataset:
    mix = rows.mix(1.2, None, fits=1, name="pair")
    mix[1] |= {"application": "lud", "failure": "out of memory"}
    found: Dataset = rows.dataset(isolated_runs=[rows.isolated_run(), rows.isolated_run("lud")], mixes=mix)
    return found


def measured_and_of_co_running() -> Dataset:
    found: Dataset = rows.dataset(
        records=[rows.record()], sessions=[rows.session()], isolated_runs=[rows.isolated_run()]
    )
    return found


def with_many_warnings() -> Dataset:
    names = [f"k{number}" for number in range(5)]
    records = [record(name, "tiny", run=run, time_s=1e-3 * (1 + run)) for name in names for run in range(60)]
    return dataset(1, records=table_of(RECORDS, records))


PAGES = (
    *(with_gaps, of_several_processes, with_settings, with_nine_sizes, with_sizes_of_kernels, with_a_profile),
    *(with_configurations_and_power, of_co_running, measured_and_of_co_running, with_many_warnings),
)


@pytest.mark.parametrize("make", PAGES, ids=lambda make: make.__name__)
def test_the_page_is_as_it_was(make: Callable[[], Dataset], tmp_path: Path, capsys: Output) -> None:
    write_dataset(make(), tmp_path / "mine")
    page = describe.text(capsys, tmp_path / "mine")
    assert_printed(page, GOLDEN / f"describe-{make.__name__.replace('_', '-')}.txt")


def test_json_says_the_same(tmp_path: Path, capsys: Output) -> None:
    write_dataset(with_gaps(), tmp_path / "mine")
    found = describe.answer(capsys, tmp_path / "mine")
    assert found["applications"] == ["lud"]
    assert found["kernels"] == ["lud/diagonal", "lud/internal"]
    assert found["sizes"] == ["tiny", "small"]
    assert found["kernel_sizes"] == {"lud/diagonal": ["tiny", "small"], "lud/internal": ["tiny", "small"]}
    assert found["devices"] == ["cpu:0", "cpu:1"]
    assert (found["cells"], found["records"]) == (3, 180)
    assert [failure["reason"] for failure in found["failed"]] == ["it caught fire"]
    assert [warning["rule"] for warning in found["warnings"]] == ["spread"]
    assert found["notes"] == {"records": {"weather": "It rained [all day]."}}
