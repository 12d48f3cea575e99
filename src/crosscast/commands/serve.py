"""``crosscast serve``: the prediction service."""

from __future__ import annotations

import logging
from pathlib import Path

from crosscast.errors import importing
from crosscast.service.models import Served


def serve(
    *,
    model: tuple[str, ...],
    profiles: tuple[str, ...],
    samples: tuple[str, ...],
    socket: Path | None,
    bind: str | None,
    token_file: Path | None,
) -> None:
    """Run ``crosscast serve``."""
    with importing("service", "the prediction service"):
        from crosscast.service.server import serve

    logging.basicConfig(level=logging.WARNING, format="crosscast: %(message)s")
    logging.getLogger("crosscast.service").setLevel(logging.INFO)
    serve(Served(model, profiles, samples), path=socket, bind=bind, token_file=token_file)
