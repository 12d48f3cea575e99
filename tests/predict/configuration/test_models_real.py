"""The published model and the baselines on published data: programs left out, five at a time.

It lies beside the checkout, in ``shared/data``, or where ``CROSSCAST_DATA`` points.
"""

import numpy as np
import pytest

from crosscast.configuration import Configuration
from crosscast.predict.configuration.bailey2014 import PublishedModel
from crosscast.predict.configuration.baselines import GaussianProcess, GlobalRegression, NearestKernels
from crosscast.predict.configuration.data import Surfaces, machines_of
from crosscast.predict.configuration.forecast import ConfigurationModel
from crosscast.tables.configured import configured
from crosscast.tables.importers.gpu_dvfs import import_gpu_dvfs
from crosscast.tables.importers.powercap import import_powercap
from shared_data import shared_data


@pytest.fixture(scope="module")
def surfaces() -> Surfaces:
    (found,) = machines_of(configured(import_powercap(shared_data("powercap"))), "powercap")
    return found


def samples_of(surfaces: Surfaces) -> tuple[int, int]:
    """The highest and the lowest caps."""
    highest, lowest = (
        surfaces.space.number_of(Configuration("node", {"cpu_cap_w": cpu, "gpu_cap_w": gpu}))
        for cpu, gpu in ((120.0, 260.0), (65.0, 100.0))
    )
    return highest, lowest


def errors(model: ConfigurationModel, surfaces: Surfaces) -> tuple[float, float]:
    """Root mean square errors of the logarithms of time and power on programs that were left out."""
    samples, squares = samples_of(surfaces), []
    for first in range(3):
        out = surfaces.rows_of(surfaces.applications[first::3])
        fitted = model.fit(surfaces.take(~out), samples)
        for row in np.flatnonzero(out).tolist():
            found = fitted.forecast(surfaces.observed(row, samples))
            pairs = (found.time.centre, surfaces.time_s[row]), (found.power.centre, surfaces.power_w[row])
            squares.append([np.mean(np.log(centre / true) ** 2) for centre, true in pairs])
    time, power = np.sqrt(np.mean(squares, axis=0))
    return float(time), float(power)


@pytest.mark.parametrize(
    ("model", "time", "power"),
    [
        (PublishedModel(), 0.15, 0.2),
        (PublishedModel(logarithms=True), 0.15, 0.2),
        (NearestKernels(), 0.12, 0.08),
        (GlobalRegression(), 0.14, 0.08),
        (GaussianProcess(), 0.13, 0.08),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_programs_that_were_left_out_are_told_about_as_well_as_measured(
    surfaces: Surfaces, model: ConfigurationModel, time: float, power: float
) -> None:
    found = errors(model, surfaces)
    assert found[0] < time
    assert found[1] < power


def test_clusters_pay_and_the_tree_is_asked(surfaces: Surfaces) -> None:
    # The power of clusters was told to within 0.2 above.
    assert errors(PublishedModel(1), surfaces)[1] > 0.25
    fitted = PublishedModel().fit(surfaces, samples_of(surfaces))
    assert len(fitted.clusters.members) > 1
    assert "gpu" in fitted.tree.text()


def test_at_clocks_of_one_gpu_there_is_nothing_to_cluster() -> None:
    machines = machines_of(configured(import_gpu_dvfs(shared_data("gpu_dvfs"))), "gpu_dvfs", ["titanx"])
    (surfaces,) = machines
    clocks = surfaces.space.matrix.sum(axis=1)
    clusters = PublishedModel(5).fit(surfaces, (int(clocks.argmax()), int(clocks.argmin()))).clusters
    assert clusters.nothing_to_cluster
    assert len(clusters.members) == 1
