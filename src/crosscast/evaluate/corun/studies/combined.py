"""A published regressor with one combination of features for everything."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.predict.corun.model import CoRunPredictor
from crosscast.predict.corun.published.combinations import Combination
from crosscast.predict.corun.published.model import Published
from crosscast.tables.corun.view import CoRuns

__all__ = ["Combined"]


@dataclass(frozen=True)
class Combined:
    """A `CoRunModel` that is named after its features, too.

    Parameters
    ----------
    kind
        Kind of regressor; see `crosscast.predict.corun.published.table_6.KINDS`.
    combination
        Its features.
    """

    kind: str
    combination: Combination

    @property
    def name(self) -> str:
        """Its name in results."""
        return f"{self.kind} {self.combination.name}"

    def fit(self, co_runs: CoRuns, seed: int) -> CoRunPredictor:
        """Fit it; see `CoRunModel.fit`.

        Raises
        ------
        InputError
            If the regressor cannot be fitted to these bags.
        """
        return Published(self.kind, self.combination, self.combination).fit(co_runs, seed)
