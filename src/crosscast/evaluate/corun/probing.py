"""Bags of a new application that are measured before the others are predicted: which ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.evaluate.corun.probe_choice import chosen_probes
from crosscast.predict.corun.process.covariance import Sizes
from crosscast.predict.corun.process.model import Process
from crosscast.predict.corun.process.traits import Traits
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.view import CoRuns

__all__ = ["Probing", "probing_of"]


@dataclass(frozen=True, eq=False)
class Probing:
    """Chooses bags by what is known of others, whatever model then learns from them.

    Parameters
    ----------
    traits, sizes
        How applications become numbers, and the sizes of the covariance between these, both of bags without
        the new application.
    """

    traits: Traits
    sizes: Sizes

    def places(self, known: Sequence[Bag], new: Sequence[Bag], name: str, count: int) -> list[int]:
        """Places among the new bags of those to measure; see `chosen_probes`.

        Parameters
        ----------
        known
            Bags without the application.
        new
            Bags with it.
        name
            Name of the application.
        count
            How many bags with each of its inputs, at most.
        """
        of_new = np.arange(len(known) + len(new)) >= len(known)
        chosen = chosen_probes([*known, *new], of_new, name, count, self.traits, self.sizes)
        return [place - len(known) for place in chosen]


def probing_of(training: CoRuns, seed: int) -> Probing:
    """What chooses, fitted to bags without the new application.

    Raises
    ------
    InputError
        If there are too few bags with slowdowns.
    """
    found = Process(trees=False).fit(training, seed).slowdowns
    return Probing(found.traits, found.sizes)
