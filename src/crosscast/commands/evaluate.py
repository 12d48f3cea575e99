"""``crosscast train``, ``evaluate`` and ``reproduce``: models, their scores on held-out data, and studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosscast import api
from crosscast.cli import evaluate as cli
from crosscast.cli.evaluate import TrainConfiguration, TrainCorun, TrainRelative, TrainTime
from crosscast.cluster.job_types import JobShape, held_out_jobs, write_job_types
from crosscast.commands import output
from crosscast.commands.output import check_file, fitting, given, show, tell, warn
from crosscast.data.dataset import Dataset, dataset_named
from crosscast.data.merge import without_applications
from crosscast.data.times import LaunchTables, has_launch_times, read_launch_tables
from crosscast.errors import InputError
from crosscast.evaluation.relative.question import held_out_work
from crosscast.prediction.store import check_folder
from crosscast.report import configuration_evaluation, corun, relative
from crosscast.report.document import Report
from crosscast.report.page import PAGES
from crosscast.studies import (
    bailey2014,
    johnston2018,
    johnston2018_report,
    moolchandani2022,
    moolchandani2022_report,
    nichols2024,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def train(options: TrainTime | TrainRelative | TrainConfiguration | TrainCorun) -> None:
    """Run ``crosscast train``: train a model as the options say, write it, and show its card."""
    check_folder(options.out)
    output.check_writable("--out", options.out)
    left_out = options.without or []
    with fitting(options.run) as keywords:
        data = _data_named(options.dataset, options.question)
        training = (
            without_applications(data, left_out) if isinstance(data, Dataset) else data.without(left_out)
        )
        trained = api.train(training, options.question, **given(options), **_noted(options), **keywords)
    trained.save(options.out)
    card, page = trained.card, PAGES[options.question]
    show(options.output, card.to_dict, lambda: page.training(card, options.out, *trained.notes))


def _data_named(folder: Path, question: str) -> Dataset | LaunchTables:
    """Read the training data of a question: a dataset, or tables of times with their launches."""
    if question == "time" and has_launch_times(folder):
        return read_launch_tables(folder)
    return dataset_named(folder)


def _noted(options: object) -> dict[str, Any]:
    """Argument of `crosscast.train` and `evaluate` that takes what is left out, where there is one."""
    return {"note": warn} if isinstance(options, TrainRelative | cli.EvaluateRelative) else {}


def evaluate(
    options: cli.EvaluateTime | cli.EvaluateRelative | cli.EvaluateConfiguration | cli.EvaluateCorun,
) -> None:
    """Run ``crosscast evaluate``: evaluate models as the options say, and show their scores."""
    if (
        isinstance(options, cli.EvaluateTime)
        and options.folds == "leave-device-out"
        and options.probes is not None
    ):
        raise InputError.of(
            where="--probes",
            problem=f"with {options.folds} all other devices are measured; leave the option out",
        )
    with fitting(options.run) as keywords:
        data = _data_named(options.dataset, options.question)
        evaluation = api.evaluate(data, options.question, **given(options), **_noted(options), **keywords)
    _, report, figures, _ = PAGES[options.question]
    if isinstance(options, cli.EvaluateConfiguration):
        report = partial(configuration_evaluation.evaluation_report, programs=options.output.html is not None)
    show(options.output, evaluation.to_dict, lambda: report(evaluation), lambda: figures(evaluation))


def jobs(options: cli.EvaluateJobs) -> None:
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
    with fitting(options.run) as keywords:
        held_out = held_out_work(
            dataset_named(options.dataset),
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
        output.print_json({"out": str(options.out), "types": len(types), "model": held_out.model})
    else:
        tell(f"wrote {options.out} ({len(types):,} types of jobs, predicted by {held_out.model})")


_Study = tuple[Callable[..., Any], Callable[[Any], Report], "Callable[[Any], Mapping[str, Figure]]"]
_STUDIES: Mapping[str, _Study] = {
    "johnston2018": (
        johnston2018.reproduce,
        johnston2018_report.study_report,
        johnston2018_report.study_figures,
    ),
    "bailey2014": (bailey2014.reproduce, bailey2014.study_report, bailey2014.study_figures),
    "nichols2024": (
        nichols2024.reproduce,
        nichols2024.study_report,
        lambda study: relative.evaluation_figures(study.evaluation),
    ),
    "moolchandani2022": (
        moolchandani2022.reproduce,
        moolchandani2022_report.study_report,
        lambda study: corun.evaluation_figures(study.evaluation),
    ),
}
"""Function, report and figures of each study."""


def reproduce(options: cli.Reproduce) -> None:
    """Run ``crosscast reproduce``."""
    study, keyword, noun = options.study, dict[str, object](), "fits"
    if study == "johnston2018":
        keyword, noun = {"preset": johnston2018.PRESETS[options.preset or "default"]}, "parts"
    elif options.preset is not None:
        raise InputError.of(where="--preset", expected="the study johnston2018", found=study)
    elif study == "nichols2024":
        keyword = {"note": warn}
    make, report, figures = _STUDIES[study]
    with fitting(options.run, noun) as keywords:
        result = make(dataset_named(options.dataset), **keywords, **keyword)
    show(options.output, result.to_dict, lambda: report(result), lambda: figures(result))
