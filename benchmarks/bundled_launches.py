"""Take the launches of the suite that come with Crosscast from training tables.

``python -m benchmarks.bundled_launches TABLES`` keeps the middle launch of each kernel at a size, as drivers
compile it, with all counts. ``crosscast devices compare`` forecasts them.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from crosscast.comparison.devices import LAUNCHES
from crosscast.data.profiles import read_parquet, write_parquet
from crosscast.profile import Profile

_SUITE = "suite "
"""What sizes of the suite begin with in training tables."""


def middle_launches(profiles: list[Profile]) -> list[Profile]:
    """The middle launch of each of the suite's kernels at a size."""
    launches: dict[tuple[str | None, str, str], list[Profile]] = {}
    for profile in profiles:
        if profile.size and profile.size.startswith(_SUITE):
            size = profile.size.removeprefix(_SUITE)
            launches.setdefault((profile.application, profile.kernel, size), []).append(
                replace(profile, size=size)
            )
    ordered = (sorted(each, key=lambda profile: profile.invocation) for each in launches.values())
    return [each[len(each) // 2] for each in ordered]


if __name__ == "__main__":
    chosen = middle_launches(read_parquet(Path(sys.argv[1]) / "profiles.parquet"))
    write_parquet(chosen, LAUNCHES)
    print(f"{len(chosen)} launches in {LAUNCHES}")
