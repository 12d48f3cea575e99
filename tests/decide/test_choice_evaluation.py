"""Programs that are variants of each other are left out together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from crosscast.arrays import Flags
from crosscast.configuration import Configuration
from crosscast.decide.cases import Weighting
from crosscast.decide.evaluation import (
    ALONE,
    TOGETHER,
    ConfigurationEvaluation,
    duplicates,
    evaluate_configuration,
    evaluate_machine,
    folds_together,
)
from crosscast.decide.policies import FeedbackCapping, Fixed, Oracle, knob_methods
from crosscast.decide.power_cap import Decisions, Method, Policy
from crosscast.errors import InputError
from crosscast.evaluation.loop import State
from crosscast.predict.configuration.data import Observed, Space, Surfaces
from support.choices import Wanderer, limited, random_surfaces
from support.surfaces import made_surfaces

ALTIS = [
    "bfs",
    "busspeeddownload",
    "busspeedreadback",
    "cfd",
    "cfd_double",
    "fdtd2d",
    "kmeans",
    "maxflops",
    "nw",
]
PARTICLES = ["particlefilter_float", "particlefilter_naive", "pathfinder"]


def test_names_that_begin_alike_are_of_variants() -> None:
    assert duplicates([*ALTIS, *PARTICLES]) == (
        ("busspeeddownload", "busspeedreadback"),
        ("cfd", "cfd_double"),
        ("particlefilter_float", "particlefilter_naive"),
    )


@pytest.mark.parametrize(
    "names", [("nn", "nnx"), ("scanScan", "scandinavia"), ("bs", "bt"), ("sort", "mergeSort")]
)
def test_a_short_common_beginning_is_not_enough(names: tuple[str, str]) -> None:
    expected = () if names != ("scanScan", "scandinavia") else (tuple(sorted(names)),)
    assert duplicates(names) == expected


def test_case_does_not_matter() -> None:
    assert duplicates(["MatMulShared", "matmulGlobal"]) == (("MatMulShared", "matmulGlobal"),)


def test_named_groups_join_those_found() -> None:
    assert duplicates(ALTIS, [("bfs", "cfd"), ("nw", "kmeans")]) == (
        ("bfs", "cfd", "cfd_double"),
        ("busspeeddownload", "busspeedreadback"),
        ("kmeans", "nw"),
    )


def test_programs_of_other_machines_do_not_matter() -> None:
    assert duplicates(["bfs", "nw"], [("bfs", "elsewhere")]) == ()


def test_each_program_is_left_out_once() -> None:
    folds = folds_together(ALTIS, duplicates(ALTIS))
    assert sorted(name for fold in folds for name in fold) == ALTIS
    assert ("cfd", "cfd_double") in folds
    assert ("nw",) in folds


def test_something_must_be_left_to_learn_from() -> None:
    with pytest.raises(
        InputError, match=r"together: expected programs left to learn from, found all in a\+b"
    ):
        folds_together(["a", "b"], [("a", "b")])


def methods(space: Space) -> tuple[Method, ...]:
    return (Fixed(), *knob_methods(space), FeedbackCapping(), limited(Fixed(), ups=True), Oracle())


@dataclass(frozen=True)
class Watcher:
    """Notes what it is told, and takes the first sample configuration."""

    name: str = "watcher"
    fits: list[tuple[tuple[str, ...], tuple[int, ...], int]] = field(default_factory=list)
    told: list[tuple[int, ...]] = field(default_factory=list)
    caps: list[float] = field(default_factory=list)
    number: int | None = None

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Policy:
        self.fits.append((surfaces.applications, tuple(samples), seed))
        return Policy(self.decide)

    def decide(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Decisions:
        self.caps.append(power_cap)
        self.told.append(tuple(observed.numbers.tolist()))
        yield int(observed.numbers[0]) if self.number is None else self.number


def test_methods_learn_from_all_other_programs_and_are_told_the_samples() -> None:
    watcher = Watcher()
    found = evaluate_machine(made_surfaces(3), [watcher], seed=7)
    assert sorted(watcher.fits) == [
        (("app0", "app1"), (11, 0), 7),
        (("app0", "app2"), (11, 0), 7),
        (("app1", "app2"), (11, 0), 7),
    ]
    assert set(watcher.told) == {(11, 0)}
    assert {result.protocol for result in found.results} == {ALONE}


def test_samples_are_chosen_by_the_training_programs() -> None:
    seen = []

    def sampler(surfaces: Surfaces, seed: int) -> tuple[int, ...]:
        seen.append((surfaces.applications, seed))
        return (5, 6)

    watcher = Watcher()
    found = evaluate_machine(random_surfaces(3, missing=0), [watcher], samples=sampler, seed=2)
    assert seen == [(("bb", "cc"), 2), (("aa", "cc"), 2), (("aa", "bb"), 2)]
    assert set(watcher.told) == {(5, 6)}
    assert found.samples == {("aa",): (5, 6), ("bb",): (5, 6), ("cc",): (5, 6)}


def test_methods_are_told_the_caps_and_such_with_a_guard() -> None:
    watcher = Watcher()
    cases = evaluate_machine(made_surfaces(3), [watcher]).cases
    assert set(watcher.caps) == {*cases.power_cap.tolist(), *(cases.power_cap * 0.99).tolist()}


@dataclass(frozen=True)
class ByTraining:
    """Takes the configuration with the number of the programs that it learned from."""

    name: str = "by training"

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Policy:
        return Policy(Watcher(number=len(surfaces.applications)).decide)


def renamed(surfaces: Surfaces, names: dict[str, str]) -> Surfaces:
    kernels = [
        each._replace(application=names.get(each.application, each.application)) for each in surfaces.kernels
    ]
    return replace(surfaces, kernels=tuple(kernels))


def test_variants_are_left_out_together_in_results_of_their_own() -> None:
    watcher = Watcher()
    surfaces = renamed(random_surfaces(0, programs=4, missing=0), {"aa": "solver", "bb": "solver_double"})
    found = evaluate_machine(surfaces, [watcher], together=[("cc", "elsewhere")])
    assert found.groups == (("solver", "solver_double"),)
    assert [result.protocol for result in found.results] == [ALONE, TOGETHER]
    # One fold more than programs: the others are not done twice.
    assert sorted(fit[0] for fit in watcher.fits) == [
        ("cc", "dd"),
        ("cc", "dd", "solver"),
        ("cc", "dd", "solver_double"),
        ("cc", "solver", "solver_double"),
        ("dd", "solver", "solver_double"),
    ]
    alone, grouped = evaluate_machine(surfaces, [ByTraining()]).results
    variants = [surfaces.kernels[row].application.startswith("solver") for row in found.cases.kernel]
    assert set(alone.chosen.tolist()) == {3}
    assert sorted(grouped.chosen.tolist()) == sorted(2 if each else 3 for each in variants)


def test_names_that_all_begin_alike_say_nothing_unless_groups_are_named() -> None:
    found = evaluate_machine(made_surfaces(3), [FeedbackCapping()])
    assert [result.protocol for result in found.results] == [ALONE]
    with pytest.raises(InputError, match="together: expected programs left to learn from"):
        evaluate_machine(made_surfaces(3), [FeedbackCapping()], together=[("app0", "app1")])


def test_programs_weigh_equally() -> None:
    found = evaluate_machine(random_surfaces(5, programs=4), [Wanderer()])
    result = found.results[0]
    scores = [each.score for each in result.programs.values()]
    assert len(scores) == 4
    assert result.metrics.score == pytest.approx(np.mean([score for score in scores if score is not None]))


def test_sizes_of_a_program_weigh_equally_and_are_told_apart() -> None:
    result = evaluate_machine(random_surfaces(5, programs=3), [Wanderer()]).results[0]
    assert sorted(result.inputs) == [
        f"{name} {size}" for name in ("aa", "bb", "cc") for size in ("big", "small")
    ]
    for name, program in result.programs.items():
        sizes = [result.inputs[f"{name} {size}"].violations for size in ("big", "small")]
        assert program.violations == pytest.approx(np.mean([each for each in sizes if each is not None]))


def test_the_curve_ends_with_the_row_and_starts_open_loop() -> None:
    result = evaluate_machine(made_surfaces(), [FeedbackCapping()], curve=(0, 3, 11), budget=11).results[0]
    assert tuple(result.curve) == (0, 3, 11)
    assert result.curve[0].extra_runs == 0
    assert result.curve[11] == result.metrics
    assert result.changes.max() <= 11
    unlimited = evaluate_machine(made_surfaces(), [FeedbackCapping()]).results[0]
    assert unlimited.metrics.violations == 0
    assert unlimited.budget is None


def test_programs_above_what_a_method_promised_are_named() -> None:
    always_low = Wanderer(0, 0, name="low", confidence=0.9)
    always_high = Wanderer(-1, 0, name="high", confidence=0.9)
    low, high = evaluate_machine(made_surfaces(), [always_low, always_high]).results
    assert low.above == ()
    assert high.above == tuple(f"app{number}" for number in range(6))
    assert high.to_dict()["confidence"] == 0.9
    assert high.to_dict()["programs_above"] == list(high.above)


def same(one: ConfigurationEvaluation, other: ConfigurationEvaluation) -> bool:
    return json.dumps(one.to_dict()) == json.dumps(other.to_dict())


def test_several_processes_find_the_same() -> None:
    machines = [made_surfaces(4, noise=0.01)]
    one = evaluate_configuration(machines, methods)
    states: list[State] = []
    two = evaluate_configuration(machines, methods, jobs=2, progress=states.append)
    assert same(one, two)
    assert [(state.done, state.total) for state in states] == [(done, 24) for done in range(1, 25)]


def test_the_object_for_programs_has_what_was_asked() -> None:
    found = evaluate_configuration([made_surfaces(noise=0.01)], methods).to_dict()
    asked = {
        "method",
        "under_limit_share",
        "under_performance",
        "under_power",
        "over_power",
        "over_performance",
        "score",
        "extra_runs",
        "confidence",
        "violations",
    }
    assert all(asked <= set(row) for row in found["results"])
    names = ["fixed", "cpu+fl", "gpu+fl", "limiter", "fixed+steps", "oracle"]
    assert [row["method"] for row in found["results"] if row["protocol"] == ALONE] == names
    assert all(row["on_simulated_repeats"]["tolerated"]["tolerance"] == 0.01 for row in found["results"])
    oracle = found["results"][5]["on_simulated_repeats"]
    # Its power is the cap, so that a repeat is above it as often as not.
    assert oracle["strict"]["under_limit_share"] == pytest.approx(0.5, abs=0.1)
    assert oracle["strict"]["under_limit_share"] < oracle["tolerated"]["under_limit_share"]
    assert oracle["strict"]["under_performance"] > 0.9
    assert oracle["tolerated"]["under_performance"] > oracle["told_less"]["under_performance"] > 0.5
    assert found["machines"][0]["repeats"]["simulated"]
    assert "simulated" in found["machines"][0]["repeats"]["note"]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_machines_have_results_of_their_own() -> None:
    one = random_surfaces(1)
    space = Space(tuple(Configuration("other", each.settings) for each in one.space.configurations))
    found = evaluate_configuration([one, replace(random_surfaces(2), space=space)], methods).to_dict()
    assert [machine["machine"] for machine in found["machines"]] == ["node", "other"]
    assert {row["machine"] for row in found["results"]} == {"node", "other"}


def test_a_configuration_at_which_the_kernel_did_not_run_is_refused() -> None:
    surfaces = random_surfaces(0)
    time_s, power_w = surfaces.time_s.copy(), surfaces.power_w.copy()
    time_s[:, 4] = power_w[:, 4] = np.nan
    lacking = replace(surfaces, time_s=time_s, power_w=power_w)
    with pytest.raises(
        InputError, match="watcher: aa/k0 big: expected a configuration at which it was run, found"
    ):
        evaluate_machine(lacking, [Watcher(number=4)])


def test_one_program_is_refused() -> None:
    with pytest.raises(
        InputError, match="made up: expected at least 2 programs to leave one out, found app0"
    ):
        evaluate_machine(made_surfaces(1), [FeedbackCapping()])


def test_programs_without_cases_do_not_count() -> None:
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"budget": -1}, "budget: expected at least 0, found -1"),
        ({"curve": (0, -2)}, "budget: expected at least 0, found -2"),
        ({"seed": -1}, "seed: expected"),
        ({"jobs": 0}, "jobs: expected at least 1"),
        ({"samples": []}, "samples: expected at least one configuration, and each once, found none"),
        ({"samples": [Configuration("node", {"cpu_cap_w": 61})]}, "configuration: expected one of the 12"),
        ({"weighting": "cells"}, "weighting: expected one of time, equal"),
    ],
)
def test_bad_arguments_are_refused(words: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_machine(made_surfaces(3), [FeedbackCapping()], **words)  # type: ignore[arg-type]


def test_methods_must_differ_in_name_and_groups_name_programs() -> None:
    with pytest.raises(
        InputError, match="methods: expected at least one, and each once, found limiter, limiter"
    ):
        evaluate_machine(made_surfaces(3), [FeedbackCapping(), FeedbackCapping()])
    with pytest.raises(InputError, match="together: expected one of app0, app1, found 'app9'"):
        evaluate_configuration([made_surfaces(2)], methods, together=[("app0", "app9")])
    with pytest.raises(InputError, match="made up: expected at least one machine, found none"):
        evaluate_configuration([], methods, label="made up")


SURFACES = made_surfaces(3, noise=0.01)


class Counter:
    """Counts fits, and interrupts one of them."""

    def __init__(self, interrupted: int | None = None) -> None:
        self.fits = 0
        self.interrupted = interrupted

    def __call__(self) -> None:
        self.fits += 1
        if self.fits == self.interrupted:
            raise KeyboardInterrupt


class Counted:
    """A method that tells a counter of its fits; no dataclass, so known by its name."""

    name = "counted"

    def __init__(self, counter: Counter) -> None:
        self.counter = counter

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Policy:
        self.counter()
        return Wanderer(1).fit(surfaces, samples, seed)


def run(
    folder: Path | None, counter: Counter, surfaces: Surfaces = SURFACES, **words: object
) -> ConfigurationEvaluation:
    return evaluate_configuration([surfaces], lambda space: [Counted(counter)], cache=folder, **words)  # type: ignore[arg-type]


def test_an_interruption_loses_the_fold_in_progress_alone(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Counter(interrupted=3))
    again = Counter()
    states: list[State] = []
    resumed = run(tmp_path, again, progress=states.append)
    assert again.fits == 1
    assert [(state.done, state.total, state.label) for state in states] == [(1, 1, "counted, app2 held out")]
    assert same(resumed, run(None, Counter()))
    third = Counter()
    assert same(run(tmp_path, third), resumed)
    assert third.fits == 0


@pytest.mark.parametrize("damage", ["half", "shape", "range", "kind", "name"])
def test_damaged_files_are_as_good_as_none(tmp_path: Path, damage: str) -> None:
    first = run(tmp_path, Counter())
    for path in sorted(tmp_path.glob("*.npz")):
        whole = path.read_bytes()
        arrays = dict(np.load(path))
        if damage == "half":
            path.write_bytes(whole[: len(whole) // 2])
        elif damage == "shape":
            np.savez(path, **arrays | {"chosen": arrays["chosen"][:, :-1]})
        elif damage == "range":
            np.savez(path, **arrays | {"chosen": arrays["chosen"] + 12})
        elif damage == "kind":
            np.savez(path, **arrays | {"changes": arrays["changes"].astype(float)})
        else:
            np.savez(path, chosen=arrays["chosen"])
    counter = Counter()
    assert same(run(tmp_path, counter), first)
    assert counter.fits == 3


def other_samples(surfaces: Surfaces, seed: int) -> tuple[int, ...]:
    return (5, 0)


def test_what_choices_depend_on_is_in_their_names(tmp_path: Path) -> None:
    weighting: Weighting = "equal"
    kept = 0
    for words in (
        {},
        {"seed": 1},
        {"weighting": weighting},
        {"budget": 3},
        {"curve": (0, 1)},
        {"samples": other_samples},
        {"samples": SURFACES.space.configurations[:1]},
    ):
        run(tmp_path, Counter(), **words)
        assert len(list(tmp_path.iterdir())) == kept + 3
        kept += 3
    for start in (1, 2):
        evaluate_configuration([SURFACES], lambda space, start=start: [Wanderer(start)], cache=tmp_path)
        assert len(list(tmp_path.iterdir())) == kept + 3
        kept += 3


def test_several_processes_keep_the_same(tmp_path: Path) -> None:
    words = {"cache": tmp_path, "jobs": 2}
    one = evaluate_configuration([SURFACES], lambda space: [Wanderer(1)])
    two = evaluate_configuration([SURFACES], lambda space: [Wanderer(1)], **words)  # type: ignore[arg-type]
    assert same(one, two)
    assert len(list(tmp_path.iterdir())) == 3
