"""``crosscast evaluate``: scores of models on data that was held out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import cyclopts
from cyclopts import Parameter

from crosscast.cli.options import (
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
    Output,
    RunOptions,
    Whole,
    check_file,
    data_named,
    dataset_named,
    print_json,
    tell,
    warn,
)
from crosscast.errors import InputError
from crosscast.questions import CoRunFolds, QuestionName, RelativeFolds, TimeFolds

__all__ = ["app"]

app = cyclopts.App(
    name="evaluate",
    help="Evaluate models on held-out data, beside trivial baselines, with bootstrap intervals.",
)

Weights = Literal["rows", "kernels", "applications"]

HeldOut = Parameter(help="What is held out.")
Sources = Annotated[Names | None, Parameter(help="Devices whose counters are used; by default all.")]


@app.command
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
    if probes is not None and folds == "leave-device-out":
        raise InputError(f"--probes: with {folds} all other devices are measured; leave the option out")
    found = _evaluate(dataset, "time", models, folds, run, output, probes=probes or [0], level=level)
    from crosscast.evaluation.launch_times import LaunchEvaluation

    if isinstance(found, LaunchEvaluation):
        from crosscast.report.launch_times import launch_evaluation_report

        output.show(found.to_dict, lambda: launch_evaluation_report(found), dict)
        return
    from crosscast.report.time import evaluation_figures, evaluation_report

    output.show(found.to_dict, lambda: evaluation_report(found), lambda: evaluation_figures(found))


@app.command
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
    """Evaluate models of times on devices relative to each other (docs/relative-evaluation.md).

    Parameters
    ----------
    devices
        Devices to compare, separated by commas; by default those with the most times in common.
    weights
        What has equal weight; by default rows, or kernels where these are held out.
    """
    found = _evaluate(
        dataset,
        "relative",
        models,
        folds,
        run,
        output,
        devices=devices,
        sources=sources,
        weights=weights,
        note=warn,
    )
    show_relative(found, output)


@app.command
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
    """Evaluate methods that choose a configuration under a power cap (docs/choosing-evaluation.md).

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
    found = _evaluate(
        dataset,
        "configuration",
        methods,
        None,
        run,
        output,
        samples=samples,
        groups=_groups(group),
        devices=devices,
        power_domain=power_domain,
        max_retunes=max_retunes,
        cap_probability=cap_probability,
    )
    show_configuration(found, output, programs=programs)


@app.command
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
    """Evaluate models of applications that share a device (docs/corun-evaluation.md).

    Parameters
    ----------
    probes
        How many mixes with the held-out application are measured before the others are predicted, such as
        `0,3`; by default 0.
    """
    found = _evaluate(
        dataset, "corun", models, folds, run, output, device=device, probes=probes or [0], level=level
    )
    show_corun(found, output)


@app.command
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
    output.check()
    from crosscast.cli.running import TaskStatus
    from crosscast.report.tuning import evaluation_figures, evaluation_report
    from crosscast.tuning.evaluation import evaluate_tuning
    from crosscast.tuning.space_files import read_space

    spaces = [read_space(each) for each in space]
    tables = None
    if training is not None:
        from crosscast.prediction.time.training_times import read_training

        tables = read_training(training)
    with TaskStatus("variants") as status:
        found = evaluate_tuning(
            dataset_named(dataset),
            spaces,
            training=tables,
            model=model,
            devices=devices,
            profiles=profiles,
            strategies=strategies or (),
            seed=seed,
            progress=status,
            tell=tell,
        )
    output.show(found.to_dict, lambda: evaluation_report(found), lambda: evaluation_figures(found))


@app.command
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
    """Write held-out work as job types for `crosscast simulate placements` (docs/scheduling-experiment.md).

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
    from crosscast import questions
    from crosscast.cluster.job_types import JobShape, held_out_jobs, write_job_types

    check_file("--out", out)
    if out.suffix != ".parquet":
        raise InputError(f"--out: expected a file name with .parquet, found {out.name!r}")
    shape = JobShape(
        job_procs=job_procs, job_s=job_seconds, gpu_applications=gpu_applications, job_source=job_source
    )
    run.check()
    with run.fitting() as how:
        held_out = questions.held_out_work(
            dataset_named(dataset),
            model,
            folds,
            devices=devices,
            sources=sources,
            check=shape.check,
            note=warn,
            **how,
        )
    types = held_out_jobs(held_out, shape)
    write_job_types(types, out)
    if json:
        print_json({"out": str(out), "types": len(types), "model": held_out.model})
    else:
        tell(f"wrote {out} ({len(types):,} types of jobs, predicted by {held_out.model})")


def _evaluate(
    folder: Path,
    question: QuestionName,
    models: list[str] | None,
    folds: str | None,
    run: RunOptions,
    output: Output,
    **options: Any,
) -> Any:
    from crosscast import questions

    output.check()
    run.check()
    dataset = data_named(folder, question)
    with run.fitting() as how:
        return questions.evaluate(dataset, question, models, folds, **how, **options)


def _groups(text: str | None) -> list[list[str]]:
    """Programs that are held out together: ``a+b,c+d``."""
    groups = [] if text is None else [word.strip().split("+") for word in text.split(",")]
    for group in groups:
        if len(group) < 2 or not all(group):
            raise InputError(
                f"--group: expected groups such as a+b,c+d of programs, found {'+'.join(group)!r}"
            )
    return groups


def show_relative(found: Any, output: FigureOutput) -> None:
    """Print and draw an evaluation of relative times."""
    from crosscast.report.relative import relative_evaluation_report, relative_figures

    output.show(found.to_dict, lambda: relative_evaluation_report(found), lambda: relative_figures(found))


def show_configuration(found: Any, output: FigureOutput, *, programs: bool = False) -> None:
    """Print and draw an evaluation of methods that choose, and write the longest frontiers."""
    from crosscast.report.configuration import evaluation_report
    from crosscast.report.configuration_figures import evaluation_figures, write_frontiers

    output.show(
        found.to_dict,
        lambda: evaluation_report(found, programs=programs),
        lambda: evaluation_figures(found),
    )
    for path in [] if output.figures is None else write_frontiers(found, output.figures):
        tell(f"wrote {path}")


def show_corun(found: Any, output: FigureOutput) -> None:
    """Print and draw an evaluation of co-runs."""
    from crosscast.report.corun_evaluation import corun_evaluation_report
    from crosscast.report.corun_figures import corun_figures

    output.show(found.to_dict, lambda: corun_evaluation_report(found), lambda: corun_figures(found))
