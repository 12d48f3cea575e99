"""The worked example of CONTRIBUTING: a question is a folder, and a name in the registry."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast.data.dataset import Dataset
from crosscast.errors import InputError
from crosscast.prediction import named_models
from support.refusals import refusal
from support.tables import dataset, record


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Times of three applications that scatter by 0, 10 and 20 %, with the question in the registry."""
    monkeypatch.setitem(named_models.HOMES, "scatter", named_models.Home("none", "support.scatter_question"))
    return dataset(
        records=[
            record(application=f"app{n}", kernel="k", time_s=[1.0 - n / 10, 1.0 + n / 10]) for n in range(3)
        ]
    )


def test_a_question_of_its_own_is_evaluated_and_trained_as_the_others(data: Dataset, tmp_path: Path) -> None:
    evaluate: Any = crosscast.evaluate
    found = evaluate(data, "scatter", jobs=1, cache=tmp_path)
    # Without one of 0, 10 and 20 %, the middle of the others is 15, 10 and 5 %.
    assert found.error["middle"] == pytest.approx(np.mean([0.15, 0.0, 0.15]))
    assert evaluate(data, "scatter", jobs=1, cache=tmp_path) == found
    assert crosscast.train(data, "scatter", quantile=1.0) == pytest.approx(0.2)  # type: ignore[call-overload]


def test_what_it_does_not_have_is_refused_as_elsewhere(data: Dataset) -> None:
    evaluate: Any = crosscast.evaluate
    with pytest.raises(InputError, match="expected some of quantile for the question scatter"):
        evaluate(data, "scatter", level=0.9)
    with pytest.raises(InputError, match="folds: expected one of leave-application-out"):
        evaluate(data, "scatter", folds="published")
    assert "expected kernels that were run several times" in refusal(evaluate, dataset(), "scatter")
