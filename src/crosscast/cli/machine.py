"""The commands about this machine: ``doctor``, ``devices``, ``measure``, ``calibrate`` and ``corun``."""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated, Literal

import cyclopts
from cyclopts import Parameter

from crosscast.cli import COMMANDS, command_line, options
from crosscast.cli.options import command
from crosscast.errors import InputError

devices_app = cyclopts.App(name="devices")
measure_app = cyclopts.App(name="measure")


@command("doctor.doctor")
class Doctor:
    """Check this installation and machine: compiler, extras, OpenCL, caches, models, sensors, load.

    Exit code 1 if kernels cannot be characterized; what else is missing limits only what it says.
    """

    _: KW_ONLY
    output: options.Output = options.OUTPUT


@command("catalogues.devices")
class Devices:
    """List the devices of this machine, say what is known of a device, and compare two.

    Devices of this machine are OpenCL devices, with their properties and working sensors; 1, 2, 4, ...
    compute units of a CPU are separate devices: `pocl:0/1` is one core of `pocl:0`. NVIDIA GPUs that OpenCL
    does not list are `cuda:0`, ..., for `calibrate`. For a device of the catalogue, or a calibrated one, the
    data sheet is shown beside measured values.
    """

    name: str | None = None
    """The device; with `--catalogue`, texts separated by commas, each of which its key, name, vendor, type
    or architecture has: `nvidia,ampere`."""
    _: KW_ONLY
    catalogue: options.Flag = False
    """List the devices that come with Crosscast, for `crosscast predict --devices`, not this machine's;
    in short if nothing says which."""
    vendor: str | None = None
    """List those of this vendor."""
    kind: Annotated[Literal["cpu", "gpu", "accelerator"] | None, cyclopts.Parameter(name="--type")] = None
    """List those of this type."""
    output: options.Output = options.OUTPUT


devices_app.default(Devices)


@command("catalogues.compare_devices", devices_app, "compare")
class CompareDevices:
    """Show two devices side by side, with ratios, and which kernels of the suite each is faster at.

    Times of the kernels are forecasts, of the bundled profiles, by the first named model that fits.
    """

    first: str
    """A device of the catalogue, or one that was calibrated."""
    second: str
    """Another."""
    _: KW_ONLY
    output: options.Output = options.OUTPUT


@command("measure.measure")
class Measure:
    """Measure the kernels of WHAT on an OpenCL device, in repeated runs.

    WHAT is a launch file (`.toml`, `.sim`), or a program with the launch options of `crosscast characterize`
    (`--global`, `--arg`, `-D`, ...); or with `--size` an application: one of the suite (bfs, cfd, crc, csr,
    dwt, fft, gem, hmm, kmeans, lud, nqueens, nw, srad, swat) or a folder of your own (docs/suite.md). A run
    writes the buffers and launches the kernels; runs are repeated until there are enough of them and enough
    time has passed. Times are those of the device's own timer.
    """

    what: str
    """Launch file, or name or folder of an application."""
    _: KW_ONLY
    device: options.DeviceId = None
    size: Literal["tiny", "small", "medium", "large"] | None = None
    """Size of the application's problem."""
    min_runs: options.Whole = 50
    """Minimum number of recorded runs."""
    min_time: float = 2.0
    """Minimum total time of the recorded runs, in seconds."""
    repeats: options.Whole = 1
    """Number of processes that repeat the measurement, one after another."""
    sensor: options.Sensor = "auto"
    timeout: float = 600.0
    """Time limit of a process, in seconds."""
    against_forecast: str | None = None
    """Name of this device in a model or the catalogue (`crosscast devices --catalogue`), or of one that was
    calibrated: its times are forecast first, and shown beside the measured ones."""
    launch: options.OfLaunch = options.LAUNCH
    output: options.Output = options.OUTPUT


measure_app.default(Measure)


@command("measure.stressor", measure_app)
class MeasureStressor:
    """Run a stressor, a microbenchmark that contends for memory, on one core of the CPU, without OpenCL.

    For applications that Crosscast does not start itself: run one beside them for each core to be kept busy,
    and divide their time beside it by their time in isolation.
    """

    level: str
    """`low`, `medium` or `high`, by the misses of the last-level cache."""
    _: KW_ONLY
    seconds: float = 10.0
    """How long it runs, from when it prints `ready`."""
    image: options.Bytes | None = None
    """Bytes of each of its four images, such as `32MiB`; by default those of the last-level cache."""
    json: options.JsonFlag = False


@command("measure.calibrate")
class Calibrate:
    """Measure a device of this machine, so that forecasts, verdicts and choices know it by its name.

    First, in about ten seconds, what it reaches: bandwidth by working set, rates by class, launches, local
    memory, scattered access, transfers. That is written as a file of a device (`--device-file`). Then kernels
    of the suite are measured, and it joins the bundled model of times. Results are stored in
    `XDG_DATA_HOME/crosscast`, by default `~/.local/share/crosscast`: the same command resumes a calibration
    that was interrupted, and one with more minutes adds to it.
    """

    _: KW_ONLY
    device: str | None = None
    """Device id, as `crosscast devices` shows it, such as `pocl:0`, or platform and name, such as
    `pocl:amd-epyc-2cu`; by default the first one. `host` is the CPU without OpenCL, `cuda:0` an NVIDIA
    GPU without OpenCL; of these, only what they reach is measured."""
    minutes: float = 2.0
    """How long to measure kernels; with less than about a quarter, few can be measured. 0 stops after the
    first ten seconds."""
    name: str = "mine"
    """New name of the device."""
    output: options.Output = options.OUTPUT


