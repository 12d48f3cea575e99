"""``crosscast serve``: the prediction service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.options import Repeated

__all__ = ["serve"]


@runs(lambda: commands.serve.serve)
def serve(
    *,
    model: Annotated[tuple[str, ...], Repeated],
    profiles: Annotated[tuple[str, ...], Repeated] = ("bundled",),
    samples: Annotated[tuple[str, ...], Repeated] = (),
    socket: Path | None = None,
    bind: str | None = None,
    token_file: Path | None = None,
) -> None:
    """Answer forecasts, choices and co-location plans over a Unix socket or TCP (docs/service.md).

    Answers have the numbers of `crosscast predict`, `choose` and `colocate`. A model that is replaced in its
    folder is read again; SIGHUP reads everything again, and SIGTERM ends the service when it has answered.

    Parameters
    ----------
    model
        Folder of a model, or a name that `crosscast models` lists; may be repeated.
    profiles
        What requests may name: a dataset, a file of profiles or launches, a profile of `crosscast corun
        profile`, or a folder of these; may be repeated.
    samples
        Sample runs of kernels that requests may name, as `crosscast choose configuration` takes them; may be
        repeated.
    socket
        Unix socket, which its owner and group may use.
    bind
        Address such as `127.0.0.1:8750`, too or instead; needs `--token-file`.
    token_file
        Tokens of those who may ask over TCP, a line each.
    """
