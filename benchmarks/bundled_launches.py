"""Take the launches of the suite that come with Crosscast from training tables.

``python -m benchmarks.bundled_launches TABLES`` keeps the middle launch of each kernel at three sizes, as
drivers compile it, with all counts: a line of JSON each. ``crosscast devices compare`` forecasts them.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from crosscast.comparison.devices import LAUNCHES
from crosscast.data.files import atomic_file
from crosscast.data.profiles import read_parquet
from crosscast.profile import Profile

_SIZES = {f"suite {size}": size for size in ("small", "medium", "large")}
"""Sizes of the suite by their names in training tables."""


def middle_launches(profiles: list[Profile]) -> list[Profile]:
    """The middle launch of each of the suite's kernels at a size."""
    launches: dict[tuple[str | None, str, str], list[Profile]] = {}
    for profile in profiles:
        if (size := _SIZES.get(profile.size or "")) is not None:
            launches.setdefault((profile.application, profile.kernel, size), []).append(
                replace(profile, size=size)
            )
    ordered = (sorted(each, key=lambda profile: profile.invocation) for each in launches.values())
    return [each[len(each) // 2] for each in ordered]


if __name__ == "__main__":
    chosen = middle_launches(read_parquet(Path(sys.argv[1]) / "profiles.parquet"))
    with atomic_file(LAUNCHES) as path:
        lines = (json.dumps(profile.to_dict(), separators=(",", ":")) for profile in chosen)
        path.write_text("".join(f"{line}\n" for line in lines))
    print(f"{len(chosen)} launches in {LAUNCHES}")
