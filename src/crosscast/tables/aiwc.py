"""The published AIWC tool's CSV file of one kernel invocation."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from crosscast.errors import InputError
from crosscast.profile import Profile
from crosscast.tables.whole_file import whole_file

__all__ = ["render_aiwc", "write_aiwc"]

# The tool writes 6 significant digits until it comes to this metric, and 4 from then on.
_FIRST_WITH_4_DIGITS = "Unique Read/Write Ratio"


def render_aiwc(profile: Profile) -> str:
    """Content of the file: columns metric, category and count."""
    lines = ["metric,category,count"]
    digits = 6
    for metric, category, value in profile.published:
        if metric == _FIRST_WITH_4_DIGITS:
            digits = 4
        text = str(value) if isinstance(value, int) else f"{value:.{digits}g}"
        lines.append(f"{metric},{category},{text}")
    return "\n".join(lines) + "\n"


def write_aiwc(profile: Profile, folder: str | Path) -> Path:
    """Write ``aiwc_<kernel>_<n>.csv`` with the first free number; return its path.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    folder = Path(folder)
    names = (folder / f"aiwc_{profile.kernel}_{number}.csv" for number in count())
    path = next(name for name in names if not name.exists())
    try:
        with whole_file(path) as temporary:
            temporary.write_text(render_aiwc(profile), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out: cannot write {path} ({error.strerror})") from error
    return path
