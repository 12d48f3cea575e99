"""Groups of more than two, compared with the best of all."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from crosscast.decide.colocation import Group, PredictedBags, choose_pairs, grown_groups
from crosscast.decide.pairing import Jobs, KindPredictions, Limits
from crosscast.predict.corun.artefact import TrainedCoRunModel
from kept_corun import made_jobs, trained


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


@pytest.mark.parametrize("seed", range(4))
def test_groups_come_close_to_the_best_of_all_and_are_never_worth_less_than_pairs(
    model: TrainedCoRunModel, seed: int
) -> None:
    lengths = np.exp(np.random.default_rng(seed).standard_normal(7)).tolist()
    jobs = Jobs.of(made_jobs(7, seed), "cpu", lengths=lengths)
    bags = PredictedBags(KindPredictions(jobs, model), Limits(), 0)
    known: dict[Group, float] = {(job,): 0.0 for job in range(7)}
    for size in (2, 3):
        every_one = list(combinations(range(7), size))
        judged = bags.judged(np.array(every_one))
        known.update(zip(every_one, judged.worth.tolist(), strict=True))

    def total(groups: list[Group]) -> float:
        return sum(known[group] for group in groups)

    every = list(partitions(tuple(range(7)), 3))
    best, pairs = max(map(total, every)), max(total(each) for each in every if max(map(len, each)) < 3)
    groups = grown_groups(bags, [], 3)
    from_pairs = choose_pairs(made_jobs(7, seed), model, lengths=lengths, group_size=3)
    found = sum(bag.worth_s for bag in from_pairs.shared)
    assert sorted(job for group in groups for job in group) == [*range(7)]
    assert all(len(group) <= 3 for group in groups)
    assert pairs - 1e-9 <= found <= best + 1e-9
    assert found >= 0.9 * best


def test_limits_hold_for_groups(model: TrainedCoRunModel) -> None:
    jobs = made_jobs(9)
    plan = choose_pairs(jobs, model, max_slowdown=1.6, memory_bytes=2 << 20, group_size=3)
    # Each takes 1 MiB, so that no three fit.
    assert max(len(bag.jobs) for bag in plan.shared) == 2
    plan = choose_pairs(jobs, model, max_slowdown=1.6, group_size=3)
    assert all(each.value <= 1.6 for bag in plan.shared for each in bag.slowdown)


def test_a_group_is_worth_the_same_in_a_batch_and_alone(model: TrainedCoRunModel) -> None:
    bags = PredictedBags(KindPredictions(Jobs.of(made_jobs(6), "cpu"), model), Limits(), 0)
    three = np.array([(0, 1, 2), (1, 3, 5), (2, 3, 4)])
    together = bags.judged(three).worth
    assert together.tolist() == pytest.approx([float(bags.judged(three[[row]]).worth[0]) for row in range(3)])
