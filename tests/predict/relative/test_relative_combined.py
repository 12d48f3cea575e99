"""The model that is taken where none is named takes the one for what was counted."""

from dataclasses import replace

import made_grids
import numpy as np

from crosscast.predict.relative.blend import BlendPredictor
from crosscast.predict.relative.data import Vectors, profiles_seen
from crosscast.predict.relative.models import DEFAULT_MODEL, MODELS, ByTimesPredictor, CombinedRelative
from made_vectors import made_vectors

GRID = made_grids.lawful_grid()
PROFILES = Vectors(
    profiles_seen(GRID.profiles),
    tuple(device.key for device in GRID.devices),
    np.exp(GRID.log_time),
    GRID.devices,
)


def test_it_is_the_one_that_is_taken_where_none_is_named() -> None:
    assert isinstance(MODELS[DEFAULT_MODEL](), CombinedRelative)


def test_profiles_of_described_devices_are_predicted_by_times() -> None:
    assert isinstance(CombinedRelative().fit(PROFILES, 0), ByTimesPredictor)


def test_counters_of_devices_are_predicted_by_the_blend() -> None:
    assert isinstance(CombinedRelative().fit(made_vectors(applications=2), 0), BlendPredictor)


def test_profiles_with_times_on_devices_of_which_nothing_is_known_are_predicted_by_the_blend() -> None:
    found = CombinedRelative().fit(replace(PROFILES, described=()), 0)
    assert isinstance(found, BlendPredictor)
    assert np.abs(found.predict(PROFILES.observations) - PROFILES.vector).mean() < 0.05
