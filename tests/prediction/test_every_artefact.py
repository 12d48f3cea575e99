"""Laws of the artefacts of all questions: a card is known by its question, and says what belongs to it."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosscast import load_model
from crosscast.errors import InputError
from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.relative.artefact import TrainedRelativeModel
from crosscast.prediction.relative.nichols2024 import PublishedXGBoost
from crosscast.prediction.time.artefact import TrainedTimeModel
from crosscast.prediction.time.johnston2018 import PublishedForest
from crosscast.prediction.time.models import MODELS
from support.corun_models import constant
from support.models import fitted, kept, kept_chooser, model_refusal, rewrite_card
from support.vectors import kept_relative, made_vectors, trained, with_predictor

Change = Callable[[dict[str, Any]], object]
QUESTIONS: dict[str, tuple[Callable[[Path], object], type, str]] = {
    "time": (kept, TrainedTimeModel, "model seed devices time_s training errors arrays"),
    "configuration": (
        kept_chooser,
        TrainedConfigurationModel,
        "model seed configurations samples power training errors kind arrays",
    ),
    "relative": (
        kept_relative,
        TrainedRelativeModel,
        "model seed devices sources counters configuration training errors arrays",
    ),
    "corun": (
        lambda folder: constant(folder, 1.2),
        TrainedCoRunModel,
        "model seed device configuration sizes applications training errors arrays",
    ),
}
"""How a model is kept, what it is when it is loaded, and the fields that its card must have."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_model_is_known_by_its_card_and_takes_the_place_of_another(question: str, tmp_path: Path) -> None:
    folder, (keep, kind, _) = tmp_path / "model", QUESTIONS[question]
    for other, (keep_other, _, _) in QUESTIONS.items():
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


def updated(**changes: Any) -> Change:
    return lambda card: card.update(changes)


WRONG: dict[str, list[tuple[Change, str]]] = {
    "time": [
        (
            lambda card: card["devices"].append(card["devices"][0]),
            "devices: expected at least one, and each once",
        ),
    ],
    "configuration": [
        (
            lambda card: card["samples"][0]["settings"].update(gpu_cap_w=1),
            "samples: configuration: expected one",
        ),
        (
            lambda card: card["samples"].append(card["samples"][0]),
            "expected at least one configuration, and each once, found node",
        ),
        (lambda card: card["samples"].clear(), "samples: expected a list of length >= 1, found []"),
        (lambda card: card["configurations"].append(card["samples"][0]), "expected each once, found node"),
        (lambda card: card["configurations"][0]["settings"].update(x=[1]), "configurations[0].settings.x"),
        (lambda card: card["configurations"][3]["settings"].update(x=1), "models: expected coefficients"),
        (lambda card: card["samples"].pop(), "feature names: expected features of 1 samples, found"),
        (
            lambda card: card["power"]["totals"].update(node="cpu"),
            "power.totals.node: expected a list, found",
        ),
        (lambda card: card["power"]["totals"].update(node=[[]]), "power.totals.node[0]: expected a list of"),
        (lambda card: card["power"]["totals"].pop("node"), "power.totals.node: expected lists of domains"),
        (updated(seed=-1), "seed: expected a whole number >= 0, found -1"),
        (updated(kind="forest"), "kind: expected process or published, found 'forest'"),
    ],
    "relative": [
        (updated(direction="speed-up"), "direction: expected 'time on a device over"),
        (updated(devices=["cpu"]), "devices: expected at least 2, and each once, found cpu"),
        (updated(devices=["cpu", ""]), "devices: expected at least 2, and each once"),
        (updated(sources=[]), "sources: expected at least 1, and each once, found none"),
        (updated(devices=["cpu", "gpu"]), "expected errors on the 2 devices of its card, found 3"),
        (
            lambda card: card["arrays"]["contents"].pop("held_out.log_error"),
            "held_out.log_error: expected numbers along 2 axes, found none",
        ),
    ],
    "corun": [
        (updated(sizes=[]), "sizes: expected a list of length >= 1, found []"),
        (updated(sizes=[1]), "sizes[0]: expected a whole number >= 2, found 1"),
        (updated(memory_bytes=0), "memory_bytes: expected a whole number >= 1, found 0"),
        (updated(runs=[{"application": "a"}]), "runs[0]"),
    ],
}


@pytest.mark.parametrize(
    ("question", "change", "sentence"), [(name, *each) for name in WRONG for each in WRONG[name]]
)
def test_a_wrong_card_is_refused(question: str, change: Change, sentence: str, tmp_path: Path) -> None:
    QUESTIONS[question][0](tmp_path / "model")
    rewrite_card(tmp_path / "model", change)
    assert sentence in model_refusal(tmp_path / "model")


ASK = {
    "time": """
from crosscast.prediction.time.data import ProfileBatch
from crosscast.profile import METRICS
profiles = ProfileBatch(('a',), ('k',), ('s',), np.full((1, len(METRICS)), 3.0))
def ask(model): assert model.predict(profiles, probes={'big': 1e-3}).centre.shape == (1, 4)
""",
    "configuration": """
from crosscast.prediction.configuration.data import Observed
ones = np.array([1.0, 2.0])
def ask(model):
    observed = Observed(np.array(model.predictor.samples), ones, 100 * ones)
    assert np.isfinite(model.predictor.forecast(observed).time.centre).all()
""",
    "relative": """
from crosscast.prediction.relative.data import Observations
one = ('x',)
runs = Observations(one, one, one, one, ('cpu',), ('PAPI_TOT_INS', 'PAPI_BR_INS'), np.array([[1e9, 1e8]]), (),
    np.empty((1, 0)), np.array([1.0]))
def ask(model): assert model.predict(runs, relative_to='gpu').centre.shape == (1, 3)
""",
    "corun": """
from crosscast.data.corun import IsolatedRun
def ask(model):
    runs = (IsolatedRun('a', 's', 'cpu', 1.0), IsolatedRun('b', 's', 'cpu', 2.0))
    assert model.predict([runs])[0].time_s
""",
}
SCRIPT = """
import sys, numpy as np
from crosscast import load_model
{ask}
for folder in sys.argv[1:]:
    ask(load_model(folder))
print(*{{'sklearn', 'scipy', 'xgboost', 'pyarrow', 'pandas', 'llvmlite', 'matplotlib'}} & set(sys.modules))
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


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_loaded_model_is_kept_as_the_same_bytes(question: str, tmp_path: Path) -> None:
    """Its card and its arrays come back as they were; `test_stored_parts` says so of each part."""
    for folder in models_of(question, tmp_path):
        model = load_model(folder)
        model.save(tmp_path / "again")
        first, again = (
            {file.name: file.read_bytes() for file in each.iterdir()} for each in (folder, tmp_path / "again")
        )
        assert first == again


@pytest.mark.parametrize("question", QUESTIONS)
def test_forecasting_needs_none_of_the_packages_that_fit(question: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", SCRIPT.format(ask=ASK[question]), *map(str, models_of(question, tmp_path))]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    # Applications of a mix are those of tables, which Arrow reads.
    assert set(done.stdout.split()) <= ({"pyarrow"} if question == "corun" else set())
