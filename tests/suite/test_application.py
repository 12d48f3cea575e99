"""Applications are found by name and by folder, and what is wrong with a folder is one sentence."""

import doctest
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benchmarks.suite_tables import Extent, description_table, extent_of, parameter_table
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization.run import Options
from crosscast.data.schema import SIZES
from crosscast.errors import CheckFailed, KernelTimeout, LaunchError, MissingExtraError
from crosscast.suite.application import (
    Application,
    Caches,
    application,
    check_result,
    expect_close,
    names,
    place_in_driver,
    selected,
    working_set,
)
from crosscast.suite.profiles import profiles_of
from support.commands import Command, Output
from support.examples import one_in
from support.refusals import refusal, refusals

HEAT = Path(__file__).parents[2] / "examples" / "heat"

Maker = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path, make_application: Maker) -> Maker:
    """Maker of a folder below another with an application, in whose driver a text, or all, is another."""

    def make(old: str = "", new: str = "", below: str = "one") -> Path:
        path = tmp_path / below / "own"
        path.parent.mkdir()
        make_application().rename(path)
        text = (path / "driver.py").read_text()
        (path / "driver.py").write_text(text.replace(old, new) if old else new or text)
        return path

    return make


def test_applications_are_found_by_name_by_their_folder_and_all_together() -> None:
    assert tuple(selected(["all", str(HEAT), "lud"])) == (*names(), str(HEAT))
    assert application("lud") is selected(["lud"])["lud"]
    found = application(str(HEAT))
    assert issubclass(found, Application)
    assert (found.name, found.kernels) == ("heat", ("heat_step",))
    assert found.source_path() == HEAT / "heat.cl"


def test_an_error_in_an_application_of_the_suite_has_its_line() -> None:
    with pytest.raises(KeyError) as caught:
        application("lud")({}, 0)
    assert place_in_driver(caught.tb).startswith(" (suite/linear_algebra.py, line ")


def test_a_relative_path_is_from_the_current_folder(folder: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        path = folder("1024", str(number), below=str(number))
        monkeypatch.chdir(path.parent)
        assert application("own").fit(0) == {"items": number}
        assert application("own").folder() == path


def test_names_of_two_or_none_are_refused(
    folder: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [str(folder()), str(folder(below="two"))]
    assert "application 'own': there are two of this name" in refusal(selected, paths)
    lud = folder("'own'", "'lud'", "three").rename(tmp_path / "lud")
    (lud / "own.cl").rename(lud / "lud.cl")
    assert "application 'lud': there are two" in refusal(selected, ["lud", str(lud)])
    monkeypatch.chdir(tmp_path)
    for name in ("", "matmul", "LUD", "/nowhere", "."):
        assert f"application '{name}': expected one of bfs, " in refusal(application, name)


@refusals("driver reason")
def test_a_driver_that_does_not_load_is_refused(folder: Maker, driver: str, reason: str) -> None:
    path = folder(new=driver)
    before = set(sys.modules)
    told = refusal(application, str(path))
    assert f"own/driver.py: the driver does not load ({reason}" in told
    assert "SyntaxError" in told or told.endswith(" (own/driver.py, line 1)")
    assert not {name for name in set(sys.modules) - before if name.startswith("crosscast_application")}


@refusals("old new reason")
def test_a_driver_not_as_it_should_be_is_refused(folder: Maker, old: str, new: str, reason: str) -> None:
    assert f"own/driver.py: {reason}" in refusal(application, str(folder(old, new)))
    lacking = folder(below="two")
    (lacking / "own.cl").unlink()
    assert "expected the kernels in " in refusal(application, str(lacking))


capacities = st.lists(st.integers(1, 1 << 40), min_size=3, max_size=3).map(sorted)


@given(capacities)
def test_sizes_fit_the_caches_that_are_given_and_large_fits_none(given_capacities: list[int]) -> None:
    caches = Caches(*given_capacities)
    found = [working_set(size, caches) for size in SIZES]
    assert found[:3] == given_capacities
    assert found[3] == 4 * caches.l3
    assert found == sorted(found)
    assert "size: expected one of tiny, small, medium, large, found 'huge'" in refusal(working_set, "huge")


def heat(rows: int = 20, columns: int = 33, steps: int = 3) -> Application:
    return application(str(HEAT))({"rows": rows, "columns": columns, "steps": steps}, seed=1)


def test_there_is_a_profile_a_launch_with_application_size_and_number() -> None:
    found = profiles_of(heat(), "odd")
    told = [(profile.application, profile.size, profile.kernel, profile.invocation) for profile in found]
    assert told == [("heat", "odd", "heat_step", number) for number in range(3)]
    assert found[0].metrics["work_items"] == 48 * 32
    with pytest.raises(KernelTimeout, match="heat_step"):
        profiles_of(heat(2000, 2000), "odd", options=Options(timeout_s=1e-6))


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 9), (3, 3), (17, 16), (16, 1)])
def test_the_example_is_right_at_any_extents(rows: int, columns: int) -> None:
    profiles_of(heat(rows, columns), "odd", options=Options(check_bounds=True))  # checks


