"""Applications are found by name and by folder, and what is wrong with a folder is one sentence."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crosscast.errors import InputError
from crosscast.suite.application import Application
from crosscast.suite.registry import application, names, selected

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
    assert list(names()) == sorted(path.name for path in suite.iterdir() if (path / "driver.py").is_file())


def test_an_application_of_the_suite_is_found_by_name_and_is_the_same_each_time() -> None:
    found = application("lud")
    assert found.name == "lud"
    assert application("lud") is found


def test_an_application_is_found_by_its_folder() -> None:
    found = application(str(HEAT))
    assert issubclass(found, Application)
    assert (found.name, found.kernels) == ("heat", ("heat_step",))
    assert found.source_path() == HEAT / "heat.cl"


def test_a_relative_path_is_one_from_the_working_directory(
    folder: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = folder(name="one/own")
    second = folder(name="two/own", driver=DRIVER.replace("FIT", "2"))
    for path, number in ((first, 1), (second, 2)):
        monkeypatch.chdir(path.parent)
        assert application("own").fit(0) == {"number": number}
        assert application("own").folder() == path


def test_folders_of_one_name_are_applications_apart(folder: Maker) -> None:
    first = application(str(folder(name="one/own")))
    second = application(str(folder(name="two/own", driver=DRIVER.replace("FIT", "2"))))
    assert first.folder().parent.name == "one"
    assert second.folder().parent.name == "two"


def test_all_is_the_whole_suite_and_may_stand_beside_a_folder() -> None:
    assert tuple(selected(["all"])) == names()
    assert tuple(selected(["all", str(HEAT)])) == (*names(), str(HEAT))


def test_what_is_named_twice_is_there_once() -> None:
    assert list(selected(["lud", "all", "lud"])) == ["lud", *(name for name in names() if name != "lud")]


def test_two_applications_of_one_name_are_refused(folder: Maker) -> None:
    paths = [str(folder(name="one/own")), str(folder(name="two/own"))]
    with pytest.raises(InputError, match="application 'own': there are two of this name"):
        selected(paths)


def test_a_folder_may_not_have_the_name_of_one_of_the_suite_beside_it(folder: Maker) -> None:
    path = folder(DRIVER.replace('"own"', '"lud"'), name="one/lud", kernels="lud.cl")
    with pytest.raises(InputError, match="application 'lud': there are two of this name"):
        selected(["lud", str(path)])


@pytest.mark.parametrize("name", ["", "matmul", "LUD", "/nowhere", "."])
def test_a_name_that_is_no_application_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=rf"application '{name}': expected one of bfs, .*driver\.py"):
        application(name)


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f(:", "SyntaxError: "),
        ("unknown", "NameError: name 'unknown' is not defined"),
        ("{}['key']", "KeyError: 'key'"),
        ("open('/nowhere/file')", "FileNotFoundError: "),
        ("1 / 0", "ZeroDivisionError: "),
        ("assert False, 'no'", "AssertionError: no"),
    ],
)
def test_a_driver_that_does_not_load_is_refused(folder: Maker, driver: str, reason: str) -> None:
    path = folder(driver)
    before = set(sys.modules)
    with pytest.raises(InputError, match=rf"own/driver.py: the driver does not load \({reason}"):
        application(str(path))
    assert not {name for name in set(sys.modules) - before if name.startswith("crosscast_application")}


def test_where_a_driver_does_not_load_is_told(folder: Maker) -> None:
    with pytest.raises(InputError, match=r"does not load \(NameError: .*\) \(own/driver\.py, line 3\)$"):
        application(str(folder("\n\nunknown")))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (DRIVER, "x = 1", "expected one subclass of Application, found 0"),
        ("x = 1", "", "expected one subclass of Application, found 2"),
        ("def check(self)", "def checks(self)", "expected Own to define check, found it does not"),
        ("def fit(", "def fits(", "expected Own to define fit, found it does not"),
        ('name = "own"', "", "expected name to be a str, found None"),
        ('name = "own"', "name = 7", "expected name to be a str, found 7"),
        ('"own"', '"../own"', r"expected a name of letters, digits and _, found '\.\./own'"),
        ('("nothing",)', '"nothing"', "expected kernels to be a tuple, found 'nothing'"),
        ('("nothing",)', "()", r"expected kernels to be a tuple, found \(\)"),
        ('"own"', '"other"', "expected name to be that of the folder, 'own', found 'other'"),
    ],
)
def test_a_driver_that_is_not_as_it_should_be_is_refused(
    folder: Maker, old: str, new: str, reason: str
) -> None:
    driver = DRIVER.replace(old, new) if old in DRIVER else DRIVER + "\nclass Second(Own): pass\n"
    path = folder(driver)
    with pytest.raises(InputError, match=rf"own/driver.py: {reason}"):
        application(str(path))


def test_a_folder_without_kernels_is_refused(folder: Maker) -> None:
    path = folder(kernels=None)
    with pytest.raises(InputError, match=r"expected the kernels in .*/own\.cl, found no such file"):
        application(str(path))
