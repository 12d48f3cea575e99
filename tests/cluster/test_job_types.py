"""From a table of job types to jobs on machines."""

import json
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

from crosscast.cluster.job_tables import read_job_table
from crosscast.cluster.job_types import (
    JOB_TYPES,
    JobShape,
    JobTypes,
    for_machines,
    held_out_jobs,
    read_job_types,
    write_job_types,
)
from crosscast.cluster.jobs import Machine
from crosscast.cluster.placements import type_workload
from crosscast.data.table import table_of, write_table
from crosscast.errors import InputError
from crosscast.evaluation.relative.evaluation import HeldOutPredictions
from crosscast.prediction.relative.data import NO_SOURCE, Observations
from support.cluster import made_types
from support.refusals import refusal, refusals
from support.vectors import DEVICES, made_vectors

NONE = float("nan")
MACHINES = (Machine("gpu", 4, has_gpu=True), Machine("big", 8, device="cpu"))


def types_of(**changed: object) -> JobTypes:
    cells: dict[str, object] = {
        "devices": ("cpu", "gpu", "laptop"),
        "application": ("lud", "nw"),
        "kernel": (None, None),
        "size": (None, None),
        "procs": np.array([1, 2]),
        "uses_gpu": np.array([True, False]),
        "repeats": np.array([10, 1]),
        "submit_s": None,
        "user": ("ann", "bob"),
        "times_s": np.array([[2.0, 0.5, 4.0], [3.0, NONE, 6.0]]),
        "predicted": np.array([[0.4, 0.2, 1.0], [0.5, 0.25, 1.0]]),
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


@pytest.mark.parametrize("source", [(None, "cpu"), ("none", "cpu"), ("cpu", "gpu")])
def test_without_a_time_on_the_source_there_are_no_predicted_seconds(source: tuple[str | None, str]) -> None:
    types = types_of(source=source)
    found = type_workload(types, MACHINES)
    assert found.vector is not None
    assert found.predicted_s is None
    row = 2 if source[1] == "gpu" else 1
    sentence = rf"job type {row} \(.*\): source: expected a device .* as of --job-source, found none"
    with pytest.raises(InputError, match=sentence):
        type_workload(types, MACHINES, frozenset({"seconds"}))


def test_without_a_prediction_for_a_machine_there_is_no_vector_unless_a_type_cannot_run_there() -> None:
    types = types_of(predicted=np.array([[0.4, 0.2, 1.0], [NONE, 0.25, 1.0]]))
    assert type_workload(types, MACHINES).vector is None
    with pytest.raises(InputError, match=r"job type 2 \(nw\): predicted: expected a prediction for each"):
        type_workload(types, MACHINES, frozenset({"vector"}))
    types = types_of(predicted=np.array([[0.4, 0.2, 1.0], [0.5, NONE, 1.0]]))
    assert type_workload(types, MACHINES, frozenset({"vector", "seconds"})).vector is not None


def test_what_there_is_enough_for_is_known(tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    write_job_types(types_of(source=(None, None)), path)
    found = read_job_table(path, MACHINES, None, None).placements
    assert {"model", "model-near", "exact-near", "exact-completion"} <= set(found)
    assert "completion" not in found
    write_job_types(types_of(predicted=np.full((2, 3), np.nan)), path)
    found = read_job_table(path, MACHINES, None, None).placements
    assert found == ["round-robin", "random", "user", "exact", "exact-near", "exact-completion"]
    with pytest.raises(InputError, match="predicted: expected a prediction for each machine"):
        read_job_table(path, MACHINES, None, ["model-near"])


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
        assert (types.procs.tolist(), types.submit_s) == ([1, 1], None)


@refusals("name text sentence")
def test_other_programs_mistakes_are_named(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    (tmp_path / name).write_text(text, encoding="latin-1")
    with pytest.raises(InputError) as raised:
        read_job_types(tmp_path / name)
    assert str(raised.value).startswith(f"{tmp_path / name}: {sentence}")


def predictions(repeats: int = 3) -> HeldOutPredictions:
    vectors = made_vectors(applications=3, kernels=2, sizes=2, repeats=repeats)
    rng = np.random.default_rng(8)
    predicted = rng.uniform(0.1, 1, vectors.times_s.shape)
    times_s = vectors.times_s * rng.uniform(1, 1.2, vectors.times_s.shape)
    return HeldOutPredictions("made up", replace(vectors, times_s=times_s), predicted)


def test_repeats_of_a_work_on_a_source_are_one_type() -> None:
    held_out = predictions()
    seen = held_out.vectors.observations
    types = held_out_jobs(held_out)
    assert len(types) == 3 * 2 * 2 * 2
    assert len(set(zip(types.application, types.kernel, types.size, types.source, strict=True))) == len(types)
    for row in range(len(types)):
        names = (types.application[row], types.kernel[row], types.size[row], types.source[row])
        own = [
            place
            for place, name in enumerate(
                zip(seen.application, seen.kernel, seen.size, seen.source, strict=True)
            )
            if name == names
        ]
        assert len(own) == 3
        for column in range(len(DEVICES)):
            assert types.times_s[row, column] == sorted(held_out.vectors.times_s[own, column])[1]
            mean = sum(held_out.predicted[own, column].tolist()) / 3
            assert abs(types.predicted[row, column] - mean) < 1e-12
    assert set(types.model) == {"made up"}
    assert types.submit_s is None
    assert types.procs.tolist() == types.repeats.tolist() == [1] * len(types)


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
    np.testing.assert_array_equal(made_types().run_s[0], [20, np.nan, 5])
    message = r"job_s: expected at most 2\^53 times .* found 1e\+10 s for one of 1e-09 s"
    with pytest.raises(InputError, match=message):
        JobShape(job_s=1e10).repeats_of(np.full((1, 2), 1e-9))


def test_jobs_have_the_nodes_of_their_runs_unless_said_otherwise() -> None:
    assert JobShape().procs_of(SEEN, 0) == [1]
    assert JobShape().procs_of(set_to(2.0), 0) == [2]
    assert JobShape().procs_of(set_to(np.nan), 0) == [1]
    assert JobShape(job_procs=[1, 1, 4]).procs_of(set_to(2.0), 0) == [1, 1, 4]


@pytest.mark.parametrize("nodes", [0.0, 0.5, -1.0, np.inf, 1e30])
def test_a_part_of_a_node_is_refused_unless_jobs_have_others(nodes: float) -> None:
    seen = set_to(nodes)
    with pytest.raises(InputError, match=r"setting nodes: app00, kernel0: expected a whole number from 1"):
        JobShape().check(seen, DEVICES)
    JobShape(job_procs=[1]).check(seen, DEVICES)


@refusals("changed expected")
def test_what_does_not_fit_is_refused(changed: dict[str, Any], expected: str) -> None:
    assert refusal(lambda: JobShape(**changed).check(SEEN, DEVICES)) == expected


def test_the_time_of_profiles_is_known_on_a_device_that_has_times() -> None:
    profiles = replace(SEEN, source=(NO_SOURCE,) * len(SEEN))
    JobShape(job_source="gpu").check(profiles, DEVICES)
    with pytest.raises(InputError, match="job_source: expected one of cpu, fast, gpu, found 'tpu'"):
        JobShape(job_source="tpu").check(profiles, DEVICES)


@pytest.mark.parametrize(
    ("machines", "message"),
    [
        *(
            (
                [Machine("gpu", 2), Machine("cpu", 2), Machine("catalyst", 8, device=device)],
                rf"machine catalyst: device: expected one .* times \(cpu, gpu\), found '{device}'",
            )
            for device in ("fpga", "phi")
        ),
        ([Machine("gpu", 2)], r"job type 2 \(lud\): times: expected one on a device of the machines"),
    ],
)
def test_machines_and_jobs_without_times_are_refused(machines: list[Machine], message: str) -> None:
    with pytest.raises(InputError, match=message):
        for_machines(made_types(), machines)


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
def test_types_read_back_are_the_same_and_have_the_same_bytes(tmp_path: Path, submit: Any) -> None:
    types = made_types(submit_s=submit)
    for name in ("jobs.parquet", "again.parquet"):
        write_job_types(types, tmp_path / name)
    assert_same(read_job_types(tmp_path / "jobs.parquet"), types)
    assert (tmp_path / "jobs.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()


@refusals("change message")
def test_a_cell_that_is_wrong_is_named(tmp_path: Path, change: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, ROW, ROW | json.loads(change))


@pytest.mark.parametrize(
    "change",
    [{"procs": 0}, {"repeats": 0}, {"submit_s": -1.0}, {"uses_gpu": -1}, {"uses_gpu": None}, {"times": None}],
)
def test_the_schema_refuses_what_no_job_has(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"job types: column '{next(iter(change))}', row 1: expected"):
        table_of(JOB_TYPES, [ROW | change])
    assert "jobs.parquet: expected a row for each type of job, found none" in refusal(read, tmp_path)
    with pytest.raises(InputError, match="expected at most 1000 devices, found 1001"):
        read(tmp_path, ROW | {"times": {str(number): 1 for number in range(1001)}})


def test_nothing_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    times = made_types().times_s.copy()
    times[0, 0] = -1
    with pytest.raises(InputError, match="job types: column 'times', row 1: cpu: expected a number above 0"):
        write_job_types(made_types(times_s=times), tmp_path / "jobs.parquet")
    assert not list(tmp_path.iterdir())
