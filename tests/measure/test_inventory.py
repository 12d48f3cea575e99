"""What this machine can measure."""

import json

from crosscast.measure.cpu_counters import available
from crosscast.measure.inventory import inventory
from crosscast.measure.opencl import devices


def test_every_device_is_listed_with_all_that_is_known() -> None:
    found = inventory()
    assert [entry.device.id for entry in found] == [device.id for device in devices()]
    for entry in found:
        shown = json.loads(json.dumps(entry.to_dict(), allow_nan=False))
        assert (shown["id"], shown["device"]) == (entry.device.id, entry.device.key)
        assert shown["compute_units"] == entry.device.compute_units
        assert {"name", "type", "memory_bytes", "driver", "platform"} <= shown.keys()
        assert all(sensor["works"] == (sensor["reason"] is None) for sensor in shown["sensors"])


def test_cpus_have_counters_and_a_sensor_that_works_or_says_why() -> None:
    names = list(available())
    for entry in inventory():
        shown = entry.to_dict()
        if entry.device.type == "cpu":
            assert [counter["name"] for counter in shown["counters"]] == names
            assert [sensor["name"] for sensor in shown["sensors"]] == ["rapl"]
        else:
            assert shown["counters"] == []
