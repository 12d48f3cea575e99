"""``crosscast train``: a model as a folder of data, with what it was trained on and its honest errors."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crosscast.cli.datasets import dataset_named
from crosscast.cli.fits import FitStatus, processors
from crosscast.cli.flag import Flag
from crosscast.cli.option_names import option_names
from crosscast.cli.places import cache_folder, check_place
from crosscast.cli.train_configuration import train_configuration
from crosscast.cli.train_corun import train_corun_model
from crosscast.cli.train_relative import train_relative_model
from crosscast.cli.whole import Whole
from crosscast.cli.words import words_of
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.tables.dataset import Dataset

__all__ = ["train"]

Target = Literal["time", "configuration", "relative", "corun"]


def train(
    folder: Path,
    /,
    *,
    out: Path,
    target: Target = "time",
    model: str | None = None,
    without: str | None = None,
    samples: str | None = None,
    devices: str | None = None,
    sources: str | None = None,
    power_domain: str | None = None,
    seed: Whole = 0,
    jobs: Whole | None = None,
    no_cache: Flag = False,
    json: Flag = False,
) -> None:
    """Train a model, measure it on applications that it has not seen, and keep it.

    A model with the target `time` tells `crosscast predict` how long kernels take on devices, by their
    profiles (docs/predicting.md). One with the target `configuration` tells `crosscast choose` which device,
    clocks, caps or threads are best under a power cap, by two runs of a kernel (docs/choosing.md). One with
    the target `relative` tells `crosscast predict` how long a run takes on each device relative to the
    others, by what was counted in a run on one of them (docs/relative.md). One with the target `corun` tells
    `crosscast corun` how long applications that share a device take, and what power it draws
    (docs/corun.md).

    The model is fitted to the whole dataset. Before, each application is left out in turn, and predicted by
    the model fitted to the others; these errors go on the model's card.

    Parameters
    ----------
    folder
        Folder of the dataset, or `bundled` or `bundled-corun` for those that come with Crosscast.
    out
        Folder of the model; one that is there is replaced.
    target
        What is learned.
    model
        Name of the model; the best by default. `crosscast evaluate` compares them.
    without
        Applications, separated by commas, that are left out of all this, to be predicted later.
    samples
        Of `configuration`: where a new kernel is run first, such as
        `node:cpu_cap_w=120,gpu_cap_w=260;node:cpu_cap_w=65,gpu_cap_w=100`; by default two that tell most.
    devices
        Of `configuration` and `relative`: devices, separated by commas, to choose from or to compare; all by
        default. Of `corun`: the one that the bags share; the one with the most bags by default.
    sources
        Of `relative`: devices, separated by commas, on which counted runs are learned from; all by default.
    power_domain
        Of `configuration`: domain whose power is limited; by default that of the node, or all there are.
    seed
        Start of all random numbers.
    jobs
        Processes that work at the same time; by default one for each processor.
    no_cache
        Use and keep no forecasts of `crosscast evaluate`.
    json
        Print the card.
    """
    # Imported here: `--help` needs no pyarrow.
    from crosscast.predict.artefact import check_folder
    from crosscast.tables.selecting import without_applications

    _check_options(target, samples, devices, sources, power_domain)
    # What cannot be written is refused before the work.
    check_folder(out)
    check_place("--out", out)
    cache = cache_folder(None, no_cache)
    dataset = dataset_named(folder)
    with option_names():
        dataset = without_applications(dataset, words_of("--without", without) if without is not None else [])
    if target == "configuration":
        train_configuration(
            dataset,
            out,
            model=model,
            samples=samples,
            devices=devices,
            power_domain=power_domain,
            seed=seed,
            cache=cache,
            jobs=jobs,
            json=json,
        )
    elif target == "relative":
        train_relative_model(
            dataset,
            out,
            model=model,
            devices=devices,
            sources=sources,
            seed=seed,
            cache=cache,
            jobs=jobs,
            json=json,
        )
    elif target == "corun":
        train_corun_model(
            dataset, out, model=model, devices=devices, seed=seed, cache=cache, jobs=jobs, json=json
        )
    else:
        _train_time(dataset, out, model, seed, cache, jobs, json)


def _check_options(
    target: Target, samples: str | None, devices: str | None, sources: str | None, domain: str | None
) -> None:
    """Refuse options that would be passed over."""
    of_targets = (
        ("--samples", samples, ("configuration",)),
        ("--devices", devices, ("configuration", "relative", "corun")),
        ("--sources", sources, ("relative",)),
        ("--power-domain", domain, ("configuration",)),
    )
    for option, value, targets in of_targets:
        if value is not None and target not in targets:
            listed = " or ".join(filter(None, (", ".join(targets[:-1]), targets[-1])))
            raise InputError(f"{option}: expected with --target {listed}, found --target {target}")


def _train_time(
    dataset: Dataset,
    out: Path,
    model: str | None,
    seed: int,
    cache: Path | None,
    jobs: int | None,
    json: bool,
) -> None:
    from crosscast.evaluation.time_study import train as fit
    from crosscast.predict.time.artefact import save_model
    from crosscast.predict.time.models import DEFAULT_MODEL
    from crosscast.report.training import print_training

    count = len(dataset.records.column("configuration").unique())
    if not dataset.profiles.num_rows and count > 1:
        raise InputError(
            f"--target: expected configuration, as {dataset.label} has runs on {count} configurations and no "
            "profiles, found time"
        )
    with FitStatus() as status, option_names():
        trained = fit(
            dataset,
            DEFAULT_MODEL if model is None else model,
            seed=seed,
            progress=status,
            cache=cache,
            jobs=processors() if jobs is None else jobs,
        )
    save_model(trained.predictor, out, trained.card)
    if json:
        print(json_format.dumps(trained.card.to_dict(), allow_nan=False))
    else:
        print_training(trained.card, out, sys.stdout)
