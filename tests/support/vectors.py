"""Made-up runs with counters that tell how long they take on three devices, and a model of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from crosscast.data.configuration import Configuration
from crosscast.data.dataset import Dataset
from crosscast.data.sources.runs import ConfiguredRun, dataset_of, device_row, with_separate_sessions
from crosscast.evaluation.relative.question import train_relative
from crosscast.prediction.relative import (
    Observations,
    RelativePredictor,
    Vectors,
    observations_of_profiles,
)
from crosscast.prediction.relative.artefact import TrainedRelativeModel
from crosscast.prediction.relative.models import BASELINES, models_named
from crosscast.prediction.relative.nichols2024 import (
    LogMean,
    PublishedLinear,
    PublishedMean,
    PublishedXGBoost,
)
from crosscast.studies.nichols2024 import RelativeStudy, study_relative
from support.grids import noisy_grid

DEVICES = ("cpu", "fast", "gpu")
COUNTERS = ("PAPI_TOT_INS", "PAPI_BR_INS", "PAPI_LD_INS", "PAPI_L2_LDM")


def made_vectors(
    applications: int = 12, kernels: int = 3, sizes: int = 2, repeats: int = 1, seed: int = 3
) -> Vectors:
    """Runs counted on the CPU and on the fast one, where a GPU is as fast as few branches let it."""
    rng = np.random.default_rng(seed)
    texts: list[tuple[str, str, str, str]] = []
    counters, times = [], []
    for application in range(applications):
        own = rng.normal(0, 0.2)
        for kernel in range(kernels):
            branches = rng.uniform(0.02, 0.4)
            for size in range(sizes):
                instructions = 10 ** rng.uniform(7, 10)
                cpu = 1e-9 * instructions
                for repeat in range(repeats * 2):
                    source = DEVICES[repeat % 2]
                    name = f"app{application:02}"
                    texts.append((name, f"kernel{kernel}", f"size{size}", source))
                    shares = np.array([1, branches, rng.uniform(0.2, 0.3), rng.uniform(0.001, 0.01)])
                    counters.append(instructions * shares)
                    gpu = cpu * np.exp(np.log(0.1) + 6 * branches + own + rng.normal(0, 0.1))
                    times.append([cpu, cpu * np.exp(rng.normal(np.log(0.5), 0.05)), gpu])
    application_, kernel_, size_, source_ = (tuple(each) for each in zip(*texts, strict=True))
    times_s = np.array(times)
    rows = np.arange(len(texts))
    places = np.array([DEVICES.index(source) for source in source_])
    observations = Observations(
        application_,
        kernel_,
        size_,
        size_,
        source_,
        COUNTERS,
        np.array(counters),
        ("cores",),
        np.full((len(texts), 1), 4.0),
        times_s[rows, places],
    )
    return Vectors(observations, DEVICES, times_s)


def made_profile_vectors() -> Vectors:
    """Runs of profiles without a device, whose kernels were launched ever more often."""
    grid = noisy_grid()
    profiles = replace(grid.profiles, invocations=np.arange(1, len(grid.profiles) + 1))
    keys = tuple(device.key for device in grid.devices)
    return Vectors(observations_of_profiles(profiles), keys, np.exp(grid.log_time), grid.devices)


def made_counted_dataset(applications: int = 12, kernels: int = 3) -> Dataset:
    """The same runs as a dataset: counted on the CPU and on the fast one, and timed alone on the GPU."""
    vectors = made_vectors(applications=applications, kernels=kernels)
    seen = vectors.observations
    runs = []
    for row in range(len(vectors)):
        source = seen.source[row]
        counted = dict(zip(seen.names, seen.counters[row].tolist(), strict=True))
        work = (seen.application[row], seen.kernel[row], seen.size[row])
        timed = [(source, counted)] + ([("gpu", {})] if source == "cpu" else [])
        for device, counters in timed:
            time_s = float(vectors.times_s[row, DEVICES.index(device)])
            settings: dict[str, float | str] = {"cores": 4.0, "scale": seen.scale[row]}
            runs.append(
                ConfiguredRun(*work, Configuration(device, settings), time_s, powers=(), counters=counters)
            )
    devices = [device_row(key, "made up", name=f"The {key}", type="gpu") for key in DEVICES]
    return dataset_of("made up", devices, with_separate_sessions(runs), {})


@cache
def trained(model: str = "published-linear") -> TrainedRelativeModel:
    """A model of them, fitted and tested."""
    return train_relative(
        made_vectors(), models_named([model])[0], baselines=models_named(BASELINES), label="made up"
    )


def with_predictor(model: TrainedRelativeModel, predictor: RelativePredictor) -> TrainedRelativeModel:
    """A trained model whose predictor is another."""
    return replace(model, source=replace(model.fitted, model=predictor))


def kept_relative(folder: Path, **changed: Any) -> Path:
    """The model in a folder, with a card that says other things if asked to."""
    found = trained()
    replace(found, card=msgspec.structs.replace(found.card, **changed)).save(folder)
    return folder


@cache
def relative_study() -> RelativeStudy:
    """A study of the published split, with all that there is to study; made once for all tests."""
    models = (PublishedLinear(), PublishedMean(), LogMean())
    boosted = PublishedXGBoost(rounds=5, depth=2)
    vectors = made_vectors(applications=4)
    return study_relative(vectors, models, "published", label="made up [1]", boosted=boosted)


def runs_with(
    *counters: Mapping[str, float],
    sources: Sequence[str] | None = None,
    settings: Sequence[Mapping[str, float]] | None = None,
) -> Observations:
    """A run for each mapping of counters; on ``cpu`` by default."""
    names = tuple(dict.fromkeys(name for each in counters for name in each))
    told = settings or [{} for _ in counters]
    configuration = tuple(dict.fromkeys(name for each in told for name in each))
    texts = tuple(f"app{number}" for number in range(len(counters)))
    return Observations(
        application=texts,
        kernel=texts,
        size=("default",) * len(counters),
        scale=("default",) * len(counters),
        source=tuple(sources or ["cpu"] * len(counters)),
        names=names,
        counters=np.array([[float(each.get(name, np.nan)) for name in names] for each in counters]).reshape(
            len(counters), len(names)
        ),
        configuration=configuration,
        settings=np.array([[each.get(name, np.nan) for name in configuration] for each in told]).reshape(
            len(counters), len(configuration)
        ),
        time_s=np.ones(len(counters)),
    )
