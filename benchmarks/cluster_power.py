"""Throughput of a cluster under a budget of power: uniform caps, predicted configurations, and an oracle.

``python -m benchmarks.cluster_power DATASET`` takes a dataset of one machine with times and powers in many
configurations (``crosscast dataset import powercap``, say). Each application is held out in turn; its times
and powers are forecast from two sample runs, the first two iterations of a kernel (Bailey et al. 2014), as in
``crosscast evaluate configuration``. A cluster of nodes like that machine works off jobs of all kernels, all
submitted at once, under 60, 70 and 80 % of the power of a cluster whose nodes all run jobs as fast as they
can; the mean over seeds is printed. A node without a job draws ``--idle`` watts. What is reserved for a job
is the power that it keeps with a probability of ``--sure``, by the forecast. With ``--measured``, what a
running job truly draws counts instead, as if it were measured from its start on.

The policy ``model`` knows no more than that. With ``learned``, what ended jobs have measured conditions the
forecasts; with ``--whole``, its sample runs are the first two jobs of a kernel as a whole. ``--without``
leaves out applications. ``bound`` is the throughput that no policy and no scheduler exceeds. With
``--losses``, a second table has the policy ``model`` with true times, with true power, and with no margin
for safety.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

from benchmarks.table import Verdict, text_table
from crosscast.cluster import Jobs, Machine, PlacedJobs, policy_named
from crosscast.cluster.configurations import KindForecast, PowerOptions, configure
from crosscast.cluster.resources import power_metrics
from crosscast.cluster.rules import Rules
from crosscast.cluster.simulate import simulate
from crosscast.cluster.site import POWER_POLICIES, PowerPolicy, Site, constant_budget
from crosscast.data.dataset import read_dataset
from crosscast.decide.samples import two_samples
from crosscast.evaluation.configuration.question import machine_of
from crosscast.prediction.configuration import Surfaces
from crosscast.prediction.configuration.process import TIME, KernelPosterior, ProcessModel

_SHARES = (0.6, 0.7, 0.8)
_PREDICTING: tuple[PowerPolicy, PowerPolicy] = "model", "learned"
_SHARE_OF_GAIN = 0.9
_NODES = 64
_WIDEST = 8


def main() -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster_power", description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--device", help="device of the dataset, where it has several")
    parser.add_argument("--jobs", type=int, default=4000, help="jobs of each seed (4,000)")
    parser.add_argument("--seeds", type=int, default=5, help="how many seeds (5)")
    parser.add_argument("--idle", type=float, default=40.0, help="watts of a node without a job (40)")
    parser.add_argument("--sure", type=float, default=0.75, help="probability (0.75)")
    parser.add_argument("--measured", action="store_true", help="measured power of running jobs counts")
    parser.add_argument("--without", nargs="+", default=[], help="applications without jobs")
    parser.add_argument("--whole", action="store_true", help="the first two jobs are the sample runs")
    parser.add_argument("--losses", action="store_true", help="print what each loss of `model` is")
    given = parser.parse_args()
    surfaces = machine_of(read_dataset(given.dataset), devices=given.device and [given.device])
    kinds = replace(forecast_kinds(surfaces, given.sure, given.without), whole=given.whole)
    cluster = Cluster(kinds, given.idle, given.jobs, range(given.seeds), given.measured)
    verdicts = print_policies(cluster)
    if given.losses:
        print_losses(cluster, forecast_kinds(surfaces, 0.5, given.without))
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


def print_policies(cluster: Cluster) -> list[Verdict]:
    """Print throughputs and shares of the oracle's gain; return what is asked of the learned policy."""
    rows, verdicts = [], []
    for share in _SHARES:
        runs = {name: cluster.runs(share, name) for name in POWER_POLICIES}
        model, learned = (_gains(runs[name], runs["uniform"], runs["oracle"]) for name in _PREDICTING)
        rows.append(
            [
                f"{100 * share:.0f} %",
                *(f"{_mean(runs[name]):.1f}" for name in POWER_POLICIES),
                f"{np.mean([cluster.bound(share, seed) for seed in cluster.seeds]):.1f}",
                f"{100 * model.mean():.0f} %",
                f"{100 * learned.mean():.0f} % ({100 * learned.min():.0f} to {100 * learned.max():.0f})",
                *(f"{100 * np.mean([run.within for run in runs[name]]):.1f} %" for name in _PREDICTING),
            ]
        )
        title = f"{100 * share:.0f} %: >= {100 * _SHARE_OF_GAIN:g} % of the oracle's gain over uniform caps"
        met = bool(learned.mean() >= _SHARE_OF_GAIN)
        verdicts.append(Verdict(title, f"{100 * learned.mean():.1f} %", met))
    heads = ["budget", *(f"{name}, jobs/h" for name in POWER_POLICIES), "bound", "model: of oracle's gain"]
    heads += ["learned: of it (seeds)", "model: time in budget", "learned: time in budget"]
    print(text_table(heads, rows), end="\n\n")
    return verdicts


