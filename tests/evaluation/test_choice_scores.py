"""Cases: kernels under the caps of their true frontiers, and their weights."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosscast.data.configuration import Configuration
from crosscast.decide.policies import FeedbackCapping, Fixed, Oracle
from crosscast.decide.power_cap import Cases, Method, cases_of, outcomes
from crosscast.evaluation.configuration.evaluation import MachineChoices, evaluate_machine
from crosscast.evaluation.configuration.scores import (
    METRICS,
    ChoiceMetrics,
    Regret,
    RepeatNoise,
    program_sums,
    repeat_noise,
    simulated_repeats,
    split_half_oracle,
)
from crosscast.prediction.configuration.data import ConfigurationSpace, KernelAt, Surfaces
from support.choices import Wanderer, limited, outcome, random_surfaces
from support.examples import examples
from support.surfaces import made_surfaces


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


@given(seed=st.integers(0, 10_000))
@examples(40)
def test_weights_within_a_program_sum_to_1(seed: int) -> None:
    cases = cases_of(random_surfaces(seed), (8, 0))
    assert cases.within_programs.sum(axis=1) == pytest.approx(np.ones(len(cases.programs)))


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


def counted(surfaces: Surfaces, cases: Cases, chosen: list[int], changes: list[int]) -> ChoiceMetrics:
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

    return ChoiceMetrics(
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


def same(one: ChoiceMetrics, other: ChoiceMetrics) -> bool:
    pairs = [(getattr(one, name), getattr(other, name)) for name in METRICS]
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
    metrics = ChoiceMetrics.of(program_sums(cases, time_s, power_w, changes))
    assert same(metrics, counted(surfaces, cases, chosen, changes.tolist()))


def evaluated(surfaces: Surfaces, **words: object) -> MachineChoices:
    methods = (FeedbackCapping(), Fixed(), limited(Fixed(), ups=True), Wanderer(2, 3), Oracle())
    return evaluate_machine(surfaces, methods, **words)  # type: ignore[arg-type]


@given(seed=SEEDS)
@settings(max_examples=8, deadline=None)
def test_the_oracle_loses_nothing_and_no_score_exceeds_share_times_best(seed: int) -> None:
    evaluation = evaluated(random_surfaces(seed))
    oracle = next(result for result in evaluation.results if result.method == "oracle")
    assert oracle.metrics.score == pytest.approx(1)
    assert oracle.metrics.violations == 0
    assert oracle.metrics.over_power is None
    assert oracle.regret is not None
    assert oracle.regret.percentile_95 == pytest.approx(0)
    for result in evaluation.results:
        m = result.metrics
        assert m.under_limit_share is not None
        assert m.score is not None
        assert m.score <= m.under_limit_share + 1e-12
        assert m.score == pytest.approx(m.under_limit_share * (m.under_performance or 0))
        assert m.violations == pytest.approx(1 - m.under_limit_share)
        rows, numbers = evaluation.cases.kernel, result.chosen
        assert evaluation.surfaces.known[rows, numbers].all()


def rearranged(surfaces: Surfaces, seed: int) -> Surfaces:
    """The kernels and configurations in another order; the space puts configurations in order itself."""
    rng = np.random.default_rng(seed)
    shuffled = [surfaces.space.configurations[index] for index in rng.permutation(len(surfaces.space))]
    moved = replace(surfaces, space=ConfigurationSpace(tuple(shuffled)))
    return moved.take(rng.permutation(len(surfaces.kernels)))


@given(seed=SEEDS, time=st.floats(1e-6, 1e6), power=st.floats(1e-3, 1e3))
@examples(6, fast=3)
def test_orders_of_kernels_and_configurations_and_units_of_time_and_power_do_not_matter(
    seed: int, time: float, power: float
) -> None:
    surfaces = random_surfaces(seed)
    scaled = replace(surfaces, time_s=surfaces.time_s * time, power_w=surfaces.power_w * power)
    one, other, moved = (evaluated(each).results for each in (surfaces, scaled, rearranged(surfaces, seed)))
    for mine, yours, theirs in zip(one, other, moved, strict=True):
        assert np.array_equal(mine.chosen, yours.chosen)
        assert same(mine.metrics, yours.metrics)
        assert same(mine.metrics, theirs.metrics)
        assert all(map(same, mine.curve.values(), theirs.curve.values()))


def flat(time: float, power: float, *, slope: float = 0.0, kernels: int = 20, seed: int = 0) -> Surfaces:
    """Kernels whose log time and log power rise evenly with two knobs, and noise of these sizes."""
    rng = np.random.default_rng(seed)
    space = ConfigurationSpace(
        tuple(Configuration("n", {"a": float(a**2), "b": float(b)}) for a in range(1, 10) for b in range(9))
    )
    rise = slope * space.matrix @ np.array([0.01, 0.1])
    shape = (kernels, len(space))
    return Surfaces(
        "flat",
        tuple(KernelAt(f"p{row}", "k", "big") for row in range(kernels)),
        space,
        np.exp(-rise + time * rng.standard_normal(shape)),
        100 * np.exp(rise + power * rng.standard_normal(shape)),
    )


def test_noise_is_that_of_single_cells() -> None:
    # The second knob bends the surface, so that the first alone tells of noise.
    surfaces = flat(0.02, 0.005, kernels=100)
    bend = np.exp(np.sin(7 * surfaces.space.matrix[:, 1]))
    noise = repeat_noise(replace(surfaces, time_s=surfaces.time_s * bend, power_w=surfaces.power_w * bend))
    assert noise is not None
    assert np.median(noise.time) == pytest.approx(0.02, rel=0.05)
    assert np.median(noise.power) == pytest.approx(0.005, rel=0.05)


def test_the_split_half_oracle_fails_by_noise_alone() -> None:
    surfaces = made_surfaces(noise=0.02)
    cases = cases_of(surfaces, (11, 0))
    n = len(surfaces.kernels)
    noise = RepeatNoise(np.full(n, 0.005), np.full(n, 0.005))
    scores = split_half_oracle(cases, simulated_repeats(surfaces, noise, 0))
    assert scores.violations is not None
    assert 0.15 < scores.violations < 0.5
    quiet = RepeatNoise(np.zeros(n), np.zeros(n))
    none = split_half_oracle(cases, simulated_repeats(surfaces, quiet, 0))
    assert none.violations == 0
    assert none.score == pytest.approx(1)


def test_the_guard_is_a_tolerance_of_1_percent() -> None:
    surfaces = made_surfaces()
    cases = cases_of(surfaces, (11, 0))
    n = len(surfaces.kernels)
    # What was measured has the noise of one repeat, and the repeat that of another.
    noise = RepeatNoise(np.zeros(n), np.full(n, 0.01 / 1.6449 / np.sqrt(2)))
    metrics = simulated_repeats(surfaces, noise, 3).scored(cases, cases.oracle)
    # One in twenty errors of a normal distribution is more than 1.6449 standard deviations up.
    assert metrics.under_limit_share_within_1pct == pytest.approx(0.95, abs=0.02)
    assert metrics.under_limit_share == pytest.approx(0.5, abs=0.05)


def test_repeats_differ_as_from_what_was_measured_and_follow_the_seed() -> None:
    surfaces = flat(0.0, 0.0)
    count = len(surfaces.kernels)
    repeats = simulated_repeats(surfaces, RepeatNoise(np.full(count, 0.02), np.full(count, 0.005)), 0)
    pairs = ((repeats.time_s, surfaces.time_s, 0.02), (repeats.power_w, surfaces.power_w, 0.005))
    for values, measured, noise in pairs:
        for one, other in ((values[0], measured), (values[1], measured), (values[0], values[1])):
            assert np.log(one / other).std() == pytest.approx(np.sqrt(2) * noise, rel=0.02)
    surfaces = made_surfaces()
    small = RepeatNoise(np.full(12, 0.01), np.full(12, 0.01))
    one, other = (simulated_repeats(surfaces, small, seed) for seed in (4, 4))
    assert np.array_equal(one.power_w, other.power_w)
    assert not np.array_equal(one.power_w, simulated_repeats(surfaces, small, 5).power_w)
    assert not np.array_equal(one.power_w[0], one.power_w[1])


def test_percentiles_of_regret_are_weighted_and_none_without_a_case() -> None:
    regret = np.array([0.5, 0.0, 0.1, 0.2])
    assert Regret.of(regret, np.array([1.0, 50, 41, 8])) == Regret(0.0, 0.1, 0.2)
    assert Regret.of(regret, np.array([11.0, 49, 30, 10])) == Regret(0.1, 0.5, 0.5)
    assert Regret.of(np.zeros(0), np.zeros(0)) is None
