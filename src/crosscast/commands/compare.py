"""``crosscast compare``: differences between two inputs of one kind, and conditions on them."""

from __future__ import annotations

from pathlib import Path

from crosscast.cli.options import LAUNCH, LaunchOptions
from crosscast.cli.profiles import Compare
from crosscast.commands.files import read_profiles
from crosscast.commands.output import show
from crosscast.comparison import Condition, contents_of, kind_of
from crosscast.comparison import compare as compared
from crosscast.forecasting import STORED
from crosscast.profile import Profile
from crosscast.report.catalogues import comparison_report

DIFFERS = 3
"""Exit code if a condition holds, which is neither wrong input nor a failure of the machine."""


def compare(options: Compare) -> int:
    """Run ``crosscast compare``."""
    for text in options.fail_on:
        Condition.parse(text)
    # Profiles are read here, so that launches are characterized with progress.
    left, right = (
        contents_of(path, _profiles(path, options.launch) if kind_of(path) == "profiles" else None)
        for path in (options.first, options.second)
    )
    comparison = compared(left, right, options.fail_on)
    show(options.output, comparison.to_dict, lambda: comparison_report(comparison))
    return 0 if comparison.passes else DIFFERS


def _profiles(path: Path, launch: LaunchOptions) -> list[Profile]:
    """Read the profiles of a side; launch options apply to programs only, not to stored profiles."""
    return read_profiles(path, LAUNCH if path.suffix in STORED else launch)[0]
