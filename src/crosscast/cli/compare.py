"""``crosscast compare``: what differs between two of a kind, and whether that is too much."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from crosscast.cli.launch import LAUNCH, LaunchOptions, OfLaunch
from crosscast.cli.options import OUTPUT, Output, Repeated

if TYPE_CHECKING:
    from crosscast.profile import Profile

__all__ = ["DIFFERS", "compare"]

DIFFERS = 3
"""Exit code where a condition holds: neither wrong input nor a machine that cannot do it."""


def compare(
    first: Path,
    second: Path,
    /,
    *,
    fail_on: Annotated[tuple[str, ...], Repeated] = (),
    launch: OfLaunch = LAUNCH,
    output: Output = OUTPUT,
) -> int:
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
    # Imported here: `--help` needs none of it.
    from crosscast.comparison import Condition, contents_of, kind_of
    from crosscast.comparison import compare as compared
    from crosscast.report.comparison import comparison_report

    output.check()
    for text in fail_on:
        Condition.parse(text)
    # Launches are characterized with progress.
    both = [
        contents_of(path, _profiles(path, launch) if kind_of(path) == "profiles" else None)
        for path in (first, second)
    ]
    found = compared(both[0], both[1], fail_on)
    output.show(found.to_dict, lambda: comparison_report(found))
    return 0 if found.passes else DIFFERS


_STORED = (".json", ".jsonl", ".csv", ".parquet")


def _profiles(path: Path, launch: LaunchOptions) -> list[Profile]:
    """Profiles of a side; the launch is that of a program, and stored profiles have theirs."""
    from crosscast.cli.files import read_profiles

    return read_profiles(path, LAUNCH if path.suffix in _STORED else launch)[0]
