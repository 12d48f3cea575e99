"""Configurations of jobs under a budget, and energy of schedules: against plain sums, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.cluster.configurations import choose_options, configure
from crosscast.cluster.jobs import Jobs, Machine, PlacedJobs, Policy
from crosscast.cluster.power import PowerOptions, cheapest_release_s, kinds_of_jobs, power_metrics, with_idle
from crosscast.cluster.rules import Rules
from crosscast.cluster.simulate import simulate
from crosscast.cluster.site import Budget, PowerPolicy, Site, constant_budget, read_site
from crosscast.errors import InputError
from support.cluster import jobs_of, trace_of_kinds
from support.commands import Command, Output
from support.examples import examples
from support.refusals import refusal, refusals

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
    assert found.planned.power_w is not None
    assert found.planned.power_w.tolist() == [40, 100]
    assert found.power_w is not None
    assert found.power_w.tolist() == [100, 100]


def test_kinds_are_those_that_jobs_name_and_else_drawn_alike() -> None:
    kind, drawn = kinds_of_jobs(OPTIONS.kinds, ["flat", "other", "steep"], 3, 0)
    assert (kind[0], kind[2], drawn) == (1, 0, 1)
    assert (
        kinds_of_jobs(OPTIONS.kinds, None, 100, 3)[0].tolist()
        == kinds_of_jobs(OPTIONS.kinds, None, 100, 3)[0].tolist()
    )


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
    count = int(rng.integers(1, 9))
    run_s = rng.integers(0, 6, (count, 1)).astype(float)
    submit_s = np.sort(rng.integers(0, 9, count)).astype(float)
    power_w = 40.0 + rng.integers(0, 50, count).astype(np.float64)
    jobs = Jobs(np.arange(count), submit_s, rng.integers(1, 5, count), run_s, run_s, power_w=power_w)
    budget = Budget(
        np.array([0.0, 3.0, 8.0]),
        np.array([130.0, 110.0, 130.0]),
        price_per_kwh=np.array([1.0, 2.0, 3.0]),
    )
    schedule = simulate(jobs, MACHINES, policy=Policy(backfill=None), site=Site(budget=budget))
    found = power_metrics(schedule, budget)
    seconds = np.arange(submit_s[0], schedule.end_s.max())
    runs = (schedule.start_s <= seconds[:, None]) & (seconds[:, None] < schedule.end_s)
    watts = 40.0 + (runs * (power_w - 10.0 * jobs.procs)).sum(axis=1)
    price = np.where(seconds - submit_s[0] < 3, 1.0, np.where(seconds - submit_s[0] < 8, 2.0, 3.0))
    assert found.energy_kwh == pytest.approx(watts.sum() / 3.6e6)
    assert found.cost == pytest.approx((watts * price).sum() / 3.6e6)
    assert found.peak_w == pytest.approx(watts.max(initial=40.0))
    assert found.within_budget in (1.0, None)
    assert found.carbon_kg is None
    span_s, more = len(seconds), int(rng.integers(0, 9))
    later = with_idle(found, MACHINES, budget, float(span_s), float(span_s + more))
    idle_price = np.where(span_s + np.arange(more) < 3, 1.0, np.where(span_s + np.arange(more) < 8, 2.0, 3.0))
    assert later.energy_kwh == pytest.approx((watts.sum() + 40.0 * more) / 3.6e6)
    assert later.cost == pytest.approx(((watts * price).sum() + 40.0 * idle_price.sum()) / 3.6e6)
    if span_s + more:
        assert later.mean_w == pytest.approx((watts.sum() + 40.0 * more) / (span_s + more))


ROW = "kind,power_w,slowdown\n"


def test_what_cannot_be_configured_is_refused() -> None:
    one = (np.array([0]), on_one(batch([4])), constant_budget(199))
    assert "job 1: power: expected a configuration of at most the 159 W that the" in refusal(
        choose_options, OPTIONS, *one, "full"
    )
    unpredicted = replace(OPTIONS, predicted_power_w=None)
    with pytest.raises(InputError, match="power: model: expected options with predicted power and slowdown"):
        choose_options(unpredicted, *one, "model")
    assert "power: expected one of full, uniform, model, learned, oracle, found 'all'" in refusal(
        choose_options, OPTIONS, *one, "all"
    )


def test_the_command_compares_configurations_under_a_budget(capsys: Output, tmp_path: Path) -> None:
    trace, site = trace_of_kinds(tmp_path, 20, 2, asked_s=900), tmp_path / "site.toml"
    (tmp_path / "options.csv").write_text(ROW + "1,100,1\n1,50,2\n2,100,1\n2,60,1.1\n")
    (tmp_path / "budget.csv").write_text("start_s,power_w,price_per_kwh\n0,260,0.3\n")
    machine = "[[machine]]\nname = 'm'\nprocs = 4\nidle_w = 10\n"
    text = machine + "[power]\nbudget = 'budget.csv'\noptions = 'options.csv'\npolicies = "
    words = (trace, "--machines", site)
    site.write_text(text + "['oracle', 'uniform', 'full']\n")
    results = SIMULATE.answer(capsys, *words)["results"]
    assert [each["power"] for each in results] == ["full", "uniform", "oracle"]
    # At half the speed, jobs of the first kind take 1,200 s, 900 are requested, and they are not ended.
    assert [each["over_request"] for each in results] == [0, 10, 0]
    assert results[2]["makespan_s"] < results[0]["makespan_s"]
    assert all(each["within_budget"] == 1 and each["cost"] > 0 and each["peak_w"] <= 260 for each in results)
    site.write_text(text + "'full'\n")
    figures = tmp_path / "figures"
    assert "easy, power full" in SIMULATE.text(capsys, *words, "--figures", figures)
    assert {each.name for each in figures.iterdir()} == {"power.png", "queue-length.png", "timeline.png"}
    (tmp_path / "low.csv").write_text(ROW + "1,100,1\n1,9,2\n2,100,1\n")
    for wrong, sentence in (
        (text.replace("options.csv", "low.csv") + "'full'\n", "low.csv: kind 1: power_w: expected at least"),
        (text + "'model'", "expected options with predicted power and slowdown, found none"),
        (machine + "[power]\nbudget_w = 100\npolicies = 'full'\n", "expected options to choose from"),
    ):
        site.write_text(wrong)
        assert sentence in SIMULATE.refusal(capsys, *words)


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


def test_a_shifted_job_starts_when_it_is_cheap_and_costs_less() -> None:
    jobs = replace(batch([1, 1], 3600), submit_s=np.array([0.0, 10.0]), power_w=np.full(2, 1010.0))
    budget = Budget(np.array([0.0, 7200.0]), np.full(2, np.inf), price_per_kwh=np.array([0.4, 0.1]))
    costs = []
    for limit_s, expected in ((0.0, [0, 10]), (3600.0, [0, 3610]), (7200.0, [7200, 7200])):
        rules = Rules(release_s=cheapest_release_s(on_one(jobs), budget, "price", limit_s))
        schedule = simulate(jobs, [Machine("one", 4)], site=Site(budget=budget), rules=rules)
        assert schedule.start_s.tolist() == expected
        assert schedule.wait_s.tolist() == [
            start - submit for start, submit in zip(expected, (0, 10), strict=True)
        ]
        costs.append(power_metrics(schedule, budget).cost)
    assert costs[2] is not None
    assert costs[2] < costs[1] < costs[0]  # type: ignore[operator]
    early = Rules(release_s=np.zeros(2))
    with pytest.raises(InputError, match="release_s: job 2: expected a time from its submission on, 10 s"):
        simulate(jobs, MACHINES, rules=early)


def test_no_processor_draws_more_than_its_cap() -> None:
    jobs, budget = on_one(batch([1, 1])), constant_budget(400)
    capped = [replace(MACHINES[0], cap_w=70.0)]
    asked = (OPTIONS, np.array([0, 1]), replace(jobs, machines=capped), budget)
    assert choose_options(*asked, "full").tolist() == [1, 1]
    capped = [replace(MACHINES[0], cap_w=40.0)]
    with pytest.raises(
        InputError, match="job 1: power: expected a configuration of at most the 40 W to which a processor of"
    ):
        choose_options(OPTIONS, np.array([0, 1]), replace(jobs, machines=capped), budget, "full")
    heavy = replace(batch([2]), power_w=np.array([90.0]))
    with pytest.raises(InputError, match="job 1: power_w: expected at most the 80 W to which its processors"):
        simulate(heavy, capped, site=Site(budget=constant_budget(400)))
    # So it is where a processor's own power is that of its jobs.
    active = [replace(capped[0], active_w=45.0)]
    with pytest.raises(InputError, match=r"job 1: power_w: expected at most the 80 W .* capped, found 90 W"):
        simulate(batch([2]), active, site=Site(budget=constant_budget(400)))


@refusals("machine power sentence")
def test_wrong_power_settings_are_refused(tmp_path: Path, machine: str, power: str, sentence: str) -> None:
    path = tmp_path / "site.toml"
    path.write_text(f"[[machine]]\nname = 'm'\nprocs = 4\nidle_w = 10\n{machine}[power]\n{power}\n")
    with pytest.raises(InputError) as error:
        read_site(path)
    assert sentence in str(error.value)


def test_the_command_shifts_and_feeds_measured_power_back(capsys: Output, tmp_path: Path) -> None:
    trace, site = trace_of_kinds(tmp_path, 8), tmp_path / "site.toml"
    head = "kind,power_w,slowdown,predicted_power_w,predicted_slowdown\n"
    (tmp_path / "options.csv").write_text(head + "1,60,1,100,1\n")
    (tmp_path / "budget.csv").write_text("start_s,power_w,price_per_kwh\n0,250,0.3\n9000,250,0.1\n")
    text = "[[machine]]\nname = 'm'\nprocs = 4\nidle_w = 10\n[power]\nbudget = 'budget.csv'\n"
    text += "options = 'options.csv'\npolicies = 'model'\n"
    words = (trace, "--machines", site)
    found = []
    for measured in ("false", "true"):
        site.write_text(f"{text}measured = {measured}\nshift = ['never', 'price']\nshift_limit = '3h'\n")
        found.append(SIMULATE.answer(capsys, *words)["results"])
    for never, price in found:
        assert (never["shift"], price["shift"]) == ("never", "price")
        assert price["cost"] < never["cost"]
        # The same work on the same machines until the later of both ends.
        assert price["makespan_s"] > never["makespan_s"]
        assert price["energy_kwh"] == pytest.approx(never["energy_kwh"])
    # 40 W idle and 180 W for a job leave no room for another one in 250 W, and 80 W, as is measured, for none
    # that may draw 180.
    assert found[1][0]["makespan_s"] == found[0][0]["makespan_s"]
    (tmp_path / "budget.csv").write_text("start_s,power_w,price_per_kwh\n0,320,0.3\n9000,320,0.1\n")
    roomy = SIMULATE.answer(capsys, *words)["results"][0]
    assert roomy["makespan_s"] < found[0][0]["makespan_s"] / 1.9
