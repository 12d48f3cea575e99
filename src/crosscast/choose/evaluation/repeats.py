"""Choices scored on other repeats than those that they were made by; the repeats are simulated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.choose.evaluation.cases import Cases, Integers
from crosscast.choose.evaluation.metrics import Metrics, tallies_of
from crosscast.choose.evaluation.repeat_noise import RepeatNoise
from crosscast.choose.limit import within_cap
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["REPEATS", "Repeats", "simulated_repeats", "split_half_oracle"]

REPEATS = 20
"""Repeats that are simulated."""


@dataclass(frozen=True, eq=False)
class Repeats:
    """Simulated repeats of all runs, `r` in each half.

    The data has no repeats of its own; how much these differ is estimated by `repeat_noise`. What was
    measured is a repeat too, as far from the truth as any other. So a repeat differs from it by the noise of
    both, as the halves do from each other.

    Parameters
    ----------
    time_s, power_w
        ``(2, r, n, c)`` Times and powers.
    """

    time_s: Reals
    power_w: Reals

    def scored(self, cases: Cases, numbers: Integers) -> Metrics:
        """Metrics of choices when the chosen configurations are run again, means over the repeats.

        Those within 1 % are the ones with a guard: limits lie exactly on measured points, so that without one
        noise alone fails every other choice of the oracle.

        Parameters
        ----------
        cases
            The ``m`` cases.
        numbers
            ``(m,)`` or ``(r, m)`` The configuration that is taken in each.
        """
        repeats = np.arange(self.time_s.shape[1])[:, None]
        time_s = self.time_s[1][repeats, cases.kernel, numbers]
        power_w = self.power_w[1][repeats, cases.kernel, numbers]
        tallies = tallies_of(cases, time_s, power_w, np.zeros(len(cases)))
        return Metrics.of(tallies.mean(axis=0))


def simulated_repeats(surfaces: Surfaces, noise: RepeatNoise, seed: int) -> Repeats:
    """Simulate two halves of `REPEATS` repeats each.

    Parameters
    ----------
    surfaces
        What was measured: ``n`` kernels, ``c`` configurations.
    noise
        How much repeats differ.
    seed
        Start of the random numbers.
    """
    rng = np.random.default_rng(seed)
    time_s = surfaces.time_s * np.exp(noise.time[:, None] * _apart(rng, surfaces))
    power_w = surfaces.power_w * np.exp(noise.power[:, None] * _apart(rng, surfaces))
    return Repeats(time_s, power_w)


def _apart(rng: np.random.Generator, surfaces: Surfaces) -> Reals:
    """``(2, r, n, c)`` Noise of both halves, less that of what was measured, which both have in common."""
    shape = (2, REPEATS, *surfaces.time_s.shape)
    halves: Reals = rng.standard_normal(shape) - rng.standard_normal(shape[1:])
    return halves


def split_half_oracle(cases: Cases, repeats: Repeats) -> Metrics:
    """How an oracle does that knows one repeat of all runs, and is scored on another one.

    The caps are those of the cases, so they lie on measured points. It takes the fastest configuration that
    keeps to the cap in the first repeat, or what needs the least power if none does.
    """
    numbers = []
    for time_s, power_w in zip(repeats.time_s[0], repeats.power_w[0], strict=True):
        power = power_w[cases.kernel]
        within = within_cap(power, cases.power_cap[:, None])
        fastest = np.argmin(np.where(within, time_s[cases.kernel], np.inf), axis=1)
        least = np.argmin(np.where(np.isfinite(power), power, np.inf), axis=1)
        numbers.append(np.where(within.any(axis=1), fastest, least))
    return repeats.scored(cases, np.array(numbers))
