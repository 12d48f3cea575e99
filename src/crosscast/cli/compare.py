"""``crosscast compare``: what differs between two of a kind, and whether that is too much."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.launch_options import LAUNCH, OfLaunch
from crosscast.commands.options import OUTPUT, Output, Repeated

__all__ = ["compare"]


@runs(lambda: commands.compare.compare)
def compare(
    first: Path,
    second: Path,
    /,
    *,
    fail_on: Annotated[tuple[str, ...], Repeated] = (),
    launch: OfLaunch = LAUNCH,
    output: Output = OUTPUT,
) -> None:
    """Compare two profiles, datasets, models or schedules, and fail where a change is too large.

    FIRST and SECOND are of one kind: files of profiles; launch files, or programs with the launch options of
    `crosscast characterize` (`--global`, `--arg`, `-D`, ...), which are characterized now; folders of
    datasets or models, or their names; or schedules (`.swf`, or the `.csv` of `crosscast simulate --out`).

    Exit codes: 0 if no condition of `--fail-on` holds, 3 if one does, 2 for wrong input.

    Example, in continuous integration: `crosscast compare before.json kernel.toml
    --fail-on 'total_instruction_count>+5%' --fail-on missing`

    Parameters
    ----------
    first
        What is compared with; changes are relative to it.
    second
        What is compared.
    fail_on
        A change that is too large: `METRIC>+5%` or `METRIC<-5%` of the first, or `METRIC>10` in the metric's
        unit; `missing` for what only one of the two has. May be repeated.
    """
