"""Groups of jobs, compared with the best of all; gains of pairs; what pairing by predictions keeps."""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from benchmarks.pair_experiment import (
    EQUAL,
    LOGNORMAL,
    PredictedPairs,
    Truth,
    share_kept,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crosscast.data.corun import IsolatedRun
from crosscast.decide.colocation import ColocationPlan, best_groups, choose_colocation
from crosscast.decide.colocation_gains import ColocationJobs, Group, MixJudge, best_matching, pair_gain
from crosscast.errors import InputError, MissingExtraError
from crosscast.prediction.corun.artefact import FittedCoRun, TrainedCoRunModel
from crosscast.prediction.corun.probes import NO_MIXES
from crosscast.prediction.corun.slowdowns import mix_times
from crosscast.prediction.named_models import load_model
from support.corun_models import MEMORY, constant, made_jobs, trained
from support.examples import one_in
from support.mixes import made_co_runs
from support.refusals import refusal


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TrainedCoRunModel:
    return trained(tmp_path_factory.mktemp("co") / "model", (2, 3))


def partitions(jobs: tuple[int, ...], most: int) -> Iterator[list[Group]]:
    """All ways to put jobs into groups of so many at the most."""
    if not jobs:
        yield []
        return
    first, *rest = jobs
    for mask in range(1 << len(rest)):
        group = (first, *(job for place, job in enumerate(rest) if mask >> place & 1))
        if len(group) <= most:
            left = tuple(job for job in rest if job not in group)
            yield from ([group, *others] for others in partitions(left, most))


@pytest.mark.parametrize("seed", one_in(2, range(4)))
def test_groups_come_close_to_the_best_and_are_not_below_pairs(model: TrainedCoRunModel, seed: int) -> None:
    lengths = np.exp(np.random.default_rng(seed).standard_normal(7)).tolist()
    jobs = ColocationJobs.of(made_jobs(7, seed), "cpu", lengths=lengths)
    judge = MixJudge(jobs, model)
    known: dict[Group, float] = {(job,): 0.0 for job in range(7)}
    for size in (2, 3):
        every_one = list(combinations(range(7), size))
        worth, _ = judge.judge(np.array(every_one))
        known.update(zip(every_one, worth.tolist(), strict=True))

    def total(groups: list[Group]) -> float:
        return sum(known[group] for group in groups)

    every = list(partitions(tuple(range(7)), 3))
    best, pairs = max(map(total, every)), max(total(each) for each in every if max(map(len, each)) < 3)
    groups = best_groups(judge, [], 3)
    from_pairs = choose_colocation(made_jobs(7, seed), model, lengths=lengths, group_size=3)
    found = sum(mix.worth_s for mix in from_pairs.shared)
    assert sorted(job for group in groups for job in group) == [*range(7)]
    assert all(len(group) <= 3 for group in groups)
    assert pairs - 1e-9 <= found <= best + 1e-9
    assert found >= 0.9 * best


def test_limits_hold_for_groups(model: TrainedCoRunModel) -> None:
    jobs = made_jobs(9)
    plan = choose_colocation(jobs, model, max_slowdown=1.6, memory_bytes=2 << 20, group_size=3)
    # Each takes 1 MiB, so that no three fit.
    assert max(len(mix.jobs) for mix in plan.shared) == 2
    plan = choose_colocation(jobs, model, max_slowdown=1.6, group_size=3)
    assert all(each.value <= 1.6 for mix in plan.shared for each in mix.slowdown)

    # A group is worth the same in a batch and alone.
    judge = MixJudge(ColocationJobs.of(made_jobs(6), "cpu"), model)
    three = np.array([(0, 1, 2), (1, 3, 5), (2, 3, 4)])
    together, _ = judge.judge(three)
    assert together.tolist() == pytest.approx([float(judge.judge(three[[row]])[0][0]) for row in range(3)])


LENGTHS = st.lists(st.floats(0.1, 50), min_size=9, max_size=9)


@pytest.fixture(scope="module")
def model_of_pairs(tmp_path_factory: pytest.TempPathFactory) -> TrainedCoRunModel:
    return trained(tmp_path_factory.mktemp("co") / "model")


def names_of(plan: ColocationPlan, lengths: list[float]) -> tuple[Counter[object], Counter[object]]:
    """What each mix and each single job is, whatever its place was."""
    pairs = [zip(mix.jobs, mix.isolated_runs, strict=True) for mix in plan.shared]
    shared = Counter(tuple(sorted((run.name, lengths[job]) for job, run in pair)) for pair in pairs)
    return Counter(shared), Counter((each.isolated_run.name, lengths[each.job]) for each in plan.alone)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 99), lengths=LENGTHS, most=st.floats(1, 2.5), memory=st.integers(1, 4))
