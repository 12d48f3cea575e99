"""Files that are installed for operators."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.commands import Command, Output

INSTALL = Command.of("hooks install")


def test_what_is_there_is_not_replaced(tmp_path: Path, capsys: Output) -> None:
    shown = INSTALL.text(capsys, "systemd", "--dir", tmp_path)
    assert shown.count(": written") == 2
    unit = tmp_path / "crosscast.service"
    unit.write_text("mine")
    shown = INSTALL.text(capsys, "systemd", "--dir", tmp_path)
    assert f"{unit}: yours differs, and stays" in shown
    assert "crosscast.socket: already there" in shown
    assert unit.read_text() == "mine"


def test_a_folder_with_an_odd_name_is_refused(tmp_path: Path, capsys: Output) -> None:
    assert "--dir: expected a path of letters" in INSTALL.refusal(capsys, "slurm", "--dir", tmp_path / "a b")
    (tmp_path / "file").write_text("")
    assert "cannot" in INSTALL.refusal(capsys, "grafana", "--dir", tmp_path / "file")


def test_the_units_are_what_systemd_understands(tmp_path: Path, capsys: Output) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    INSTALL.text(capsys, "systemd", "--dir", tmp_path)
    units = [str(path) for path in tmp_path.iterdir()]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    assert "Unknown" not in done.stderr


def test_the_dashboard_asks_for_metrics_that_there_are(tmp_path: Path, capsys: Output) -> None:
    pytest.importorskip("prometheus_client")
    from crosscast.service.metrics import Metrics
    from crosscast.service.models import Served

    INSTALL.text(capsys, "grafana", "--dir", tmp_path)
    board = json.loads((tmp_path / "crosscast.json").read_text())
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"crosscast_\w+", target["expr"])
    }
    served = Served(["opencl-15-devices"], [])
    metrics = Metrics(lambda: served.state)
    metrics.seconds.labels("x").observe(1)
    told = metrics.text().decode()
    assert len(asked) == 7
    assert not [name for name in asked if f"# TYPE {name.removesuffix('_bucket')} " not in told]
