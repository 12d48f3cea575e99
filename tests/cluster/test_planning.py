"""Reservations for every job, windows and budgets of power: equal to a plain simulator's, and lawful."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from crosscast.arrays import Flags
from crosscast.cluster import BY_TIME, Bound, Completion, Machine, Order, PlacedJobs, Policy
from crosscast.cluster.resources import extra_power_w, milliwatts, resources_of
from crosscast.cluster.rules import NO_RULES, KindChoices, Learning, Priority, Rules, Sharing, heights
from crosscast.cluster.simulate import simulate
from crosscast.cluster.simulator.engine import keys_of
from crosscast.cluster.site import Budget, Reservation, Site, constant_budget
from support.brute_force import PlainLearning, PlainPlan, PlainSharing
from support.cluster import Case, jobs_of, made_case
from support.examples import one_in
from support.refusals import refusal, refusals

CONSERVATIVE = Policy(backfill=None, conservative=True)


def made_site(seed: int, case: Case) -> tuple[Case, Site]:
    """A site for a case on machines that each job is bound to: windows and budgets, or neither."""
    rng = np.random.default_rng((seed, 1))
    machines, jobs = case.machines, case.jobs
    runs = np.broadcast_to(np.isfinite(jobs.run_s), (len(jobs), len(machines)))
    sizes = np.array([each.procs for each in machines])
    usable = runs & (jobs.procs[:, None] <= sizes)
    bound = np.array([rng.choice(np.flatnonzero(row)) if row.any() else np.argmax(sizes) for row in usable])
    policy = replace(case.policy, conservative=bool(rng.random() < 0.6))
    reservations = []
    if rng.random() < 0.5:
        for number, machine in enumerate(machines):
            start, length = rng.integers(0, 20), rng.integers(1, 8)
            procs = int(rng.integers(1, machine.procs + 1))
            reservations.append(
                Reservation(f"r{number}", machine.name, float(start), float(start + length), procs)
            )
    budget = None
    if rng.random() < 0.5:
        machines = [replace(each, idle_w=float(rng.integers(0, 3)), active_w=5.0) for each in machines]
        idle = sum(each.procs * each.idle_w for each in machines)
        power_w = jobs.procs * (2.0 + rng.integers(0, 5, len(jobs)))
        power_w[rng.random(len(jobs)) < 0.2] = np.nan
        jobs = replace(jobs, power_w=power_w)
        most = float(np.where(np.isnan(power_w), 5.0 * jobs.procs, power_w).max())
        steps = np.cumsum(rng.integers(1, 9, int(rng.integers(1, 5)))).astype(float)
        watts = idle + rng.integers(0, int(2 * most) + 2, len(steps)).astype(np.float64)
        watts[-1] = idle + most
        watts = np.maximum(watts, 0.5)
        budget = Budget(steps, np.asarray(watts, np.float64))
    return Case(jobs, machines, policy, Bound(bound)), Site(tuple(reservations), budget)


def made_sharing(seed: int, case: Case) -> Sharing:
    """Slowdowns that are powers of two, so that sums of times are exact."""
    rng = np.random.default_rng((seed, 2))
    kinds = int(rng.integers(1, 4))
    true, believed = (rng.choice([1.0, 2.0, 4.0], (kinds, kinds)) for _ in range(2))
    if rng.random() < 0.3:
        believed = true
    believed = np.where(rng.random((kinds, kinds)) < 0.1, np.inf, believed)
    return Sharing(
        rng.integers(0, kinds, len(case.jobs)),
        true,
        believed,
        most=int(rng.integers(2, 4)),
        limit=float(rng.choice([2.0, 4.0, 1e9])),
        least_gain=float(rng.choice([0.0, 0.25])),
        by_gain=bool(rng.random() < 0.6),
    )


def made_rules(seed: int, case: Case, *, alone: bool = True) -> tuple[Case, Rules]:
    """Rules of a site for a case, with the parts that nobody can have who shares if it is alone."""
    rng = np.random.default_rng((seed, 3))
    jobs, count = case.jobs, len(case.jobs)
    assert isinstance(case.placement, Bound)
    found: dict[str, Any] = {}
    users = int(rng.integers(1, 4))
    jobs = replace(jobs, user=rng.integers(0, users, count), users=tuple(map(str, range(users))))
    policy = case.policy
    if rng.random() < 0.5:
        policy = replace(policy, queue="multifactor")
        if policy.backfill is not None and rng.random() < 0.6:
            policy = replace(policy, backfill="multifactor")
        accounts = int(rng.integers(1, 4))
        share = rng.choice([0.0, 1.0, 2.0], accounts)
        share = share / share.sum() if share.sum() else np.full(accounts, 1 / accounts)
        found["priority"] = Priority(
            fixed=np.array(rng.integers(0, 20, count) * rng.choice([0.0, 1.0, 10.0]), np.float64),
            account=rng.integers(0, accounts, count),
            share=share,
            age=float(rng.choice([0.0, 10.0, 1000.0])),
            max_age_s=float(rng.choice([3.0, 20.0])),
            fair_share=float(rng.choice([0.0, 100.0, 1000.0])),
            half_life_s=float(rng.choice([2.0, 10.0, np.inf])),
        )
    if rng.random() < 0.5:
        partitions = int(rng.integers(1, 3))
        found["partition"] = rng.integers(-1, partitions, count)
        most = max(machine.procs for machine in case.machines)
        procs = rng.integers(1, most + 1, partitions)
        for place in range(partitions):
            own = jobs.procs[found["partition"] == place]
            procs[place] = max(procs[place], own.max(initial=1))
        found["partition_procs"] = procs
        found["rank"] = rng.integers(0, 3, count)
    if rng.random() < 0.5:
        groups = int(rng.integers(1, 4))
        found["group"] = rng.integers(-1, groups, count)
        found["most"] = rng.integers(1, 4, groups)
    if alone and rng.random() < 0.5:
        found["kind"] = rng.integers(0, 3, count)
        found["preempts"] = np.triu(rng.random((3, 3)) < 0.7, 1)
        found["rank"] = heights(found["preempts"])[found["kind"]]
    if alone and rng.random() < 0.5:
        forecast = rng.integers(0, 12, count).astype(float)
        forecast[rng.random(count) < 0.8] = np.nan
        found["forecast_s"] = forecast
        # Minutes, so that corrections matter.
        scale = float(rng.choice([1.0, 60.0]))
        jobs = replace(
            jobs,
            submit_s=jobs.submit_s * scale,
            run_s=jobs.run_s * scale,
            estimate_s=(jobs.estimate_s + rng.integers(0, 30, jobs.estimate_s.shape)) * scale,
        )
    if rng.random() < 0.5 and jobs.power_w is not None:
        watts = extra_power_w(PlacedJobs(jobs, case.machines, case.placement.machine))
        idle = np.array([each.idle_w for each in case.machines])[case.placement.machine] * jobs.procs
        found["measured_w"] = idle + np.rint(watts * rng.choice([0.5, 1.0, 1.25], count))
    return replace(case, jobs=jobs, policy=policy), Rules(**found)


def made_learning(seed: int) -> tuple[Case, Site, Rules]:
    """A case under a budget whose kinds have one to four configurations, and other rules."""
    case, site, rules = made_with_rules(seed, "rules, sharing")
    rng = np.random.default_rng((seed, 4))
    assert isinstance(case.placement, Bound)
    machine = case.placement.machine
    kinds, most = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    shape = len(case.machines) * kinds, most
    learning = Learning(
        kind=machine * kinds + rng.integers(0, kinds, len(machine)),
        slowdown=rng.choice([0.5, 1.0, 1.5, 2.0], shape),
        extra_w=rng.integers(0, 6, shape) / 2,
        choose=lambda measured, tried: made_choices(seed, measured, tried),
        measured=bool(rng.random() < 0.5),
    )
    # Enough in the end for the widest job, and any amount before.
    idle_w = sum(each.procs * each.idle_w for each in case.machines)
    needed_w = 2.5 * float(case.jobs.procs.max())
    steps = np.cumsum(rng.integers(1, 9, int(rng.integers(1, 5)))).astype(float)
    watts = np.asarray(idle_w + rng.integers(0, int(2 * needed_w) + 2, len(steps)) + 0.5, np.float64)
    watts[-1] = idle_w + needed_w + 0.5
    rules = replace(rules, measured_w=None, learning=learning)
    return case, replace(site, budget=Budget(steps, watts)), rules


def made_choices(seed: int, measured: Flags, tried: Flags) -> KindChoices:
    """Choices that follow from the measured and the tried configurations, though by no reason."""
    kinds, most = measured.shape
    rng = np.random.default_rng([seed, *(measured + 2 * tried).reshape(-1).tolist()])
    return KindChoices(
        rng.integers(0, most, (kinds,)),
        rng.choice(np.array([0.5, 1.0, 2.0]), (kinds,)),
        rng.integers(0, 6, (kinds,)) / 2.0,
    )


def plain(case: Case, site: Site, sharing: Sharing | None = None, rules: Rules = NO_RULES) -> PlainPlan:
    assert isinstance(case.placement, Bound)
    placed = PlacedJobs(case.jobs, case.machines, case.placement.machine)
    jobs, found = case.jobs, resources_of(placed, site, rules)
    estimate_s = placed.on_machine(jobs.estimate_s)

    def keys(order: Order, times: np.ndarray = estimate_s) -> list[float]:
        known: Order = "fcfs" if order == "multifactor" else order
        return keys_of(known, jobs, times[:, None]).reshape(-1).astype(float).tolist()

    def amounts(table: np.ndarray) -> list[dict[int, int]]:
        pairs = zip(found.resource.tolist(), table.tolist(), strict=True)
        return [{which: amount for which, amount in zip(*row, strict=True) if which >= 0} for row in pairs]

    def scale(order: Order | None) -> list[float] | None:
        return keys(order, np.ones(len(jobs))) if order is not None and order in BY_TIME else None

    key, backfill, learning = keys(case.policy.queue), case.policy.backfill, rules.learning
    measures = rules.measured_w is not None or (learning is not None and learning.measured)
    given: dict[str, Any] = {
        "submit": jobs.submit_s.tolist(),
        "run": placed.on_machine(jobs.run_s).tolist(),
        "estimate": estimate_s.tolist(),
        "needs": amounts(found.needs),
        "capacity": list(zip(found.step_s.tolist(), found.capacity.tolist(), strict=True)),
        "key": key,
        "pass_key": None if backfill is None else key if backfill == "multifactor" else keys(backfill),
        "every_job": case.policy.conservative,
        "rules": rules,
        "user": [] if jobs.user is None else jobs.user.tolist(),
        "holds": amounts(found.holds) if measures else [],
        "key_scale": scale(case.policy.queue),
        "pass_scale": scale(backfill),
        "learning": None if learning is None else plain_learning(learning),
    }
    if sharing is None:
        return PlainPlan(**given).simulate()
    return PlainSharing(
        **given,
        kind=sharing.kind.tolist(),
        true=sharing.true.tolist(),
        believed=sharing.believed.tolist(),
        most=sharing.most,
        limit=sharing.limit,
        least_gain=sharing.least_gain,
        by_gain=sharing.by_gain,
        draws=None if found.power is None else found.power.most_draw.tolist(),
    ).simulate()


def plain_learning(learning: Learning) -> PlainLearning:
    def choose(*pairs: set[tuple[int, int]]) -> list[tuple[int, float, int]]:
        flags = np.zeros((2, *learning.slowdown.shape), np.bool_)
        for which, each in enumerate(pairs):
            for pair in each:
                flags[which, *pair] = True
        option, slowdown, extra_w = learning.choose(*flags)
        return list(zip(option.tolist(), slowdown.tolist(), milliwatts(extra_w).tolist(), strict=True))

    held = milliwatts(learning.extra_w).tolist() if learning.measured else None
    return PlainLearning(learning.kind.tolist(), learning.slowdown.tolist(), held, choose)


def made_with_rules(seed: int, kind: str) -> tuple[Case, Site, Rules]:
    case, site = made_site(seed, made_case(seed, most_jobs=16))
    if "rules" not in kind:
        return case, site, NO_RULES
    case, rules = made_rules(seed, case, alone=kind == "rules")
    return case, site, rules


@pytest.mark.parametrize("first", one_in(16, range(0, 2000, 125)))
@pytest.mark.parametrize("kind", ["", "rules", "sharing", "rules, sharing", "learning"])
def test_plans_equal_those_of_a_plain_simulator(kind: str, first: int) -> None:
    for seed in range(first, first + 125):
        case, site, rules = made_learning(seed) if kind == "learning" else made_with_rules(seed, kind)
        jobs, sharing = case.jobs, made_sharing(seed, case) if "sharing" in kind else None
        given: dict[str, Any] = {"policy": case.policy, "placement": case.placement, "site": site}
        schedule = simulate(jobs, case.machines, sharing=sharing, rules=rules, **given)
        found = plain(case, site, sharing, rules)
        for times, known in ((schedule.start_s, found.starts), (schedule.reserved_s, found.promised)):
            expected = [known.get(job, np.nan) for job in range(len(jobs))]
            np.testing.assert_array_equal(times, expected, str(seed))
        if schedule.cuts is not None:
            cuts = zip(*(column.tolist() for column in vars(schedule.cuts).values()), strict=True)
            assert list(cuts) == found.cuts, seed


ONE, POWERED = [Machine("one", 4)], [Machine("one", 4, idle_w=10, active_w=30)]


@refusals("job has_power reservations budget_w message")
def test_what_cannot_be_simulated_is_refused(
    job: list[float], has_power: bool, reservations: list[list[Any]], budget_w: float, message: str
) -> None:
    taken = tuple(Reservation(*each) for each in reservations)
    site = Site(taken, constant_budget(budget_w) if budget_w else None)
    machines = POWERED if has_power else ONE
    assert message in refusal(simulate, jobs_of(tuple(job)), machines, policy=CONSERVATIVE, site=site)


def test_jobs_without_a_machine_or_with_less_power_than_none_are_refused() -> None:
    one = jobs_of((0, 2, 1), power_w=np.array([19.0]))
    said = refusal(simulate, one, POWERED, site=Site(budget=constant_budget(79)))
    assert said.startswith("job 1: power_w: expected at least the 20 W of its processors")
    anywhere: dict[str, Any] = {"policy": CONSERVATIVE, "placement": Completion(np.ones((1, 2)))}
    said = refusal(simulate, one, [*ONE, Machine("two", 4)], **anywhere)
    assert said.startswith("placement: expected jobs that are bound to machines")
