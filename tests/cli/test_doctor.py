"""What ``crosscast doctor`` finds, and that it goes on where something is broken."""

import json
from importlib import metadata
from pathlib import Path

import pytest

from crosscast.characterization import toolchain
from crosscast.cli import main
from crosscast.errors import EnvironmentFault

Output = pytest.CaptureFixture[str]


def findings(capsys: Output, code: int = 0) -> dict[str, tuple[str, str]]:
    assert main(["doctor", "--json"]) == code
    found = json.loads(capsys.readouterr().out)["findings"]
    return {each["part"]: (each["state"], each["detail"]) for each in found}


def test_a_whole_installation_is_well(capsys: Output) -> None:
    found = findings(capsys)
    assert {part for part, (state, _) in found.items() if state == "failed"} == set()
    assert found["compiler"][1].startswith(toolchain.compiler_version())
    assert found["models"][1].startswith("8: launch-times")
    assert {"extra report", "extra opencl", "extra train", "sensor rapl", "sensor nvml"} <= set(found)


def test_a_missing_package_is_named_with_its_extra(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version

    def without(name: str) -> str:
        if name in ("matplotlib", "pyopencl"):
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)
    found = findings(capsys)
    assert found["extra report"] == ("missing", "without matplotlib: pip install 'crosscast[report]'")
    assert found["extra suite"][0] == "missing"
    assert "OpenCL" not in found


def test_a_cache_that_is_not_writable_is_a_warning(
    capsys: Output, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    state, detail = findings(capsys)["cache"]
    assert state == "warning" and "set XDG_CACHE_HOME" in detail


def test_without_a_compiler_it_fails_and_still_says_the_rest(
    capsys: Output, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(*_: object) -> str:
        raise EnvironmentFault("the kernel compiler is missing")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(toolchain, "_run", missing)
    monkeypatch.setattr(toolchain, "compiler_version", missing)
    found = findings(capsys, code=1)
    assert found["compiler"] == ("failed", "the kernel compiler is missing")
    assert found["models"][0] == "ok"
