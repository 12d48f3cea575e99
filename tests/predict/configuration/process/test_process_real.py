"""The process on published data: programs of Altis under two caps, some left out.

It lies beside the checkout, in ``shared/data``, or where ``CROSSCAST_DATA`` points.
"""

import numpy as np
import pytest

from crosscast.arrays import Flags, Reals
from crosscast.configuration import Configuration
from crosscast.predict.configuration.data import Surfaces, machines_of
from crosscast.predict.configuration.forecast import Quantity
from crosscast.predict.configuration.process import ProcessModel
from crosscast.tables.configured import configured
from crosscast.tables.importers.powercap import import_powercap
from shared_data import shared_data

PROGRAMS = ("cfd", "nw", "sort")


@pytest.fixture(scope="module")
def surfaces() -> Surfaces:
    (found,) = machines_of(configured(import_powercap(shared_data("powercap"))), "powercap")
    return found


def off(found: Quantity, true: Reals, asked: Flags) -> Reals:
    """Errors of the logarithm."""
    errors: Reals = np.log(true[asked] / found.centre[asked])
    return errors


def covered(found: Quantity, true: Reals, asked: Flags) -> Flags:
    """Whether the interval of 90 % holds the truth."""
    inside: Flags = (found.quantile(0.05) <= true) & (true <= found.quantile(0.95))
    return inside[asked]


def test_programs_that_were_left_out_are_forecast_as_well_as_measured(surfaces: Surfaces) -> None:
    # Each of all 15 left out alone: 0.086 of time and 0.029 of power; 0.89 and 0.90 of 0.90 are covered.
    samples = tuple(
        surfaces.space.number_of(Configuration("node", {"cpu_cap_w": cpu, "gpu_cap_w": gpu}))
        for cpu, gpu in ((120.0, 260.0), (65.0, 100.0))
    )
    out = surfaces.rows_of(PROGRAMS)
    fitted = ProcessModel().fit(surfaces.take(~out), samples)
    times, powers, inside = list[Reals](), list[Reals](), list[Flags]()
    for row in np.flatnonzero(out).tolist():
        found = fitted.forecast(surfaces.observed(row, samples))
        asked = surfaces.known[row] & ~found.measured
        times.append(off(found.time, surfaces.time_s[row], asked))
        powers.append(off(found.power, surfaces.power_w[row], asked))
        inside.append(covered(found.power, surfaces.power_w[row], asked))
    assert np.sqrt(np.mean(np.concatenate(times) ** 2)) <= 0.10
    assert np.sqrt(np.mean(np.concatenate(powers) ** 2)) <= 0.04
    assert 0.75 <= np.concatenate(inside).mean() < 1
