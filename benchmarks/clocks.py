"""Clocks for less energy: a model of microbenchmarks chooses the clocks of programs from two runs of each.

``python -m benchmarks.clocks titanx.csv`` fits the default model to 140 microbenchmarks of Guerreiro et al.
2019 alone, and chooses among 32 pairs of clocks for their 24 programs: the least energy, energy times
time, and power, with any slowdown and with at most so much over the default clocks. Runs are known at the
default clocks and at one other pair, which is the one that predicts times of microbenchmarks best whose kinds
are left out (``--choose-sample`` compares some; it takes ten minutes).
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from benchmarks.table import text_table
from benchmarks.verdict import Verdict
from crosscast.arrays import Reals
from crosscast.data.sources import import_source
from crosscast.data.views import configured
from crosscast.prediction.configuration.choice import NO_CAP, Objective, choice_of, merit
from crosscast.prediction.configuration.data import Surfaces, machines_of
from crosscast.prediction.configuration.models import DEFAULT_MODEL, model_named

_DEFAULT = (975e6, 3505e6)
"""Core and memory clock of the GTX Titan X as its makers set them (Guerreiro et al. 2019)."""

_SECOND = (1088e6, 810e6)
_CANDIDATES = [(core, 810e6) for core in (595e6, 785e6, 975e6, 1088e6, 1164e6)]
_CANDIDATES += [(core, 3505e6) for core in (595e6, 785e6, 1164e6)]
_SHARE, _KEPT = 0.92, 0.95
_OBJECTIVES: tuple[Objective, ...] = ("energy", "edp", "power")


def main() -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--max-slowdown", type=float, default=0.05)
    parser.add_argument("--choose-sample", action="store_true")
    options = parser.parse_args()
    with options.file.open(encoding="utf-8") as lines:
        programs = {row["kernel"] for row in csv.DictReader(lines) if row["suite"] == "realbenchmarks"}
    surfaces = _surfaces(options.file)
    tested = surfaces.rows_of(sorted(programs))
    micro = surfaces.take(~tested)
    if options.choose_sample:
        rows = [[_text(each), f"{_error(micro, each):.4f}"] for each in _CANDIDATES]
        print(text_table(["second sample", "error of ln t"], rows))
        return 0
    default, second = (_number(surfaces, clocks) for clocks in (_DEFAULT, _SECOND))
    model = model_named(DEFAULT_MODEL).fit(micro, (default, second), 0)
    table, verdicts = [], []
    for most in (None, options.max_slowdown):
        for objective in _OBJECTIVES:
            found = []
            for row in np.flatnonzero(tested).tolist():
                time_s, power_w = surfaces.time_s[row], surfaces.power_w[row]
                forecast = model.forecast(surfaces.observed(row, (default, second)))
                chosen = choice_of(
                    forecast,
                    surfaces.space,
                    NO_CAP,
                    objective=objective,
                    max_slowdown=most,
                    baseline=default,
                ).recommended
                assert chosen is not None
                place = surfaces.space.number_of(chosen.configuration)
                cost = 1 / merit(time_s, power_w, objective)
                limit = time_s[default] * (1 + (np.inf if most is None else most) + 1e-9)
                oracle = float(np.where(time_s <= limit, cost, np.inf).min())
                saved = 1 - np.array([cost[place], oracle]) / cost[default]
                found.append([*saved.tolist(), float(time_s[place] <= limit)])
            saved, best, kept = np.mean(found, axis=0).tolist()
            name = f"{objective}, {'any slowdown' if most is None else f'at most {most:.0%} slower'}"
            table.append([name, f"{saved:.1%}", f"{best:.1%}", f"{saved / best:.0%}", f"{kept:.0%}"])
            if objective == "energy":
                title = f"{name}: of what the oracle saves >= {_SHARE:.0%}"
                verdicts.append(Verdict(title, f"{saved / best:.1%}", saved / best >= _SHARE))
                if most is not None:
                    verdicts.append(Verdict(f"limit kept >= {_KEPT:.0%}", f"{kept:.1%}", kept >= _KEPT))
    head = ["objective", "saved", "oracle saves", "share", "limit kept"]
    print(text_table(head, table), end="\n\n")
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


def _surfaces(file: Path) -> Surfaces:
    (machine,) = machines_of(configured(import_source("gpu-dvfs", file)), file.name, ["titanx"])
    return machine


def _number(surfaces: Surfaces, clocks: tuple[float, float]) -> int:
    same = np.isclose(surfaces.space.matrix, clocks).all(axis=1)
    return int(np.flatnonzero(same)[0])


def _text(clocks: tuple[float, float]) -> str:
    return f"{clocks[0] / 1e6:g} and {clocks[1] / 1e6:g} MHz"


def _error(micro: Surfaces, second: tuple[float, float]) -> float:
    """Mean absolute error of logarithms of times of microbenchmarks, a third of their kinds left out."""
    kinds = np.array(["".join(filter(str.isalpha, each.application.split("_")[0])) for each in micro.kernels])
    names = np.unique(kinds)
    part = dict(
        zip(names.tolist(), (np.random.default_rng(0).permutation(len(names)) % 3).tolist(), strict=True)
    )
    folds = np.array([part[kind] for kind in kinds.tolist()])
    samples = _number(micro, _DEFAULT), _number(micro, second)
    errors: list[Reals] = []
    for fold in range(3):
        model = model_named(DEFAULT_MODEL).fit(micro.take(folds != fold), samples, 0)
        for row in np.flatnonzero(folds == fold).tolist():
            found = model.forecast(micro.observed(row, samples)).time.centre
            errors.append(np.abs(np.log(found / micro.time_s[row])))
    return float(np.mean(errors))


if __name__ == "__main__":
    sys.exit(main())
