"""Cards of machine translation are kept as JSON, read back as they were, and refused where damaged."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counted_co_runs import counted_co_runs

from crosscast.errors import InputError
from crosscast.evaluate.translation import shared_times, train_translation
from crosscast.predict.corun.translation import TranslationCard, read_translation, write_translation


def made_card() -> TranslationCard:
    return train_translation(shared_times(counted_co_runs(), "cpu", "other"))


def test_a_card_is_read_as_it_was_written_and_the_same_has_the_same_bytes(tmp_path: Path) -> None:
    card = made_card()
    write_translation(card, tmp_path / "a.json")
    write_translation(made_card(), tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    found = read_translation(tmp_path / "a.json")
    assert found.to_dict() == card.to_dict()
    for quantity in ("time", "slowdown"):
        assert found.errors[quantity].reach(0.8) == card.errors[quantity].reach(0.8)
    np.testing.assert_array_equal(found.line(np.array([0.3, 3.0])), card.line(np.array([0.3, 3.0])))


WRONG: list[tuple[str, Any, str]] = [
    ("format", "other", "format: expected 'crosscast machine translation card', found 'other'"),
    ("version", 2, "version: expected 1, found 2"),
    ("from", None, "from"),
    ("to", 3, "to: expected a text"),
    (
        "line",
        {"form": "bent", "slope": 1, "intercept": 0, "least_s": 1},
        "form: expected plain or logarithmic",
    ),
    ("line", {"form": "plain", "slope": "1", "intercept": 0, "least_s": 1}, "slope: expected a number"),
    (
        "line",
        {"form": "plain", "slope": 1, "intercept": 0, "least_s": 0},
        "least_s: expected a number above 0",
    ),
    ("shortest_s", -1.0, "shortest_s: expected a number above 0"),
    ("errors", {}, "errors: expected those of times, found none"),
    ("errors", {"time": {"log_error": [0.1], "group": [1], "groups": ["a"]}}, "group: expected places"),
    (
        "errors",
        {"time": {"log_error": [0.1], "group": [0, 0], "groups": ["a"]}},
        "group: expected one for each",
    ),
    ("errors", {"time": {"log_error": [1e999], "group": [0], "groups": ["a"]}}, "expected finite numbers"),
    ("errors", {"time": {"log_error": ["a"], "group": [0], "groups": ["a"]}}, "expected a list of numbers"),
]


@pytest.mark.parametrize(("field", "value", "message"), WRONG)
def test_a_damaged_card_is_refused_by_field(tmp_path: Path, field: str, value: Any, message: str) -> None:
    card = {**made_card().to_dict(), field: value}
    path = tmp_path / "card.json"
    path.write_text(json.dumps(card))
    with pytest.raises(InputError, match=r"card\.json") as error:
        read_translation(path)
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "\x00"])
def test_what_is_no_card_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "card.json"
    path.write_text(text)
    with pytest.raises(InputError, match="expected a"):
        read_translation(path)


def test_files_that_are_not_there_or_cannot_be_written_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the card"):
        read_translation(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot write the card"):
        write_translation(made_card(), tmp_path / "none" / "card.json")
