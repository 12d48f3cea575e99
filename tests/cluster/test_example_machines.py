"""The example of machines can be read, and has devices that there are."""

from pathlib import Path

import pytest

from crosscast.cluster.machines_file import read_machines
from crosscast.tables.published_devices import published_devices

EXAMPLE = Path(__file__).parents[2] / "examples" / "machines.toml"


def test_the_example_has_machines_with_and_without_gpus_on_published_devices() -> None:
    if not EXAMPLE.exists():
        pytest.skip("no checkout")
    machines = read_machines(EXAMPLE)
    assert {machine.has_gpu for machine in machines} == {False, True}
    assert {machine.device for machine in machines} <= {row["device"] for row in published_devices()}
