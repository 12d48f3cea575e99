"""Cached answers: under names made of all that they depend on, and as good as none when damaged."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import InputError
from crosscast.evaluation import keep
from crosscast.evaluation.keep import AnswerCache, digest, sources_digest
from support.refusals import refusal

ASK = {"model": ["mean", "m.Mean()"], "rows": [1, 2]}
ANSWER = {"centre": np.array([[1.0, 2.5]]), "file": np.array([3]), "names": np.array(["a", "b"])}


@dataclass(frozen=True)
class Inner:
    name: str
    values: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Outer:
    parts: tuple[Inner, ...]
    facts: dict[str, object]


def outer(value: float = 1.0, **facts: object) -> Outer:
    return Outer((Inner("a", np.array([value, np.nan])),), facts)


def test_an_answer_comes_back_whole(tmp_path: Path) -> None:
    kept = AnswerCache(tmp_path / "new", "data", ("errors.py",))
    assert kept.load(ASK) is None
    kept.save(ASK, ANSWER)
    loaded = kept.load(ASK)
    assert loaded is not None
    assert {name: each.tolist() for name, each in loaded.items()} == {
        name: each.tolist() for name, each in ANSWER.items()
    }


def test_another_question_other_data_and_other_sources_are_other_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    AnswerCache(tmp_path, "data", ("errors.py",)).save(ASK, ANSWER)
    assert AnswerCache(tmp_path, "data", ("errors.py",)).load({**ASK, "rows": [1]}) is None
    assert AnswerCache(tmp_path, "other", ("errors.py",)).load(ASK) is None
    assert AnswerCache(tmp_path, "data", ("prediction",)).load(ASK) is None
    sources_digest.cache_clear()
    monkeypatch.setattr(keep, "library_versions", lambda: {"numpy": "0.1"})
    assert AnswerCache(tmp_path, "data", ("errors.py",)).load(ASK) is None
    sources_digest.cache_clear()


@pytest.mark.parametrize("damage", ["empty", "half", "text", "pickle", "plain", "folder"])
def test_damaged_files_are_as_good_as_none(tmp_path: Path, damage: str) -> None:
    kept = AnswerCache(tmp_path, "data", ())
    kept.save(ASK, ANSWER)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    if damage == "empty":
        path.write_bytes(b"")
    elif damage == "half":
        path.write_bytes(whole[: len(whole) // 2])
    elif damage == "text":
        path.write_text("no archive")
    elif damage == "pickle":
        np.savez(path, centre=np.array([{}], dtype=object))
    elif damage == "plain":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    else:
        path.unlink()
        path.mkdir()
    assert kept.load(ASK) is None


def test_a_folder_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    assert "cache: cannot make" in refusal(AnswerCache, tmp_path / "file" / "cache", "data", ())

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    kept = AnswerCache(tmp_path / "cache", "data", ())
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match=r"cache: cannot write .* \(No space left on device\)"):
        kept.save(ASK, ANSWER)
    assert not list((tmp_path / "cache").iterdir())


def test_equal_data_have_equal_digests() -> None:
    other_nan = np.array([1.0, 0.0])
    other_nan.view(np.uint64)[1] = 0x7FF8_0000_0000_0123
    assert digest(outer(a=1, b=None)) == digest(Outer([Inner("a", other_nan)], {"b": None, "a": 1}))  # type: ignore[arg-type]
    assert digest(np.array([1, 2], np.int32)) == digest(np.array([1, 2], np.int64))
    assert digest(np.array([0.5], np.float32)) == digest(np.array([0.5]))
    assert digest({"x", "y"}) == digest(frozenset({"y", "x"}))


@pytest.mark.parametrize(
    "other", [outer(2.0), outer(a=1), outer(a=None), Outer((), {}), outer(a=True), outer(a=1.0), outer(a="1")]
)
def test_other_data_have_other_digests(other: Outer) -> None:
    assert digest(other) != digest(outer())
    assert len({digest(each) for each in (outer(a=1), outer(a=True), outer(a=1.0), outer(a="1"))}) == 4


@given(st.lists(st.text(max_size=3), max_size=4), st.lists(st.text(max_size=3), max_size=4))
def test_digests_of_texts_tell_where_one_ends(one: list[str], other: list[str]) -> None:
    assert (digest(one) == digest(other)) == (one == other)
    assert (digest((one, other)) == digest((other, one))) == (one == other)


def test_an_array_is_told_from_another_of_the_same_bytes() -> None:
    zeros = np.zeros((2, 3))
    arrays = [zeros, zeros.T, zeros.astype(np.int64), zeros.astype(bool), np.array(["a\0b", "c"])]
    assert len({digest(each) for each in arrays}) == len(arrays)


def test_what_is_no_data_has_no_digest() -> None:
    for thing in (object(), np.array([object()])):
        with pytest.raises(TypeError, match="expected"):
            digest(thing)
