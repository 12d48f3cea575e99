"""Studies: by source, by what is left out, importances and fewer features."""

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.evaluation.relative.evaluation import evaluate_relative
from crosscast.prediction.relative.nichols2024 import PublishedMean, PublishedXGBoost
from crosscast.studies.nichols2024 import importances, study_relative
from support.vectors import made_vectors

VECTORS = made_vectors(applications=5)
QUICK = PublishedXGBoost(rounds=15, depth=3)
HONEST = "leave-application-out"


def test_the_feature_that_decides_is_the_important_one() -> None:
    found = importances(VECTORS, HONEST, model=QUICK)
    assert found.mae == pytest.approx(
        evaluate_relative(VECTORS, [QUICK], HONEST).results[0].metrics.mae, rel=1e-12
    )
    first, *others = found.features
    assert "branch" in first.feature.lower()
    assert sum(each.gain for each in found.features) == pytest.approx(1)
    assert first.rise > 0.02
    assert first.rise > 5 * max(abs(each.rise) for each in others)


def test_what_there_is_one_of_is_not_studied_nor_left_out() -> None:
    rows = VECTORS.observations
    texts = zip(rows.source, rows.size, rows.application, strict=True)
    one = VECTORS.rows(np.array([each == ("cpu", "size0", "app00") for each in texts]))
    studies = study_relative(one, [PublishedMean()], "leave-kernel-out", boosted=QUICK).studies
    assert studies is not None
    assert (studies.by_source, studies.by_scale, studies.by_application) == (None, None, None)
    assert studies.to_dict()["by_source"] is None
    one = VECTORS.rows(np.array([name == "app00" for name in VECTORS.observations.application]))
    with pytest.raises(InputError, match=r"^leave-application-out: expected at least 2 applications"):
        study_relative(one, [PublishedMean()], HONEST)
