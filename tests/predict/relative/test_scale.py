"""The scale of a run is what it says, or how much of a machine it had, or its input."""

import pytest

from crosscast.configuration import Setting
from crosscast.predict.relative.observed import scale_of


@pytest.mark.parametrize(
    ("settings", "scale"),
    [
        ({}, "big"),
        ({"clock_hz": 1e9, "compiler": "gcc"}, "big"),
        ({"cores": 4.0}, "4 cores"),
        ({"cores": 36.0, "nodes": 2.0}, "2 nodes, 36 cores"),
        ({"nodes": "all"}, "all nodes"),
        ({"scale": "one node", "nodes": 1.0}, "one node"),
        ({"scale": 2.5}, "2.5"),
    ],
)
def test_the_first_that_is_known_is_the_scale(settings: dict[str, Setting], scale: str) -> None:
    assert scale_of(settings, "big") == scale
