"""``crosscast compare``: what differs between two of a kind, and whether that is too much."""

from __future__ import annotations

from pathlib import Path

from crosscast.cli.launch_options import LAUNCH, LaunchOptions
from crosscast.cli.options import Output
from crosscast.commands.files import read_profiles
from crosscast.commands.output import check_output, show
from crosscast.comparison.contents import Condition, contents_of, kind_of
from crosscast.comparison.contents import compare as compared
from crosscast.profile import Profile
from crosscast.report.catalogues import comparison_report

DIFFERS = 3
"""Exit code where a condition holds: neither wrong input nor a machine that cannot do it."""


def compare(
    first: Path, second: Path, /, *, fail_on: tuple[str, ...], launch: LaunchOptions, output: Output
) -> int:
    """Run ``crosscast compare``."""
    check_output(output)
    for text in fail_on:
        Condition.parse(text)
    # Launches are characterized with progress.
    both = [
        contents_of(path, _profiles(path, launch) if kind_of(path) == "profiles" else None)
        for path in (first, second)
    ]
    found = compared(both[0], both[1], fail_on)
    show(output, found.to_dict, lambda: comparison_report(found))
    return 0 if found.passes else DIFFERS


_STORED = (".json", ".jsonl", ".csv", ".parquet")


def _profiles(path: Path, launch: LaunchOptions) -> list[Profile]:
    """Profiles of a side; the launch is that of a program, and stored profiles have theirs."""
    return read_profiles(path, LAUNCH if path.suffix in _STORED else launch)[0]
