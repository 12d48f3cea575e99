"""What slowdowns may turn out to be: errors of a model on what was left out, drawn together for a bag."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.predict.corun.left_out import LeftOut

__all__ = ["ErrorBags"]


@dataclass(frozen=True, eq=False)
class ErrorBags:
    """Errors of ``b`` bags that were left out.

    Members of a bag err together (one that slows down more than predicted slows the other down), so that
    errors are drawn as they were found: those of one bag.

    Parameters
    ----------
    relative
        Errors of members, as logarithms of the predicted over the true slowdown, relative to their spread
        (`crosscast.predict.corun.left_out.LeftOut.spread`), of shape ``(b, most members)``.
    members
        How many of them each bag has, of shape ``(b,)``.
    """

    relative: Reals
    members: Integers

    @classmethod
    def of(cls, errors: LeftOut) -> ErrorBags:
        """Errors of slowdowns by their bags; each is a bag of its own where the bags are not known."""
        own = np.arange(len(errors.log_error)) if errors.bag is None else errors.bag
        order = np.lexsort((own, errors.group))
        group, bag = errors.group[order], own[order]
        new = np.append(True, (np.diff(group) != 0) | (np.diff(bag) != 0))
        number = np.cumsum(new) - 1
        starts = np.flatnonzero(new)
        place = np.arange(len(order)) - starts[number]
        known = np.zeros_like(errors.log_error) if errors.log_value is None else errors.log_value
        relative = errors.log_error / errors.spread(known)
        padded = np.zeros((len(starts), int(place.max()) + 1))
        padded[number, place] = relative[order]
        return cls(padded, np.bincount(number))

    def drawn(self, members: int, count: int, seed: int) -> Reals:
        """Relative errors of bags at random, for bags of so many members.

        All bags that are compared are given the same draws, so that none is taken because it was lucky. Each
        draw is there a second time with its members in the reverse order: two members are treated alike.
        Bags of more members than the one that is drawn take its errors from the start again.

        Returns
        -------
        array
            Of shape ``(2 * count, members)``.
        """
        random = np.random.default_rng(seed)
        chosen = random.integers(len(self.members), size=count)
        there = np.arange(self.relative.shape[1]) < self.members[chosen][:, None]
        order = np.argsort(np.where(there, random.random(there.shape), np.inf), axis=1)
        place = np.arange(members) % self.members[chosen][:, None]
        shuffled = np.take_along_axis(self.relative[chosen], order, axis=1)
        found = np.take_along_axis(shuffled, place, axis=1)
        return np.concatenate([found, found[:, ::-1]])
