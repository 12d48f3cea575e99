"""Work that was cut off goes on where it was, and what is kept is of the same question."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from made_surfaces import made_surfaces

from crosscast.decide.cases import Weighting
from crosscast.decide.evaluation import ChoiceStudy, Kept, study_choices
from crosscast.decide.power_cap import Chooser
from crosscast.errors import InputError
from crosscast.evaluate.processes import State
from crosscast.predict.configuration.data import Surfaces, surfaces_digest
from made_walks import Wanderer

SURFACES = made_surfaces(3, noise=0.01)


class Counter:
    """Counts fits, and interrupts one of them."""

    def __init__(self, interrupted: int | None = None) -> None:
        self.fits = 0
        self.interrupted = interrupted

    def __call__(self) -> None:
        self.fits += 1
        if self.fits == self.interrupted:
            raise KeyboardInterrupt


class Counted:
    """A method that tells a counter of its fits; no dataclass, so known by its name."""

    name = "counted"

    def __init__(self, counter: Counter) -> None:
        self.counter = counter

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        self.counter()
        return Wanderer(1).fit(surfaces, samples, seed)


def run(folder: Path | None, counter: Counter, surfaces: Surfaces = SURFACES, **words: object) -> ChoiceStudy:
    return study_choices("m", [surfaces], lambda space: [Counted(counter)], cache=folder, **words)  # type: ignore[arg-type]


def same(one: ChoiceStudy, other: ChoiceStudy) -> bool:
    return json.dumps(one.to_dict()) == json.dumps(other.to_dict())


def test_an_interruption_loses_the_fold_in_progress_alone(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Counter(interrupted=3))
    again = Counter()
    states: list[State] = []
    resumed = run(tmp_path, again, progress=states.append)
    assert again.fits == 1
    assert [(state.done, state.total, state.label) for state in states] == [(1, 1, "counted, app2 held out")]
    assert same(resumed, run(None, Counter()))
    third = Counter()
    assert same(run(tmp_path, third), resumed)
    assert third.fits == 0


@pytest.mark.parametrize(
    "damage", ["empty", "half", "text", "pickle", "shape", "range", "kind", "name", "samples"]
)
def test_damaged_files_are_as_good_as_none(tmp_path: Path, damage: str) -> None:
    first = run(tmp_path, Counter())
    for path in sorted(tmp_path.glob("*.npz")):
        whole = path.read_bytes()
        arrays = dict(np.load(path))
        if damage == "empty":
            path.write_bytes(b"")
        elif damage == "half":
            path.write_bytes(whole[: len(whole) // 2])
        elif damage == "text":
            path.write_text("no archive")
        elif damage == "pickle":
            np.savez(path, **{name: array.astype(object) for name, array in arrays.items()})
        elif damage == "shape":
            np.savez(path, **arrays | {"chosen": arrays["chosen"][:, :-1]})
        elif damage == "range":
            np.savez(path, **arrays | {"chosen": arrays["chosen"] + 12})
        elif damage == "kind":
            np.savez(path, **arrays | {"changes": arrays["changes"].astype(float)})
        elif damage == "name":
            np.savez(path, samples=arrays["samples"])
        else:
            np.savez(path, **arrays | {"samples": arrays["samples"][:0]})
    counter = Counter()
    assert same(run(tmp_path, counter), first)
    assert counter.fits == 3


def other_samples(surfaces: Surfaces, seed: int) -> tuple[int, ...]:
    return (5, 0)


@dataclass(frozen=True)
class Sampler:
    number: int

    def __call__(self, surfaces: Surfaces, seed: int) -> tuple[int, ...]:
        return (self.number,)


def test_what_choices_depend_on_is_in_their_names(tmp_path: Path) -> None:
    weighting: Weighting = "equal"
    kept = 0
    for words in (
        {},
        {"seed": 1},
        {"weighting": weighting},
        {"budget": 3},
        {"curve": (0, 1)},
        {"samples": other_samples},
        {"samples": Sampler(2)},
        {"samples": Sampler(3)},
        {"samples": SURFACES.space.configurations[:1]},
    ):
        run(tmp_path, Counter(), **words)
        assert len(list(tmp_path.iterdir())) == kept + 3
        kept += 3
    for start in (1, 2):
        study_choices("m", [SURFACES], lambda space, start=start: [Wanderer(start)], cache=tmp_path)  # type: ignore[misc]
        assert len(list(tmp_path.iterdir())) == kept + 3
        kept += 3


def test_several_processes_keep_the_same(tmp_path: Path) -> None:
    words = {"cache": tmp_path, "jobs": 2}
    one = study_choices("m", [SURFACES], lambda space: [Wanderer(1)])
    two = study_choices("m", [SURFACES], lambda space: [Wanderer(1)], **words)  # type: ignore[arg-type]
    assert same(one, two)
    assert len(list(tmp_path.iterdir())) == 3


def with_another_time(surfaces: Surfaces) -> Surfaces:
    time_s = surfaces.time_s.copy()
    time_s[0, 0] *= 1 + 1e-15
    return replace(surfaces, time_s=time_s)


def with_another_power(surfaces: Surfaces) -> Surfaces:
    return replace(surfaces, power_w=surfaces.power_w * 2)


def with_another_counter(surfaces: Surfaces) -> Surfaces:
    return replace(surfaces, counters={"misses": surfaces.counters["stalls"]})


def with_another_name(surfaces: Surfaces) -> Surfaces:
    return replace(surfaces, kernels=(surfaces.kernels[0]._replace(size="huge"), *surfaces.kernels[1:]))


@pytest.mark.parametrize(
    "change", [with_another_time, with_another_power, with_another_counter, with_another_name]
)
def test_other_surfaces_have_another_digest(change: Callable[[Surfaces], Surfaces]) -> None:
    assert surfaces_digest(change(SURFACES)) != surfaces_digest(SURFACES)
    assert surfaces_digest(made_surfaces(3, noise=0.01)) == surfaces_digest(SURFACES)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cache: cannot make the folder"):
        Kept(tmp_path / "file" / "cache", SURFACES)
