"""Configurations that are learned from jobs that have ended: what is tried, what stays, and the budget."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.cluster.configurations import KindForecast, Learner, configure
from crosscast.cluster.jobs import Jobs, Machine, PlacedJobs, Schedule
from crosscast.cluster.power import PowerOptions, power_metrics
from crosscast.cluster.rules import KindChoices, Learning, Rules
from crosscast.cluster.simulate import simulate
from crosscast.cluster.site import Budget, Site, constant_budget
from support.cluster import jobs_of
from support.commands import Command
from support.examples import examples
from support.refusals import refusal

SIMULATE = Command.of("simulate policies")
MACHINES = [Machine("one", 4, idle_w=10)]
ONE = np.zeros(1, np.int64)


def options(*rows: tuple[float, float, float, float]) -> PowerOptions:
    """One kind with rows of true power and slowdown, and predicted ones."""
    power_w, slowdown, predicted_w, predicted = np.array(rows).T[:, None]
    return PowerOptions(("a",), power_w, slowdown, predicted_w, predicted)


WRONG = options((100, 1.2, 100, 1.2), (60, 3, 60, 1), (70, 1, 70, 1.05))
"""The second is predicted to be the fastest, which is true of the third."""


def in_turn(count: int) -> Jobs:
    """Jobs of one processor for 10 s, each submitted when the one before has ended."""
    return jobs_of(*[(1000 * job, 1, 10) for job in range(count)])


def learned(
    known: PowerOptions, jobs: Jobs, budget: Budget, learner: Learner | None = None, *, measured: bool = False
) -> Schedule:
    kind = np.zeros(len(jobs), np.int64)
    configured = configure(known, kind, PlacedJobs(jobs, MACHINES, kind), budget, "learned", learner)
    rules = Rules(learning=configured.learning)
    rules = rules.with_measured(None) if measured else rules
    return simulate(configured.planned, MACHINES, site=Site(budget=budget), rules=rules)


def test_a_wrong_prediction_is_tried_once_and_what_is_measured_stays() -> None:
    schedule = learned(WRONG, in_turn(5), constant_budget(140))
    assert schedule.ran_s.tolist() == [30, 10, 10, 10, 10]
    assert schedule.jobs.power_w is not None
    assert schedule.jobs.power_w.tolist() == [60, 70, 70, 70, 70]
    assert schedule.jobs.estimate_s[:, 0].tolist() == [10, 10.5, 10, 10, 10]


@dataclass(frozen=True)
class Doubtful:
    """Knows the first configuration; others are as fast, or twice as fast with some probability."""

    known: PowerOptions
    chance: float

    def samples(self, kind: int) -> tuple[int, ...]:
        return (0,)

    def forecast(self, kind: int, measured: Sequence[int]) -> KindForecast:
        slowdown = np.where(np.isin(range(3), measured), self.known.slowdown[kind], 1.2)
        fast = np.where(np.isin(range(3), measured), slowdown, 0.5)
        draws = round(100 * self.chance)
        return KindForecast(
            self.known.power_w[kind], slowdown, np.array([fast] * draws + [slowdown] * (100 - draws))
        )


def test_one_job_at_a_time_tries_and_others_take_the_best_measured_one() -> None:
    known = options(*[(50.0, 1.0 + index / 10, 50.0, 1.0) for index in range(3)])
    # Each of two is tried once, for 11 and 12 s; three jobs fit at a time.
    jobs = replace(in_turn(9), submit_s=np.zeros(9))
    schedule = learned(known, jobs, constant_budget(160), Doubtful(known, 0.05))
    assert schedule.ran_s.tolist() == [11, 10, 10, 10, 10, 12, 10, 10, 10]


def test_what_may_be_much_better_is_tried() -> None:
    known = options(*[(100.0, 1.0 + index / 10, 100.0, 1.0) for index in range(3)])
    for chance, tried in ((0.0, 0), (0.05, 2)):
        schedule = learned(known, in_turn(6), constant_budget(200), Doubtful(known, chance))
        assert int((schedule.ran_s > 10).sum()) == tried
        assert schedule.ran_s[tried:].tolist() == [10] * (6 - tried)


@examples(60)
@given(st.integers(0, 2**31))
def test_in_the_end_nothing_measured_is_cheaper_and_nothing_else_is_predicted_to_be(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 6))
    table = np.column_stack([rng.integers(11, 100, (count, 2)), 1 + rng.integers(0, 20, (count, 2)) / 10])
    known = options(*[(row[0], row[2], row[1], row[3]) for row in table.tolist()])
    jobs = replace(in_turn(3), submit_s=np.zeros(3))
    kind = np.zeros(3, np.int64)
    # Only power is scarce, whatever is known.
    budget = constant_budget(140)
    machines = [Machine("one", 1000, idle_w=0.0)]
    learning = configure(known, kind, PlacedJobs(jobs, machines, kind), budget, "learned").learning
    assert learning is not None
    measured, nothing = np.zeros((2, 1, count), np.bool_)
    chosen = learning.choose(measured, nothing).option[0]
    while not measured[0, chosen]:
        measured[0, chosen] = True
        chosen = learning.choose(measured, nothing).option[0]
    true, predicted = table[:, 0] * table[:, 2], table[:, 1] * table[:, 3]
    assert true[chosen] == true[measured[0]].min()
    assert (predicted[~measured[0]] >= true[chosen] - 1e-9).all()


@examples(60)
@given(st.integers(0, 2**31), st.booleans())
def test_the_budget_is_kept_if_no_power_is_predicted_too_low(seed: int, measured: bool) -> None:
    rng = np.random.default_rng(seed)
    known = options(
        *[
            (float(power), 1 + slow / 10, float(power + more), 1 + other / 10)
            for power, more, slow, other in rng.integers((11, 0, 0, 0), (60, 30, 20, 20), (4, 4)).tolist()
        ]
    )
    columns = np.sort(rng.integers(0, 200, 30)), rng.integers(1, 3, 30), rng.integers(1, 50, 30)
    jobs = jobs_of(*zip(*columns, strict=True))
    budget = constant_budget(float(rng.integers(240, 400)))
    schedule = learned(known, jobs, budget, measured=measured)
    assert power_metrics(schedule, budget).within_budget == 1.0
    assert not np.isnan(schedule.start_s).any()


def test_jobs_that_are_held_back_learn_as_if_they_were_submitted_then() -> None:
    jobs = in_turn(4)
    kind, budget = np.zeros(4, np.int64), constant_budget(140)
    learning = configure(WRONG, kind, PlacedJobs(jobs, MACHINES, kind), budget, "learned").learning
    release_s = np.array([9000.0, 5000.0, 2000.0, 3000.0])
    rules = Rules(learning=learning, release_s=release_s)
    schedule = simulate(jobs, MACHINES, site=Site(budget=budget), rules=rules)
    assert schedule.start_s.tolist() == release_s.tolist()
    assert schedule.ran_s.tolist() == [10, 10, 30, 10]
    assert schedule.jobs.run_s[:, 0].tolist() == [10, 10, 30, 10]
    assert schedule.jobs.submit_s.tolist() == jobs.submit_s.tolist()


FIRST = KindChoices(ONE, np.ones(1), np.full(1, 100.0))
LEARNING = Learning(ONE, np.ones((1, 1)), np.ones((1, 1)), lambda measured, tried: FIRST)
STOPS = {"kind": ONE, "preempts": np.zeros((1, 1), np.bool_)}


@pytest.mark.parametrize(
    ("changed", "budget_w", "sentence"),
    [
        ({}, None, "learning: expected a budget of power, found none"),
        ({"forecast_s": np.ones(1)}, 1000.0, "learning: expected jobs without predicted times, found both"),
        (STOPS, 1000.0, "learning: expected jobs without preemption, found both"),
        ({"learning": replace(LEARNING, kind=np.zeros(2, np.int64))}, 1000.0, "rules: learning: expected"),
        ({}, 100.0, "learning: extra_w: expected at"),
    ],
)
def test_what_cannot_be_learned_is_refused(
    changed: dict[str, Any], budget_w: float | None, sentence: str
) -> None:
    site = Site() if budget_w is None else Site(budget=constant_budget(budget_w))
    rules = replace(Rules(learning=LEARNING), **changed)
    assert sentence in refusal(simulate, in_turn(1), MACHINES, site=site, rules=rules)
