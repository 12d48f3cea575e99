"""The commands that predict and decide: ``predict``, ``choose``, ``colocate`` and ``tune``."""

from __future__ import annotations

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from crosscast.cli import COMMANDS, options
from crosscast.cli.options import command
from crosscast.data.configuration import Objective

predict_app = cyclopts.App(name="predict", help=COMMANDS["predict"][1])
File = Annotated[Path, Parameter(help="File to predict.")]
More = Annotated[options.Paths, Parameter(help="Further files.")]


@command("predict.time", predict_app)
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


predict_app.default(PredictTime)


@command("predict_relative.relative", predict_app)
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


@command("mixes.corun", predict_app)
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


choose_app = cyclopts.App(name="choose", help=COMMANDS["choose"][1])


@command("choose.sample", choose_app)
class ChooseSample:
    """List the configurations at which a new kernel must be run, and what to record (docs/choosing.md)."""

    _: KW_ONLY
    model: options.Model = None
    template: Path | None = None
    """Write a CSV file to fill in with the runs."""
    output: options.Output = options.OUTPUT


@command("choose.configuration", choose_app)
class ChooseConfiguration:
    """Choose the best configuration under a power cap (docs/choosing.md).

    Predicts time and power at the configurations that were not run, and takes the best one under the cap.
    """

    samples: Path
    """Runs of the kernel: CSV with a row for each, or a history of `crosscast.profiled`."""
    _: KW_ONLY
    model: options.Model = None
    power_cap: str | None = None
    """Power cap (W); several, separated by commas, for a choice under each; may be left out where the
    objective is not `performance`."""
    objective: Objective = "performance"
    """Quantity to optimize: `performance`, `energy`, `edp` (energy times time), or `power`."""
    max_slowdown: str | None = None
    """How much slower than the first sample configuration it may be, such as `5%`."""
    confidence: Annotated[float | None, Parameter(name="--cap-probability")] = None
    """Required probability of staying under the cap, such as 0.9; by default the best performance on average,
    where over the cap it counts as none, of configurations that are more likely under it than not."""
    level: options.Level = 0.9
    kernel: str | None = None
    """Choose for this kernel alone, where the file has several."""
    plot: Path | None = None
    """Figure (`.png`, `.svg`, `.pdf`) of all configurations, the predicted frontier and the choices."""
    output: options.Output = options.OUTPUT


@command("mixes.colocate")
class ColocateJobs:
    """Recommend which jobs to co-locate on a device, for the least total time (docs/corun.md).

    Lists the jobs to run together, the predicted gain with its interval, and the jobs that must run alone.
    """

    jobs: Annotated[Path, Parameter(name="PROFILE")]
    """Profile of a job, written by `crosscast corun profile`."""
    more: options.Paths = ()
    """Profiles of further jobs; repeat the file of a job that runs twice."""
    _: KW_ONLY
    model: options.Model = None
    probe: options.Texts = ()
    """Measured slowdowns of the co-runners of a mix, such as `bfs/small,fft/tiny=1.3,2.1`; may be repeated.
    Names are application/size, of these profiles or of the training."""
    max_slowdown: float | None = None
    """Largest predicted slowdown of a job, such as 1.3; no limit by default."""
    conservative: options.Flag = False
    """Apply `--max-slowdown` to the upper end of each slowdown's interval."""
    memory: options.Bytes | None = None
    """Memory of the device, such as `16GiB`; by default that of the device that the model was trained on, if
    it is known."""
    lengths: str | None = None
    """Run time of each job in isolation, in seconds, separated by commas, in the order of the files; by
    default the times in the profiles."""
    group_size: options.Whole = 2
    """Maximum number of jobs in a group, 2 to 5. Pairs are optimal; larger groups are found by a search."""
    level: options.Level = 0.9
    suggest_probes: options.Whole | None = None
    """Also name so many pairs of these jobs whose measured slowdowns would tell most of the others."""
    output: options.Output = options.OUTPUT


@command("tune.tune")
class Tune:
    """Rank the variants of a kernel by forecast time on devices, or measure the most promising here.

    Some variants are profiled, which needs no device; the counts of the others follow from theirs. With
    `--measure`, the most promising run on a device of this machine, and each teaches what to run next; an
    interrupted command goes on where it was (docs/tuning.md).
    """

    file: Path
    """The kernel's file: OpenCL C, CUDA or HIP."""
    _: KW_ONLY
    space: Path
    """Parameters with their values, constraints, and the launch: TOML, or a T1 file of Kernel Tuner."""
    kernel: str | None = None
    """Name of the kernel; by default the one that the space names."""
    devices: Annotated[options.Names | None, Parameter(show_default=False)] = None
    """Devices of the model or the catalogue, separated by commas."""
    device_file: options.Paths = ()
    """Data sheet (TOML) of a further device; may be repeated."""
    model: str | None = None
    """Folder or name of a model of launch times; by default the one that comes with Crosscast."""
    profiles: options.Whole = 120
    """How many variants are profiled."""
    measure: options.Whole = 0
    """Maximum number of variants that are measured; none by default."""
    on: str | None = None
    """Id of the device that measures, as `crosscast devices` shows it; by default the first."""
    within: str = "2%"
    """Measuring ends when no variant is likely to be faster by this share."""
    out: Path | None = None
    """Folder for `ranking.json`, and for the space (`t1.json`) and the results (`t4.json`) as Kernel Tuner
    writes them."""
    output: options.FigureOutput = options.FIGURES
