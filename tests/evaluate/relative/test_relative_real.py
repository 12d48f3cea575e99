"""The figures that are known of RAJAPerf: what the mean does on new groups, and how row splits leak.

The data lies beside the checkout, in ``shared/data``, or where ``CROSSCAST_DATA`` points.
"""

import pytest

from crosscast.evaluate.relative import evaluate_relative
from crosscast.predict.relative.data import Vectors
from crosscast.predict.relative.nichols2024 import LogMean, PublishedXGBoost
from crosscast.predict.relative.observed import vectors_of
from crosscast.tables.importers.rajaperf import import_rajaperf
from shared_data import shared_data


@pytest.fixture(scope="module")
def node() -> Vectors:
    """A stated node of 36 cores, and a GPU."""
    return vectors_of(import_rajaperf(shared_data("cross_architecture"), cores=36))


def test_the_mean_of_logarithms_is_as_known_on_new_groups(node: Vectors) -> None:
    found = evaluate_relative(node, [LogMean()], "leave-application-out").results[0].metrics
    assert found.rows == 3000
    assert [found.mae, found.same_order, found.typical_factor] == pytest.approx(
        [0.135, 0.870, 2.09], abs=5e-3
    )
    # With two devices, the order is the choice.
    assert found.top1 == found.same_order


def test_rows_leak(node: Vectors) -> None:
    found = evaluate_relative(node, [PublishedXGBoost(), LogMean()], "published")
    boosted, mean = found.results
    assert found.repeated == 1
    assert boosted.metrics.mae < 0.2 * mean.metrics.mae
    honest = evaluate_relative(node, [PublishedXGBoost(rounds=50)], "leave-application-out").results[0]
    assert honest.metrics.mae > 4 * boosted.metrics.mae
