"""What a model predicts of bags of jobs: each combination of kinds is asked once, many at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.choose.pairing.jobs import Jobs
from crosscast.errors import InputError
from crosscast.predict.corun.artefact import TrainedCoRunModel
from crosscast.predict.corun.left_out import LeftOut

__all__ = ["KindPredictions"]


@dataclass(frozen=True, eq=False)
class KindPredictions:
    """Predictions of bags, each named by ascending places of its jobs.

    Parameters
    ----------
    jobs
        The jobs.
    model
        What predicts.
    """

    jobs: Jobs
    model: TrainedCoRunModel
    _known: dict[int, _Known] = field(default_factory=dict)

    def slowdowns(self, bags: Integers) -> tuple[Reals, Reals]:
        """Predicted slowdowns of ``(b, n)`` members, and the probability that each bag fits, ``(b,)``.

        In bags of more than two, of which the model has seen none as large, slowdowns are at least what those
        of the pairs add up to: as where jobs take turns.

        Raises
        ------
        InputError
            If the model does not tell slowdowns, or nothing of bags of that size.
        """
        members = bags.shape[1]
        bases = len(self.jobs) ** np.arange(members)
        codes = self.jobs.kind[bags] @ bases
        known = self._known.get(members) or _Known(
            np.empty(0, dtype=np.int64), np.empty((0, members)), np.empty(0)
        )
        new = np.unique(codes[~known.has(codes)])
        if len(new):
            known = known.and_others(self._asked(new, new[:, None] // bases % len(self.jobs)))
            self._known[members] = known
        rows = np.searchsorted(known.codes, codes)
        return self._at_least_added(bags, known.slowdown[rows]), known.fits[rows]

    def added(self, members: int) -> bool:
        """Whether slowdowns of bags of so many are at least those that pairs add up to."""
        return members > 2 and members not in self.model.card.sizes

    def known(self, bags: Integers) -> Flags:
        """Whether all applications of each bag are among those of the training, of shape ``(b,)``."""
        return np.asarray(self._trained[bags].all(axis=1))

    def errors(self, *, known: bool) -> LeftOut:
        """Errors of slowdowns; see `crosscast.predict.corun.artefact.TrainedCoRunModel.errors_of`.

        Raises
        ------
        InputError
            If the model does not know them.
        """
        errors: Mapping[str, LeftOut] = self.model.errors_of(known=known)
        if "slowdown" not in errors:
            raise InputError(f"{self.model.folder}: expected a model with errors of slowdowns, found another")
        return errors["slowdown"]

    @cached_property
    def _trained(self) -> Flags:
        return np.array([self.model.knows((solo,)) for solo in self.jobs.solos])

    @cached_property
    def _solo_places(self) -> Integers:
        """For each kind, the place of a job of it."""
        return np.unique(self.jobs.kind, return_index=True)[1]

    def _asked(self, codes: Integers, kinds: Integers) -> _Known:
        solos = [self.jobs.solos[place] for place in self._solo_places.tolist()]
        found = self.model.predict([tuple(solos[kind] for kind in row) for row in kinds.tolist()])
        slowdown = np.concatenate(found.slowdown).reshape(kinds.shape)
        if np.isnan(slowdown).any():
            raise InputError(f"{self.model.folder}: expected a model that predicts slowdowns, found another")
        return _Known(codes, slowdown, found.fits)

    def _at_least_added(self, bags: Integers, slow: Reals) -> Reals:
        if not self.added(bags.shape[1]):
            return slow
        added = np.ones_like(slow)
        for one, other in combinations(range(bags.shape[1]), 2):
            pair, _ = self.slowdowns(bags[:, [one, other]])
            added[:, [one, other]] += np.maximum(pair - 1.0, 0.0)
        return np.maximum(slow, added)


@dataclass(frozen=True, eq=False)
class _Known:
    """Predictions of bags of one size by ascending codes of their kinds."""

    codes: Integers
    slowdown: Reals
    fits: Reals

    def has(self, codes: Integers) -> Flags:
        """Whether each code is among them."""
        if len(self.codes) == 0:
            return np.zeros(len(codes), dtype=np.bool_)
        rows = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.asarray(self.codes[rows] == codes)

    def and_others(self, others: _Known) -> _Known:
        """The same with those of others."""
        codes = np.concatenate([self.codes, others.codes])
        order = np.argsort(codes)
        return _Known(
            codes[order],
            np.concatenate([self.slowdown, others.slowdown])[order],
            np.concatenate([self.fits, others.fits])[order],
        )
