"""What the experiment of section VII finds on the published times of 2018: see docs/scheduling-experiment.md.

The data lies beside the checkout, in ``shared/data``, or where ``CROSSCAST_DATA`` points.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from crosscast.cluster.experiment import PlacementSummary, Setup, run_experiment, type_workload
from crosscast.cluster.job_types import JobShape, JobTypes, held_out_jobs
from crosscast.cluster.jobs import Machine, read_machines
from crosscast.data.sources.aiwc import import_aiwc2018
from crosscast.evaluation.relative import held_out_predictions
from crosscast.predict.relative.nichols2024 import LogMean
from crosscast.predict.relative.observed import vectors_of
from support.shared import shared_data

EXAMPLE = Path(__file__).parents[2] / "examples" / "four-clusters.toml"
PLACEMENTS = ("user", "model", "oracle", "oracle-near", "oracle-completion")


@pytest.fixture(scope="module")
def types() -> JobTypes:
    vectors = vectors_of(import_aiwc2018(shared_data("aiwc2018")))
    held_out = held_out_predictions(vectors, LogMean(), "leave-application-out")
    return held_out_jobs(held_out, JobShape(job_procs=(1, 1, 2), job_s=600.0))


@pytest.fixture(scope="module")
def machines() -> list[Machine]:
    if not EXAMPLE.exists():
        pytest.skip("no checkout")
    return read_machines(EXAMPLE)


def placed(types: JobTypes, machines: list[Machine]) -> dict[str, PlacementSummary]:
    found = run_experiment(type_workload(types, machines), Setup(PLACEMENTS, 50_000, [1]))
    return {each.placement: each for each in found.results}


def test_all_kernels_at_all_sizes_are_types_of_jobs(types: JobTypes) -> None:
    assert len(types) == 3 * 104
    assert len(types.devices) == 15


@pytest.mark.parametrize("nodes", [None, 1354])
def test_in_a_batch_a_model_beats_users_and_is_near_the_oracle_though_it_sees_no_counter(
    types: JobTypes, machines: list[Machine], nodes: int | None
) -> None:
    if nodes is not None:
        machines = [replace(machine, procs=nodes) for machine in machines]
    model = placed(types, machines)["model"]
    assert model.against["user"].value < -0.15
    assert abs(model.against["oracle"].value) < 0.05
    assert model.on_fastest < 0.5


def test_with_slow_cpus_and_fast_gpus_the_oracle_itself_loses_to_users_unless_it_waits(
    types: JobTypes, machines: list[Machine]
) -> None:
    devices = ("knl", "xeon_es-2697v2", "gtx1080ti", "titanx")
    unlike = [
        replace(machine, procs=1354, device=device) for machine, device in zip(machines, devices, strict=True)
    ]
    found = placed(types, unlike)
    assert found["oracle"].against["user"].value > 0.8
    assert found["oracle-near"].against["user"].value < -0.3
    assert found["oracle-completion"].against["user"].value < -0.3
