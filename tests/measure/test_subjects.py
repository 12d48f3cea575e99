"""What can be measured: applications, and launch files."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.characterization.engine.layout import CLASSES
from crosscast.errors import CheckFailed, InputError, LaunchError, MissingExtraError
from crosscast.kernel import Argument
from crosscast.measure.processes import InstructionMixJob, read_job, render_job, run_job
from crosscast.measure.profiling import instruction_mix_of
from crosscast.measure.subjects import (
    GIVEN,
    LaunchFile,
    Settings,
    SuiteProblem,
    expect_installed,
    fitted,
    identity,
    load,
)
from crosscast.suite.application import Array
from crosscast.suite.registry import application
from support.examples import one_in
from support.refusals import refusal, refusals

SOURCE = """
kernel void add(global int *a, float4 b) { a[get_global_id(0)] += b.x; }
kernel void set(global int *a) { a[get_global_id(0)] = 1; }
"""
LAUNCHES = """
source = "k.cl"
kernel = "set"
global = 8
[[arg]]
type = "int"
length = 8
[[launch]]
[[launch]]
kernel = "add"
[[launch.arg]]
ref = 0
"""
Folder = Callable[..., Path]


class Recorder:
    """A queue that only remembers."""

    def __init__(self) -> None:
        self.written: list[Array] = []
        self.launched: list[tuple[str, tuple[Argument, ...]]] = []

    def write(self, *arrays: Array) -> None:
        self.written.extend(arrays)

    def read(self, *arrays: Array) -> None:
        raise AssertionError("a launch file reads nothing")

    def launch(
        self, kernel: str, global_size: tuple[int, ...], local_size: tuple[int, ...], *args: Argument
    ) -> None:
        self.launched.append((kernel, args))


def test_an_application_of_the_suite_is_loaded_at_its_size() -> None:
    loaded = load(SuiteProblem("crc", "tiny", {"bytes": 100}, 3))
    assert (loaded.name, loaded.size, loaded.kernels) == ("crc", "tiny", ("crc32_slice8",))
    assert (loaded.parameters, loaded.seed) == ({"bytes": 100}, 3)
    assert loaded.application.nbytes == 100 + 4 * 256 + 4


def test_identity_runs_nothing_of_the_driver(make_application: Folder) -> None:
    folder = str(make_application("bad", init="raise CheckFailed('no')"))
    problem = SuiteProblem(folder, "tiny", {"items": 1024}, 0)
    found = identity(problem)
    assert (found.name, found.kernels, found.program.path) == ("bad", ("twice",), Path(folder) / "bad.cl")
    with pytest.raises(CheckFailed):
        load(problem)


def test_the_source_of_one_s_own_application_is_its_kernels_and_its_driver(make_application: Folder) -> None:
    def source() -> str:
        return identity(SuiteProblem(str(folder), "tiny", {"items": 1024}, 0)).source_sha256

    folder = make_application("own")
    before = source()
    assert source() == before
    (folder / "own.cl").write_text("kernel void twice() {}")
    with_other_kernels = source()
    make_application("own", run="queue.launch('nothing', (1,), (1,))")
    assert len({before, with_other_kernels, source()}) == 3


def test_the_source_of_an_application_of_the_suite_is_its_kernels() -> None:
    found = identity(SuiteProblem("crc", "tiny", {"bytes": 100}, 0))
    assert found.source_sha256 == found.program.sha256


def test_extents_are_whole_numbers_of_python(make_application: Folder) -> None:
    kind = application(str(make_application("counts", fit="return {'items': np.int64(1024)}")))
    assert type(fitted(kind, 1 << 15)["items"]) is int


@refusals("statement mistake")
def test_a_driver_that_cannot_fit_is_named(make_application: Folder, statement: str, mistake: str) -> None:
    kind = application(str(make_application(f"unfit_{mistake}", fit=statement)))
    message = f"unfit_{mistake}: expected its driver to fit .* {mistake}"
    if statement != "return None" and "/ 2" not in statement:
        message += rf" .*\(unfit_{mistake}/driver\.py, line \d+\)$"
    with pytest.raises(InputError, match=message):
        fitted(kind, 1 << 15)


@pytest.fixture
def launches(tmp_path: Path) -> Path:
    """A launch file of two launches on one buffer."""
    (tmp_path / "k.cl").write_text(SOURCE)
    return tmp_path / "two.toml"


def write(path: Path, text: str) -> LaunchFile:
    path.write_text(text)
    return LaunchFile(str(path))


def test_launches_of_a_file_share_their_buffers(launches: Path) -> None:
    text = LAUNCHES.replace("[[launch.arg]]\nref = 0\n", "")
    text = text.replace('kernel = "add"', 'kernel = "set"')
    loaded = load(write(launches, text))
    assert (loaded.name, loaded.size, loaded.kernels, loaded.seed) == ("two", GIVEN, ("set",), None)
    queue = Recorder()
    loaded.application.run(queue)
    loaded.application.check()
    (buffer,) = queue.written
    assert loaded.application.nbytes == buffer.nbytes == 32
    assert [kernel for kernel, _ in queue.launched] == ["set", "set"]
    assert all(args[0] is buffer for _, args in queue.launched)


def test_vectors_are_passed_by_value(launches: Path) -> None:
    text = (
        'source = "k.cl"\nkernel = "add"\nglobal = 8\n[[arg]]\ntype = "int"\nlength = 8\n'
        '[[arg]]\ntype = "float4"\nvalue = [1, 2, 3, 4]\n'
    )
    loaded = load(write(launches, text))
    queue = Recorder()
    loaded.application.run(queue)
    ((_, args),) = queue.launched
    assert args[1] == np.array([1, 2, 3, 4], np.float32).tobytes()
    assert len(queue.written) == 1


def test_arguments_that_do_not_fit_are_refused_before_anything_runs(launches: Path) -> None:
    text = 'source = "k.cl"\nkernel = "add"\nglobal = 8\n[[arg]]\ntype = "int"\nlength = 8\n'
    with pytest.raises(LaunchError, match=r"add: expected 2 arguments \(int\* a, float4 b\), found 1"):
        load(write(launches, text))


def test_a_global_offset_is_refused_before_anything_runs(launches: Path) -> None:
    text = 'source = "k.cl"\nkernel = "set"\nglobal = 8\noffset = 8\n[[arg]]\ntype = "int"\nlength = 16\n'
    assert "set: a launch with a global offset is not measured" in refusal(load, write(launches, text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    none = LaunchFile(str(tmp_path / "none.toml"))
    for use in (load, lambda subject: instruction_mix_of(subject, 60.0)):
        assert "none.toml: cannot read the launch file" in refusal(use, none)


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("application", ["crc", "examples/heat"])
@pytest.mark.parametrize("module", ["pyopencl", "pyarrow"])
def test_measuring_needs_the_extra_of_the_suite(
    monkeypatch: pytest.MonkeyPatch, module: str, application: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"measuring applications needs .*crosscast\[suite\]"):
        expect_installed([application])
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "scipy", None)
    expect_installed(["examples/heat"])
    with pytest.raises(MissingExtraError, match=r"checking results of the suite needs .*crosscast\[suite\]"):
        expect_installed(["examples/heat", "crc"])


@pytest.mark.parametrize(
    ("lacking", "words", "extra"),
    one_in(
        4,
        [
            ("scipy", "dataset build --out {new} --suite crc", "suite"),
            ("pyopencl", "dataset build --out {new}", "suite"),
            ("pyopencl", "measure crc --size tiny", "suite"),
            ("pyopencl", "measure examples/heat --size tiny", "suite"),
            ("pyopencl", "measure examples/matmul.toml", "opencl"),
            ("pyopencl", "devices", "opencl"),
        ],
    ),
)
def test_a_command_names_the_extra_it_needs(tmp_path: Path, lacking: str, words: str, extra: str) -> None:
    given = words.format(new=tmp_path / "new").split()
    script = f"import sys; sys.modules[{lacking!r}] = None; from crosscast.cli import main; sys.exit(main())"
    ran = subprocess.run(
        [sys.executable, "-c", script, *given], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert f"pip install 'crosscast[{extra}]'" in ran.stderr
    assert not (tmp_path / "new").exists()


def test_the_defaults_are_those_of_the_published_study() -> None:
    assert (Settings().min_runs, Settings().min_time_s) == (50, 2.0)


@refusals("given message")
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Settings(**given)


ONE_LAUNCH = """
source = "k.cl"
kernel = "k"
global = 64
local = 64
[[arg]]
name = "a"
type = "int"
length = 64
fill = "arange"
"""


@pytest.mark.system
def test_the_mix_of_an_application_comes_from_a_process_of_its_own(make_application: Folder) -> None:
    problem = SuiteProblem(str(make_application()), "tiny", {"items": 1024}, 0)
    job = InstructionMixJob(problem, 60.0)
    assert read_job(render_job(job)) == job
    mix = run_job(job, 120.0)["mix"]
    assert tuple(mix) == CLASSES
    assert mix == instruction_mix_of(problem, 60.0)
    assert mix["mem"] > 0
    assert sum(mix.values()) <= 1


def test_launch_files_have_one_too(tmp_path: Path) -> None:
    (tmp_path / "k.cl").write_text("kernel void k(global int *a) { a[get_global_id(0)] *= 3; }")
    (tmp_path / "k.toml").write_text(ONE_LAUNCH)
    launch_file = LaunchFile(str(tmp_path / "k.toml"))
    assert launch_file.label == "k"
    mix = instruction_mix_of(launch_file, 60.0)
    # Of a work-item: its number, an address, a load, a multiplication, a store, and the return.
    assert mix["shift"] == mix["control"] == mix["mem"] / 2 > 0


def test_a_wrong_result_has_no_mix(make_application: Folder) -> None:
    wrong = make_application("wrong", check="raise CheckFailed('it is wrong')")
    with pytest.raises(CheckFailed, match="it is wrong"):
        instruction_mix_of(SuiteProblem(str(wrong), "tiny", {"items": 1024}, 0), 60.0)
