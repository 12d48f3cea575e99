"""Artefacts, parts and forecasts of all models: known by their cards, and as they were.

Every fitted part is kept as arrays: it comes back as it was, and damaged arrays are refused by name.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from crosscast import load_model
from crosscast.arrays import Arrays
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.evaluation.configuration.question import train_configuration
from crosscast.evaluation.corun.evaluation import of_one_device
from crosscast.evaluation.corun.question import train_corun
from crosscast.prediction.configuration import ConfigurationModel, Surfaces
from crosscast.prediction.configuration.artefact import NearestKernels, TrainedConfigurationModel
from crosscast.prediction.configuration.bailey2014 import PublishedModel
from crosscast.prediction.configuration.choice import choice_of
from crosscast.prediction.configuration.process import ProcessModel
from crosscast.prediction.corun import CoRunModel, CoRunResiduals
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.corun.features import FairnessChoice, MixColumns
from crosscast.prediction.corun.models import Feasibility, FittedSum, Mean, Process, Sum, models_named
from crosscast.prediction.corun.moolchandani2022 import KINDS, Published
from crosscast.prediction.corun.translation import shared_times, train_translation, translated_forecasts
from crosscast.prediction.relative import RelativeResiduals, Vectors
from crosscast.prediction.relative.artefact import TrainedRelativeModel
from crosscast.prediction.relative.models import CombinedRelative, Effort, IntensityTrees, fit_blend
from crosscast.prediction.relative.nichols2024 import (
    LogMean,
    PublishedLinear,
    PublishedMean,
    PublishedVectorForest,
    PublishedXGBoost,
    fit_features,
)
from crosscast.prediction.serialization import Stored
from crosscast.prediction.time.artefact import TrainedTimeModel
from crosscast.prediction.time.gaussian import GaussianPredictor, Spread
from crosscast.prediction.time.models import MODELS, Combined, DeviceMean, Nearest, PublishedForest
from crosscast.prediction.time.unseen import Descriptors
from crosscast.prediction.trees import trees_of_forest
from support import published_mixes
from support.corun_models import constant
from support.golden import assert_kept
from support.grids import lawful_grid, linear_samples, linear_surfaces, small_grid
from support.mixes import NAMES, counted_co_runs, made_co_runs, make_isolated_run
from support.models import changed, fitted, kept, kept_chooser, model_refusal, rewrite_card
from support.refusals import refusal, refusals
from support.stored import same
from support.surfaces import made_surfaces
from support.vectors import kept_relative, made_profile_vectors, made_vectors, trained, with_predictor
from support.work import made_work

QUESTIONS: dict[str, tuple[Callable[[Path], object], type]] = {
    "time": (kept, TrainedTimeModel),
    "configuration": (kept_chooser, TrainedConfigurationModel),
    "relative": (kept_relative, TrainedRelativeModel),
    "corun": (lambda folder: constant(folder, 1.2), TrainedCoRunModel),
}
"""How a model is kept, and what it is when it is loaded."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_model_is_known_by_its_card_and_takes_the_place_of_another(question: str, tmp_path: Path) -> None:
    folder, (keep, kind) = tmp_path / "model", QUESTIONS[question]
    for other, (keep_other, _) in QUESTIONS.items():
        keep_other(folder)
        if other != question:
            with pytest.raises(
                InputError, match=f"by 'crosscast train {question}', found one by '.* {other}'"
            ):
                load_model(folder, question)
    keep(folder)
    assert isinstance(load_model(folder, question), kind)
    assert isinstance(load_model(folder), kind)
    assert len(list(folder.iterdir())) == 2


@refusals("question path value sentence")
def test_a_wrong_card_is_refused(question: str, path: str, value: Any, sentence: str, tmp_path: Path) -> None:
    QUESTIONS[question][0](tmp_path / "model")
    rewrite_card(tmp_path / "model", changed(path, value))
    assert sentence in model_refusal(tmp_path / "model")


