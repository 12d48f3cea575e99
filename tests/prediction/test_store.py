"""Folders of models: whole or not at all, checked when read, and free of code."""

import zipfile
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import pytest

from crosscast.data.fields import decode
from crosscast.errors import InputError
from crosscast.prediction.store import CARD, check_folder, read, write
from support.models import changed, rewrite_card
from support.refusals import refusal as sentence
from support.refusals import refusals

CARD_FIELDS = {"model": "combined", "seed": 1, "errors": {"rmse": 0.5, "none": None}}
ARRAYS = {
    "point.mean": np.arange(6.0).reshape(2, 3),
    "file": np.array(3),
    "names": np.array(["a", "größer"]),
    "mask": np.array([True, False]),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    write(path, "time", CARD_FIELDS, ARRAYS)
    return path


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refusal(folder: Path, question: str | tuple[str, ...] | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read(folder, question).arrays  # noqa: B018
    return str(caught.value)


def test_a_model_comes_back_whole(folder: Path) -> None:
    stored = read(folder, "time")
    assert (stored.folder, stored.question, stored.protocol, stored.card) == (folder, "time", 2, CARD_FIELDS)
    assert list(stored.arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert stored.arrays[name].dtype == array.dtype
        assert np.array_equal(stored.arrays[name], array)
    assert len(files(folder)) == 2


@pytest.mark.parametrize("broken", ["arrays", "card"])
@pytest.mark.parametrize("replaced", [True, False])
def test_a_full_disk_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, replaced: bool
) -> None:
    folder = tmp_path / "model"
    if replaced:
        write(folder, "time", CARD_FIELDS, ARRAYS)
    before = files(folder) if replaced else None

    def full(path: Path, *content: object, **words: object) -> None:
        with path.open("wb") as file:
            file.write(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes" if broken == "arrays" else "write_text", full)
        with pytest.raises(InputError, match=r"model: cannot write the model \(No space left on device\)"):
            write(folder, "time", {"model": "new"}, {"x": np.ones(2)})
    if before is None:
        assert not folder.exists()
    else:
        assert files(folder) == before
        assert read(folder).card == CARD_FIELDS


def test_arrays_stay_when_a_new_card_cannot_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*words: object, **others: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(folder, "time", {"model": "new"}, ARRAYS)
    assert np.array_equal(read(folder).arrays["names"], ARRAYS["names"])


def test_a_folder_with_other_files_is_refused_and_one_that_a_crash_left_is_not(tmp_path: Path) -> None:
    (tmp_path / "arrays-0123456789abcdef.npz").write_bytes(b"half")
    (tmp_path / ".card.12.json").write_bytes(b"half")
    check_folder(tmp_path)
    write(tmp_path, "time", CARD_FIELDS, ARRAYS)
    other = tmp_path / "other"
    other.mkdir()
    (other / "arrays-mine.npz").write_text("")
    with pytest.raises(InputError, match="other: expected an empty folder, or one with a model, found"):
        write(other, "time", CARD_FIELDS, ARRAYS)
    with pytest.raises(InputError, match="expected a folder for the model, found a file"):
        check_folder(other / "arrays-mine.npz")


@pytest.mark.parametrize(
    ("card", "arrays", "message"),
    [
        ({"a": [{"b": float("nan")}]}, {}, "a[0].b: expected a finite number, found nan"),
        ({"a": -float("inf")}, {}, "a: expected a finite number, found -inf"),
        ({"sha256": ""}, {}, "expected fields of other names, found sha256"),
        ({}, {"x": np.array([{}], dtype=object)}, "x: expected an array of numbers or texts, found object"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(
    tmp_path: Path, card: dict[str, Any], arrays: dict[str, Any], message: str
) -> None:
    assert message in sentence(write, tmp_path / "model", "time", card, arrays)
    assert not (tmp_path / "model").exists()


@refusals("path value message")
def test_a_card_that_does_not_fit_is_refused(folder: Path, path: str, value: Any, message: str) -> None:
    rewrite_card(folder, changed(path, value))
    assert message in refusal(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the card is damaged"),
        (b"[1]", "expected the card of a crosscast model"),
        (b'{"format": NaN}', "expected finite numbers, found NaN"),
        (b"[" * 100_000, "the card is damaged"),
        (b" " * ((16 << 20) + 1), "expected at most 16 MiB"),
        (b'{"format": "crosscast model", "protocol": 2, "x": 1e999}', "its checksum does not match"),
    ],
)
def test_a_file_that_is_no_card_is_refused(folder: Path, content: bytes, message: str) -> None:
    (folder / CARD).write_bytes(content)
    assert message in refusal(folder)


def test_a_changed_card_and_a_folder_without_one_are_refused(folder: Path, tmp_path: Path) -> None:
    text = (folder / CARD).read_text()
    (folder / CARD).write_text(text.replace('"seed": 1', '"seed": 2'))
    assert "its checksum does not match" in refusal(folder)
    assert "found no card.json" in refusal(tmp_path)


@pytest.mark.parametrize("damage", ["half", "text", "flipped", "pickle", "header", "longer"])
def test_damaged_arrays_are_refused_and_nothing_is_unpickled(folder: Path, damage: str) -> None:
    path = read(folder).path
    whole = path.read_bytes()
    if damage in ("pickle", "header", "longer"):
        # As many bytes as the card says, and a header of a terabyte; or more bytes.
        huge = {"descr": "<f8", "fortran_order": False, "shape": (1 << 37,)}
        with zipfile.ZipFile(path, "w") as archive:
            for name, array in ARRAYS.items():
                with archive.open(f"{name}.npy", "w") as member:
                    if damage == "pickle":
                        np.lib.format.write_array(member, array.astype(object), allow_pickle=True)
                    elif damage == "longer":
                        np.lib.format.write_array(member, array)
                        member.write(bytes(8192))
                    else:
                        np.lib.format.write_array_header_1_0(member, huge)
                        member.write(array.tobytes())
    else:
        flipped = whole[:100] + bytes([whole[100] ^ 0xFF]) + whole[101:]
        path.write_bytes(
            {"half": whole[: len(whole) // 2], "text": b"no archive", "flipped": flipped}[damage]
        )
    assert str(path) in refusal(folder)


class Range(msgspec.Struct):
    name: str
    low: Annotated[float, msgspec.Meta(ge=0)]
    high: float | None = None


class Section(msgspec.Struct):
    seed: int
    metrics: list[Range] = []
    numbers: dict[str, float] = {}
    flag: bool = False


@refusals("value message")
def test_a_section_is_told_with_its_place_or_is_a_structure(value: Any, message: str) -> None:
    assert sentence(decode, Section, value, "card") == f"card: {message}"
