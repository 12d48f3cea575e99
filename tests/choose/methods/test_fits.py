"""What several methods learn alike is learned once, and nothing else is."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from made_surfaces import made_surfaces

from crosscast.decide import policies as fits
from crosscast.decide.policies import fitted
from crosscast.predict.configuration.data import Surfaces

SURFACES = made_surfaces()


@pytest.fixture(autouse=True)
def nothing_fitted_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fits, "_LATEST", type(fits._LATEST)())
    yield


class Counted:
    """A model whose every fit is another object."""

    def fit(self, surfaces: Surfaces, samples: object, seed: int = 0) -> object:
        return object()


@dataclass(frozen=True)
class Scaled(Counted):
    scale: float = 1.0


@dataclass(frozen=True)
class Noting(Counted):
    asked: list[int] = field(default_factory=list)


def test_models_with_the_same_parameters_are_fitted_once() -> None:
    first = fitted(Scaled(), SURFACES, (0, 5), 0)
    assert fitted(Scaled(), made_surfaces(), [0, 5], 0) is first


def test_another_parameter_surface_sample_or_seed_is_another_fit() -> None:
    first = fitted(Scaled(), SURFACES, (0, 5), 0)
    others = [
        fitted(Scaled(2.0), SURFACES, (0, 5), 0),
        fitted(Scaled(), replace(SURFACES, time_s=2 * SURFACES.time_s), (0, 5), 0),
        fitted(Scaled(), SURFACES, (5, 0), 0),
        fitted(Scaled(), SURFACES, (0, 5), 1),
    ]
    assert all(each is not first for each in others)


def test_models_that_look_alike_but_are_others_are_fitted_each() -> None:
    assert fitted(Counted(), SURFACES, (0, 5), 0) is not fitted(Counted(), SURFACES, (0, 5), 0)


def test_a_model_that_may_change_is_fitted_each_time() -> None:
    model = Noting()
    assert fitted(model, SURFACES, (0, 5), 0) is not fitted(model, SURFACES, (0, 5), 0)


def test_only_the_latest_are_kept() -> None:
    first = fitted(Scaled(), SURFACES, (0, 5), 0)
    for seed in range(1, fits._MOST + 1):
        fitted(Scaled(), SURFACES, (0, 5), seed)
    assert len(fits._LATEST) == fits._MOST
    assert fitted(Scaled(), SURFACES, (0, 5), 0) is not first
