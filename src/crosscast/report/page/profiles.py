"""Kiviat picture of the profiles of the application that is looked at closely."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crosscast.profile import Profile
from crosscast.report.kiviat import write_kiviat
from crosscast.report.numbers import plural
from crosscast.report.page.markup import Markup
from crosscast.report.page.pictures import picture, plain, written
from crosscast.report.page.subject import Subject
from crosscast.tables.library import pc
from crosscast.tables.profiles import from_row

__all__ = ["MOST_PROFILES", "profiles"]

MOST_PROFILES = 7
"""More have no colours of their own, and hide each other."""

_TITLE = 100
"""Characters for which its title has room."""


def profiles(subject: Subject) -> Markup:
    """The picture: each kernel at its largest size, as long as they can be told apart."""
    found = _profiles(subject)
    shown = found[:MOST_PROFILES]
    left = len(found) - len(shown)
    alternative = (
        f"Kiviat picture of the profiles of {plural(len(shown), 'kernel')} of {subject.application}: "
        + ", ".join(profile.kernel for profile in shown)
        + "."
    )
    caption = (
        "What the model was told: metrics of each kernel, here at its largest size, which depend on no "
        "device. Of a kernel that is launched more than once launch 0 is drawn; the model was told the means."
        + (f" The first {len(shown)} kernels by name; {left} more are not drawn." if left else "")
    )
    # Four names and no more are side by side in the title.
    longest = _TITLE // min(len(shown), 4)
    named = [replace(profile, kernel=plain(profile.kernel, longest)) for profile in shown]
    return picture(written(lambda path: write_kiviat(named, path)), alternative, caption)


def _profiles(subject: Subject) -> list[Profile]:
    """The first profile of each kernel at its largest size, with the size in its name."""
    names, table = subject.grid.profiles, subject.dataset.profiles
    of_application = table.filter(pc.equal(table.column("application"), subject.application)).to_pylist()
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(of_application, key=lambda row: row["invocation"]):
        first.setdefault((row["kernel"], row["size"]), row)
    return [
        replace(
            from_row(first[names.kernel[row], names.size[row]]),
            kernel=f"{names.kernel[row]} ({names.size[row]})",
        )
        for row in subject.largest
    ]
