"""Every fitted part is kept as arrays: it comes back as it was, and damaged arrays are refused by name."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from crosscast.arrays import Arrays
from crosscast.device import Device
from crosscast.prediction.configuration.bailey2014 import PublishedModel
from crosscast.prediction.configuration.process import ProcessModel
from crosscast.prediction.corun import CoRunResiduals
from crosscast.prediction.corun.features import FairnessChoice, MixColumns
from crosscast.prediction.corun.models import Feasibility, FittedSum, Mean, Process
from crosscast.prediction.corun.moolchandani2022 import KINDS, Published
from crosscast.prediction.relative import RelativeResiduals, nichols2024
from crosscast.prediction.relative.models import CombinedRelative, Effort, IntensityTrees, fit_blend
from crosscast.prediction.relative.nichols2024 import fit_features
from crosscast.prediction.serialization import Stored
from crosscast.prediction.time.gaussian import GaussianPredictor, Spread
from crosscast.prediction.time.models import Combined, DeviceMean, Nearest
from crosscast.prediction.time.models import PublishedForest as TimeForest
from crosscast.prediction.time.unseen import Descriptors
from crosscast.prediction.trees import trees_of_forest
from support import published_mixes
from support.grids import lawful_grid, small_grid
from support.mixes import made_co_runs
from support.models import fitted
from support.refusals import refusal
from support.stored import same
from support.surfaces import made_surfaces
from support.vectors import made_profile_vectors, made_vectors
from support.work import made_work

GRID, SMALL, SURFACES, CO_RUNS = lawful_grid(), small_grid(), made_surfaces(4, noise=0.01), made_co_runs()
VECTORS, COUNTED = made_vectors(applications=4), made_vectors(applications=4).observations
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
    "time forest": lambda: TimeForest(trees=3, tried=4).fit(GRID, 0),
    "physical with intervals": lambda: fitted()[1],
    "spread": lambda: Spread(0.1, -5.0, -8.0, -1.0),
    "combined": lambda: Combined().fit(GRID, 0),
    "descriptors": lambda: Descriptors.of(DEVICES),
    "clusters": lambda: PublishedModel(2).fit(SURFACES, (11, 0)).fitted,
    "configuration process": lambda: ProcessModel().fit(SURFACES, (11, 0)).fitted,
    "corun mean": lambda: Mean().fit(CO_RUNS),
    "corun sum": FittedSum,
    "feasibility": lambda: Feasibility("memory_bytes", 3.0, 0.5, 1.0, -2.0),
    "process": lambda: Process().fit(CO_RUNS, 0),
    "process without features": lambda: Process(trees=False).fit(published_mixes.featureless(CO_RUNS), 0),
    "fairness": lambda: FairnessChoice.fit(MIXES),
    "columns": lambda: MixColumns.fit(("CPU_time", "GPU_time", "LLC_miss", "fairness"), MIXES),
    **{f"published {kind}": partial(lambda kind: Published(kind).fit(PAIRS, 0), kind) for kind in KINDS},
    "relative mean": lambda: nichols2024.PublishedMean().fit(VECTORS),
    "relative linear": lambda: nichols2024.PublishedLinear().fit(VECTORS),
    "relative forest": lambda: nichols2024.PublishedVectorForest(trees=3).fit(VECTORS, 0),
    "xgboost": lambda: nichols2024.PublishedXGBoost(rounds=2).fit(VECTORS, 0),
    "relative trees": lambda: IntensityTrees(trees=3).fit(VECTORS, 0),
    "features": lambda: fit_features(COUNTED),
    "filled features": lambda: fit_features(COUNTED, fill=True),
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