SCRIPT = """
import sys, numpy as np
from crosscast import load_model
from crosscast.prediction.configuration import Observed
from crosscast.prediction.relative import Observations
from crosscast.prediction.time import ProfileBatch
from crosscast.profile import METRICS

def time(model):
    profiles = ProfileBatch(('a',), ('k',), ('s',), np.full((1, len(METRICS)), 3.0))
    assert model.predict(profiles, probes={'big': 1e-3}).centre.shape == (1, 4)

def configuration(model):
    ones = np.array([1.0, 2.0])
    observed = Observed(np.array(model.predictor.samples), ones, 100 * ones)
    assert np.isfinite(model.predictor.forecast(observed).time.centre).all()

def relative(model):
    one, names, counted = ('x',), ('PAPI_TOT_INS', 'PAPI_BR_INS'), np.array([[1e9, 1e8]])
    runs = Observations(*[one] * 4, ('cpu',), names, counted, (), np.empty((1, 0)), np.array([1.0]))
    assert model.predict(runs, relative_to='gpu').centre.shape == (1, 3)

def corun(model):
    # Applications of a mix are those of tables, which Arrow reads.
    from crosscast.data.corun import IsolatedRun
    runs = (IsolatedRun('a', 's', 'cpu', 1.0), IsolatedRun('b', 's', 'cpu', 2.0))
    assert model.predict([runs])[0].time_s

for words in sys.argv[1:]:
    question, folder = words.split(':', 1)
    if question == 'corun':
        print(*{'pyarrow'} & set(sys.modules))
    globals()[question](load_model(folder))
print(*{'sklearn', 'scipy', 'xgboost', 'pandas', 'llvmlite', 'matplotlib'} & set(sys.modules))
"""


def models_of(question: str, folder: Path) -> Iterator[Path]:
    """Folders of models of a question: of those that are fitted by other packages, each kind."""
    QUESTIONS[question][0](folder / "model")
    yield folder / "model"
    if question == "time":
        known, predictor, card = fitted()
        for name, make in MODELS.items():
            point = PublishedForest(trees=5) if name == "published-forest" else make().point
            TrainedTimeModel(card, replace(predictor, point=point.fit(known, 0))).save(folder / name)
            yield folder / name
    if question == "relative":
        boosted = PublishedXGBoost(rounds=5).fit(made_vectors(), 0)
        with_predictor(trained(), boosted).save(folder / "xgboost")
        yield folder / "xgboost"


def test_forecasting_needs_none_of_the_packages_that_fit(tmp_path: Path) -> None:
    asked = [f"{each}:{folder}" for each in QUESTIONS for folder in models_of(each, tmp_path / each)]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *asked], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


BOTH = made_co_runs(NAMES[:5], mixes=(2, 3))
A, B, C, *_ = BOTH.isolated_runs
NEW = make_isolated_run("gem")
ASKED = [(A, B), (A, NEW), (NEW, NEW), (A, B, C), (C, A, NEW)]


def co_runs() -> Iterator[object]:
    """What each model says of new and of known applications, in pairs and threes."""
    published = published_mixes.made_co_runs((2, 3), applications=6)
    new = [mix.isolated_runs for mix in published_mixes.made_co_runs((2, 3), seed=9, applications=4).mixes]
    kinds = ("linear", "decision-tree", "boosting")
    models = (Mean(), Sum(), Process(), Process(trees=False), Published("forest", others=True))
    pairs: list[tuple[CoRunModel, Any, Any]] = [(model, BOTH, ASKED) for model in models]
    pairs += [(Published(kind), published, new[::3]) for kind in kinds]
    for model, data, asked in pairs:
        yield vars(model.fit(data, 0).predict(asked))


def trained_co_runs() -> Iterator[object]:
    """A card, forecasts of a trained model with probes and without, and what it would have measured."""
    data = made_co_runs(NAMES[:4])
    model = train_corun(data, Process(trees=False), baselines=[Mean()], memory_bytes=3 << 20)
    told = model.with_probes([((A, NEW), (1.4, 1.9)), ((A, B, C), (2, 2.5, 3))])
    for each in (model, told):
        yield each.predict(ASKED, level=0.8).to_dict()
        yield each.suggest_probes(2, ASKED[:3], among=[(A, NEW), (B, NEW), (C, NEW), (A, B)]).to_dict()
    yield model.card.errors
    card = train_translation(shared_times(counted_co_runs(), "cpu", "other"))
    (linear,) = models_named(["published-linear"])
    here = train_corun(of_one_device(counted_co_runs((2,)), "cpu"), linear)
    mixes = [mix.isolated_runs for mix in counted_co_runs((2,)).mixes[:3]]
    yield [each.to_dict() for each in translated_forecasts(here, card, mixes)]


