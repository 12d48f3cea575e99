"""The examples of machines can be read, and have devices that there are."""

from pathlib import Path

import pytest

from crosscast.cluster.jobs import read_machines
from crosscast.data.sources.aiwc import published_devices

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["machines.toml", "four-clusters.toml"])
def test_examples_have_machines_with_and_without_gpus_on_published_devices(name: str) -> None:
    if not EXAMPLES.exists():
        pytest.skip("no checkout")
    machines = read_machines(EXAMPLES / name)
    assert {machine.has_gpu for machine in machines} == {False, True}
    assert {machine.device for machine in machines} <= {row["device"] for row in published_devices()}
