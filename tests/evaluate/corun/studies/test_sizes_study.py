"""Models on larger bags: what they are fitted to, and that those of one size are not asked for others."""

from dataclasses import replace

import pytest
from counted_co_runs import counted_co_runs, studied

from crosscast.evaluate.corun import evaluate_corun, of_one_device
from crosscast.predict.corun.models import models_named
from crosscast.studies.moolchandani2022 import ALL, OWN, NotMade, SizeStudy, fitted_to_fewest, sizes_study


def study() -> SizeStudy:
    studies = studied().studies
    assert studies is not None
    assert isinstance(studies.sizes, SizeStudy)
    return studies.sizes


def errors(model: str, quantity: str = "slowdown") -> dict[tuple[str, int], float | None]:
    return {
        (each.fitted_to, each.result.bag_size or 0): each.result.mape
        for each in study().results
        if each.result.model == model and each.result.quantity == quantity
    }


def test_models_of_one_size_are_fitted_to_that_size_alone() -> None:
    assert study().sizes == (2, 3)
    assert study().of_one_size == ("published-linear",)
    assert set(errors("published-linear")) == {(OWN, 2), (OWN, 3)}


def test_others_are_fitted_in_three_ways() -> None:
    assert set(errors("mean")) == {(OWN, 2), (OWN, 3), (ALL, 2), (ALL, 3), (fitted_to_fewest(2), 3)}


@pytest.mark.parametrize("model", ["mean", "published-linear"])
def test_errors_are_those_of_an_evaluation_of_the_same_bags(model: str) -> None:
    co_runs = of_one_device(counted_co_runs(), "cpu")
    triples = replace(co_runs, bags=tuple(bag for bag in co_runs.bags if len(bag.members) == 3))
    whole = evaluate_corun(triples, models_named([model]), "leave-benchmark-out", level=None)
    (own,) = [each for each in whole.results if each.quantity == "slowdown" and each.bag_size == 3]
    assert errors(model)[OWN, 3] == pytest.approx(own.mape)


def test_bags_of_one_size_are_not_compared_with_others() -> None:
    pairs = of_one_device(counted_co_runs((2,)), "cpu")
    found = sizes_study(pairs, models_named(["mean"]), 0, progress=None, cache=None, jobs=1)
    assert isinstance(found, NotMade)
    assert "all have 2 members" in found.reason