def configurations() -> Iterator[object]:
    """Forecasts of a kernel that was left out, with their intervals, and what is chosen by them."""
    machines: list[tuple[Surfaces, tuple[int, ...]]] = [(made_surfaces(6, noise=0.01), (11, 0))]
    machines.append((linear_surfaces(), linear_samples(linear_surfaces().space)))
    models: tuple[ConfigurationModel, ...] = (NearestKernels(), PublishedModel(), ProcessModel())
    for surfaces, samples in machines:
        for model in models:
            fitted = model.fit(surfaces.take(~surfaces.rows_of(["app1"])), samples)
            (row, *_) = np.flatnonzero(surfaces.rows_of(["app1"])).tolist()
            forecast = fitted.forecast(surfaces.observed(row, samples))
            for each in (forecast.time, forecast.power):
                yield each.centre, each.spread, each.limits(0.8) if each.programs else None
            yield choice_of(forecast, surfaces.space, float(np.median(surfaces.power_w[row]))).to_dict()


def trained_configurations() -> Iterator[object]:
    yield train_configuration(made_surfaces(4, noise=0.02), "published").card.errors


def relatives() -> Iterator[object]:
    """Vectors of each model, and a trained one's forecasts and card."""
    made, work, profiles = VECTORS, made_work(kernels=6, sizes=2, noise=0.1), made_profile_vectors()
    counted = (PublishedMean(), LogMean(), PublishedLinear(), PublishedVectorForest(trees=5))
    for model in (*counted, PublishedXGBoost(rounds=5), IntensityTrees(trees=5)):
        yield model.fit(made, 0).predict(made.observations)[:4]
    pairs: list[tuple[Any, Vectors]] = [(CombinedRelative().fit(profiles, 0), profiles)]
    pairs += [(fit_blend(each, 0, FEW, FEW), each) for each in (work, made)]
    for predictor, vectors in pairs:
        yield predictor.predict(vectors.observations)[:4]
    forecast = trained().predict(made.observations.rows(np.arange(4)), relative_to="gpu", level=0.8)
    yield [forecast[row].to_dict() for row in range(4)]
    yield {name: each for name, each in trained().card.errors.items() if name != "sha256"}


@pytest.mark.parametrize(
    "forecasts", [co_runs, trained_co_runs, configurations, trained_configurations, relatives]
)
def test_what_is_forecast_is_as_it_was(forecasts: Callable[[], Iterator[object]]) -> None:
    path = Path(__file__).with_name("golden") / f"{forecasts.__name__}.json"
    assert_kept(list(forecasts()), path)


GRID, SMALL, SURFACES, CO_RUNS = lawful_grid(), small_grid(), made_surfaces(4, noise=0.01), made_co_runs()
VECTORS = made_vectors(applications=4)
PAIRS = published_mixes.made_co_runs()
MIXES = [mix.isolated_runs for mix in PAIRS.mixes]
FEW = Effort(5, 10, 0.25)
SIX, THREE = np.array([1, -1, 1, 1, -1, 1.0]) / 9, np.array([0, 0, 1, 1, 2, 2])
DEVICES = [
    Device("one", "", "Nvidia", "gpu", numbers={"clock_hz": 1e9, "tdp_w": 200.0}),
    Device("two", "", "Nvidia", "gpu", numbers={"clock_hz": 2e9}),
]


def grown() -> Stored:
    rows = np.random.default_rng(0).normal(size=(60, 4))
    return trees_of_forest(ExtraTreesRegressor(7, random_state=0).fit(rows, rows[:, :3]))


