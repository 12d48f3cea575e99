"""``crosscast evaluate`` and ``reproduce``: scores on held-out data, and published studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from crosscast import api
from crosscast.cli.evaluate import (
    EvaluateConfigurationOptions,
    EvaluateCorunOptions,
    EvaluateJobsOptions,
    EvaluateRelativeOptions,
    EvaluateTimeOptions,
    EvaluateTuneOptions,
)
from crosscast.cli.options import FigureOutput, Output, RunOptions
from crosscast.cluster.job_types import JobShape, held_out_jobs, write_job_types
from crosscast.commands.files import data_named
from crosscast.commands.output import (
    TaskStatus,
    check_file,
    check_output,
    check_run,
    fitting,
    print_json,
    show,
    tell,
    warn,
)
from crosscast.data.dataset import dataset_named
from crosscast.errors import InputError
from crosscast.evaluation.relative.question import held_out_work
from crosscast.prediction.time.training_times import read_training
from crosscast.report import configuration_evaluation, configuration_figures, corun_evaluation
from crosscast.report import relative as relative_report
from crosscast.report import time as time_report
from crosscast.report import tuning as tuning_report
from crosscast.studies import (
    bailey2014,
    cummins2017,
    cummins2017_report,
    johnston2018,
    johnston2018_report,
    moolchandani2022,
    moolchandani2022_figures,
    moolchandani2022_report,
    nichols2024,
)
from crosscast.tuning.evaluation import evaluate_tuning
from crosscast.tuning.space_files import read_space

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.evaluation.configuration.evaluation import ConfigurationEvaluation


StudyT = TypeVar("StudyT")

EvaluateOptions = (
    EvaluateTimeOptions | EvaluateRelativeOptions | EvaluateConfigurationOptions | EvaluateCorunOptions
)


def time(dataset: Path, /, *, options: EvaluateTimeOptions) -> None:
    """Run ``crosscast evaluate time``."""
    if options.probes is not None and options.folds == "leave-device-out":
        raise InputError(
            f"--probes: with {options.folds} all other devices are measured; leave the option out"
        )
    _check(options)
    data = data_named(dataset, "time")
    with fitting(options.run) as keywords:
        evaluation = api.evaluate(
            data, "time", options.models, options.folds, probes=options.probes or [0], **keywords
        )

    show(
        options.output,
        evaluation.to_dict,
        lambda: time_report.evaluation_report(evaluation),
        lambda: time_report.evaluation_figures(evaluation),
    )


def relative(dataset: Path, /, *, options: EvaluateRelativeOptions) -> None:
    """Run ``crosscast evaluate relative``."""
    _check(options)
    data = dataset_named(dataset)
    with fitting(options.run) as keywords:
        evaluation = api.evaluate(
            data,
            "relative",
            options.models,
            options.folds,
            devices=options.devices,
            sources=options.sources,
            weights=options.weights,
            note=warn,
            **keywords,
        )
    show(
        options.output,
        evaluation.to_dict,
        lambda: relative_report.evaluation_report(evaluation),
        lambda: relative_report.evaluation_figures(evaluation),
    )


def configuration(dataset: Path, /, *, options: EvaluateConfigurationOptions) -> None:
    """Run ``crosscast evaluate configuration``."""
    _check(options)
    data = dataset_named(dataset)
    with fitting(options.run) as keywords:
        evaluation = api.evaluate(
            data,
            "configuration",
            options.methods,
            samples=options.samples,
            groups=_groups(options.groups),
            devices=options.devices,
            power_domain=options.power_domain,
            max_retunes=options.max_retunes,
            cap_probability=options.confidence,
            **keywords,
        )
    show_configuration(evaluation, options.output, programs=options.output.html is not None)


def corun(dataset: Path, /, *, options: EvaluateCorunOptions) -> None:
    """Run ``crosscast evaluate corun``."""
    _check(options)
    data = dataset_named(dataset)
    with fitting(options.run) as keywords:
        evaluation = api.evaluate(
            data,
            "corun",
            options.models,
            options.folds,
            device=options.device,
            probes=options.probes or [0],
            **keywords,
        )
    show(
        options.output,
        evaluation.to_dict,
        lambda: corun_evaluation.evaluation_report(evaluation),
        lambda: corun_evaluation.evaluation_figures(evaluation),
    )


def tune(dataset: Path, /, *, options: EvaluateTuneOptions) -> None:
    """Run ``crosscast evaluate tune``."""
    check_output(options.output)

    spaces = list(map(read_space, options.space))
    tables = None
    if options.training is not None:
        tables = read_training(options.training)
    with TaskStatus("variants") as status:
        evaluation = evaluate_tuning(
            dataset_named(dataset),
            spaces,
            training=tables,
            model=options.model,
            devices=options.devices,
            profiles=options.profiles,
            strategies=options.strategies or (),
            progress=status,
            tell=tell,
        )
    show(
        options.output,
        evaluation.to_dict,
        lambda: tuning_report.evaluation_report(evaluation),
        lambda: tuning_report.evaluation_figures(evaluation),
    )


def jobs(dataset: Path, /, *, options: EvaluateJobsOptions) -> None:
    """Run ``crosscast evaluate jobs``."""
    check_file("--out", options.out)
    if options.out.suffix != ".parquet":
        raise InputError.of(where="--out", expected="a file name with .parquet", found=repr(options.out.name))
    shape = JobShape(
        job_procs=options.job_procs,
        job_s=options.job_s,
        gpu_applications=options.gpu_applications,
        job_source=options.job_source,
    )
    check_run(options.run)
    with fitting(options.run) as keywords:
        held_out = held_out_work(
            dataset_named(dataset),
            options.model,
            options.folds,
            devices=options.devices,
            sources=options.sources,
            check=shape.check,
            note=warn,
            **keywords,
        )
    types = held_out_jobs(held_out, shape)
    write_job_types(types, options.out)
    if options.json:
        print_json({"out": str(options.out), "types": len(types), "model": held_out.model})
    else:
        tell(f"wrote {options.out} ({len(types):,} types of jobs, predicted by {held_out.model})")


def _check(options: EvaluateOptions) -> None:
    check_output(options.output)
    check_run(options.run)


def _groups(text: str | None) -> list[list[str]]:
    """Parse groups of programs that are held out together: ``a+b,c+d``."""
    groups = [] if text is None else [word.strip().split("+") for word in text.split(",")]
    for group in groups:
        if len(group) < 2 or not all(group):
            raise InputError.of(
                where="--group", expected="groups such as a+b,c+d of programs", found=repr("+".join(group))
            )
    return groups


def show_configuration(
    evaluation: ConfigurationEvaluation,
    output: FigureOutput,
    draw: Callable[
        [ConfigurationEvaluation], Mapping[str, Figure]
    ] = configuration_figures.evaluation_figures,
    *,
    programs: bool = False,
) -> None:
    """Print and draw an evaluation of methods that choose configurations, and write the longest frontiers."""
    show(
        output,
        evaluation.to_dict,
        lambda: configuration_evaluation.evaluation_report(evaluation, programs=programs),
        lambda: draw(evaluation),
    )
    for path in (
        [] if output.figures is None else configuration_figures.write_frontiers(evaluation, output.figures)
    ):
        tell(f"wrote {path}")


def reproduce(
    study: Literal["johnston2018", "bailey2014", "cummins2017", "nichols2024", "moolchandani2022"],
    dataset: Path,
    /,
    *,
    preset: Literal["quick", "default", "paper"] | None,
    run: RunOptions,
    output: FigureOutput,
) -> None:
    """Run ``crosscast reproduce``."""
    if preset is not None and study != "johnston2018":
        raise InputError.of(where="--preset", expected="the study johnston2018", found=study)
    match study:
        case "johnston2018":
            forest = _reproduced(
                johnston2018.reproduce,
                dataset,
                run,
                output,
                "parts",
                preset=johnston2018.PRESETS[preset or "default"],
            )
            show(
                output,
                forest.to_dict,
                lambda: johnston2018_report.study_report(forest),
                lambda: johnston2018_report.study_figures(forest),
            )
        case "bailey2014":
            capped = _reproduced(bailey2014.reproduce, dataset, run, output)
            show_configuration(capped, output, bailey2014.study_figures)
        case "cummins2017":
            if output.figures is not None:
                raise InputError.of(where="--figures", expected="a study with figures", found=study)
            mapped = _reproduced(cummins2017.reproduce, dataset, run, output)
            show(output, mapped.to_dict, lambda: cummins2017_report.study_report(mapped))
        case "nichols2024":
            vectors = _reproduced(nichols2024.reproduce, dataset, run, output, note=warn)
            show(
                output,
                vectors.to_dict,
                lambda: nichols2024.study_report(vectors),
                lambda: nichols2024.study_figures(vectors),
            )
        case "moolchandani2022":
            mixes = _reproduced(moolchandani2022.reproduce, dataset, run, output)
            show(
                output,
                mixes.to_dict,
                lambda: moolchandani2022_report.study_report(mixes),
                lambda: moolchandani2022_figures.study_figures(mixes),
            )


def _reproduced(
    study: Callable[..., StudyT],
    folder: Path,
    run: RunOptions,
    output: Output,
    noun: str = "fits",
    **options: object,
) -> StudyT:
    check_output(output)
    check_run(run)
    dataset = dataset_named(folder)
    with fitting(run, noun) as keywords:
        return study(dataset, **keywords, **options)