@pytest.mark.parametrize("steps", [2, 3])
def test_the_example_s_check_sees_a_wrong_point(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = heat(steps=steps)
    profiles_of(problem, "odd")
    problem.arrays[steps % 2][4, 5] *= np.float32(1.001)
    with pytest.raises(CheckFailed, match=r"temperature: 1 of 660 values are wrong, first at \(4, 5\)"):
        check_result(problem)
    # What is wrong is not profiled.
    monkeypatch.setattr(problem, "run", lambda queue: None)
    with pytest.raises(CheckFailed):
        profiles_of(problem, "odd")


@pytest.mark.parametrize(("found", "expected"), [(1.2, 1.0), (np.nan, np.nan), (np.inf, np.inf)])
def test_what_is_too_far_or_not_finite_is_never_close(found: float, expected: float) -> None:
    with pytest.raises(CheckFailed, match=r"^sums: 1 of 2 values are wrong, first at \(1,\): expected "):
        expect_close("sums", np.array([1.05, found]), np.array([1.0, expected]), rtol=0.1)


@refusals("argument message")
def test_a_wrong_argument_is_named(make_application: Maker, argument: str, message: str) -> None:
    launch = f"queue.launch('twice', (64,), (64,), self.values, self.out, {argument})"
    kind = application(str(make_application(run=launch)))
    with pytest.raises(LaunchError, match=message):
        profiles_of(kind({"items": 64}, 0), "odd")


class Needs:
    """Something whose check needs a module."""

    def __init__(self, module: str) -> None:
        self._module = module

    def check(self) -> None:
        __import__(self._module)


@pytest.mark.parametrize("module", ["scipy.linalg", "networkx"])
def test_a_missing_reference_library_names_the_extra(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = module.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == root]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, root, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'crosscast\[suite\]'"):
        check_result(Needs(module))
    assert "Needs: its check does not import" in refusal(check_result, Needs("no_such_module"))


def test_drivers_load_without_any_reference_library() -> None:
    script = (
        "import sys; from crosscast.suite.application import application, names;"
        "[application(name) for name in names()];"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'scipy', 'networkx', 'pyopencl'}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
    assert len(names()) >= 14


ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "suite.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^crosscast .*$", TEXT, re.MULTILINE)


def test_the_page_counts_applications_and_kernels_and_has_their_tables() -> None:
    kernels = sum(len(application(name).kernels) for name in names())
    assert f"{len(names())} applications with {kernels} kernels" in TEXT
    page = runpy.run_path(str(ROOT / "docs" / "hooks.py"))["on_page_markdown"](TEXT)
    assert description_table() in page and parameter_table() in page
    assert extent_of(application("csr"), "tiny") == Extent(8 * 2941 + 12 * 767 + 4, 4)


@pytest.mark.parametrize(("language", "file"), [("c", "heat.cl"), ("python", "driver.py")])
def test_code_on_the_page_is_that_of_the_example(language: str, file: str) -> None:
    def without_space(code: str) -> str:
        """Lines are broken elsewhere where the page has less of an indent."""
        return re.sub(r"\s|,(?=\s*\))", "", code)

    blocks = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    pieces = [without_space(block) for block in blocks if ">>>" not in block]
    example = without_space((HEAT / file).read_text(encoding="utf-8"))
    assert pieces and all(piece in example for piece in pieces)


def test_examples_in_python_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = doctest.testfile(str(PAGE), module_relative=False)
    assert done.attempted
    assert not done.failed


@pytest.mark.parametrize("command", one_in(2, COMMANDS))
def test_commands_on_the_page_work(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Output
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    run = Command(tuple(shlex.split(command)[1:]))
    assert "heat" in run.text(capfd, "--min-runs", "2", "--min-time", "0")
