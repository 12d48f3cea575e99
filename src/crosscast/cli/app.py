"""The commands of ``crosscast``."""

from __future__ import annotations

import cyclopts

import crosscast
from crosscast.cli.characterize import characterize
from crosscast.cli.choose import app as choose
from crosscast.cli.colocate import colocate
from crosscast.cli.corun import app as corun
from crosscast.cli.dataset import app as dataset
from crosscast.cli.devices import devices
from crosscast.cli.embed import embed
from crosscast.cli.evaluate import app as evaluate
from crosscast.cli.measure import measure
from crosscast.cli.predict import app as predict
from crosscast.cli.report import report
from crosscast.cli.reproduce import app as reproduce
from crosscast.cli.schedule import schedule
from crosscast.cli.train import app as train

__all__ = ["app"]

app = cyclopts.App(
    name="crosscast",
    help="Predict run time and power on devices and configurations you have not measured.",
    version=crosscast.__version__,
    help_format="markdown",
    # `main` says it in its own words, with its own exit code.
    suppress_keyboard_interrupt=False,
)
app.command(characterize)
app.command(choose)
app.command(colocate)
app.command(corun)
app.command(dataset)
app.command(devices)
app.command(embed)
app.command(evaluate)
app.command(measure)
app.command(predict)
app.command(report)
app.command(reproduce)
app.command(schedule)
app.command(train)
