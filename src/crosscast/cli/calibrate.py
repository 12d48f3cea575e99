"""``crosscast calibrate``: what a device of this machine reaches, and how long kernels take on it."""

from __future__ import annotations

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.options import OUTPUT, Flag, Output

__all__ = ["calibrate"]


@runs(lambda: commands.calibrate.calibrate)
def calibrate(
    *,
    device: str | None = None,
    minutes: float = 2.0,
    name: str = "mine",
    facts_only: Flag = False,
    output: Output = OUTPUT,
) -> None:
    """Measure a device of this machine, so that forecasts, verdicts and choices know it by its name.

    First, in about ten seconds, what it reaches: bandwidth by working set, rates by class, launches, local
    memory, scattered access, transfers. That is written as a file of a device (`--device-file`). Then kernels
    of the suite are measured, and it joins the bundled model of times. What was measured is kept in
    `XDG_DATA_HOME/crosscast`, by default `~/.local/share/crosscast`: the same command resumes a calibration
    that was interrupted, and one with more minutes adds to it.

    Parameters
    ----------
    device
        Device id, as `crosscast devices` shows it, such as `pocl:0`, or platform and name, such as
        `pocl:amd-epyc-2cu`; or `host`, the CPU without OpenCL.
    minutes
        How long to measure kernels; with less than about a quarter, few can be measured.
    name
        What the device is called from now on.
    facts_only
        Stop after the first ten seconds.
    """
