"""The readers on logs of the Parallel Workloads Archive and on the traces of Gavel.

They lie beside the checkout, in ``shared/data``, or where ``CROSSCAST_DATA`` points.
"""

import gzip
import tarfile
from pathlib import Path

import numpy as np
import pytest

from crosscast.cluster.gavel import read_gavel
from crosscast.cluster.swf import FIELDS, read_swf, write_swf
from crosscast.errors import InputError
from support.shared import shared_data

LOGS = {"KTH-SP2-1996-2.1-cln": (27_992, 100), "HPC2N-2002-2.1-cln": (202_876, 240)}


@pytest.mark.parametrize("name", LOGS)
def test_a_log_is_read_as_another_reader_reads_it(name: str) -> None:
    path = shared_data(f"swf/{name}.swf.gz")
    count, procs = LOGS[name]
    trace = read_swf(path)
    assert (trace.label, len(trace), trace.header.max_procs) == (name, count, procs)
    with gzip.open(path) as file:
        numbers = np.array([line.split() for line in file if not line.startswith(b";")], dtype=np.float64)
    numbers[numbers < 0] = np.nan
    for column, field in zip(numbers.T, FIELDS, strict=True):
        np.testing.assert_array_equal(trace.columns[field.name], column * field.unit, err_msg=field.name)


def test_a_log_written_and_read_back_is_the_same(tmp_path: Path) -> None:
    trace = read_swf(shared_data("swf/KTH-SP2-1996-2.1-cln.swf.gz"))
    write_swf(trace, tmp_path / "back.swf")
    again = read_swf(tmp_path / "back.swf")
    assert again.header == trace.header
    for field in FIELDS:
        np.testing.assert_array_equal(again.columns[field.name], trace.columns[field.name])


def test_all_lines_of_the_cleaned_logs_are_jobs_that_fit() -> None:
    kth = read_swf(shared_data("swf/KTH-SP2-1996-2.1-cln.swf.gz")).jobs()
    hpc2n = read_swf(shared_data("swf/HPC2N-2002-2.1-cln.swf.gz")).jobs()
    for found, overran, users in ((kth, 0, 212), (hpc2n, 14_817, 257)):
        assert found.left_out == {}
        assert (found.too_wide, found.without_request, found.killed) == (0, 0, False)
        assert (found.overran, len(found.jobs.users)) == (overran, users)


def test_gavels_traces_run_on_three_kinds_of_gpu(tmp_path: Path) -> None:
    speeds = shared_data("gpu_corun/gavel_standalone.csv")
    with tarfile.open(shared_data("swf/gavel_traces.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    left_out = {"ee9e8c": 373, "ed69ec": 0, "795a4c": 0, "2869ce": 179}
    for name, missed in left_out.items():
        path = tmp_path / f"{name}.trace"
        trace = read_gavel(path, speeds)
        assert trace.kinds == ("k80", "p100", "v100")
        assert sum(trace.left_out.values()) == missed
        with path.open(encoding="utf-8") as file:
            assert len(trace.jobs) + missed == sum(1 for _ in file)
    # 79,561 steps of a Transformer, of which the file of speeds says 5.446 a second.
    first = read_gavel(tmp_path / "795a4c.trace", speeds).jobs
    assert first.run_s[0, 2] == 79_561 / 5.44610521981264
    with pytest.raises(InputError, match="expected jobs whose speed is known, found none"):
        read_gavel(tmp_path / "philly.trace", speeds)
