"""``crosscast hooks``: files that schedulers and operators use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import cyclopts
from cyclopts import Parameter

__all__ = ["app"]

app = cyclopts.App(name="hooks", help="Write hooks for Slurm, units for systemd, or a dashboard for Grafana.")


@app.command
def install(
    kind: Literal["slurm", "systemd", "grafana"],
    /,
    *,
    folder: Annotated[Path, Parameter(name="--dir")],
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
    """
    from crosscast.service import hooks

    for each in hooks.install(kind, folder):
        print(f"{each.path}: {each.state}")
