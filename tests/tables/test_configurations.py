"""What devices were set to, from the rows of a dataset."""

import json

import dataset_rows as rows

from crosscast.data.description import DeviceConfigurations, describe


def set_to(device: str, run: int = 0, **settings: float | str) -> rows.Row:
    return rows.record(run, device=device, configuration=json.dumps(settings, sort_keys=True))


DEVICES = [rows.device("cpu"), rows.device("gpu"), rows.device("idle")]


def test_each_device_has_its_knobs_with_all_that_they_were_set_to() -> None:
    records = [
        set_to("gpu", core_clock_hz=2e9, mode="slow"),
        set_to("gpu", core_clock_hz=1e9, mode="slow"),
        set_to("gpu", run=1, core_clock_hz=1e9, mode="slow"),
        set_to("gpu", core_clock_hz=1e9, mode="fast"),
        set_to("cpu"),
    ]
    found = describe(rows.dataset(devices=DEVICES, records=records))
    assert found.configurations == (
        DeviceConfigurations("cpu", 1, {}, ()),
        DeviceConfigurations("gpu", 3, {"core_clock_hz": (1e9, 2e9), "mode": ("fast", "slow")}, ()),
    )
    assert found.to_dict()["configurations"][1] == {
        "device": "gpu",
        "configurations": 3,
        "settings": {"core_clock_hz": [1e9, 2e9], "mode": ["fast", "slow"]},
        "domains": [],
    }


def test_domains_are_those_whose_power_is_known() -> None:
    energies = [
        rows.energy(device="cpu", domain="package-1", duration_s=1.0),
        rows.energy(device="cpu", domain="package-0", duration_s=1.0),
        rows.energy(device="cpu", domain="psys"),
        rows.energy(device="cpu", domain="dram", duration_s=0.0),
    ]
    records = [set_to("cpu", threads=1.0), set_to("gpu", threads=1.0)]
    found = describe(rows.dataset(devices=DEVICES, records=records, energies=energies)).configurations
    assert [each.domains for each in found] == [("package-0", "package-1"), ()]


def test_what_failed_is_no_configuration() -> None:
    failed = rows.session(device="cpu", configuration='{"threads": 2.0}', failure="wrong result")
    records = [set_to("cpu", threads=1.0), set_to("cpu", threads=2.0)]
    (found,) = describe(rows.dataset(devices=DEVICES, records=records, sessions=[failed])).configurations
    assert (found.configurations, found.settings) == (1, {"threads": (1.0,)})


def test_a_configuration_that_tells_nothing_of_knobs_is_counted() -> None:
    records = [rows.record(configuration="[1]"), rows.record(configuration='{"threads": 1.0}')]
    (found,) = describe(rows.dataset(records=records)).configurations
    assert (found.configurations, found.settings) == (2, {"threads": (1.0,)})
