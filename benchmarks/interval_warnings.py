"""How often intervals hold where a forecast warns that it is asked outside of the training, and elsewhere.

``python -m benchmarks.interval_warnings DATASET`` leaves each application out in turn, as ``crosscast
evaluate`` does: of a dataset with mixes the co-runners of these, else kernels' times. The ranges that
warnings go by, too, are those of the other applications.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.table import text_table
from crosscast.arrays import Flags
from crosscast.data.corun import CoRuns, co_runs
from crosscast.data.dataset import dataset_named
from crosscast.evaluation.corun.evaluation import evaluate_corun, measured, of_one_device, with_mixes
from crosscast.prediction.corun.artefact import outside_sentences
from crosscast.prediction.corun.features import Traits
from crosscast.prediction.corun.models import DEFAULT_MODEL as CORUN_MODEL
from crosscast.prediction.corun.models import models_named
from crosscast.prediction.time import Grid
from crosscast.prediction.time.artefact import metric_ranges
from crosscast.prediction.time.datasets import grid_of
from crosscast.prediction.time.models import DEFAULT_MODEL, model_named

_ONCE, _SHORT_S = "launched once, below 1 ms", 1e-3


def main() -> int:
    """Run the benchmark and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset")
    parser.add_argument("--device")
    options = parser.parse_args()
    dataset, kinds = dataset_named(options.dataset), dict[str, Flags]()
    if dataset.mixes.num_rows:
        warned, held = of_mixes(of_one_device(co_runs(dataset), options.device))
    else:
        warned, held, once = of_times(grid_of(dataset))
        kinds |= {_ONCE: once, "launched otherwise": ~once}
    kinds = {"warned of": warned, "not warned of": ~warned, **kinds}
    rows = [
        [name, f"{chosen.sum():,}", f"{chosen.mean():.0%}", f"{held[chosen].mean():.1%}"]
        for name, chosen in kinds.items()
        if chosen.any()
    ]
    print(text_table(["forecasts", "number", "share", "90 % intervals hold"], rows))
    return 0


def of_mixes(runs: CoRuns) -> tuple[Flags, Flags]:
    """Whether each co-runner is in a mix that is warned of, and whether its interval holds."""
    evaluation = evaluate_corun(runs, models_named([CORUN_MODEL]))
    warned = []
    for fold in evaluation.folds:
        known = {
            run.key: run for mix in with_mixes(runs, fold.train).mixes for run in mix.isolated_runs
        }.values()
        ranges = Traits.of([*known]).ranges([*known])
        for mix in with_mixes(runs, fold.test).mixes:
            said = bool(outside_sentences(mix.isolated_runs, ranges))
            warned += [said] * int(np.isfinite(measured([mix], "slowdown")).sum())
    scored = evaluation.results[0].scored
    assert scored is not None
    return np.array(warned), (scored.low <= scored.true) & (scored.true <= scored.high)


def of_times(grid: Grid) -> tuple[Flags, Flags, Flags]:
    """Whether each cell is of a kernel that is warned of, whether its interval holds, and `_ONCE`."""
    groups, parts = grid.profiles.groups("application"), []
    for number in range(len(grid.applications)):
        train, test = grid.take(groups != number), grid.take(groups == number)
        predictor = model_named(DEFAULT_MODEL).fit(train, 0, others=False)
        found = predictor.predict(test.profiles)
        times = np.exp(train.log_time[np.isfinite(train.log_time)])
        out = (found.centre.min(axis=1) < times.min()) | (found.centre.max(axis=1) > times.max())
        for each in metric_ranges(predictor.point, train.profiles):
            values = test.profiles.metric(each.name)
            out |= (values < each.low) | (values > each.high)
        known, true = np.isfinite(test.log_time), np.exp(test.log_time)
        once = (test.profiles.invocations == 1) & (found.centre.mean(axis=1) < _SHORT_S)
        warned, alone = (np.repeat(each[:, None], known.shape[1], axis=1) for each in (out, once))
        parts.append([each[known] for each in (warned, (found.low <= true) & (true <= found.high), alone)])
    warned, held, alone = (np.concatenate(each) for each in zip(*parts, strict=True))
    return warned, held, alone


if __name__ == "__main__":
    raise SystemExit(main())
