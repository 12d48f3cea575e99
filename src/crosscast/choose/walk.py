"""How a method settles on a configuration: the first one that it takes, and changes after it has run."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, Protocol

from crosscast.arrays import Flags
from crosscast.predict.configuration.surfaces import Observed, Surfaces

__all__ = ["Chooser", "Method", "Settled", "Walk", "settle"]

Walk = Generator[int, Observed, None]
"""Yields the number of the configuration to take next, and is sent the run there; it ends when it stays.

A run that is sent is an `Observed` of length 1."""


class Chooser(Protocol):
    """A method that has learned, ready for kernels that it has not seen."""

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        """Settle on a configuration for one kernel under one cap.

        Parameters
        ----------
        observed
            The kernel's runs at the sample configurations.
        power_cap
            Most power that it may take, in watts.
        available
            ``(c,)`` Configurations that may be taken; those of `observed` are among them.
        budget
            Most changes of configuration after the first one.
        """
        ...


class Method(Protocol):
    """A way to choose configurations, to be compared with others."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Learn from training kernels.

        Parameters
        ----------
        surfaces
            The training kernels.
        samples
            The configurations at which new kernels will have been run.
        seed
            Start of all random numbers.

        Raises
        ------
        InputError
            If there is too little to learn from.
        """
        ...


class Settled(NamedTuple):
    """Where a walk ended.

    Parameters
    ----------
    number
        The configuration.
    changes
        How often the configuration was changed after the first: the extra runs.
    """

    number: int
    changes: int


def settle(walk: Walk, run: Callable[[int], Observed], budget: int) -> Settled:
    """Take a walk.

    Parameters
    ----------
    walk
        The walk.
    run
        Runs the kernel at a configuration.
    budget
        Most changes of configuration after the first.
    """
    number = next(walk)
    for changes in range(budget):
        try:
            number = walk.send(run(number))
        except StopIteration:
            return Settled(number, changes)
    walk.close()
    return Settled(number, budget)