def test_every_job_is_there_once_and_every_limit_is_kept(
    model_of_pairs: TrainedCoRunModel, seed: int, lengths: list[float], most: float, memory: int
) -> None:
    random = np.random.default_rng(seed)
    jobs = [
        replace(job, memory_bytes=int(size) if size else None)
        for job, size in zip(made_jobs(9, seed), random.integers(0, memory + 1, 9), strict=True)
    ]
    limits: dict[str, Any] = {"max_slowdown": most, "memory_bytes": memory}
    plan = choose_colocation(jobs, model_of_pairs, lengths=lengths, **limits)
    together = [job for mix in plan.shared for job in mix.jobs]
    assert sorted([*together, *(each.job for each in plan.alone)]) == [*range(9)]
    for mix in plan.shared:
        assert sum(jobs[job].memory_bytes or 0 for job in mix.jobs) <= memory
        assert all(each.value <= most for each in mix.slowdown)
        assert mix.gain_s.value > 0
        assert mix.gain_s.low <= mix.gain_s.value <= mix.gain_s.high
        assert mix.together_s + mix.gain_s.value == pytest.approx(sum(lengths[job] for job in mix.jobs))
    assert plan.serial_s == pytest.approx(sum(lengths))
    assert 0 <= plan.gain_s.value < plan.serial_s
    assert plan.time_s.low <= plan.time_s.value <= plan.time_s.high
    # The order of the jobs changes nothing.
    order = random.permutation(9).tolist()
    jobs, moved_lengths = [jobs[place] for place in order], [lengths[place] for place in order]
    moved = choose_colocation(jobs, model_of_pairs, lengths=moved_lengths, **limits)
    assert names_of(plan, lengths) == names_of(moved, moved_lengths)
    assert plan.gain_s.value == pytest.approx(moved.gain_s.value)


def test_jobs_that_hardly_disturb_each_other_share_the_long_with_the_long(tmp_path: Path) -> None:
    plan = choose_colocation(made_jobs(6), constant(tmp_path / "m", 1.2))
    assert len(plan.shared) == 3 and not plan.alone
    plan = choose_colocation(made_jobs(4), constant(tmp_path / "m", 1.2), lengths=[1.0, 9.0, 1.0, 9.0])
    assert [mix.jobs for mix in plan.shared] == [(0, 2), (1, 3)]
    assert plan.gain_s.value == pytest.approx(2 * (1 - 0.6) + 18 * (1 - 0.6))


def sized(*memory_bytes: int) -> list[IsolatedRun]:
    jobs = zip(made_jobs(len(memory_bytes)), memory_bytes, strict=True)
    return [replace(job, memory_bytes=size) for job, size in jobs]


