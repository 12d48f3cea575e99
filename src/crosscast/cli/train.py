"""``crosscast train``: a model as a folder of data, with its errors on held-out data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cyclopts
from cyclopts import Parameter

from crosscast.cli.options import (
    OUTPUT,
    RUN,
    DatasetFolder,
    Device,
    Devices,
    Names,
    Output,
    RunOptions,
    check_place,
    data_named,
    warn,
)

if TYPE_CHECKING:
    from crosscast.questions import QuestionName

__all__ = ["app"]

app = cyclopts.App(
    name="train",
    help="Train a model, cross-validate it by application, and save it with a card of its errors.",
)

Out = Annotated[Path, Parameter(help="Folder for the model; an existing one is replaced.")]
Model = Annotated[
    str | None, Parameter(help="Name of the model; the best by default (`crosscast evaluate` compares them).")
]
Without = Annotated[
    Names | None, Parameter(help="Applications to leave out of everything, separated by commas.")
]


@app.command
def time(
    dataset: DatasetFolder,
    /,
    *,
    out: Out,
    model: Model = None,
    without: Without = None,
    run: RunOptions = RUN,
    output: Output = OUTPUT,
) -> None:
    """Train a model of kernels' times on devices, for `crosscast predict time` (docs/predicting.md)."""
    trained = _train(dataset, "time", out, model, without, run, output)

    from crosscast.report.time import training_report

    output.show(trained.card.to_dict, lambda: training_report(trained.card, out))


@app.command
def relative(
    dataset: DatasetFolder,
    /,
    *,
    out: Out,
    model: Model = None,
    without: Without = None,
    devices: Devices = None,
    sources: Annotated[
        Names | None, Parameter(help="Devices whose counters are learned from; all by default.")
    ] = None,
    run: RunOptions = RUN,
    output: Output = OUTPUT,
) -> None:
    """Train a model of times on devices relative to each other, for `crosscast predict relative`.

    It predicts from what was counted in one run on one device, or from a profile (docs/relative.md).
    """
    trained = _train(
        dataset, "relative", out, model, without, run, output, devices=devices, sources=sources, note=warn
    )

    from crosscast.report.relative import relative_training_report

    output.show(trained.card.to_dict, lambda: relative_training_report(trained.card, out))


@app.command
def configuration(
    dataset: DatasetFolder,
    /,
    *,
    out: Out,
    model: Model = None,
    without: Without = None,
    samples: str | None = None,
    held_out: Names | None = None,
    devices: Devices = None,
    power_domain: str | None = None,
    run: RunOptions = RUN,
    output: Output = OUTPUT,
) -> None:
    """Train a model of time and power at configurations, for `crosscast choose` (docs/choosing.md).

    Parameters
    ----------
    samples
        Configurations at which a new kernel is run first, such as
        `node:cpu_cap_w=120,gpu_cap_w=260;node:cpu_cap_w=65,gpu_cap_w=100`; by default the two most
        informative ones.
    held_out
        Applications that are held out in turn to measure the errors, separated by commas; by default all.
        Microbenchmarks, say, are to be learned from and are not what a model is asked about.
    power_domain
        Power domain that is capped; by default the node, or the sum of all domains.
    """
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
    from crosscast.prediction.configuration.bailey2014 import PublishedPredictor
    from crosscast.report.configuration import training_report

    found, tree = trained.predictor, None
    if isinstance(found, PublishedPredictor):
        tree = (found.fitted.clusters.note, found.fitted.tree.text())
    output.show(trained.card.to_dict, lambda: training_report(trained.card, out, tree))


@app.command
def corun(
    dataset: DatasetFolder,
    /,
    *,
    out: Out,
    model: Model = None,
    without: Without = None,
    device: Device = None,
    run: RunOptions = RUN,
    output: Output = OUTPUT,
) -> None:
    """Train a model of applications that share a device, for `crosscast predict corun` and `colocate`.

    It predicts slowdowns, times and power of mixes (docs/corun.md).
    """
    trained = _train(dataset, "corun", out, model, without, run, output, device=device)

    from crosscast.report.corun import corun_training_report

    output.show(trained.card.to_dict, lambda: corun_training_report(trained.card, out))


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
    # Imported here: `--help` needs no pyarrow.
    from crosscast import questions
    from crosscast.data.dataset import Dataset, without_applications
    from crosscast.prediction.store import check_folder

    # What cannot be written is refused before the work.
    check_folder(out)
    check_place("--out", out)
    output.check()
    run.check()
    whole = data_named(folder, question)
    left_out = without or []
    dataset = without_applications(whole, left_out) if isinstance(whole, Dataset) else whole.without(left_out)
    with run.fitting() as how:
        trained = questions.train(dataset, question, model, **how, **options)
    trained.save(out)
    return trained
