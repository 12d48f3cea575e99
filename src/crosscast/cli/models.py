"""The commands ``models`` and ``train``: a model is a folder of data, with its errors on held-out data."""

from __future__ import annotations

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated, ClassVar

import cyclopts
from cyclopts import Parameter

from crosscast.cli import COMMANDS, options
from crosscast.cli.options import command

train_app = cyclopts.App(name="train", help=COMMANDS["train"][1])


@command("catalogues.models")
class Models:
    """List the models that come with Crosscast and your own, or say all about one.

    Your own are folders in `XDG_DATA_HOME/crosscast/models`, by default `~/.local/share/crosscast/models`.
    """

    name: str | None = None
    """Say what this one, or a model's folder, was trained on, how good it is on unseen applications, its
    licence and citation."""
    _: KW_ONLY
    output: options.Output = options.OUTPUT


@options.options
class TrainedModel:
    """Options of `crosscast train` for all questions."""

    dataset: options.DatasetFolder
    _: KW_ONLY
    out: Path
    """Folder for the model; an existing one is replaced."""
    model: str | None = None
    """Name of the model; the best by default (`crosscast evaluate` compares them)."""
    without: options.Names | None = None
    """Applications to leave out of everything, separated by commas."""


@command("evaluate.train", train_app, "time")
class TrainTime(TrainedModel):
    """Train a model of kernels' times on devices, for `crosscast predict time` (docs/predicting.md)."""

    question: ClassVar[options.Question] = "time"
    _: KW_ONLY
    run: options.RunOptions = options.RUN
    output: options.Output = options.OUTPUT


@command("evaluate.train", train_app, "relative")
class TrainRelative(TrainedModel):
    """Train a model of times on devices relative to each other, for `crosscast predict relative`.

    It predicts from what was counted in one run on one device, or from a profile (docs/relative.md).
    """

    question: ClassVar[options.Question] = "relative"
    _: KW_ONLY
    devices: options.Devices = None
    sources: Annotated[
        options.Names | None, Parameter(help="Devices whose counters are learned from; all by default.")
    ] = None
    run: options.RunOptions = options.RUN
    output: options.Output = options.OUTPUT


@command("evaluate.train", train_app, "configuration")
class TrainConfiguration(TrainedModel):
    """Train a model of time and power at configurations, for `crosscast choose` (docs/choosing.md)."""

    question: ClassVar[options.Question] = "configuration"
    _: KW_ONLY
    samples: str | None = None
    """Configurations at which a new kernel is run first, such as
    `node:cpu_cap_w=120,gpu_cap_w=260;node:cpu_cap_w=65,gpu_cap_w=100`; by default the two most informative
    ones."""
    held_out: options.Names | None = None
    """Applications that are held out in turn to measure the errors, separated by commas; by default all.
    Microbenchmarks, for example, are useful for training, but not what a model has to predict."""
    devices: options.Devices = None
    power_domain: str | None = None
    """Power domain that is capped; by default the node, or the sum of all domains."""
    run: options.RunOptions = options.RUN
    output: options.Output = options.OUTPUT


@command("evaluate.train", train_app, "corun")
class TrainCorun(TrainedModel):
    """Train a model of applications that share a device, for `crosscast predict corun` and `colocate`.

    It predicts slowdowns, times and power of mixes (docs/corun.md).
    """

    question: ClassVar[options.Question] = "corun"
    _: KW_ONLY
    device: options.Device = None
    run: options.RunOptions = options.RUN
    output: options.Output = options.OUTPUT
