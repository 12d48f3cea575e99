"""Metrics of choices under power caps: those of the published table, and a score that combines them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.decide import GUARD, Cases, Method, by_input
from crosscast.evaluation.resampling import Confidence, Scored, confidences
from crosscast.prediction.configuration import Surfaces
from crosscast.prediction.configuration.choice import within_cap


@dataclass(frozen=True)
class ChoiceMetrics:
    """Metrics of choices, as fractions; ``None`` where undefined (Bailey et al. 2014, table III).

    A case is under the limit if the measured power keeps to the cap, else over it. Performance and power are
    relative to the oracle's. Cases are weighted as in `cases_of`, programs equally.
    """

    under_limit_share: float | None = None  # Share of the cases that are under the limit
    # Performance and power relative to the oracle's, mean over the cases under the limit
    under_performance: float | None = None
    under_power: float | None = None
    over_power: float | None = None  # Likewise over the cases over the limit
    over_performance: float | None = None
    # Mean of performance relative to the oracle over all cases, with those over the limit counting 0: the
    # share under the limit times the performance there
    score: float | None = None
    extra_runs: float | None = None  # Changes of configuration after the first one, mean
    violations: float | None = None  # Share of the cases that are over the limit
    # Share of the cases that are at most 1 % above the cap, and the performance there, which may be more than
    # the oracle's
    under_limit_share_within_1pct: float | None = None
    under_performance_within_1pct: float | None = None

    @classmethod
    def of(cls, sums: Reals) -> ChoiceMetrics:
        """Metrics of sums of shape ``(p, 9)``, with all programs weighing the same."""
        values = metric_values(sums, np.ones((1, len(sums))))
        return cls(
            **{name: float(each[0]) if np.isfinite(each[0]) else None for name, each in values.items()}
        )


METRICS = tuple(field.name for field in fields(ChoiceMetrics))
"""Names of all metrics."""

BETTER: Mapping[str, int] = MappingProxyType(
    {
        "under_limit_share": 1,
        "under_performance": 1,
        "over_power": -1,
        "score": 1,
        "extra_runs": -1,
        "violations": -1,
        "under_limit_share_within_1pct": 1,
        "under_performance_within_1pct": 1,
    }
)
"""Whether more (1) or less (-1) is better; power under the limit and performance over it have no sign."""


def program_sums(cases: Cases, time_s: Reals, power_w: Reals, changes: Reals | Integers) -> Reals:
    """Weighted sums over the cases of each program, from which metrics follow, ``(..., p, 9)``."""
    performance = cases.oracle_time_s / time_s
    power = power_w / cases.power_cap
    under = within_cap(power_w, cases.power_cap)
    close = within_cap(power_w, cases.power_cap, GUARD)
    columns = [
        under,
        np.where(under, performance, 0.0),
        np.where(under, power, 0.0),
        ~under,
        np.where(under, 0.0, power),
        np.where(under, 0.0, performance),
        np.broadcast_to(changes, under.shape),
        close,
        np.where(close, performance, 0.0),
    ]
    return cases.within_programs @ np.stack([column.astype(np.float64) for column in columns], -1)


def metric_values(of_programs: Reals, weights: Reals) -> Mapping[str, Reals]:
    """Metrics with the programs weighted in ``b`` ways."""
    sums = weights @ of_programs
    under, performance, power, over, over_power, over_performance, changes, close, close_performance = sums.T
    total = weights.sum(axis=1)
    # Weights of cases may add up to a little more than 1.
    under_share, over_share, close_share = (np.minimum(each / total, 1.0) for each in (under, over, close))
    return {
        "under_limit_share": under_share,
        "under_performance": _over(performance, under),
        "under_power": _over(power, under),
        "over_power": _over(over_power, over),
        "over_performance": _over(over_performance, over),
        "score": performance / total,
        "extra_runs": changes / total,
        "violations": over_share,
        "under_limit_share_within_1pct": close_share,
        "under_performance_within_1pct": _over(close_performance, close),
    }


def _over(sums: Reals, weights: Reals) -> Reals:
    values = np.full(sums.shape, np.nan)
    np.divide(sums, weights, out=values, where=weights > 0)
    return values


_LEAST = 5
"""Least number of differences in an estimate."""

_NORMAL = 1.482602218505602
"""Standard deviation of a normal distribution over its median absolute deviation."""


class RepeatNoise(NamedTuple):
    """Standard deviation of the logarithm from repeat to repeat, of each of `n` kernels."""

    time: Reals  # `(n,)` That of time and of power
    power: Reals


def repeat_noise(surfaces: Surfaces) -> RepeatNoise | None:
    """Estimate noise by the deviation of neighbouring configurations along a knob from a line, in logarithms.

    Where the surface is linear these are noise alone, and their median absolute value is robust to few bends.
    The least over the knobs is taken; a surface that is curved along all knobs gives too high an estimate.
    """
    space, count = surfaces.space, len(surfaces.kernels)
    logs = np.log(np.concatenate([surfaces.time_s, surfaces.power_w]))
    least = np.full(2 * count, np.inf)
    for column, knob in enumerate(space.knobs):
        lines: dict[object, list[int]] = {}
        for number, each in enumerate(space.configurations):
            if knob in each.settings:
                others = tuple(setting for setting in each.settings.items() if setting[0] != knob)
                lines.setdefault((each.device, others), []).append(number)
        # Configurations that follow each other along the knob.
        triples = [line[start : start + 3] for line in lines.values() for start in range(len(line) - 2)]
        first, middle, last = np.array(triples, np.int64).reshape(-1, 3).T
        positions = space.matrix[:, column]
        share = (positions[last] - positions[middle]) / (positions[last] - positions[first])
        from_line = logs[:, middle] - share * logs[:, first] - (1 - share) * logs[:, last]
        scaled = np.abs(from_line) / np.sqrt(1 + share**2 + (1 - share) ** 2)
        for row, values in enumerate(scaled):
            known = values[np.isfinite(values)]
            if len(known) >= _LEAST:
                least[row] = min(least[row], _NORMAL * np.median(known))
    halves = [least[:count], least[count:]]
    known = [each[np.isfinite(each)] for each in halves]
    if not all(each.size for each in known):
        return None
    filled = (np.where(np.isfinite(e), e, np.median(k)) for e, k in zip(halves, known, strict=True))
    return RepeatNoise(*filled)


REPEATS = 20
"""Simulated repeats in each half."""


class Repeats(NamedTuple):
    """Simulated repeats of all runs, `r` in each half, for data without repeats.

    A measurement has the same noise as a repeat, so a repeat differs from it by the noise of both.
    """

    time_s: Reals  # `(2, r, n, c)` Times and powers
    power_w: Reals

    def scored(self, cases: Cases, numbers: Integers) -> ChoiceMetrics:
        """Metrics of choices when the chosen configurations are run again, means over the repeats.

        Limits lie on measured points: without a guard noise alone fails every other choice of the oracle.
        """
        repeats = np.arange(self.time_s.shape[1])[:, None]
        time_s = self.time_s[1][repeats, cases.kernel, numbers]
        power_w = self.power_w[1][repeats, cases.kernel, numbers]
        sums = program_sums(cases, time_s, power_w, np.zeros(len(cases)))
        return ChoiceMetrics.of(sums.mean(axis=0))


def simulated_repeats(surfaces: Surfaces, noise: RepeatNoise, seed: int) -> Repeats:
    """Simulate two halves of `REPEATS` repeats each."""
    rng, shape = np.random.default_rng(seed), (2, REPEATS, *surfaces.time_s.shape)
    repeats = []
    for values, deviation in ((surfaces.time_s, noise.time), (surfaces.power_w, noise.power)):
        # Noise of both halves, less that of the measurement, which both have in common.
        noise_of_both = rng.standard_normal(shape) - rng.standard_normal(shape[1:])
        repeats.append(values * np.exp(deviation[:, None] * noise_of_both))
    return Repeats(*repeats)


def split_half_oracle(cases: Cases, repeats: Repeats) -> ChoiceMetrics:
    """Metrics of an oracle that knows one repeat of all runs, scored on another one."""
    numbers = []
    for time_s, power_w in zip(repeats.time_s[0], repeats.power_w[0], strict=True):
        power = power_w[cases.kernel]
        within = within_cap(power, cases.power_cap[:, None])
        fastest = np.argmin(np.where(within, time_s[cases.kernel], np.inf), axis=1)
        least = np.argmin(np.where(np.isfinite(power), power, np.inf), axis=1)
        numbers.append(np.where(within.any(axis=1), fastest, least))
    return repeats.scored(cases, np.array(numbers))


@dataclass(frozen=True)
class Regret:
    """Weighted percentiles, over the cases under the limit, of the lost share of the oracle's performance."""

    median: float
    percentile_90: float
    percentile_95: float

    @classmethod
    def of(cls, regret: Reals, weights: Reals) -> Regret | None:
        """Percentiles; ``None`` without a case."""
        if not regret.size:
            return None
        percentiles = np.quantile(regret, [0.5, 0.9, 0.95], weights=weights, method="inverted_cdf")
        return cls(*percentiles.tolist())


