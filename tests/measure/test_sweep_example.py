"""The example of a sweep: from a program's regions to what models learn from."""

import subprocess
import sys
from pathlib import Path

import pytest

from crosscast.data.configuration import Configuration
from crosscast.data.views import configured
from crosscast.errors import InputError
from crosscast.measure.regions.samples import import_runs
from crosscast.prediction.configuration.data import machines_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "sweep.py"

pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="no checkout")


def swept(history: Path, sensors: str) -> str:
    words = [sys.executable, str(EXAMPLE), str(history), sensors]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_a_sweep_with_power_is_what_models_learn_from(tmp_path: Path) -> None:
    recording, history = tmp_path / "recording.csv", tmp_path / "runs.jsonl"
    recording.write_text("domain,time_s,energy_j\npackage-0,0,0\npackage-0,9000,270000\n", encoding="utf-8")
    assert swept(history, f"replay:{recording}") == f"times and powers are in {history}"
    imported = import_runs(history)
    (surfaces,) = machines_of(configured(imported.dataset), "runs")
    assert surfaces.applications == ("scale", "sort", "sums", "transform", "waves")
    assert surfaces.known.all()
    assert (surfaces.power_w > 0).all()
    assert surfaces.space.configurations[0] == Configuration("machine", {"threads": 1})


@pytest.mark.system
def test_a_sweep_without_a_sensor_says_that_power_is_missing(tmp_path: Path) -> None:
    history = tmp_path / "runs.jsonl"
    assert swept(history, "none").startswith("no sensor has told a power")
    with pytest.raises(InputError, match=r"expected runs with a power, found none \(\d+ without power\)"):
        import_runs(history)
