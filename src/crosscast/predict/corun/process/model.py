"""The model of co-running that is taken by default: slowdowns as a process, and all else from these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.corun.overlap import bag_times
from crosscast.predict.corun.prediction import CoRunPrediction
from crosscast.predict.corun.process.fit import Found, fit_slowdowns
from crosscast.predict.corun.process.fits import Fits, fit_fits
from crosscast.predict.corun.process.power import Power, fit_power
from crosscast.predict.corun.process.running import Running
from crosscast.predict.corun.process.slowdowns import SlowdownProcess
from crosscast.predict.state import kept_reals
from crosscast.predict.stored import arrays_of
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.solo import Solo
from crosscast.tables.corun.view import CoRuns

__all__ = ["Process", "ProcessPredictor"]


@dataclass(frozen=True)
class Process:
    """Slowdowns of members as a Gaussian process over a member and those beside it, for bags of any size.

    Parameters
    ----------
    trees
        Whether extra trees on the same traits stand beside it; predictions are the mean of both.
    found
        Sizes of the covariance, if they are known from a fit to more bags.
    """

    trees: bool = True
    found: Found | None = None

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "process" if self.trees else "process-alone"

    def fit(self, co_runs: CoRuns, seed: int) -> ProcessPredictor:
        """Fit it to bags in which no application failed; see `CoRunModel.fit`.

        Raises
        ------
        InputError
            If there are fewer than three bags with slowdowns.
        MissingExtraError
            If SciPy or scikit-learn is not installed.
        """
        sound = [bag for bag in co_runs.bags if not bag.failed and len(bag.members) > 1]
        slowed = [bag for bag in sound if all(member.slowdown for member in bag.members)]
        if len(slowed) < 3:
            raise InputError(
                f"{co_runs.label}: expected at least 3 bags with slowdowns to learn from, found {len(slowed)}"
            )
        # Imported here: predicting needs it not.
        from crosscast.predict.scikit import threadpool_limits

        # Threads of BLAS take longer to agree than these small matrices take.
        with threadpool_limits(1):
            slowdowns, found = fit_slowdowns(slowed, seed, trees=self.trees, found=self.found)
        made = ProcessPredictor(slowdowns, fit_fits(sound), fit_power(sound), 1.0, found)
        return replace(made, time_factor=_time_factor(made, slowed))

    def rehearsal(self, predictor: ProcessPredictor) -> Process:
        """The same with the sizes that were found, for fits to parts of the same bags."""
        return replace(self, found=predictor.found)


@dataclass(frozen=True, eq=False)
class ProcessPredictor:
    """A fitted process, with what tells whether bags fit and what power they draw.

    Parameters
    ----------
    slowdowns
        Predicts slowdowns.
    fits
        Predicts whether bags fit; ``None`` where nothing tells.
    power
        Predicts power; ``None`` where it was not measured.
    time_factor
        Time of bags over what slowdowns make of it.
    found
        Sizes for fits to parts of the same bags; ``None`` of one that was kept.
    """

    slowdowns: SlowdownProcess
    fits: Fits | None
    power: Power | None
    time_factor: float
    found: Found | None = None

    def predict(self, bags: Sequence[tuple[Solo, ...]]) -> CoRunPrediction:
        """Predict bags of any sizes; see `CoRunPredictor.predict`."""
        nothing = CoRunPrediction.nothing([len(bag) for bag in bags])
        if not bags:
            return nothing
        running = Running(self.slowdowns, bags)
        return CoRunPrediction(
            running.whole,
            self.times(bags, running.whole, running) * self.time_factor,
            nothing.power_w if self.power is None else self.power.watts(bags),
            nothing.fits if self.fits is None else self.fits.probability(bags),
        )

    def times(self, bags: Sequence[tuple[Solo, ...]], slowdown: Sequence[Reals], running: Running) -> Reals:
        """Times by the slowdowns of whole bags, and of what is left of them as members end.

        Parameters
        ----------
        bags
            The bags.
        slowdown
            Slowdowns in the whole bags, each of shape ``(members,)``.
        running
            Tells those of what is left.

        Returns
        -------
        array
            In seconds, of shape ``(b,)``; not a number where the time of a member alone is not known.
        """
        times = np.full(len(bags), np.nan)
        for members in sorted({len(bag) for bag in bags}):
            places = [
                place
                for place, bag in enumerate(bags)
                if len(bag) == members and all(solo.time_s for solo in bag)
            ]
            if places:
                alone = np.array(
                    [[solo.time_s for solo in bags[place]] for place in places], dtype=np.float64
                )
                whole = np.stack([slowdown[place] for place in places])
                times[places] = bag_times(alone, whole, partial(running.left, places)).time_s
        return times

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        parts = {"slowdowns": self.slowdowns, "fits": self.fits, "power": self.power}
        return {
            "time_factor": np.array([self.time_factor]),
            **{
                f"{name}.{each}": array
                for name, part in parts.items()
                if part is not None
                for each, array in part.state().items()
            },
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> ProcessPredictor:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        factor = kept_reals(state, "time_factor", 1)
        if len(factor) != 1 or factor[0] <= 0:
            raise InputError("model: time_factor: expected one number above 0, found others")
        fits, power = arrays_of(state, "fits"), arrays_of(state, "power")
        return cls(
            SlowdownProcess.from_state(arrays_of(state, "slowdowns")),
            Fits.from_state(fits) if fits else None,
            Power.from_state(power) if power else None,
            float(factor[0]),
        )


def _time_factor(made: ProcessPredictor, bags: Sequence[Bag]) -> float:
    """Measured times of bags over what their measured slowdowns make of them."""
    told = [bag for bag in bags if bag.time_s and all(solo.time_s for solo in bag.solos)]
    if not told:
        return 1.0
    solos = [bag.solos for bag in told]
    slowdown = [np.array([member.slowdown for member in bag.members], dtype=np.float64) for bag in told]
    through = made.times(solos, slowdown, Running(made.slowdowns, solos))
    return float(np.median(np.array([bag.time_s for bag in told]) / through))
