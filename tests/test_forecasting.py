"""`crosscast.predict` is what ``crosscast predict`` does."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast.cli import main
from crosscast.device import Device
from crosscast.devices.catalogue import device_named
from crosscast.errors import InputError
from crosscast.forecasting.kernels import verdicts_beside
from support.refusals import refusals

EXAMPLE = Path(__file__).parents[1] / "examples" / "vecadd.toml"


def test_the_function_and_the_command_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(EXAMPLE), "--devices", "gtx1080,knl", "--probe", "knl=0.02", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    predicted = crosscast.predict(EXAMPLE, devices=["gtx1080", "knl"], probes={"knl": 0.02}).to_dict()
    of_command = [{k: v for k, v in each.items() if k != "verdict"} for each in document["kernels"]]
    assert predicted["kernels"] == of_command


def test_several_kernels_of_a_launch_file_are_an_application(tmp_path: Path) -> None:
    (tmp_path / "both.cl").write_text(
        "kernel void one(global float *x) { x[get_global_id(0)] = 1; }"
        "kernel void two(global float *x) { x[get_global_id(0)] *= 2; }"
    )
    file = tmp_path / "both.toml"
    file.write_text(
        'source = "both.cl"\nglobal = 64\nlocal = 64\n[[arg]]\nname = "x"\ntype = "float"\nlength = 64\n'
        + "".join(f'[[launch]]\nkernel = "{kernel}"\n' for kernel in ("one", "two"))
    )
    found = crosscast.predict(file, devices=["gtx1080"])
    assert {name: len(kernels.profiles) for name, kernels in found.applications().items()} == {"both": 2}


def test_launches_profiles_and_files_are_the_same_kernel() -> None:
    (launch,) = crosscast.read_launches(EXAMPLE)
    profile = crosscast.characterize(launch)
    inputs: list[Any] = [launch, profile, str(EXAMPLE), [profile]]
    times = [crosscast.predict(each, devices=["k20m"]).centre for each in inputs]
    assert all(np.array_equal(each, times[0]) for each in times)


def test_a_device_of_the_catalogue_may_be_named_twice_and_is_there_once() -> None:
    profile = crosscast.characterize(crosscast.read_launches(EXAMPLE)[0])
    device = crosscast.device_named("rtx4090")
    assert crosscast.predict(profile, devices=["rtx4090", device, "knl"]).devices == ("rtx4090", "knl")


def test_nothing_bounds_a_kernel_on_a_device_of_which_the_name_alone_is_known() -> None:
    (launch,) = crosscast.read_launches(EXAMPLE)
    profile = crosscast.characterize(launch)
    forecast = crosscast.predict(EXAMPLE, devices=["gtx1080"])
    known, named = device_named("gtx1080"), Device("gtx1080", "mine", type="node")
    (verdict,) = verdicts_beside(forecast, [profile], {"gtx1080": known})
    assert verdict is not None and verdict.bound == "memory"
    assert verdicts_beside(forecast, [profile], {"gtx1080": named}) == [None]


def test_recorded_times_stand_beside_those_of_a_dataset() -> None:
    predicted = crosscast.predict("bundled", devices=["knl"])
    assert predicted.recorded is not None


@refusals("words said")
def test_what_cannot_be_asked_is_one_sentence(words: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        crosscast.predict(**{"kernels": EXAMPLE, **words})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["nope", "gtx1o80", "", "a" * 50])
def test_a_device_that_nobody_knows_is_a_short_sentence(name: str) -> None:
    with pytest.raises(InputError, match=r"^devices: expected some of") as caught:
        crosscast.predict("bundled", devices=[name])
    assert len(str(caught.value)) < 400


def test_a_name_of_two_devices_lists_them() -> None:
    with pytest.raises(InputError, match=r"expected the key of one device, found 'titan x', as 2 are called"):
        crosscast.predict("bundled", devices=["titan x"])
