"""A configuration is a device and its settings."""

import pickle

from crosscast.data.configuration import Configuration, parse_configurations
from support.refusals import refusal, refusals


def test_the_order_of_settings_does_not_matter() -> None:
    one = Configuration("node", {"gpu_cap_w": 100, "cpu_cap_w": 65})
    other = Configuration("node", {"cpu_cap_w": 65.0, "gpu_cap_w": 100.0})
    assert one == other
    assert hash(one) == hash(other)
    assert str(one) == "node: cpu cap 65 W, gpu cap 100 W"


def test_a_configuration_goes_through_tables_and_processes() -> None:
    one = Configuration.of("xu3", '{"cores": 4, "cluster": "big"}')
    assert one.to_dict() == {"device": "xu3", "settings": {"cluster": "big", "cores": 4.0}}
    assert pickle.loads(pickle.dumps(one)) == one


@refusals("settings")
def test_what_is_no_setting_is_refused(settings: str) -> None:
    assert "configuration" in refusal(Configuration.of, "xu3", settings)


def test_configurations_are_separated_by_semicolons() -> None:
    assert parse_configurations("samples", "cpu: cores=4, way=even ; gpu:clock_hz=1.5e9", ["cpu", "gpu"]) == [
        Configuration("cpu", {"cores": 4.0, "way": "even"}),
        Configuration("gpu", {"clock_hz": 1.5e9}),
    ]


def test_the_only_device_may_be_left_out() -> None:
    assert parse_configurations("samples", "cores=4;cpu:cores=2", ["cpu"]) == [
        Configuration("cpu", {"cores": 4.0}),
        Configuration("cpu", {"cores": 2.0}),
    ]


@refusals("text sentence")
def test_what_is_no_configuration_is_refused(text: str, sentence: str) -> None:
    assert sentence in refusal(parse_configurations, "samples", text, ["cpu", "gpu"])
