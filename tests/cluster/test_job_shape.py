import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.cluster.job_types import JobShape
from crosscast.errors import InputError
from crosscast.predict.relative.data import NO_SOURCE, Observations
from support.vectors import DEVICES, made_vectors

SEEN = made_vectors(applications=2, kernels=1, sizes=1).observations


def set_to(nodes: float) -> Observations:
    return replace(SEEN, configuration=("nodes",), settings=np.full((len(SEEN), 1), nodes))


@given(
    st.lists(st.floats(1e-6, 1e4), min_size=3, max_size=3),
    st.floats(1e-3, 1e6),
)
def test_no_other_number_of_repeats_comes_closer_to_the_time_of_a_job(
    times: list[float], job_s: float
) -> None:
    times_s = np.array([times])
    repeats = int(JobShape(job_s=job_s).repeats_of(times_s)[0])
    typical_s = float(np.prod(times_s ** (1 / 3)))

    def off(count: int) -> float:
        return abs(count * typical_s - job_s)

    assert repeats >= 1
    assert all(
        off(repeats) <= off(other) * (1 + 1e-9) + 1e-9 * job_s for other in (repeats + 1, max(repeats - 1, 1))
    )


def test_a_job_is_one_invocation_unless_it_has_a_time() -> None:
    assert JobShape().repeats_of(np.array([[1e-9, 1.0], [2.0, 3.0]])).tolist() == [1, 1]


def test_a_job_that_repeats_too_often_to_be_counted_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"job_s: expected at most 2\^53 times .* found 1e\+10 s for one of 1e-09 s"
    ):
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


def test_all_applications_are_known_to_run_on_gpus_unless_some_are_named() -> None:
    assert JobShape().uses_gpu("app00")
    shape = JobShape(gpu_applications=["app01"])
    assert [shape.uses_gpu(name) for name in ("app00", "app01")] == [False, True]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"job_procs": []}, "job_procs: expected numbers from 1 to 2147483647, found none"),
        ({"job_procs": [1, 0]}, "job_procs: expected numbers from 1 to 2147483647, found 1, 0"),
        ({"job_s": 0.0}, "job_s: expected a time above 0 s, found 0.0"),
        ({"job_s": np.nan}, "job_s: expected a time above 0 s, found nan"),
        ({"job_s": np.inf}, "job_s: expected a time above 0 s, found inf"),
        ({"gpu_applications": ["amg"]}, "gpu_applications: expected some of app00, app01, found 'amg'"),
        (
            {"job_source": "gpu"},
            "job_source: expected it of profiles, which are of no device, found counters of cpu, fast",
        ),
    ],
)
def test_what_does_not_fit_is_refused(changed: dict[str, object], expected: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        JobShape(**changed).check(SEEN, DEVICES)  # type: ignore[arg-type]


def test_the_time_of_profiles_is_known_on_a_device_that_has_times() -> None:
    profiles = replace(SEEN, source=(NO_SOURCE,) * len(SEEN))
    JobShape(job_source="gpu").check(profiles, DEVICES)
    with pytest.raises(InputError, match="job_source: expected one of cpu, fast, gpu, found 'tpu'"):
        JobShape(job_source="tpu").check(profiles, DEVICES)
