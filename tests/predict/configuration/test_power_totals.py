"""Which domains make up the power that a model learns."""

import numpy as np
from made_surfaces import made_surfaces

from crosscast.configuration import Configuration
from crosscast.predict.configuration.data import KernelAt, Space, Surfaces, power_totals, total_power


def surfaces(power_w: list[float], devices: str = "aab", **domains: list[float]) -> Surfaces:
    """One kernel at a configuration of each of some devices."""
    space = Space(tuple(Configuration(key, {"x": place}) for place, key in enumerate(devices)))
    return Surfaces(
        "made up",
        (KernelAt("a", "a", "s"),),
        space,
        np.ones((1, len(devices))),
        np.array([power_w]),
        {name: np.array([values]) for name, values in domains.items()},
    )


def test_the_sum_of_two_domains_is_found() -> None:
    assert power_totals(made_surfaces()) == {"node": (("cpu", "gpu"),)}


def test_a_domain_that_is_the_whole_comes_before_sums_of_others() -> None:
    found = power_totals(
        surfaces([3.0, 5.0, 7.0], node=[3.0, 5.0, 7.0], cpu=[1.0, 2.0, 3.0], gpu=[2.0, 3.0, 4.0])
    )
    assert found == {"a": (("node",), ("cpu", "gpu")), "b": (("node",), ("cpu", "gpu"))}


def test_each_device_has_sets_of_its_own() -> None:
    nan = float("nan")
    found = power_totals(surfaces([3.0, 5.0, 7.0], board=[3.0, 5.0, nan], chip=[1.0, 2.0, 7.0]))
    assert found == {"a": (("board",),), "b": (("chip",),)}


def test_no_set_is_found_where_no_sum_is_the_power() -> None:
    assert power_totals(surfaces([3.0, 5.0, 7.0], chip=[1.0, 2.0, 3.0])) == {"a": (), "b": ()}


def test_the_first_set_that_is_known_is_the_power() -> None:
    sets = (("node",), ("cpu", "gpu"))
    assert total_power(sets, {"node": 5.0, "cpu": 1.0, "gpu": 2.0}) == 5.0
    assert total_power(sets, {"cpu": 1.0, "gpu": 2.0}) == 3.0
    assert total_power(sets, {"cpu": 1.0}) is None
    assert total_power((), {"cpu": 1.0}) is None