@pytest.mark.parametrize(
    ("jobs", "told", "words", "reason"),
    [
        (made_jobs(4), {"slowdown": 2.0}, {}, "with each of 3 others nothing is gained"),
        (made_jobs(2), {"fits": 0.4}, {}, "with the only other job it is more likely not to fit than to fit"),
        # The memory of the card counts where none is given.
        (sized(*[MEMORY * 2 // 3] * 3), {}, {}, "with each of 2 others there is not the memory for both"),
        (
            made_jobs(2),
            {"slowdown": 1.25, "error": 0.2},
            {"max_slowdown": 1.3, "sure": True},
            "with the only other job one of both may slow down more than 1.3×",
        ),
        (
            sized(9, 9, 9, 1),
            {},
            {"memory_bytes": 10},
            "of 3 others, with 2 there is not the memory for both, "
            "with 1 less is gained than where they run now",
        ),
    ],
)
def test_the_reasons_why_jobs_run_alone_are_told(
    tmp_path: Path, jobs: list[IsolatedRun], told: Any, words: dict[str, Any], reason: str
) -> None:
    plan = choose_colocation(jobs, constant(tmp_path / "m", **{"slowdown": 1.2, **told}), **words)
    assert {each.reason for each in plan.alone} == {reason}
    assert len(plan.shared) == (words.get("memory_bytes") == 10)


def test_limits_that_hold_leave_a_gain_by_the_probability_that_the_mix_fits(tmp_path: Path) -> None:
    plan = choose_colocation(made_jobs(2), constant(tmp_path / "m", 1.2, fits=0.6))
    assert plan.gain_s.value == pytest.approx(0.6 * plan.shared[0].gain_s.value)
    assert plan.gain_s.low == pytest.approx(0.6 * plan.shared[0].gain_s.low)
    unsure = constant(tmp_path / "m", 1.25, error=0.2)
    assert choose_colocation(made_jobs(2), unsure, max_slowdown=1.3).shared
    assert choose_colocation(sized(*[MEMORY * 2 // 3] * 3), unsure, memory_bytes=2 * MEMORY).shared


def test_more_jobs_than_two_share_if_that_is_asked(tmp_path: Path) -> None:
    told = constant(tmp_path / "m", 1.1)
    plan = choose_colocation(made_jobs(6), told, lengths=[1.0] * 6, group_size=3)
    assert [len(mix.jobs) for mix in plan.shared] == [3, 3]
    # Three of slowdown 1.1 in pairs, of which no mix of three was seen: 1.2 in the whole.
    assert [each.value for each in plan.shared[0].slowdown] == pytest.approx([1.2] * 3)
    assert plan.shared[0].gain_s.value == pytest.approx(3 - 1.2)
    assert any("at least what those in its pairs add up to" in each for each in plan.shared[0].warnings)


JOBS = made_jobs(2)
WRONG: list[tuple[list[IsolatedRun], dict[str, Any], str]] = [
    (JOBS[:1], {}, "jobs: expected 2 to 1,000, found 1"),
    ([JOBS[0], replace(JOBS[1], device="gpu")], {}, "device: expected the profile to be of cpu"),
    ([replace(JOBS[0], time_s=None), JOBS[1]], {}, "its time alone, a number of seconds above 0, found none"),
    (JOBS, {"lengths": [1.0, -1.0]}, "found -1"),
    (JOBS, {"lengths": [1.0] * 3}, "lengths: expected one for each of 2 jobs, found 3"),
    (JOBS, {"memory_bytes": 1 << 10}, "memory_bytes: expected at most the 1 KiB of cpu, found 1 MiB"),
    (JOBS, {"memory_bytes": 0}, "memory_bytes: expected a number above 0, found 0"),
    (JOBS, {"max_slowdown": 0.5}, "max_slowdown: expected a number of at least 1, found 0.5"),
    (JOBS, {"group_size": 6}, "group_size: expected 2 to 5, found 6"),
    (JOBS, {"level": 1.0}, "level: expected a probability between 0 and 1, found 1"),
]


@pytest.mark.parametrize(("jobs", "words", "message"), WRONG)
def test_wrong_jobs_and_limits_are_refused(
    tmp_path: Path, jobs: list[IsolatedRun], words: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        choose_colocation(jobs, constant(tmp_path / "m", 1.2), **words)
    assert message in str(caught.value)


def test_a_model_without_errors_is_refused(tmp_path: Path) -> None:
    told = constant(tmp_path / "m", 1.2)
    bare = tmp_path / "bare"
    predictor = told.predictor
    TrainedCoRunModel(told.card, FittedCoRun(predictor, {})).save(bare)
    with pytest.raises(InputError, match="expected a model with errors of slowdowns"):
        choose_colocation(made_jobs(2), load_model(bare, "corun"))


@pytest.mark.parametrize("slowdown", [0.5, 0.82, 0.999])
def test_no_forecast_is_faster_than_alone_unless_it_was_measured(tmp_path: Path, slowdown: float) -> None:
    jobs = made_jobs(4)
    made = constant(tmp_path / "model", slowdown, error=0.2)
    for each in made.predict([*combinations(jobs, 2), jobs]):
        assert all(one is not None and one.value == 1.0 and one.low <= 1.0 for one in each.slowdown)
        assert each.time_s is None or each.time_s.low >= max(job.time_s or 0.0 for job in each.mix)
    plan = choose_colocation(jobs, made)
    assert all(one.value >= 1.0 for mix in plan.shared for one in mix.slowdown)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000), count=st.integers(2, 6))
def test_a_plan_and_a_forecast_say_the_same_of_a_mix(model: TrainedCoRunModel, seed: int, count: int) -> None:
    plan = choose_colocation(made_jobs(count, seed), model, group_size=3)
    for mix in plan.shared:
        (forecast,) = model.predict([mix.isolated_runs])
        assert forecast.time_s is not None
        assert mix.together_s == pytest.approx(forecast.time_s.value)
        assert mix.serial_s - mix.gain_s.low == pytest.approx(forecast.time_s.high)
        assert mix.serial_s - mix.gain_s.high == pytest.approx(forecast.time_s.low)
        for one, other in zip(mix.slowdown, forecast.slowdown, strict=True):
            assert other is not None
            assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))
        assert mix.together_s >= max(job.time_s or 0.0 for job in mix.isolated_runs)
    if len(plan.shared) == 1:
        assert plan.gain_s.low == pytest.approx((plan.shared[0].fits or 1.0) * plan.shared[0].gain_s.low)


def test_a_measured_mix_is_planned_as_measured(tmp_path: Path) -> None:
    model = constant(tmp_path / "model", 1.2, error=0.1)
    told = replace(model, measured=NO_MIXES.with_mixes([(tuple(JOBS), [2.5, 2.5])]))
    assert choose_colocation(JOBS, model).shared and not choose_colocation(JOBS, told).shared


PAIR_LENGTHS = arrays(np.float64, (7, 2), elements=st.floats(0.01, 100))
SLOWDOWNS = arrays(np.float64, (7, 2), elements=st.floats(1, 10))


@given(PAIR_LENGTHS, SLOWDOWNS)
def test_a_pair_gains_what_a_mix_gains_in_either_order(lengths: np.ndarray, slowdowns: np.ndarray) -> None:
    together = mix_times(lengths, slowdowns, lambda rows, places: np.ones((len(rows), len(places))))
    gains = lengths.sum(axis=1) - together
    assert pair_gain(lengths, slowdowns) == pytest.approx(gains, rel=1e-9, abs=1e-9)
    assert pair_gain(lengths, slowdowns).tolist() == pair_gain(lengths[:, ::-1], slowdowns[:, ::-1]).tolist()


@pytest.mark.parametrize(("seed", "jobs"), [(0, 40), (1, 40), *((seed, 5) for seed in range(9))])
def test_networkx_finds_no_more(seed: int, jobs: int) -> None:
    random = np.random.default_rng(seed)
    weights = (random.gamma(1.0, size=(jobs, jobs)) - 0.3) * (random.random((jobs, jobs)) < 0.5)
    graph = nx.Graph()
    first, second = np.nonzero(np.triu(weights, 1))
    graph.add_weighted_edges_from(
        (int(one), int(other), float(weights[one, other])) for one, other in zip(first, second, strict=True)
    )
    theirs = [(min(pair), max(pair)) for pair in nx.max_weight_matching(graph)]
    pairs = best_matching(weights)
    assert sum(weights[pair] for pair in pairs) == pytest.approx(sum(weights[pair] for pair in theirs))
    nodes = [node for pair in pairs for node in pair]
    assert len(set(nodes)) == len(nodes)
    assert all(one < other and weights[one, other] > 0 for one, other in pairs)


def test_a_weight_makes_a_pair_however_tiny_but_not_if_it_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert best_matching(np.array([[0.0, np.nan, -1.0], [9.0, 0.0, 0.0], [9.0, 9.0, 0.0]])) == []
    weights = np.zeros((4, 4))
    weights[0, 1], weights[2, 3] = 1e9, 1e-9
    assert best_matching(weights) == [(0, 1), (2, 3)]
    assert "weights: expected shape (n, n), found (2, 3)" in refusal(best_matching, np.zeros((2, 3)))
    assert "weights: expected finite numbers" in refusal(best_matching, np.full((2, 2), np.inf))
    monkeypatch.setitem(sys.modules, "rustworkx", None)
    with pytest.raises(MissingExtraError, match=r"pairing jobs needs.*crosscast\[corun\]"):
        best_matching(np.ones((2, 2)))


# The experiment: what pairing by predictions keeps, between a random pairing and the best one

RUNS = made_co_runs(sizes=("small", "tiny"))


def exact(truth: Truth) -> PredictedPairs:
    """Predictions without errors."""
    fits = np.where(np.isnan(truth.slowdown), 0.0, 1.0)
    slowdown = np.where(np.isnan(truth.slowdown), 9.0, truth.slowdown)
    return PredictedPairs(slowdown, fits)


@pytest.mark.parametrize("lengths", [EQUAL, LOGNORMAL])
def test_who_knows_the_truth_keeps_all(lengths: str) -> None:
    truth = Truth.of(RUNS.mixes)
    assert share_kept(truth, [exact(truth)], lengths, jobs=20, repeats=4) == pytest.approx(np.ones(4))


def test_who_knows_nothing_keeps_nothing_of_jobs_of_equal_length() -> None:
    truth = Truth.of(RUNS.mixes)
    blind = replace(exact(truth), slowdown=np.full_like(truth.slowdown, 1.5))
    shares = share_kept(truth, [blind], EQUAL, jobs=40, repeats=40)
    assert abs(shares.mean()) < 4 * shares.std() / np.sqrt(40)
    # Of unequal lengths, something is gained by pairing long jobs with long ones.
    assert share_kept(truth, [blind], LOGNORMAL, jobs=40, repeats=40).mean() > 0.2


def test_pairs_that_were_not_measured_and_other_lengths_are_refused() -> None:
    assert "mixes: expected all pairs of inputs, measured, found none of" in refusal(Truth.of, RUNS.mixes[1:])
    assert "found none" in refusal(Truth.of, [])
    truth = Truth.of(RUNS.mixes)
    assert "found 'long'" in refusal(share_kept, truth, [exact(truth)], "long")