def print_losses(cluster: Cluster, unsure: Kinds) -> None:
    """Print shares of the oracle's gain with parts of the forecasts replaced by the truth."""
    options = cluster.kinds.options
    variants = {
        "as it is": options,
        "true times": replace(options, predicted_slowdown=options.slowdown),
        "true power": replace(options, predicted_power_w=options.power_w),
        "no margin": unsure.options,
    }
    rows = []
    for share in _SHARES:
        uniform, oracle = (cluster.runs(share, name) for name in ("uniform", "oracle"))
        cells = [f"{100 * share:.0f} %"]
        for changed in variants.values():
            runs = cluster.runs(share, "model", changed)
            within = np.mean([run.within for run in runs])
            cells.append(f"{100 * _gains(runs, uniform, oracle).mean():.0f} % ({100 * within:.0f} %)")
        rows.append(cells)
    print(text_table(["model: of oracle's gain (time in budget)", *variants], rows), end="\n\n")


@dataclass(frozen=True)
class Kinds:
    """Kinds of jobs: kernels with their configurations, and what is forecast of them, held out."""

    options: PowerOptions
    seconds: np.ndarray  # Time of each kernel in its fastest configuration
    # Of each kernel: index of each option's configuration in the space; options of the sample runs; row
    numbers: Sequence[np.ndarray]
    sampled: Sequence[tuple[int, ...]]
    rows: Sequence[int]
    posteriors: Sequence[KernelPosterior]
    surfaces: Surfaces
    sure: float
    before_w: np.ndarray  # Power of the sample runs of other applications' kernels, not exceeded by most
    known: dict[tuple[int, tuple[int, ...]], KindForecast] = field(default_factory=dict)
    whole: bool = False  # Whether the sample runs are the first two jobs

    def samples(self, kind: int) -> tuple[int, ...]:
        """Options of the sample runs that are known before the first job."""
        return () if self.whole else self.sampled[kind]

    def forecast(self, kind: int, measured: Sequence[int]) -> KindForecast:
        """Condition the forecast of a kernel on its measured options; see `Learner`."""
        missing = [option for option in self.sampled[kind] if option not in measured]
        if missing:
            return self._first(kind, missing[0])
        at = kind, tuple(sorted(measured))
        if at not in self.known:
            self.known[at] = self._forecast(kind, at[1])
        return self.known[at]

    def _first(self, kind: int, option: int) -> KindForecast:
        """Forecast a sample run only, so that no other option is taken; its time is as requested."""
        power_w, slowdown = np.full((2, self.options.power_w.shape[1]), np.nan)
        power_w[option] = self.before_w[kind, self.sampled[kind].index(option)]
        slowdown[option] = 1.0
        return KindForecast(power_w, slowdown, slowdown[None])

    def _forecast(self, kind: int, measured: tuple[int, ...]) -> KindForecast:
        numbers, posterior = self.numbers[kind], self.posteriors[kind]
        observed = self.surfaces.observed(self.rows[kind], numbers[list(measured)].tolist())
        forecast = posterior.forecast(observed)
        time = forecast.time
        # Student's process: a kernel whose runs are farther from the forecast than others' has wider errors.
        before = posterior.quantities[TIME]
        covariances = before.rows(observed.numbers)[:, observed.numbers]
        covariances += before.covariance.noise * np.eye(len(observed))
        distance = np.log(observed.time_s) - before.mean[observed.numbers]
        surprise = float(distance @ np.linalg.solve(covariances, distance)) / float((time.errors**2).mean())
        scale = np.sqrt((1 + surprise) / (1 + len(observed)))
        possible = time.centre * np.exp(scale * time.spread * time.errors[:, None])
        slowdowns = np.vstack([time.centre, possible])[:, numbers] / self.seconds[kind]
        cells = np.vstack([forecast.power.quantile(self.sure)[numbers], slowdowns])
        padding = self.options.power_w.shape[1] - len(numbers)
        cells = np.pad(cells, ((0, 0), (0, padding)), constant_values=np.nan)
        return KindForecast(cells[0], cells[1], cells[2:])


