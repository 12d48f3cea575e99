"""A part of a dataset has all of what it keeps and nothing of the rest."""

import pytest

import crosscast
from crosscast.data.dataset import applications_of, validate, without_applications
from crosscast.errors import InputError


def test_a_dataset_without_two_applications_has_the_others() -> None:
    whole = crosscast.bundled_dataset()
    left = without_applications(whole, ["kmeans", "gem"])
    validate(left)
    assert set(applications_of(whole)) - set(applications_of(left)) == {"kmeans", "gem"}
    for table in ("profiles", "records", "sessions"):
        before, after = getattr(whole, table).to_pylist(), getattr(left, table).to_pylist()
        assert after == [row for row in before if row["application"] not in ("kmeans", "gem")]


def test_without_nothing_it_is_the_same() -> None:
    whole = crosscast.bundled_dataset()
    assert without_applications(whole, []).records.equals(whole.records)


def test_an_application_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"without: expected applications of .*bfs.*, found 'magic'"):
        without_applications(crosscast.bundled_dataset(), ["magic"])
