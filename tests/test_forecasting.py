"""`crosscast.predict` is what ``crosscast predict`` does."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast.cli import main
from crosscast.device import Device
from crosscast.devices.catalogue import device_named
from crosscast.forecasting import _link, beside_measured, verdicts_beside
from support.refusals import refusal, refusals

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
    head = 'source = "both.cl"\nglobal = 64\nlocal = 64\n[[arg]]\nname = "x"\ntype = "float"\nlength = 64\n'
    launches = "".join(f'[[launch]]\nkernel = "{kernel}"\n' for kernel in ("one", "two"))
    (tmp_path / "both.toml").write_text(head + launches)
    found = crosscast.predict(tmp_path / "both.toml", devices=["gtx1080"])
    assert {name: len(kernels.profiles) for name, kernels in found.applications().items()} == {"both": 2}


def test_launches_profiles_and_files_are_the_same_kernel() -> None:
    (launch,) = crosscast.read_launches(EXAMPLE)
    profile = crosscast.characterize(launch)
    # A device may be named twice and is there once.
    devices: Any = ["rtx4090", crosscast.device_named("rtx4090"), "knl"]
    inputs: list[Any] = [launch, profile, str(EXAMPLE), [profile]]
    found = [crosscast.predict(each, devices=devices) for each in inputs]
    assert all(np.array_equal(each.centre, found[0].centre) for each in found)
    assert found[0].devices == ("rtx4090", "knl")


def test_nothing_bounds_a_kernel_on_a_device_of_which_the_name_alone_is_known() -> None:
    profile = crosscast.characterize(crosscast.read_launches(EXAMPLE)[0])
    forecast = crosscast.predict(profile, devices=["gtx1080"])
    (verdict,) = verdicts_beside(forecast, [profile], {"gtx1080": device_named("gtx1080")})
    assert verdict is not None and verdict.bound == "memory"
    # Of several launches the longest counts.
    short = replace(profile, metrics={"total_instruction_count": 1}, launch={})
    assert verdicts_beside(forecast, [short, profile], {"gtx1080": device_named("gtx1080")}) == [verdict]
    assert verdicts_beside(forecast, [profile], {"gtx1080": Device("gtx1080", "mine", type="node")}) == [None]


def test_measured_times_by_the_devices_clock_stand_beside_forecasts_without_the_hosts_launch() -> None:
    forecast = crosscast.predict(EXAMPLE, devices=["gtx1080"])
    whole, launch = float(forecast.centre[0, 0]), forecast.term_shares(0, 0)["launch"]
    on_device = whole * (1 - launch)
    (kernel,) = forecast.profiles.kernel
    for measured_s, inside in ((on_device, True), (100 * on_device, False)):
        (row,) = (
            beside_measured(forecast, {kernel: measured_s, "another": 1.0}).to_pandas().to_dict("records")
        )
        assert row["forecast_s"] == pytest.approx(on_device, rel=1e-3) and 0 < launch < 1
        assert row["forecast_over_measured"] == pytest.approx(on_device / measured_s, rel=1e-3)
        assert row["inside"] == inside
    assert "launch" not in forecast.on_device().term_shares(0, 0)
    assert sum(forecast.on_device().term_shares(0, 0).values()) == pytest.approx(1, abs=1e-3)


def test_transfers_take_the_bus_of_a_gpu_and_half_of_the_memory_of_a_cpu() -> None:
    (gpu, cpu), bus = (device_named(key) for key in ("gtx1080", "i7-6700k")), 15.75e9
    assert [_link(gpu), _link(cpu)] == [bus, cpu.numbers["bandwidth_bytes_per_s"] / 2]
    assert _link(Device("bare", type="cpu")) == bus


def test_recorded_times_stand_beside_those_of_a_dataset() -> None:
    assert crosscast.predict("bundled", devices=["knl"]).recorded is not None


@refusals("words said")
def test_what_cannot_be_asked_is_one_sentence(words: dict[str, Any], said: str) -> None:
    assert said in refusal(crosscast.predict, **{"kernels": EXAMPLE, **words})


@pytest.mark.parametrize("name", ["nope", "gtx1o80", "", "a" * 50])
def test_a_device_that_nobody_knows_is_a_short_sentence(name: str) -> None:
    said = refusal(crosscast.predict, "bundled", devices=[name])
    assert said.startswith("devices: expected some of") and len(said) < 400
