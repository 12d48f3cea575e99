"""Types of jobs are what was held out: once for each work and source, with times and predictions."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from crosscast.cluster.experiment import type_workload
from crosscast.cluster.job_types import JobShape, held_out_jobs, read_job_types, write_job_types
from crosscast.cluster.jobs import Machine
from crosscast.evaluation.relative import HeldOutPredictions, held_out_predictions
from crosscast.predict.relative.data import NO_SOURCE
from crosscast.predict.relative.models import models_named
from support.vectors import DEVICES, made_vectors

MACHINES = (Machine("cpu", 8), Machine("gpu", 4, has_gpu=True))


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


def test_the_order_of_the_runs_does_not_matter() -> None:
    held_out = predictions()
    order = np.random.default_rng(1).permutation(len(held_out.vectors.times_s))
    shuffled = replace(held_out, vectors=held_out.vectors.rows(order), predicted=held_out.predicted[order])
    one, other = held_out_jobs(held_out), held_out_jobs(shuffled)
    assert (one.application, one.kernel, one.source) == (other.application, other.kernel, other.source)
    np.testing.assert_array_equal(one.times_s, other.times_s)
    np.testing.assert_allclose(one.predicted, other.predicted, rtol=1e-14)


def test_each_width_is_a_type_of_the_same_times() -> None:
    shape = JobShape(job_procs=(1, 1, 2), job_s=600.0, gpu_applications=["app01"])
    types = held_out_jobs(predictions(), shape)
    assert types.procs.tolist() == [1, 1, 2] * 24
    np.testing.assert_array_equal(types.times_s[::3], types.times_s[2::3])
    np.testing.assert_allclose(np.exp(np.log(types.run_s).mean(axis=1)), 600, rtol=0.02)
    assert types.uses_gpu.tolist() == [name == "app01" for name in types.application]


def test_profiles_have_the_source_that_is_said() -> None:
    held_out = predictions(repeats=1)
    profiles = replace(held_out.vectors.observations, source=(NO_SOURCE,) * len(held_out.vectors))
    held_out = replace(held_out, vectors=replace(held_out.vectors, observations=profiles))
    assert set(held_out_jobs(held_out).source) == {None}
    types = held_out_jobs(held_out, JobShape(job_source="fast"))
    assert set(types.source) == {"fast"}
    found = type_workload(types, MACHINES)
    assert found.predicted_s is not None
    seconds = types.predicted * (types.times_s[:, 1] / types.predicted[:, 1])[:, None]
    np.testing.assert_allclose(found.predicted_s, seconds[:, [0, 2]])


def test_predictions_that_are_never_wrong_are_the_times_of_jobs(tmp_path: Path) -> None:
    held_out = predictions(repeats=1)
    exact = replace(held_out, predicted=held_out.vectors.vector)
    path = tmp_path / "jobs.parquet"
    write_job_types(held_out_jobs(exact, JobShape(job_s=60.0)), path)
    found = type_workload(read_job_types(path), MACHINES)
    assert found.predicted_s is not None
    np.testing.assert_allclose(found.predicted_s, found.jobs.run_s)


def test_a_model_predicts_what_jobs_have() -> None:
    vectors = made_vectors(applications=3, kernels=1, sizes=1)
    model = models_named(["log-mean"])[0]
    held_out = held_out_predictions(vectors, model, "leave-application-out")
    types = held_out_jobs(held_out)
    assert set(types.model) == {"log-mean"}
    assert (types.predicted > 0).all()
    # Without its own application, no two have the same mean.
    assert len({tuple(row) for row in types.predicted[:: len(types) // 3].tolist()}) == 3
