"""``crosscast serve``, the prediction service, and ``hooks``, files for schedulers and operators."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from crosscast.cli.service import ServeOptions
from crosscast.commands.output import print_json
from crosscast.errors import importing
from crosscast.service import hooks


def serve(*, options: ServeOptions) -> None:
    """Run ``crosscast serve``."""
    with importing("service", "the prediction service"):
        from crosscast.service.models import Served
        from crosscast.service.server import serve

    logging.basicConfig(level=logging.WARNING, format="crosscast: %(message)s")
    logging.getLogger("crosscast.service").setLevel(logging.INFO)
    serve(
        Served(options.model, options.profiles, options.samples),
        path=options.socket,
        bind=options.bind,
        token_file=options.token_file,
    )


_UNCHANGED = {"new": "not there", "same": "already there", "yours": "yours differs, and stays"}


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
    results = [
        {
            "path": str(file.path),
            "result": _done(file, ("new", "newer"), file.write, "written", dry_run),
            "content": file.content.decode(),
        }
        for file in hooks.files(kind, folder, prefix)
    ]
    _show(results, json, contents=dry_run)


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
    results = [
        {"path": str(file.path), "result": _done(file, ("same", "newer"), file.remove, "removed", dry_run)}
        for file in hooks.files(kind, folder, prefix)
    ]
    _show(results, json)


def _done(
    file: hooks.HookFile, states: Sequence[str], act: Callable[[], None], done: str, dry_run: bool
) -> str:
    """Write or remove a file if it is in one of the states; return the outcome, or that of a dry run."""
    if file.state not in states:
        return _UNCHANGED[file.state]
    if dry_run:
        return f"would be {done}"
    act()
    return done


def _show(results: Sequence[Mapping[str, str]], json: bool, *, contents: bool = False) -> None:
    if json:
        print_json({"files": results})
        return
    for result in results:
        print(f"{result['path']}: {result['result']}")
        if contents:
            print(result["content"])
