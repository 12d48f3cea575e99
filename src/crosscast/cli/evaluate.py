"""``crosscast evaluate``: scores of models on data that was held out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import cyclopts
from cyclopts import Parameter

from crosscast import commands
from crosscast.cli.app import COMMANDS
from crosscast.cli.dispatch import runs
from crosscast.commands.options import (
    FIGURES,
    RUN,
    DatasetFolder,
    Device,
    Devices,
    FigureOutput,
    Flag,
    JsonFlag,
    Level,
    Models,
    Names,
    Numbers,
    RunOptions,
    Whole,
)
from crosscast.evaluation.corun.options import CoRunFolds
from crosscast.evaluation.relative.options import RelativeFolds
from crosscast.evaluation.time.options import TimeFolds

__all__ = ["app"]
app = cyclopts.App(name="evaluate", help=COMMANDS["evaluate"][1])
Weights = Literal["rows", "kernels", "applications"]
HeldOut = Parameter(help="What is held out.")
Sources = Annotated[Names | None, Parameter(help="Devices whose counters are used; by default all.")]


@app.command
@runs(lambda: commands.evaluate.time)
def time(
    dataset: DatasetFolder,
    /,
    *,
    folds: Annotated[TimeFolds, HeldOut] = "leave-application-out",
    models: Models = None,
    probes: Numbers | None = None,
    level: Level = 0.9,
    run: RunOptions = RUN,
    output: FigureOutput = FIGURES,
) -> None:
    """Evaluate models of kernels' times on devices (docs/evaluation.md).

    Parameters
    ----------
    probes
        On how many devices a kernel is measured before the others are predicted, such as `0,2`; by default
        0. With `leave-device-out`, each kernel's times on all other devices are known.
    """


@app.command
@runs(lambda: commands.evaluate.relative)
def relative(
    dataset: DatasetFolder,
    /,
    *,
    folds: Annotated[RelativeFolds, HeldOut] = "leave-application-out",
    models: Models = None,
    devices: Devices = None,
    sources: Sources = None,
    weights: Weights | None = None,
    run: RunOptions = RUN,
    output: FigureOutput = FIGURES,
) -> None:
    """Evaluate models of times on devices relative to each other (docs/evaluation.md).

    Parameters
    ----------
    devices
        Devices to compare, separated by commas; by default those with the most times in common.
    weights
        What has equal weight; by default rows, or kernels where these are held out.
    """


@app.command
@runs(lambda: commands.evaluate.configuration)
def configuration(
    dataset: DatasetFolder,
    /,
    *,
    methods: Names | None = None,
    samples: str | None = None,
    group: str | None = None,
    devices: Devices = None,
    power_domain: str | None = None,
    max_retunes: Whole | None = None,
    cap_probability: float | None = None,
    programs: Flag = False,
    run: RunOptions = RUN,
    output: FigureOutput = FIGURES,
) -> None:
    """Evaluate methods that choose a configuration under a power cap (docs/evaluation.md).

    Each benchmark is held out in turn; its configurations are chosen from two sample runs.

    Parameters
    ----------
    methods
        Names, separated by commas, or `all`; by default the main ones.
    samples
        Configurations at which a kernel is run first, such as
        `node:cpu_cap_w=120,gpu_cap_w=260;node:cpu_cap_w=65,gpu_cap_w=100`; by default the two most
        informative ones for the training kernels.
    group
        Programs that are nearly the same, such as `a+b,c+d`, besides those whose names say so.
    power_domain
        Power domain that is capped; by default the node, or the sum of all domains.
    max_retunes
        Maximum number of changes after the first choice; no limit by default.
    cap_probability
        Required probability of staying under the cap, for methods that use one; by default 0.9.
    programs
        Also print a table by program for each method, and the longest frontier.
    """


@app.command
@runs(lambda: commands.evaluate.corun)
def corun(
    dataset: DatasetFolder,
    /,
    *,
    folds: Annotated[CoRunFolds, HeldOut] = "leave-benchmark-out",
    models: Models = None,
    device: Device = None,
    probes: Numbers | None = None,
    level: Level = 0.9,
    run: RunOptions = RUN,
    output: FigureOutput = FIGURES,
) -> None:
    """Evaluate models of applications that share a device (docs/evaluation.md).

    Parameters
    ----------
    probes
        How many mixes with the held-out application are measured before the others are predicted, such as
        `0,3`; by default 0.
    """


@app.command
@runs(lambda: commands.evaluate.tune)
def tune(
    dataset: DatasetFolder,
    /,
    *,
    space: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)],
    training: Path | None = None,
    model: str | None = None,
    devices: Devices = None,
    profiles: Whole = 120,
    strategies: Names | None = None,
    seed: Whole = 0,
    output: FigureOutput = FIGURES,
) -> None:
    """Evaluate which variants of kernels are chosen, where each variant was measured (docs/tuning.md).

    The share of the optimum after each number of measured variants, beside random search, the best variant of
    the other devices, and optimizers of Kernel Tuner.

    Parameters
    ----------
    space
        Space of a kernel with the kernel's file, called as the kernel is in the dataset; may be repeated.
    training
        Folder of tables of times (`python -m benchmarks.training_profiles`): the model is fitted to them
        without the kernel's application and without the device. By default the trained model is asked.
    model
        Folder or name of a model of launch times; by default the one that comes with Crosscast.
    profiles
        How many variants of a kernel are profiled.
    strategies
        Optimizers of Kernel Tuner, separated by commas, such as `genetic_algorithm,simulated_annealing`; by
        default none.
    seed
        Random seed.
    """


@app.command
@runs(lambda: commands.evaluate.jobs)
def jobs(
    dataset: DatasetFolder,
    /,
    *,
    out: Path,
    folds: Annotated[RelativeFolds, HeldOut] = "leave-application-out",
    model: str | None = None,
    devices: Devices = None,
    sources: Sources = None,
    job_seconds: float | None = None,
    job_procs: Annotated[Numbers | None, Parameter(show_default=False)] = None,
    job_source: str | None = None,
    gpu_applications: Names | None = None,
    run: RunOptions = RUN,
    json: JsonFlag = False,
) -> None:
    """Write held-out work as job types for `crosscast simulate placements` (docs/scheduling-results.md).

    Each type has its measured times, and those predicted by a model of relative times fitted without it.

    Parameters
    ----------
    out
        Parquet file of the job types.
    model
        Model of relative times; by default the one that `crosscast train relative` takes.
    devices
        Devices to compare, separated by commas; by default those with the most times in common.
    job_seconds
        Repeat each kernel so often that a job takes this long at the geometric mean over devices; by default
        a job is one invocation.
    job_procs
        Nodes that jobs occupy, such as `1,1,2` for a third of them to be twice as wide; by default those that
        runs were set to, or 1.
    job_source
        Of profiles: device on which a job's time is known, for the placement `completion`.
    gpu_applications
        Applications that users know to run on GPUs, separated by commas; by default all.
    """
