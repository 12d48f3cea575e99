"""The models of paper 004 for time and power of applications that share a device."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crosscast.errors import InputError
from crosscast.predict.corun.published.combinations import PERFORMANCE, POWER, Combination
from crosscast.predict.corun.published.features import other_features, unknown_features
from crosscast.predict.corun.published.predictor import PublishedCoRunPredictor
from crosscast.predict.corun.published.table_6 import KINDS
from crosscast.predict.corun.published.training import Recipe, fit_size
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.view import CoRuns

__all__ = ["Published"]


@dataclass(frozen=True)
class Published:
    """A regressor of table 6 for each size of bags, and for each of bag time, power and slowdown.

    The paper predicts bag time and power. Slowdowns, which are all that other data have, are predicted from
    the features of times, those of the member itself first.

    Parameters
    ----------
    kind
        Kind of regressor; see `crosscast.predict.corun.published.table_6.KINDS`.
    performance, power
        Features that times, and power, are predicted from.
    permuted
        Whether training bags of two and three are put in every order, as the paper permutes benchmarks
        (section 5.2). What is predicted is always in one order, so that it does not depend on that of the
        bag. On times of pairs that follow from gavel's V100, all kinds but the perceptron
        err less by it, if little.
    others
        Whether to take all other features of the solo runs, too, which is not as published. They are taken
        in any case where no training member has any feature of a combination: else there were no model.
    """

    kind: str
    performance: Combination = PERFORMANCE
    power: Combination = POWER
    permuted: bool = True
    others: bool = False

    def __post_init__(self) -> None:
        """Check the kind, and that the features are known before a bag runs."""
        if self.kind not in KINDS:
            raise InputError(f"model: expected one of {', '.join(KINDS)}, found {self.kind!r}")
        for combination in (self.performance, self.power):
            if combination.concurrent:
                raise InputError(
                    f"{combination.name}: expected features of applications alone, found "
                    f"{', '.join(combination.concurrent)}, which only a run of the bag itself tells"
                )

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return f"published-{self.kind}"

    def fit(self, co_runs: CoRuns, seed: int) -> PublishedCoRunPredictor:
        """Fit it to bags in which no application failed; see `CoRunModel.fit`.

        Raises
        ------
        InputError
            If there is no bag of two or more of which a slowdown, a time or a power is known, or nothing is
            known of the members.
        MissingExtraError
            If scikit-learn is not installed.
        """
        by_size: dict[int, list[Bag]] = {}
        for bag in co_runs.bags:
            if not bag.failed and len(bag.members) > 1:
                by_size.setdefault(len(bag.members), []).append(bag)
        fitted = {
            members: fit_size(self._recipe(bags), bags, seed) for members, bags in sorted(by_size.items())
        }
        sizes = {members: each for members, each in fitted.items() if each is not None}
        if not sizes:
            raise InputError(
                f"{co_runs.label}: expected bags with a slowdown, a time or a power to learn from, found none"
            )
        return PublishedCoRunPredictor(sizes)

    def _recipe(self, bags: list[Bag]) -> Recipe:
        solos = [bag.solos for bag in bags]

        def complete(combination: Combination) -> Combination:
            features = combination.features
            if not self.others and len(unknown_features(features, solos)) < len(features):
                return combination
            more = tuple(name for name in other_features(solos) if name not in features)
            return replace(combination, features=(*features, *more))

        return Recipe(self.kind, complete(self.performance), complete(self.power), self.permuted)
