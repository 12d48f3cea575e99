"""Configurations that are typed on the command line."""

import pytest

from crosscast.cli.configuration_text import configurations_named
from crosscast.configuration import Configuration
from crosscast.errors import InputError


def test_configurations_are_separated_by_semicolons() -> None:
    assert configurations_named(
        "--samples", "cpu: cores=4, way=even ; gpu:clock_hz=1.5e9", ["cpu", "gpu"]
    ) == [
        Configuration("cpu", {"cores": 4.0, "way": "even"}),
        Configuration("gpu", {"clock_hz": 1.5e9}),
    ]


def test_the_only_device_may_be_left_out() -> None:
    assert configurations_named("--samples", "cores=4;cpu:cores=2", ["cpu"]) == [
        Configuration("cpu", {"cores": 4.0}),
        Configuration("cpu", {"cores": 2.0}),
    ]


def test_a_device_may_have_a_colon_and_no_settings() -> None:
    assert configurations_named("--samples", "gpu:0:", ["gpu:0", "cpu"]) == [Configuration("gpu:0", {})]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("cores=4", "--samples: expected DEVICE:KNOB=VALUE,KNOB=VALUE;... with one of the devices cpu, gpu"),
        ("", "found ''"),
        ("cpu:cores=4;", "found ''"),
        ("fpga:cores=4", "found 'fpga:cores=4'"),
        ("cpu:cores", "--samples: expected each knob once, as KNOB=VALUE, found 'cores'"),
        ("cpu:=4", "found '=4'"),
        ("cpu:cores=", "found 'cores='"),
        ("cpu:cores=4,cores=5", "found 'cores=5'"),
        ("cpu:cores=nan", "configuration: cores: expected a finite number or a word, found nan"),
    ],
)
def test_what_is_no_configuration_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        configurations_named("--samples", text, ["cpu", "gpu"])
    assert sentence in str(caught.value)