def install_completion(
    *, shell: Literal["bash", "zsh", "fish"] | None = None, output: Path | None = None
) -> None:
    """Let the Tab key complete commands and options: writes a script for the shell, which its start loads.

    Parameters
    ----------
    shell
        The shell; by default the one that runs this.
    output
        Where to write the script instead, which nothing loads then.
    """
    from cyclopts.completion.detect import ShellDetectionError

    try:
        path = command_line().install_completion(shell=shell, output=output, add_to_startup=output is None)
    except ShellDetectionError as error:
        raise InputError.of(
            where="--shell", expected="bash, zsh or fish", found="no shell that runs this"
        ) from error
    except OSError as error:
        raise InputError.of(
            where="--output", problem=f"cannot write {error.filename} ({error.strerror})"
        ) from error
    print(f"wrote {path}; a new shell completes crosscast", file=sys.stderr)


corun_app = cyclopts.App(name="corun", help=COMMANDS["corun"][1])


@command("corun.profile", corun_app)
class CorunProfile:
    """Profile an application on a device: alone, and beside each of three stressors.

    WHAT is a launch file (`.toml`, `.sim`), or with `--size` an application: one of the suite or a folder of
    your own (docs/suite.md). Results go to a file that `crosscast predict corun` and
    `crosscast colocate` read; docs/corun.md says what each number means.
    """

    what: str
    """Launch file, or name or folder of an application."""
    _: KW_ONLY
    device: options.DeviceId = None
    size: Literal["tiny", "small", "medium", "large"] | None = None
    """Size of the application's problem."""
    out: Path | None = None
    """File to write; by default the name of the application and its size with `.json`, here."""
    no_instruction_mix: options.Flag = False
    """Do not characterize the application for its instruction mix, which takes long for large problems."""
    round_s: Annotated[float, Parameter(name="--round-time")] = 0.2
    """Minimum time of a job in isolation, in seconds: runs of the application are repeated to fill it."""
    jobs: options.Whole = 3
    """Whole jobs of each co-runner, at least, that are timed while all run."""
    sensor: options.Sensor = "auto"
    timeout: float = 60.0
    """Seconds without an answer after which an application is recorded as failed."""
    output: options.Output = options.OUTPUT


@command("corun.campaign", corun_app)
class CorunCampaign:
    """Measure applications in isolation, beside stressors, and in mixes, into a dataset.

    An interrupted campaign resumes when the same command is run again; one with more sizes, applications or
    mixes adds to the dataset. Failures are recorded, and the campaign continues; the exit code is
    1 then.
    """

    _: KW_ONLY
    out: options.DatasetOut
    device: options.DeviceId = None
    suite: options.NamesOr = ("all",)
    """Applications, separated by commas: `all`, folders of your own (docs/suite.md), or names of the
    suite."""
    sizes: options.NamesOr = ("tiny", "small")
    """Problem sizes, separated by commas: `tiny`, `small`, `medium`, `large`. A mix may have several."""
    mixes: options.Numbers | None = None
    """Numbers of applications in a mix, separated by commas; one application may be in it several times. By
    default 2."""
    most_mixes: options.Whole | None = None
    """Maximum number of randomly sampled mixes per size; by default all."""
    seed: options.Whole = 0
    """Random seed."""
    no_instruction_mix: options.Flag = False
    """Do not characterize the applications for their instruction mixes."""
    round_s: Annotated[float, Parameter(name="--round-time")] = 0.2
    """Minimum time of a job in isolation, in seconds: runs of the application are repeated to fill it."""
    jobs: options.Whole = 3
    """Whole jobs of each co-runner, at least, that are timed while all run; then all start one together, as
    often."""
    threads: options.Whole | None = None
    """Threads that each co-runner may use on a CPU device of PoCL; by default all cores."""
    sensor: options.Sensor = "auto"
    timeout: float = 60.0
    """Seconds without an answer after which an application is recorded as failed."""
    json: options.JsonFlag = False


@command("mixes.translate", corun_app)
class CorunTranslate:
    """Fit a line that translates times on one device to times on another, and save it as a card.

    The line goes through the times of the same work on both devices: isolated runs, co-runners and whole
    mixes. A plain line, as published, and one through logarithms are cross-validated by application; the
    better one is kept. `crosscast predict corun --translate` uses the card.
    """

    dataset: Path
    """Dataset with isolated runs and mixes on both devices, or on one."""
    more: options.Paths = ()
    """Further datasets, such as one of the other device."""
    _: KW_ONLY
    source: Annotated[str, Parameter(name="--from")]
    """Device whose times are known."""
    target: Annotated[str, Parameter(name="--to")]
    """Device whose times are predicted."""
    out: Path
    """File for the card, JSON."""
    output: options.Output = options.OUTPUT
