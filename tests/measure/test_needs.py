"""What must be installed is asked for before any work starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from crosscast.errors import MissingExtraError
from crosscast.measure.subjects import expect_installed

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("application", ["crc", "examples/heat"])
@pytest.mark.parametrize("module", ["pyopencl", "pyarrow"])
def test_measuring_needs_the_extra_of_the_suite(
    monkeypatch: pytest.MonkeyPatch, module: str, application: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"measuring applications needs .*crosscast\[suite\]"):
        expect_installed([application])


def test_applications_of_the_suite_need_what_they_check_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    expect_installed(["examples/heat"])
    with pytest.raises(MissingExtraError, match=r"checking results of the suite needs .*crosscast\[suite\]"):
        expect_installed(["examples/heat", "crc"])


@pytest.mark.parametrize(
    ("lacking", "words", "extra"),
    [
        ("scipy", "dataset build --out {new} --suite crc", "suite"),
        ("pyopencl", "dataset build --out {new}", "suite"),
        ("pyopencl", "measure crc --size tiny", "suite"),
        ("pyopencl", "measure examples/heat --size tiny", "suite"),
        ("pyopencl", "measure examples/matmul.toml", "opencl"),
        ("pyopencl", "devices", "opencl"),
    ],
)
def test_a_command_names_the_extra_that_brings_all_it_needs(
    tmp_path: Path, lacking: str, words: str, extra: str
) -> None:
    given = words.format(new=tmp_path / "new").split()
    script = f"import sys; sys.modules[{lacking!r}] = None; from crosscast.cli import main; sys.exit(main())"
    ran = subprocess.run(
        [sys.executable, "-c", script, *given], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert f"pip install 'crosscast[{extra}]'" in ran.stderr
    assert not (tmp_path / "new").exists()