def forecast_kinds(surfaces: Surfaces, sure: float, without: Sequence[str]) -> Kinds:
    """Return all kernels, each forecast by a model of the other applications, but those left out."""
    cap_w = caps(surfaces)
    rows: list[int] = []
    posteriors: list[KernelPosterior] = []
    numbers: list[np.ndarray] = []
    sampled: list[tuple[int, ...]] = []
    before_w: list[np.ndarray] = []
    for application in surfaces.applications:
        own = surfaces.rows_of([application])
        train = surfaces.take(~own)
        samples = two_samples(train, 0)
        fitted = ProcessModel().fit(train, samples, 0)
        for row in np.flatnonzero(own & surfaces.known[:, list(samples)].all(axis=1)).tolist():
            if application not in without:
                known = np.flatnonzero(surfaces.known[row])
                numbers.append(known[np.argsort(surfaces.time_s[row][known])])
                sampled.append(tuple(numbers[-1].tolist().index(each) for each in samples))
                before_w.append(np.nanquantile(train.power_w[:, list(samples)], sure, axis=0))
                posteriors.append(fitted.posterior(surfaces.observed(row, samples)))
                rows.append(row)
    table = np.full((3, len(rows), max(map(len, numbers))), np.nan)
    seconds = np.array([np.nanmin(surfaces.time_s[row]) for row in rows])
    for kind, (row, number) in enumerate(zip(rows, numbers, strict=True)):
        slowdown = surfaces.time_s[row][number] / seconds[kind]
        table[:, kind, : len(number)] = surfaces.power_w[row][number], slowdown, cap_w[number]
    names = tuple(str(surfaces.kernels[row]) for row in rows)
    options = PowerOptions(names, table[0], table[1], cap_w=table[2])
    kinds = Kinds(options, seconds, numbers, sampled, rows, posteriors, surfaces, sure, np.array(before_w))
    forecasts = [kinds.forecast(kind, samples) for kind, samples in enumerate(sampled)]
    predicted_w, predicted = (np.array([each[at] for each in forecasts]) for at in (0, 1))
    return replace(
        kinds, options=replace(options, predicted_power_w=predicted_w, predicted_slowdown=predicted)
    )


def caps(surfaces: Surfaces) -> np.ndarray:
    """Sum of the caps of each configuration in which all have the same rank among those of their knob."""
    values = surfaces.space.matrix
    ranks = np.stack([np.searchsorted(np.unique(column), column) for column in values.T])
    return np.where((ranks == ranks[0]).all(axis=0), values.sum(axis=1), np.nan)


