"""Evaluations of choices, and training of models that choose: cases, what is learned from, scores."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crosscast
from crosscast.arrays import Flags
from crosscast.data.configuration import Configuration
from crosscast.decide import Cases, Decisions, FittedMethod, Method, Predictor, cases_of, outcomes
from crosscast.decide.policies import FeedbackCapping, Fixed, Oracle, knob_methods
from crosscast.decide.samples import two_samples
from crosscast.errors import InputError
from crosscast.evaluation.configuration import scores
from crosscast.evaluation.configuration.evaluation import (
    ALONE,
    TOGETHER,
    duplicates,
    evaluate_configuration,
    evaluate_machine,
    folds_together,
)
from crosscast.evaluation.configuration.question import machine_of, train_configuration
from crosscast.evaluation.loop import State
from crosscast.prediction.configuration import ConfigurationSpace, KernelAt, Observed, Surfaces
from support.choices import Wanderer, limited, outcome, random_surfaces
from support.examples import examples
from support.refusals import refusal
from support.surfaces import configured_dataset, made_surfaces


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
    cells: list[tuple[float, ...]] = []
    for case, number in enumerate(chosen):
        row, cap = int(cases.kernel[case]), cases.power_cap[case]
        fastest = surfaces.time_s[row][surfaces.power_w[row] <= cap].min()
        weight = cases.share[case] / len(cases.programs)
        performance = fastest / surfaces.time_s[row, number]
        cells.append((weight, performance, surfaces.power_w[row, number] / cap, changes[case]))
    under = [each for each in cells if each[2] <= 1 + 1e-9]
    over = [each for each in cells if each[2] > 1 + 1e-9]
    close = [each for each in cells if each[2] <= 1.01]

    def total(part: list[tuple[float, ...]], column: int | None = None) -> float:
        return sum(each[0] * (1 if column is None else each[column]) for each in part)

    def mean(part: list[tuple[float, ...]], column: int) -> float | None:
        return total(part, column) / total(part) if part else None

    assert total(cells) == pytest.approx(1)
    return scores.ChoiceMetrics(
        total(under),
        mean(under, 1),
        mean(under, 2),
        mean(over, 2),
        mean(over, 1),
        total(under, 1),
        total(cells, 3),
        total(over),
        total(close),
        mean(close, 1),
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


ALTIS = "bfs busspeeddownload busspeedreadback cfd cfd_double fdtd2d kmeans maxflops nw".split()
PARTICLES = ["particlefilter_float", "particlefilter_naive", "pathfinder"]


def test_names_that_begin_alike_are_of_variants() -> None:
    assert duplicates([*ALTIS, *PARTICLES]) == (
        ("busspeeddownload", "busspeedreadback"),
        ("cfd", "cfd_double"),
        ("particlefilter_float", "particlefilter_naive"),
    )
    folds = folds_together(ALTIS, duplicates(ALTIS))
    assert sorted(name for fold in folds for name in fold) == ALTIS
    assert {("cfd", "cfd_double"), ("nw",)} <= set(folds)


def methods(space: ConfigurationSpace) -> tuple[Method, ...]:
    return (Fixed(), *knob_methods(space), FeedbackCapping(), limited(Fixed(), ups=True), Oracle())


@dataclass(frozen=True)
class Watcher(Method):
    """Notes what it is told, and takes the first sample configuration."""

    name: str = "watcher"
    fits: list[tuple[tuple[str, ...], tuple[int, ...], int]] = field(default_factory=list)
    told: list[tuple[int, ...]] = field(default_factory=list)
    caps: list[float] = field(default_factory=list)
    number: int | None = None

    def fit(
        self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0, predictor: Predictor = None
    ) -> FittedMethod:
        self.fits.append((surfaces.applications, tuple(samples), seed))
        return super().fit(surfaces, samples, seed, predictor)

    def _policy(self, surfaces: Surfaces, samples: Sequence[int], predictor: Predictor) -> FittedMethod:
        return FittedMethod(self.decide)

    def decide(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Decisions:
        self.caps.append(power_cap)
        self.told.append(tuple(observed.numbers.tolist()))
        yield int(observed.numbers[0]) if self.number is None else self.number


def test_methods_learn_from_all_other_programs_and_are_told_the_samples() -> None:
    watcher = Watcher()
    evaluation = evaluate_machine(made_surfaces(3), [watcher], seed=7)
    assert sorted(watcher.fits) == [
        (("app0", "app1"), (11, 0), 7),
        (("app0", "app2"), (11, 0), 7),
        (("app1", "app2"), (11, 0), 7),
    ]
    assert set(watcher.told) == {(11, 0)}
    # Names that all begin alike say nothing of variants unless groups are named.
    assert [result.protocol for result in evaluation.results] == [ALONE]


class ByTraining(Watcher):
    """Takes the configuration with the number of the programs that it learned from."""

    def _policy(self, surfaces: Surfaces, samples: Sequence[int], predictor: Predictor) -> FittedMethod:
        return FittedMethod(Watcher(number=len(surfaces.applications)).decide)


def renamed(surfaces: Surfaces, names: dict[str, str]) -> Surfaces:
    kernels = [
        each._replace(application=names.get(each.application, each.application)) for each in surfaces.kernels
    ]
    return replace(surfaces, kernels=tuple(kernels))


def test_variants_are_left_out_together_in_results_of_their_own() -> None:
    watcher = Watcher()
    surfaces = renamed(random_surfaces(0, programs=4, missing=0), {"aa": "solver", "bb": "solver_double"})
    evaluation = evaluate_machine(surfaces, [watcher], together=[("cc", "elsewhere")])
    assert evaluation.groups == (("solver", "solver_double"),)
    assert [result.protocol for result in evaluation.results] == [ALONE, TOGETHER]
    # One fold more than programs: the others are not done twice.
    assert sorted(fit[0] for fit in watcher.fits) == [
        ("cc", "dd"),
        ("cc", "dd", "solver"),
        ("cc", "dd", "solver_double"),
        ("cc", "solver", "solver_double"),
        ("dd", "solver", "solver_double"),
    ]
    alone, grouped = evaluate_machine(surfaces, [ByTraining()]).results
    variants = [surfaces.kernels[row].application.startswith("solver") for row in evaluation.cases.kernel]
    assert set(alone.chosen.tolist()) == {3}
    assert sorted(grouped.chosen.tolist()) == sorted(2 if each else 3 for each in variants)


def test_a_group_of_all_programs_leaves_none_to_learn_from() -> None:
    with pytest.raises(InputError, match="groups: expected programs left to learn from"):
        evaluate_machine(made_surfaces(3), [FeedbackCapping()], together=[("app0", "app1")])


def test_a_configuration_at_which_the_kernel_did_not_run_is_refused() -> None:
    surfaces = random_surfaces(0)
    time_s, power_w = surfaces.time_s.copy(), surfaces.power_w.copy()
    time_s[:, 4] = power_w[:, 4] = np.nan
    lacking = replace(surfaces, time_s=time_s, power_w=power_w)
    assert "watcher: aa/k0 big: expected a configuration at which it was run, found" in refusal(
        evaluate_machine, lacking, [Watcher(number=4)]
    )


def test_one_program_with_cases_is_refused() -> None:
    assert "made up: expected at least 2 programs to leave one out, found app0" in refusal(
        evaluate_machine, made_surfaces(1), [FeedbackCapping()]
    )
    surfaces = made_surfaces(2)
    samples = [surfaces.space.configurations[number] for number in (11, 0)]
    surfaces.time_s[:2, 0] = surfaces.power_w[:2, 0] = np.nan
    few = refusal(evaluate_machine, surfaces, [FeedbackCapping()], samples=samples)
    assert "expected at least 2 programs under caps (app0 big: no run at the sample" in few
    unknown = refusal(evaluate_configuration, [made_surfaces(2)], methods, together=[("app0", "app9")])
    assert "groups: expected one of app0, app1, found 'app9'" in unknown
    none = refusal(evaluate_configuration, [], methods, label="made up")
    assert "made up: expected at least one machine, found none" in none


MADE = made_surfaces(4, noise=0.01)


def test_the_card_says_what_was_learned_and_how_good_that_is() -> None:
    surfaces = machine_of(configured_dataset(MADE))
    trained = train_configuration(surfaces, "published", seed=3)
    card = trained.card
    assert (card.model, card.seed, card.numbers) == ("published", 3, two_samples(surfaces))
    assert card.power.totals == {"node": (("cpu", "gpu"),)}
    assert card.domains == ("cpu", "gpu")
    facts = dict(card.training)
    assert facts["names"] == ["app0", "app1", "app2", "app3"]
    assert (facts["cells"], facts["kernels_at_a_size"], facts["configurations"]) == (96, 8, 12)
    errors: dict[str, Any] = card.errors
    assert errors["programs"] == 4
    assert 0 < errors["rmse_log_power"] < 0.5
    for each in errors["choices"]:
        assert each["method"] in ("published", "published+fl")
        assert 0 <= each["score"] <= 1
    assert len(errors["choices"]) == 2
    wanted = [surfaces.space.configurations[number] for number in (5, 2)]
    assert train_configuration(surfaces, "published", samples=wanted).card.numbers == (5, 2)


def test_some_programs_can_be_learned_from_alone() -> None:
    surfaces = made_surfaces(5)
    states: list[State] = []
    tested = ["app1", "app3"]
    trained = train_configuration(surfaces, "published", held_out=tested, progress=states.append)
    assert trained.card.training["names"] == [f"app{number}" for number in range(5)]
    errors: dict[str, Any] = trained.card.errors
    assert list(errors["by_program"]) == tested
    # Fits for errors and for choices are counted together.
    assert [(each.done, each.total) for each in states] == [(done, 4) for done in range(1, 5)]
    with pytest.raises(InputError, match=r"held_out: expected some of app0, .*, found 'app9'"):
        crosscast.train(configured_dataset(surfaces), "configuration", held_out="app9")


def test_too_few_programs_or_configurations_or_an_unknown_model_are_refused() -> None:
    too_few = refusal(train_configuration, made_surfaces(2), "published")
    assert "expected at least 3 applications" in too_few and "found app0, app1" in too_few
    assert "model: expected one of model, published" in refusal(
        train_configuration, made_surfaces(4), "magic"
    )
    made = made_surfaces(3)
    space = ConfigurationSpace(made.space.configurations[:1])
    power_w = made.power_w[:, :1]
    lone = Surfaces("lone", made.kernels, space, made.time_s[:, :1], power_w, {"cpu": power_w})
    single = refusal(machine_of, configured_dataset(lone))
    assert "expected at least 2 configurations to choose from, found 1" in single


def on_device(surfaces: Surfaces, device: str) -> Surfaces:
    space = ConfigurationSpace(
        tuple(Configuration(device, each.settings) for each in surfaces.space.configurations)
    )
    kernels = tuple(each._replace(application=f"{device}-{each.application}") for each in surfaces.kernels)
    return replace(surfaces, space=space, kernels=kernels)


def test_machines_without_a_kernel_in_common_are_told_apart() -> None:
    both = configured_dataset(*(on_device(made_surfaces(3), name) for name in ("left", "right")))
    with pytest.raises(InputError, match=r"device: expected those of one machine, found 2 .*\(left; right\)"):
        machine_of(both)
    assert machine_of(both, devices=["right"]).space.devices == ("right",)
