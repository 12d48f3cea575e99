"""Methods by name: each is known by the name that it has, and made for the machine."""

import pytest
from made_surfaces import made_space

from crosscast.configuration import Configuration
from crosscast.decide.policies import MAIN, SelectedModel, check_method_names, method_names, methods_of
from crosscast.errors import InputError
from crosscast.predict.configuration.data import Space

SPACE = made_space()
OTHER = Space(tuple(Configuration("gpu", {"clock_hz": 1e9 * clock}) for clock in (1, 2)))


def test_each_method_has_the_name_by_which_it_is_known() -> None:
    names = method_names(SPACE)
    assert [each.name for each in methods_of(SPACE, names)] == list(names)
    assert len(set(names)) == len(names)


def test_a_machine_has_the_limiters_of_its_knobs() -> None:
    assert [each.name for each in methods_of(SPACE)] == ["fixed", "cpu+fl", "gpu+fl", *MAIN[1:]]
    assert [each.name for each in methods_of(OTHER)] == ["fixed", "clock+fl", *MAIN[1:]]


def test_methods_come_in_the_order_of_tables_and_only_where_they_are_known() -> None:
    assert [each.name for each in methods_of(OTHER, ["oracle", "cpu+fl", "clock+fl"])] == [
        "clock+fl",
        "oracle",
    ]


def test_models_that_do_not_know_how_sure_they_are_pass_the_confidence_over() -> None:
    (method,) = methods_of(SPACE, ["published"], 0.5)
    assert isinstance(method, SelectedModel)
    assert method.confidence is None
    assert method.baseline


def test_names_that_no_machine_has_are_refused() -> None:
    check_method_names(["cpu+fl", "clock+fl"], [SPACE, OTHER])
    with pytest.raises(InputError, match=r"methods: expected all or some of fixed, .*, found 'clock\+fl'"):
        check_method_names(["clock+fl"], [SPACE])
    with pytest.raises(InputError, match="methods: expected each once, found fixed twice"):
        check_method_names(["fixed", "fixed"], [SPACE])


def test_a_confidence_is_a_probability() -> None:
    with pytest.raises(InputError, match="confidence: expected a probability between 0 and 1, found 90"):
        methods_of(SPACE, confidence=90)
