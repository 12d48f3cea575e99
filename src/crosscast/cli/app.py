"""The commands of ``crosscast``."""

from __future__ import annotations

import cyclopts

import crosscast
from crosscast.cli.characterize import characterize
from crosscast.cli.choose import choose
from crosscast.cli.corun import app as corun
from crosscast.cli.dataset import app as dataset
from crosscast.cli.devices import devices
from crosscast.cli.embed import embed
from crosscast.cli.evaluate import evaluate
from crosscast.cli.measure import measure
from crosscast.cli.predict import predict
from crosscast.cli.report import report
from crosscast.cli.schedule import schedule
from crosscast.cli.train import train

__all__ = ["app"]

app = cyclopts.App(
    name="crosscast",
    help="Forecast how a kernel or an application performs where it has not run.",
    version=crosscast.__version__,
    help_format="markdown",
    # `main` says it in its own words, with its own exit code.
    suppress_keyboard_interrupt=False,
)
app.command(characterize)
app.command(choose)
app.command(corun)
app.command(dataset)
app.command(devices)
app.command(embed)
app.command(evaluate)
app.command(measure)
app.command(predict)
app.command(report)
app.command(schedule)
app.command(train)
