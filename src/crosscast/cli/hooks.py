"""``crosscast hooks``: files that schedulers and operators use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import cyclopts
from cyclopts import Parameter

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.options import Flag, JsonFlag

__all__ = ["app"]
app = cyclopts.App(name="hooks", help="Write hooks for Slurm, units for systemd, or a dashboard for Grafana.")
Kind = Literal["slurm", "systemd", "grafana"]
Folder = Annotated[Path, Parameter(name="--dir")]


@app.command
@runs(lambda: commands.hooks.install)
def install(
    kind: Kind,
    /,
    *,
    folder: Folder,
    prefix: Path | None = None,
    dry_run: Flag = False,
    json: JsonFlag = False,
) -> None:
    """Write files for an operator to review (docs/service.md, docs/slurm.md).

    Nothing that differs is replaced, but the code in the folder `crosscast`, which is not yours to change.

    Parameters
    ----------
    kind
        `slurm`: hooks for job submission, and prolog and epilog that set power caps. `systemd`: units of the
        service. `grafana`: a dashboard.
    folder
        Where to write them, such as `/etc/slurm`, `/etc/systemd/system`.
    prefix
        Folder that stands for `/`, to stage them for a review or a package: they are written below it.
    dry_run
        Write nothing; print what would be done, and the files.
    """


@app.command
@runs(lambda: commands.hooks.remove)
def remove(
    kind: Kind,
    /,
    *,
    folder: Folder,
    prefix: Path | None = None,
    dry_run: Flag = False,
    json: JsonFlag = False,
) -> None:
    """Remove the files that `crosscast hooks install` wrote; what you have changed stays.

    Parameters
    ----------
    kind
        `slurm`, `systemd` or `grafana`.
    folder
        Where they are.
    prefix
        Folder that stands for `/`, if they are staged.
    dry_run
        Remove nothing; print what would be done.
    """