PARTS: dict[str, Callable[[], Any]] = {
    "trees": grown,
    "residuals": lambda: CoRunResiduals(SIX, THREE, ("a", "b", "c"), THREE, SIX),
    "time mean": lambda: DeviceMean().fit(SMALL, 0),
    "nearest": lambda: Nearest().fit(SMALL, 0),
    "time forest": lambda: PublishedForest(trees=3, tried=4).fit(GRID, 0),
    "physical with intervals": lambda: fitted()[1],
    "spread": lambda: Spread(0.1, -5.0, -8.0, -1.0),
    "combined": lambda: Combined().fit(GRID, 0),
    "descriptors": lambda: Descriptors.of(DEVICES),
    "clusters": lambda: PublishedModel(2).fit(SURFACES, (11, 0)).fitted,
    "configuration process": lambda: ProcessModel().fit(SURFACES, (11, 0)).fitted,
    "corun mean": lambda: Mean().fit(CO_RUNS, 0),
    "corun sum": FittedSum,
    "feasibility": lambda: Feasibility("memory_bytes", 3.0, 0.5, 1.0, -2.0),
    "process": lambda: Process().fit(CO_RUNS, 0),
    "process without features": lambda: Process(trees=False).fit(published_mixes.featureless(CO_RUNS), 0),
    "fairness": lambda: FairnessChoice.fit(MIXES),
    "columns": lambda: MixColumns.fit(("CPU_time", "GPU_time", "LLC_miss", "fairness"), MIXES),
    **{f"published {kind}": partial(lambda kind: Published(kind).fit(PAIRS, 0), kind) for kind in KINDS},
    "relative mean": lambda: PublishedMean().fit(VECTORS),
    "relative linear": lambda: PublishedLinear().fit(VECTORS),
    "relative forest": lambda: PublishedVectorForest(trees=3).fit(VECTORS, 0),
    "xgboost": lambda: PublishedXGBoost(rounds=2).fit(VECTORS, 0),
    "relative trees": lambda: IntensityTrees(trees=3).fit(VECTORS, 0),
    "features": lambda: fit_features(VECTORS.observations),
    "filled features": lambda: fit_features(VECTORS.observations, fill=True),
    "blend": lambda: fit_blend(made_work(kernels=6, sizes=2), 0, FEW, FEW),
    "blend without sums": lambda: fit_blend(VECTORS, 0, FEW, FEW),
    "blend that is a mean": lambda: replace(fit_blend(VECTORS, 0, FEW, FEW), mean=np.log([0.5, 1, 0.2])),
    "by times": lambda: CombinedRelative().fit(made_profile_vectors(), 0),
    "relative residuals": lambda: RelativeResiduals.of(list("aabbcc"), list("xyxyxy"), np.ones((6, 2)) / 9),
}


@cache
def part_named(name: str) -> Stored:
    part: Stored = PARTS[name]()
    return part


def again(part: Stored, state: Arrays) -> Stored:
    """The part that is read from these arrays, with the fields of the card."""
    given: dict[str, Any] = {"devices": part.devices} if isinstance(part, GaussianPredictor) else {}
    return type(part).from_state(state, **given)


def refused(part: Stored, state: Arrays) -> str:
    text = refusal(again, part, state)
    assert text.startswith("model: ")
    return text


each_part = pytest.mark.parametrize("name", PARTS)


@each_part
def test_a_part_comes_back_as_it_was(name: str) -> None:
    part = part_named(name)
    state = part.state()
    assert {array.dtype.kind for array in state.values()} <= set("iufUb")
    assert same(part, again(part, state))


MAY_LACK = {
    "residuals": {"mix", "log_value"},
    "clusters": {"clusters.asked"},
    "blend that is a mean": {"mean"},
}
"""Arrays without which there is a sound part that knows less."""


@each_part
def test_a_state_that_lacks_an_array_is_refused_by_name(name: str) -> None:
    part = part_named(name)
    state = part.state()
    for lacking in state.keys() - MAY_LACK.get(name, set()):
        message = refused(part, {each: state[each] for each in state if each != lacking})
        # One of two correlations alone is told with both.
        assert lacking.split(".")[-1] in message or "correlation" in lacking


