"""Profiles of an application, and how its check ends."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from crosscast.characterization.run import Options
from crosscast.errors import CheckFailed, InputError, KernelTimeout, LaunchError, MissingExtraError
from crosscast.profile import Profile
from crosscast.suite.application import Application, check_result
from crosscast.suite.registry import application, names, profiles_of

HEAT = Path(__file__).parents[2] / "examples" / "heat"


def heat(rows: int = 20, columns: int = 33, steps: int = 3) -> Application:
    return application(str(HEAT))({"rows": rows, "columns": columns, "steps": steps}, seed=1)


def test_there_is_a_profile_a_launch_with_application_size_and_number() -> None:
    found = profiles_of(heat(), "odd")
    assert [(p.application, p.size, p.kernel, p.invocation) for p in found] == [
        ("heat", "odd", "heat_step", number) for number in range(3)
    ]
    assert found[0].metrics["work_items"] == 48 * 32


def test_each_profile_is_reported_as_soon_as_it_is_there() -> None:
    reported: list[Profile] = []
    assert profiles_of(heat(), "odd", launched=reported.append) == reported


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


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("3", "twice: argument 2: expected a NumPy scalar, found int"),
        ("2.5", "twice: argument 2: expected a NumPy scalar, found float"),
        ("self.out.copy()", "twice: argument 2: expected one of the application's arrays"),
        ("np.int32(3)", "twice: argument 2: expected 2 arguments, found 3"),
    ],
)
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
def test_a_missing_reference_library_is_a_sentence_that_names_the_extra(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module.partition(".")[0]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module.partition(".")[0], None)
    with pytest.raises(MissingExtraError, match=r"pip install 'crosscast\[suite\]'"):
        check_result(Needs(module))


def test_another_missing_module_is_named() -> None:
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
