"""Models and their scores: ``train``, ``models``, ``evaluate`` and ``reproduce``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import cyclopts
from cyclopts import Parameter, Token

from crosscast.cli import COMMANDS, options
from crosscast.cli.options import command
from crosscast.errors import InputError
from crosscast.evaluation.corun import CoRunFolds
from crosscast.evaluation.relative import RelativeFolds
from crosscast.evaluation.time import TimeFolds

train_app = cyclopts.App(name="train", help=COMMANDS["train"][1])


@command("catalogues.models")
class Models:
    """List the models that come with Crosscast and your own, or say all about one.

    Your own are folders in `XDG_DATA_HOME/crosscast/models`, by default `~/.local/share/crosscast/models`.
    """

    name: str | None = None
    """Say what this one, or a model's folder, was trained on, how good it is on unseen applications, its
    licence and citation."""
    _: KW_ONLY
    output: options.Output = options.OUTPUT


@options.options
class TrainedModel:
    """Options of `crosscast train` for all questions."""

    dataset: options.DatasetFolder
    _: KW_ONLY
    out: Path
    """Folder for the model; an existing one is replaced."""
    model: str | None = None
    """Name of the model; the best by default (`crosscast evaluate` compares them)."""
    without: options.Names | None = None
    """Applications to leave out of everything, separated by commas."""


@command("evaluate.train", train_app, "time")
class TrainTime(TrainedModel):
    """Train a model of kernels' times on devices, for `crosscast predict time` (docs/predicting.md)."""

    question: ClassVar[options.Question] = "time"
    _: KW_ONLY
    run: options.RunOptions = options.RUN
    output: options.Output = options.OUTPUT


@command("evaluate.train", train_app, "relative")
class TrainRelative(TrainedModel):
    """Train a model of times on devices relative to each other, for `crosscast predict relative`.

    It predicts from what was counted in one run on one device, or from a profile (docs/relative.md).
    """

    question: ClassVar[options.Question] = "relative"
    _: KW_ONLY
    devices: options.Devices = None
    sources: options.Names | None = None
    """Devices whose counters are learned from; all by default."""
    run: options.RunOptions = options.RUN
    output: options.Output = options.OUTPUT


@command("evaluate.train", train_app, "configuration")
class TrainConfiguration(TrainedModel):
    """Train a model of time and power at configurations, for `crosscast choose` (docs/choosing.md)."""

    question: ClassVar[options.Question] = "configuration"
    _: KW_ONLY
    samples: str | None = None
    """Configurations at which a new kernel is run first, such as
    `node:cpu_cap_w=120,gpu_cap_w=260;node:cpu_cap_w=65,gpu_cap_w=100`; by default the two most informative
    ones."""
    held_out: options.Names | None = None
    """Applications that are held out in turn to measure the errors, separated by commas; by default all.
    Microbenchmarks, for example, are useful for training, but not what a model has to predict."""
    devices: options.Devices = None
    power_domain: str | None = None
    """Power domain that is capped; by default the node, or the sum of all domains."""
    run: options.RunOptions = options.RUN
    output: options.Output = options.OUTPUT


@command("evaluate.train", train_app, "corun")
class TrainCorun(TrainedModel):
    """Train a model of applications that share a device, for `crosscast predict corun` and `colocate`.

    It predicts slowdowns, times and power of mixes (docs/corun.md).
    """

    question: ClassVar[options.Question] = "corun"
    _: KW_ONLY
    device: options.Device = None
    run: options.RunOptions = options.RUN
    output: options.Output = options.OUTPUT


evaluate_app = cyclopts.App(name="evaluate", help=COMMANDS["evaluate"][1])
Weights = Literal["rows", "kernels", "applications"]


def _groups(_: object, tokens: Sequence[Token]) -> list[list[str]]:
    """Parse groups of programs that are held out together: ``a+b,c+d``."""
    groups = [word.strip().split("+") for word in tokens[0].value.split(",")]
    for group in groups:
        if len(group) < 2 or not all(group):
            raise InputError.of(
                where="--group", expected="groups such as a+b,c+d of programs", found=repr("+".join(group))
            )
    return groups


