"""The simulator again, plainly: at every event the whole queue is sorted and scanned."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from crosscast.cluster import Bound, Completion, Jobs, Machine, Placement, Policy
from crosscast.cluster.rules import Rules


@dataclass
class Run:
    machine: int
    start: float
    end: float
    due: float


@dataclass
class Plain:
    """A simulation that checks itself at every event."""

    jobs: Jobs
    machines: list[Machine]
    policy: Policy
    placement: Placement
    now: float = 0.0
    waiting: list[int] = field(default_factory=list)
    runs: dict[int, Run] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    lists: dict[int, list[int]] = field(default_factory=dict)
    reserved: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = len(self.jobs), len(self.machines)
        self.procs: list[int] = self.jobs.procs.tolist()
        self.run_s: list[list[float]] = np.broadcast_to(self.jobs.run_s, shape).tolist()
        self.estimate_s: list[list[float]] = np.broadcast_to(self.jobs.estimate_s, shape).tolist()

    def running(self, machine: int) -> list[int]:
        return [job for job, run in self.runs.items() if job not in self.ended and run.machine == machine]

    def free(self, machine: int) -> int:
        return self.machines[machine].procs - sum(self.procs[job] for job in self.running(machine))

    def can_run(self, job: int, machine: int) -> bool:
        return self.procs[job] <= self.machines[machine].procs and math.isfinite(self.run_s[job][machine])

    def list_of(self, job: int) -> list[int]:
        if isinstance(self.placement, Bound):
            return [int(self.placement.machine[job])]
        if isinstance(self.placement, Completion):
            predicted = self.placement.predicted_s
            left = {}
            for place in range(len(self.machines)):
                if not self.can_run(job, place) or math.isinf(predicted[job, place]):
                    continue
                work = sum(
                    self.procs[other] * float(predicted[other, place])
                    for other in self.waiting
                    if self.lists[other] == [place]
                )
                for other in self.running(place):
                    end = self.runs[other].start + float(predicted[other, place])
                    work += self.procs[other] * max(end - self.now, 0.0)
                left[place] = work / self.machines[place].procs + float(predicted[job, place])
            return [min(left, key=lambda place: (left[place], place))]
        return [int(place) for place in self.placement.order[job] if place >= 0 and self.can_run(job, place)]

    def sorted(self, jobs: list[int], order: str) -> list[int]:
        def key(job: int) -> float:
            estimate = self.estimate_s[job][self.lists[job][0]]
            return {
                "fcfs": 0.0,
                "lcfs": -float(self.jobs.submit_s[job]),
                "shortest": estimate,
                "longest": -estimate,
                "narrowest": self.procs[job],
                "widest": -self.procs[job],
                "smallest-area": estimate * self.procs[job],
                "largest-area": -estimate * self.procs[job],
            }[order]

        return sorted(jobs, key=lambda job: (key(job), job))

    def start(self, job: int, machine: int) -> None:
        self.waiting.remove(job)
        due = self.now + self.estimate_s[job][machine]
        self.runs[job] = Run(machine, self.now, self.now + self.run_s[job][machine], due)

    def shadow(self, job: int) -> tuple[float, int]:
        """Try every time at which a job is expected to end."""
        host = self.lists[job][0]
        ends = {other: max(self.now, self.runs[other].due) for other in self.running(host)}
        for time in sorted({self.now, *ends.values()}):
            free = self.free(host) + sum(self.procs[other] for other, end in ends.items() if end <= time)
            if free >= self.procs[job]:
                return time, free - self.procs[job]
        raise AssertionError("wider than its machine")

    def room(self, job: int, host: int, shadow: float, extra: int) -> int | None:
        for machine in self.lists[job]:
            if self.procs[job] > self.free(machine):
                continue
            in_time = self.now + self.estimate_s[job][machine] <= shadow
            if machine != host or in_time or self.procs[job] <= extra:
                return machine
        return None

    def schedule(self) -> None:
        while self.waiting:
            head = self.sorted(self.waiting, self.policy.queue)[0]
            machine = self.room(head, -1, 0.0, 0)
            if machine is None:
                break
            self.start(head, machine)
        else:
            return
        shadow, extra = self.shadow(head)
        self.reserved.setdefault(head, shadow)
        if self.policy.backfill is None:
            return
        host = self.lists[head][0]
        for job in self.sorted([job for job in self.waiting if job != head], self.policy.backfill):
            machine = self.room(job, host, shadow, extra)
            if machine is not None:
                if machine == host and self.now + self.estimate_s[job][machine] > shadow:
                    extra -= self.procs[job]
                self.start(job, machine)
        self.check(head, host, shadow)

    def check(self, head: int, host: int, shadow: float) -> None:
        """The head is not delayed by those who have passed it, and nobody else may pass it."""
        again, extra = self.shadow(head)
        assert again == shadow
        assert not [job for job in self.waiting if self.room(job, host, shadow, extra) is not None], (
            "somebody could have started"
        )

    def simulate(self) -> Plain:
        submitted = 0
        while len(self.ended) < len(self.jobs):
            ends = [run.end for job, run in self.runs.items() if job not in self.ended]
            submits = [float(time) for time in self.jobs.submit_s[submitted:]]
            self.now = min(ends + submits)
            self.ended |= {job for job, run in self.runs.items() if run.end == self.now}
            while submitted < len(self.jobs) and self.jobs.submit_s[submitted] == self.now:
                self.lists[submitted] = self.list_of(submitted)
                self.waiting.append(submitted)
                submitted += 1
            self.schedule()
        return self


@dataclass
class PlainLearning:
    """What is chosen for kinds of jobs by the pairs of a kind and a configuration that jobs have measured.

    A choice is a configuration, its expected slowdown and its planned power. It is made anew when a job has
    measured one, and when the first job starts in another.
    """

    kind: list[int]
    slowdown: list[list[float]]
    held: list[list[int]] | None
    choose: Callable[[set[tuple[int, int]], set[tuple[int, int]]], list[tuple[int, float, int]]]
    run: list[float] = field(default_factory=list)
    estimate: list[float] = field(default_factory=list)
    taken: dict[int, int] = field(default_factory=dict)
    measured: set[tuple[int, int]] = field(default_factory=set)
    tried: set[tuple[int, int]] = field(default_factory=set)  # By running jobs, and not measured
    again: bool = False  # Whether a choice is due before another job starts


LATER_MIN = [1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000]


@dataclass
class PlainPlan:
    """Reservations again, plainly: what is left at a moment is added up from all jobs whenever it is asked.

    `capacity` has pairs of a time and what there is of each resource from then on.
    """

    submit: list[float]
    run: list[float]
    estimate: list[float]
    needs: list[dict[int, int]]
    capacity: list[tuple[float, list[int]]]
    key: list[float]
    pass_key: list[float] | None
    every_job: bool
    rules: Rules
    user: list[int]
    holds: list[dict[int, int]]  # What jobs take that run, if that is measured
    key_scale: list[float] | None
    pass_scale: list[float] | None
    learning: PlainLearning | None
    now: float = -math.inf
    waiting: list[int] = field(default_factory=list)
    starts: dict[int, float] = field(default_factory=dict)
    planned: dict[int, float] = field(default_factory=dict)
    promised: dict[int, float] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    blocked: bool = False
    request: list[float] = field(default_factory=list)
    tried: int | None = None  # Who is put on a seat to see whether it may sit there
    dues: dict[int, float] = field(default_factory=dict)
    steps: dict[int, int] = field(default_factory=dict)
    history: dict[int, list[float]] = field(default_factory=dict)
    stopped: list[int] = field(default_factory=list)
    cuts: list[tuple[int, float, float]] = field(default_factory=list)
    used: dict[int, float] = field(default_factory=dict)
    counted: float = 0.0

    def amounts(self, job: int) -> dict[int, int]:
        """What a job takes: what is measured, once it runs."""
        runs = job in self.starts and job != self.tried
        return self.holds[job] if self.holds and runs else self.needs[job]

    def allowed(self, job: int) -> bool:
        group, most = self.rules.group, self.rules.most
        if group is None or most is None or group[job] < 0:
            return True
        busy = [*self.running(), *(other for other in self.waiting if other in self.planned)]
        return sum(bool(group[other] == group[job]) for other in busy) < int(most[group[job]])

    def running(self) -> list[int]:
        return [job for job in self.starts if job not in self.ended]

    def end(self, job: int) -> float:
        return self.starts[job] + self.run[job]

    def due(self, job: int) -> float:
        return self.dues.get(job, self.starts[job] + self.estimate[job])

    def there_is(self, time: float) -> list[int]:
        return [amounts for start, amounts in self.capacity if start <= time][-1]

    def spans(self, without: int | None = None) -> list[tuple[float, float, int]]:
        """What is expected to be taken: by running jobs, and by those with a reservation."""
        found = [(self.now, self.due(job), job) for job in self.running()]
        found += [
            (start, start + self.estimate[job], job)
            for job, start in self.planned.items()
            if job != without and job in self.waiting
        ]
        return [each for each in found if each[0] < each[1]]

    def left(self, time: float, spans: list[tuple[float, float, int]]) -> list[int]:
        left = list(self.there_is(time))
        for start, end, job in spans:
            if start <= time < end:
                for resource, amount in self.amounts(job).items():
                    left[resource] -= amount
        return left

    def enough(self, job: int, left: list[int]) -> bool:
        return all(left[resource] >= amount for resource, amount in self.needs[job].items())

    def left_now(self) -> list[int]:
        left = list(self.there_is(self.now))
        for other in self.running():
            for resource, amount in self.amounts(other).items():
                left[resource] -= amount
        return left

    def has_room(self, job: int) -> bool:
        return self.enough(job, self.left_now())

    def borders(self, spans: list[tuple[float, float, int]]) -> list[float]:
        times = {self.now, *(time for time, _ in self.capacity)}
        times |= {time for start, end, _ in spans for time in (start, end)}
        return sorted(time for time in times if self.now <= time < math.inf)

    def fits(self, job: int, start: float, spans: list[tuple[float, float, int]]) -> bool:
        end = start + self.estimate[job]
        inside = [time for time in self.borders(spans) if start < time < end]
        return all(self.enough(job, self.left(time, spans)) for time in [start, *inside])

    def earliest(self, job: int, spans: list[tuple[float, float, int]]) -> float:
        return next((time for time in self.borders(spans) if self.fits(job, time, spans)), math.inf)

    def in_order(self, jobs: list[int], key: list[float]) -> list[int]:
        rank = [0] * len(key) if self.rules.rank is None else self.rules.rank
        return sorted(jobs, key=lambda job: (-rank[job], key[job], job))

    def start(self, job: int) -> None:
        self.starts[job] = self.now
        self.waiting.remove(job)
        learning = self.learning
        if learning is not None:
            pair = learning.kind[job], learning.taken[job]
            learning.again = pair not in learning.measured | learning.tried
            learning.tried |= {pair} - learning.measured

    def plan_all(self, early: bool) -> None:
        queue = self.in_order(self.waiting, self.key)
        stops = self.rules.preempts is not None
        overdue = any(self.due(job) <= self.now for job in self.running())
        if stops or self.holds or self.blocked or overdue:
            self.planned.clear()
        elif early:
            for job in queue:
                if job in self.planned and self.planned[job] > self.now:
                    before = self.planned[job]
                    again = self.earliest(job, self.spans(without=job))
                    # A job that should take no time holds nothing.
                    assert again <= before or self.estimate[job] == 0, "a promise is broken"
                    self.planned[job] = min(before, again)
        for job in queue:
            if job not in self.planned and self.allowed(job):
                start = self.earliest(job, self.spans())
                if stops and (start > self.now or not self.has_room(job)) and self.stop_for(job, []):
                    start = self.now
                self.planned[job] = start
                self.promised.setdefault(job, start)
                if stops and start <= self.now and self.has_room(job):
                    self.start(job)
        self.blocked = False
        for job in queue:
            if self.is_choice_due():
                return
            if job in self.waiting and self.planned.get(job, math.inf) <= self.now:
                if self.has_room(job):
                    self.start(job)
                else:
                    self.blocked = True

    def plan_head(self) -> None:
        head = None
        for job in self.in_order(self.waiting, self.key):
            if self.allowed(job) and not self.try_to_start(job, []):
                head = job
                break
            if self.is_choice_due():
                return
        if head is None:
            return
        shadow = self.earliest(head, self.spans())
        self.promised.setdefault(head, shadow)
        if self.pass_key is None:
            return
        held = (shadow, max(shadow + self.estimate[head], math.nextafter(shadow, math.inf)), head)
        for job in self.in_order([job for job in self.waiting if job != head], self.pass_key):
            if self.is_choice_due():
                return
            if self.allowed(job):
                self.try_to_start(job, [held])

    def fits_now(self, job: int, held: list[tuple[float, float, int]]) -> bool:
        if not self.has_room(job):
            return False
        return self.estimate[job] == 0 or self.fits(job, self.now, [*self.spans(), *held])

    def try_to_start(self, job: int, held: list[tuple[float, float, int]]) -> bool:
        if self.fits_now(job, held) or self.stop_for(job, held):
            self.start(job)
            return True
        return False

    def stop_for(self, job: int, held: list[tuple[float, float, int]]) -> bool:
        """Stop jobs, the last that started first; let those go on without which it fits as well."""
        preempts, kind = self.rules.preempts, self.rules.kind
        if preempts is None or kind is None:
            return False
        victims: dict[int, float] = {}
        while not self.fits_now(job, held):
            others = [other for other in self.running() if preempts[kind[job], kind[other]]]
            if not others:
                break
            victim = max(others, key=lambda other: (self.starts[other], other))
            victims[victim] = self.starts.pop(victim)
        enough = self.fits_now(job, held)
        for victim, start in victims.items():
            self.starts[victim] = start
            if enough and not self.fits_now(job, held):
                del self.starts[victim]
                self.stopped.append(victim)
                self.dues.pop(victim, None)
                if start < self.now:
                    self.cuts.append((victim, start, self.now))
        return enough

    def set_keys(self) -> None:
        """Priorities now, of all who wait."""
        rule = self.rules.priority
        if rule is None:
            return
        total = sum(self.used.get(each, 0.0) for each in range(len(rule.share)))
        for job in self.waiting:
            own = int(rule.account[job])
            fair = 0.0
            if rule.share[own] > 0:
                part = self.used.get(own, 0.0) / total if total > 0 else 0.0
                fair = math.exp2(-part / rule.share[own])
            waited = min((self.now - self.submit[job]) / rule.max_age_s, 1.0)
            self.key[job] = -math.floor(rule.age * waited + rule.fair_share * fair + rule.fixed[job])

    def count_use(self, now: float) -> None:
        """What accounts have used until then, by who runs."""
        rule, passed = self.rules.priority, now - self.counted
        if rule is None or not passed > 0:
            return
        keeps, seconds = 1.0, passed
        if rule.half_life_s < math.inf:
            keeps = math.exp2(-passed / rule.half_life_s)
            seconds = (1.0 - keeps) * rule.half_life_s / math.log(2.0)
        for own in range(len(rule.share)):
            users = [job for job in self.running() if rule.account[job] == own]
            procs = sum(next(iter(self.needs[job].values())) for job in users)
            self.used[own] = self.used.get(own, 0.0) * keeps + procs * seconds
        self.counted = now

    def correct(self) -> None:
        """Who runs longer than predicted is expected to end later."""
        if self.rules.forecast_s is None:
            return
        for job in self.running():
            latest, due = self.starts[job] + self.request[job], self.due(job)
            while due <= self.now and due < latest:
                step = self.steps.get(job, 0)
                due = min(due + 60.0 * LATER_MIN[min(step, len(LATER_MIN) - 1)], latest)
                self.steps[job] = step + 1
                self.dues[job] = due
                self.blocked = True

    def predict(self, job: int) -> None:
        if self.rules.forecast_s is None:
            return
        past = self.history.get(self.user[job], [])
        if self.rules.forecast_s[job] >= 0:
            self.estimate[job] = min(self.request[job], float(self.rules.forecast_s[job]))
        elif len(past) >= 2:
            self.estimate[job] = min(self.request[job], (past[-2] + past[-1]) / 2)
        self.set_keys_by_time(job)

    def set_keys_by_time(self, job: int) -> None:
        if self.key_scale is not None:
            self.key[job] = self.key_scale[job] * self.estimate[job]
        if self.pass_scale is not None and self.pass_key is not None:
            self.pass_key[job] = self.pass_scale[job] * self.estimate[job]

    def take_choice(self, job: int) -> None:
        """A job that waits would run as is chosen now."""
        learning = self.learning
        if learning is None:
            return
        kind = learning.kind[job]
        option, expected, need = learning.choose(learning.measured, learning.tried)[kind]
        learning.taken[job] = option
        self.run[job] = learning.run[job] * learning.slowdown[kind][option]
        self.estimate[job] = learning.estimate[job] * expected
        procs, power = self.needs[job][min(self.needs[job])], max(self.needs[job])
        self.needs[job] = self.needs[job] | {power: procs * need}
        if learning.held is not None:
            self.holds[job] = self.needs[job] | {power: procs * learning.held[kind][option]}
        self.set_keys_by_time(job)

    def choose_again(self) -> None:
        self.blocked |= len(self.waiting) > 0
        for job in self.waiting:
            self.take_choice(job)

    def is_choice_due(self) -> bool:
        return self.learning is not None and self.learning.again

    def leave(self, over: list[int]) -> None:
        self.ended |= set(over)
        learning = self.learning
        if learning is not None:
            before = len(learning.measured)
            learning.measured |= {(learning.kind[job], learning.taken[job]) for job in over}
            learning.tried -= learning.measured
            if len(learning.measured) > before:
                self.choose_again()
        if self.rules.forecast_s is not None:
            for job in sorted(over):
                self.history.setdefault(self.user[job], []).append(self.run[job])

    def simulate(self) -> PlainPlan:
        submitted = 0
        self.request = list(self.estimate)
        if self.learning is not None:
            self.learning.run, self.learning.estimate = list(self.run), list(self.estimate)
        while True:
            times = [self.end(job) for job in self.running()] + self.submit[submitted : submitted + 1]
            if self.waiting:
                times += [time for time, _ in self.capacity if time > self.now]
                if self.rules.forecast_s is not None:
                    running = self.running()
                    latest = {job: self.starts[job] + self.request[job] for job in running}
                    times += [self.due(job) for job in running if self.due(job) < latest[job]]
            if self.every_job:
                planned = [self.planned[job] for job in self.waiting if job in self.planned]
                times += [time for time in planned if time > self.now]
            now = min(times, default=math.inf)
            if now == math.inf:
                return self
            self.count_use(now)
            self.now = now
            over = [job for job in self.running() if self.end(job) == self.now]
            early = any(self.due(job) > self.now for job in over)
            self.leave(over)
            self.correct()
            while submitted < len(self.submit) and self.submit[submitted] == self.now:
                self.predict(submitted)
                self.take_choice(submitted)
                self.waiting.append(submitted)
                submitted += 1
            if not self.waiting:
                continue
            self.schedule(early)
            while self.learning is not None and self.learning.again:
                self.learning.again = False
                self.choose_again()
                if self.waiting:
                    self.schedule(False)
            while self.stopped:
                self.waiting += self.stopped
                for job in self.stopped:
                    self.planned.pop(job, None)
                self.stopped = []
                self.schedule(False)

    def schedule(self, early: bool) -> None:
        self.set_keys()
        if self.every_job:
            self.plan_all(early)
        else:
            self.plan_head()


@dataclass
class PlainSharing(PlainPlan):
    """The same with jobs that sit down beside others: at every event, what each has left is written down."""

    kind: list[int] = field(default_factory=list)
    true: list[list[float]] = field(default_factory=list)
    believed: list[list[float]] = field(default_factory=list)
    most: int = 2
    limit: float = math.inf
    least_gain: float = 0.0
    by_gain: bool = True
    draws: list[int] | None = None  # Power above idle of each job's processors at most, if there is a budget
    seats: dict[int, list[int]] = field(default_factory=dict)
    left_s: dict[int, float] = field(default_factory=dict)
    expected_s: dict[int, float] = field(default_factory=dict)
    then: float = -math.inf

    def rate(self, job: int, mates: list[int], table: list[list[float]]) -> float:
        return math.prod(table[self.kind[job]][self.kind[other]] for other in mates if other != job)

    def mates(self, job: int) -> list[int]:
        return next(mates for mates in self.seats.values() if job in mates)

    def end(self, job: int) -> float:
        return self.then + self.left_s[job] * self.rate(job, self.mates(job), self.true)

    def due(self, job: int) -> float:
        return self.then + self.expected_s[job] * self.rate(job, self.mates(job), self.believed)

    def write_down(self) -> None:
        """What is left of each job, now that time has passed since this was last done."""
        for mates in self.seats.values():
            for job in mates:
                passed = self.now - self.then
                self.left_s[job] = max(0.0, self.left_s[job] - passed / self.rate(job, mates, self.true))
                expected = self.expected_s[job] - passed / self.rate(job, mates, self.believed)
                self.expected_s[job] = max(0.0, expected)
        self.then = self.now

    def leave(self, over: list[int]) -> None:
        super().leave(over)
        self.write_down()
        for mates in self.seats.values():
            mates[:] = [job for job in mates if job not in self.ended]
        self.seats = {seat: mates for seat, mates in self.seats.items() if mates}

    def start(self, job: int) -> None:
        super().start(job)
        self.sit(job, job)

    def sit(self, job: int, seat: int) -> None:
        self.starts[job] = self.now
        self.seats.setdefault(seat, []).append(job)
        self.left_s[job], self.expected_s[job] = self.run[job], self.estimate[job]

    def left(self, time: float, spans: list[tuple[float, float, int]]) -> list[int]:
        """Processors of jobs that share are taken once, until the last of them is due."""
        left = super().left(time, spans)
        inside = {job for start, end, job in spans if start <= time < end}
        for mates in self.seats.values():
            there = [each for each in mates if each in inside]
            for job in there[1:]:
                for resource in self.processors(job):
                    left[resource] += self.needs[job][resource]
            left[-1] += self.saved(there)
        return left

    def power(self, jobs: list[int]) -> int:
        """The most that any of the jobs draw together beside each other."""
        assert self.draws is not None
        most = max(
            sum(self.amounts(job)[self.last(job)] / self.rate(job, list(some), self.believed) for job in some)
            for count in range(1, len(jobs) + 1)
            for some in itertools.combinations(jobs, count)
        )
        return min(round(most), self.draws[jobs[0]])

    def last(self, job: int) -> int:
        return max(self.needs[job])

    def saved(self, jobs: list[int]) -> int:
        """Power that jobs do not draw as they slow each other down."""
        if self.draws is None or not jobs:
            return 0
        return sum(self.amounts(job)[self.last(job)] for job in jobs) - self.power(jobs)

    def processors(self, job: int) -> list[int]:
        """Of the machine, and of the partition: one for all who share."""
        has_partition = self.rules.partition is not None and self.rules.partition[job] >= 0
        return list(self.needs[job])[: 2 if has_partition else 1]

    def left_now(self) -> list[int]:
        left = list(self.there_is(self.now))
        for mates in self.seats.values():
            for place, other in enumerate(mates):
                for resource, amount in self.amounts(other).items():
                    if place == 0 or resource not in self.processors(other):
                        left[resource] -= amount
            left[-1] += self.saved(mates)
        return left

    def sit_down(self, job: int, spans: list[tuple[float, float, int]]) -> bool:
        """Try all seats: on the best one where nobody else has to wait for it, the job starts."""
        best: tuple[float, int] | None = None
        for seat, mates in sorted(self.seats.items()):
            if len(mates) == self.most or self.processors(job) != self.processors(seat):
                continue
            if any(self.needs[job][each] != self.needs[seat][each] for each in self.processors(job)):
                continue
            together = [*mates, job]
            rates = [self.rate(each, together, self.believed) for each in together]
            gain = sum(1 / rate for rate in rates)
            gain -= sum(1 / self.rate(each, mates, self.believed) for each in mates)
            if max(rates) > self.limit or gain < self.least_gain:
                continue
            worth = gain if self.by_gain else 0.0
            if (best is None or worth > best[0]) and self.nobody_waits(job, seat, spans):
                best = worth, seat
        if best is None:
            return False
        self.waiting.remove(job)
        self.sit(job, best[1])
        return True

    def nobody_waits(self, job: int, seat: int, held: list[tuple[float, float, int]]) -> bool:
        mates = self.seats[seat]
        if self.draws is not None and self.left_now()[-1] + self.power(mates) < self.power([*mates, job]):
            return False
        self.sit(job, seat)
        until = max(self.due(each) for each in self.seats[seat])
        spans = [*self.spans(), *held]
        times = [time for time in self.borders(spans) if time < until]
        self.tried = job
        found = all(min(self.left(time, spans)) >= 0 for time in times)
        self.tried = None
        self.seats[seat].remove(job)
        del self.starts[job]
        return found

    def plan_all(self, early: bool) -> None:
        self.blocked = True
        super().plan_all(early)
        for job in self.in_order(self.waiting, self.key):
            before = self.planned.pop(job, None)
            if before is not None and not self.sit_down(job, []):
                self.planned[job] = before

    def try_to_start(self, job: int, held: list[tuple[float, float, int]]) -> bool:
        return super().try_to_start(job, held) or self.sit_down(job, held)
