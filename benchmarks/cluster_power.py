"""Throughput of a cluster under a budget of power: uniform caps, predicted configurations, and an oracle.

``python -m benchmarks.cluster_power DATASET`` takes a dataset of one machine with times and powers in many
configurations (``crosscast dataset import powercap``, say). Each application is held out in turn; its times
and powers are forecast from two sample runs, as in ``crosscast evaluate configuration``. A cluster of nodes
like that machine works off jobs of all kernels, all submitted at once, under 60, 70 and 80 % of the power of
a cluster whose nodes all run jobs as fast as they can; the mean over seeds is printed. A node without a job
draws ``--idle`` watts. What is reserved for a job is the power that it keeps with a probability of
``--sure``, by the forecast. With ``--measured``, what a running job truly draws counts instead, as if it were
measured from its start on.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.table import text_table
from benchmarks.verdict import Verdict
from crosscast.cluster.jobs import Jobs, Machine, policy_named
from crosscast.cluster.power import PowerOptions, configure, power_metrics
from crosscast.cluster.rules import NO_RULES, Rules
from crosscast.cluster.simulate import simulate
from crosscast.cluster.site import POWER_POLICIES, Site, constant_budget
from crosscast.data.dataset import read_dataset
from crosscast.decide.samples import two_samples
from crosscast.evaluation.configuration.question import machine_of
from crosscast.prediction.configuration.data import Surfaces
from crosscast.prediction.configuration.models import DEFAULT_MODEL, model_named

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
    options = parser.parse_args()
    found, times_s = forecast_options(
        machine_of(read_dataset(options.dataset), devices=options.device and [options.device]), options.sure
    )
    rows, verdicts = [], []
    # What all nodes draw that run jobs as fast as they can.
    full_w = _NODES * float(found.power_w[:, 0].mean())
    for share in (0.6, 0.7, 0.8):
        runs = [
            _throughputs(found, times_s, share * full_w, options.idle, options.jobs, seed, options.measured)
            for seed in range(options.seeds)
        ]
        per_h, kept = (
            np.mean([[run[name][at] for name in POWER_POLICIES] for run in runs], axis=0) for at in (0, 1)
        )
        by_name = dict(zip(POWER_POLICIES, per_h.tolist(), strict=True))
        gain = (by_name["model"] - by_name["uniform"]) / (by_name["oracle"] - by_name["uniform"])
        rows.append(
            [
                f"{100 * share:.0f} %",
                *(f"{each:,.0f}" for each in per_h),
                f"{100 * gain:.0f} %",
                f"{100 * kept[2]:.1f} %",
            ]
        )
        title = f"{100 * share:.0f} %: >= {100 * _SHARE_OF_GAIN:g} % of the oracle's gain over uniform caps"
        verdicts.append(Verdict(title, f"{100 * gain:.1f} %", gain >= _SHARE_OF_GAIN))
    heads = [
        "budget",
        *(f"{name}, jobs/h" for name in POWER_POLICIES),
        "of oracle's gain",
        "model: time in budget",
    ]
    print(text_table(heads, rows), end="\n\n")
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


def forecast_options(surfaces: Surfaces, sure: float) -> tuple[PowerOptions, np.ndarray]:
    """Options of all kernels with what is forecast of them, held out, and their times in seconds."""
    model = model_named(DEFAULT_MODEL)
    kinds, times = [], []
    columns: list[list[np.ndarray]] = [[], [], [], [], []]
    cap_w = caps(surfaces)
    for application in surfaces.applications:
        own = surfaces.rows_of([application])
        train = surfaces.take(~own)
        samples = two_samples(train, 0)
        fitted = model.fit(train, samples, 0)
        for row in np.flatnonzero(own & surfaces.known[:, list(samples)].all(axis=1)).tolist():
            forecast = fitted.forecast(surfaces.observed(row, samples))
            known = surfaces.known[row]
            time_s, power_w = (each[row][known] for each in (surfaces.time_s, surfaces.power_w))
            predicted_s, predicted_w = forecast.time.centre[known], forecast.power.quantile(sure)[known]
            order = np.argsort(time_s)
            kinds.append(str(surfaces.kernels[row]))
            times.append(float(time_s.min()))
            cells = (
                power_w,
                time_s / time_s.min(),
                predicted_w,
                predicted_s / np.nanmin(predicted_s),
                cap_w[known],
            )
            for column, each in zip(columns, cells, strict=True):
                column.append(each[order])
    most = max(map(len, columns[0]))
    table = np.full((5, len(kinds), most), np.nan)
    for place, column in enumerate(columns):
        for kind, each in enumerate(column):
            table[place, kind, : len(each)] = each
    return PowerOptions(tuple(kinds), *table), np.array(times)


def caps(surfaces: Surfaces) -> np.ndarray:
    """Sum of the caps of each configuration in which all have the same rank among those of their knob."""
    values = surfaces.space.matrix
    ranks = np.stack([np.searchsorted(np.unique(column), column) for column in values.T])
    return np.where((ranks == ranks[0]).all(axis=0), values.sum(axis=1), np.nan)


def _throughputs(
    options: PowerOptions,
    times_s: np.ndarray,
    budget_w: float,
    idle_w: float,
    count: int,
    seed: int,
    measured: bool,
) -> dict[str, tuple[float, float]]:
    """Jobs an hour, and the share of the time within the budget, by policy."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(len(times_s), size=count)
    procs = 2 ** rng.integers(0, int(np.log2(_WIDEST)) + 1, size=count)
    # Jobs are their kernel again and again, for minutes to hours.
    run_s = np.exp(rng.uniform(np.log(300), np.log(7200), size=count))[:, None]
    jobs = Jobs(np.arange(count), np.zeros(count), procs, run_s, run_s)
    machines = [Machine("cluster", _NODES, idle_w=idle_w)]
    machine = np.zeros(count, np.int64)
    budget = constant_budget(budget_w)
    found: dict[str, tuple[float, float]] = {}
    for name in POWER_POLICIES:
        configured = configure(options, kind, jobs, machines, machine, budget, name)
        schedule = simulate(
            configured.planned,
            machines,
            policy=policy_named("easy"),
            site=Site(budget=budget),
            rules=Rules(measured_w=configured.power_w) if measured else NO_RULES,
        )
        true = replace(schedule, jobs=replace(schedule.jobs, power_w=configured.power_w))
        kept = power_metrics(true, budget).within_budget
        found[name] = count / float(schedule.end_s.max()) * 3600, 0.0 if kept is None else kept
    return found


if __name__ == "__main__":
    raise SystemExit(main())
