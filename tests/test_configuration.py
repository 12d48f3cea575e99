"""A configuration is a device and its settings."""

import pickle

import pytest

from crosscast.configuration import Configuration
from crosscast.errors import InputError


def test_the_order_of_settings_does_not_matter() -> None:
    one = Configuration("node", {"gpu_cap_w": 100, "cpu_cap_w": 65})
    other = Configuration("node", {"cpu_cap_w": 65.0, "gpu_cap_w": 100.0})
    assert one == other
    assert hash(one) == hash(other)
    assert str(one) == "node: cpu_cap_w 65, gpu_cap_w 100"


def test_a_configuration_goes_through_tables_and_processes() -> None:
    one = Configuration.of("xu3", '{"cores": 4, "cluster": "big"}')
    assert one.to_dict() == {"device": "xu3", "settings": {"cluster": "big", "cores": 4.0}}
    assert pickle.loads(pickle.dumps(one)) == one


def test_a_device_without_settings_is_a_configuration() -> None:
    assert str(Configuration("pocl:0", {})) == "pocl:0"


@pytest.mark.parametrize(
    "settings",
    [
        '{"cores": null}',
        '{"cores": true}',
        '{"cores": [1]}',
        '{"cores": 1e999}',
        f'{{"cores": 1{"0" * 400}}}',
        "3",
        "{",
        "[" * 100_000,
    ],
)
def test_what_is_no_setting_is_refused(settings: str) -> None:
    with pytest.raises(InputError, match="configuration"):
        Configuration.of("xu3", settings)
