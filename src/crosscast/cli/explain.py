"""``crosscast explain``: what bounds kernels on devices, and what to try."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.launch_options import LAUNCH, OfLaunch
from crosscast.commands.options import OUTPUT, Application, Names, Output, Repeated

__all__ = ["explain"]


@runs(lambda: commands.explain.explain)
def explain(
    file: Path,
    /,
    *more: Path,
    devices: Annotated[Names | None, Parameter(show_default=False)] = None,
    device_file: Annotated[tuple[Path, ...], Repeated] = (),
    application: Application = None,
    launch: OfLaunch = LAUNCH,
    output: Output = OUTPUT,
) -> None:
    """Say what bounds a kernel on a device: memory, compute, launch or latency; why, and what to try.

    What bounds it follows from the profile and the device's data sheet alone (docs/verdicts.md). Beside it
    stand the forecast and what its time is spent on, as `crosscast predict` makes them. FILE is what that
    takes.

    Parameters
    ----------
    file
        What to explain.
    more
        Further files.
    devices
        Devices of the catalogue, separated by commas (`crosscast devices --catalogue`); by default h100-sxm,
        rtx4090 and epyc-9654.
    device_file
        Data sheet (TOML) of a further device; may be repeated.
    """
