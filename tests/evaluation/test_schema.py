"""JSON Schemas of evaluations: what the package has is what its types say."""

import json

import pytest
from jsonschema import Draft202012Validator

import crosscast
from crosscast.evaluation import JSON_VERSION, schema
from support.golden import assert_printed
from support.refusals import refusal
from support.schemas import FOLDER


@pytest.mark.parametrize("question", schema.FORMS)
def test_files_of_the_package_are_what_its_types_say(question: str) -> None:
    found = crosscast.evaluation_schema(question)
    Draft202012Validator.check_schema(found)
    assert_printed(json.dumps(found) + "\n", FOLDER / f"{question}.json")
    for form in schema.FORMS[question]:
        assert found["$defs"][form.__name__]["properties"]["version"] == {"enum": [JSON_VERSION]}


def test_no_other_question_has_a_schema() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{question}.json" for question in schema.FORMS}
    assert "question: expected one of time, relative" in refusal(crosscast.evaluation_schema, "weather")
