"""Times of single kernels, results of tuning, and the launches and profiles that models are trained on."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.training_launches import layer_norm_launch, radices, region_jobs, strata
from benchmarks.training_regions import RULES, regions

import crosscast
from crosscast import Kernel, Launch
from crosscast.characterization.sampling import extended, profile_of, runs_for
from crosscast.cli import main
from crosscast.data.dataset import Dataset, read_dataset, validate
from crosscast.data.sources import import_source
from crosscast.data.sources.kernel_times import TUNED
from crosscast.data.table import notes_of
from crosscast.devices.catalogue import catalogue
from crosscast.profile import METRICS, Profile
from support.examples import one_in
from support.refusals import refusal, refusals
from support.shared import published, shared_data
from support.tables import ADD, Row, mapped, streamed, tuned, write_rows


def made(source: str, file: str, rows: list[Row], folder: Path) -> Dataset:
    write_rows(folder / file, rows)
    dataset = import_source(source, folder)
    validate(dataset)
    return dataset


def test_other_parameters_and_devices_are_refused_and_times_of_one_device_are_noted(tmp_path: Path) -> None:
    dataset = made("kernel_tuner", "kt_convolution_milo_RTX_A4000.csv", [tuned()], tmp_path)
    assert "of one device, rtx-a4000" in notes_of(dataset.records)["one device"]
    rows = [tuned(), tuned("fast")]
    told = refusal(made, "kernel_tuner", "kt_gemm_RTX_2080_Ti.csv", rows, tmp_path)
    assert "column 'variant', row 2: expected parameters such as " in told
    variant = f"{streamed()['variant']};repetitions=many"
    for wrong, expected in (
        ({"device": "Abacus"}, "column 'device', row 2: expected a device of the catalogue"),
        ({"variant": variant}, "column 'variant', row 2: expected model=…;type=…;n=…"),
    ):
        told = refusal(made, "babelstream", "times.csv", [streamed(), streamed(**wrong)], tmp_path)
        assert expected in told


@pytest.mark.system
@pytest.mark.parametrize(
    ("source", "records", "devices"),
    [("kernel_tuner", 56_000, 7), ("babelstream", 212, 16), ("elementwise", 2692, 5)],
)
def test_the_published_rows(source: str, records: int, devices: int) -> None:
    dataset = published(source, source)
    assert dataset.records.num_rows >= records
    found = {row["device"] for row in dataset.devices.to_pylist()}
    assert len(found) == devices
    assert found <= catalogue().keys()
    if source == "kernel_tuner":
        assert {row["kernel"] for row in dataset.records.select(["kernel"]).to_pylist()} == TUNED.keys()


def characterized(folder: Path, rows: Sequence[Row]) -> Dataset:
    names = dict.fromkeys(str(row["benchmark"]) for row in rows)
    write_rows(folder / "cgo17_sources.csv", [{"benchmark": name, "src": ADD} for name in names])
    return made("cgo17", "cgo17_nvidia.csv", list(rows), folder)


def test_a_name_has_suite_program_and_kernel(tmp_path: Path) -> None:
    rows = [mapped("amd-app-sdk-3.0-Scan-group_sum"), mapped("npb-3.3-BT-x_solve", "S")]
    found = {(row["application"], row["kernel"]) for row in characterized(tmp_path, rows).records.to_pylist()}
    assert found == {("amd-app-sdk-3.0-Scan", "group_sum"), ("npb-3.3-BT", "x_solve")}
    for name in ("npb-3.3-CG", "CG", "npb-CG-add-x"):
        told = refusal(characterized, tmp_path, [mapped(name)])
        assert "row 1: expected suite-version-program-kernel" in told
    write_rows(tmp_path / "cgo17_nvidia.csv", [mapped()])
    told = "row 1: expected a kernel of cgo17_sources.csv, found npb-3.3-CG-add"
    assert told in refusal(import_source, "cgo17", tmp_path)


def test_the_command_characterizes_and_leaves_no_file_of_finished_launches(tmp_path: Path) -> None:
    folder, broken = tmp_path / "source", "npb-3.3-CG-broken"
    write_rows(folder / "cgo17_nvidia.csv", [mapped(), mapped(broken)])
    sources = [(mapped()["benchmark"], ADD), (broken, "__kernel void A(__global float* a) { a[0] = B(1); }")]
    write_rows(folder / "cgo17_sources.csv", [{"benchmark": name, "src": src} for name, src in sources])
    assert main(["dataset", "import", "cgo17", str(folder), "--out", str(tmp_path / "out")]) == 0
    dataset = read_dataset(tmp_path / "out")
    (row,) = dataset.profiles.to_pylist()
    assert (row["kernel"], row["work_items"], row["work_groups"]) == ("add", 1024, 16)
    assert notes_of(dataset.profiles)["rows without a profile"].startswith("1: ")
    assert dataset.records.num_rows == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source"]


def test_the_published_kernels() -> None:
    records = published("cgo17", "device_mapping").records.to_pylist()
    kernels = {(row["application"], row["kernel"]) for row in records}
    assert (len(records), len(kernels), len({name for name, _ in kernels})) == (1360, 256, 71)
    gpu, cpu = (
        np.array([row["time_s"][0] for row in records if row["device"] == device])
        for device in ("gtx970", "i7-3820")
    )
    # The file says 387 times that the GPU is faster.
    assert np.count_nonzero(gpu < cpu) == 387


def test_the_cells_are_those_of_the_published_times_each_with_evidence_and_a_rule() -> None:
    for region in regions().values():
        assert region.rule in RULES
        assert region.launches >= 1
        assert region.evidence
        assert not (region.note and region.left_out)
    assert len(regions()) == 104
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = ["application", "kernel", "size"]
    rows = parquet.read_table(shared_data("aiwc2018/joined_cells.parquet"), columns=columns).to_pylist()
    assert {tuple(row[name] for name in columns) for row in rows} == regions().keys()


CACHE = {
    "device_name": "NVIDIA GeForce RTX 3090",
    "kernel_name": "saxpy",
    "cache": {
        "64,1": {"block_size_x": 64, "tile": 1, "time": 2.0, "times": [1.0, 2.0, 9.0], "compile_time": 5.0},
        "128,1": {"block_size_x": 128, "tile": 1, "time": "CompilationFailedConfig"},
        "256,1": {"block_size_x": 256, "tile": 1, "time": 1e20},
        "512,1": {"block_size_x": 512, "tile": 1, "time": float("inf")},
    },
}
T4 = {"device_name": "RTX 3090", "kernel_name": "saxpy"}


def t4(number: int, time: float | None, unit: str) -> dict[str, Any]:
    """A result of a configuration, which failed without a time."""
    times = [] if time is None else [{"name": "time", "value": time, "unit": unit}]
    validity = "compile" if time is None else "correct"
    return {"configuration": {"x": number}, "invalidity": validity, "measurements": times}


def written(folder: Path, content: Any) -> Path:
    path = folder / "saxpy_3090.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def times(path: Path) -> dict[str, float]:
    dataset = import_source("tuning", path)
    validate(dataset)
    return {row["size"]: row["time_s"][0] for row in dataset.records.to_pylist()}


def test_of_a_cache_the_median_in_seconds_is_kept_and_failures_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, CACHE)
    assert times(path) == {"block_size_x=64;tile=1": 0.002}
    dataset = import_source("tuning", path)
    assert notes_of(dataset.records)["left out"] == "3 of 4 configurations failed."
    assert dataset.devices.to_pylist()[0]["device"] == "rtx3090"
    # Cut off after an entry
    assert times(written(tmp_path, json.dumps(CACHE)[:-2] + ",")) == {"block_size_x=64;tile=1": 0.002}
    told = refusal(import_source, "tuning", tmp_path / "nowhere.json")
    assert "cannot read the results of tuning (No such file" in told
    for text in ("[" * 100_000, "9" * 5000):
        assert "expected JSON" in refusal(import_source, "tuning", written(tmp_path, text))


def test_results_in_milliseconds_and_seconds_may_be_mixed(tmp_path: Path) -> None:
    results = [t4(1, 2.0, "ms"), t4(2, 0.002, "seconds"), t4(3, None, "")]
    assert times(written(tmp_path, {"results": results, "metadata": T4})) == {"x=1": 0.002, "x=2": 0.002}


@refusals("content reason")
def test_what_cannot_be_read_is_one_sentence(content: Any, reason: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    assert re.match(f"{re.escape(str(path))}: .*{reason}", refusal(import_source, "tuning", path))


TILES = """
__kernel void tiles(__global const float *a, __global float *c, int width) {
    int x = get_global_id(0), y = get_global_id(1);
    c[y * width + x] = a[y * width + x] + a[(y + 2) * width + x + 2];
}
"""


def tiles(groups: tuple[int, int]) -> Profile:
    """A stencil of 8 x 8 groups on rows of 256, with a halo of 2."""
    kernel = Kernel.from_source(TILES, "tiles")
    arrays = [np.zeros(256 * 512, np.float32) for _ in range(2)]
    size = (8 * groups[0], 8 * groups[1])
    return crosscast.characterize(Launch(kernel, size, (8, 8), (*arrays, np.int32(256))))


def test_counts_of_a_tiled_launch_are_extended_without_error() -> None:
    whole = tiles((16, 12))
    runs = [(2, 2), (4, 2), (2, 4), (4, 4)]
    found = extended({run: tiles(run) for run in runs}, (16, 12))
    for metric in METRICS:
        if metric.unit == "count" and not metric.name.startswith(("footprint_90", "opcode", "branches")):
            assert found.metrics[metric.name] == whole.metrics[metric.name], metric.name
    assert found.metrics["granularity"] == whole.metrics["granularity"]
    assert found.metrics["reread_ratio"] == pytest.approx(whole.metrics["reread_ratio"])
    entropy = "global_memory_address_entropy"
    assert found.metrics[entropy] == pytest.approx(whole.metrics[entropy], abs=0.2)
    assert found.launch["global_size"] == whole.launch["global_size"]
    assert found.launch["work"]["instructions"] == whole.launch["work"]["instructions"]
    assert found.launch["extended"] == {"runs": [list(run) for run in runs], "groups": [16, 12]}


def test_a_short_launch_is_run_in_full_and_a_long_one_in_part() -> None:
    assert runs_for((64, 64), 1e-6, 1.0) is None
    runs = runs_for((64, 64), 0.1, 1.0)
    assert runs is not None
    assert len(runs) == 4
    assert runs_for((1000, 1), 0.01, 1.0) == [(11, 1), (22, 1)]
    launches: list[tuple[int, int]] = []

    def run(groups: tuple[int, int]) -> Profile:
        launches.append(groups)
        return tiles(groups)

    group = tiles((1, 1)).metrics["total_instruction_count"]
    assert group is not None
    assert profile_of(run, (3, 2), 6 * group).metrics == tiles((3, 2)).metrics
    assert launches == [(2, 1), (3, 2)]
    assert profile_of(run, (2, 1), group).metrics == tiles((2, 1)).metrics
    assert launches[2:] == [(2, 1)]
    # Boxes of 1, 2, 2 and 4 groups, of which the second is the first run.
    assert profile_of(run, (30, 20), 9 * group).launch["extended"]["groups"] == [30, 20]
    assert launches[4:] == [(1, 1), (1, 2), (2, 2)]
    assert profile_of(run, (30, 20), 1e12, most_groups=100).launch["extended"]["groups"] == [30, 20]


def test_layer_norm_has_mean_zero_and_deviation_one() -> None:
    groups, launch = layer_norm_launch(3, 768)
    made = launch(groups)
    args: list[Any] = list(made.args)
    args[2] = np.random.default_rng(0).normal(2, 3, 3 * 768).astype(np.float32)
    crosscast.characterize(Launch(made.kernel, made.global_size, made.local_size, tuple(args)))
    rows = args[2].reshape(3, 768)
    expected = (rows - rows.mean(1, keepdims=True)) / rows.std(1, keepdims=True)
    np.testing.assert_allclose(args[7].reshape(3, 768), expected, atol=1e-4)


def test_a_transform_has_its_radices_and_a_sequence_its_strata() -> None:
    assert [radix for radix, _ in radices(2097152)] == [16, 16, 16, 16, 16, 2]
    assert [radix for radix, _ in radices(16384)] == [16, 16, 16, 4]
    found = strata(255, 12)
    assert (len(found), sum(count for _, count in found)) == (12, 255)
    launches = [regions()["fft", "fftRadix16Kernel", size] for size in ("tiny", "small", "medium", "large")]
    assert [(each.launches, each.total) for each in launches] == [(3, True), (4, True), (5, True), (6, True)]


@pytest.mark.parametrize(
    ("application", "size"),
    one_in(5, [("bfs", "tiny"), ("fft", "small"), ("dwt", "small"), ("nw", "tiny"), ("lud", "tiny")]),
)
def test_launches_of_regions_are_those_of_the_recorded_programs(application: str, size: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = shared_data("opendwarfs")
    recorded: dict[str, list[Row]] = {}
    rows = parquet.read_table(folder / "profiles.parquet").to_pylist()
    for row in sorted(rows, key=lambda row: row["invocation"]):
        if (row["application"], row["size"]) == (application, size):
            recorded.setdefault(row["kernel"], []).append(row)
    jobs, parts = region_jobs(folder / "launches", 3.0)
    checked = 0
    for job in jobs:
        if job.keys[0][0] != application or job.keys[0][2] != size or job.keys[0][1] == "copy_buffer":
            continue
        for key, profile in zip(job.keys, job.make(crosscast.characterize), strict=True):
            # The transform's launches are numbered over all radices.
            row = recorded[key[1]][min(key[3], len(recorded[key[1]]) - 1)]
            assert profile.metrics["work_items"] == row["work_items"]
            # Ids that are read in loops have left them since those were recorded: instructions are fewer.
            for name in ("total_reads", "total_writes", "total_barriers_hit"):
                assert profile.metrics[name] == pytest.approx(row[name], rel=0.01), (key, name)
            checked += 1
    assert checked >= 3
    assert len(parts) == 104
