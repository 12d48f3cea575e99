"""The tables and the pictures of an evaluation.

The published study as it is printed and drawn.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.evaluation.time.evaluation import evaluate_time
from crosscast.evaluation.time.results import TimeEvaluation
from crosscast.prediction.time.forecast import Model
from crosscast.report.time import evaluation_report
from crosscast.studies.johnston2018 import Johnston2018, reproduce
from crosscast.studies.johnston2018_report import study_figures, study_report
from support.golden import assert_printed
from support.johnston2018 import SMALL, made_up
from support.models import MeanModel, Oracle, random_grid

GRID = random_grid()


def study_of(
    *names: str, split: str = "leave-application-out", probes: Sequence[int] = (0,)
) -> TimeEvaluation:
    """Twelve kernels of four applications on four devices; a perfect model stands for the noise floor."""
    models: dict[str, Model] = {
        "device-mean": MeanModel(),
        "oracle": Oracle(GRID),
        "worse": MeanModel("worse", shift=5.0),
    }
    evaluation = evaluate_time(GRID, [models[name] for name in names], split, probes=probes)
    noise = evaluate_time(GRID, [Oracle(GRID)]).results[0]
    return replace(evaluation, label="here", noise=noise)


def page(study: TimeEvaluation) -> str:
    return evaluation_report(study).to_text()


def test_tables_are_as_they_were() -> None:
    """Models come first, then baselines, then what needs no model; what nothing defines is a dash."""
    found = page(study_of("worse", "device-mean", "oracle", probes=(0, 1, 2)))
    assert_printed(found, Path(__file__).with_name("golden") / "time.txt")


def test_left_out_devices_say_what_is_known() -> None:
    found = page(study_of("device-mean", split="leave-device-out"))
    assert "Each device unseen, with each kernel's times on the 3 other devices known" in found
    assert "\nalways" not in found


def test_json_has_no_gaps_and_every_promised_name() -> None:
    found: dict[str, Any] = study_of("device-mean", "oracle", probes=(0, 2)).to_dict()
    assert found["baselines"] == ["device-mean"]
    assert (found["cells"], found["kernels_at_a_size"], found["devices"]) == (48, 12, 4)
    mean, _, oracle, _ = found["results"]
    assert (mean["model"], mean["split"], mean["probes"]) == ("device-mean", "leave-application-out", 0)
    assert set(mean["slowdown_mean_without"]) == {"a0", "a1", "a2", "a3"}
    assert mean["intervals"]["rmse_log"][0] <= mean["rmse_log"] <= mean["intervals"]["rmse_log"][1]
    assert oracle["against_baseline"]["rmse_log"]["baseline"] == "device-mean"
    assert oracle["against_baseline"]["rmse_log"]["better"]
    devices = mean["devices"]
    squares = np.mean([devices[f"d{place}"]["rmse_log"] ** 2 for place in range(4)])
    assert np.sqrt(squares) == pytest.approx(mean["rmse_log"])
    assert found["always_the_same"]["device"] in devices


def test_the_best_model_is_no_baseline_if_there_is_another() -> None:
    best = study_of("device-mean", "worse").best(0)
    only = study_of("device-mean").best(0)
    assert best is not None and only is not None
    assert (best.model, only.model) == ("worse", "device-mean")


@pytest.fixture(scope="module")
def study() -> Johnston2018:
    return reproduce(made_up(), preset=SMALL)


def printed(study: Johnston2018) -> str:
    return study_report(study).to_text()


def test_a_printed_study_is_as_it_was(study: Johnston2018) -> None:
    assert_printed(printed(study), Path(__file__).with_name("golden") / "johnston2018.txt")


def test_what_a_dataset_does_not_have_is_said(study: Johnston2018) -> None:
    text = printed(replace(study, honest=None, energy=None))
    assert "one application only" in text
    assert "energy of too few applications" in text


def test_figures_need_no_second_application(study: Johnston2018) -> None:
    assert len(study_figures(replace(study, honest=None))) == len(study_figures(study))
