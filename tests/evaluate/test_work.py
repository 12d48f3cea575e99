"""Work that was cut off goes on where it was, and several processes find the same."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.evaluate.processes import State
from crosscast.evaluate.time import Cache, Evaluation, default_folder, evaluate, grid_digest
from crosscast.predict.time.data import Grid
from stand_in_models import MeanModel, make_grid, random_grid


class Counter:
    """Counts fits, and interrupts one of them."""

    def __init__(self, interrupted: int | None = None) -> None:
        self.fits = 0
        self.interrupted = interrupted

    def __call__(self, grid: Grid, seed: int) -> None:
        self.fits += 1
        if self.fits == self.interrupted:
            raise KeyboardInterrupt


def run(folder: Path | None, counter: Counter, **words: object) -> Evaluation:
    model = MeanModel(when_fitted=counter)
    return evaluate(random_grid(), [model], probes=(0, 2), cache=folder, **words)  # type: ignore[arg-type]


def same(one: Evaluation, other: Evaluation) -> bool:
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for mine, yours in zip(one.results, other.results, strict=True)
        for first, second in zip(mine.outcomes, yours.outcomes, strict=True)
        for name in ("rows", "measured", "centre", "low", "high", "known", "scored")
    )


def test_an_interruption_loses_the_fold_in_progress_alone(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Counter(interrupted=3))
    again = Counter()
    resumed = run(tmp_path, again)
    assert again.fits == 2
    assert same(resumed, run(None, Counter()))
    third = Counter()
    run(tmp_path, third)
    assert third.fits == 0


@pytest.mark.parametrize("damage", ["empty", "half", "text", "pickle", "shape", "nan", "name"])
def test_damaged_files_are_as_good_as_none(tmp_path: Path, damage: str) -> None:
    first = run(tmp_path, Counter())
    files = sorted(tmp_path.glob("*.npz"))
    for path in files:
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
            np.savez(path, **{name: array[:, :-1] for name, array in arrays.items()})
        elif damage == "nan":
            np.savez(path, **{name: array * np.nan for name, array in arrays.items()})
        else:
            np.savez(path, centre=arrays["centre"])
    counter = Counter()
    assert same(run(tmp_path, counter), first)
    assert counter.fits == 4
    run(tmp_path, counter)
    assert counter.fits == 4


def without_an_application(grid: Grid) -> Grid:
    return grid.take(np.flatnonzero(np.array(grid.profiles.application) != "a0"))


def with_another_time(grid: Grid) -> Grid:
    times = grid.log_time.copy()
    times[0, 0] += 1e-12
    return make_grid(times, grid.profiles.application)


def with_another_descriptor(grid: Grid) -> Grid:
    first = replace(grid.devices[0], numbers={"cores": 4.0})
    return replace(grid, devices=(first, *grid.devices[1:]))


def with_other_metrics(grid: Grid) -> Grid:
    return replace(grid, profiles=replace(grid.profiles, metrics=grid.profiles.metrics * 2))


def with_more_invocations(grid: Grid) -> Grid:
    return replace(grid, profiles=replace(grid.profiles, invocations=grid.profiles.invocations * 2))


@pytest.mark.parametrize(
    "change",
    [
        without_an_application,
        with_another_time,
        with_another_descriptor,
        with_other_metrics,
        with_more_invocations,
    ],
)
def test_another_grid_is_another_digest(change: Callable[[Grid], Grid]) -> None:
    assert grid_digest(change(random_grid())) != grid_digest(random_grid()) == grid_digest(random_grid())


def test_what_forecasts_depend_on_is_in_their_names(tmp_path: Path) -> None:
    grid = random_grid()
    evaluate(grid, [MeanModel()], cache=tmp_path)
    kept = len(list(tmp_path.iterdir()))
    assert kept == 4
    for words in ({"seed": 1}, {"level": 0.5}, {"split": "leave-kernel-out"}, {"probes": (1,)}):
        evaluate(grid, [MeanModel()], cache=tmp_path, **words)
        assert len(list(tmp_path.iterdir())) > kept
        kept = len(list(tmp_path.iterdir()))
    # Another parameter under the same name.
    evaluate(grid, [MeanModel(shift=1.0)], cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == kept + 4


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    grid = random_grid()
    words = {"probes": (0, 2), "split": "leave-application-out"}
    one = evaluate(grid, [MeanModel()], **words)  # type: ignore[arg-type]
    two = evaluate(grid, [MeanModel()], jobs=2, cache=tmp_path, **words)  # type: ignore[arg-type]
    assert same(one, two)
    assert len(list(tmp_path.iterdir())) == 8


def test_progress_counts_what_is_left_to_do(tmp_path: Path) -> None:
    states: list[State] = []
    run(tmp_path, Counter(), progress=states.append)
    assert [(state.done, state.total) for state in states] == [(place, 4) for place in range(1, 5)]
    assert states[0].label == "device-mean, a0 held out"
    assert states[-1].left_s == 0
    states.clear()
    run(tmp_path, Counter(), progress=states.append)
    assert not states


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cache: cannot make the folder"):
        Cache(tmp_path / "file" / "cache", "")


def test_the_folder_is_where_the_user_has_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "crosscast" / "evaluate"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_folder() == tmp_path / "home" / ".cache" / "crosscast" / "evaluate"


def test_a_device_is_known_by_all_that_describes_it() -> None:
    grid = random_grid()
    renamed = replace(grid, devices=(Device("d0", name="other", type="cpu"), *grid.devices[1:]))
    assert grid_digest(renamed) != grid_digest(grid)
