"""In which order jobs are considered where that changes, how many of a user may run, and predicted times.

Priorities grow with age and shrink with what an account has used; predictions are learned from a user's last
two jobs. Both are brought up to date at each point in time at which something happens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.cluster.jobs import Jobs
from crosscast.cluster.rules import Priority, Rules
from crosscast.cluster.simulator.queues import compiled

LATER_S = np.array([1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000]) * 60.0
"""By how much a predicted time grows each time that it was too short: Tsafrir, Etsion and Feitelson 2007."""


class JobRanking(NamedTuple):
    """Priorities of ``n`` jobs of ``a`` accounts, and limits of ``g`` groups of jobs."""

    # Jobs of a higher one are considered first, whatever their keys; of shape `(n,)`
    rank: Integers
    fixed: Reals  # What does not change of each job's priority; of no rows if keys do not change
    age: float  # Weight of the age, and from when on it does not grow
    max_age_s: float
    fair_share: float  # Weight of the share, and how long it takes until half of what was used is forgotten
    half_life_s: float
    account: Integers  # Account of each job, of shape `(n,)`, and its share of all, of shape `(a,)`
    share: Reals
    used: Reals  # Processor-seconds of each account, as of `since`
    procs: Integers  # Processors on which jobs of each account run
    since: Reals  # Of shape `(1,)`
    # Of which group each job is, −1 for none; how many of each may run, and how many do or are to
    group: Integers
    most: Integers
    held: Integers


def start_ranking(rules: Rules, jobs: int) -> JobRanking:
    """Nobody has used anything yet."""
    nobody = np.zeros(0, np.int64)
    priority = rules.priority or Priority(np.zeros(0), nobody, np.zeros(0))
    most = nobody if rules.most is None else rules.most
    return JobRanking(
        rank=np.zeros(jobs, np.int64) if rules.rank is None else np.array(rules.rank, np.int64),
        fixed=np.array(priority.fixed, np.float64),
        age=float(priority.age),
        max_age_s=float(priority.max_age_s),
        fair_share=float(priority.fair_share),
        half_life_s=float(priority.half_life_s),
        account=np.array(priority.account, np.int64),
        share=np.array(priority.share, np.float64),
        used=np.zeros(len(priority.share)),
        procs=np.zeros(len(priority.share), np.int64),
        since=np.zeros(1),
        group=nobody if rules.group is None else np.array(rules.group, np.int64),
        most=np.array(most, np.int64),
        held=np.zeros(len(most), np.int64),
    )


@compiled
def may_run(ranking: JobRanking, job: int) -> bool:
    """Whether no more of a job's group run, or are to, than may."""
    if len(ranking.most) == 0 or ranking.group[job] < 0:
        return True
    found: bool = ranking.held[ranking.group[job]] < ranking.most[ranking.group[job]]
    return found


@compiled
def hold(ranking: JobRanking, job: int, change: int) -> None:
    """Count a job among those of its group that run or are to, or no longer."""
    if len(ranking.most) > 0 and ranking.group[job] >= 0:
        ranking.held[ranking.group[job]] += change


@compiled
def charge(ranking: JobRanking, job: int, procs: int) -> None:
    """Note that an account has so many processors more, or fewer, from now on; what was is counted."""
    if len(ranking.fixed) > 0:
        ranking.procs[ranking.account[job]] += procs


@compiled
def count_use(ranking: JobRanking, now: float) -> None:
    """Add up what accounts have used until now, of which half is forgotten in each half-life.

    As integrals, so that it does not matter how often this is done.
    """
    passed = now - ranking.since[0]
    if len(ranking.fixed) == 0 or not passed > 0:
        return
    if ranking.half_life_s < np.inf:
        keeps = np.exp2(-passed / ranking.half_life_s)
        seconds = (1.0 - keeps) * ranking.half_life_s / np.log(2.0)
    else:
        keeps, seconds = 1.0, passed
    for account in range(len(ranking.used)):
        ranking.used[account] = ranking.used[account] * keeps + ranking.procs[account] * seconds
    ranking.since[0] = now


