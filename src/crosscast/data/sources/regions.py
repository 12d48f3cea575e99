"""What the published times of 2018 are times of: the launches of each region, as declared."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

RULES = ("same", "listed", "traversal", "levels", "transform")


@dataclass(frozen=True)
class Region:
    """A region of a program at a size.

    Parameters
    ----------
    application, kernel, size
        The published cell.
    region
        Name of the region in the program.
    rule
        How its launches follow from the first one: one of `RULES`.
    launches
        How many launches a run has.
    total
        Whether its time is of all launches together; else it is their mean.
    local
        Work-group of the devices that were timed; 0 where it is as recorded.
    evidence
        Where in the program it is said.
    note
        What else is in the time; empty if nothing is.
    left_out
        Why it is no time of a kernel, and nothing is trained on it; empty if it is one.
    """

    application: str
    kernel: str
    size: str
    region: str
    rule: str
    launches: int
    total: bool
    local: int
    evidence: str
    note: str
    left_out: str


@cache
def regions() -> Mapping[tuple[str, str, str], Region]:
    """The regions by application, kernel and size: 104 cells."""
    text = resources.files(__package__).joinpath("aiwc2018_regions.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    found = {}
    for name, told in content["region"].items():
        application, _, kernel = name.partition(".")
        for number, size in enumerate(content["sizes"]):
            if told["launches"][number]:
                found[application, kernel, size] = Region(
                    application,
                    kernel,
                    size,
                    told["region"],
                    told["rule"],
                    told["launches"][number],
                    told.get("total", False),
                    told.get("local", (0, 0, 0, 0))[number],
                    told["evidence"].strip(),
                    told.get("note", ""),
                    told.get("left_out", "").strip(),
                )
    return found
