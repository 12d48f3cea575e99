"""Files that are installed for operators."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from crosscast.commands import service
from support.commands import Command, Output

INSTALL = Command.of("hooks install")
REMOVE = Command.of("hooks remove")


def test_what_an_operator_changed_is_neither_replaced_nor_removed(tmp_path: Path, capsys: Output) -> None:
    assert INSTALL.text(capsys, "systemd", "--dir", tmp_path).count(": written") == 2
    unit = tmp_path / "crosscast.service"
    unit.write_text("mine")
    shown = INSTALL.text(capsys, "systemd", "--dir", tmp_path)
    assert f"{unit}: yours differs, and stays" in shown
    assert "crosscast.socket: already there" in shown
    assert f"{unit}: yours differs, and stays" in REMOVE.text(capsys, "systemd", "--dir", tmp_path)
    assert unit.read_text() == "mine"


def test_a_folder_with_an_odd_name_is_refused(tmp_path: Path, capsys: Output) -> None:
    assert "--dir: expected a path of letters" in INSTALL.refusal(capsys, "slurm", "--dir", tmp_path / "a b")
    (tmp_path / "file").write_text("")
    assert "cannot" in INSTALL.refusal(capsys, "grafana", "--dir", tmp_path / "file")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_units_are_what_systemd_understands_and_hardened(tmp_path: Path, capsys: Output) -> None:
    INSTALL.text(capsys, "systemd", "--dir", tmp_path)
    units = [str(path) for path in tmp_path.iterdir()]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    assert "Unknown" not in done.stderr
    command = ["systemd-analyze", "security", "--offline=true", str(tmp_path / "crosscast.service")]
    done = subprocess.run(command, capture_output=True, text=True)
    level = re.search(r"exposure level for crosscast.service: ([\d.]+)", done.stdout)
    if level is None:
        pytest.skip("this systemd-analyze cannot look at a file")
    assert float(level[1]) <= 3


def test_the_dashboard_asks_for_metrics_that_there_are(tmp_path: Path, capsys: Output) -> None:
    pytest.importorskip("prometheus_client")
    from crosscast.service.app import Metrics
    from crosscast.service.models import Served

    INSTALL.text(capsys, "grafana", "--dir", tmp_path)
    board = json.loads((tmp_path / "crosscast.json").read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked = set(re.findall(r"crosscast_\w+", " ".join(expressions)))
    served = Served(["opencl-15-devices"], [])
    metrics = Metrics(lambda: served.state)
    metrics.seconds.labels("x").observe(1)
    told = metrics.text().decode()
    assert len(asked) == 7
    assert not [name for name in asked if f"# TYPE {name.removesuffix('_bucket')} " not in told]


def test_a_prefix_stages_what_the_folder_itself_would_have(tmp_path: Path, capsys: Output) -> None:
    INSTALL.text(capsys, "slurm", "--dir", "/etc/crosscast-nowhere", "--prefix", tmp_path)
    script = tmp_path / "etc/crosscast-nowhere/crosscast/prolog.sh"
    assert "/etc/crosscast-nowhere" in script.read_text()
    assert str(tmp_path) not in "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert script.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("kind", ["slurm", "systemd", "grafana"])
def test_what_a_dry_run_shows_is_installed_and_removed_and_nothing_else(
    kind: str, tmp_path: Path, capsys: Output
) -> None:
    folder = tmp_path / "new"
    words = (kind, "--dir", folder)
    shown = INSTALL.text(capsys, *words, "--dry-run")
    assert not folder.exists()
    written = INSTALL.text(capsys, *words)
    files = {str(path): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert sorted(written.splitlines()) == sorted(f"{path}: written" for path in files)
    assert len(shown) == sum(len(f"{path}: would be written\n{text}\n") for path, text in files.items())
    assert all(f"{path}: would be written\n{text}" in shown for path, text in files.items())
    (folder / "theirs").write_text("x")
    REMOVE.text(capsys, *words, "--dry-run")
    assert all(Path(path).exists() for path in files)
    removed = REMOVE.text(capsys, *words)
    assert sorted(removed.splitlines()) == sorted(f"{path}: removed" for path in files)
    assert [path.name for path in folder.rglob("*")] == ["theirs"]
    assert "not there" in REMOVE.text(capsys, *words)


def test_the_unit_starts_the_program_of_this_installation(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, quoted, home in (
        ("/opt/venv", "/opt/venv/bin/crosscast", "yes"),
        ("/home/ann/venv", "/home/ann/venv/bin/crosscast", "read-only"),
        ("/opt/a b%", '"/opt/a b%%/bin/crosscast"', "yes"),
    ):
        monkeypatch.setattr(service, "_program", lambda name=name: f"{name}/bin/crosscast")
        shown = INSTALL.text(capsys, "systemd", "--dir", tmp_path, "--dry-run")
        assert f"ExecStart={quoted} serve " in shown
        assert f"ProtectHome={home}\n" in shown
