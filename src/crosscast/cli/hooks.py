"""``crosscast hooks``: files that schedulers and operators use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import cyclopts
from cyclopts import Parameter

from crosscast.cli.options import Flag, JsonFlag, print_json

__all__ = ["app"]

app = cyclopts.App(name="hooks", help="Write hooks for Slurm, units for systemd, or a dashboard for Grafana.")

_LEFT = {"new": "not there", "same": "already there", "yours": "yours differs, and stays"}

Kind = Literal["slurm", "systemd", "grafana"]
Folder = Annotated[Path, Parameter(name="--dir")]


@app.command
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
    from crosscast.service import hooks

    told = []
    for each in hooks.files(kind, folder, prefix):
        writes = each.state in ("new", "newer")
        if writes and not dry_run:
            each.write()
        said = _said(each.state, writes, "written", dry_run)
        told.append({"path": str(each.path), "result": said, "content": each.content.decode()})
    _show(told, json, contents=dry_run)


@app.command
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
    from crosscast.service import hooks

    told = []
    for each in hooks.files(kind, folder, prefix):
        removes = each.state in ("same", "newer")
        if removes and not dry_run:
            each.remove()
        told.append({"path": str(each.path), "result": _said(each.state, removes, "removed", dry_run)})
    _show(told, json)


def _said(state: str, acts: bool, done: str, dry_run: bool) -> str:
    """What became of a file, or would."""
    if not acts:
        return _LEFT[state]
    return f"would be {done}" if dry_run else done


def _show(told: Sequence[Mapping[str, str]], json: bool, *, contents: bool = False) -> None:
    if json:
        print_json({"files": told})
        return
    for each in told:
        print(f"{each['path']}: {each['result']}")
        if contents:
            print(each["content"])
