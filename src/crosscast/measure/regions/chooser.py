"""What a region asks for its configuration, and tells how that went."""

from __future__ import annotations

from typing import Protocol

from crosscast.configuration import Configuration
from crosscast.measure.regions.key import RegionKey
from crosscast.measure.regions.run import RegionRun

__all__ = ["Chooser"]


class Chooser(Protocol):
    """Chooses the configuration of each run, from what it was told of those before.

    Both methods may be called in several threads at once. What they raise goes to the program.
    """

    def configuration(self, key: RegionKey) -> Configuration | None:
        """Choose what to run a region on; none is what the program does by default.

        Called when a region is entered, before its time begins.
        """

    def observed(self, key: RegionKey, run: RegionRun) -> None:
        """Take note of a run; called when it has ended, unless it failed.

        Without `RegionRun.energy_j` no sensor works, which the region has said already. With it and without
        `RegionRun.power_w` the run was too short to tell its power: another one in the same configuration
        brings it nearer.
        """
