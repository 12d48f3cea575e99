"""``crosscast reproduce``: the tables and figures of published studies, on their data or on your own."""

from __future__ import annotations

from typing import Literal

import cyclopts

from crosscast.cli.app import COMMANDS
from crosscast.cli.dispatch import runs
from crosscast.cli.options import FIGURES, OUTPUT, RUN, DatasetFolder, FigureOutput, Output, RunOptions

__all__ = ["app"]
app = cyclopts.App(name="reproduce", help=COMMANDS["reproduce"][1])


@app.command
@runs("reproduce")
def johnston2018(
    dataset: DatasetFolder,
    /,
    *,
    preset: Literal["quick", "default", "paper"] = "default",
    run: RunOptions = RUN,
    output: FigureOutput = FIGURES,
) -> None:
    """Predict times with the random forest of Johnston, Falzon and Milthorpe (docs/results.md).

    Its tables and figures, beside what the same quantities are in real time and on held-out applications.

    Parameters
    ----------
    preset
        How many trees and samples: `quick` takes a minute, `paper` as many as the paper, which takes hours.
    """


@app.command
@runs("reproduce")
def bailey2014(
    dataset: DatasetFolder,
    /,
    *,
    run: RunOptions = RUN,
    output: FigureOutput = FIGURES,
) -> None:
    """Choose configurations under power caps with the model and policies of Bailey et al. 2014.

    Its clusters and tree of all programs, and its methods with each benchmark held out: the model, the model
    with frequency limiting, limiters of single knobs, and the oracle (docs/choosing-results.md).
    """


@app.command
@runs("reproduce")
def cummins2017(
    dataset: DatasetFolder,
    /,
    *,
    run: RunOptions = RUN,
    output: Output = OUTPUT,
) -> None:
    """Choose CPU or GPU for the kernels of Cummins et al. 2017 (docs/choosing-results.md).

    As published, with rows held out at random; and with kernels, applications and suites held out.
    """


@app.command
@runs("reproduce")
def nichols2024(
    dataset: DatasetFolder,
    /,
    *,
    run: RunOptions = RUN,
    output: FigureOutput = FIGURES,
) -> None:
    """Predict relative performance with the models and the random split of Nichols et al. 2024.

    Beside them our own model, studies by source, scale and application, importances of features and their
    selection (docs/relative-results.md).
    """


@app.command
@runs("reproduce")
def moolchandani2022(
    dataset: DatasetFolder,
    /,
    *,
    run: RunOptions = RUN,
    output: FigureOutput = FIGURES,
) -> None:
    """Predict co-runs with the models of Moolchandani et al. 2022, and repeat its studies.

    Clusters of mixes, combinations of features, decision paths, sizes of mixes, and translation to other
    devices, beside our own model (docs/corun-results.md).
    """
