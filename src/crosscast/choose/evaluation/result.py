"""How one method did on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.choose.evaluation.cases import Integers
from crosscast.choose.evaluation.metrics import Metrics
from crosscast.choose.limit import GUARD
from crosscast.evaluate.confidence import Confidence

__all__ = ["ChoiceResult", "Curve", "OnRepeats", "Regret"]


@dataclass(frozen=True)
class Curve:
    """Metrics by the number of changes that a method may make after its first configuration.

    Parameters
    ----------
    budgets
        The numbers, rising.
    metrics
        The metrics with each.
    """

    budgets: tuple[int, ...]
    metrics: tuple[Metrics, ...]


@dataclass(frozen=True)
class Regret:
    """Share of the oracle's performance that is lost under the limit: weighted percentiles over the cases."""

    median: float
    percentile_90: float
    percentile_95: float

    @classmethod
    def of(cls, regret: Reals, weights: Reals) -> Regret | None:
        """Percentiles; ``None`` if there is nothing.

        Parameters
        ----------
        regret, weights
            ``(m,)`` What is lost, and how much that counts.
        """
        if not regret.size:
            return None
        found = np.quantile(regret, [0.5, 0.9, 0.95], weights=weights, method="inverted_cdf")
        return cls(*found.tolist())


@dataclass(frozen=True)
class OnRepeats:
    """Metrics on repeats other than those that the choices were made by, which are simulated.

    Parameters
    ----------
    strict
        Share of the cases of which the power is within the cap in another repeat, and the performance in
        those.
    tolerated
        Share of the cases of which the power is at most 1 % above the cap in another repeat, and the
        performance in those.
    told_less
        The metrics, without tolerance, when the method was told a cap lower by 1 %.
    """

    strict: tuple[float, float | None]
    tolerated: tuple[float, float | None]
    told_less: Metrics


@dataclass(frozen=True, eq=False)
class ChoiceResult:
    """How one method did on one machine.

    Parameters
    ----------
    method
        Its name.
    protocol
        What was left out.
    budget
        Most changes after the first configuration; ``None`` if there was no limit.
    confidence
        Probability with which the method meant to keep to the caps, if it says so.
    baseline
        Whether other methods are compared with it.
    metrics
        The metrics.
    programs
        Those of each program, by name.
    inputs
        Those of each program at each size, by both names.
    above
        Programs of which the violations exceed what `confidence` leaves; none without it.
    curve
        The metrics by the number of changes.
    regret
        What is lost; ``None`` if no case is under the limit.
    on_repeats
        The metrics on other repeats; ``None`` where it is not known how much repeats differ.
    sure
        Intervals of the metrics, and differences from the best baseline.
    chosen, changes
        ``(m,)`` For each case the configuration where it settled, and the changes until there.
    """

    method: str
    protocol: str
    budget: int | None
    confidence: float | None
    baseline: bool
    metrics: Metrics
    programs: Mapping[str, Metrics]
    inputs: Mapping[str, Metrics]
    above: tuple[str, ...]
    curve: Curve
    regret: Regret | None
    on_repeats: OnRepeats | None
    sure: Confidence
    chosen: Integers
    changes: Integers

    def to_dict(self) -> dict[str, Any]:
        """Everything but cases, as an object of JSON: what is not known is null."""
        return {
            "method": self.method,
            "protocol": self.protocol,
            "budget": self.budget,
            **asdict(self.metrics),
            "confidence": self.confidence,
            "programs_above": list(self.above),
            "baseline": self.baseline,
            **self.sure.to_dict(),
            "regret": None if self.regret is None else asdict(self.regret),
            "on_simulated_repeats": None if self.on_repeats is None else _listed(self.on_repeats),
            "curve": [
                {"budget": budget, **asdict(metrics)}
                for budget, metrics in zip(self.curve.budgets, self.curve.metrics, strict=True)
            ],
            "programs": {name: asdict(metrics) for name, metrics in self.programs.items()},
            "inputs": {name: asdict(metrics) for name, metrics in self.inputs.items()},
        }


def _listed(found: OnRepeats) -> dict[str, Any]:
    names = ("under_limit_share", "under_performance", "score")
    return {
        "strict": dict(zip(names[:2], found.strict, strict=True)),
        "tolerated": {"tolerance": GUARD} | dict(zip(names[:2], found.tolerated, strict=True)),
        "told_less": {"guard": GUARD} | {name: getattr(found.told_less, name) for name in names},
    }
