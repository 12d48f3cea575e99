"""Priorities that change over time, limits on running jobs of a user, and predicted run times.

Priorities grow with age and shrink with the use of an account; predictions are learned from a user's last
two jobs. Both are updated at each point in time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.cluster import Jobs
from crosscast.cluster.rules import Priority, Rules
from crosscast.cluster.simulator import NO_INTEGERS, NO_REALS, compiled, integers_of

LATER_S = np.array([1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000]) * 60.0
"""Increments of a predicted time each time that it was too short: Tsafrir, Etsion and Feitelson 2007."""


class JobRanking(NamedTuple):
    """Priorities of ``n`` jobs of ``a`` accounts, and limits of ``g`` groups of jobs."""

    # Jobs of a higher rank are considered first, before their keys; of shape `(n,)`
    rank: Integers
    fixed: Reals  # Constant part of each job's priority; without rows if keys do not change
    age: float  # Weight of the age, and the age from which on it does not grow
    max_age_s: float
    fair_share: float  # Weight of the share, and half-life of the recorded use
    half_life_s: float
    account: Integers  # Account of each job, of shape `(n,)`, and its share of all, of shape `(a,)`
    share: Reals
    used: Reals  # Processor-seconds of each account, as of `since`
    procs: Integers  # Processors on which jobs of each account run
    since: Reals  # Of shape `(1,)`
    # Group of each job, −1 for none; limit of running jobs of each group, and number that run or are to
    group: Integers
    most: Integers
    held: Integers


def start_ranking(rules: Rules, jobs: int) -> JobRanking:
    """Return the ranking before the first submission."""
    priority = rules.priority or Priority(NO_REALS, NO_INTEGERS, NO_REALS)
    most = integers_of(rules.most)
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
        group=integers_of(rules.group),
        most=most,
        held=np.zeros(len(most), np.int64),
    )


@compiled
def may_run(ranking: JobRanking, job: int) -> bool:
    """Whether the limit of a job's group allows one more."""
    if len(ranking.most) == 0 or ranking.group[job] < 0:
        return True
    is_below: bool = ranking.held[ranking.group[job]] < ranking.most[ranking.group[job]]
    return is_below


@compiled
def hold(ranking: JobRanking, job: int, change: int) -> None:
    """Change the count of jobs of a job's group that run or are to."""
    if len(ranking.most) > 0 and ranking.group[job] >= 0:
        ranking.held[ranking.group[job]] += change


@compiled
def charge(ranking: JobRanking, job: int, procs: int) -> None:
    """Change the number of processors of a job's account; its use so far must have been counted."""
    if len(ranking.fixed) > 0:
        ranking.procs[ranking.account[job]] += procs


@compiled
def count_use(ranking: JobRanking, now: float) -> None:
    """Add up the use of accounts until now, with exponential decay by the half-life.

    Use is integrated, so that the number of calls does not matter.
    """
    elapsed = now - ranking.since[0]
    if len(ranking.fixed) == 0 or not elapsed > 0:
        return
    if ranking.half_life_s < np.inf:
        decay = np.exp2(-elapsed / ranking.half_life_s)
        seconds = (1.0 - decay) * ranking.half_life_s / np.log(2.0)
    else:
        decay, seconds = 1.0, elapsed
    for account in range(len(ranking.used)):
        ranking.used[account] = ranking.used[account] * decay + ranking.procs[account] * seconds
    ranking.since[0] = now


@compiled
def set_keys(ranking: JobRanking, jobs: Integers, count: int, submit: Reals, key: Reals, now: float) -> None:
    """Set the keys of waiting jobs by their priorities now: the highest comes first."""
    total = ranking.used.sum()
    for index in range(count):
        job = jobs[index]
        account = ranking.account[job]
        fair = 0.0
        if ranking.share[account] > 0:
            used = ranking.used[account] / total if total > 0 else 0.0
            fair = np.exp2(-used / ranking.share[account])
        age = min((now - submit[job]) / ranking.max_age_s, 1.0)
        key[job] = -np.floor(ranking.age * age + ranking.fair_share * fair + ranking.fixed[job])


@compiled
def sort_jobs(ranking: JobRanking, jobs: Integers, count: int, key: Reals) -> None:
    """Sort waiting jobs, most of which are in order already, by insertion."""
    for index in range(1, count):
        put(ranking, jobs, index, key, jobs[index])


@compiled
def put(ranking: JobRanking, jobs: Integers, count: int, key: Reals, job: int) -> None:
    """Insert a job into the first `count` ones: by rank, then by key, then by submission."""
    rank, job_key = ranking.rank, key[job]
    index = count
    while index > 0:
        other = jobs[index - 1]
        if rank[other] > rank[job] or (
            rank[other] == rank[job] and (key[other] < job_key or (key[other] == job_key and other < job))
        ):
            break
        jobs[index] = other
        index -= 1
    jobs[index] = job


class Walltimes(NamedTuple):
    """Predicted times of ``n`` jobs of ``u`` users; without rows if users' estimates are used."""

    request: Reals  # Requested times, of shape `(n,)`, an upper bound of predictions
    forecast: Reals  # Forecasts of a model; NaN where there is none
    user: Integers  # User of each job
    last: Reals  # Run times of each user's last two jobs that have ended, of shape `(u, 2)`
    ended: Integers  # Number of each user's jobs that have ended
    corrected: Integers  # Number of corrections of each job's prediction


def start_walltimes(rules: Rules, jobs: Jobs, estimate: Reals) -> Walltimes:
    """Return the predictions before the first submission."""
    if rules.forecast_s is None:
        return Walltimes(NO_REALS, NO_REALS, NO_INTEGERS, np.zeros((0, 2)), NO_INTEGERS, NO_INTEGERS)
    user = np.zeros(len(jobs), np.int64) if jobs.user is None else jobs.user
    users = int(user.max(initial=-1)) + 1
    return Walltimes(
        request=estimate.copy(),
        forecast=np.array(rules.forecast_s, np.float64),
        user=np.array(user, np.int64),
        last=np.zeros((users, 2)),
        ended=np.zeros(users, np.int64),
        corrected=np.zeros(len(jobs), np.int64),
    )


@compiled
def predict(walltimes: Walltimes, job: int) -> float:
    """Predict a job's run time: the forecast, else the mean of its user's last two, else as requested."""
    user = walltimes.user[job]
    predicted: float = walltimes.request[job]
    if walltimes.forecast[job] >= 0:
        predicted = min(predicted, walltimes.forecast[job])
    elif walltimes.ended[user] >= 2:
        predicted = min(predicted, (walltimes.last[user, 0] + walltimes.last[user, 1]) / 2)
    return predicted


@compiled
def learn(walltimes: Walltimes, job: int, run: float) -> None:
    """Record the run time of a job that has ended."""
    user = walltimes.user[job]
    walltimes.last[user, 0] = walltimes.last[user, 1]
    walltimes.last[user, 1] = run
    walltimes.ended[user] += 1


@compiled
def corrected(walltimes: Walltimes, job: int, start: float, due: float, now: float) -> float:
    """Return the next expected end of an overdue job, at most as requested."""
    latest = start + walltimes.request[job]
    while due <= now and due < latest:
        step = min(walltimes.corrected[job], len(LATER_S) - 1)
        due = min(due + LATER_S[step], latest)
        walltimes.corrected[job] += 1
    return due