@dataclass(frozen=True)
class Run:
    """What a policy did with the jobs of a seed."""

    per_h: float  # Jobs an hour
    within: float  # Share of the time within the budget


@dataclass(frozen=True)
class Cluster:
    """A cluster and its jobs."""

    kinds: Kinds
    idle_w: float
    count: int
    seeds: range
    measured: bool

    def budget_w(self, share: float) -> float:
        """Share of what all nodes draw that run jobs as fast as they can."""
        return share * _NODES * float(self.kinds.options.power_w[:, 0].mean())

    def jobs(self, seed: int) -> tuple[np.ndarray, Jobs]:
        """Kinds of jobs, and the jobs: their kernel again and again, for minutes to hours."""
        rng = np.random.default_rng(seed)
        kind = rng.integers(len(self.kinds.seconds), size=self.count)
        procs = 2 ** rng.integers(0, int(np.log2(_WIDEST)) + 1, size=self.count)
        run_s = np.exp(rng.uniform(np.log(300), np.log(7200), size=self.count))[:, None]
        return kind, Jobs(np.arange(self.count), np.zeros(self.count), procs, run_s, run_s)

    def runs(self, share: float, policy: PowerPolicy, options: PowerOptions | None = None) -> list[Run]:
        """Simulate a policy with all seeds."""
        return [self._run(share, policy, options or self.kinds.options, seed) for seed in self.seeds]

    def _run(self, share: float, policy: PowerPolicy, options: PowerOptions, seed: int) -> Run:
        kind, jobs = self.jobs(seed)
        machines = [Machine("cluster", _NODES, idle_w=self.idle_w)]
        budget = constant_budget(self.budget_w(share))
        placed = PlacedJobs(jobs, machines, np.zeros(self.count, np.int64))
        configured = configure(options, kind, placed, budget, policy, self.kinds)
        rules = Rules(learning=configured.learning)
        schedule = simulate(
            configured.planned,
            machines,
            policy=policy_named("easy"),
            site=Site(budget=budget),
            rules=rules.with_measured(configured.power_w) if self.measured else rules,
        )
        if configured.power_w is not None:
            schedule = replace(schedule, jobs=replace(schedule.jobs, power_w=configured.power_w))
        within = power_metrics(schedule, budget).within_budget
        return Run(self.count / float(schedule.end_s.max()) * 3600, 0.0 if within is None else within)

    def bound(self, share: float, seed: int) -> float:
        """Most jobs an hour of any policy and any scheduler: a linear program, with jobs in parts."""
        kind, jobs = self.jobs(seed)
        options, count = self.kinds.options, len(self.kinds.seconds)
        work = np.bincount(kind, weights=jobs.procs * jobs.run_s[:, 0], minlength=count)
        row, option = np.nonzero(np.isfinite(options.slowdown))
        seconds = work[row] * options.slowdown[row, option]
        extra_w = options.power_w[row, option] - self.idle_w
        most = np.array([_NODES, self.budget_w(share) - _NODES * self.idle_w])
        uses = np.column_stack([np.stack([seconds, seconds * extra_w]), -most])
        all_work = np.column_stack([row == np.arange(count)[:, None], np.zeros(count)])
        objective = np.append(np.zeros(len(row)), 1.0)
        least = linprog(objective, A_ub=uses, b_ub=[0, 0], A_eq=all_work, b_eq=np.ones(count))
        return self.count / float(least.x[-1]) * 3600


def _mean(runs: Sequence[Run]) -> float:
    return float(np.mean([run.per_h for run in runs]))


def _gains(runs: Sequence[Run], uniform: Sequence[Run], oracle: Sequence[Run]) -> np.ndarray:
    """Share of the oracle's gain over uniform caps with each seed."""
    per_h = np.array([[run.per_h for run in each] for each in (runs, uniform, oracle)])
    return np.asarray((per_h[0] - per_h[1]) / (per_h[2] - per_h[1]))


if __name__ == "__main__":
    raise SystemExit(main())
