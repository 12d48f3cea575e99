"""Artefacts: what comes back, what is refused, and that a model is replaced as a whole or not at all."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict import artefact as stored
from crosscast.predict.artefact import CARD, PROTOCOL
from crosscast.predict.time.artefact import load_model, save_model
from crosscast.predict.time.baselines import DeviceMean
from crosscast.predict.time.gaussian import GaussianPredictor
from crosscast.predict.time.johnston2018 import PublishedForest
from crosscast.predict.time.models import MODELS
from support.grids import DEVICES, lawful_grid
from support.models import arrays_path, fitted, kept, rewrite_card


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return kept(tmp_path / "model")


def refusal(folder: Path) -> str:
    """The one sentence with which a model is refused, when it is loaded or first used."""
    with pytest.raises(InputError) as caught:
        _ = load_model(folder).predictor
    text = str(caught.value)
    assert "\n" not in text
    assert str(folder) in text
    return text


def test_it_predicts_as_before_to_the_last_bit(folder: Path) -> None:
    known, predictor, card = fitted()
    model = load_model(folder)
    before, after = predictor.predict(known.profiles), model.predict(known.profiles)
    assert after.devices == before.devices
    for name in ("centre", "low", "high"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    assert model.card == card
    assert model.devices == DEVICES


def test_a_device_that_was_not_measured_is_predicted_as_before(folder: Path) -> None:
    known, predictor, _ = fitted()
    device = replace(DEVICES[0], key="next")
    before, after = (each.predict(known.profiles, [device]) for each in (predictor, load_model(folder)))
    np.testing.assert_array_equal(after.centre, before.centre)


def test_a_folder_has_a_card_for_people_and_arrays_without_pickle(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [arrays_path(folder).name, CARD]
    card = json.loads((folder / CARD).read_text())
    assert (card["protocol"], card["model"], card["parts"]) == (
        PROTOCOL,
        "physical",
        {"point": "physical", "unseen": "unseen"},
    )
    with np.load(arrays_path(folder), allow_pickle=False) as arrays:
        assert set(arrays.files) == set(card["arrays"]["contents"])


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    one, other = kept(tmp_path / "one"), kept(tmp_path / "other")
    assert (one / CARD).read_bytes() == (other / CARD).read_bytes()
    assert arrays_path(one).read_bytes() == arrays_path(other).read_bytes()


def test_arrays_are_not_read_before_they_are_needed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = np.lib.format.read_array

    def noted(*words: Any, **options: Any) -> Any:
        read.append("array")
        return original(*words, **options)

    monkeypatch.setattr(np.lib.format, "read_array", noted)
    model = load_model(folder)
    assert not read
    assert model.predictor is model.predictor
    assert len(read) == len(model.arrays.listed)


def test_loading_takes_milliseconds(folder: Path) -> None:
    def seconds() -> float:
        start = time.perf_counter()
        _ = load_model(folder).predictor
        return time.perf_counter() - start

    assert min(seconds() for _ in range(5)) < 0.05


def test_predicting_needs_neither_scikit_learn_nor_scipy_nor_pyarrow(folder: Path) -> None:
    script = (
        "import sys, numpy as np\n"
        "from crosscast import load_model\n"
        "from crosscast.predict.time.data import Profiles\n"
        "from crosscast.profile import METRICS\n"
        f"model = load_model({str(folder)!r})\n"
        "profiles = Profiles(('a',), ('k',), ('s',), np.full((1, len(METRICS)), 3.0))\n"
        "probes = np.array([[1e-3, np.nan, np.nan, np.nan]])\n"
        "assert model.predict(profiles, probes=probes).centre.shape == (1, 4)\n"
        "bad = {'sklearn', 'scipy', 'pyarrow', 'pandas', 'llvmlite'} & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_can_be_kept(name: str, tmp_path: Path) -> None:
    known = lawful_grid()
    point = PublishedForest(trees=5) if name == "published-forest" else MODELS[name]().point
    predictor = replace(fitted()[1], point=point.fit(known, 0))
    save_model(predictor, tmp_path / "model", replace(fitted()[2], model=name))
    after = load_model(tmp_path / "model").predict(known.profiles)
    np.testing.assert_array_equal(after.centre, predictor.predict(known.profiles).centre)


def test_every_kind_of_part_is_where_it_is_said_to_be() -> None:
    for name in stored.STORED:
        with pytest.raises(InputError, match="expected an array"):
            stored.part_of(name, {})


def test_a_part_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    class Own:
        def state(self) -> dict[str, Any]:
            return {}

    predictor = replace(fitted()[1], point=Own())  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"of a kind that can be kept, found .*Own"):
        save_model(predictor, tmp_path / "model", fitted()[2])


def test_no_folder_and_another_folder_are_refused(tmp_path: Path) -> None:
    assert "crosscast train wrote, found no card.json" in refusal(tmp_path)
    assert "found no card.json" in refusal(tmp_path / "nowhere")


def test_a_newer_format_is_refused(folder: Path) -> None:
    rewrite_card(folder, lambda card: card.update(protocol=PROTOCOL + 1))
    assert f"found format {PROTOCOL + 1}: a newer Crosscast wrote it" in refusal(folder)


def test_a_card_that_was_changed_is_refused(folder: Path) -> None:
    path = folder / CARD
    path.write_text(path.read_text().replace('"bigger"', '"biggar"', 1))
    assert "the card is damaged (its checksum does not match)" in refusal(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": NaN}', "\x00", '{"format": 1e999}'])
def test_what_is_no_card_is_refused(folder: Path, text: str) -> None:
    (folder / CARD).write_text(text)
    refusal(folder)


@pytest.mark.parametrize(
    "name", ["model", "seed", "devices", "time_s", "training", "errors", "parts", "arrays"]
)
def test_a_card_without_a_field_names_it(folder: Path, name: str) -> None:
    rewrite_card(folder, lambda card: card.pop(name))
    assert name in refusal(folder)


def test_a_card_cut_off_anywhere_is_refused(folder: Path) -> None:
    whole = (folder / CARD).read_bytes()
    for end in range(0, len(whole) - 2, 997):
        (folder / CARD).write_bytes(whole[:end])
        refusal(folder)


def test_arrays_cut_off_or_missing_are_refused(folder: Path) -> None:
    path = arrays_path(folder)
    whole = path.read_bytes()
    for end in range(0, len(whole), 499):
        path.write_bytes(whole[:end])
        refusal(folder)
    path.unlink()
    assert "found no such file" in refusal(folder)


def test_a_flipped_bit_in_the_arrays_is_found(folder: Path) -> None:
    path = arrays_path(folder)
    whole = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        places = [info.header_offset + 100 for info in file.infolist() if info.compress_size > 200]
    for place in places:
        damaged = whole.copy()
        damaged[place] ^= 4
        path.write_bytes(damaged)
        refusal(folder)


def test_an_array_with_other_values_is_found(folder: Path) -> None:
    path = arrays_path(folder)
    with np.load(path) as file:
        arrays = dict(file)
    arrays["covariance"] = arrays["covariance"] * 2
    np.savez_compressed(path, **arrays)
    assert "array covariance is damaged (its checksum is not the card's)" in refusal(folder)


def test_an_array_that_is_not_there_is_named(folder: Path) -> None:
    path = arrays_path(folder)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != "quantiles"}
    np.savez_compressed(path, **arrays)
    assert "expected an array 'quantiles'" in refusal(folder)


def test_a_pickle_is_not_opened(folder: Path) -> None:
    path = arrays_path(folder)
    with np.load(path) as file:
        arrays = dict(file)
    shape = arrays["covariance"].shape
    arrays["covariance"] = np.full(shape, {"a": 1}, dtype=object)
    np.savez(path, allow_pickle=True, **arrays)
    assert "covariance" in refusal(folder)


def test_a_card_that_asks_for_objects_or_for_other_files_is_refused(folder: Path) -> None:
    rewrite_card(folder, lambda card: card["arrays"]["contents"]["covariance"].update(dtype="|O"))
    assert "dtype: expected that of numbers or texts, found '|O'" in refusal(folder)
    rewrite_card(folder, lambda card: card["arrays"].update(file="../arrays.npz"))
    assert "file: expected the name of a file beside it" in refusal(folder)


def test_sound_checksums_of_wrong_contents_are_refused(tmp_path: Path) -> None:
    known, predictor, card = fitted()
    cases: dict[str, GaussianPredictor] = {
        "positive definite one of 4 devices, found another of shape (3": replace(
            predictor, covariance=np.eye(3)
        ),
        "positive definite one of 4 devices, found another of shape (4": replace(
            predictor, covariance=-np.eye(4)
        ),
        "quantiles: expected numbers that begin at 0": replace(predictor, quantiles=-predictor.quantiles),
        "covariance: expected finite numbers": replace(predictor, covariance=np.full((4, 4), np.nan)),
        "expected a model of 4 devices, found one of 2": replace(
            predictor, point=DeviceMean().fit(known.on([0, 1]), 0)
        ),
    }
    for number, (reason, wrong) in enumerate(cases.items()):
        folder = tmp_path / str(number)
        save_model(wrong, folder, card)
        assert reason in refusal(folder)


def test_an_unknown_kind_of_part_is_refused(folder: Path) -> None:
    rewrite_card(folder, lambda card: card["parts"].update(point="magic"))
    assert "expected a part of one of the kinds" in refusal(folder)
    rewrite_card(folder, lambda card: card.update(parts={"unseen": "unseen"}))
    assert "parts: expected point" in refusal(folder)


@pytest.mark.parametrize(
    "parts", [{"point": "unseen"}, {"unseen": "physical"}, {"covariance": "physical"}, {"devices": "mean"}]
)
def test_a_part_of_another_kind_or_field_is_refused(folder: Path, parts: dict[str, str]) -> None:
    rewrite_card(folder, lambda card: card["parts"].update(parts))
    assert "parts: expected" in refusal(folder)


def test_training_again_replaces_the_whole_model(folder: Path) -> None:
    _, predictor, card = fitted()
    old = arrays_path(folder)
    save_model(replace(predictor, covariance=2 * predictor.covariance), folder, replace(card, seed=7))
    assert not old.exists()
    model = load_model(folder)
    assert model.card.seed == 7
    np.testing.assert_array_equal(model.predictor.covariance, 2 * predictor.covariance)


def test_a_write_that_fails_leaves_the_old_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, predictor, card = fitted()
    replace_file = Path.replace

    def refuse_card(self: Path, target: Path) -> Path:
        if target.name == CARD:
            raise OSError(28, "No space left on device")
        return replace_file(self, target)

    monkeypatch.setattr(Path, "replace", refuse_card)
    changed = replace(predictor, covariance=2 * predictor.covariance)
    with pytest.raises(InputError, match="cannot write the model \\(No space left on device\\)"):
        save_model(changed, folder, card)
    np.testing.assert_array_equal(load_model(folder).predictor.covariance, predictor.covariance)


def test_other_files_are_not_mixed_with_a_model(tmp_path: Path) -> None:
    _, predictor, card = fitted()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="expected an empty folder, or one with a model, found other files"):
        save_model(predictor, tmp_path, card)
    with pytest.raises(InputError, match="expected a folder for the model, found a file"):
        save_model(predictor, tmp_path / "notes.txt", card)
