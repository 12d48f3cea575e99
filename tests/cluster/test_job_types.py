"""From a table of job types to jobs on machines."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.cluster import Machine
from crosscast.cluster.job_types import (
    JOB_TYPES,
    GavelTrace,
    JobShape,
    JobTypes,
    for_machines,
    held_out_jobs,
    read_gavel,
    read_job_types,
    read_speeds,
    write_job_types,
)
from crosscast.cluster.placements import PLACEMENTS, read_job_table, type_workload
from crosscast.data.table import table_of, write_table
from crosscast.errors import InputError
from crosscast.evaluation.relative.evaluation import HeldOutPredictions
from crosscast.prediction.relative import NO_SOURCE, Observations
from support.refusals import refusal, refusals
from support.vectors import DEVICES, made_vectors

NONE = float("nan")
PREDICTED = np.array([[0.4, 0.2, 1.0], [0.5, 0.25, 1.0]])
MACHINES = (Machine("gpu", 4, has_gpu=True), Machine("big", 8, device="cpu"))


def types_of(**changed: object) -> JobTypes:
    cells: dict[str, object] = {
        "devices": ("cpu", "gpu", "laptop"),
        "application": ("lud", "nw"),
        "kernel": ("diagonal", None),
        "size": (None, None),
        "procs": np.array([1, 2]),
        "uses_gpu": np.array([True, False]),
        "repeats": np.array([10, 1]),
        "submit_s": None,
        "user": ("ann", "bob"),
        "times_s": np.array([[2.0, 0.5, 4.0], [3.0, NONE, 6.0]]),
        "predicted": PREDICTED,
        "source": ("laptop", "cpu"),
        "model": ("m", "m"),
    }
    return JobTypes(**(cells | changed))  # type: ignore[arg-type]


def test_columns_are_those_of_the_machines_and_what_was_not_measured_cannot_run() -> None:
    found = type_workload(types_of(), MACHINES)
    assert found.jobs.run_s.tolist() == [[5.0, 20.0], [np.inf, 3.0]]
    assert found.jobs.users == ("ann", "bob")
    assert found.uses_gpu.tolist() == [True, False]
    # Predicted seconds are the vector scaled to the time on its source: lud ran 40 s on the laptop, which is
    # 1 in its vector; nw 3 s on the CPU, which is 0.5.
    assert found.vector is not None and found.predicted_s is not None
    np.testing.assert_allclose(found.predicted_s, [[8.0, 16.0], [1.5, 3.0]])


UNKNOWN = np.where([[False] * 3, [True, False, False]], NONE, PREDICTED)
# A type needs no prediction where it cannot run.
UNUSED = np.where([[False] * 3, [False, True, False]], NONE, PREDICTED)


@pytest.mark.parametrize(
    ("changed", "vector", "seconds"),
    [
        ({"source": (None, "cpu")}, None, r"job type 1 \(lud\): source: expected a device .* --job-source"),
        ({"source": ("cpu", "gpu")}, None, r"job type 2 \(nw\): source: expected"),
        ({"predicted": UNKNOWN}, r"job type 2 \(nw\): predicted: expected a prediction for", "job type 2"),
        ({"predicted": UNUSED}, None, None),
    ],
)
def test_without_a_prediction_or_a_time_on_its_source_there_are_no_vectors_or_seconds(
    changed: dict[str, Any], vector: str | None, seconds: str | None
) -> None:
    types = types_of(**changed)
    workload = type_workload(types, MACHINES)
    assert [workload.vector is None, workload.predicted_s is None] == [
        vector is not None,
        seconds is not None,
    ]
    for need, sentence in (("vector", vector), ("predicted_s", seconds)):
        if sentence is not None:
            with pytest.raises(InputError, match=sentence):
                type_workload(types, MACHINES, frozenset({need}))


def test_what_there_is_enough_for_is_known(tmp_path: Path) -> None:
    path, wanted = tmp_path / "jobs.parquet", set(PLACEMENTS)
    for changed, lacking in (
        ({"source": (None, None)}, {"completion"}),
        ({"predicted": np.full((2, 3), np.nan)}, {"completion", "model", "model-near"}),
    ):
        write_job_types(types_of(**changed), path)
        assert set(read_job_table(path, MACHINES, None, None).placements) == wanted - lacking
    assert "prediction for each machine" in refusal(read_job_table, path, MACHINES, None, ["model-near"])


ROWS = [
    {"application": "lud", "size": "1.50", "uses_gpu": 1, "times": '{"cpu": 2.5, "gpu": 0.5}', "note": "a"},
    {"application": "nw", "size": "007", "uses_gpu": 0, "times": '{"cpu": 3}', "note": "b"},
]


def test_tables_of_other_programs_are_read(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "arrow.parquet")
    frame = pandas.DataFrame(ROWS)
    frame.to_parquet(tmp_path / "pandas.parquet")
    frame.to_csv(tmp_path / "pandas.csv", index=False)
    frame.to_csv(tmp_path / "packed.csv.gz")
    for name in ("arrow.parquet", "pandas.parquet", "pandas.csv", "packed.csv.gz"):
        types = read_job_types(tmp_path / name)
        assert (types.application, types.size, types.kernel) == (("lud", "nw"), ("1.50", "007"), (None, None))
        assert types.uses_gpu.tolist() == [True, False]
        np.testing.assert_array_equal(types.times_s, [[2.5, 0.5], [3.0, NONE]])
        assert (types.procs.tolist(), types.repeats.tolist(), types.submit_s) == ([1, 1], [1, 1], None)


@refusals("name text sentence")
def test_other_programs_mistakes_are_named(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    (tmp_path / name).write_text(text, encoding="latin-1")
    assert refusal(read_job_types, tmp_path / name).startswith(f"{tmp_path / name}: {sentence}")


def test_repeats_of_a_work_on_a_source_are_one_type() -> None:
    vectors = made_vectors(applications=3, kernels=2, sizes=2, repeats=3)
    rng = np.random.default_rng(8)
    vectors = replace(vectors, times_s=vectors.times_s * rng.uniform(1, 1.2, vectors.times_s.shape))
    predicted, seen = rng.uniform(0.1, 1, vectors.times_s.shape), vectors.observations
    types = held_out_jobs(HeldOutPredictions("made up", vectors, predicted))
    own: dict[Any, list[int]] = {}
    for place, work in enumerate(zip(seen.application, seen.kernel, seen.size, seen.source, strict=True)):
        own.setdefault(work, []).append(place)
    works: list[Any] = list(zip(types.application, types.kernel, types.size, types.source, strict=True))
    assert sorted(works) == sorted(own)
    for row, work in enumerate(works):
        assert len(own[work]) == 3
        assert types.times_s[row].tolist() == np.sort(vectors.times_s[own[work]], axis=0)[1].tolist()
        np.testing.assert_allclose(types.predicted[row], predicted[own[work]].sum(axis=0) / 3)
    assert set(types.model) == {"made up"}
    assert types.submit_s is None
    assert types.procs.tolist() == types.repeats.tolist() == [1] * 3 * 2 * 2 * 2


SEEN = made_vectors(applications=2, kernels=1, sizes=1).observations


def set_to(nodes: float) -> Observations:
    return replace(SEEN, configuration=("nodes",), settings=np.full((len(SEEN), 1), nodes))


@given(st.lists(st.floats(1e-6, 1e4), min_size=3, max_size=3), st.floats(1e-3, 1e6))
def test_no_other_number_of_repeats_is_closer_to_the_time_of_a_job(times: list[float], job_s: float) -> None:
    times_s = np.array([times])
    repeats = int(JobShape(job_s=job_s).repeats_of(times_s)[0])
    typical_s = float(np.prod(times_s ** (1 / 3)))

    def off(count: int) -> float:
        return abs(count * typical_s - job_s)

    assert repeats >= 1
    assert all(
        off(repeats) <= off(other) * (1 + 1e-9) + 1e-9 * job_s for other in (repeats + 1, max(repeats - 1, 1))
    )


def test_a_job_is_one_invocation_unless_it_has_a_time_that_can_be_counted() -> None:
    assert JobShape().repeats_of(np.array([[1e-9, 1.0], [2.0, 3.0]])).tolist() == [1, 1]
    said = refusal(JobShape(job_s=1e10).repeats_of, np.full((1, 2), 1e-9))
    assert (
        said == "job_s: expected at most 2^53 times as long as each kernel, found 1e+10 s for one of 1e-09 s"
    )


def test_jobs_have_the_whole_nodes_of_their_runs_unless_said_otherwise() -> None:
    assert [JobShape().procs_of(runs, 0) for runs in (set_to(2.0), set_to(NONE), SEEN)] == [[2], [1], [1]]
    for nodes in (0.0, 0.5, -1.0, np.inf, 1e30):
        said = refusal(JobShape().check, set_to(nodes), DEVICES)
        assert said.startswith("setting nodes: app00, kernel0: expected a whole number from 1")
        own = JobShape(job_procs=[1, 1, 4])
        own.check(set_to(nodes), DEVICES)
        assert own.procs_of(set_to(nodes), 0) == [1, 1, 4]


@refusals("changed expected")
def test_what_does_not_fit_is_refused(changed: dict[str, Any], expected: str) -> None:
    assert refusal(lambda: JobShape(**changed).check(SEEN, DEVICES)) == expected


def test_the_time_of_profiles_is_known_on_a_device_that_has_times() -> None:
    profiles = replace(SEEN, source=(NO_SOURCE,) * len(SEEN))
    JobShape(job_source="gpu").check(profiles, DEVICES)
    wrong = JobShape(job_source="tpu")
    assert "job_source: expected one of cpu, fast, gpu" in refusal(wrong.check, profiles, DEVICES)


def test_machines_and_jobs_without_times_are_refused() -> None:
    # Of the FPGA there are predictions alone.
    times_s = np.hstack([types_of().times_s, np.full((2, 1), NONE)])
    types = types_of(devices=("cpu", "gpu", "laptop", "fpga"), times_s=times_s, predicted=np.ones((2, 4)))
    for machine, said in (
        (
            Machine("b", 8, device="phi"),
            "machine b: device: expected one on which jobs have times (cpu, gpu, ",
        ),
        (Machine("fpga", 8), "machine fpga: device: expected one on which jobs have times (cpu, gpu, "),
        (Machine("gpu", 2), "job type 2 (nw): times: expected one on a device of the machines (gpu)"),
    ):
        assert refusal(for_machines, types, [machine]).startswith(said)


ROW = {"application": "lud", "uses_gpu": 0, "times": {"cpu": 2.0, "gpu": 0.5}}


def read(folder: Path, *rows: dict[str, Any]) -> JobTypes:
    write_table(table_of(JOB_TYPES, rows), folder / "jobs.parquet")
    return read_job_types(folder / "jobs.parquet")


@pytest.mark.parametrize("submit", [None, np.array([0.5, 0.25])])
def test_types_read_back_are_the_same_and_have_the_same_bytes(tmp_path: Path, submit: Any) -> None:
    types = types_of(submit_s=submit, user=(None, "ann"))
    for name in ("jobs.parquet", "again.parquet"):
        write_job_types(types, tmp_path / name)
    again = read_job_types(tmp_path / "jobs.parquet")
    for name, expected in vars(types).items():
        np.testing.assert_array_equal(getattr(again, name), expected, err_msg=name, strict=True)
    assert (tmp_path / "jobs.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()


@refusals("change message")
def test_a_cell_that_is_wrong_is_named(tmp_path: Path, change: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, ROW, ROW | json.loads(change))


def test_no_table_or_too_large_a_one_is_read_and_none_written_that_could_not_be_read(tmp_path: Path) -> None:
    assert "jobs.parquet: expected a row for each type of job, found none" in refusal(read, tmp_path)
    many = ROW | {"times": {str(number): 1 for number in range(1001)}}
    assert "expected at most 1000 devices, found 1001" in refusal(read, tmp_path, many)
    wrong, path = types_of(times_s=np.full((2, 3), -1.0)), tmp_path / "wrong.parquet"
    assert "'times', row 1: cpu: expected a number above 0" in refusal(write_job_types, wrong, path)
    assert not path.exists()


SPEEDS = """file,gpu,job,gpus,steps_per_s
simulation_throughputs,k80,A3C,1,2.0
simulation_throughputs,v100,A3C,1,8.0
simulation_throughputs,v100_unconsolidated,A3C,1,5.0
physical_cluster_throughputs,v100,A3C,1,99.0
simulation_throughputs,k80,LM (batch size 5),1,0.0
simulation_throughputs,v100,LM (batch size 5),1,10.0
simulation_throughputs,v100,LM (batch size 5),2,15.0
simulation_throughputs,k80,Large,1,0.0
simulation_throughputs,v100,Large,1,0.0
"""


def seven(job: str = "A3C", steps: object = 80, arrival: object = 0, gpus: object = 1) -> str:
    return f"{job}\tcd %s && python3 main.py\t--max-steps\t0\t{steps}\t{arrival}\t{gpus}"


def read_lines(folder: Path, *lines: str, speeds: str = SPEEDS) -> GavelTrace:
    (folder / "a.trace").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "speeds.csv").write_text(speeds, encoding="utf-8")
    return read_gavel(folder / "a.trace", folder / "speeds.csv")


def test_a_job_runs_for_its_steps_over_its_speed(tmp_path: Path) -> None:
    lines = seven(), seven("LM (batch size 5)", 100, 6.5), seven("LM (batch size 5)", 150, 6.5, 2)
    trace = read_lines(tmp_path, *lines)
    assert (trace.kinds, trace.left_out) == (("k80", "v100"), {})
    jobs = trace.jobs
    assert jobs.run_s.tolist() == jobs.estimate_s.tolist() == [[40, 10], [math.inf, 10], [math.inf, 10]]
    columns = [column.tolist() for column in (jobs.submit_s, jobs.procs, jobs.number)]
    assert columns == [[0, 6.5, 6.5], [1, 1, 2], [1, 2, 3]]


def test_jobs_whose_time_is_not_known_are_left_out_and_counted(tmp_path: Path) -> None:
    trace = read_lines(
        tmp_path, seven(gpus=0), seven(gpus=16), seven(gpus=2), "", seven("Large"), seven(arrival=3)
    )
    assert trace.left_out == {"no GPUs": 1, "no speed on so many GPUs": 2, "does not fit on any GPU": 1}
    assert trace.jobs.number.tolist() == [6]
    said = refusal(read_lines, tmp_path, seven(gpus=16))
    assert said.endswith("speed is known, found none (1 with no speed on so many GPUs)")
    assert refusal(read_lines, tmp_path).endswith("a.trace: expected jobs whose speed is known, found none")


@refusals("line message")
def test_a_line_that_is_wrong_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_lines(tmp_path, seven(arrival=6), line)


def test_speeds_are_of_the_simulation_and_of_one_server(tmp_path: Path) -> None:
    # A kind without a row of a job does not run it. Files of the source are broken in all ways by the law of
    # tests/data/test_sources.py.
    read_lines(tmp_path, seven())
    kinds, speeds = read_speeds(tmp_path / "speeds.csv")
    assert kinds == ("k80", "v100")
    assert (speeds["A3C", 1], speeds["LM (batch size 5)", 2]) == ([2, 8], [0, 15])
    said = refusal(read_lines, tmp_path, seven(), speeds=SPEEDS.replace("simulation_", "other_"))
    assert "expected rows of simulation_throughputs, found none" in said
