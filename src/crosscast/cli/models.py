"""The commands ``models`` and ``train``: a model is a folder of data, with its errors on held-out data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from crosscast.cli import COMMANDS
from crosscast.cli.options import (
    OUTPUT,
    RUN,
    DatasetFolder,
    Device,
    Devices,
    Names,
    Output,
    RunOptions,
    options,
    runs,
)


@runs("catalogues")
def models(name: str | None = None, /, *, output: Output = OUTPUT) -> None:
    """List the models that come with Crosscast and your own, or say all about one.

    Your own are folders in `XDG_DATA_HOME/crosscast/models`, by default `~/.local/share/crosscast/models`.

    Parameters
    ----------
    name
        Say what this one, or a model's folder, was trained on, how good it is on unseen applications, its
        licence and citation.
    """


train_app = cyclopts.App(name="train", help=COMMANDS["train"][1])


@options
class TrainedModelOptions:
    """Options of `crosscast train` for all questions."""

    out: Path
    """Folder for the model; an existing one is replaced."""
    model: str | None = None
    """Name of the model; the best by default (`crosscast evaluate` compares them)."""
    without: Names | None = None
    """Applications to leave out of everything, separated by commas."""


@options
class TrainTimeOptions(TrainedModelOptions):
    """Options of `crosscast train time`."""

    run: RunOptions = RUN
    output: Output = OUTPUT


@train_app.command
@runs("train")
def time(dataset: DatasetFolder, /, *, options: TrainTimeOptions) -> None:
    """Train a model of kernels' times on devices, for `crosscast predict time` (docs/predicting.md)."""


@options
class TrainRelativeOptions(TrainedModelOptions):
    """Options of `crosscast train relative`."""

    devices: Devices = None
    sources: Annotated[
        Names | None, Parameter(help="Devices whose counters are learned from; all by default.")
    ] = None
    run: RunOptions = RUN
    output: Output = OUTPUT


@train_app.command
@runs("train")
def relative(dataset: DatasetFolder, /, *, options: TrainRelativeOptions) -> None:
    """Train a model of times on devices relative to each other, for `crosscast predict relative`.

    It predicts from what was counted in one run on one device, or from a profile (docs/relative.md).
    """


@options
class TrainConfigurationOptions(TrainedModelOptions):
    """Options of `crosscast train configuration`."""

    samples: str | None = None
    """Configurations at which a new kernel is run first, such as
    `node:cpu_cap_w=120,gpu_cap_w=260;node:cpu_cap_w=65,gpu_cap_w=100`; by default the two most informative
    ones."""
    held_out: Names | None = None
    """Applications that are held out in turn to measure the errors, separated by commas; by default all.
    Microbenchmarks, for example, are useful for training, but not what a model has to predict."""
    devices: Devices = None
    power_domain: str | None = None
    """Power domain that is capped; by default the node, or the sum of all domains."""
    run: RunOptions = RUN
    output: Output = OUTPUT


@train_app.command
@runs("train")
def configuration(dataset: DatasetFolder, /, *, options: TrainConfigurationOptions) -> None:
    """Train a model of time and power at configurations, for `crosscast choose` (docs/choosing.md)."""


@options
class TrainCorunOptions(TrainedModelOptions):
    """Options of `crosscast train corun`."""

    device: Device = None
    run: RunOptions = RUN
    output: Output = OUTPUT


@train_app.command
@runs("train")
def corun(dataset: DatasetFolder, /, *, options: TrainCorunOptions) -> None:
    """Train a model of applications that share a device, for `crosscast predict corun` and `colocate`.

    It predicts slowdowns, times and power of mixes (docs/corun.md).
    """
