"""``crosscast serve``: the prediction service."""

from __future__ import annotations

import logging

from crosscast.cli.service import ServeOptions
from crosscast.errors import importing
from crosscast.service.models import Served


def serve(*, options: ServeOptions) -> None:
    """Run ``crosscast serve``."""
    with importing("service", "the prediction service"):
        from crosscast.service.server import serve

    logging.basicConfig(level=logging.WARNING, format="crosscast: %(message)s")
    logging.getLogger("crosscast.service").setLevel(logging.INFO)
    serve(
        Served(options.model, options.profiles, options.samples),
        path=options.socket,
        bind=options.bind,
        token_file=options.token_file,
    )
