from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_types import made_types

from crosscast.cluster.job_types import JOB_TYPES, JobTypes, read_job_types, write_job_types
from crosscast.data.table import table_of, write_table
from crosscast.errors import InputError

ROW = {"application": "lud", "uses_gpu": 0, "times": {"cpu": 2.0, "gpu": 0.5}}


def read(folder: Path, *rows: dict[str, Any]) -> JobTypes:
    write_table(table_of(JOB_TYPES, rows), folder / "jobs.parquet")
    return read_job_types(folder / "jobs.parquet")


def assert_same(left: JobTypes, right: JobTypes) -> None:
    for name in JobTypes.__dataclass_fields__:
        found, expected = getattr(left, name), getattr(right, name)
        if isinstance(expected, np.ndarray):
            np.testing.assert_array_equal(found, expected, err_msg=name, strict=True)
        else:
            assert found == expected, name


@pytest.mark.parametrize("submit", [None, np.array([0.0, 0.5, 0.25])])
def test_types_read_back_are_the_same(tmp_path: Path, submit: Any) -> None:
    types = made_types(submit_s=submit)
    write_job_types(types, tmp_path / "jobs.parquet")
    assert_same(read_job_types(tmp_path / "jobs.parquet"), types)


def test_the_same_types_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet"):
        write_job_types(made_types(), tmp_path / name)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_what_is_empty_is_one_or_not_known(tmp_path: Path) -> None:
    types = read(
        tmp_path, ROW, ROW | {"procs": 4, "times": {"phi": 1}, "predicted": {"cpu": 0.5, "phi": 1.0}}
    )
    assert types.devices == ("cpu", "gpu", "phi")
    assert types.procs.tolist() == [1, 4]
    assert types.repeats.tolist() == [1, 1]
    assert types.uses_gpu.tolist() == [False, False]
    assert types.submit_s is None
    assert types.kernel == (None, None)
    nan = np.nan
    np.testing.assert_array_equal(types.times_s, [[2, 0.5, nan], [nan, nan, 1]])
    np.testing.assert_array_equal(types.predicted, [[nan, nan, nan], [0.5, nan, 1]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": {"cpu": -2.0}}, "column 'times', row 2: cpu: expected a number above 0, found -2.0"),
        ({"times": {"cpu": 0}}, "column 'times', row 2: cpu: expected a number above 0, found 0"),
        ({"times": {"cpu": True}}, "column 'times', row 2: cpu: expected a number above 0, found True"),
        ({"times": {"cpu": None}}, "column 'times', row 2: cpu: expected a number above 0, found None"),
        ({"times": {"cpu": "2"}}, "column 'times', row 2: cpu: expected a number above 0, found 2"),
        ({"times": {"cpu": 10**400}}, "column 'times', row 2: cpu: expected a number above 0, found 1000"),
        (
            {"times": [1.0]},
            r"column 'times', row 2: expected a number above 0 for each device, found \[1.0\]",
        ),
        ({"times": {}}, "column 'times', row 2: expected a time on a device, found none"),
        ({"predicted": {"cpu": -0.1}}, "column 'predicted', row 2: cpu: expected a number of at least 0"),
        ({"uses_gpu": 2}, "column 'uses_gpu', row 2: expected 0 or 1, found 2"),
        ({"submit_s": 1.0}, "column 'submit_s', row 1: expected a time, as in other rows, found none"),
    ],
)
def test_a_cell_that_is_wrong_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, ROW, ROW | change)


@pytest.mark.parametrize(
    "change",
    [{"procs": 0}, {"repeats": 0}, {"submit_s": -1.0}, {"uses_gpu": -1}, {"uses_gpu": None}, {"times": None}],
)
def test_the_schema_refuses_what_no_job_has(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"job types: column '{next(iter(change))}', row 1: expected"):
        table_of(JOB_TYPES, [ROW | change])


def test_an_empty_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"jobs\.parquet: expected a row for each type of job, found none"):
        read(tmp_path)


def test_too_many_devices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected at most 1000 devices, found 1001"):
        read(tmp_path, ROW | {"times": {str(number): 1 for number in range(1001)}})


def test_nothing_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    times = made_types().times_s.copy()
    times[0, 0] = -1
    with pytest.raises(InputError, match="job types: column 'times', row 1: cpu: expected a number above 0"):
        write_job_types(made_types(times_s=times), tmp_path / "jobs.parquet")
    assert not list(tmp_path.iterdir())
