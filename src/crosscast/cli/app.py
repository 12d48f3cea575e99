"""The commands of ``crosscast``, each of which loads when it is called."""

from __future__ import annotations

import cyclopts

import crosscast

__all__ = ["app"]

app = cyclopts.App(
    name="crosscast",
    help="Forecast how a kernel or an application performs where it has not run.",
    version=crosscast.__version__,
    help_format="markdown",
)
app.command("crosscast.cli.characterize:characterize", name="characterize")
