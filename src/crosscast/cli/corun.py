"""``crosscast corun``: profiles and campaigns of applications that share a device, and translated times."""

from __future__ import annotations

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated, Literal

import cyclopts
from cyclopts import Parameter

from crosscast.cli import COMMANDS, options
from crosscast.cli.options import command

app = cyclopts.App(name="corun", help=COMMANDS["corun"][1])


@command("corun.profile", app)
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


@command("corun.campaign", app)
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


@command("mixes.translate", app)
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
