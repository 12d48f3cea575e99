"""The regions of 2018: complete, and what counts as no time of a kernel."""

import pytest
from benchmarks.training_regions import RULES, regions

from support.shared import shared_data


def test_there_are_104_cells_each_with_evidence_and_a_rule() -> None:
    assert len(regions()) == 104
    for region in regions().values():
        assert region.rule in RULES
        assert region.launches >= 1
        assert region.evidence
        assert not (region.note and region.left_out)


def test_what_is_no_time_of_a_kernel_or_has_more_in_it_is_marked() -> None:
    left_out = {cell[:2] for cell, region in regions().items() if region.left_out}
    assert left_out == {
        ("kmeans", "invert_mapping"),
        ("dwt", "c_CopySrcToComponents"),
        *(("fft", f"fftRadix{radix}Kernel") for radix in (2, 4, 8)),
    }
    noted = {cell[1] for cell, region in regions().items() if region.note}
    printed = "calc_potential_single_step_dev"
    assert noted == {"init_alpha_dev", "init_ones_dev", "scale_alpha_dev", printed}


def test_a_transform_is_one_time_of_all_its_launches() -> None:
    launches = [regions()["fft", "fftRadix16Kernel", size] for size in ("tiny", "small", "medium", "large")]
    assert [(each.launches, each.total) for each in launches] == [(3, True), (4, True), (5, True), (6, True)]


def test_the_cells_are_those_of_the_published_times() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = ["application", "kernel", "size"]
    rows = parquet.read_table(shared_data("aiwc2018/joined_cells.parquet"), columns=columns).to_pylist()
    assert {tuple(row[name] for name in columns) for row in rows} == regions().keys()
