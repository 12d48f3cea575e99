"""A model of times comes back as it was, and parts that do not fit together are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from crosscast.prediction.time.artefact import TrainedTimeModel
from crosscast.prediction.time.models import DeviceMean
from support.models import fitted, model_refusal


def test_sound_checksums_of_wrong_contents_are_refused(tmp_path: Path) -> None:
    known, predictor, card = fitted()
    two = DeviceMean().fit(known.on([0, 1]), 0)
    cases = {
        "expected a model of 4 devices, found one of 3": replace(predictor, covariance=np.eye(3)),
        "covariance: expected a positive definite one, found another": replace(
            predictor, covariance=-np.eye(4)
        ),
        "expected a model of 4 devices, found one of 2": replace(predictor, point=two),
    }
    for number, (reason, wrong) in enumerate(cases.items()):
        TrainedTimeModel(card, wrong).save(tmp_path / str(number))
        assert reason in model_refusal(tmp_path / str(number))
