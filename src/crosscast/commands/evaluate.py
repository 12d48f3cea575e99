"""``crosscast evaluate`` and ``reproduce``: scores on held-out data, and published studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from crosscast import api
from crosscast.cli.evaluate import (
    EvaluateConfigurationOptions,
    EvaluateCorunOptions,
    EvaluateJobsOptions,
    EvaluateRelativeOptions,
    EvaluateTimeOptions,
    EvaluateTuneOptions,
)
from crosscast.cli.options import FigureOutput, RunOptions
from crosscast.cluster.job_types import JobShape, held_out_jobs, write_job_types
from crosscast.commands.files import data_named
from crosscast.commands.output import (
    TaskStatus,
    check_file,
    check_output,
    check_run,
    fitting,
    given,
    print_json,
    show,
    tell,
    warn,
)
from crosscast.data.dataset import dataset_named
from crosscast.errors import InputError
from crosscast.evaluation.relative.question import held_out_work
from crosscast.prediction.named_models import QuestionName
from crosscast.prediction.time.training_times import read_training
from crosscast.report import configuration_evaluation, configuration_figures, corun_evaluation
from crosscast.report import relative as relative_report
from crosscast.report import tuning as tuning_report
from crosscast.report.document import Report
from crosscast.report.page import REPORTS
from crosscast.studies import (
    bailey2014,
    johnston2018,
    johnston2018_report,
    moolchandani2022,
    moolchandani2022_report,
    nichols2024,
)
from crosscast.tuning.evaluation import evaluate_tuning
from crosscast.tuning.space_files import read_space

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.evaluation.configuration.evaluation import ConfigurationEvaluation


EvaluateOptions = (
    EvaluateTimeOptions | EvaluateRelativeOptions | EvaluateConfigurationOptions | EvaluateCorunOptions
)


def time(dataset: Path, /, *, options: EvaluateTimeOptions) -> None:
    """Run ``crosscast evaluate time``."""
    if options.probes is not None and options.folds == "leave-device-out":
        raise InputError(
            f"--probes: with {options.folds} all other devices are measured; leave the option out"
        )
    _evaluate("time", dataset, options)


def relative(dataset: Path, /, *, options: EvaluateRelativeOptions) -> None:
    """Run ``crosscast evaluate relative``."""
    _evaluate("relative", dataset, options, note=warn)


def configuration(dataset: Path, /, *, options: EvaluateConfigurationOptions) -> None:
    """Run ``crosscast evaluate configuration``."""
    report = partial(configuration_evaluation.evaluation_report, programs=options.output.html is not None)
    evaluation = _evaluate("configuration", dataset, options, report, groups=_groups(options.groups))
    _write_frontiers(evaluation, options.output)


def corun(dataset: Path, /, *, options: EvaluateCorunOptions) -> None:
    """Run ``crosscast evaluate corun``."""
    _evaluate("corun", dataset, options)


def tune(dataset: Path, /, *, options: EvaluateTuneOptions) -> None:
    """Run ``crosscast evaluate tune``."""
    check_output(options.output)
    spaces = list(map(read_space, options.space))
    tables = None if options.training is None else read_training(options.training)
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
            begin=status.begin,
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


def _evaluate(
    question: QuestionName,
    dataset: Path,
    options: EvaluateOptions,
    report: Callable[[Any], Report] | None = None,
    **others: Any,
) -> Any:
    """Evaluate models as the options and other arguments of `crosscast.evaluate` say, and show the scores."""
    check_output(options.output)
    check_run(options.run)
    data = data_named(dataset, question)
    with fitting(options.run) as keywords:
        evaluation = api.evaluate(data, question, **{**given(options), **others}, **keywords)
    tables, figures = REPORTS[question]
    write = report or tables
    show(options.output, evaluation.to_dict, lambda: write(evaluation), lambda: figures(evaluation))
    return evaluation


def _groups(text: str | None) -> list[list[str]]:
    """Parse groups of programs that are held out together: ``a+b,c+d``."""
    groups = [] if text is None else [word.strip().split("+") for word in text.split(",")]
    for group in groups:
        if len(group) < 2 or not all(group):
            raise InputError.of(
                where="--group", expected="groups such as a+b,c+d of programs", found=repr("+".join(group))
            )
    return groups


def _write_frontiers(evaluation: ConfigurationEvaluation, output: FigureOutput) -> None:
    """Write the longest frontiers beside the figures."""
    if output.figures is not None:
        for path in configuration_figures.write_frontiers(evaluation, output.figures):
            tell(f"wrote {path}")


class _Published(NamedTuple):
    reproduce: Callable[..., Any]
    report: Callable[[Any], Report]
    figures: Callable[[Any], Mapping[str, Figure]]


_STUDIES = {
    "johnston2018": _Published(
        johnston2018.reproduce, johnston2018_report.study_report, johnston2018_report.study_figures
    ),
    "bailey2014": _Published(
        bailey2014.reproduce,
        configuration_evaluation.evaluation_report,
        configuration_figures.evaluation_figures,
    ),
    "nichols2024": _Published(
        nichols2024.reproduce,
        nichols2024.study_report,
        lambda study: relative_report.evaluation_figures(study.evaluation),
    ),
    "moolchandani2022": _Published(
        moolchandani2022.reproduce,
        moolchandani2022_report.study_report,
        lambda study: corun_evaluation.evaluation_figures(study.evaluation),
    ),
}


def reproduce(
    study: Literal["johnston2018", "bailey2014", "nichols2024", "moolchandani2022"],
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
    make, report, figures = _STUDIES[study]
    options: dict[str, object] = {"note": warn} if study == "nichols2024" else {}
    if study == "johnston2018":
        options = {"preset": johnston2018.PRESETS[preset or "default"]}
    check_output(output)
    check_run(run)
    data = dataset_named(dataset)
    with fitting(run, "parts" if study == "johnston2018" else "fits") as keywords:
        result = make(data, **keywords, **options)
    show(output, result.to_dict, lambda: report(result), lambda: figures(result))
    if study == "bailey2014":
        _write_frontiers(result, output)