Groups = Annotated[
    Sequence[Sequence[str]],
    Parameter(converter=_groups, n_tokens=1, negative="", accepts_keys=False, metavar="STR"),
]
HeldOut = Parameter(help="Groups to hold out.")
Sources = Annotated[options.Names | None, Parameter(help="Devices whose counters are used; by default all.")]


@command("evaluate.evaluate", evaluate_app, "time")
class EvaluateTime:
    """Evaluate models of kernels' times on devices (docs/evaluation.md)."""

    question: ClassVar[options.Question] = "time"
    dataset: options.DatasetFolder
    _: KW_ONLY
    folds: Annotated[TimeFolds, HeldOut] = "leave-application-out"
    models: options.Models = None
    probes: options.Numbers | None = None
    """On how many devices a kernel is measured before the others are predicted, such as `0,2`; by default 0.
    With `leave-device-out`, each kernel's times on all other devices are known."""
    run: options.RunOptions = options.RUN
    output: options.FigureOutput = options.FIGURES


@command("evaluate.evaluate", evaluate_app, "relative")
class EvaluateRelative:
    """Evaluate models of times on devices relative to each other (docs/evaluation.md)."""

    question: ClassVar[options.Question] = "relative"
    dataset: options.DatasetFolder
    _: KW_ONLY
    folds: Annotated[RelativeFolds, HeldOut] = "leave-application-out"
    models: options.Models = None
    devices: options.Devices = None
    """Devices to compare, separated by commas; by default those with the most times in common."""
    sources: Sources = None
    weights: Weights | None = None
    """Units with equal weight; by default rows, or kernels where these are held out."""
    run: options.RunOptions = options.RUN
    output: options.FigureOutput = options.FIGURES


@command("evaluate.evaluate", evaluate_app, "configuration")
class EvaluateConfiguration:
    """Evaluate methods that choose a configuration under a power cap (docs/evaluation.md).

    Each benchmark is held out in turn; its configurations are chosen from two sample runs. With `--html`,
    there is also a table by program for each method.
    """

    question: ClassVar[options.Question] = "configuration"
    dataset: options.DatasetFolder
    _: KW_ONLY
    models: Annotated[options.Names | None, Parameter(name="--methods")] = None
    """Names, separated by commas, or `all`; by default the main ones."""
    samples: str | None = None
    """Configurations at which a kernel is run first, such as
    `node:cpu_cap_w=120,gpu_cap_w=260;node:cpu_cap_w=65,gpu_cap_w=100`; by default the two most informative
    ones for the training kernels."""
    groups: Annotated[Groups | None, Parameter(name="--group")] = None
    """Programs that are nearly the same, such as `a+b,c+d`, besides those whose names say so."""
    devices: options.Devices = None
    power_domain: str | None = None
    """Power domain that is capped; by default the node, or the sum of all domains."""
    max_retunes: options.Whole | None = None
    """Maximum number of changes after the first choice; no limit by default."""
    cap_probability: float | None = None
    """Required probability of staying under the cap, for methods that use one; by default 0.9."""
    run: options.RunOptions = options.RUN
    output: options.FigureOutput = options.FIGURES


@command("evaluate.evaluate", evaluate_app, "corun")
class EvaluateCorun:
    """Evaluate models of applications that share a device (docs/evaluation.md)."""

    question: ClassVar[options.Question] = "corun"
    dataset: options.DatasetFolder
    _: KW_ONLY
    folds: Annotated[CoRunFolds, HeldOut] = "leave-benchmark-out"
    models: options.Models = None
    device: options.Device = None
    probes: options.Numbers | None = None
    """How many mixes with the held-out application are measured before the others are predicted, such as
    `0,3`; by default 0."""
    run: options.RunOptions = options.RUN
    output: options.FigureOutput = options.FIGURES


