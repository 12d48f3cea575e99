"""Applications are found by name and by folder, and what is wrong with a folder is one sentence."""

import doctest
import importlib
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benchmarks.suite_tables import DWARFS, Extent, description_table, extent_of, parameter_table
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization.run import Options
from crosscast.cli import main
from crosscast.data.schema import SIZES
from crosscast.errors import CheckFailed, InputError, KernelTimeout, LaunchError, MissingExtraError
from crosscast.suite.application import TYPICAL, Application, Caches, check_result, working_set
from crosscast.suite.profiles import profiles_of
from crosscast.suite.registry import application, names, selected
from support.examples import one_in
from support.refusals import refusal, refusals

HEAT = Path(__file__).parents[2] / "examples" / "heat"

DRIVER = """
from crosscast.suite.application import Application

class Own(Application):
    name = "own"
    kernels = ("nothing",)

    def __init__(self, parameters, seed):
        self.arrays = ()

    @classmethod
    def fit(cls, nbytes):
        return {"number": FIT}

    def run(self, queue):
        pass

    def check(self):
        pass
"""

Maker = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Maker:
    """Maker of a folder with a driver and, unless told otherwise, a kernel file."""

    def make(driver: str = DRIVER, name: str = "own", kernels: str | None = "own.cl") -> Path:
        path = tmp_path / name
        path.mkdir(parents=True)
        (path / "driver.py").write_text(driver.replace("FIT", "1"), encoding="utf-8")
        if kernels is not None:
            (path / kernels).write_text("kernel void nothing(void) {}\n", encoding="utf-8")
        return path

    return make


def test_names_are_those_of_the_folders_that_have_a_driver() -> None:
    suite = Path(str(importlib.import_module("crosscast.suite").__file__)).parent
    assert list(names()) == sorted(path.name for path in suite.iterdir() if (path / "__init__.py").is_file())


def test_an_application_of_the_suite_is_found_by_name_and_is_the_same_each_time() -> None:
    found = application("lud")
    assert found.name == "lud"
    assert application("lud") is found


def test_an_application_is_found_by_its_folder() -> None:
    found = application(str(HEAT))
    assert issubclass(found, Application)
    assert (found.name, found.kernels) == ("heat", ("heat_step",))
    assert found.source_path() == HEAT / "heat.cl"


def test_a_relative_path_is_from_the_current_folder(folder: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    first = folder(name="one/own")
    second = folder(name="two/own", driver=DRIVER.replace("FIT", "2"))
    for path, number in ((first, 1), (second, 2)):
        monkeypatch.chdir(path.parent)
        assert application("own").fit(0) == {"number": number}
        assert application("own").folder() == path


def test_all_is_the_whole_suite_and_may_stand_beside_a_folder() -> None:
    assert tuple(selected(["all"])) == names()
    assert tuple(selected(["all", str(HEAT)])) == (*names(), str(HEAT))


def test_what_is_named_twice_is_there_once() -> None:
    assert list(selected(["lud", "all", "lud"])) == ["lud", *(name for name in names() if name != "lud")]


def test_two_applications_of_one_name_are_refused(folder: Maker) -> None:
    paths = [str(folder(name="one/own")), str(folder(name="two/own"))]
    assert "application 'own': there are two of this name" in refusal(selected, paths)
    like_one_of_the_suite = folder(DRIVER.replace('"own"', '"lud"'), name="one/lud", kernels="lud.cl")
    assert "application 'lud': there are two" in refusal(selected, ["lud", str(like_one_of_the_suite)])


@pytest.mark.parametrize("name", ["", "matmul", "LUD", "/nowhere", "."])
def test_a_name_that_is_no_application_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=rf"application '{name}': expected one of bfs, .*driver\.py"):
        application(name)


@refusals("driver reason")
def test_a_driver_that_does_not_load_is_refused(folder: Maker, driver: str, reason: str) -> None:
    path = folder(driver)
    before = set(sys.modules)
    assert f"own/driver.py: the driver does not load ({reason}" in refusal(application, str(path))
    assert not {name for name in set(sys.modules) - before if name.startswith("crosscast_application")}


def test_where_a_driver_does_not_load_is_told(folder: Maker) -> None:
    with pytest.raises(InputError, match=r"does not load \(NameError: .*\) \(own/driver\.py, line 3\)$"):
        application(str(folder("\n\nunknown")))


@refusals("old new reason")
def test_a_driver_not_as_it_should_be_is_refused(folder: Maker, old: str, new: str, reason: str) -> None:
    driver = DRIVER.replace(old, new) if old in DRIVER else DRIVER + "\nclass Second(Own): pass\n"
    path = folder(driver)
    assert f"own/driver.py: {reason}" in refusal(application, str(path))


def test_a_folder_without_kernels_is_refused(folder: Maker) -> None:
    path = folder(kernels=None)
    with pytest.raises(InputError, match=r"expected the kernels in .*/own\.cl, found no such file"):
        application(str(path))


capacities = st.lists(st.integers(1, 1 << 40), min_size=3, max_size=3).map(sorted)


