"""As many clusters as predict an application best that was left out."""

import dataclasses

import numpy as np
from linear_machine import linear_samples, linear_surfaces
from made_surfaces import made_surfaces

from crosscast.predict.configuration.bailey2014 import Amounts, Training, Tried, amounts_of, training_of

TRIED = Tried((1, 2, 3, 4), (1, 2))


def linear_training() -> Training:
    surfaces = linear_surfaces(8)
    return training_of(surfaces, linear_samples(surfaces.space))[0]


def test_two_kinds_that_the_tree_can_tell_apart_make_two_clusters() -> None:
    assert amounts_of(linear_training(), TRIED, logarithms=False, seed=0) == Amounts(2, 1)


def test_kinds_that_the_tree_cannot_tell_apart_do_not_pay() -> None:
    training = linear_training()
    blind = dataclasses.replace(training, features=np.random.default_rng(3).random((8, 1)))
    assert amounts_of(blind, TRIED, logarithms=False, seed=0).clusters == 1


def test_what_is_not_asked_for_is_not_chosen() -> None:
    assert amounts_of(linear_training(), Tried((3,), (1, 2)), logarithms=True, seed=0).clusters == 3


def test_with_one_application_the_largest_are_taken() -> None:
    surfaces = made_surfaces(1)
    training = training_of(surfaces, (11, 0))[0]
    assert amounts_of(training, TRIED, logarithms=False, seed=0) == Amounts(4, 2)


def test_cells_that_did_not_run_are_no_error() -> None:
    surfaces = linear_surfaces(8)
    surfaces.time_s[2:4, 4] = surfaces.power_w[2:4, 4] = np.nan
    training = training_of(surfaces, linear_samples(surfaces.space))[0]
    assert amounts_of(training, TRIED, logarithms=False, seed=0) == Amounts(2, 1)
