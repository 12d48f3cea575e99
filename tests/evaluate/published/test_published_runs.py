"""Rows of the published study."""

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.studies.johnston2018_forests import Runs, runs_of
from crosscast.tables.arrow import table_of
from crosscast.tables.dataset import Dataset
from crosscast.tables.records import RECORDS
from published_data import KERNELS, RUNS, SIZES, SPEEDS, made_up

CELLS = sum(map(len, KERNELS.values())) * len(SIZES) * len(SPEEDS)


@pytest.fixture(scope="module")
def runs() -> Runs:
    return runs_of(made_up(noise=0.0))


def test_each_record_is_a_row(runs: Runs) -> None:
    assert len(runs) == CELLS * RUNS
    assert np.bincount(runs.cell, minlength=runs.cells).tolist() == [RUNS] * CELLS


def test_times_are_logarithms_of_microseconds_of_their_cell(runs: Runs) -> None:
    profiles = runs.grid.profiles
    place = list(zip(profiles.kernel, profiles.size, strict=True)).index(("add", "large"))
    device = [each.key for each in runs.grid.devices].index("gpu")
    own = runs.log_us[runs.cell == place * len(SPEEDS) + device]
    np.testing.assert_allclose(own, np.log(64 * 10_000 / 2e10 * 1e6))


def test_features_are_those_of_the_first_invocation_by_the_published_definitions(runs: Runs) -> None:
    names = dict(zip(runs.columns, runs.features.T, strict=True))
    assert set(names) == {
        "opcode",
        "total_instruction_count",
        "work_items",
        "granularity",
        "global_memory_address_entropy",
        "operand_sum",
    }
    place = list(zip(runs.grid.profiles.kernel, runs.grid.profiles.size, strict=True)).index(("add", "tiny"))
    assert names["total_instruction_count"][place] == 10_000
    assert names["operand_sum"][place] == 20_000
    assert names["granularity"][place] == 0.5


def test_a_forest_sees_the_device_as_its_last_feature(runs: Runs) -> None:
    rows = runs.rows()
    assert rows.features.shape == (runs.cells, len(runs.columns) + 1)
    keys = [device.key for device in runs.grid.devices]
    codes = dict(zip(keys, rows.features[: len(keys), -1].tolist(), strict=True))
    assert codes == {"gpu": 0, "phi": 1, "cpu": 2}


def test_a_sample_has_so_many_rows_a_cell(runs: Runs) -> None:
    sample = runs.sample(3, seed=0)
    assert np.bincount(sample.cell, minlength=runs.cells).tolist() == [3] * CELLS
    assert len(runs.sample(10 * RUNS, seed=0)) == len(runs)


def test_the_digest_is_of_the_contents(runs: Runs) -> None:
    assert runs.digest() == runs_of(made_up(noise=0.0)).digest()
    assert runs.digest() != runs.take(np.arange(len(runs)) > 0).digest()


def test_one_kernel_is_too_few() -> None:
    whole = made_up()
    records = [row for row in whole.records.to_pylist() if row["kernel"] == "crc32"]
    one = Dataset("one", whole.devices, whole.profiles, table_of(RECORDS, records))
    with pytest.raises(InputError, match="at least 2 kernels"):
        runs_of(one)
