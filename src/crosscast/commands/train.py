"""``crosscast train``: a model as a folder of data, with its errors on held-out data."""

from __future__ import annotations

from pathlib import Path

from crosscast import api
from crosscast.cli.models import (
    TrainConfigurationOptions,
    TrainCorunOptions,
    TrainRelativeOptions,
    TrainTimeOptions,
)
from crosscast.commands.files import data_named
from crosscast.commands.output import check_output, check_run, check_writable, fitting, show, warn
from crosscast.data.dataset import Dataset, dataset_named, without_applications
from crosscast.prediction.configuration.bailey2014 import PublishedPredictor
from crosscast.prediction.store import check_folder
from crosscast.report import configuration as configuration_report
from crosscast.report import relative as relative_report
from crosscast.report import time as time_report
from crosscast.report.corun import corun_training_report

DatasetOptions = TrainRelativeOptions | TrainConfigurationOptions | TrainCorunOptions
TrainOptions = TrainTimeOptions | DatasetOptions


def time(dataset: Path, /, *, options: TrainTimeOptions) -> None:
    """Run ``crosscast train time``."""
    _check(options)
    data, left_out = data_named(dataset, "time"), options.without or []
    training = without_applications(data, left_out) if isinstance(data, Dataset) else data.without(left_out)
    with fitting(options.run) as keywords:
        trained = api.train(training, "time", options.model, **keywords)
    trained.save(options.out)
    show(options.output, trained.card.to_dict, lambda: time_report.training_report(trained.card, options.out))


def relative(dataset: Path, /, *, options: TrainRelativeOptions) -> None:
    """Run ``crosscast train relative``."""
    training = _training_data(dataset, options)
    with fitting(options.run) as keywords:
        trained = api.train(
            training,
            "relative",
            options.model,
            devices=options.devices,
            sources=options.sources,
            note=warn,
            **keywords,
        )
    trained.save(options.out)
    show(
        options.output,
        trained.card.to_dict,
        lambda: relative_report.training_report(trained.card, options.out),
    )


def configuration(dataset: Path, /, *, options: TrainConfigurationOptions) -> None:
    """Run ``crosscast train configuration``."""
    training = _training_data(dataset, options)
    with fitting(options.run) as keywords:
        trained = api.train(
            training,
            "configuration",
            options.model,
            samples=options.samples,
            held_out=options.held_out,
            devices=options.devices,
            power_domain=options.power_domain,
            **keywords,
        )
    trained.save(options.out)
    predictor, tree = trained.predictor, None
    if isinstance(predictor, PublishedPredictor):
        tree = (predictor.fitted.clusters.note, predictor.fitted.tree.text())
    show(
        options.output,
        trained.card.to_dict,
        lambda: configuration_report.training_report(trained.card, options.out, tree),
    )


def corun(dataset: Path, /, *, options: TrainCorunOptions) -> None:
    """Run ``crosscast train corun``."""
    training = _training_data(dataset, options)
    with fitting(options.run) as keywords:
        trained = api.train(training, "corun", options.model, device=options.device, **keywords)
    trained.save(options.out)
    show(options.output, trained.card.to_dict, lambda: corun_training_report(trained.card, options.out))


def _training_data(folder: Path, options: DatasetOptions) -> Dataset:
    """Check the outputs, and read the dataset without the applications that are left out."""
    _check(options)
    return without_applications(dataset_named(folder), options.without or [])


def _check(options: TrainOptions) -> None:
    """Raise an error before the work unless all outputs can be written."""
    check_folder(options.out)
    check_writable("--out", options.out)
    check_output(options.output)
    check_run(options.run)
