"""A dataset's counted runs, or its profiles, with the times of the same work on each device."""

from typing import Any

import numpy as np
import pytest
from made_runs_seen import dataset_of_runs, profile, run

from crosscast.errors import InputError
from crosscast.predict.relative.data import NO_SOURCE
from crosscast.predict.relative.observed import devices_left_out, observations_of, vectors_of
from crosscast.tables.dataset import Dataset

COUNTED: dict[str, Any] = {"counters": {"loads": 5.0}}


def refusal(dataset: Dataset, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        vectors_of(dataset, **options)
    return str(caught.value)


def test_a_run_has_its_own_time_on_its_source_and_medians_elsewhere() -> None:
    vectors = vectors_of(
        dataset_of_runs(
            [
                run("cpu", 8.0, repeat=0, **COUNTED),
                run("cpu", 10.0, repeat=1, **COUNTED),
                *(run("gpu", time, repeat=repeat) for repeat, time in enumerate((1.0, 2.0, 6.0))),
            ]
        )
    )
    assert vectors.devices == ("cpu", "gpu")
    assert vectors.times_s.tolist() == [[8, 2], [10, 2]]
    assert vectors.vector.tolist() == [[1, 0.25], [1, 0.2]]
    assert vectors.observations.source == ("cpu", "cpu")
    assert vectors.observations.time_s.tolist() == [8, 10]


def test_each_device_that_counted_has_a_row() -> None:
    vectors = vectors_of(dataset_of_runs([run("cpu", 8.0, **COUNTED), run("gpu", 2.0, counters={"ipc": 3})]))
    assert vectors.observations.source == ("cpu", "gpu")
    assert vectors.observations.names == ("ipc", "loads")
    np.testing.assert_array_equal(vectors.observations.counters, [[np.nan, 5], [3, np.nan]])
    assert vectors.times_s.tolist() == [[8, 2], [8, 2]]


def test_sizes_and_kernels_are_other_work() -> None:
    runs = [run("cpu", 1.0, **COUNTED), run("gpu", 1.0, size="small"), run("gpu", 1.0, kernel="scan")]
    assert refusal(dataset_of_runs(runs)) == (
        "made up: expected counted work with times on two devices or more, found none "
        "(devices with times: cpu, gpu)"
    )


def test_runs_are_compared_at_one_scale() -> None:
    one, two = {"nodes": 1.0}, {"nodes": 2.0}
    vectors = vectors_of(
        dataset_of_runs(
            [
                *(run("a", time, settings=at, **COUNTED) for time, at in ((8.0, one), (5.0, two))),
                *(run("b", time, settings=at) for time, at in ((4.0, one), (1.0, two))),
            ]
        )
    )
    assert vectors.observations.scale == ("1 nodes", "2 nodes")
    assert vectors.times_s.tolist() == [[8, 4], [5, 1]]
    assert vectors.observations.configuration == ("nodes",)
    assert vectors.observations.settings.tolist() == [[1], [2]]


def test_a_device_with_gaps_is_left_out_and_can_be_asked_for() -> None:
    runs = [run(device, 1.0, size=size, **COUNTED) for device in "ab" for size in ("s1", "s2", "s3", "s4")]
    dataset = dataset_of_runs([*runs, run("c", 3.0, size="s1", **COUNTED)])
    vectors = vectors_of(dataset)
    assert (vectors.devices, len(vectors)) == (("a", "b"), 8)
    assert devices_left_out(dataset, vectors) == ("c",)
    asked = vectors_of(dataset, devices=["c", "a", "b"])
    assert asked.devices == ("c", "a", "b")
    assert asked.times_s.tolist() == [[3, 1, 1]] * 3
    assert asked.observations.source == ("a", "b", "c")
    assert devices_left_out(dataset, asked) == ()


def test_counters_of_a_device_that_is_not_compared_can_be_asked_for() -> None:
    runs = [run("a", 1.0, **COUNTED), run("b", 2.0), run("c", 3.0, **COUNTED)]
    vectors = vectors_of(dataset_of_runs(runs), devices=["a", "b"], sources=["c"])
    assert vectors.observations.source == ("c",)
    assert vectors.observations.time_s.tolist() == [3]
    assert vectors.times_s.tolist() == [[1, 2]]


def test_devices_that_did_not_count_are_compared_by_the_counters_of_others() -> None:
    runs = [run("a", 1.0), run("b", 2.0), run("c", 3.0, **COUNTED)]
    assert vectors_of(dataset_of_runs(runs), devices=["a", "b"]).observations.source == ("c",)


def test_a_session_that_failed_is_no_run() -> None:
    wrong = run("cpu", 9.0, repeat=1, failure="wrong result", **COUNTED)
    vectors = vectors_of(dataset_of_runs([run("cpu", 8.0, **COUNTED), wrong, run("gpu", 2.0)]))
    assert vectors.times_s.tolist() == [[8, 2]]


def test_profiles_are_of_no_device_and_come_first() -> None:
    runs = [run("cpu", 8.0, **COUNTED), run("gpu", 2.0, repeat=0), run("gpu", 4.0, repeat=1)]
    launches = [profile(opcode=3), profile(opcode=5, invocation=1)]
    dataset = dataset_of_runs(runs, launches)
    vectors = vectors_of(dataset)
    seen = vectors.observations
    assert (seen.source, seen.scale) == ((NO_SOURCE,), ("big",))
    assert (seen.names, seen.counters.tolist()) == (("opcode", "total_instruction_count"), [[4, 100]])
    assert (seen.configuration, seen.settings.tolist()) == (("invocations",), [[2]])
    np.testing.assert_allclose(vectors.times_s, [[8, 3]])
    assert np.isnan(seen.time_s).all()
    assert vectors_of(dataset, counters="sessions").observations.names == ("loads",)
    assert vectors_of(dataset, sources=[NO_SOURCE]).observations.source == (NO_SOURCE,)


def test_what_is_asked_about_needs_no_times_elsewhere() -> None:
    alone = dataset_of_runs([run("cpu", 8.0, **COUNTED)])
    assert observations_of(alone).counters.tolist() == [[5]]
    profiles = dataset_of_runs([], [profile(opcode=3), profile("scan", opcode=4)])
    assert observations_of(profiles).counters.tolist() == [[3, 100], [4, 100]]


def test_observations_of_profiles_are_those_of_their_vectors() -> None:
    runs = [run(device, 2.0, kernel=kernel) for device in "ab" for kernel in ("sum", "scan")]
    dataset = dataset_of_runs(runs, [profile("scan", opcode=4), profile("sum", opcode=3)])
    alone, timed = observations_of(dataset), vectors_of(dataset).observations
    assert dict(zip(alone.kernel, alone.counters.tolist(), strict=True)) == dict(
        zip(timed.kernel, timed.counters.tolist(), strict=True)
    )


def test_a_dataset_without_counters_is_refused() -> None:
    dataset = dataset_of_runs([run("a", 1.0), run("b", 1.0)])
    assert refusal(dataset) == "made up: expected profiles or sessions with counters, found neither"
    assert refusal(dataset, counters="sessions") == "made up: expected sessions with counters, found none"
    assert refusal(dataset, counters="profiles") == "made up: expected profiles, found none"
    with pytest.raises(InputError, match="expected profiles or sessions with counters, found neither"):
        observations_of(dataset)


def test_fewer_than_two_devices_are_refused() -> None:
    runs = [run("a", 1.0, **COUNTED), run("b", 1.0)]
    assert refusal(dataset_of_runs(runs[:1])) == (
        "made up: expected counted work with times on two devices or more, found none (devices with times: a)"
    )
    dataset = dataset_of_runs(runs)
    assert refusal(dataset, devices=["a"]) == "devices: expected two or more, each once, found a"
    assert refusal(dataset, devices=["a", "b", "a"]).endswith("each once, found a, b, a")
    assert refusal(dataset, devices=[]) == "devices: expected two or more, each once, found none"


def test_devices_and_sources_that_are_not_there_are_named() -> None:
    dataset = dataset_of_runs([run("a", 1.0, **COUNTED), run("b", 1.0)])
    assert refusal(dataset, devices=["a", "x"]) == (
        "devices: expected some of those with times in made up (a, b), found 'x'"
    )
    assert refusal(dataset, sources=["b"]) == (
        "sources: expected some of those with counters in made up (a), found 'b'"
    )


def test_work_that_no_two_devices_share_is_refused() -> None:
    runs = [run(device, 1.0, size=device, **COUNTED) for device in "ab"]
    assert refusal(dataset_of_runs(runs), devices=["a", "b"]) == (
        "made up: expected work counted with times on all of a, b, found none"
    )
    both = [run("a", 1.0, **COUNTED), run("b", 1.0), run("c", 1.0, size="small", **COUNTED)]
    assert refusal(dataset_of_runs(both), sources=["c"]) == (
        "made up: expected work counted on c with times on all of a, b, found none"
    )


def test_a_time_of_0_is_refused_where_it_would_be_used() -> None:
    runs = [run("a", 1.0, **COUNTED), run("b", 0.0)]
    assert refusal(dataset_of_runs(runs)) == (
        "made up: records: expected times above 0, found 0 for sums, sum, big on b"
    )


def test_a_run_whose_kernel_has_no_record_is_left_out() -> None:
    session: dict[str, Any] = {**COUNTED, "kernels": ["sum", "scan"]}
    vectors = vectors_of(dataset_of_runs([run("a", 1.0, **session), run("b", 2.0)]))
    assert vectors.observations.kernel == ("sum",)
