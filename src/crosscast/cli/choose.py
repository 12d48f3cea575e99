"""``crosscast choose``: the best configuration under a power cap, for a kernel that was run twice."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from crosscast import commands
from crosscast.answers import Objective
from crosscast.cli.dispatch import runs
from crosscast.commands.options import OUTPUT, Level, Model, Output

__all__ = ["app"]
app = cyclopts.App(
    name="choose",
    help="Choose device, clocks, caps or threads for a kernel under a power cap, from two sample runs.",
)


@app.command
@runs(lambda: commands.choose.sample)
def sample(*, model: Model = None, template: Path | None = None, output: Output = OUTPUT) -> None:
    """List the configurations at which a new kernel must be run, and what to record (docs/choosing.md).

    Parameters
    ----------
    template
        Write a CSV file to fill in with the runs.
    """


@app.command
@runs(lambda: commands.choose.configuration)
def configuration(
    samples: Path,
    /,
    *,
    model: Model = None,
    power_cap: str | None = None,
    objective: Objective = "performance",
    max_slowdown: str | None = None,
    cap_probability: float | None = None,
    level: Level = 0.9,
    kernel: Annotated[
        str | None, Parameter(help="Choose for this kernel alone, where the file has several.")
    ] = None,
    plot: Path | None = None,
    output: Output = OUTPUT,
) -> None:
    """Choose the best configuration under a power cap (docs/choosing.md).

    Predicts time and power at the configurations that were not run, and takes the best one under the cap.

    Parameters
    ----------
    samples
        Runs of the kernel: CSV with a row for each, or a history of `crosscast.profiled`.
    power_cap
        Power cap (W); several, separated by commas, for a choice under each; none where
        the objective is not `performance`.
    objective
        What is optimized: `performance`, `energy`, `edp` (energy times time), or `power`.
    max_slowdown
        How much slower than the first sample configuration it may be, such as `5%`.
    cap_probability
        Required probability of staying under the cap, such as 0.9; by default the predicted mean has to.
    plot
        Figure (`.png`, `.svg`, `.pdf`) of all configurations, the predicted frontier and the choices.
    """
