"""A model comes back as it was, damaged contents are refused, and models of format 1 forecast as before."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosscast import load_model
from crosscast.predict.time.artefact import TrainedTimeModel
from crosscast.predict.time.gaussian import GaussianPredictor
from crosscast.predict.time.johnston2018 import PublishedForest
from crosscast.predict.time.models import MODELS, DeviceMean
from support.grids import DEVICES
from support.models import fitted, kept, model_refusal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return kept(tmp_path / "model")


def loaded(folder: Path) -> TrainedTimeModel:
    model: TrainedTimeModel = load_model(folder)
    return model


def test_it_predicts_as_before_to_the_last_bit(folder: Path) -> None:
    known, predictor, card = fitted()
    model, devices = loaded(folder), [*DEVICES, replace(DEVICES[0], key="next")]
    before, after = (each.predict(known.profiles, devices) for each in (predictor, model))
    assert after.devices == before.devices
    for name in ("centre", "low", "high"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    assert (model.card, model.devices, model.folder) == (card, DEVICES, folder)


@pytest.fixture(scope="module")
def of_each_model(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, GaussianPredictor]]:
    known, predictor, card = fitted()
    found = {}
    for name, make in MODELS.items():
        point = PublishedForest(trees=5) if name == "published-forest" else make().point
        folder, changed = tmp_path_factory.mktemp(name), replace(predictor, point=point.fit(known, 0))
        TrainedTimeModel(card, changed).save(folder)
        found[name] = folder, changed
    return found


def test_predicting_needs_neither_scikit_learn_nor_scipy_nor_pyarrow(
    of_each_model: dict[str, tuple[Path, GaussianPredictor]],
) -> None:
    script = (
        "import sys, numpy as np\n"
        "from crosscast import load_model\n"
        "from crosscast.predict.time.data import ProfileBatch\n"
        "from crosscast.profile import METRICS\n"
        "profiles = ProfileBatch(('a',), ('k',), ('s',), np.full((1, len(METRICS)), 3.0))\n"
        "for folder in sys.argv[1:]:\n"
        "    assert load_model(folder).predict(profiles, probes={'big': 1e-3}).centre.shape == (1, 4)\n"
        "bad = {'sklearn', 'scipy', 'pyarrow', 'pandas', 'llvmlite'} & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    folders = [str(folder) for folder, _ in of_each_model.values()]
    subprocess.run([sys.executable, "-c", script, *folders], check=True)


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
