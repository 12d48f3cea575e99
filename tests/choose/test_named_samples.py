"""Sample configurations that somebody named are found, in their order, or refused."""

import pytest
from made_surfaces import made_space

from crosscast.configuration import Configuration
from crosscast.decide.samples import sample_numbers
from crosscast.errors import InputError

SPACE = made_space()
ONE, OTHER = SPACE.configurations[7], SPACE.configurations[2]


def test_their_order_stays() -> None:
    assert sample_numbers(SPACE, [ONE, OTHER]) == (7, 2)


@pytest.mark.parametrize(
    ("samples", "sentence"),
    [
        ([], "samples: expected at least one configuration, and each once, found none"),
        ([ONE, OTHER, ONE], "samples: expected at least one configuration, and each once, found node"),
        ([Configuration("node", {})], "samples: configuration: expected one of the 12 that are known"),
    ],
)
def test_others_are_refused(samples: list[Configuration], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        sample_numbers(SPACE, samples)