@given(capacities)
def test_sizes_fit_the_caches_that_are_given_and_large_fits_none(given_capacities: list[int]) -> None:
    caches = Caches(*given_capacities)
    found = [working_set(size, caches) for size in SIZES]
    assert found[:3] == given_capacities
    assert found[3] == 4 * caches.l3
    assert found == sorted(found)


@pytest.mark.parametrize("size", ["huge", "", "Tiny", "given"])
def test_an_unknown_size_is_refused(size: str) -> None:
    assert f"size: expected one of tiny, small, medium, large, found '{size}'" in refusal(working_set, size)


def test_the_typical_caches_are_those_of_the_published_study() -> None:
    assert Caches(32 << 10, 256 << 10, 8 << 20) == TYPICAL


def heat(rows: int = 20, columns: int = 33, steps: int = 3) -> Application:
    return application(str(HEAT))({"rows": rows, "columns": columns, "steps": steps}, seed=1)


def test_there_is_a_profile_a_launch_with_application_size_and_number() -> None:
    found = profiles_of(heat(), "odd")
    assert [(p.application, p.size, p.kernel, p.invocation) for p in found] == [
        ("heat", "odd", "heat_step", number) for number in range(3)
    ]
    assert found[0].metrics["work_items"] == 48 * 32


def test_options_reach_the_engine() -> None:
    with pytest.raises(KernelTimeout, match="heat_step"):
        profiles_of(heat(2000, 2000), "odd", options=Options(timeout_s=1e-6))


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 9), (3, 3), (17, 16), (16, 1)])
def test_the_example_is_right_at_any_extents(rows: int, columns: int) -> None:
    profiles_of(heat(rows, columns), "odd", options=Options(check_bounds=True))  # checks


@pytest.mark.parametrize("steps", [2, 3])
def test_the_example_s_check_sees_a_wrong_point(steps: int) -> None:
    problem = heat(steps=steps)
    profiles_of(problem, "odd")
    problem.arrays[steps % 2][4, 5] *= np.float32(1.001)
    with pytest.raises(CheckFailed, match=r"temperature: 1 of 660 values are wrong, first at \(4, 5\)"):
        check_result(problem)


@refusals("argument message")
def test_a_wrong_argument_is_named_as_on_a_device(
    make_application: Callable[..., Path], argument: str, message: str
) -> None:
    launch = f"queue.launch('twice', (64,), (64,), self.values, self.out, {argument})"
    kind = application(str(make_application(run=launch)))
    with pytest.raises(LaunchError, match=message):
        profiles_of(kind({"items": 64}, 0), "odd")


def test_a_wrong_result_is_not_profiled(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = heat()

    def wrong() -> None:
        raise CheckFailed("temperature: it is wrong")

    monkeypatch.setattr(problem, "check", wrong)
    with pytest.raises(CheckFailed, match="it is wrong"):
        profiles_of(problem, "odd")


class Needs:
    """Something whose check needs a module."""

    def __init__(self, module: str) -> None:
        self._module = module

    def check(self) -> None:
        __import__(self._module)


@pytest.mark.parametrize("module", ["scipy", "scipy.linalg", "networkx"])
def test_a_missing_reference_library_names_the_extra(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module.partition(".")[0]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module.partition(".")[0], None)
    with pytest.raises(MissingExtraError, match=r"pip install 'crosscast\[suite\]'"):
        check_result(Needs(module))
    with pytest.raises(InputError, match=r"Needs: .*No module named 'no_such_module'"):
        check_result(Needs("no_such_module"))


def test_drivers_load_without_any_reference_library() -> None:
    script = (
        "import sys; from crosscast.suite.registry import application, names;"
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


def test_each_application_has_a_class() -> None:
    assert tuple(sorted(DWARFS)) == names()


def test_the_page_counts_applications_and_kernels() -> None:
    kernels = sum(len(application(name).kernels) for name in names())
    assert f"{len(names())} applications with {kernels} kernels" in TEXT


def test_the_site_has_the_tables_of_descriptions_and_parameters() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "hooks.py"))["on_page_markdown"](TEXT)
    assert description_table() in page
    assert parameter_table() in page


def test_an_extent_counts_bytes_and_launches() -> None:
    assert extent_of(application("csr"), "tiny") == Extent(8 * 2941 + 12 * 767 + 4, 4)


def without_space(code: str) -> str:
    return re.sub(r"\s|,(?=\s*\))", "", code)


@pytest.mark.parametrize("language", ["c", "python"])
def test_code_on_the_page_is_that_of_the_example(language: str) -> None:
    file = {"c": "heat.cl", "python": "driver.py"}[language]
    example = (ROOT / "examples" / "heat" / file).read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    pieces = [block for block in blocks if ">>>" not in block]
    assert pieces
    # Lines are broken elsewhere where the page has less of an indent.
    assert all(without_space(piece) in without_space(example) for piece in pieces)


def test_examples_in_python_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = doctest.testfile(str(PAGE), module_relative=False)
    assert done.attempted
    assert not done.failed


@pytest.mark.parametrize("command", one_in(2, COMMANDS))
def test_commands_on_the_page_work(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(command)[1:], "--min-runs", "2", "--min-time", "0"]) == 0
    assert "heat" in capfd.readouterr().out


def test_the_page_shows_both_commands() -> None:
    assert [command.split()[1] for command in COMMANDS] == ["measure", "dataset"]
