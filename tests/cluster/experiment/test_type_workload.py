"""From a table of job types to jobs on machines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crosscast.cluster.experiment import type_workload
from crosscast.cluster.experiment_jobs import read_job_table
from crosscast.cluster.job_types import JobTypes, write_job_types
from crosscast.cluster.jobs import Machine
from crosscast.errors import InputError

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


def test_predicted_seconds_are_the_vector_scaled_to_the_time_on_its_source() -> None:
    found = type_workload(types_of(), MACHINES)
    assert found.vector is not None and found.predicted_s is not None
    # lud ran 40 s on the laptop, which is 1 in its vector; nw 3 s on the CPU, which is 0.5.
    np.testing.assert_allclose(found.predicted_s, [[8.0, 16.0], [1.5, 3.0]])


@pytest.mark.parametrize("source", [(None, "cpu"), ("none", "cpu"), ("cpu", "gpu")])
def test_without_a_time_on_the_source_there_are_no_predicted_seconds(source: tuple[str | None, str]) -> None:
    types = types_of(source=source)
    found = type_workload(types, MACHINES)
    assert found.vector is not None
    assert found.predicted_s is None
    row = 2 if source[1] == "gpu" else 1
    with pytest.raises(
        InputError, match=rf"job type {row} \(.*\): source: expected a device on which it has"
    ):
        type_workload(types, MACHINES, frozenset({"seconds"}))


def test_without_a_prediction_for_a_machine_there_is_no_vector() -> None:
    types = types_of(predicted=np.array([[0.4, 0.2, 1.0], [NONE, 0.25, 1.0]]))
    assert type_workload(types, MACHINES).vector is None
    with pytest.raises(InputError, match=r"job type 2 \(nw\): predicted: expected a prediction for each"):
        type_workload(types, MACHINES, frozenset({"vector"}))


def test_a_prediction_where_a_type_cannot_run_is_not_needed() -> None:
    types = types_of(predicted=np.array([[0.4, 0.2, 1.0], [0.5, NONE, 1.0]]))
    assert type_workload(types, MACHINES, frozenset({"vector", "seconds"})).vector is not None


def test_a_table_with_submissions_is_taken_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    write_job_types(types_of(submit_s=np.array([9.0, 2.0])), path)
    found = read_job_table(path, MACHINES, None, None)
    assert found.submit_s is not None
    assert found.submit_s.tolist() == [2.0, 9.0]
    assert found.types.jobs.procs.tolist() == [2, 1]


def test_what_there_is_enough_for_is_known(tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    write_job_types(types_of(source=(None, None)), path)
    found = read_job_table(path, MACHINES, None, None).placements
    assert {"model", "model-near", "oracle-near", "oracle-completion"} <= set(found)
    assert "completion" not in found
    write_job_types(types_of(predicted=np.full((2, 3), np.nan)), path)
    found = read_job_table(path, MACHINES, None, None).placements
    assert found == ["round-robin", "random", "user", "oracle", "oracle-near", "oracle-completion"]
    with pytest.raises(InputError, match="predicted: expected a prediction for each machine"):
        read_job_table(path, MACHINES, None, ["model-near"])
