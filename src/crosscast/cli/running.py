"""Run a launch for a person who watches."""

from __future__ import annotations

import sys
from dataclasses import replace

from crosscast.characterization import run
from crosscast.cli.progress import ProgressLine
from crosscast.kernel import Launch
from crosscast.profile import Profile

__all__ = ["run_launch"]


def run_launch(launch: Launch, invocation: int, options: run.Options) -> Profile:
    """Characterize a launch; how far it is shows on standard error.

    Parameters
    ----------
    launch
        What to run.
    invocation
        Number of the launch, for the profile.
    options
        How to run it.

    Raises
    ------
    CrosscastError
        As `crosscast.characterization.run.characterize_launch` does.
    """
    with ProgressLine(sys.stderr, launch.kernel.name) as progress:
        return run.characterize_launch(
            launch, invocation=invocation, options=replace(options, progress=progress)
        )
