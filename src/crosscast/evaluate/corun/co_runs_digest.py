"""A hash of solo runs and bags."""

from __future__ import annotations

import hashlib

from crosscast.tables.corun.view import CoRuns

__all__ = ["co_runs_digest"]


def co_runs_digest(co_runs: CoRuns) -> str:
    """A hash of all that models learn from, and are asked for."""
    # Dataclasses of texts and numbers, whose representations tell all.
    return hashlib.sha256(repr((co_runs.solos, co_runs.bags)).encode()).hexdigest()
