"""Fitted parts as arrays: what annotations say is kept, and checked."""

import sys
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.serialization import Array, Nested, Stored, register_homes
from support.refusals import refusal, refusals
from support.stored import same


class Point(Protocol):
    """A stand-in for a point model."""

    def log_time(self, x: Reals) -> Reals: ...


@dataclass(frozen=True, eq=False)
class Features(Stored):
    names: tuple[str, ...]
    scale: Annotated[Reals, Array("f", above=0)]


@dataclass(frozen=True, eq=False)
class Mean(Stored, kind="test-mean"):
    mean: Annotated[Reals, Array("d", least=1)]

    def log_time(self, x: Reals) -> Reals:
        return np.tile(self.mean, (len(x), 1))


@dataclass(frozen=True, eq=False)
class Silent(Stored, kind="test-silent"):
    level: float


@dataclass(frozen=True, eq=False)
class Nearest(Stored, kind="test-nearest"):
    features: Features
    flat: Annotated[Silent, Nested(flat=True)]
    points: Annotated[Reals, Array("k f")]
    times: Annotated[Reals, Array("k d", nan=True)]
    places: Annotated[Integers, Array("k", low=0, below="d")]
    starts: Annotated[Integers, Array("k+1")]
    mask: Annotated[Flags, Array("2 d")]
    seed: Annotated[int, Array(low=0)]
    share: float
    flag: bool
    label: str
    way: Literal["up", "down"]
    sizes: tuple[int, ...]
    parts: tuple[Mean, ...]
    models: tuple[Point, ...]
    maybe: Annotated[Reals, Array("d")] | None = None
    other: Mean | None = None
    any_point: Point | None = None

    def log_time(self, x: Reals) -> Reals:
        return x

    def check(self) -> None:
        if len(self.features.names) != self.points.shape[1]:
            raise InputError.of(field="features", expected="those of the points", found=self.features.names)


def nearest(k: int = 2, f: int = 3, d: int = 4, **words: Any) -> Nearest:
    made: dict[str, Any] = {
        "features": Features(tuple("abcdefgh"[:f]), np.ones(f)),
        "flat": Silent(0.5),
        "points": np.arange(k * f, dtype=np.float64).reshape(k, f),
        "times": np.full((k, d), np.nan),
        "places": np.zeros(k, np.int64),
        "starts": np.arange(k + 1),
        "mask": np.ones((2, d), bool),
        "seed": 3,
        "share": 0.25,
        "flag": True,
        "label": "näher",
        "way": "up",
        "sizes": (),
        "parts": (Mean(np.zeros(1)), Mean(np.ones(2))),
        "models": (Mean(np.zeros(2)),),
    }
    return Nearest(**{**made, **words})


@given(
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(1, 4),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(0, 2**63 - 1),
    st.lists(st.integers(-(2**63), 2**63 - 1)).map(tuple),
    st.data(),
)
def test_what_is_kept_comes_back(
    k: int, f: int, d: int, label: str, share: float, seed: int, sizes: tuple[int, ...], data: st.DataObject
) -> None:
    finite = st.floats(allow_nan=False, allow_infinity=False)
    part = nearest(
        k,
        f,
        d,
        label=label,
        share=share,
        seed=seed,
        sizes=sizes,
        points=data.draw(npst.arrays(np.float64, (k, f), elements=finite)),
        maybe=data.draw(st.none() | npst.arrays(np.float64, d, elements=finite)),
        other=data.draw(st.none() | st.just(Mean(np.ones(d)))),
        any_point=data.draw(st.sampled_from([None, Mean(np.ones(1)), nearest()])),
    )
    assert same(Nearest.from_state(part.state()), part)


@refusals("name value message")
def test_an_array_that_does_not_fit_is_refused(name: str, value: Any, message: str) -> None:
    sentence = refusal(Nearest.from_state, {**nearest().state(), name: np.asarray(value)})
    assert sentence.startswith("model: ") and message in sentence


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("points", np.zeros(3, np.float32), "expected numbers along 2 axes, found float32 of shape (3,)"),
        ("mask", np.ones((3, 4), bool), "mask: expected 2 along axis 2, found 3"),
        ("places", np.array([0, 2**63], np.uint64), f"integers up to {2**63 - 1}, found {2**63}"),
        ("parts.0.mean", np.zeros(0), "parts.0.mean: expected at least 1 along axis d, found 0"),
        ("features.names", np.array([b"a"]), "expected texts along 1 axis, found |S1 of shape (1,)"),
        ("label", np.array({}, dtype=object), "label: expected a text, found object of shape ()"),
    ],
)
def test_an_array_of_another_type_is_refused(name: str, value: Any, message: str) -> None:
    assert message in refusal(Nearest.from_state, {**nearest().state(), name: value})


@pytest.mark.parametrize(
    "words",
    [
        {"points": np.full((2, 3), np.nan)},
        {"places": np.array([0, 4])},
        {"places": np.zeros(2)},
        {"label": "ends in\0"},
        {"label": 3},
        {"seed": -1},
        {"parts": (Silent(0.5),)},
        {"other": nearest()},
        {"any_point": Features((), np.zeros(0))},
        {"any_point": "text"},
    ],
)
def test_what_could_not_be_read_again_is_not_kept(words: dict[str, Any]) -> None:
    assert "model: " in refusal(replace(nearest(), **words).state)


def test_a_kind_is_imported_when_it_is_read(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "far_away_part.py").write_text(
        "from dataclasses import dataclass\nfrom crosscast.prediction.serialization import Stored\n"
        "@dataclass(frozen=True)\nclass Far(Stored, kind='test-far'):\n    level: float\n"
        "    def log_time(self, x): return x\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    register_homes({"test-far": "far_away_part"})
    arrays = nearest().state() | {"any_point.kind": np.array("test-far"), "any_point.level": np.array(2.0)}
    assert "far_away_part" not in sys.modules
    result = Nearest.from_state(arrays)
    assert type(result.any_point).__name__ == "Far"


def test_kinds_may_be_limited() -> None:
    arrays = {"inner.kind": np.array("test-mean"), "inner.mean": np.zeros(1)}
    only = "inner.kind: expected one of the kinds test-silent, found 'test-mean'"
    assert only in refusal(Limited.from_state, arrays)
    assert "expected one of the kinds test-silent" in refusal(Limited(Mean(np.zeros(1))).state)
    assert same(Limited.from_state(Limited(Silent(1.0)).state()), Limited(Silent(1.0)))


@dataclass(frozen=True, eq=False)
class Limited(Stored, kind="test-limited"):
    inner: Annotated[Stored, Nested(kinds=("test-silent",))]


@dataclass(frozen=True, eq=False)
class Chain(Stored, kind="test-chain"):
    next: Stored | None


def test_parts_in_parts_without_an_end_are_refused() -> None:
    arrays = {f"{'next.' * depth}kind": np.array("test-chain") for depth in range(1, 2000)}
    assert "at most 64 parts in each other" in refusal(Chain.from_state, arrays)


@pytest.mark.parametrize("hint", [Annotated[Reals, "no axes"], dict[str, int], Reals, object | int])
def test_an_annotation_that_says_nothing_is_a_mistake_of_the_class(hint: Any) -> None:
    with pytest.raises(TypeError, match="kind 'test-mean': expected one class"):
        type("Other", (Stored,), {}, kind="test-mean")
    made: Any = dataclass(frozen=True)(type("Made", (Stored,), {"__annotations__": {"x": hint}}))
    with pytest.raises(TypeError, match="expected an"):
        made(x=1).state()
