"""Evaluations as JSON, checked against the schemas that come with the package."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

import crosscast
from crosscast.results import plain

FOLDER = Path(crosscast.__file__).with_name("evaluation") / "schemas"


def validator_of(question: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((FOLDER / f"{question}.json").read_text(encoding="utf-8")))


def assert_valid(evaluation: Any) -> None:
    """An evaluation is of its schema, and would not be with a field less or more."""
    answer: Any = plain(evaluation)
    validator = validator_of(answer["question"])
    validator.validate(answer)
    for row in (answer, answer["results"][0]):
        row["other"] = 1
        assert not validator.is_valid(answer)
        del row["other"]
        for name in {*row} - {"slowdown_mean", "deviation"}:
            value = row.pop(name)
            assert not validator.is_valid(answer), name
            row[name] = value
