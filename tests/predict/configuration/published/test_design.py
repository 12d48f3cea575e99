"""Variables are settings and their products, apart for each device."""

import numpy as np
from linear_machine import linear_space

from crosscast.configuration import Configuration
from crosscast.predict.configuration.bailey2014 import design_of
from crosscast.predict.configuration.data import Space


def test_each_device_has_its_own_variables_and_products() -> None:
    design = design_of(linear_space())
    assert design.names == ("cpu: clock_hz", "cpu: threads", "cpu: clock_hz * threads", "gpu: clock_hz")
    row = linear_space().number_of(Configuration("cpu", {"clock_hz": 2e9, "threads": 2}))
    np.testing.assert_allclose(design.matrix[row], [2 / 3, 2 / 4, 4 / 12, 0])
    np.testing.assert_allclose(design.matrix[-1], [0, 0, 0, 1])
    np.testing.assert_array_equal(design.with_constants[[0, -1], 4:], np.eye(2))


def test_a_word_has_a_variable_for_each_value_and_none_with_itself() -> None:
    space = Space(
        tuple(Configuration("d", {"mode": mode, "n": n}) for mode in ("fast", "slow") for n in (1, 2))
    )
    assert design_of(space).names == (
        "d: n",
        "d: mode=fast",
        "d: mode=slow",
        "d: n * mode=fast",
        "d: n * mode=slow",
    )


def test_a_device_on_which_nothing_varies_has_a_constant() -> None:
    space = Space((Configuration("a", {"n": 1}), Configuration("a", {"n": 2}), Configuration("b", {"n": 5})))
    design = design_of(space)
    assert design.names == ("a: n", "b: 1")
    assert design.matrix.tolist() == [[0.5, 0], [1, 0], [0, 1]]


def test_a_setting_that_a_configuration_lacks_counts_as_none() -> None:
    space = Space((Configuration("a", {}), Configuration("a", {"n": 2}), Configuration("a", {"n": 4})))
    assert design_of(space).matrix[:, 0].tolist() == [0, 0.5, 1]
