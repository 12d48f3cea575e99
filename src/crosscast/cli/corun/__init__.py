"""``crosscast corun``: what applications that share a device do to each other."""

from __future__ import annotations

import cyclopts

from crosscast.cli.corun.campaign import campaign
from crosscast.cli.corun.neighbour import neighbour
from crosscast.cli.corun.profile import profile
from crosscast.cli.corun.translate import translate

__all__ = ["app"]

app = cyclopts.App(
    name="corun",
    help="Profile applications, measure mixes that share a device, and translate times.",
)

app.command(profile)
app.command(campaign)
app.command(neighbour)
app.command(translate)
