"""Real logs: parts equal to a plain simulator's, and a whole one to another simulator's.

They lie beside the checkout, in ``shared/data``, or where ``CROSSCAST_DATA`` points.
"""

import gzip
import runpy
import tarfile
from pathlib import Path

import numpy as np
import pytest

from crosscast.cluster import COLUMNS, Jobs, Machine, Policy, read_machines
from crosscast.cluster.job_types import read_gavel
from crosscast.cluster.simulate import simulate
from crosscast.cluster.trace_files import read_swf
from crosscast.cluster.traces import FIELDS
from crosscast.errors import InputError
from support.examples import one_in
from support.shared import shared_data

KTH, HPC2N = ("KTH-SP2-1996-2.1-cln", 100), ("HPC2N-2002-2.1-cln", 240)

KTH_WAITED_S = 6_129_704_263
"""Seconds that all jobs together wait in AccaSim 1.1.3, by FirstInFirstOut and FirstFit on 100 nodes of one
core, as ``python -m benchmarks.schedule`` runs it."""


def jobs_of(name: str) -> Jobs:
    return read_swf(shared_data(f"swf/{name}.swf.gz")).jobs().jobs.killed_at_estimate()


def test_first_come_first_served_a_whole_log_is_as_in_accasim() -> None:
    name, procs = KTH
    jobs = jobs_of(name)
    schedule = simulate(jobs, [Machine("one", procs)], policy=Policy(backfill=None))
    assert len(jobs) == 27_992
    assert schedule.wait_s.sum() == KTH_WAITED_S


@pytest.mark.parametrize(
    ("log", "count", "overran", "users"), one_in(2, [(KTH, 27_992, 0, 212), (HPC2N, 202_876, 14_817, 257)])
)
def test_a_log_is_read_as_another_reader_reads_it_and_all_lines_are_jobs(
    log: tuple[str, int], count: int, overran: int, users: int
) -> None:
    name, procs = log
    path = shared_data(f"swf/{name}.swf.gz")
    trace = read_swf(path)
    assert (trace.label, len(trace), trace.header.max_procs) == (name, count, procs)
    with gzip.open(path) as file:
        numbers = np.array([line.split() for line in file if not line.startswith(b";")], dtype=np.float64)
    numbers[numbers < 0] = np.nan
    for column, field in zip(numbers.T, FIELDS, strict=True):
        np.testing.assert_array_equal(trace.columns[field.name], column * field.unit, err_msg=field.name)
    found = trace.jobs()
    assert (found.left_out, found.too_wide, found.without_request, found.killed) == ({}, 0, 0, False)
    assert (len(found.jobs), found.overran, len(found.jobs.users)) == (count, overran, users)


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


def test_every_column_of_a_schedule_is_documented_and_its_machines_can_be_read(tmp_path: Path) -> None:
    docs = Path(__file__).parents[2] / "docs"
    hooks = runpy.run_path(str(docs / "hooks.py"))
    document: str = hooks["on_page_markdown"]((docs / "traces.md").read_text(encoding="utf-8"))
    section = document.split("\n## Schedules\n")[1].split("\n## ")[0]
    rows = " ".join(line for line in section.splitlines() if line.startswith("| "))
    places = [rows.index(f"`{name}`") for name in COLUMNS]
    assert places == sorted(places)
    path = tmp_path / "machines.toml"
    path.write_text(document.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    found = [(machine.name, machine.procs, machine.device) for machine in read_machines(path)]
    assert found == [("quartz", 2988, None), ("lassen", 795, "v100")]
