"""``crosscast corun``: what applications that share a device do to each other."""

from __future__ import annotations

import cyclopts

from crosscast.cli.corun.campaign import campaign
from crosscast.cli.corun.neighbour import neighbour
from crosscast.cli.corun.pair import pair
from crosscast.cli.corun.predict import predict
from crosscast.cli.corun.profile import profile
from crosscast.cli.corun.translate import translate

__all__ = ["app"]

app = cyclopts.App(
    name="corun", help="Profile applications, and measure, predict and choose bags that share a device."
)

app.command(profile)
app.command(campaign)
app.command(neighbour)
app.command(predict)
app.command(pair)
app.command(translate)
