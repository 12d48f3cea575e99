"""Evaluations print today what they printed before: ``shared/golden`` beside the published data says what."""

import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crosscast import bundled_dataset
from crosscast.data.corun import co_runs
from crosscast.data.dataset import Dataset, bundled_named
from crosscast.data.views import configured
from crosscast.decide.policies import methods_of
from crosscast.evaluation.configuration.evaluation import evaluate_configuration
from crosscast.evaluation.corun.evaluation import evaluate_corun, of_one_device
from crosscast.evaluation.relative.evaluation import evaluate_relative
from crosscast.evaluation.time.evaluation import evaluate_time
from crosscast.prediction.configuration.data import machines_of
from crosscast.prediction.corun.models import BASELINES
from crosscast.prediction.corun.models import models_named as models_of_co_runs
from crosscast.prediction.relative.models import models_named
from crosscast.prediction.relative.observed import vectors_of
from crosscast.prediction.time.models import model_named
from support.examples import one_in
from support.golden import assert_close
from support.shared import SHARED, published


def golden(name: str) -> Any:
    path = SHARED / "golden" / name
    if not path.exists():
        pytest.skip(f"what evaluations printed is not in {path}")
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return json.loads(content)


@pytest.mark.system
def test_choices_under_power_caps() -> None:
    expected = golden("configuration_powercap.json.gz")
    methods = ["fixed", "cpu+fl", "limiter-returns", "nearest+fl", "oracle"]
    dataset = published("powercap", "powercap")
    machines = machines_of(configured(dataset), expected["dataset"])
    found: dict[str, Any] = evaluate_configuration(
        machines, partial(methods_of, names=methods), label=expected["dataset"]
    ).to_dict()
    results = {(each["method"], each["protocol"]): each for each in expected.pop("results")}
    for result in found.pop("results"):
        # The best baseline is another one among fewer.
        before = {**results[result["method"], result["protocol"]], "against_baseline": {}}
        assert_close({**result, "against_baseline": {}}, before, result["method"])
    assert_close(found, expected)


TRIVIAL = [model_named(name) for name in ("device-mean", "nearest")]


def check_relative(dataset: Dataset, expected: Any) -> None:
    """Cheap models are scored as before."""
    models = models_named(["published-linear", "published-mean", "log-mean"])
    vectors, folds = vectors_of(dataset), expected["protocol"]
    found: dict[str, Any] = evaluate_relative(vectors, models, folds, label=expected["dataset"]).to_dict()
    before = {each["model"]: each for each in expected.pop("results")}
    for result in found.pop("results"):
        assert_close(result, before[result["model"]], result["model"])
    assert_close(found, expected)


def test_relative_performance_of_the_bundled_data() -> None:
    path = Path(__file__).parent / "data" / "golden" / "relative_bundled.json"
    check_relative(bundled_dataset(), json.loads(path.read_text()))


@pytest.mark.system
def test_relative_performance_of_aiwc_2018() -> None:
    check_relative(published("aiwc2018", "aiwc2018"), golden("relative_aiwc.json"))


@pytest.mark.system
def test_relative_performance_of_rajaperf() -> None:
    check_relative(published("rajaperf", "cross_architecture"), golden("relative_rajaperf.json"))


def test_times_of_the_bundled_dataset() -> None:
    # Printed by: crosscast evaluate time bundled --models device-mean,nearest --probes 0,1 --json
    expected = json.loads((Path(__file__).parent / "data" / "golden" / "time_bundled.json").read_text())
    found: dict[str, Any] = evaluate_time(bundled_dataset(), TRIVIAL, probes=(0, 1)).to_dict()
    found.pop("whole_applications")  # Newer than what was kept
    assert_close({**found, "dataset": "bundled"}, expected)


@pytest.mark.system
def test_times_of_the_published_dataset() -> None:
    expected = golden("time_aiwc.json")
    found: dict[str, Any] = evaluate_time(published("aiwc2018", "aiwc2018"), TRIVIAL, probes=(0, 1)).to_dict()
    found.pop("whole_applications")
    results = {(each["model"], each["probes"]): each for each in expected.pop("results")}
    for result in found.pop("results"):
        assert_close(result, results[result["model"], result["probes"]], result["model"])
    # Which runs are drawn for the noise floor depends on their order, which a written dataset changes.
    assert_close(found, {**expected, "dataset": found["dataset"], "noise_floor": found["noise_floor"]})


OF_INTERVALS = {"coverage", "width", "worst_coverage", "worst"}


@pytest.mark.parametrize("name", one_in(3, ["bundled", "gavel", "lucid"]))
def test_co_runs(name: str) -> None:
    expected = golden(f"corun_{name}.json")
    models = models_of_co_runs(BASELINES)
    sources = {"gavel": "gavel_pairs", "lucid": "lucid"}
    dataset = published(sources[name], "gpu_corun") if name in sources else bundled_named("bundled-corun")
    assert dataset is not None
    found: dict[str, Any] = evaluate_corun(
        of_one_device(co_runs(dataset)), models, baselines=BASELINES
    ).to_dict()
    results = [
        {"mix_size" if key == "bag_size" else key: value for key, value in each.items()}
        for each in expected["results"]
    ]
    before = {(each["model"], each["quantity"], each["mix_size"]): each for each in results}
    for result in found["results"]:
        wanted = before[result["model"], result["quantity"], result["mix_size"]]
        if wanted["mape"] is not None:
            # Errors were in per cent.
            groups = {name: each / 100 for name, each in wanted["by_group"].items()}
            wanted = {**wanted, "mape": wanted["mape"] / 100, "by_group": groups}
            # Intervals have become cautious since.
            assert result["coverage"] >= wanted["coverage"]
        found_before, wanted = (
            {name: each[name] for name in wanted if name not in OF_INTERVALS} for each in (result, wanted)
        )
        assert_close(found_before, wanted, result["model"])
