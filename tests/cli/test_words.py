"""Names separated by commas, as several options take them."""

import pytest

from crosscast.cli.words import words_of
from crosscast.errors import InputError


def test_spaces_do_not_count_and_names_come_once() -> None:
    assert words_of("--without", "kmeans, crc ,kmeans") == ["kmeans", "crc"]


@pytest.mark.parametrize("text", ["", " ", "crc,", ",crc", "crc,,lud"])
def test_an_empty_name_is_refused_by_its_option(text: str) -> None:
    with pytest.raises(InputError, match=r"^--without: expected names separated by commas, found "):
        words_of("--without", text)
