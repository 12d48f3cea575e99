"""Whether bags fit: as scikit-learn's logistic regression has it, and only where something tells."""

from dataclasses import replace

import numpy as np
import pytest
from made_co_runs import NAMES, made_co_runs, made_solo
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from crosscast.errors import InputError
from crosscast.predict.corun.process import Fits, fit_fits
from crosscast.tables.corun.bag import Bag, Member
from crosscast.tables.corun.solo import Solo

GIB = 1 << 30


def of_memory(name: str, gib: float) -> Solo:
    return replace(made_solo(name), memory_bytes=int(gib * GIB))


SOLOS = [of_memory(name, gib) for name, gib in zip(NAMES, (1, 2, 4, 6, 8, 10), strict=True)]
PAIRS = [(first, second) for place, first in enumerate(SOLOS) for second in SOLOS[place:]]


def bag(solos: tuple[Solo, ...], fits: bool | None) -> Bag:
    return Bag("bag", "cpu", tuple(Member(solo) for solo in solos), fits=fits)


def gib_of(solos: tuple[Solo, ...]) -> float:
    return sum(solo.memory_bytes or 0 for solo in solos) / GIB


BAGS = [bag(pair, gib_of(pair) <= 10) for pair in PAIRS]


def fitted(bags: list[Bag]) -> Fits:
    found = fit_fits(bags)
    assert found is not None
    return found


def test_memory_is_found_to_be_what_tells() -> None:
    found = fitted(BAGS)
    assert found.wanted == "memory_bytes"
    assert found.slope < 0
    probability = found.probability(PAIRS)
    fits = np.array([each.fits for each in BAGS])
    assert probability[fits].min() > 0.5 > probability[~fits].max()


def test_odds_are_those_of_scikit_learn() -> None:
    numbers = np.log([gib_of(pair) for pair in PAIRS])
    scaled = (numbers - numbers.mean()) / numbers.std()
    design = np.column_stack([np.ones_like(scaled), scaled])
    truth = [each.fits for each in BAGS]
    peer = LogisticRegression(C=100.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(design, truth)
    found = fitted(BAGS)
    assert_allclose([found.intercept, found.slope], peer.coef_[0], rtol=1e-4)
    assert_allclose(found.probability(PAIRS), peer.predict_proba(design)[:, 1], atol=1e-5)


def test_the_order_of_members_does_not_matter() -> None:
    found = fitted(BAGS)
    assert_allclose(found.probability([pair[::-1] for pair in PAIRS]), found.probability(PAIRS))


def test_it_is_not_told_where_memory_is_not_known() -> None:
    unknown = replace(SOLOS[0], memory_bytes=None)
    assert np.isnan(fitted(BAGS).probability([(unknown, SOLOS[1])])).all()


@pytest.mark.parametrize(
    "bags",
    [
        [],
        made_co_runs().bags,
        [replace(each, fits=None) for each in BAGS],
        [bag(pair, gib_of(pair) <= 18) for pair in PAIRS],
    ],
    ids=["none", "all fit", "unknown", "two do not fit"],
)
def test_bags_that_tell_too_little_give_nothing(bags: list[Bag]) -> None:
    assert fit_fits(bags) is None


def test_applications_that_are_all_alike_give_nothing() -> None:
    same = Solo("a", "s", "d", 1.0, memory_bytes=GIB)
    assert fit_fits([bag((same, same), fits) for fits in [True, False] * 4]) is None


def test_it_comes_back_from_its_arrays() -> None:
    found = fitted(BAGS)
    again = Fits.from_state(found.state())
    assert_array_equal(again.probability(PAIRS), found.probability(PAIRS))
    with pytest.raises(InputError, match=r"^model: fits: expected a name and four numbers"):
        Fits.from_state({**found.state(), "numbers": np.zeros(4)})
