"""Programs that are variants of each other are left out together."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from crosscast.arrays import Flags
from crosscast.data.configuration import Configuration
from crosscast.decide.policies import FeedbackCapping, Fixed, Oracle, knob_methods
from crosscast.decide.power_cap import Decisions, FittedMethod, Method, Predictor
from crosscast.errors import InputError
from crosscast.evaluation.configuration.evaluation import (
    ALONE,
    TOGETHER,
    duplicates,
    evaluate_configuration,
    evaluate_machine,
    folds_together,
)
from crosscast.prediction.configuration.data import ConfigurationSpace, Observed, Surfaces
from support.choices import limited, random_surfaces
from support.refusals import refusal
from support.surfaces import made_surfaces

ALTIS = "bfs busspeeddownload busspeedreadback cfd cfd_double fdtd2d kmeans maxflops nw".split()
PARTICLES = ["particlefilter_float", "particlefilter_naive", "pathfinder"]


def test_names_that_begin_alike_are_of_variants() -> None:
    assert duplicates([*ALTIS, *PARTICLES]) == (
        ("busspeeddownload", "busspeedreadback"),
        ("cfd", "cfd_double"),
        ("particlefilter_float", "particlefilter_naive"),
    )


def test_each_program_is_left_out_once_and_some_stay_to_learn_from() -> None:
    folds = folds_together(ALTIS, duplicates(ALTIS))
    assert sorted(name for fold in folds for name in fold) == ALTIS
    assert ("cfd", "cfd_double") in folds
    assert ("nw",) in folds


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
    assert {result.protocol for result in evaluation.results} == {ALONE}


@dataclass(frozen=True)
class ByTraining(Method):
    """Takes the configuration with the number of the programs that it learned from."""

    name: str = "by training"

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


def test_names_that_all_begin_alike_say_nothing_unless_groups_are_named() -> None:
    evaluation = evaluate_machine(made_surfaces(3), [FeedbackCapping()])
    assert [result.protocol for result in evaluation.results] == [ALONE]
    with pytest.raises(InputError, match="groups: expected programs left to learn from"):
        evaluate_machine(made_surfaces(3), [FeedbackCapping()], together=[("app0", "app1")])


def test_the_curve_ends_with_the_row_and_starts_open_loop() -> None:
    result = evaluate_machine(made_surfaces(), [FeedbackCapping()], budget=8).results[0]
    assert tuple(result.curve) == tuple(range(9))
    assert result.curve[0].extra_runs == 0
    assert result.curve[8] == result.metrics
    assert result.changes.max() <= 8
    unlimited = evaluate_machine(made_surfaces(), [FeedbackCapping()]).results[0]
    assert unlimited.metrics.violations == 0
    assert unlimited.budget is None


def test_the_object_for_programs_has_what_was_asked() -> None:
    document: dict[str, Any] = evaluate_configuration([made_surfaces(noise=0.01)], methods).to_dict()
    inputs = (
        "method under_limit_share under_performance under_power over_power over_performance score extra_runs "
        "confidence violations"
    ).split()
    assert all(set(inputs) <= set(row) for row in document["results"])
    names = ["fixed", "cpu+fl", "gpu+fl", "limiter", "fixed+steps", "oracle"]
    assert [row["method"] for row in document["results"] if row["protocol"] == ALONE] == names
    assert all(row["on_simulated_repeats"]["tolerated"]["tolerance"] == 0.01 for row in document["results"])
    oracle = document["results"][5]["on_simulated_repeats"]
    # Its power is the cap, so that a repeat is above it as often as not.
    assert oracle["strict"]["under_limit_share"] == pytest.approx(0.5, abs=0.1)
    assert oracle["strict"]["under_limit_share"] < oracle["tolerated"]["under_limit_share"]
    assert oracle["strict"]["under_performance"] > 0.9
    assert oracle["tolerated"]["under_performance"] > oracle["told_less"]["under_performance"] > 0.5
    assert document["machines"][0]["repeats"]["simulated"]
    assert "simulated" in document["machines"][0]["repeats"]["note"]
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_machines_have_results_of_their_own() -> None:
    one = random_surfaces(1)
    space = ConfigurationSpace(
        tuple(Configuration("other", each.settings) for each in one.space.configurations)
    )
    evaluation: dict[str, Any] = evaluate_configuration(
        [one, replace(random_surfaces(2), space=space)], methods
    ).to_dict()
    assert [machine["machine"] for machine in evaluation["machines"]] == ["node", "other"]
    assert {row["machine"] for row in evaluation["results"]} == {"node", "other"}


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
    time_s, power_w = surfaces.time_s.copy(), surfaces.power_w.copy()
    time_s[:2, 0] = power_w[:2, 0] = np.nan
    lacking = replace(surfaces, time_s=time_s, power_w=power_w)
    with pytest.raises(
        InputError, match=r"expected at least 2 programs under caps \(app0 big: no run at the sample"
    ):
        evaluate_machine(
            lacking, [FeedbackCapping()], samples=[lacking.space.configurations[n] for n in (11, 0)]
        )


def test_groups_name_programs_of_at_least_one_machine() -> None:
    with pytest.raises(InputError, match="groups: expected one of app0, app1, found 'app9'"):
        evaluate_configuration([made_surfaces(2)], methods, together=[("app0", "app9")])
    with pytest.raises(InputError, match="made up: expected at least one machine, found none"):
        evaluate_configuration([], methods, label="made up")