ANY = "expected"
DAMAGED: dict[str, list[tuple[str, Any, str]]] = {
    "trees": [
        ("split_feature", lambda a: a[:-1], "split_threshold: expected 412 along axis s"),
        ("split_right", lambda a: a - 10**6, "split_right: expected numbers of nodes, at least -"),
        ("split_left", lambda a: np.arange(len(a)), "split_left: expected children after"),
        ("split_left", lambda a: 0 * a - 1, "expected one parent, or to be a root, of every"),
        ("root", lambda a: a[:1], "expected one parent, or to be a root, of every node, found 0 of"),
        ("split_threshold", lambda a: np.abs(a) * 1e300, "split_threshold: expected at most 3.4"),
    ],
    "residuals": [("group", np.zeros(6, np.int64), "expected residuals of each of 3 groups")],
    "time forest": [("leaf_value", lambda a: np.hstack([a, a]), "expected outputs of number 1, found 2")],
    "descriptors": [("device_numbers", np.array(["clock_hz", "horses"]), "horses")],
    "clusters": [
        ("tree.feature", lambda a: a + 30, "tree.feature: expected"),
        ("tree.left", np.zeros_like, "tree"),
        ("tree.right", lambda a: np.where(a > 0, 1, a), "tree"),
        ("tree.counts", lambda a: a[1:], "tree.counts: expected"),
        ("tree.names", lambda a: np.array(["x", *a[1:]]), "tree.names: expected"),
        ("clusters.sizes", np.array([3, 2]), "sizes: expected a sum of 8, found 5"),
        ("clusters.sizes", np.array([8]), "clusters: expected those of 2"),
        *(
            ("features.names", lambda a, name=name: np.array([name, *a[1:]]), f"@sample, found {name!r}")
            for name in ("x", "power", "power@x", "disk:a@0", "domain:@0")
        ),
    ],
    "configuration process": [
        ("time_errors", lambda a: a[::-1], "time_errors: expected rising numbers"),
        ("names", lambda a: a[1:], "names: expected"),
        ("names", lambda a: a[[0, 1, 1]], "names: expected time and powers, each once, found time, cpu, cpu"),
        ("plain.names", np.array(["time", "cpu"]), "plain.names: expected time, power, found time"),
        ("quantities.0.lengths", lambda a: a[1:], "lengths: expected those of"),
    ],
    "corun mean": [("sizes", np.array([2, 0]), "sizes: expected 0 first, found 2")],
    "process": [
        ("slowdowns.lengths", np.ones((2, 3)), "near and lengths: expected"),
        ("slowdowns.variances", np.ones(2), "variances: expected"),
    ],
    "fairness": [
        ("pressure", np.array("weather"), "pressure"),
        ("pressure_thresholds", np.array([2.0, 1.0]), "pressure"),
    ],
    "columns": [("flagged", np.array([9]), "flagged: expected less than 4")],
    "published linear": [
        ("sizes.count", np.array(0), ANY),
        ("sizes.0.members", np.array(3), ANY),
        ("sizes.0.time_s.regressor.slopes", np.zeros(3), ANY),
        ("sizes.0.time_s.regressor.kind", np.array("magic"), "regressor.kind: expected one of the kinds"),
        ("sizes.0.time_s.columns", np.array([99]), ANY),
    ],
    "relative trees": [("fill", np.array(False), "fill: expected")],
    "features": [("keys", np.array(["a"]), ANY), ("origins", np.zeros_like, ANY)],
    "blend": [
        ("fill", np.array(False), "features.fill: expected features whose gaps are filled"),
        ("prices.prices", np.array([[1.0, 0.0]] * 4), "prices: expected"),
        ("prices.prices", np.ones((4, 3)), "prices"),
        ("prices.devices", np.array(["cpu"]), "prices"),
        ("grown.leaf_value", lambda a: np.hstack([a, a[:, :1]]), "expected outputs of number 2, found 3"),
    ],
    "relative residuals": [
        ("group", np.array([0, 1, 2, 9, 0, 0]), "of each of 3 groups, found those of [0, 1, 2, 9]"),
        ("group", np.array([0, 1, 1, 0, 1, 1]), "group: expected residuals of each of 3 groups"),
        ("sources", np.array(["x", "y", "z"]), "source: expected residuals of each of 3 sources"),
    ],
}


@pytest.mark.parametrize(
    ("name", "array", "damage", "sentence"), [(name, *each) for name in DAMAGED for each in DAMAGED[name]]
)
def test_a_damaged_array_is_refused_in_a_sentence(name: str, array: str, damage: Any, sentence: str) -> None:
    part = part_named(name)
    state = part.state()
    values = damage(state[array]) if callable(damage) else damage
    assert sentence in refused(part, {**state, array: values})
