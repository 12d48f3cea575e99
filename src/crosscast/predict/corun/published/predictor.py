"""Fitted predictors of paper 004: one for each size of bags, and what is made of slowdowns and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.corun.overlap import bag_times, even_slowdown, with_fewer
from crosscast.predict.corun.prediction import CoRunPrediction
from crosscast.predict.corun.published.features import value_of
from crosscast.predict.corun.published.size_predictor import SizePredictor
from crosscast.predict.state import kept_integers
from crosscast.predict.stored import arrays_of
from crosscast.tables.corun.solo import Solo

__all__ = ["PublishedCoRunPredictor"]


@dataclass(frozen=True, eq=False)
class PublishedCoRunPredictor:
    """One predictor a size (sections 5.1.3 and 8).

    Where the training bags of a size had slowdowns and no times, its times are made of slowdowns by
    `crosscast.predict.corun.overlap.bag_times`, and those of fewer members are predicted, too, or taken as
    `with_fewer` says if there is no predictor of their size. Where they had times and no slowdowns,
    slowdowns are those of `even_slowdown`.

    Parameters
    ----------
    sizes
        Predictors by number of members.
    """

    sizes: Mapping[int, SizePredictor]

    def predict(self, bags: Sequence[tuple[Solo, ...]]) -> CoRunPrediction:
        """Predict bags of sizes that it was fitted to; see `CoRunPredictor.predict`.

        Raises
        ------
        InputError
            If a bag is of another size.
        """
        nothing = CoRunPrediction.nothing([len(bag) for bag in bags])
        slowdown, time_s, power_w = list(nothing.slowdown), nothing.time_s, nothing.power_w
        for members in sorted({len(bag) for bag in bags}):
            predictor = self.of_size(members)
            places = [place for place, bag in enumerate(bags) if len(bag) == members]
            asked = [bags[place] for place in places]
            found = self._completed(predictor.predict(asked), asked)
            for place, each in zip(places, found.get("slowdown", ()), strict=False):
                slowdown[place] = each
            time_s[places] = found.get("time_s", np.nan)
            power_w[places] = found.get("power_w", np.nan)
        return CoRunPrediction(tuple(slowdown), time_s, power_w, nothing.fits)

    def of_size(self, members: int) -> SizePredictor:
        """The predictor of bags of so many members.

        Raises
        ------
        InputError
            If there is none.
        """
        if members not in self.sizes:
            known = ", ".join(str(size) for size in self.sizes)
            raise InputError(
                f"bag: expected as many members as in bags that the model was trained on ({known}), "
                f"found {members}"
            )
        return self.sizes[members]

    @property
    def dropped(self) -> Mapping[int, tuple[str, ...]]:
        """By size, the features that it was to learn from, and that no training member had."""
        return {members: each.columns.dropped for members, each in self.sizes.items()}

    def _completed(self, found: dict[str, Reals], bags: Sequence[tuple[Solo, ...]]) -> dict[str, Reals]:
        if ("slowdown" in found) == ("time_s" in found):
            return found
        alone = np.array([[value_of(solo, "GPU_time") for solo in bag] for bag in bags])
        if "time_s" in found:
            every = even_slowdown(alone, found["time_s"])
            return {**found, "slowdown": np.repeat(every[:, None], alone.shape[1], axis=1)}
        slowdown = found["slowdown"]

        def slowdowns_left(running: Flags) -> Reals:
            left = running.sum(axis=1)
            result = with_fewer(slowdown, running.shape[1], left[:, None])
            for members in {int(count) for count in left} & set(self.sizes):
                rows = np.flatnonzero(left == members).tolist()
                parts = [
                    tuple(solo for solo, runs in zip(bags[row], running[row], strict=True) if runs)
                    for row in rows
                ]
                predicted = self.sizes[members].predict(parts)
                if "slowdown" in predicted:
                    fewer = result[rows]
                    fewer[running[rows]] = predicted["slowdown"].ravel()
                    result[rows] = fewer
            return result

        return {**found, "time_s": bag_times(alone, slowdown, slowdowns_left).time_s}

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "sizes": np.array(sorted(self.sizes)),
            **{
                f"{size}.{name}": array
                for size, each in self.sizes.items()
                for name, array in each.state().items()
            },
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> PublishedCoRunPredictor:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        sizes = kept_integers(state, "sizes", 1, (2, 1 << 16)).tolist()
        made = {size: SizePredictor.from_state(arrays_of(state, str(size))) for size in sizes}
        if not made or any(each.members != size for size, each in made.items()):
            raise InputError(f"model: sizes: expected those of the predictors, found {sizes}")
        return cls(made)
