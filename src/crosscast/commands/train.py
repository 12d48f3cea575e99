"""``crosscast train``: a model as a folder of data, with its errors on held-out data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crosscast import api
from crosscast.cli.models import (
    TrainConfigurationOptions,
    TrainCorunOptions,
    TrainRelativeOptions,
    TrainTimeOptions,
)
from crosscast.commands.files import data_named
from crosscast.commands.output import check_output, check_place, check_run, fitting, show
from crosscast.commands.status import warn
from crosscast.data.dataset import Dataset, without_applications
from crosscast.prediction.configuration.bailey2014 import PublishedPredictor
from crosscast.prediction.registry import QuestionName
from crosscast.prediction.store import check_folder
from crosscast.report import configuration as configuration_report
from crosscast.report import relative as relative_report
from crosscast.report import time as time_report
from crosscast.report.corun import corun_training_report

TrainOptions = TrainTimeOptions | TrainRelativeOptions | TrainConfigurationOptions | TrainCorunOptions


def time(dataset: Path, /, *, options: TrainTimeOptions) -> None:
    """Run ``crosscast train time``."""
    trained = _train(
        dataset,
        "time",
        options,
    )

    show(options.output, trained.card.to_dict, lambda: time_report.training_report(trained.card, options.out))


def relative(dataset: Path, /, *, options: TrainRelativeOptions) -> None:
    """Run ``crosscast train relative``."""
    trained = _train(
        dataset,
        "relative",
        options,
        devices=options.devices,
        sources=options.sources,
        note=warn,
    )

    show(
        options.output,
        trained.card.to_dict,
        lambda: relative_report.training_report(trained.card, options.out),
    )


def configuration(dataset: Path, /, *, options: TrainConfigurationOptions) -> None:
    """Run ``crosscast train configuration``."""
    trained = _train(
        dataset,
        "configuration",
        options,
        samples=options.samples,
        held_out=options.held_out,
        devices=options.devices,
        power_domain=options.power_domain,
    )

    found, tree = trained.predictor, None
    if isinstance(found, PublishedPredictor):
        tree = (found.fitted.clusters.note, found.fitted.tree.text())
    show(
        options.output,
        trained.card.to_dict,
        lambda: configuration_report.training_report(trained.card, options.out, tree),
    )


def corun(dataset: Path, /, *, options: TrainCorunOptions) -> None:
    """Run ``crosscast train corun``."""
    trained = _train(
        dataset,
        "corun",
        options,
        device=options.device,
    )

    show(options.output, trained.card.to_dict, lambda: corun_training_report(trained.card, options.out))


def _train(
    folder: Path,
    question: QuestionName,
    options: TrainOptions,
    **more: Any,
) -> Any:
    # What cannot be written is refused before the work.
    check_folder(options.out)
    check_place("--out", options.out)
    check_output(options.output)
    check_run(options.run)
    whole = data_named(folder, question)
    left_out = options.without or []
    dataset = without_applications(whole, left_out) if isinstance(whole, Dataset) else whole.without(left_out)
    with fitting(options.run) as how:
        trained = api.train(dataset, question, options.model, **how, **more)
    trained.save(options.out)
    return trained
