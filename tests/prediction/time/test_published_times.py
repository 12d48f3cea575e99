"""Published times of kernels on which no model was trained are close to their forecasts."""

from pathlib import Path

import pytest
from benchmarks.published_devices import cases as devices
from benchmarks.published_kernels import cases
from benchmarks.published_samples import cases as samples
from benchmarks.published_textbook import cases as textbook
from benchmarks.published_times import Row, rows, scores

from crosscast.devices.catalogue import device_named


def test_scores_are_those_of_logarithms() -> None:
    chosen = [
        Row("a", "d", 1.0, 2.0, 0.5, 3.0),
        Row("b", "d", 2.0, 1.0, 0.5, 1.5),
        Row("c", "d", 1.0, 1.0, 0.5, 2.0),
    ]
    found = scores(chosen)
    assert found["ratio"] == pytest.approx(1.0)
    assert found["coverage"] == pytest.approx(2 / 3)
    assert found["beyond_2.5"] == 0.0
    assert found["width"] == pytest.approx(4.0)


def test_a_case_writes_a_launch_file_with_all_of_its_arguments(tmp_path: Path) -> None:
    texts = {case.name: case.text() for case in cases(tmp_path)}
    assert texts["product-tiled"].count("[[arg]]") == 6
    assert "grid = [128, 128]" in texts["product-tiled"]
    assert len({case.source for case in cases(tmp_path)}) == 1


@pytest.mark.system
def test_each_step_of_optimizing_a_matrix_product_takes_what_was_published(tmp_path: Path) -> None:
    """From 0.3 to 21.8 Tflop/s on an RTX A6000, as on an RTX 3090 and an RX 7900 XTX."""
    found = list(rows(cases(tmp_path), tmp_path, "product"))
    assert len(found) == 14
    # Blocks of 16 on an RTX 3090 are forecast at 0.65 of their time.
    lower = {"product-block-16": 0.6}
    assert all(lower.get(row.launch, 2 / 3) < row.predicted_s / row.published_s < 1.5 for row in found)
    assert all(row.low_s <= row.published_s <= row.high_s for row in found)
    of_a6000 = [row for row in found if row.device == "rtx-a6000"]
    order = sorted(of_a6000, key=lambda row: row.published_s)
    assert sorted(of_a6000, key=lambda row: row.predicted_s) == order


@pytest.mark.system
def test_the_kernels_with_which_a_textbook_begins_take_what_was_published(tmp_path: Path) -> None:
    """Rows that threads walk along are read once, although many do not fit the caches at once."""
    found = list(rows(textbook(tmp_path), tmp_path, ""))
    assert len(found) == 112
    # Of rows of 2 KiB, an RTX 3080 fetches more than is known.
    lower = {"matvec-131072x512": 0.7}
    assert all(lower.get(row.launch, 0.8) < row.predicted_s / row.published_s < 2 for row in found)
    assert all(row.low_s <= row.published_s <= row.high_s for row in found)
    rows_of_32 = [row for row in found if row.launch.startswith("matvec") and row.launch.endswith("x32")]
    assert len(rows_of_32) == 9
    assert all(1 < row.predicted_s / row.published_s < 1.5 for row in rows_of_32)
    products = [row for row in found if row.launch.startswith(("product", "tiles"))]
    assert len(products) == 9
    assert all(0.9 < row.predicted_s / row.published_s < 1.3 for row in products)
    histograms = [row for row in found if row.launch == "histogram-128" or row.launch.startswith("zeros")]
    assert len(histograms) == 15
    assert all(0.9 < row.predicted_s / row.published_s < 1.25 for row in histograms)


@pytest.mark.system
def test_samples_take_what_they_print(tmp_path: Path) -> None:
    """Copies by few work-items wait for each load. Why columns take long on two GPUs is not known."""
    found = list(rows(samples(tmp_path), tmp_path, ""))
    assert len(found) == 62
    ratios = {(row.launch, row.device): row.predicted_s / row.published_s for row in found}
    unknown = {
        f"transpose-transpose_{name}": on for name, on in (("naive", ("t4", GPU)), ("tile<0>", (GPU,)))
    }
    too_fast = {(launch, device) for launch, devices in unknown.items() for device in devices}
    assert all(0.25 < ratios[each] < 0.6 for each in too_fast)
    assert all(0.6 < ratio < 1.6 for each, ratio in ratios.items() if each not in too_fast)
    outside = {(row.launch, row.device) for row in found if not row.low_s <= row.published_s <= row.high_s}
    assert outside == {("transpose-transpose_naive", device) for device in ("t4", GPU)}
    assert scores(found)["median_error"] < 0.2


def test_times_on_other_devices_are_of_known_ones(tmp_path: Path) -> None:
    times = [(device, time) for case in devices(tmp_path) for device, time in case.times.items()]
    assert len(times) == 89
    assert len({device_named(device).series for device, _ in times}) == 19
    assert all(1e-6 < time < 2.0 for _, time in times)


@pytest.mark.system
def test_streams_and_a_solver_take_what_was_published_on_an_mi300a(tmp_path: Path) -> None:
    """A sum of squares waits for the cache before memory. Why the Laplacian is slower is not known."""
    found = [row for only in ("stream", "jacobi") for row in rows(devices(tmp_path), tmp_path, only)]
    assert len(found) == 7
    lower = {"jacobi-norm": 0.5, "jacobi-laplacian": 0.4}
    assert all(lower.get(row.launch, 0.7) < row.predicted_s / row.published_s < 1.3 for row in found)


GPU = "a100-sxm-80gb"
