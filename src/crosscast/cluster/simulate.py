"""Simulation of a queue of jobs on machines: first come, first served or other orders, with backfilling."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from crosscast.cluster import (
    ORDERS,
    Bound,
    Completion,
    Jobs,
    Machine,
    PlacedJobs,
    Placement,
    Policy,
    Schedule,
    check_machines,
    first_row,
)
from crosscast.cluster.resources import resources_of
from crosscast.cluster.rules import NO_RULES, Rules, Sharing
from crosscast.cluster.site import NO_SITE, Site
from crosscast.errors import InputError, expect_known, importing

_EASY = Policy()


def simulate(
    jobs: Jobs,
    machines: Sequence[Machine],
    *,
    policy: Policy = _EASY,
    placement: Placement | None = None,
    site: Site = NO_SITE,
    sharing: Sharing | None = None,
    rules: Rules = NO_RULES,
    progress: Callable[[str], None] | None = None,
) -> Schedule:
    """Simulate a scheduler with one queue of jobs on one or many machines.

    Algorithm 1 of Nichols et al. 2024 (section VII), FCFS + EASY. At each point in time the jobs that end
    then free their processors, the jobs that are submitted then join the queue, and then once:

    1. While the head of the queue, in the order R1 (``policy.queue``), has room, it starts.
    2. Else it gets a reservation on its machine: the *shadow time* is the earliest time at which the running
       jobs will have left enough processors, by their starts and estimates. A job that has run longer than
       its estimate counts as one that ends now. All jobs that are expected to end at the shadow time count
       for the processors that the head will leave, the *extra* ones.
    3. If ``policy.backfill`` is set, jobs behind the head, in that order R2, start if they have room: on
       other machines if they fit; on the head's if they fit, and are expected to end by the shadow time or
       need no more than the extra processors, of which they are then taken. So no job that passes the head
       delays it, if estimates are right. There is one head at a time, and one reservation.

    Jobs that take no time end when they start, and all of this is done again at the same time. Ties in any
    order go to the job that was submitted first. Orders by time and area use the estimate on the first
    machine of a job's list. The head of the queue may change before it starts, unless R1 is ``fcfs``.

    With `Preferred`, a job has room if it has room on any machine of its list, and starts on the first such;
    a head without room waits for the first of its list. Machines too narrow for a job, or on which its
    `run_s` is infinite, are not in its list. With `Completion`, a job is bound when it is submitted: to the
    machine with the least sum of (predicted work of waiting and remaining predicted work of running jobs,
    in processor-seconds, a job past its prediction counting 0) / processors + its own predicted time, of
    equal ones the first.

    With ``policy.conservative`` each job has a reservation instead: when it is submitted, it is given the
    earliest time at which it fits beside what runs and what is reserved, for as long as it is expected to
    take, and starts then. When a job ends before it was expected to, each waiting one in the order R1 is
    given the earliest time at which it fits beside the others: none is given a later one (Mu'alem and
    Feitelson 2001). While a job runs longer than it was expected to, reservations cannot hold: it counts as
    one that ends now, and all reservations are made anew in the order R1 at each point in time.

    A `site` adds reservations of processors, and a budget of power: a job fits if there are enough processors
    and there is enough power until it is expected to end, and so it is with the head and who passes it.
    Jobs are bound to machines then, as with conservative backfilling.

    Parameters
    ----------
    jobs
        The jobs. What they were expected to take is their `estimate_s`; for jobs that are killed then, see
        `Jobs.killed_at_estimate`.
    machines
        The machines.
    policy
        Orders R1 and R2; by default EASY, first come, first served.
    placement
        Machines of jobs; optional with a single machine.
    site
        Reservations of processors, and a budget of power; by default there are none.
    sharing
        Which jobs may share processors, and how much they slow each other down; by default none may. A job
        that has no room joins one of the same machine and number of processors, if the slowdowns are
        accepted, and if no other job is expected to wait longer for it. Each change updates the speed of the
        other jobs.
    rules
        Priorities, limits of partitions and users, preemption, predicted times, release times, and
        configurations that are learned, in which case the schedule has their times and power; by
        default none.
    progress
        Called with a sentence if the simulator is being compiled, and from time to time on progress.

    Returns
    -------
    Schedule
        Starts and ends of jobs in seconds, and their machines.

    Raises
    ------
    InputError
        If names of machines repeat, an order is unknown, the placement does not fit, or a job is wider than
        each of its machines or runs on none of them; before anything is simulated.
    MissingExtraError
        If Numba is not installed.

    Notes
    -----
    On 5 processors, jobs a (3 processors, 4 s), b (4, 2 s), c (1, 3 s) and d (1, 9 s), submitted at once; a
    row is a processor, a column a second. Job b waits at the head with a reservation at 4 s that leaves one
    processor. With EASY, c passes it as it ends before, d as it takes the extra processor, and no other may::

        nobody passes       EASY
        aaaabbddddddddd     aaaabb
        aaaabb              aaaabb
        aaaabb              aaaabb
        ....bb              ccc.bb
        ....ccc             ddddddddd

    Running jobs are kept by expected end, and waiting ones in trees by width and set of machines, so that a
    point in time costs the logarithm of the queue's length. Nothing is random.

    Examples
    --------
    >>> import numpy as np
    >>> seconds = np.array([[4.0], [2.0], [3.0], [9.0]])
    >>> jobs = Jobs(np.arange(4), np.zeros(4), np.array([3, 4, 1, 1]), seconds, seconds)
    >>> simulate(jobs, [Machine("one", 5)]).start_s.tolist()
    [0.0, 4.0, 0.0, 0.0]
    >>> simulate(jobs, [Machine("one", 5)], policy=Policy(backfill=None)).start_s.tolist()
    [0.0, 4.0, 4.0, 6.0]
    """
    _check(jobs, machines, policy)
    if placement is None:
        if len(machines) > 1:
            raise InputError.of(field="placement", expected=f"one for {len(machines)} machines", found="none")
        placement = Bound(np.zeros(len(jobs), np.int64))
    with importing("cluster", "simulating a cluster"):
        import numba  # noqa: F401
    from crosscast.cluster.simulator.engine import choices_of, run

    rules = _checked_rules(rules, policy, len(jobs))
    if not needs_plan(policy, site, sharing, rules):
        return run(jobs, machines, policy, placement, progress)
    if not isinstance(placement, Bound):
        raise InputError.of(
            field="placement",
            expected=(
                "jobs that are bound to machines before they are submitted, as conservative backfilling, "
                "reservations, a budget and rules of a site need"
            ),
            found="completion" if isinstance(placement, Completion) else "an order of machines for each",
        )
    choices_of(jobs, machines, placement)
    _check_together(jobs, site, sharing, rules)
    placed = PlacedJobs(jobs, machines, placement.machine)
    from crosscast.cluster.simulator.planning import run_plan

    if rules.release_s is not None:
        return _by_release(run_plan, placed, policy, site, sharing, rules, progress)
    return run_plan(placed, resources_of(placed, site, rules), policy, sharing, rules, progress)


def _check(jobs: Jobs, machines: Sequence[Machine], policy: Policy) -> None:
    """Check machines, orders, and the number of times of a job."""
    check_machines(machines)
    for argument, order in (("queue", policy.queue), ("backfill", policy.backfill or "fcfs")):
        expect_known([order], ORDERS, where="policy", field=argument)
    for name in ("run_s", "estimate_s"):
        columns = getattr(jobs, name).shape[1]
        if columns not in (1, len(machines)):
            raise InputError.of(
                where="jobs",
                field=name,
                expected=f"times on 1 or {len(machines)} machines",
                found=f"{columns}",
            )


def _checked_rules(rules: Rules, policy: Policy, jobs: int) -> Rules:
    """Check rules; without an order by priorities these do not count."""
    rules.check(jobs)
    if policy.queue != "multifactor":
        if policy.backfill == "multifactor":
            raise InputError.of(
                field="backfill", expected="the queue in the order multifactor, too", found="'multifactor'"
            )
        return replace(rules, priority=None)
    if rules.priority is None:
        raise InputError.of(
            field="priority", expected="a site with priorities for the order multifactor", found="none"
        )
    return rules


def _check_together(jobs: Jobs, site: Site, sharing: Sharing | None, rules: Rules) -> None:
    """Check that sharing, rules and a budget go together, and times of release."""
    if sharing is not None and sharing.kind.shape != (len(jobs),):
        raise InputError.of(
            where="sharing", field="kind", expected=f"{len(jobs)} kinds", found=f"{sharing.kind.shape}"
        )
    apart = {"preemption": rules.preempts, "predicted times": rules.forecast_s}
    others = {"sharing": sharing, **apart, "measured_w": rules.measured_w}
    for what, given, without in (("sharing", sharing, apart), ("learning", rules.learning, others)):
        for name, other in without.items():
            if given is not None and other is not None:
                raise InputError.of(field=what, expected=f"jobs without {name}", found="both")
    if rules.learning is not None and site.budget is None:
        raise InputError.of(field="learning", expected="a budget of power", found="none")
    if rules.release_s is None:
        return
    row = first_row(~((rules.release_s >= jobs.submit_s) & np.isfinite(rules.release_s)))
    if row is not None:
        where, field = "rules: release_s", f"job {jobs.number[row]}"
        expected = f"a time from its submission on, {jobs.submit_s[row]:g} s"
        raise InputError.of(where=where, field=field, expected=expected, found=f"{rules.release_s[row]:g}")


def _by_release(
    run_plan: Callable[..., Schedule],
    placed: PlacedJobs,
    policy: Policy,
    site: Site,
    sharing: Sharing | None,
    rules: Rules,
    progress: Callable[[str], None] | None,
) -> Schedule:
    """Simulate jobs as if submitted at their release; times of the site do not move."""
    assert rules.release_s is not None
    by_release = np.argsort(rules.release_s, kind="stable")
    jobs, release_s = placed.jobs, rules.release_s[by_release]
    later = PlacedJobs(jobs.taken(by_release, release_s), placed.machines, placed.machine[by_release])
    rules = rules.taken(by_release)
    if sharing is not None:
        sharing = replace(sharing, kind=sharing.kind[by_release])
    resources = resources_of(later, site, rules, float(jobs.submit_s[0]))
    schedule = run_plan(later, resources, policy, sharing, rules, progress)
    by_submission = np.argsort(by_release)
    cuts, speeds = schedule.cuts, schedule.speeds
    cuts = None if cuts is None else replace(cuts, job=by_release[cuts.job])
    speeds = None if speeds is None else replace(speeds, job=by_release[speeds.job])
    start_s, end_s, reserved_s = (
        times[by_submission] for times in (schedule.start_s, schedule.end_s, schedule.reserved_s)
    )
    if rules.learning is not None:
        jobs = schedule.jobs.taken(by_submission, jobs.submit_s)
    seat = None if schedule.seat is None else by_release[schedule.seat][by_submission]
    machines, machine = placed.machines, placed.machine
    return Schedule(jobs, machines, machine, start_s, end_s, reserved_s, cuts, seat, speeds)


def needs_plan(policy: Policy, site: Site, sharing: Sharing | None = None, rules: Rules = NO_RULES) -> bool:
    """Whether the general, slower simulator is needed."""
    has_site = bool(site.reservations) or site.budget is not None
    has_rules = any(getattr(rules, rule.name) is not None for rule in fields(rules))
    return policy.conservative or has_site or sharing is not None or has_rules


def load_simulator(
    jobs: int | None,
    policies: Sequence[Policy] = (_EASY,),
    site: Site = NO_SITE,
    rules: Rules = NO_RULES,
    progress: Callable[[str], None] | None = None,
) -> None:
    """Load or compile the simulators that policies need, so that timings of simulations exclude it.

    Few jobs are simulated without compiling, unless the code is cached; `None` stands for any number.
    """
    with importing("cluster", "simulating a cluster"):
        import numba  # noqa: F401
    from crosscast.cluster.simulator import engine, interruptible, planning

    for general in sorted({needs_plan(policy, site, None, rules) for policy in policies}):
        with interruptible():
            (planning if general else engine).load(jobs, progress)


def timed(jobs: Jobs, machines: Sequence[Machine], options: Mapping[str, Any]) -> tuple[Schedule, float]:
    """Simulate with these options; return the schedule, and the duration of the simulation in seconds."""
    start_s = time.perf_counter()
    schedule = simulate(jobs, machines, **options)
    return schedule, time.perf_counter() - start_s
