"""``crosscast train``: a model as a folder of data, with its errors on held-out data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crosscast import api
from crosscast.commands.data import data_named
from crosscast.commands.options import (
    Output,
    RunOptions,
    warn,
)
from crosscast.commands.output import check_output, check_place, check_run, fitting, show
from crosscast.data.dataset import Dataset, without_applications
from crosscast.prediction.configuration.bailey2014 import PublishedPredictor
from crosscast.prediction.registry import QuestionName
from crosscast.prediction.store import check_folder
from crosscast.report import configuration as configuration_report
from crosscast.report import relative as relative_report
from crosscast.report import time as time_report
from crosscast.report.corun import corun_training_report


def time(
    dataset: Path,
    /,
    *,
    out: Path,
    model: str | None,
    without: list[str] | None,
    run: RunOptions,
    output: Output,
) -> None:
    """Run ``crosscast train time``."""
    trained = _train(dataset, "time", out, model, without, run, output)

    show(output, trained.card.to_dict, lambda: time_report.training_report(trained.card, out))


def relative(
    dataset: Path,
    /,
    *,
    out: Path,
    model: str | None,
    without: list[str] | None,
    devices: list[str] | None,
    sources: list[str] | None,
    run: RunOptions,
    output: Output,
) -> None:
    """Run ``crosscast train relative``."""
    trained = _train(
        dataset, "relative", out, model, without, run, output, devices=devices, sources=sources, note=warn
    )

    show(output, trained.card.to_dict, lambda: relative_report.training_report(trained.card, out))


def configuration(
    dataset: Path,
    /,
    *,
    out: Path,
    model: str | None,
    without: list[str] | None,
    samples: str | None,
    held_out: list[str] | None,
    devices: list[str] | None,
    power_domain: str | None,
    run: RunOptions,
    output: Output,
) -> None:
    """Run ``crosscast train configuration``."""
    trained = _train(
        dataset,
        "configuration",
        out,
        model,
        without,
        run,
        output,
        samples=samples,
        held_out=held_out,
        devices=devices,
        power_domain=power_domain,
    )

    found, tree = trained.predictor, None
    if isinstance(found, PublishedPredictor):
        tree = (found.fitted.clusters.note, found.fitted.tree.text())
    show(output, trained.card.to_dict, lambda: configuration_report.training_report(trained.card, out, tree))


def corun(
    dataset: Path,
    /,
    *,
    out: Path,
    model: str | None,
    without: list[str] | None,
    device: str | None,
    run: RunOptions,
    output: Output,
) -> None:
    """Run ``crosscast train corun``."""
    trained = _train(dataset, "corun", out, model, without, run, output, device=device)

    show(output, trained.card.to_dict, lambda: corun_training_report(trained.card, out))


def _train(
    folder: Path,
    question: QuestionName,
    out: Path,
    model: str | None,
    without: list[str] | None,
    run: RunOptions,
    output: Output,
    **options: Any,
) -> Any:
    # What cannot be written is refused before the work.
    check_folder(out)
    check_place("--out", out)
    check_output(output)
    check_run(run)
    whole = data_named(folder, question)
    left_out = without or []
    dataset = without_applications(whole, left_out) if isinstance(whole, Dataset) else whole.without(left_out)
    with fitting(run) as how:
        trained = api.train(dataset, question, model, **how, **options)
    trained.save(out)
    return trained
