"""``crosscast hooks``: files that schedulers and operators use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from crosscast.commands.options import print_json
from crosscast.service import hooks

_LEFT = {"new": "not there", "same": "already there", "yours": "yours differs, and stays"}


def install(
    kind: Literal["slurm", "systemd", "grafana"],
    /,
    *,
    folder: Path,
    prefix: Path | None,
    dry_run: bool,
    json: bool,
) -> None:
    """Run ``crosscast hooks install``."""
    told = []
    for each in hooks.files(kind, folder, prefix):
        writes = each.state in ("new", "newer")
        if writes and not dry_run:
            each.write()
        said = _said(each.state, writes, "written", dry_run)
        told.append({"path": str(each.path), "result": said, "content": each.content.decode()})
    _show(told, json, contents=dry_run)


def remove(
    kind: Literal["slurm", "systemd", "grafana"],
    /,
    *,
    folder: Path,
    prefix: Path | None,
    dry_run: bool,
    json: bool,
) -> None:
    """Run ``crosscast hooks remove``."""
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