@compiled
def set_keys(ranking: JobRanking, jobs: Integers, count: int, submit: Reals, key: Reals, now: float) -> None:
    """Keys of waiting jobs by their priorities now: the highest comes first."""
    total = ranking.used.sum()
    for place in range(count):
        job = jobs[place]
        account = ranking.account[job]
        fair = 0.0
        if ranking.share[account] > 0:
            used = ranking.used[account] / total if total > 0 else 0.0
            fair = np.exp2(-used / ranking.share[account])
        age = min((now - submit[job]) / ranking.max_age_s, 1.0)
        key[job] = -np.floor(ranking.age * age + ranking.fair_share * fair + ranking.fixed[job])


@compiled
def sort_jobs(ranking: JobRanking, jobs: Integers, count: int, key: Reals) -> None:
    """Sort waiting jobs, most of which are in order already."""
    for place in range(1, count):
        put(ranking, jobs, place, key, jobs[place])


@compiled
def put(ranking: JobRanking, jobs: Integers, count: int, key: Reals, job: int) -> None:
    """Put a job among so many: by rank, then by key, then by when it was submitted."""
    rank, own = ranking.rank, key[job]
    place = count
    while place > 0:
        other = jobs[place - 1]
        if rank[other] > rank[job] or (
            rank[other] == rank[job] and (key[other] < own or (key[other] == own and other < job))
        ):
            break
        jobs[place] = other
        place -= 1
    jobs[place] = job


class Walltimes(NamedTuple):
    """Predicted times of ``n`` jobs of ``u`` users; of no rows where users' own are taken."""

    request: Reals  # What users requested, of shape `(n,)`: no prediction is longer
    forecast: Reals  # What a model forecast; not a number where none did
    user: Integers  # User of each job
    last: Reals  # How long the last two jobs of each user took that have ended, of shape `(u, 2)`
    ended: Integers  # How many of each user have
    corrected: Integers  # How often each job's prediction was too short
    key_scale: Reals  # Keys in the orders R1 and R2 by time: what the time is multiplied by; of no rows else
    pass_scale: Reals


def start_walltimes(rules: Rules, jobs: Jobs, estimate: Reals, key: Reals, pass_key: Reals) -> Walltimes:
    """Nobody's jobs have ended; keys are given where they go by time."""
    nobody, none = np.zeros(0, np.int64), np.zeros(0)
    if rules.forecast_s is None:
        return Walltimes(none, none, nobody, np.zeros((0, 2)), nobody, nobody, none, none)
    user = np.zeros(len(jobs), np.int64) if jobs.user is None else jobs.user
    users = int(user.max(initial=-1)) + 1
    return Walltimes(
        request=estimate.copy(),
        forecast=np.array(rules.forecast_s, np.float64),
        user=np.array(user, np.int64),
        last=np.zeros((users, 2)),
        ended=np.zeros(users, np.int64),
        corrected=np.zeros(len(jobs), np.int64),
        key_scale=key,
        pass_scale=pass_key,
    )


@compiled
def predict(walltimes: Walltimes, job: int) -> float:
    """How long a job should take: as forecast, else the mean of its user's last two, else as requested."""
    user = walltimes.user[job]
    found: float = walltimes.request[job]
    if walltimes.forecast[job] >= 0:
        found = min(found, walltimes.forecast[job])
    elif walltimes.ended[user] >= 2:
        found = min(found, (walltimes.last[user, 0] + walltimes.last[user, 1]) / 2)
    return found


@compiled
def learn(walltimes: Walltimes, job: int, run: float) -> None:
    """Note how long a job took that has ended."""
    user = walltimes.user[job]
    walltimes.last[user, 0] = walltimes.last[user, 1]
    walltimes.last[user, 1] = run
    walltimes.ended[user] += 1


@compiled
def corrected(walltimes: Walltimes, job: int, start: float, due: float, now: float) -> float:
    """When a job should end that was to have ended by now: later, but as requested at the latest."""
    latest = start + walltimes.request[job]
    while due <= now and due < latest:
        step = min(walltimes.corrected[job], len(LATER_S) - 1)
        due = min(due + LATER_S[step], latest)
        walltimes.corrected[job] += 1
    return due