@command("tune.evaluate", evaluate_app, "tune")
class EvaluateTune:
    """Evaluate which variants of kernels are chosen, where each variant was measured (docs/tuning.md).

    The share of the optimum after each number of measured variants, beside random search, the best variant of
    the other devices, and optimizers of Kernel Tuner.
    """

    dataset: options.DatasetFolder
    _: KW_ONLY
    space: options.Paths
    """Space of a kernel with the kernel's file, called as the kernel is in the dataset; may be repeated."""
    training: Path | None = None
    """Folder of tables of times (`python -m benchmarks.training_profiles`): the model is fitted to them
    without the kernel's application and without the device. By default the trained model is used."""
    model: str | None = None
    """Folder or name of a model of launch times; by default the one that comes with Crosscast."""
    devices: options.Devices = None
    profiles: options.Whole = 120
    """How many variants of a kernel are profiled."""
    strategies: options.Names | None = None
    """Optimizers of Kernel Tuner, separated by commas, such as `genetic_algorithm,simulated_annealing`; by
    default none."""
    output: options.FigureOutput = options.FIGURES


@command("evaluate.jobs", evaluate_app)
class EvaluateJobs:
    """Write held-out work as job types for `crosscast simulate placements` (docs/scheduling-results.md).

    Each type has its measured times, and those predicted by a model of relative times fitted without it.
    """

    dataset: options.DatasetFolder
    _: KW_ONLY
    out: Path
    """Parquet file of the job types."""
    folds: Annotated[RelativeFolds, HeldOut] = "leave-application-out"
    model: str | None = None
    """Model of relative times; by default the one that `crosscast train relative` takes."""
    devices: options.Devices = None
    """Devices to compare, separated by commas; by default those with the most times in common."""
    sources: Sources = None
    job_s: Annotated[float | None, Parameter(name="--job-seconds")] = None
    """Repeat each kernel so often that a job takes this long at the geometric mean over devices; by default a
    job is one invocation."""
    job_procs: Annotated[options.Numbers | None, Parameter(show_default=False)] = None
    """Nodes that jobs occupy, such as `1,1,2` for a third of them to be twice as wide; by default those that
    runs were set to, or 1."""
    job_source: str | None = None
    """Of profiles: device on which a job's time is known, for the placement `completion` and predicted
    estimates."""
    gpu_applications: options.Names | None = None
    """Applications that users know to run on GPUs, separated by commas; by default all."""
    run: options.RunOptions = options.RUN
    json: options.JsonFlag = False


@command("evaluate.reproduce")
class Reproduce:
    """Reproduce the tables and figures of a published study, beside our models where they apply.

    - `johnston2018`: times by the random forest of Johnston, Falzon and Milthorpe, beside the same quantities
      in real time and on held-out applications (docs/results.md)
    - `bailey2014`: configurations under power caps, by the model and policies of Bailey et al.; its clusters
      and tree of all programs, and its methods with each benchmark held out: the model, the model with
      frequency limiting, limiters of single knobs, and the oracle (docs/choosing-results.md)
    - `nichols2024`: relative performance by the models and the random split of Nichols et al., beside our own
      model, studies by source, scale and application, importances of features and their selection
      (docs/relative-results.md)
    - `moolchandani2022`: co-runs by the models of Moolchandani et al., beside our own; clusters of mixes,
      combinations of features, decision paths, sizes of mixes, and translation to other devices
      (docs/corun-results.md)
    """

    study: Literal["johnston2018", "bailey2014", "nichols2024", "moolchandani2022"]
    """The study."""
    dataset: options.DatasetFolder
    _: KW_ONLY
    preset: Literal["quick", "default", "paper"] | None = None
    """Of `johnston2018`, how many trees and samples: `quick` takes a minute, `paper` as many as the paper,
    which takes hours."""
    run: options.RunOptions = options.RUN
    output: options.FigureOutput = options.FIGURES
