"""Cases: kernels under the caps of their true frontiers, and their weights."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.configuration import Configuration
from crosscast.decide.policies import FeedbackCapping, Fixed
from crosscast.decide.power_cap import Cases, Method, cases_of, outcomes
from crosscast.evaluation.configuration import scores
from crosscast.prediction.configuration.data import ConfigurationSpace, KernelAt, Surfaces
from support.choices import Wanderer, limited, outcome, random_surfaces
from support.examples import examples


def small() -> Surfaces:
    """Program p has kernels x and y at size big, which take 3 s and 1 s, and x at size small; q has x."""
    kernels = [("p", "x", "big"), ("p", "y", "big"), ("p", "x", "small"), ("q", "x", "big")]
    space = ConfigurationSpace(tuple(Configuration("node", {"cap_w": cap}) for cap in (1.0, 2.0, 3.0)))
    time_s = np.array([[9.0, 5.0, 3.0], [4.0, 2.0, 1.0], [7.0, 6.0, 7.0], [8.0, 8.0, 2.0]])
    power_w = np.tile([10.0, 20.0, 30.0], (4, 1))
    return Surfaces("small", tuple(KernelAt(*each) for each in kernels), space, time_s, power_w)


def test_caps_are_the_powers_on_the_frontier() -> None:
    cases = cases_of(small(), (2, 0))
    assert cases.kernel.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    assert cases.power_cap.tolist() == [10, 20, 30, 10, 20, 30, 10, 20, 10, 30]
    assert cases.oracle_time_s.tolist() == [9, 5, 3, 4, 2, 1, 7, 6, 8, 2]
    assert cases.oracle.tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 0, 2]
    assert cases.programs == ("p", "q")


def test_kernels_without_samples_or_choice_are_left_out_by_name() -> None:
    surfaces = small()
    time_s, power_w = surfaces.time_s.copy(), surfaces.power_w.copy()
    time_s[0, 2] = power_w[0, 2] = np.nan
    time_s[2] = 5.0, 6.0, 7.0
    cases = cases_of(replace(surfaces, time_s=time_s, power_w=power_w), (2, 0))
    assert [(str(each.kernel), each.reason) for each in cases.left_out] == [
        ("p/x big", "no run at the sample configuration node: cap 3 W"),
        ("p/x small", "1 configuration on its frontier"),
    ]
    assert cases.kernel.tolist() == [1, 1, 1, 3, 3]
    assert cases.share.tolist() == pytest.approx([1 / 3] * 3 + [1 / 2] * 2)


@given(
    seed=st.integers(0, 10_000),
    number=st.integers(0, 2),
    budgets=st.sampled_from([(0, 1, 2, 5, 20), (0, 1, 3), (2,)]),
)
@examples(40)
def test_one_long_rollout_ends_as_short_ones_do(seed: int, number: int, budgets: tuple[int, ...]) -> None:
    methods: tuple[Method, ...] = (FeedbackCapping(), Wanderer(1, 2), limited(Fixed()))
    surfaces = random_surfaces(seed)
    samples = (len(surfaces.space) - 1, 0)
    policy = methods[number].fit(surfaces, samples)
    row = seed % len(surfaces.kernels)
    observed, known = surfaces.observed(row, samples), surfaces.known[row]
    cap = float(np.nanquantile(surfaces.power_w[row], 0.4))
    answers = outcomes(policy, observed, cap, known, budgets, lambda place: surfaces.observed(row, (place,)))
    for budget, end in zip(budgets, answers, strict=True):
        decisions = policy.decide(observed, cap, known, budget)
        assert end == outcome(decisions, lambda place: surfaces.observed(row, (place,)), budget)


SEEDS = st.integers(0, 3_000)
"""With none of these a fold has no case to learn from; with 5430 one has none."""


def counted(surfaces: Surfaces, cases: Cases, chosen: list[int], changes: list[int]) -> scores.ChoiceMetrics:
    """The metrics, one case after the other."""
    under: list[tuple[float, float, float]] = []
    over: list[tuple[float, float, float]] = []
    close: list[tuple[float, float]] = []
    score = runs = total = 0.0
    for case in range(len(cases)):
        row, number = int(cases.kernel[case]), chosen[case]
        cap = cases.power_cap[case]
        fastest = min(
            surfaces.time_s[row, other]
            for other in range(len(surfaces.space))
            if surfaces.power_w[row, other] <= cap
        )
        weight = cases.share[case] / len(cases.programs)
        performance = fastest / surfaces.time_s[row, number]
        power = surfaces.power_w[row, number] / cap
        (under if power <= 1 + 1e-9 else over).append((weight, performance, power))
        if power <= 1.01:
            close.append((weight, performance))
        score += weight * performance * (power <= 1 + 1e-9)
        runs += weight * changes[case]
        total += weight
    assert total == pytest.approx(1)

    def mean(parts: list[tuple[float, ...]], place: int) -> float | None:
        weight = sum(part[0] for part in parts)
        return sum(part[0] * part[place] for part in parts) / weight if parts else None

    return scores.ChoiceMetrics(
        sum(part[0] for part in under),
        mean([*under], 1),
        mean([*under], 2),
        mean([*over], 2),
        mean([*over], 1),
        score,
        runs,
        sum(part[0] for part in over),
        sum(part[0] for part in close),
        mean([*close], 1),
    )


def same(one: scores.ChoiceMetrics, other: scores.ChoiceMetrics) -> bool:
    pairs = [(getattr(one, name), getattr(other, name)) for name in scores.METRICS]
    return all(a is b if a is None or b is None else a == pytest.approx(b) for a, b in pairs)


@given(seed=SEEDS)
@examples(40)
def test_metrics_are_what_a_loop_counts(seed: int) -> None:
    surfaces = random_surfaces(seed)
    cases = cases_of(surfaces, (0, len(surfaces.space) - 1))
    rng = np.random.default_rng(seed)
    chosen = [int(rng.choice(np.flatnonzero(surfaces.known[row]))) for row in cases.kernel]
    changes = rng.integers(0, 4, len(cases))
    time_s, power_w = surfaces.time_s[cases.kernel, chosen], surfaces.power_w[cases.kernel, chosen]
    metrics = scores.ChoiceMetrics.of(scores.program_sums(cases, time_s, power_w, changes))
    assert same(metrics, counted(surfaces, cases, chosen, changes.tolist()))


def test_percentiles_of_regret_are_weighted_and_none_without_a_case() -> None:
    regret = np.array([0.5, 0.0, 0.1, 0.2])
    assert scores.Regret.of(regret, np.array([1.0, 50, 41, 8])) == scores.Regret(0.0, 0.1, 0.2)
    assert scores.Regret.of(regret, np.array([11.0, 49, 30, 10])) == scores.Regret(0.1, 0.5, 0.5)
    assert scores.Regret.of(np.zeros(0), np.zeros(0)) is None
