"""Evaluations print today what they printed before: ``shared/golden`` beside the published data says what."""

import gzip
import json
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crosscast import bundled_dataset
from crosscast.data.corun import co_runs
from crosscast.data.dataset import dataset_named
from crosscast.data.views import configured
from crosscast.decide.policies import methods_of
from crosscast.evaluation.configuration.evaluation import evaluate_configuration
from crosscast.evaluation.corun.evaluation import evaluate_corun, of_one_device
from crosscast.evaluation.relative.evaluation import evaluate_relative
from crosscast.evaluation.time.evaluation import evaluate_time
from crosscast.prediction.configuration import machines_of
from crosscast.prediction.corun.models import BASELINES
from crosscast.prediction.corun.models import models_named as models_of_co_runs
from crosscast.prediction.relative.models import models_named
from crosscast.prediction.relative.observed import vectors_of
from crosscast.prediction.time.models import model_named
from support.examples import one_in
from support.golden import assert_close
from support.schemas import assert_valid
from support.shared import SHARED, published


def golden(name: str) -> Any:
    """What was printed, for data of the package or published data."""
    path = Path(__file__).parent / "data" / "golden" / name
    if not path.exists():
        path = SHARED / "golden" / name
    if not path.exists():
        pytest.skip(f"what evaluations printed is not in {path}")
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    before = renamed(json.loads(content))
    return {"dataset": before.pop("dataset"), "question": name.partition("_")[0], **before}


def renamed(value: Any) -> Any:
    """What was printed, with the names of today."""
    names = {"protocol": "folds", "split": "folds", "folds": "fold_count", "target": "question"}
    if isinstance(value, dict):
        return {names.get(name, name): renamed(each) for name, each in value.items()}
    return [renamed(each) for each in value] if isinstance(value, list) else value


def check_results(
    found: dict[str, Any], expected: dict[str, Any], names: tuple[str, ...], but: Collection[str] = ()
) -> None:
    """Results are as before, by these members that name them; some members of results may differ."""
    assert_valid(found)
    before = {tuple(each[name] for name in names): each for each in expected["results"]}
    for result in found["results"]:
        wanted = before[tuple(result[name] for name in names)]
        same, was = ({k: v for k, v in each.items() if k not in but} for each in (result, wanted))
        assert_close(same, was, str(result[names[0]]))
    left_out = {"results", "dataset", "version", "whole_applications"}  # The last two are newer
    whole, was = ({k: v for k, v in each.items() if k not in left_out} for each in (found, expected))
    assert_close(whole, was)


@pytest.mark.system
def test_choices_under_power_caps() -> None:
    expected = golden("configuration_powercap.json.gz")
    methods = ["fixed", "cpu+fl", "limiter-returns", "nearest+fl", "oracle"]
    machines = machines_of(configured(published("powercap", "powercap")), expected["dataset"])
    found = evaluate_configuration(machines, partial(methods_of, names=methods)).to_dict()
    # The best baseline is another one among fewer.
    check_results(found, expected, ("method", "folds"), but={"against_baseline"})


RELATIVE = [
    ("relative_bundled.json", None),
    ("relative_aiwc.json", ("aiwc2018", "aiwc2018")),
    ("relative_rajaperf.json", ("rajaperf", "cross_architecture")),
]


@pytest.mark.parametrize(("name", "source"), one_in(3, RELATIVE))
def test_relative_performance(name: str, source: tuple[str, str] | None) -> None:
    expected = golden(name)
    models = models_named(["published-linear", "published-mean", "log-mean"])
    vectors = vectors_of(published(*source) if source else bundled_dataset())
    check_results(evaluate_relative(vectors, models, expected["folds"]).to_dict(), expected, ("model",))


@pytest.mark.parametrize("name", one_in(2, ["bundled", "aiwc"]))
def test_times(name: str) -> None:
    # Printed by: crosscast evaluate time bundled --models device-mean,nearest --probes 0,1 --json
    dataset = bundled_dataset() if name == "bundled" else published("aiwc2018", "aiwc2018")
    trivial = [model_named(each) for each in ("device-mean", "nearest")]
    found: dict[str, Any] = evaluate_time(dataset, trivial, probes=(0, 1)).to_dict()
    expected = golden(f"time_{name}.json")
    if name == "aiwc":
        # Which runs are drawn for the noise floor depends on their order, which a written dataset changes.
        expected["noise_floor"] = found["noise_floor"]
    check_results(found, expected, ("model", "probes"))


@pytest.mark.parametrize("name", one_in(3, ["bundled", "gavel", "lucid"]))
def test_co_runs(name: str) -> None:
    expected = golden(f"corun_{name}.json")
    sources = {"gavel": "gavel_pairs", "lucid": "lucid"}
    dataset = published(sources[name], "gpu_corun") if name in sources else dataset_named("bundled-corun")
    found = evaluate_corun(of_one_device(co_runs(dataset)), models_of_co_runs(BASELINES), baselines=BASELINES)
    before = {(each["model"], each["quantity"], each["bag_size"]): each for each in expected["results"]}
    assert_valid(found.to_dict())
    for result in found.to_dict()["results"]:  # type: ignore[attr-defined]
        wanted = before[result["model"], result["quantity"], result["mix_size"]]
        if wanted["mape"] is not None:
            # Errors were in per cent.
            groups = {name: each / 100 for name, each in wanted["by_group"].items()}
            wanted |= {"mape": wanted["mape"] / 100, "by_group": groups}
            # Intervals have become cautious since.
            assert result["coverage"] >= wanted["coverage"]
        same = wanted.keys() - {"bag_size", "coverage", "width", "worst_coverage", "worst"}
        found_before, was = ({name: each[name] for name in same} for each in (result, wanted))
        assert_close(found_before, was, result["model"])
