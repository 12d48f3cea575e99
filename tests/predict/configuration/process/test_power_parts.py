"""The power is predicted by its parts where they add up to it."""

from dataclasses import replace

import numpy as np
from made_surfaces import made_surfaces

from crosscast.predict.configuration.process import TOTAL, power_parts, powers_of

SURFACES = made_surfaces(2)


def test_domains_that_add_up_are_the_parts() -> None:
    assert power_parts(SURFACES) == ("cpu", "gpu")
    # The whole is no part of itself.
    assert power_parts(replace(SURFACES, domains={**SURFACES.domains, "node": SURFACES.power_w})) == (
        "cpu",
        "gpu",
    )


def test_domains_that_do_not_add_up_are_not() -> None:
    cpu, gpu = SURFACES.domains["cpu"], SURFACES.domains["gpu"]
    unknown = cpu.copy()
    unknown[0, 0] = np.nan
    for domains in ({}, {"cpu": cpu}, {"cpu": cpu, "gpu": 1.01 * gpu}, {"cpu": unknown, "gpu": gpu}):
        assert power_parts(replace(SURFACES, domains=domains)) == (TOTAL,)
    assert power_parts(replace(SURFACES, power_w=cpu, domains={"cpu": cpu, "gpu": 0 * gpu})) == (TOTAL,)


def test_a_cell_that_did_not_run_needs_no_domains() -> None:
    lacking = np.where(np.arange(12) == 5, np.nan, 1.0)
    domains = {name: values * lacking for name, values in SURFACES.domains.items()}
    there = replace(
        SURFACES, time_s=SURFACES.time_s * lacking, power_w=SURFACES.power_w * lacking, domains=domains
    )
    assert power_parts(there) == ("cpu", "gpu")


def test_a_part_called_time_would_be_taken_for_the_time() -> None:
    domains = {"time": SURFACES.domains["cpu"], "gpu": SURFACES.domains["gpu"]}
    assert power_parts(replace(SURFACES, domains=domains)) == (TOTAL,)


def test_powers_of_parts_are_not_numbers_where_they_are_not_told() -> None:
    power = np.array([1.0, 2.0])
    assert powers_of((TOTAL,), power, {"cpu": power})[TOTAL] is power
    found = powers_of(("cpu", "gpu"), power, {"cpu": power})
    assert found["cpu"] is power
    assert np.isnan(found["gpu"]).tolist() == [True, True]