@dataclass(frozen=True, eq=False)
class ChoiceResult:
    """Result of one method on one machine."""

    method: str
    protocol: str  # Name of the folds
    budget: int | None  # Most changes after the first configuration; `None` if there was no limit
    confidence: float | None  # Probability with which the method aims to keep to the caps, if it has one
    baseline: bool  # Whether other methods are compared with it
    metrics: ChoiceMetrics
    programs: Mapping[str, ChoiceMetrics]  # Of each program, by name
    inputs: Mapping[str, ChoiceMetrics]  # Of each program at each size, by both names
    # Programs whose violations exceed 1 less `confidence`; none without it
    above: tuple[str, ...]
    curve: Mapping[int, ChoiceMetrics]  # By the most changes after the first configuration
    regret: Regret | None  # `None` if no case is under the limit
    # On simulated repeats other than the runs that the method saw, and those under a cap lower by 1 %; `None`
    # where the noise of repeats is not known
    on_repeats: ChoiceMetrics | None
    told_less: ChoiceMetrics | None
    bootstrap: Confidence  # Intervals of the metrics, and differences from the best baseline
    chosen: Integers  # `(m,)` Final configuration of each case, and the changes until then
    changes: Integers

    def to_dict(self) -> dict[str, object]:
        """All but the cases, as an object of JSON; unknown values are null."""
        return {
            "method": self.method,
            "folds": self.protocol,
            "budget": self.budget,
            **asdict(self.metrics),
            "confidence": self.confidence,
            "programs_above": list(self.above),
            "baseline": self.baseline,
            **self.bootstrap.to_dict(),
            "regret": None if self.regret is None else asdict(self.regret),
            "on_simulated_repeats": self._on_repeats(),
            "curve": [{"budget": budget, **asdict(metrics)} for budget, metrics in self.curve.items()],
            "programs": {name: asdict(metrics) for name, metrics in self.programs.items()},
            "inputs": {name: asdict(metrics) for name, metrics in self.inputs.items()},
        }

    def _on_repeats(self) -> dict[str, object] | None:
        on_repeats, guarded = self.on_repeats, self.told_less
        if on_repeats is None or guarded is None:
            return None
        names = ("under_limit_share", "under_performance")
        within_1pct = {name: getattr(on_repeats, f"{name}_within_1pct") for name in names}
        return {
            "strict": {name: getattr(on_repeats, name) for name in names},
            "tolerated": {"tolerance": GUARD, **within_1pct},
            "told_less": {"guard": GUARD, **{name: getattr(guarded, name) for name in (*names, "score")}},
        }


