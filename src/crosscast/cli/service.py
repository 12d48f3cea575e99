"""The commands ``report``, ``serve`` and ``hooks``."""

from __future__ import annotations

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated, Literal

import cyclopts
from cyclopts import Parameter

from crosscast.cli import COMMANDS
from crosscast.cli.options import OUTPUT, RUN, Flag, Names, Output, RunOptions, Texts, command

hooks_app = cyclopts.App(name="hooks", help=COMMANDS["hooks"][1])


@command("capture.report")
class WriteReport:
    """Report on a recorded program, or write a page about a dataset and how well its times are predicted.

    Of the trace of `crosscast capture`: where the time goes, profiles, and how long the program takes on
    other devices. Of a dataset, a page: its contents, predictions for each held-out application, recommended
    devices and what they cost, and how to read the scores. docs/reporting.md shows one.
    """

    folder: Path
    """Folder of a trace or dataset, or `bundled` for the dataset that comes with Crosscast."""
    _: KW_ONLY
    models: Names | None = None
    """Models, separated by commas, or `all`; by default the one that `crosscast train` takes. The page shows
    the one with the least error, beside the baselines."""
    application: str | None = None
    """Application that is shown in detail; by default the one with the median error."""
    devices: Names | None = None
    """Devices of the forecast of a recorded program, separated by commas; by default all of the model."""
    run: RunOptions = RUN
    output: Output = OUTPUT


@command("service.serve")
class Serve:
    """Answer forecasts, choices and co-location plans over a Unix socket or TCP (docs/service.md).

    Answers have the numbers of `crosscast predict`, `choose` and `colocate`. A model that is replaced in its
    folder is read again; SIGHUP reads everything again, and SIGTERM ends the service when it has answered.
    """

    _: KW_ONLY
    model: Texts
    """Folder of a model, or a name that `crosscast models` lists; may be repeated."""
    profiles: Texts = ("bundled",)
    """Profiles that requests may name: a dataset, a file of profiles or launches, a profile of
    `crosscast corun profile`, or a folder of these; may be repeated."""
    samples: Texts = ()
    """Sample runs of kernels that requests may name, as `crosscast choose configuration` takes them; may be
    repeated."""
    socket: Path | None = None
    """Unix socket, which its owner and group may use."""
    bind: str | None = None
    """Address such as `127.0.0.1:8750`, too or instead; needs `--token-file`."""
    token_file: Path | None = None
    """Tokens of those who may ask over TCP, a line each."""


@command("service.install", hooks_app)
class Install:
    """Write files for an operator to review (docs/service.md, docs/slurm.md).

    Nothing that differs is replaced, but the code in the folder `crosscast`, which is not yours to change.
    """

    kind: Literal["slurm", "systemd", "grafana"]
    """`slurm`: hooks for job submission, and prolog and epilog that set power caps. `systemd`: units of the
    service. `grafana`: a dashboard."""
    _: KW_ONLY
    folder: Annotated[Path, Parameter(name="--dir")]
    """Where to write them, such as `/etc/slurm`, `/etc/systemd/system`."""
    prefix: Path | None = None
    """Folder that stands for `/`, to stage them for a review or a package: they are written below it."""
    dry_run: Flag = False
    """Write nothing; print what would be done, and the files."""


@command("service.remove", hooks_app)
class Remove(Install):
    """Remove the files that `crosscast hooks install` wrote; what you have changed stays."""

    kind: Literal["slurm", "systemd", "grafana"]
    """`slurm`, `systemd` or `grafana`."""
    _: KW_ONLY
    folder: Annotated[Path, Parameter(name="--dir")]
    """Where they are."""
    prefix: Path | None = None
    """Folder that stands for `/`, if they are staged."""
    dry_run: Flag = False
    """Remove nothing; print what would be done."""
