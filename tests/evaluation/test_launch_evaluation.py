"""Times of launches: trained and evaluated by source, application and device; tables that are refused."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import crosscast
from crosscast.data.dataset import Dataset
from crosscast.data.profiles import LOOSE_PROFILES, UPGRADES, to_row
from crosscast.data.table import read_table, save, table_of
from crosscast.data.times import PARTS, TIMES, read_launch_tables
from crosscast.devices.catalogue import device_named
from crosscast.evaluation.time.launch_times import Outside, scores, train_launch_times
from crosscast.prediction.time.datasets import read_training
from support.commands import Command, Output
from support.refusals import refusal
from support.schemas import assert_valid
from support.streams import launch_tables, stream
from support.tables import dataset, device, record

run = Command.of("evaluate time", "--jobs 1")
train = Command.of("train time", "--jobs 1")
Rows = list[dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    launch_tables(tmp_path)
    return tmp_path


def rewrite_times(folder: Path, change: Callable[[Rows], Rows]) -> None:
    path = folder / "times.parquet"
    rows = [{**row, "configuration": {}} for row in read_table(path, TIMES).to_pylist()]
    save(table_of(TIMES, change(rows)), path)


def test_a_source_held_out_is_scored_by_source(folder: Path, capsys: Output) -> None:
    answer = run.answer(capsys, folder, "--folds", "leave-source-out")
    assert [row["source"] for row in answer["results"]] == [None, "lab", "other"]
    assert [row["cells"] for row in answer["results"]] == [36, 18, 18]
    counts = answer["counts"]
    assert (counts["kernels_at_a_size"], counts["sources"], counts["devices"]) == (12, 2, 3)
    for row in answer["results"]:
        # All streams reach 80 % of the bandwidth, in either source.
        assert 0.8 < row["bias"] < 1.25
        assert row["median_ape"] < 0.15
        assert row["width"] > 1
    # Each kernel was timed by both, at different sizes.
    assert answer["shared_kernels"]["stream2/stream2"] == ["lab", "other"]
    assert "lab" in run.text(capsys, folder, "--folds", "leave-source-out")
    assert_valid(answer)


@pytest.mark.parametrize(
    ("folds", "by"), [("leave-application-out", "application"), ("leave-device-out", "device")]
)
def test_each_group_is_scored_alone(folds: str, by: str, folder: Path, capsys: Output) -> None:
    answer = run.answer(capsys, folder, "--folds", f"leave-{by}-out")
    assert sum(row["cells"] for row in answer[f"{by}s"]) == answer["counts"]["cells"] == 36
    assert [row[by] for row in answer[f"{by}s"]] == sorted({row[by] for row in answer[f"{by}s"]})


def test_a_model_predicts_and_says_how_sources_fared(folder: Path, tmp_path: Path, capsys: Output) -> None:
    card = train.answer(capsys, folder, "--out", tmp_path / "model", "--without", "stream5")
    assert card["training"]["names"] == ["stream2", "stream3", "stream4"]
    assert sorted(card["errors"]["sources_held_out"]) == ["lab", "other"]
    forecast = crosscast.load_model(tmp_path / "model").predict(stream(1 << 26), ["gtx1080"])
    assert forecast.centre[0, 0] == pytest.approx((8 << 26) / 320e9 / 0.8, rel=0.3)


@pytest.mark.parametrize(
    ("items", "change"),
    [(1, {}), (1 << 30, {}), (1 << 20, {"distinct_bytes": {}, "reuse": {}})],
    ids=["one work-item", "a thousand million", "zero bytes"],
)
def test_extreme_launches_have_times_that_physics_knows(items: int, change: dict[str, Any]) -> None:
    profile = stream(items, group=min(items, 256))
    profile = replace(profile, launch={**profile.launch, **change})
    forecast = crosscast.load_model("launch-times").predict(profile, ["gtx1080", "i7-6700k"])
    assert np.isfinite(forecast.high).all()
    assert (forecast.low > 0).all()
    assert (forecast.low <= forecast.centre).all()
    assert (forecast.centre >= 8 * items * (not change) / 400e9).all()


def of_one(name: str) -> Callable[[Rows], Rows]:
    return lambda rows: [row | {name: rows[0][name]} for row in rows if row[name] == rows[0][name]]


def in_milliseconds(rows: Rows) -> Rows:
    return [row | {"time_s": 1e3 * row["time_s"]} if row["source"] == "lab" else row for row in rows]


def one_in_milliseconds(rows: Rows) -> Rows:
    return [row | {"time_s": (5e3 if n == 7 else 1) * row["time_s"]} for n, row in enumerate(rows)]


def in_microseconds(rows: Rows) -> Rows:
    return [row | {"time_s": 1e-3 * row["time_s"]} for row in rows]


def all_left_out(rows: Rows) -> Rows:
    return [row | {"left_out": "does not compile here"} for row in rows]


SOURCE = ["--folds", "leave-source-out"]
TIMES_REFUSED: list[tuple[Callable[[Rows], Rows], list[str], str]] = [
    (in_milliseconds, [], "time_s: expected seconds (about "),
    (one_in_milliseconds, [], "time_s: expected seconds (about "),
    (in_microseconds, [], "time_s: expected seconds, and no less than moving its bytes takes"),
    (of_one("source"), SOURCE, "leave-source-out: expected at least 2 sources to split by, found 1 (other)"),
    (of_one("device"), ["--folds", "leave-device-out"], "expected at least 2 devices to split by, found 1"),
    (all_left_out, [], "times.parquet: expected times of kernels, found none"),
    (
        lambda rows: [row | {"launch": "7"} for row in rows[:1]],
        [],
        "expected times whose launches are in parts",
    ),
    (lambda rows: [rows[0] | {"device": "nothing"}], [], "nothing"),
    (lambda rows: rows, ["--probes", "1"], "probes: "),
    (
        lambda rows: rows,
        ["--models", "combined"],
        "expected terms alone for times of launches, found 'combined'",
    ),
    (lambda rows: rows, ["--folds", "leave-kernel-out"], "for times of launches, found 'leave-kernel-out'"),
]


@pytest.mark.parametrize(("change", "options", "sentence"), TIMES_REFUSED)
def test_times_that_are_refused(
    change: Callable[[Rows], Rows], options: list[str], sentence: str, folder: Path, capsys: Output
) -> None:
    rewrite_times(folder, change)
    assert sentence in run.refusal(capsys, folder, *options)


def test_a_row_that_is_there_twice_and_a_table_that_lacks_are_refused(folder: Path, capsys: Output) -> None:
    path = folder / "times.parquet"
    table = read_table(path, TIMES)
    save(pa.concat_tables([table, table.slice(0, 1)]), path)
    assert "times.parquet: rows 1 and 37 are both of source other" in run.refusal(capsys, folder)
    (folder / f"{PARTS.table}.parquet").unlink()
    assert "parts.parquet: cannot read the table of parts" in run.refusal(capsys, folder)


def test_a_source_with_one_device_is_scored(folder: Path, capsys: Output) -> None:
    rewrite_times(
        folder, lambda rows: [row for row in rows if row["source"] != "lab" or row["device"] == "k40c"]
    )
    answer = run.answer(capsys, folder, *SOURCE)
    assert [row["cells"] for row in answer["results"]] == [24, 6, 18]


def test_a_device_that_no_catalogue_has_is_described_beside_the_tables(folder: Path, capsys: Output) -> None:
    rewrite_times(
        folder, lambda rows: [row | {"device": row["device"].replace("k40c", "ours")} for row in rows]
    )
    assert "found 'ours'" in run.refusal(capsys, folder)
    described = replace(device_named("k40c"), key="ours")
    (folder / "devices.json").write_bytes(msgspec.json.encode([described]))
    assert run.answer(capsys, folder, *SOURCE)["results"][0]["cells"] == 36
    # The machine is in no list of what a model knows, and its times are not among the scores.
    known = train_launch_times(read_launch_tables(folder)).card
    assert sorted(device.key for device in known.devices) == ["gtx1080", "p100-pcie-16gb"]
    none = replace(described, measured={"read_bytes_per_s": 0.0})
    (folder / "devices.json").write_bytes(msgspec.json.encode([none]))
    expected = "devices.json: read_bytes_per_s of ours: expected a number above 0, found 0"
    assert expected in run.refusal(capsys, folder)
    (folder / "devices.json").write_text("[{}]")
    assert "devices.json: expected a list of devices, found" in run.refusal(capsys, folder)


def test_a_choice_among_five_devices_is_scored_by_the_fastest(folder: Path) -> None:
    five = ("p100-pcie-16gb", "titanx", "gtx1080", "k40c", "gtx1080ti")
    rewrite_times(
        folder,
        lambda rows: [
            row | {"device": key, "time_s": slower * row["time_s"]}
            for row in rows
            if row["device"] == "gtx1080"
            for slower, key in enumerate(five, 1)
        ],
    )
    training = read_training(folder)
    # The fastest is forecast e times too slow: the next is taken, and takes twice as long.
    error = (training.labels("device") == five[0]).astype(np.float64)
    found = scores(training, Outside(error, error, error, error > 0), np.ones(len(error), dtype=np.bool_))
    assert found["slowdown_mean"] == pytest.approx(2)
    assert found["bias"] == pytest.approx(np.exp(1 / 5))


def test_profiles_without_sub_groups_are_refused(folder: Path, capsys: Output) -> None:
    path = folder / "profiles.parquet"
    rows = [row | {"launch": None} for row in read_table(path, LOOSE_PROFILES, UPGRADES).to_pylist()]
    save(table_of(LOOSE_PROFILES, rows), path)
    said = run.refusal(capsys, folder)
    assert "profiles.parquet: expected profiles with counts by sub-groups" in said


def test_a_dataset_of_one_source_has_none_to_hold_out(capsys: Output) -> None:
    assert "found a dataset of one source" in run.refusal(capsys, "bundled", *SOURCE)


def test_other_questions_refuse_times_of_launches(folder: Path) -> None:
    assert "expected a dataset for the question relative, found times of launches" in refusal(
        crosscast.evaluate, read_launch_tables(folder), "relative"
    )


def dataset_of_streams(unit: float = 1.0, applications: Sequence[str] = ()) -> Dataset:
    """Times of three streaming kernels on two devices, with profiles that counted by sub-groups.

    Those of these applications are in another unit.
    """
    profiles = [stream(1 << bits, accesses=n, name=f"s{n}") for n in (2, 3, 4) for bits in (20, 24)]
    devices = [device_named(key) for key in ("gtx1080", "k40c")]
    described = [device(each.key, type=each.type, vendor=each.vendor, **each.numbers) for each in devices]
    records = [
        record(
            application=profile.application,
            kernel=profile.kernel,
            size=profile.size,
            device=each.key,
            time_s=[
                (unit if profile.application in applications else 1.0)
                * (1e-5 + sum(profile.launch["distinct_bytes"]["global"].values()) / bandwidth / 0.8)
            ],
        )
        for profile in profiles
        for each in devices
        for bandwidth in [each.numbers["bandwidth_bytes_per_s"]]
    ]
    return dataset(devices=described, profiles=list(map(to_row, profiles)), records=records)


def test_the_terms_learn_from_a_dataset_of_your_own() -> None:
    data = dataset_of_streams()
    document: dict[str, Any] = crosscast.evaluate(data, models=["terms"], jobs=1).to_dict()
    (row,) = [row for row in document["results"] if row["source"] == "measured"]
    assert row["cells"] == 12
    assert row["median_ape"] < 0.15
    model = crosscast.train(data, model="terms", jobs=1)
    profile = stream(1 << 22, accesses=3, name="new")
    time_s = float(model.predict(profile, ["gtx1080"]).centre[0, 0])
    bandwidth = device_named("gtx1080").numbers["bandwidth_bytes_per_s"]
    assert time_s == pytest.approx(1e-5 + 3 * 4 * (1 << 22) / bandwidth / 0.8, rel=0.2)


@pytest.mark.parametrize("unit", [1e3, 1e-3])
@pytest.mark.parametrize("applications", [["s2", "s3", "s4"], ["s3"]], ids=["all", "one"])
def test_a_dataset_of_your_own_in_other_units_is_refused(unit: float, applications: list[str]) -> None:
    said = refusal(crosscast.train, dataset_of_streams(unit, applications), jobs=1)
    assert "times: time_s: expected seconds" in said
