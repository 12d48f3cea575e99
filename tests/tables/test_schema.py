import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.profiles import PROFILES
from crosscast.data.schema import DEVICES, ENERGY, RECORDS, SESSIONS, Schema, json_text

SCHEMAS = (PROFILES, DEVICES, RECORDS, SESSIONS, ENERGY)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.table)
def test_columns_have_names_of_their_own_and_titles(schema: Schema) -> None:
    names = [column.name for column in schema.columns]
    assert len(names) == len(set(names))
    assert set(schema.key) <= set(names)
    assert all(column.title for column in schema.columns)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.table)
def test_a_unit_at_the_end_of_a_name_is_the_columns_unit(schema: Schema) -> None:
    units = {"_s": "s", "_per_s": ("B/s", "flop/s"), "_hz": "Hz", "_bytes": "B", "_j": "J", "_w": "W"}
    for column in schema.columns:
        ending = max((end for end in units if column.name.endswith(end)), key=len, default=None)
        if ending is not None:
            assert column.unit in units[ending], column.name


@given(st.dictionaries(st.text(), st.integers()))
def test_equal_values_are_equal_texts(value: dict[str, int]) -> None:
    assert json_text(dict(reversed(value.items()))) == json_text(value)


def test_json_has_no_numbers_that_are_not_finite() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"clock_hz": float("inf")})
