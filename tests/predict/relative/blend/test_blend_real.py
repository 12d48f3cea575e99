"""What the blend does on kernels of RAJAPerf that it has not seen.

The data lies beside the checkout, in ``shared/data``, or where ``CROSSCAST_DATA`` points.
"""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from crosscast.arrays import Reals
from crosscast.predict.relative.blend import Blend, Effort
from crosscast.predict.relative.data import Vectors
from crosscast.predict.relative.nichols2024 import LogMean
from crosscast.predict.relative.observed import vectors_of
from crosscast.tables.importers.rajaperf import import_rajaperf

FOLDER = Path(os.environ.get("CROSSCAST_DATA") or Path(__file__).parents[5] / "shared" / "data")
FOLDER /= "cross_architecture"
RUNS = 4


@pytest.fixture
def node() -> Vectors:
    """A few runs of each kernel on a stated node of 36 cores, and on a GPU."""
    if not FOLDER.is_dir():
        pytest.skip(f"the published data is not in {FOLDER}: set CROSSCAST_DATA")
    vectors = vectors_of(import_rajaperf(FOLDER, cores=36))
    seen: Counter[tuple[str, str]] = Counter()
    few = []
    for kernel in zip(vectors.observations.application, vectors.observations.kernel, strict=True):
        few.append(seen[kernel] < RUNS)
        seen[kernel] += 1
    return vectors.rows(np.array(few))


def test_the_figures_of_new_groups_hold_for_one_that_was_left_out(node: Vectors) -> None:
    out = np.array(node.observations.application) == "Apps"
    train, held = node.rows(~out), node.rows(out)
    predicted = Blend(Effort(50, 100, 0.1)).fit(train, 0).predict(held.observations)
    mean = LogMean().fit(train, 0).predict(held.observations)

    def error(found: Reals) -> float:
        return float(np.abs(found - held.vector).mean())

    assert len(held) == 11 * RUNS
    assert error(predicted) <= 0.095 < error(mean)
    # With two devices, the order is which is the faster.
    same_order = predicted.argmin(axis=1) == held.vector.argmin(axis=1)
    assert same_order.mean() >= 0.93
