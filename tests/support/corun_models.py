"""A small model of co-running that is kept on disk, and jobs for it."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from crosscast.data.corun import IsolatedRun, write_profile
from crosscast.evaluation.corun.evaluation import out_of_fold_errors
from crosscast.prediction.corun import CoRunPredictor, CoRunResiduals
from crosscast.prediction.corun.artefact import KNOWN, NEW, CoRunCard, FittedCoRun, TrainedCoRunModel
from crosscast.prediction.corun.models import FittedCoRunMean, Mean
from crosscast.prediction.corun.moolchandani2022 import Published
from crosscast.prediction.named_models import load_model
from support.mixes import NAMES, made_co_runs, make_isolated_run

MEMORY = 16 << 20


def kept(
    predictor: CoRunPredictor,
    errors: dict[str, dict[str, CoRunResiduals]],
    folder: Path,
    sizes: tuple[int, ...] = (2,),
    memory_bytes: int | None = MEMORY,
) -> TrainedCoRunModel:
    """A model as `crosscast train` would keep it."""
    training = {"dataset": "made up", "mixes": 21}
    card = CoRunCard("made", 0, "cpu", "{}", sizes, NAMES, memory_bytes, training, {})
    TrainedCoRunModel(card, FittedCoRun(predictor, errors)).save(folder)
    found: TrainedCoRunModel = load_model(folder, "corun")
    return found


def trained(folder: Path, mixes: tuple[int, ...] = (2,)) -> TrainedCoRunModel:
    """A linear model, which tells jobs apart, with its own errors."""
    runs = made_co_runs(mixes=mixes)
    model = Published("linear", others=True)
    errors = {
        KNOWN: out_of_fold_errors(runs, model, "leave-mix-out", 0),
        NEW: out_of_fold_errors(runs, model, "leave-benchmark-out", 0),
    }
    return kept(model.fit(runs, 0), errors, folder, mixes)


def constant(folder: Path, slowdown: float, *, error: float = 0.0, fits: float = 1.0) -> TrainedCoRunModel:
    """A model that says the same of all mixes, and errs to both sides by so much."""
    runs = made_co_runs()
    predictor = Mean().fit(runs)
    means = predictor.means.copy()
    # Times follow from the slowdowns.
    means[:, 0], means[:, 1], means[:, 3] = slowdown, np.nan, fits
    errors = CoRunResiduals(
        np.array([error, error, -error, -error]), np.array([0, 0, 1, 1]), ("a", "b"), np.array([0, 0, 1, 1])
    )
    both = {KNOWN: {"slowdown": errors}, NEW: {"slowdown": errors}}
    return kept(FittedCoRunMean(predictor.sizes, means), both, folder)


def made_jobs(count: int, seed: int = 0) -> list[IsolatedRun]:
    """Jobs of known applications, some of them the same."""
    random = np.random.default_rng(seed)
    return [make_isolated_run(NAMES[place]) for place in random.integers(len(NAMES), size=count)]


def write_jobs(folder: Path) -> list[str]:
    """Profiles of three jobs, of one to three seconds."""
    paths = [folder / f"{place}.json" for place in range(3)]
    for time_s, (path, job) in enumerate(zip(paths, made_jobs(3), strict=True), 1):
        write_profile(replace(job, time_s=float(time_s)), {"device": "cpu", "type": "cpu"}, path)
    return list(map(str, paths))
