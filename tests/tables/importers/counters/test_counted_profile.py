"""Any profile, whichever tool it is of; and what makes runs of a dataset of them."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_counter_profiles import (
    PERF,
    cali_file,
    cali_record,
    caliper_table,
    ncu_wide,
    new_database,
    old_database,
    perf_file,
    perf_line,
)

from crosscast.configuration import Configuration
from crosscast.data.counters.common import Circumstances, CountedRun, configured_runs
from crosscast.data.counters.importing import counted_profile, import_hpctoolkit, import_ncu, import_perf
from crosscast.data.dataset import read_dataset, write_dataset
from crosscast.errors import InputError


def profiles(folder: Path) -> dict[str, Path]:
    """A profile of each format."""
    table = folder / "caliper.json"
    table.write_text(json.dumps(caliper_table()), encoding="utf-8")
    return {
        "old": old_database(folder / "old"),
        "new": new_database(folder / "new"),
        "perf": perf_file(folder / "perf.json", *PERF),
        "caliper": table,
        "ncu": ncu_wide(
            folder / "ncu.csv", {"smsp__inst_executed.sum": "inst"}, {"smsp__inst_executed.sum": "5"}
        ),
    }


def test_each_format_is_recognized_by_what_is_in_it(tmp_path: Path) -> None:
    found = {name: counted_profile(path)[0] for name, path in profiles(tmp_path).items()}
    assert {name: set(run.counters) for name, run in found.items()} == {
        "old": {"PAPI_BR_INS"},
        "new": {"PAPI_BR_INS"},
        "perf": {"task-clock", "instructions:u", "branches:u"},
        "caliper": {"rc.count", "cycles"},
        "ncu": {"smsp__inst_executed.sum"},
    }
    assert found["ncu"].configuration == Configuration("unknown", {"uses_gpu": 1})
    assert math.isnan(found["ncu"].time_s)


def test_records_of_caliper_are_recognized(tmp_path: Path) -> None:
    pytest.importorskip("caliperreader", reason="caliper-reader is not installed")
    (run,) = counted_profile(cali_file(tmp_path / "x", cali_record(1.0, 2, 3, 30)))
    assert run.time_s == 1.0


def test_what_is_of_no_tool_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n", encoding="utf-8")
    for path in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(InputError, match=r"expected a profile of HPCToolkit .+, found none of them"):
            counted_profile(path)
    with pytest.raises(InputError, match="No such file"):
        counted_profile(tmp_path / "none")


def test_repeats_come_from_several_files_or_a_folder(tmp_path: Path) -> None:
    for number in range(3):
        perf_file(tmp_path / f"run{number}.json", *PERF, perf_line("cycles", str(number)))
    told = Circumstances("quartz", "sort", size="big", nodes=2, cores=72, uses_gpu=False)
    dataset = import_perf([tmp_path], told)
    assert dataset.records.column("repeat").to_pylist() == [0, 1, 2]
    assert dataset.records.column("time_s").to_pylist() == [[2.0]] * 3
    assert set(dataset.records.column("configuration").to_pylist()) == {
        '{"cores": 72.0, "nodes": 2.0, "uses_gpu": 0.0}'
    }
    named = import_perf([tmp_path / f"run{number}.json" for number in range(3)], told)
    assert named.sessions == dataset.sessions


def test_what_is_imported_is_read_back(tmp_path: Path) -> None:
    made = profiles(tmp_path)
    told = Circumstances("quartz", time_s=3.0)
    for name, dataset in {
        "hpctoolkit": import_hpctoolkit([made["old"]], Circumstances("quartz")),
        "perf": import_perf([made["perf"]], told),
        "ncu": import_ncu([made["ncu"]], told),
    }.items():
        write_dataset(dataset, tmp_path / "out" / name)
        again = read_dataset(tmp_path / "out" / name)
        assert (
            again.sessions.column("counters").to_pylist() == dataset.sessions.column("counters").to_pylist()
        )
        (device,) = again.devices.to_pylist()
        assert (device["device"], device["type"]) == ("quartz", "gpu" if name == "ncu" else "cpu")


def test_a_device_of_the_catalogue_is_described_as_there(tmp_path: Path) -> None:
    dataset = import_perf([perf_file(tmp_path / "p.json", *PERF)], Circumstances("i7-6700k"))
    (device,) = dataset.devices.to_pylist()
    assert device["compute_units"] is not None


def test_a_profile_without_a_time_asks_for_one(tmp_path: Path) -> None:
    path = perf_file(tmp_path / "p.json", perf_line("cycles", "7"))
    with pytest.raises(InputError, match=r"p\.json: .+ found no time: give its seconds with --time"):
        import_perf([path], Circumstances("quartz"))
    dataset = import_perf([path], Circumstances("quartz", time_s=0.25))
    assert dataset.records.column("time_s").to_pylist() == [[0.25]]


def test_two_runs_that_are_the_same_are_refused(tmp_path: Path) -> None:
    paths = [perf_file(tmp_path / f"{name}.json", *PERF) for name in "ab"]
    with pytest.raises(InputError, match=r"b\.json: expected another run than .+a\.json, found the same"):
        import_perf(paths, Circumstances("quartz"))
    with pytest.raises(InputError, match=r"a\.json: expected each profile once, found it twice"):
        import_perf([paths[0], paths[0]], Circumstances("quartz"))


def test_a_folder_without_profiles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"expected files \*\.json of perf stat -j in the folder, found none"
    ):
        import_perf([tmp_path], Circumstances("quartz"))
    with pytest.raises(InputError, match="expected databases"):
        import_hpctoolkit([], Circumstances("quartz"))


@pytest.mark.parametrize("time_s", [0.0, -1.0, math.inf, math.nan])
def test_a_time_that_is_not_above_0_is_refused(time_s: float) -> None:
    with pytest.raises(InputError, match="x: expected a time above 0 seconds"):
        configured_runs([CountedRun("x", "x", {"a": 1.0}, time_s)], Circumstances())
    with pytest.raises(InputError, match="time: expected seconds above 0"):
        Circumstances(time_s=time_s)


def test_counters_that_are_missing_or_not_finite_are_refused() -> None:
    with pytest.raises(InputError, match="x: expected counters, found none"):
        configured_runs([CountedRun("x", "x", {}, 1.0)], Circumstances())
    with pytest.raises(InputError, match="x: a: expected a finite number, found inf"):
        configured_runs([CountedRun("x", "x", {"a": math.inf}, 1.0)], Circumstances())


@pytest.mark.parametrize(
    "told", [{"device": ""}, {"application": " "}, {"size": "a\nb"}, {"nodes": 0}, {"cores": -1}]
)
def test_circumstances_that_cannot_be_are_refused(told: dict[str, object]) -> None:
    ((name, _),) = told.items()
    with pytest.raises(InputError, match=f"^{name}: expected"):
        Circumstances(**told)  # type: ignore[arg-type]


def test_a_tool_for_gpus_is_believed_that_one_was_used() -> None:
    seen = CountedRun("x", "x", {"a": 1.0}, 1.0, uses_gpu=True)
    assert Circumstances(uses_gpu=False).settings(seen) == {"uses_gpu": 1.0}
    assert Circumstances(uses_gpu=True).settings(CountedRun("x", "x", {}, 1.0)) == {"uses_gpu": 1.0}
    assert Circumstances().settings(CountedRun("x", "x", {}, 1.0)) == {}


@given(text=st.text(max_size=200))
def test_any_text_is_a_profile_or_one_sentence(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any") / "p"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError):
        counted_profile(path)
