"""``crosscast predict``: times, relative times and slowdowns where nothing was measured."""

from __future__ import annotations

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from crosscast.cli import COMMANDS, options
from crosscast.cli.options import command

app = cyclopts.App(name="predict", help=COMMANDS["predict"][1])
File = Annotated[Path, Parameter(help="File to predict.")]
More = Annotated[options.Paths, Parameter(help="Further files.")]


@command("predict.time", app)
class PredictTime:
    """Predict how long kernels take on each device, and recommend a device (docs/predicting.md).

    FILE is a launch file (`.toml`, `.sim`), or a program with the launch options of `crosscast characterize`
    (`--global`, `--arg`, `-D`, `--shared`, ...): these launches are characterized now, OpenCL C at `-O3` as
    drivers compile it. Or it has profiles: those that `crosscast characterize` wrote (`.parquet`, `.csv`, or
    `.json` for what `--json` prints), or a source or module that `crosscast embed` has put some into (`.cl`,
    `.spv`); then nothing is compiled or run. Or it is the folder of a dataset, whose recorded times are shown
    beside the predicted ones.

    Several launches of a kernel are taken as invocations in one run; the times are those of one of them.
    """

    file: File
    more: More = ()
    _: KW_ONLY
    model: options.Model = None
    probe: options.Texts = ()
    """Measured time of the kernel on a device, in seconds, such as `gtx1080=0.00123`; may be repeated. The
    predictions for the other devices are conditioned on it."""
    devices: options.Names | None = None
    """Devices, separated by commas: those that the model knows, which are the default, and devices of the
    catalogue (`crosscast devices --catalogue`), on which nothing was measured."""
    device_file: options.Paths = ()
    """Data sheet (TOML) of a further device on which nothing was measured; may be repeated."""
    application: options.Application = None
    level: options.Level = 0.9
    suggest_probes: options.Whole | None = None
    """Also name so many devices whose measured times would tell most of the others."""
    invocations: options.Whole | None = None
    """How often a kernel is launched in a run; by default as often as in FILE."""
    launch: options.OfLaunch = options.LAUNCH
    output: options.Output = options.OUTPUT


app.default(PredictTime)


@command("predict_relative.relative", app)
class PredictRelative:
    """Predict how long a run takes on each device relative to the others (docs/relative.md).

    FILE is what HPCToolkit, Caliper, Linux perf or Nsight Compute counted in a run, or the folder of a
    dataset; for a model of profiles, what `crosscast predict time` takes.
    """

    file: File
    more: More = ()
    _: KW_ONLY
    model: options.Model = None
    relative_to: str | None = None
    """The device that times are relative to; by default the slowest."""
    source: str | None = None
    """The device on which FILE was counted, if it does not say, or on which `--time` was measured; of a
    dataset, the device whose runs are taken."""
    time: float | None = None
    """How long the run took on that device, in seconds, to predict seconds."""
    application: options.Application = None
    level: options.Level = 0.9
    launch: options.OfLaunch = options.LAUNCH
    output: options.Output = options.OUTPUT


@command("mixes.corun", app)
class PredictCorun:
    """Predict a mix: applications that start together on one device (docs/corun.md).

    Says how long the mix takes, how much each co-runner slows down, and what power the device draws, beside
    how long the same work takes one after another.
    """

    profile: Path
    """Profile of an application, written by `crosscast corun profile`."""
    more: options.Paths = ()
    """Profiles of its co-runners; repeat the file of an application that runs twice."""
    _: KW_ONLY
    model: options.Model = None
    probe: options.Texts = ()
    """Measured slowdowns of the co-runners of another mix, such as `bfs/small,fft/tiny=1.3,2.1`; may be
    repeated. Names are application/size, of these profiles or of the training."""
    level: options.Level = 0.9
    suggest_probes: options.Whole | None = None
    """Also name so many pairs of these applications with those of the training whose measured slowdowns would
    tell most."""
    translate: Path | None = None
    """Card of `crosscast corun translate`, with profiles on the device that it is from, to predict times and
    slowdowns on the other. The model may be of either."""
    output: options.Output = options.OUTPUT
