"""Solo runs and bags of a dataset in words: how many there are, and what failed."""

from __future__ import annotations

from crosscast.report.numbers import plural
from crosscast.tables.corun.contents import CoRunContents, CoRunFailure
from crosscast.units import format_count

__all__ = ["contents_lines", "failure_lines"]


def contents_lines(contents: CoRunContents) -> list[str]:
    """A line for the solo runs of each device, and one for its bags of each size; none if there are none."""
    solos = [
        f"{solo.device}: {plural(solo.solos, 'solo run')}{_but([(solo.failed, 'failed')])}"
        for solo in contents.solos
    ]
    bags = [
        f"{bag.device}: {plural(bag.bags, 'bag')} of {bag.members}{_configurations(bag.configurations)}"
        f"{_but([(bag.not_fitting, 'did not fit'), (bag.failed, 'failed')])}"
        for bag in contents.bags
    ]
    return [*solos, *bags]


def failure_lines(contents: CoRunContents) -> list[str]:
    """A line for each application that failed, alone or in a bag."""
    return [f"{_place(failure)}: {failure.reason}" for failure in contents.failed]


def _place(failure: CoRunFailure) -> str:
    settings = "" if failure.configuration == "{}" else f" {failure.configuration}"
    where = f"{failure.application} {failure.size} on {failure.device}{settings}"
    if failure.bag is None:
        return f"{where}, alone"
    again = f", repeat {failure.repeat}" if failure.repeat else ""
    return f"{where}, in the bag {failure.bag}{again}"


def _configurations(number: int) -> str:
    return "" if number == 1 else f" in {format_count(number)} configurations"


def _but(parts: list[tuple[int, str]]) -> str:
    found = [f"{format_count(number)} {what}" for number, what in parts if number]
    return f", of which {' and '.join(found)}" if found else ""
