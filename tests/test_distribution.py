"""The wheel and the source distribution: what is in them, what is not, and how large they are."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import crosscast
from crosscast.characterization import engine
from crosscast.errors import EnvironmentFault
from crosscast.prediction.named_models import recipes

pytestmark = pytest.mark.system

wheels = pytest.importorskip("hatchling.builders.wheel", reason="needs hatchling, which builds distributions")

ROOT = Path(__file__).parents[1]
MOST_OF_WHEEL = 4_800_000
MOST_OF_SOURCES = 8_000_000
MOST_OF_A_FILE = 1_000_000

if not (ROOT / "pyproject.toml").exists():
    pytest.skip("needs a checkout", allow_module_level=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with both, built without a network as it builds with what is installed."""
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def members(wheel: Path) -> dict[str, int]:
    """Sizes of the wheel's files by name."""
    with zipfile.ZipFile(wheel) as file:
        return {each.filename: each.file_size for each in file.infolist()}


def test_the_wheel_is_the_package_whole_and_small_with_nothing_else(
    wheel: Path, members: dict[str, int]
) -> None:
    assert wheel.name == f"crosscast-{crosscast.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size <= MOST_OF_WHEEL
    assert max(members.values()) <= MOST_OF_A_FILE
    about, package = f"crosscast-{crosscast.__version__}.dist-info/", Path(crosscast.__file__).parent
    assert not [name for name in members if re.search(r"(^|/)(tests?|__pycache__|\.\w)", name)]
    assert f"{about}licenses/LICENSE" in members
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    expected = {f"crosscast/{path.relative_to(package).as_posix()}" for path in files}
    assert expected == {name for name in members if not name.startswith(about)}
    for name in recipes():
        folder = f"crosscast/prediction/bundled/{name}/"
        assert f"{folder}card.json" in members
        assert [each for each in members if re.fullmatch(rf"{re.escape(folder)}arrays-\w+\.npz", each)]


def test_no_compiler_runs_for_the_runtime_of_the_wheel(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path)
    code = (
        "from crosscast.characterization import toolchain\n"
        "from crosscast.characterization import engine\n"
        "toolchain.run_clang = None\n"
        "print(*engine.objects(['cc_run_warps']), sep='\\n')"
    )
    clean = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], env=clean, check=True, capture_output=True, text=True)
    assert all(line.startswith(str(tmp_path / "crosscast")) for line in done.stdout.splitlines())


def test_where_the_compiler_does_not_run_the_wheel_is_built_without_objects(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: bool) -> None:
        raise EnvironmentFault("no compiler today")

    monkeypatch.setattr(engine, "build", refuse)
    monkeypatch.setattr(sys, "path", [*sys.path])
    builder = wheels.WheelBuilder(str(ROOT))
    (hook,) = builder.get_build_hooks("").values()
    hook.initialize("standard", {})
    assert "not compiled ahead: no compiler today" in capfd.readouterr().err
    assert any(each.startswith("ziglang==") for each in builder.config.dependencies)


def test_the_metadata_says_what_is_needed(wheel: Path) -> None:
    about = f"crosscast-{crosscast.__version__}.dist-info"
    with zipfile.ZipFile(wheel) as file:
        text, scripts = (file.read(f"{about}/{name}").decode() for name in ("METADATA", "entry_points.txt"))
    for line in (
        f"Version: {crosscast.__version__}\n",
        "Requires-Python: >=3.11\n",
        "Requires-Dist: ziglang==",
    ):
        assert f"\n{line}" in text
    assert "crosscast = crosscast.cli:main" in scripts


def test_the_sources_can_be_tested_and_documented(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    assert path.stat().st_size <= MOST_OF_SOURCES
    with tarfile.open(path) as file:
        names = [name.partition("/")[2] for name in file.getnames()]
    assert {"pyproject.toml", "CHANGELOG.md", "CITATION.cff", "mkdocs.yml", "Makefile", "LICENSE"} <= {*names}
    folders = {name.partition("/")[0] for name in names if "/" in name}
    assert folders == {"src", "tests", "docs", "examples", "benchmarks"}
    assert not [name for name in names if re.search(r"(^|/)(__pycache__|\.venv|out)(/|$)", name)]
