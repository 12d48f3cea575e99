"""``crosscast train``, ``evaluate`` and ``reproduce``: models, their scores on held-out data, and studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from crosscast import api
from crosscast.cli import evaluate as cli
from crosscast.cli.evaluate import TrainConfiguration, TrainCorun, TrainRelative, TrainTime
from crosscast.cluster.job_types import JobShape, held_out_jobs, write_job_types
from crosscast.commands import output
from crosscast.commands.files import data_named
from crosscast.commands.output import check_file, fitting, given, show, tell, warn
from crosscast.data.dataset import Dataset, dataset_named
from crosscast.data.merge import without_applications
from crosscast.errors import InputError
from crosscast.evaluation.relative.question import held_out_work
from crosscast.prediction.configuration.bailey2014 import PublishedPredictor
from crosscast.prediction.store import check_folder
from crosscast.prediction.time.datasets import read_training
from crosscast.report import configuration, configuration_evaluation, corun_evaluation, relative, time, tuning
from crosscast.report.corun import corun_training_report
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
from crosscast.tuning.evaluation import evaluate_tuning
from crosscast.tuning.space_files import read_space

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TRAINED: Mapping[str, Callable[..., Report]] = {
    "time": time.training_report,
    "relative": relative.training_report,
    "configuration": configuration.training_report,
    "corun": corun_training_report,
}


def train(options: TrainTime | TrainRelative | TrainConfiguration | TrainCorun) -> None:
    """Run ``crosscast train``: train a model as the options say, write it, and show its card."""
    check_folder(options.out)
    output.check_writable("--out", options.out)
    left_out = options.without or []
    with fitting(options.run) as keywords:
        data = data_named(options.dataset, options.question)
        training = (
            without_applications(data, left_out) if isinstance(data, Dataset) else data.without(left_out)
        )
        trained = api.train(training, options.question, **given(options), **_noted(options), **keywords)
    trained.save(options.out)
    card, predictor = trained.card, getattr(trained, "predictor", None)
    more = []
    if isinstance(predictor, PublishedPredictor):
        more.append((predictor.fitted.clusters.note, predictor.fitted.tree.text()))
    show(options.output, card.to_dict, lambda: _TRAINED[options.question](card, options.out, *more))


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
        raise InputError(
            f"--probes: with {options.folds} all other devices are measured; leave the option out"
        )
    with fitting(options.run) as keywords:
        data = data_named(options.dataset, options.question)
        evaluation = api.evaluate(data, options.question, **given(options), **_noted(options), **keywords)
    _, report, figures = PAGES[options.question]
    if isinstance(options, cli.EvaluateConfiguration):
        report = partial(configuration_evaluation.evaluation_report, programs=options.output.html is not None)
    show(options.output, evaluation.to_dict, lambda: report(evaluation), lambda: figures(evaluation))


def tune(options: cli.EvaluateTune) -> None:
    """Run ``crosscast evaluate tune``."""
    spaces = list(map(read_space, options.space))
    tables = None if options.training is None else read_training(options.training)
    with output.TaskStatus("variants") as status:
        evaluation = evaluate_tuning(
            dataset_named(options.dataset),
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
        lambda: tuning.evaluation_report(evaluation),
        lambda: tuning.evaluation_figures(evaluation),
    )


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
        lambda study: corun_evaluation.evaluation_figures(study.evaluation),
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
