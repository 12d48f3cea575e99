"""How wrong a model of relative vectors was on groups that it had not seen, and how far intervals reach so.

The groups, applications as a rule, are what is taken as exchangeable: a new application is to these as they
are to each other. Within a group the errors hang together, so that each group weighs the same, however many
runs it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.group_conformal import group_reach, group_weights, most_level
from crosscast.predict.state import kept_integers, kept_names, kept_reals

__all__ = ["HeldOut"]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Errors of ``n`` vectors of ``d`` devices, each predicted by a model fitted without its group.

    Parameters
    ----------
    log_error
        Logarithm of the predicted over the true entry, both relative to the slowest device of their vector,
        of shape ``(n, d)``.
    group
        Number of the group of each, in ``groups``, of shape ``(n,)``.
    source
        Number of the device that each was counted on, in ``sources``, of shape ``(n,)``.
    groups, sources
        Names; each of them has a vector.
    """

    log_error: Reals
    group: Integers
    source: Integers
    groups: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def weights(self) -> Reals:
        """Weight of each vector: together 1, and the same for each group, of shape ``(n,)``."""
        return group_weights(self.group)

    @property
    def most_level(self) -> float:
        """The highest probability that an interval can be given: ``g / (g + 1)`` with ``g`` groups."""
        return most_level(len(self.groups))

    def of_source(self, source: str) -> HeldOut:
        """The errors of what was counted on a device; all of them if there are none."""
        if source not in self.sources:
            return self
        own = self.source == self.sources.index(source)
        present, group = np.unique(self.group[own], return_inverse=True)
        return HeldOut(
            self.log_error[own],
            group.astype(np.int64),
            np.zeros(int(own.sum()), np.int64),
            tuple(self.groups[number] for number in present),
            (source,),
        )

    def without(self, group: int) -> HeldOut:
        """The errors of the other groups."""
        kept = self.group != group
        return HeldOut(
            self.log_error[kept],
            self.group[kept] - (self.group[kept] > group),
            self.source[kept],
            tuple(name for number, name in enumerate(self.groups) if number != group),
            self.sources,
        )

    def relative_errors(self, base: int | None) -> Reals:
        """Errors of times over that on a device, of shape ``(n, d)``.

        Parameters
        ----------
        base
            Place of the device; ``None`` for the slowest, which may be another one in truth than predicted.
        """
        if base is None:
            return self.log_error
        errors: Reals = self.log_error - self.log_error[:, [base]]
        return errors

    def reach(self, level: float, base: int | None) -> Reals:
        """How far intervals reach to both sides, in logarithms, of shape ``(d,)``.

        As `crosscast.predict.group_conformal.group_reach` says, of absolute errors.

        Parameters
        ----------
        level
            The probability; one above `most_level` gives the largest error.
        base
            Place of the device that times are relative to; ``None`` for the slowest.
        """
        return group_reach(np.abs(self.relative_errors(base)), self.group, level)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "log_error": self.log_error,
            "group": self.group,
            "source": self.source,
            "groups": np.array(self.groups, dtype=np.str_),
            "sources": np.array(self.sources, dtype=np.str_),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> HeldOut:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        groups, sources = kept_names(state, "groups"), kept_names(state, "sources")
        found = cls(
            kept_reals(state, "log_error", 2),
            kept_integers(state, "group", 1, (0, len(groups))),
            kept_integers(state, "source", 1, (0, len(sources))),
            groups,
            sources,
        )
        n = len(found.log_error)
        if not n or len(found.group) != n or len(found.source) != n:
            raise InputError(
                f"model: held-out errors: expected a group and a source for each of them, found {n} errors, "
                f"{len(found.group)} groups and {len(found.source)} sources"
            )
        for name, numbers, count in (
            ("group", found.group, len(groups)),
            ("source", found.source, len(sources)),
        ):
            if len(np.unique(numbers)) < count:
                raise InputError(f"model: {name}: expected errors of each of {count} {name}s, found fewer")
        return found
