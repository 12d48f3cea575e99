"""Jobs under a budget of power: configurations chosen beforehand or learned, starts by price, and energy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.cluster import Jobs, Machine, PlacedJobs, Policy, Schedule
from crosscast.cluster.configurations import (
    KindForecast,
    Learner,
    PowerOptions,
    cheapest_release_s,
    choose_options,
    configure,
)
from crosscast.cluster.resources import power_metrics, with_idle
from crosscast.cluster.rules import KindChoices, Learning, Rules
from crosscast.cluster.simulate import simulate
from crosscast.cluster.site import Budget, PowerPolicy, Site, constant_budget
from support.cluster import jobs_of, trace_of_kinds
from support.commands import Command, Output
from support.examples import examples
from support.refusals import refusal

SIMULATE = Command.of("simulate policies")
NONE = float("nan")
MACHINES = [Machine("one", 4, idle_w=10)]
OPTIONS = PowerOptions(
    ("steep", "flat"),
    power_w=np.array([[100.0, 50.0, NONE], [100.0, 60.0, 30.0]]),
    slowdown=np.array([[1.0, 2.0, NONE], [1.0, 1.1, 1.5]]),
    predicted_power_w=np.array([[100.0, 20.0, NONE], [100.0, 60.0, 30.0]]),
    predicted_slowdown=np.array([[1.0, 1.2, NONE], [1.0, 1.1, 1.5]]),
)


def batch(procs: list[int], run_s: float = 10.0) -> Jobs:
    return jobs_of(*[(0, each, run_s) for each in procs])


def on_one(jobs: Jobs) -> PlacedJobs:
    return PlacedJobs(jobs, MACHINES, np.zeros(len(jobs), np.int64))


def chosen(policy: PowerPolicy, budget_w: float, options: PowerOptions = OPTIONS) -> list[int]:
    budget = constant_budget(budget_w)
    found = choose_options(options, np.array([0, 1]), on_one(batch([1, 1])), budget, policy)
    places: list[int] = found.tolist()
    return places


def test_full_is_the_fastest_and_uniform_what_a_share_of_the_budget_allows() -> None:
    assert chosen("full", 400) == [0, 0]
    # A share of 60 W; one of 40 W, which no configuration of the first kind keeps.
    assert chosen("uniform", 240) == [1, 1]
    assert chosen("uniform", 160) == [1, 2]
    capped = replace(OPTIONS, cap_w=np.array([[100.0, 50.0, NONE], [100.0, 50.0, NONE]]))
    assert chosen("uniform", 400, capped) == [0, 0]
    assert chosen("uniform", 240, capped) == [1, 1]
    assert chosen("uniform", 160, capped) == [1, 1]


def test_the_oracle_slows_down_those_who_lose_little_by_it() -> None:
    assert chosen("oracle", 4000) == [0, 0]
    # Processors would be 0.525 full and power 0.725 with the second one: 0.625 and 0.6 with the third.
    assert chosen("oracle", 240) == [0, 2]
    # It believes that the first kind loses little and saves much.
    assert chosen("model", 240) == [1, 0]


def test_times_are_those_of_the_configuration_and_estimates_the_believed_ones() -> None:
    jobs = batch([2, 1])
    found = configure(OPTIONS, np.array([0, 1]), on_one(jobs), constant_budget(240), "model")
    assert found.planned.run_s[:, 0].tolist() == [20, 10]
    assert found.planned.fastest_s is jobs.run_s
    assert found.planned.estimate_s[:, 0].tolist() == [12, 10]
    assert np.asarray(found.planned.power_w).tolist() == [40, 100]
    assert np.asarray(found.power_w).tolist() == [100, 100]


@examples(60)
@given(st.integers(0, 2**31))
def test_the_oracle_fills_the_fuller_of_both_least(seed: int) -> None:
    """No other configurations of the two kinds, each the same for all its jobs, are better for both."""
    rng = np.random.default_rng(seed)
    power_w = np.sort(rng.integers(11, 100, (2, 3)), axis=1)[:, ::-1].astype(float)
    slowdown = np.sort(1 + rng.integers(0, 20, (2, 3)) / 10, axis=1)
    slowdown[:, 0] = 1
    options = PowerOptions(("a", "b"), power_w, slowdown)
    kind, jobs = rng.integers(0, 2, 20), batch([1] * 20)
    budget = constant_budget(float(rng.integers(150, 400)))
    chosen = choose_options(options, kind, on_one(jobs), budget, "oracle")

    def loads(places: np.ndarray) -> tuple[float, float]:
        time = slowdown[kind, places]
        return time.sum() / 4, (time * (power_w[kind, places] - 10)).sum() / (budget.power_w[0] - 40)

    own = loads(chosen)
    for first in range(3):
        for second in range(3):
            other = loads(np.where(kind == 0, first, second))
            assert not (other[0] < own[0] - 1e-9 and other[1] < own[1] - 1e-9)


@examples(60)
@given(st.integers(0, 2**31))
def test_energy_is_power_times_time_second_by_second(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, more = int(rng.integers(1, 9)), int(rng.integers(0, 9))
    columns = np.sort(rng.integers(0, 9, count)), rng.integers(1, 5, count), rng.integers(0, 6, count)
    power_w = 40.0 + rng.integers(0, 50, count).astype(np.float64)
    jobs = jobs_of(*zip(*columns, strict=True), power_w=power_w)
    budget = Budget(
        np.array([0.0, 3.0, 8.0]), np.array([130.0, 110.0, 130.0]), price_per_kwh=np.array([1.0, 2.0, 3.0])
    )
    schedule = simulate(jobs, MACHINES, policy=Policy(backfill=None), site=Site(budget=budget))
    found = power_metrics(schedule, budget)
    # All times are whole.
    span_s = int(schedule.end_s.max() - jobs.submit_s[0])
    seconds = jobs.submit_s[0] + np.arange(span_s + more)
    runs = (schedule.start_s <= seconds[:, None]) & (seconds[:, None] < schedule.end_s)
    watts = 40.0 + (runs * (power_w - 10.0 * jobs.procs)).sum(axis=1)
    price = np.repeat([1.0, 2.0, 3.0], [3, 5, 1000])[: span_s + more]
    assert found.peak_w == pytest.approx(watts[:span_s].max(initial=40.0))
    assert found.within_budget in (1.0, None)
    assert found.carbon_kg is None
    later = with_idle(found, MACHINES, budget, float(span_s), float(span_s + more))
    for metrics, until in ((found, span_s), (later, span_s + more)):
        joules = watts[:until].sum()
        assert metrics.energy_kwh == pytest.approx(joules / 3.6e6)
        assert metrics.cost == pytest.approx((watts * price)[:until].sum() / 3.6e6)
        if until:
            assert metrics.mean_w == pytest.approx(joules / until)


def test_what_cannot_be_configured_is_refused() -> None:
    one = (np.array([0]), on_one(batch([4])), constant_budget(199))
    unpredicted = replace(OPTIONS, predicted_power_w=None)
    for options, policy, said in (
        (OPTIONS, "full", "jobs: job 1: power: expected a configuration of at most the 159 W that the"),
        (unpredicted, "model", "power: model: expected options with predicted power and slowdown"),
    ):
        assert refusal(choose_options, options, *one, policy).startswith(said)


SITE = "[[machine]]\nname = 'm'\nprocs = 4\nidle_w = 10\n[power]\nbudget = 'budget.csv'\noptions = 'o.csv'\n"
HEAD, PREDICTED = "kind,power_w,slowdown", ",predicted_power_w,predicted_slowdown"


def answers(capsys: Output, folder: Path, trace: Path, options: str, budget: str, power: str) -> Any:
    """Results of a site with these tables and settings of power."""
    (folder / "o.csv").write_text(options)
    (folder / "budget.csv").write_text(f"start_s,power_w,price_per_kwh\n{budget}")
    (folder / "site.toml").write_text(f"{SITE}{power}\n")
    return SIMULATE.answer(capsys, trace, "--machines", folder / "site.toml")["results"]


def test_the_command_compares_configurations_under_a_budget(capsys: Output, tmp_path: Path) -> None:
    trace, site = trace_of_kinds(tmp_path, 20, 2, asked_s=900), tmp_path / "site.toml"
    # The first kind is believed to lose nothing at 50 W.
    options = "1,100,1,100,1\n1,50,2,50,1\n2,100,1,100,1\n2,60,1.1,60,1.1\n"
    given = (capsys, tmp_path, trace, f"{HEAD}{PREDICTED}\n{options}", "0,260,0.3\n")
    results = answers(*given, "policies = ['oracle', 'uniform', 'full', 'model', 'learned']")
    assert [each["power"] for each in results] == ["full", "uniform", "model", "learned", "oracle"]
    # At half the speed, jobs of the first kind take 1,200 s, 900 are requested, and they are not ended.
    assert [each["over_request"] for each in results][:2] == [0, 10]
    full, _, model, learned, oracle = (each["makespan_s"] for each in results)
    assert oracle < full
    assert learned < model
    assert all(each["within_budget"] == 1 and each["cost"] > 0 and each["peak_w"] <= 260 for each in results)
    figures = ("--figures", tmp_path / "figures")
    assert "easy, power full" in SIMULATE.text(
        capsys, trace, "--machines", site, "--policy", "easy", *figures
    )
    assert {each.name for each in figures[1].iterdir()} == {"power.png", "queue-length.png"}
    (tmp_path / "low.csv").write_text(f"{HEAD}\n1,100,1\n1,9,2\n2,100,1\n")
    for wrong, sentence in (
        (SITE.replace("o.csv", "low.csv"), "low.csv: kind 1: power_w: expected at least"),
        (SITE.replace("options = 'o.csv'", "policies = 'full'"), "expected options to choose from"),
    ):
        site.write_text(wrong)
        assert sentence in SIMULATE.refusal(capsys, trace, "--machines", site)


@examples(60)
@given(st.integers(0, 2**31))
def test_jobs_are_held_back_until_they_cost_least_and_no_longer_than_may_be(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, steps, limit_s = int(rng.integers(1, 8)), int(rng.integers(1, 6)), int(rng.integers(0, 30))
    submit_s = np.cumsum(rng.integers(0, 9, count)).astype(float) + 5
    run_s = rng.integers(0, 20, (count, 1)).astype(float)
    jobs = Jobs(np.arange(count), submit_s, np.ones(count, np.int64), run_s, run_s)
    start_s = np.cumsum(rng.integers(1, 12, steps)).astype(float) - 3
    prices = rng.integers(-1, 4, steps).astype(float)
    budget = Budget(start_s, np.full(steps, np.inf), price_per_kwh=prices)
    found = cheapest_release_s(on_one(jobs), budget, "price", limit_s)

    def price(second: float) -> float:
        since = second - submit_s[0]
        return float(prices[max(np.flatnonzero(start_s <= since).max(initial=0), 0)])

    for job in range(count):
        # All times are whole, so that it is enough to try whole ones.
        starts = submit_s[job] + np.arange(limit_s + 1)
        costs = [sum(price(start + step) for step in range(int(run_s[job, 0]))) for start in starts]
        assert found[job] == starts[int(np.argmin(costs))]


def test_no_processor_draws_more_than_its_cap() -> None:
    jobs, budget, kind = batch([1, 1]), constant_budget(400), np.array([0, 1])
    capped, low = ([replace(MACHINES[0], cap_w=watts)] for watts in (70.0, 40.0))
    placed = replace(on_one(jobs), machines=capped)
    assert choose_options(OPTIONS, kind, placed, budget, "full").tolist() == [1, 1]
    said = refusal(choose_options, OPTIONS, kind, replace(placed, machines=low), budget, "full")
    assert "job 1: power: expected a configuration of at most the 40 W to which a processor of" in said
    # So it is where a processor's own power is that of its jobs.
    heavy, active = replace(batch([2]), power_w=np.array([90.0])), [replace(low[0], active_w=45.0)]
    for one, machines in ((heavy, low), (batch([2]), active)):
        said = refusal(simulate, one, machines, site=Site(budget=budget))
        assert "job 1: power_w: expected at most the 80 W to which its processors" in said
        assert "found 90 W" in said


def test_the_command_shifts_and_feeds_measured_power_back(capsys: Output, tmp_path: Path) -> None:
    trace, options = trace_of_kinds(tmp_path, 8), f"{HEAD}{PREDICTED}\n1,60,1,100,1\n"
    shifts = "policies = 'model'\nshift = ['never', 'price']\nshift_limit = '3h'\nmeasured ="
    given = (capsys, tmp_path, trace, options)
    tight = [answers(*given, "0,250,0.3\n9000,250,0.1\n", f"{shifts} {each}") for each in ("false", "true")]
    for never, price in tight:
        assert (never["shift"], price["shift"]) == ("never", "price")
        assert price["cost"] < never["cost"]
        # The same work on the same machines until the later of both ends.
        assert price["makespan_s"] > never["makespan_s"]
        assert price["energy_kwh"] == pytest.approx(never["energy_kwh"])
    # 40 W idle and 180 W for a job leave no room for another one in 250 W, and 80 W, as is measured, for none
    # that may draw 180.
    assert tight[1][0]["makespan_s"] == tight[0][0]["makespan_s"]
    roomy = answers(*given, "0,320,0.3\n9000,320,0.1\n", f"{shifts} true")[0]
    assert roomy["makespan_s"] < tight[0][0]["makespan_s"] / 1.9


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
    configured = configure(known, kind, on_one(jobs), budget, "learned", learner)
    rules = Rules(learning=configured.learning)
    rules = rules.with_measured(None) if measured else rules
    return simulate(configured.planned, MACHINES, site=Site(budget=budget), rules=rules)


def test_a_wrong_prediction_is_tried_once_and_what_is_measured_stays() -> None:
    schedule = learned(WRONG, in_turn(5), constant_budget(140))
    assert schedule.ran_s.tolist() == [30, 10, 10, 10, 10]
    assert np.asarray(schedule.jobs.power_w).tolist() == [60, 70, 70, 70, 70]
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


def test_where_all_need_too_much_jobs_take_what_there_is_in_whole_milliwatts() -> None:
    # Jobs of 3 processors have 200 W beside idle ones, 66,666.7 mW each.
    jobs = jobs_of(*[(100 * job, 3, 10) for job in range(3)])
    schedule = learned(options((100, 1, 50, 1)), jobs, constant_budget(240))
    assert schedule.start_s.tolist() == [0, 100, 200]


def test_jobs_that_are_held_back_learn_as_if_they_were_submitted_then() -> None:
    jobs = in_turn(4)
    kind, budget = np.zeros(4, np.int64), constant_budget(140)
    learning = configure(WRONG, kind, on_one(jobs), budget, "learned").learning
    release_s = np.array([9000.0, 5000.0, 2000.0, 3000.0])
    rules = Rules(learning=learning, release_s=release_s)
    schedule = simulate(jobs, MACHINES, site=Site(budget=budget), rules=rules)
    assert schedule.start_s.tolist() == release_s.tolist()
    assert schedule.ran_s.tolist() == schedule.jobs.run_s[:, 0].tolist() == [10, 10, 30, 10]
    assert schedule.jobs.submit_s.tolist() == jobs.submit_s.tolist()


ONE = np.zeros(1, np.int64)
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
        ({}, 100.0, "learning: extra_w: expected at most the"),
    ],
)
def test_what_cannot_be_learned_is_refused(
    changed: dict[str, Any], budget_w: float | None, sentence: str
) -> None:
    site = Site() if budget_w is None else Site(budget=constant_budget(budget_w))
    rules = replace(Rules(learning=LEARNING), **changed)
    assert sentence in refusal(simulate, in_turn(1), MACHINES, site=site, rules=rules)
