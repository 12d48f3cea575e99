"""Launches in each timed region of the data published in 2018, as declared in a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

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
        Number of launches in a run.
    total
        Whether its time is the sum over all launches; else it is their mean.
    local
        Work-group size on the timed devices; 0 where it is as recorded.
    evidence
        Location of the evidence in the program.
    note
        Other work included in the time; empty if none.
    left_out
        Reason to exclude the time from training, as it is no time of a kernel; empty otherwise.
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
    """Read the regions by application, kernel and size: 104 cells."""
    text = Path(__file__).with_name("aiwc2018_regions.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    result = {}
    for name, entry in content["region"].items():
        application, _, kernel = name.partition(".")
        for number, size in enumerate(content["sizes"]):
            if entry["launches"][number]:
                result[application, kernel, size] = Region(
                    application,
                    kernel,
                    size,
                    entry["region"],
                    entry["rule"],
                    entry["launches"][number],
                    entry.get("total", False),
                    entry.get("local", (0, 0, 0, 0))[number],
                    entry["evidence"].strip(),
                    entry.get("note", ""),
                    entry.get("left_out", "").strip() if size in entry.get("sizes", content["sizes"]) else "",
                )
    return result
