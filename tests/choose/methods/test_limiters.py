"""Limiters step down from the highest configuration until the measured power keeps to the cap."""

import numpy as np
import pytest
from made_surfaces import made_surfaces

from crosscast.configuration import Configuration
from crosscast.decide.policies import Limiter, Oracle, knob_limiters
from crosscast.decide.power_cap import Method, settle, within_cap
from crosscast.predict.configuration.data import Space, Surfaces
from made_walks import random_surfaces

SURFACES = made_surfaces(noise=0.01)


def settled(
    method: Method, cap: float, row: int = 0, budget: int = 99, surfaces: Surfaces = SURFACES
) -> tuple[str, int]:
    samples = (len(surfaces.space) - 1, 0)
    known = surfaces.known[row]
    walk = method.fit(surfaces, samples).walk(surfaces.observed(row, samples), cap, known, budget)
    end = settle(walk, lambda number: surfaces.observed(row, (number,)), budget)
    return str(surfaces.space.configurations[end.number]), end.changes


def test_the_limiter_takes_the_first_on_its_way_that_keeps_to_the_cap() -> None:
    way = [11, 7, 3, 2, 1, 0]
    for row in range(len(SURFACES.kernels)):
        for cap in SURFACES.power_w[row]:
            name, changes = settled(Limiter(), cap, row)
            expected = next(
                place for place, number in enumerate(way) if within_cap(SURFACES.power_w[row, number], cap)
            )
            assert (name, changes) == (str(SURFACES.space.configurations[way[expected]]), expected)


def test_the_limiter_ends_at_the_lowest_if_nothing_keeps_to_the_cap() -> None:
    assert settled(Limiter(), 1.0) == ("node: cpu_cap_w 60, gpu_cap_w 100", 5)
    assert settled(Limiter(), 1.0, budget=2) == ("node: cpu_cap_w 60, gpu_cap_w 250", 2)


def test_a_limiter_of_a_knob_leaves_the_others_at_their_maximum() -> None:
    cpu, gpu = knob_limiters(SURFACES.space)
    assert (cpu.name, gpu.name) == ("cpu+fl", "gpu+fl")
    assert settled(cpu, 1.0) == ("node: cpu_cap_w 60, gpu_cap_w 250", 2)
    assert settled(gpu, 1.0) == ("node: cpu_cap_w 100, gpu_cap_w 100", 3)


@pytest.mark.parametrize(
    ("knob", "name"),
    [
        ("cpu_cap_w", "cpu+fl"),
        ("power_cap_w", "power+fl"),
        ("power_limit_w", "power_limit+fl"),
        ("core_clock_hz", "core_clock+fl"),
        ("cores", "cores+fl"),
        ("cap_w", "cap+fl"),
        ("_w", "_w+fl"),
    ],
)
def test_names_are_without_units(knob: str, name: str) -> None:
    space = Space(tuple(Configuration("node", {knob: value}) for value in (1, 2)))
    assert [method.name for method in knob_limiters(space)] == [name]


def test_with_several_devices_each_has_a_limiter_of_all_its_knobs() -> None:
    space = Space(
        tuple(
            Configuration(device, {"cores": cores, "clock_hz": clock})
            for device in ("big", "little")
            for cores in (1, 2)
            for clock in (1, 2)
        )
    )
    one = random_surfaces(0, knobs=(4, 2), missing=0)
    surfaces = Surfaces("two", one.kernels, space, one.time_s, one.power_w)
    big, little = knob_limiters(space)
    assert (big.name, little.name) == ("big+fl", "little+fl")
    assert settled(big, 0.0, surfaces=surfaces) == ("big: clock_hz 1, cores 1", 2)
    assert settled(little, 0.0, surfaces=surfaces) == ("little: clock_hz 1, cores 1", 2)
    # Without a device it is that of the first sample configuration, here the last of the second.
    assert settled(Limiter(), 0.0, surfaces=surfaces) == ("little: clock_hz 1, cores 1", 2)


def test_missing_configurations_are_stepped_over() -> None:
    surfaces = random_surfaces(0, knobs=(3, 3), missing=0)
    surfaces.time_s[0, 5] = surfaces.power_w[0, 5] = np.nan
    name, _ = settled(Limiter(), 0.0, budget=1, surfaces=surfaces)
    assert name == "node: a_w 0, b_hz 2"


def test_the_oracle_takes_the_fastest_of_what_it_is_told_or_the_least_power() -> None:
    chooser = Oracle().fit(SURFACES, (0,))
    observed = SURFACES.observed(0, range(12))
    for cap in SURFACES.power_w[0]:
        number = next(chooser.walk(observed, cap, SURFACES.known[0], 0))
        within = [place for place in range(12) if SURFACES.power_w[0, place] <= cap]
        assert number == min(within, key=SURFACES.time_s[0].__getitem__)
    assert next(chooser.walk(observed, 1.0, SURFACES.known[0], 0)) == int(SURFACES.power_w[0].argmin())
