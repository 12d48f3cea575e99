"""Work that was cut off goes on where it was, by answers that are kept; no process that helps stays."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import joblib
import numpy as np
import numpy.typing as npt
import pytest

from crosscast.arrays import Arrays, Reals
from crosscast.errors import EnvironmentFault, InputError, LaunchError, MissingExtraError
from crosscast.evaluation import keep
from crosscast.evaluation.keep import AnswerCache, digest, sources_digest
from crosscast.evaluation.loop import State, run_tasks
from support.processes import is_gone, wait_until
from support.refusals import refusal

DATA = {"x": np.arange(12.0).reshape(4, 3)}
GONE_S = 5.0
"""In which all processes are gone; about one second where nothing else runs."""

DRIVER = """
import os, signal, sys, time
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from crosscast.evaluation.loop import run_tasks

@dataclass(frozen=True)
class Sleep:
    label: str
    cache_keys: tuple
    kind: str = "sleep"

    def run(self, data, queries):
        (data / f"driver.py.{os.getpid()}").touch()
        time.sleep(60)
        return [{} for _ in queries]

    def is_valid(self, data, query, arrays):
        return True

# As at a terminal, also where tests run in the background, which ignores interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
run_tasks([Sleep(f"task {number}", (number,)) for number in range(4)], Path(sys.argv[1]), jobs=2)
"""


@dataclass(frozen=True)
class Column:
    """Asks for columns of the data, times a number."""

    label: str
    factor: float
    columns: tuple[int, ...] = (0, 1)
    log: list[tuple[str, tuple[int, ...]]] = field(default_factory=list, compare=False, repr=False)
    fails: str = ""

    @property
    def kind(self) -> str:
        return self.label.partition(", ")[0]

    @property
    def cache_keys(self) -> Sequence[object]:
        return [[self.factor, column] for column in self.columns]

    def run(self, data: dict[str, Reals], queries: Sequence[int]) -> list[Arrays]:
        self.log.append((self.label, tuple(queries)))
        if self.fails == "interrupt":
            raise KeyboardInterrupt
        if self.fails == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fails:
            raise LaunchError.of(field="x", expected="another", found=self.fails)
        return [{"column": np.linalg.pinv(data["x"])[self.columns[query]] * self.factor} for query in queries]

    def is_valid(self, data: dict[str, Reals], query: int, arrays: Arrays) -> bool:
        return set(arrays) == {"column"} and arrays["column"].shape == (len(data["x"]),)


def tasks(count: int = 3, **words: object) -> list[Column]:
    log: list[tuple[str, tuple[int, ...]]] = []
    return [Column(f"task {number}", number, log=log, **words) for number in range(count)]  # type: ignore[arg-type]


def plain(answers: list[list[Arrays]]) -> list[list[list[float]]]:
    return [[answer["column"].tolist() for answer in each] for each in answers]


EXPECTED = [
    [[float(value) * factor for value in np.linalg.pinv(DATA["x"])[column]] for column in (0, 1)]
    for factor in range(3)
]


def test_what_is_kept_is_not_done_again_and_only_what_is_lacking_is_asked(tmp_path: Path) -> None:
    first = run_tasks(tasks(columns=(1,)), DATA, cache=tmp_path)
    again = tasks()
    second = run_tasks(again, DATA, cache=tmp_path)
    assert again[0].log == [(f"task {number}", (0,)) for number in range(3)]
    assert [each[1]["column"].tolist() for each in second] == [each[0]["column"].tolist() for each in first]
    third = tasks()
    assert plain(run_tasks(third, DATA, cache=tmp_path)) == plain(second)
    assert not third[0].log


def test_an_interruption_loses_the_task_in_progress_alone(tmp_path: Path) -> None:
    broken = tasks()
    broken[2] = Column("task 2", 2, fails="interrupt")
    with pytest.raises(KeyboardInterrupt):
        run_tasks(broken, DATA, cache=tmp_path)
    again = tasks()
    run_tasks(again, DATA, cache=tmp_path)
    assert again[0].log == [("task 2", (0, 1))]


@pytest.mark.parametrize("jobs", [1, None], ids=["alone", "beside others"])
def test_an_error_keeps_its_type_and_says_which_task_failed(jobs: int | None) -> None:
    # That it is the same in another process, `tests/test_units.py` proves without one.
    with joblib.parallel_config(backend="threading", n_jobs=2), pytest.raises(LaunchError) as caught:
        run_tasks(tasks(fails="this"), DATA, jobs=jobs)
    sentences = {f"task {number}: x: expected another, found this" for number in range(3)}
    assert str(caught.value) in sentences
    assert caught.value.expected == "another"


def test_a_process_that_is_ended_from_outside_is_one_sentence() -> None:
    with pytest.raises(EnvironmentFault, match=r"ended from outside, maybe for want of memory: try --jobs 1"):
        run_tasks(tasks(fails="killed"), DATA, jobs=2)


def test_the_time_that_is_left_is_that_of_the_kinds_of_tasks_that_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states, now = list[State](), [0.0]
    monkeypatch.setattr("crosscast.evaluation.loop.time.monotonic", lambda: now[0])

    class Timed(Column):
        """Takes its factor in seconds."""

        def run(self, data: dict[str, Reals], queries: Sequence[int]) -> list[Arrays]:
            now[0] += self.factor
            return super().run(data, queries)

    kinds = {"long": 9.0, "short": 1.0}
    timed = [Timed(f"{kind}, part {part}", took) for kind, took in kinds.items() for part in range(3)]
    run_tasks(timed, DATA, progress=states.append)
    # Kinds take turns; one that is not known yet is expected to take the mean of the others.
    assert [each.elapsed_s for each in states] == [9, 10, 19, 20, 29, 30]
    assert [each.left_s for each in states] == pytest.approx([45, 20, 11, 10, 1, 0])


def test_several_processes_need_joblib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(MissingExtraError, match=r"crosscast\[train\]"):
        run_tasks(tasks(), DATA, jobs=2)
    assert np.allclose(plain(run_tasks(tasks(), DATA)), EXPECTED)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that works with two others, in a group of its own."""
    path = tmp_path / "driver.py"
    path.write_text(DRIVER)
    process = subprocess.Popen(
        [sys.executable, str(path), str(tmp_path)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    yield process
    if not is_gone(process.pid):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


def group(pid: int) -> list[int]:
    """Processes of a group that have not ended."""
    states = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(words[2]) == pid and words[0] != "Z":
            states.append(int(path.parent.name))
    return states


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_worker_is_left_over(tmp_path: Path, driver: subprocess.Popen[str], end: signal.Signals) -> None:
    wait_until(lambda: len(list(tmp_path.glob("driver.py.*"))) == 2 or driver.poll() is not None)
    assert len(group(driver.pid)) > 2
    start = time.monotonic()
    if end == signal.SIGINT:
        # As a terminal does: to all of them.
        os.killpg(driver.pid, end)
    else:
        driver.send_signal(end)
    wait_until(lambda: not group(driver.pid))
    assert time.monotonic() - start < GONE_S
    _, said = driver.communicate()
    assert said.count("Traceback") == (end == signal.SIGINT), said


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
    if damage == "pickle":
        np.savez(path, centre=np.array([{}], dtype=object))
    elif damage == "plain":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes({"empty": b"", "half": whole[: len(whole) // 2], "text": b"no archive"}[damage])
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


def test_other_data_have_other_digests() -> None:
    facts = [outer(a=value) for value in (None, 1, True, 1.0, "1")]
    texts: list[object] = [
        ["ab"],
        ["a", "b"],
        ["", "ab"],
        ["ab", ""],
        [],
        [""],
        (["a"], ["b"]),
        (["b"], ["a"]),
    ]
    # The bytes of these arrays are the same.
    zeros = np.zeros((2, 3))
    arrays = [zeros, zeros.T, zeros.astype(np.int64), zeros.astype(bool), np.array(["a\0b", "c"])]
    others = [outer(), outer(2.0), Outer((), {}), *facts, *texts, *arrays]
    assert len({digest(each) for each in others}) == len(others)


def test_what_is_no_data_has_no_digest() -> None:
    for thing in (object(), np.array([object()])):
        with pytest.raises(TypeError, match="expected"):
            digest(thing)