@dataclass(frozen=True, eq=False)
class Choices:
    """Choices of all methods in all cases."""

    surfaces: Surfaces  # Measured times and powers
    cases: Cases  # The `m` cases
    protocol: str  # Name of the folds
    budget: int | None  # Most changes after the first configuration; `None` for no limit
    curve: tuple[int, ...]  # The `b` numbers of changes of the curve
    # `(methods, b + 1, m)` Final configurations, and the changes until then; the last for `budget`
    chosen: Integers
    changes: Integers
    guarded: Integers  # `(methods, m)` Final configurations under a lower cap


def results_of(
    choices: Choices, methods: Sequence[Method], repeats: Repeats | None, seed: int
) -> list[ChoiceResult]:
    """Score the choices of each method."""
    cases, surfaces = choices.cases, choices.surfaces
    time_s = surfaces.time_s[cases.kernel, choices.chosen]
    power_w = surfaces.power_w[cases.kernel, choices.chosen]
    sums = program_sums(cases, time_s, power_w, choices.changes)
    inputs = by_input(cases, surfaces)
    of_inputs = program_sums(inputs, time_s[:, -1], power_w[:, -1], choices.changes[:, -1])
    baselines = [method.baseline for method in methods]
    metrics_of_all = [ChoiceMetrics.of(each[-1]) for each in sums]
    scored = [
        Scored(method.name, baseline, asdict(metrics), partial(metric_values, of_method[-1]))
        for method, baseline, metrics, of_method in zip(methods, baselines, metrics_of_all, sums, strict=True)
    ]
    bootstrap = confidences(scored, len(cases.programs), BETTER, seed)
    results = []
    for index, method in enumerate(methods):
        confidence = method.confidence
        programs, of_input = (
            {name: ChoiceMetrics.of(of_program[[each]]) for each, name in enumerate(part.programs)}
            for part, of_program in ((cases, sums[index, -1]), (inputs, of_inputs[index]))
        )
        most = 1.0 if confidence is None else 1 - confidence
        is_under = within_cap(power_w[index, -1], cases.power_cap)
        lost = 1 - cases.oracle_time_s[is_under] / time_s[index, -1][is_under]
        ends = choices.chosen[index, -1], choices.guarded[index]
        on_repeats = [None if repeats is None else repeats.scored(cases, each) for each in ends]
        results.append(
            ChoiceResult(
                method=method.name,
                protocol=choices.protocol,
                budget=choices.budget,
                confidence=confidence,
                baseline=baselines[index],
                metrics=metrics_of_all[index],
                programs=programs,
                inputs=of_input,
                above=tuple(name for name, each in programs.items() if (each.violations or 0) > most),
                curve=dict(zip(choices.curve, map(ChoiceMetrics.of, sums[index, :-1]), strict=True)),
                regret=Regret.of(lost, cases.share[is_under]),
                on_repeats=on_repeats[0],
                told_less=on_repeats[1],
                bootstrap=bootstrap[index],
                chosen=choices.chosen[index, -1],
                changes=choices.changes[index, -1],
            )
        )
    return results
