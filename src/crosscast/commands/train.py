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
from crosscast.commands.output import check_output, check_run, check_writable, fitting, given, show, warn
from crosscast.data.dataset import Dataset, without_applications
from crosscast.prediction.configuration.bailey2014 import PublishedPredictor
from crosscast.prediction.named_models import QuestionName
from crosscast.prediction.store import check_folder
from crosscast.report import configuration as configuration_report
from crosscast.report import relative as relative_report
from crosscast.report import time as time_report
from crosscast.report.corun import corun_training_report

TrainOptions = TrainTimeOptions | TrainRelativeOptions | TrainConfigurationOptions | TrainCorunOptions


def time(dataset: Path, /, *, options: TrainTimeOptions) -> None:
    """Run ``crosscast train time``."""
    card = _trained("time", dataset, options).card
    show(options.output, card.to_dict, lambda: time_report.training_report(card, options.out))


def relative(dataset: Path, /, *, options: TrainRelativeOptions) -> None:
    """Run ``crosscast train relative``."""
    card = _trained("relative", dataset, options, note=warn).card
    show(options.output, card.to_dict, lambda: relative_report.training_report(card, options.out))


def configuration(dataset: Path, /, *, options: TrainConfigurationOptions) -> None:
    """Run ``crosscast train configuration``."""
    trained = _trained("configuration", dataset, options)
    card, predictor, tree = trained.card, trained.predictor, None
    if isinstance(predictor, PublishedPredictor):
        tree = (predictor.fitted.clusters.note, predictor.fitted.tree.text())
    show(options.output, card.to_dict, lambda: configuration_report.training_report(card, options.out, tree))


def corun(dataset: Path, /, *, options: TrainCorunOptions) -> None:
    """Run ``crosscast train corun``."""
    card = _trained("corun", dataset, options).card
    show(options.output, card.to_dict, lambda: corun_training_report(card, options.out))


def _trained(question: QuestionName, dataset: Path, options: TrainOptions, **others: Any) -> Any:
    """Train a model as the options and other arguments of `crosscast.train` say, and write it."""
    check_folder(options.out)
    check_writable("--out", options.out)
    check_output(options.output)
    check_run(options.run)
    data, left_out = data_named(dataset, question), options.without or []
    training = without_applications(data, left_out) if isinstance(data, Dataset) else data.without(left_out)
    with fitting(options.run) as keywords:
        trained = api.train(training, question, **given(options), **others, **keywords)
    trained.save(options.out)
    return trained
