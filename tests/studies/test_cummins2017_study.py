"""CPU or GPU: protocols keep apart what they say, models see training rows only, scores are what they say."""

from dataclasses import replace

import numpy as np
import pytest

from crosscast.studies import cummins2017 as study
from crosscast.studies.cummins2017 import (
    MODELS,
    SPLITS,
    Lookup,
    MappingCases,
    MappingTrees,
    OneDevice,
    Selected,
    cases_of,
)
from support.johnston2018 import made_up
from support.mappings import mapped_dataset
from support.refusals import refusal

every_split = pytest.mark.parametrize("split", SPLITS)
SMALL = (OneDevice(), MappingTrees("counted-label", "counted", gain=False))


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "_TREES", 5)


@pytest.fixture(scope="module")
def cases() -> MappingCases:
    return cases_of(mapped_dataset())


@every_split
def test_every_row_is_held_out_once_and_never_learned_from_then(split: str, cases: MappingCases) -> None:
    folds = SPLITS[split](cases)
    assert sorted(np.concatenate([fold.test for fold in folds]).tolist()) == list(range(len(cases)))
    for fold in folds:
        assert not set(fold.train.tolist()) & set(fold.test.tolist())
        assert len(fold.train) + len(fold.test) == len(cases)


@pytest.mark.parametrize(
    ("split", "together"),
    [
        ("leave-kernel-out", "kernels"),
        ("leave-application-out", "applications"),
        ("leave-suite-out", "suites"),
    ],
)
def test_groups_are_held_out_whole(split: str, together: str, cases: MappingCases) -> None:
    labels = np.array(getattr(cases, together))
    for fold in SPLITS[split](cases):
        assert not set(labels[fold.train]) & set(labels[fold.test])


def test_the_published_split_knows_other_sizes_of_kernels_it_holds_out(cases: MappingCases) -> None:
    kernels = np.array(cases.kernels)
    known = [np.isin(kernels[fold.test], kernels[fold.train]).mean() for fold in SPLITS["published"](cases)]
    assert np.mean(known) > 0.9


@every_split
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_times_held_out_change_no_choice(model: study.Model, split: str, cases: MappingCases) -> None:
    fold = SPLITS[split](cases)[0]
    swapped = cases.time_s.copy()
    swapped[fold.test] = swapped[fold.test][:, ::-1] * 7
    first, second = (
        model.scores(each, fold.train, fold.test, split, 0)
        for each in (cases, replace(cases, time_s=swapped))
    )
    assert first.tolist() == second.tolist()


def test_trees_learn_what_decides_on_new_programs(cases: MappingCases) -> None:
    found = study.reproduce(mapped_dataset(), splits=["leave-application-out"], models=SMALL)
    accuracy = {each.model: each.scores.accuracy for each in found.results}
    assert accuracy["counted-label"] > 0.8 > accuracy["one-device"] + 0.2


def test_the_candidate_that_is_right_in_training_rows_is_selected(
    cases: MappingCases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "CANDIDATES", SMALL)
    fold = SPLITS["leave-application-out"](cases)[0]
    args = cases, fold.train, fold.test, "leave-application-out", 0
    assert Selected().scores(*args).tolist() == SMALL[1].scores(*args).tolist()
    # Where nothing is to be learned, one device is as good, and comes first.
    same = replace(cases, time_s=np.tile([[2.0, 1.0]], (len(cases), 1)))
    args = same, fold.train, fold.test, "leave-application-out", 0
    assert Selected().scores(*args).tolist() == [0.5] * len(fold.test)


def test_the_lookup_knows_other_sizes_and_no_other_kernel(cases: MappingCases) -> None:
    kernels, gpu = np.array(cases.kernels), cases.gain > 0
    for split, is_known in (("published", True), ("leave-kernel-out", False)):
        fold = SPLITS[split](cases)[0]
        found = Lookup().scores(cases, fold.train, fold.test, split, 0)
        for row, score in zip(fold.test.tolist(), found.tolist(), strict=True):
            same = fold.train[kernels[fold.train] == kernels[row]]
            assert bool(len(same)) == is_known
            if is_known and gpu[same].mean() != 0.5:
                assert (score > 0) == (gpu[same].mean() > 0.5)


def test_scores_by_hand(monkeypatch: pytest.MonkeyPatch, cases: MappingCases) -> None:
    two = replace(cases, time_s=np.tile([[4.0, 1.0], [1.0, 2.0]], (len(cases) // 2, 1)))
    monkeypatch.setattr(study, "cases_of", lambda _: two)
    found = study.reproduce(mapped_dataset(), splits=["leave-suite-out"], models=[OneDevice()])
    (result,) = found.results
    assert found.single == "gtx970"
    chosen = result.gpu
    own = np.where(chosen, two.time_s[:, 1], two.time_s[:, 0])
    assert result.scores.accuracy == 0.5
    assert result.scores.speedup == pytest.approx(np.exp(np.log(two.time_s[:, 1] / own).mean()))
    assert result.scores.regret == pytest.approx(np.exp(np.log(own / two.time_s.min(axis=1)).mean()))
    assert found.facts["right_by_majority_of_kernel"] == found.facts["kernel_has_other_sizes"] / 2 == 0.5
    assert found.facts["within_10_percent"] == 0
    assert result.scores.mean_speedup == pytest.approx((two.time_s[:, 1] / own).mean())
    assert result.scores.worst_regret == (2.0 if chosen.all() else 4.0)


def test_the_same_seed_gives_the_same_choices() -> None:
    dataset = mapped_dataset(4)
    first, second = (
        study.reproduce(dataset, splits=["published"], models=SMALL, seed=3).to_dict() for _ in range(2)
    )
    assert first == second


def test_what_is_not_of_a_cpu_and_a_gpu_is_refused() -> None:
    assert "devices: expected a CPU and a GPU, found" in refusal(cases_of, made_up())
