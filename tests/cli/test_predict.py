"""``crosscast predict``: every kind of file, probes, devices, warnings and refusals."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import crosscast
from crosscast.characterization.embedding.source import embed
from crosscast.cli import main
from crosscast.data.profiles import write_parquet
from crosscast.errors import ImplausibleError
from crosscast.forecasting import kernels as inputs
from crosscast.kernel import Kernel, Launch, Program
from crosscast.profile import Profile, compiler_options
from support.commands import Command, Output
from support.csv_tables import write_csv
from support.golden import assert_printed
from support.models import kept
from support.workshop import SHEET, known_profile

PREDICT = Command.of("predict time")
answer, refusal = PREDICT.answer, PREDICT.refusal

GOLDEN = Path(__file__).with_name("golden")

SOURCE = b"kernel void k3(global int *a) { a[get_global_id(0)] *= 3; }\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(kept(tmp_path_factory.mktemp("kept") / "model"))


@pytest.fixture
def profile() -> Profile:
    """A profile with the metrics of a training kernel, made as the training's were."""
    return known_profile()


@pytest.fixture
def file(profile: Profile, tmp_path: Path) -> str:
    path = tmp_path / "k3.json"
    path.write_text(json.dumps(profile.to_dict()))
    return str(path)


def test_json_has_what_a_check_reads(capsys: Output, model: str, file: str) -> None:
    found = answer(capsys, file, "--model", model)
    assert [each["device"] for each in found["devices"]] == ["big", "bigger", "red", "host"]
    for each in found["devices"]:
        assert 0 < each["low_s"] < each["time_s"] < each["high_s"]
    best = min(found["devices"], key=lambda each: float(each["time_s"]))
    assert (best["device"], best["rank"]) == (found["recommended"], 1)
    assert found["warnings"] == []
    assert found["kernels"][0]["devices"] == found["devices"]
    assert found["model"]["name"] == "physical"


def test_what_a_person_sees_is_as_it_was(capsys: Output, model: str, file: str) -> None:
    assert_printed(PREDICT.text(capsys, file, "--model", model), GOLDEN / "predict-time.txt")


def test_every_kind_of_file_gives_the_same(
    capsys: Output, model: str, file: str, profile: Profile, tmp_path: Path
) -> None:
    write_parquet([profile], tmp_path / "k.parquet")
    write_csv([profile], tmp_path / "k.csv")
    (tmp_path / "k.cl").write_bytes(embed(SOURCE, [profile], "k.cl"))
    (tmp_path / "lines.json").write_text(f"{json.dumps(profile.to_dict())}\n")
    (tmp_path / "list.json").write_text(json.dumps([profile.to_dict()]))
    expected = answer(capsys, file, "--model", model)
    for name in ("k.parquet", "k.csv", "k.cl", "lines.json", "list.json"):
        assert answer(capsys, str(tmp_path / name), "--model", model) == expected


def test_a_launch_file_is_characterized_by_invocations(capsys: Output, model: str, tmp_path: Path) -> None:
    (tmp_path / "k3.cl").write_bytes(SOURCE)
    path = tmp_path / "k.toml"
    path.write_text(
        'source = "k3.cl"\nkernel = "k3"\n[[arg]]\ntype = "int"\nlength = 128\n'
        "[[launch]]\nglobal = 64\n[[launch]]\nglobal = 128\n"
    )
    found = answer(capsys, str(path), "--model", model)
    assert (found["kernel"], found["invocations"]) == ("k3", 2)
    assert any("was made with clang 22." in each for each in found["warnings"])
    # The model's training profiles are not of what drivers compile.
    assert not any("-O3" in each for each in found["warnings"])


@pytest.mark.parametrize(("options", "level"), [((), "-O3"), (("-DN=1", "-O1"), "-O1"), (("-O0",), "-O0")])
def test_a_forecast_is_of_what_drivers_compile_and_a_profile_of_the_published_level(
    options: tuple[str, ...], level: str
) -> None:
    launch = Launch(Kernel(Program(SOURCE, options=options), "k3"), (64,), (64,), (np.zeros(64, np.int32),))
    ((profile,), _) = inputs.profiles_of(launch)
    assert compiler_options(profile.program)[-1] == level
    assert compiler_options(crosscast.characterize(launch).program) == options


@pytest.mark.parametrize("body", ["a[get_global_id(0)] *= 3;", "for (int k = 0; k < 9; k++) a[k] += b[k];"])
def test_loops_that_drivers_unroll_are_named(body: str) -> None:
    kernel = Kernel.from_source(f"kernel void k(global int *a, global int *b) {{ {body} }}", "k")
    launch = Launch(kernel, (64,), (64,), (np.zeros(64, np.int32), np.zeros(64, np.int32)))
    stored, now = (
        any("--option -O3" in each for each in crosscast.predict(kernels, devices=["gtx1080"]).warnings[0])
        for kernels in (crosscast.characterize(launch), launch)
    )
    assert stored == ("for" in body)
    assert not now


def test_an_absurd_probe_is_taken_to_no_other_model() -> None:
    launch = Launch(Kernel(Program(SOURCE), "k3"), (64,), (64,), (np.zeros(64, np.int32),))
    with pytest.raises(ImplausibleError, match=r"gtx1080: expected about .* found 52 s: is it in seconds"):
        crosscast.predict(launch, devices=["k40c"], probes={"gtx1080": 52.0})


def test_an_application_is_all_its_kernels(capsys: Output) -> None:
    found = answer(capsys, "bundled", "--application", "kmeans", "--devices", "gtx1080,knl")
    assert [each["application"] for each in found["applications"]] == [
        "kmeans medium",
        "kmeans small",
        "kmeans tiny",
    ]
    for whole in found["applications"]:
        kernels = [each for each in found["kernels"] if whole["application"] == f"kmeans {each['size']}"]
        for place, device in enumerate(whole["devices"]):
            times = [each["devices"][place]["time_s"] * each["invocations"] for each in kernels]
            assert device["time_s"] == pytest.approx(sum(times))
            assert device["low_s"] < device["time_s"] < device["high_s"]


def test_devices_to_measure_on_are_named(capsys: Output, model: str, file: str) -> None:
    asked = [file, "--model", model, "--probe", "host=0.00001", "--suggest-probes", "1"]
    found = answer(capsys, *asked)["suggested_probes"]
    assert len(found["devices"]) == 1
    assert "host" not in found["devices"]
    assert found["error"] < found["error_before"]
    assert main(["predict", "time", *asked]) == 0
    assert f"Measure on {found['devices'][0]} (--probe): times on the others" in capsys.readouterr().out


def test_a_described_device_is_predicted(capsys: Output, model: str, file: str, tmp_path: Path) -> None:
    path = tmp_path / "next.toml"
    path.write_text(f'device = "next"\nvendor = "Nvidia"\n{SHEET}')
    found = answer(capsys, file, "--model", model, "--device-file", str(path))
    assert [each["device"] for each in found["devices"]] == ["big", "bigger", "red", "host", "next"]
    alone = answer(capsys, file, "--model", model, "--devices", "big", "--device-file", str(path))
    assert [each["device"] for each in alone["devices"]] == ["big", "next"]
    named = answer(capsys, file, "--model", model, "--devices", "next", "--device-file", str(path))
    assert [each["device"] for each in named["devices"]] == ["next"]


def test_a_device_far_outside_of_the_known_ones_is_warned_of(capsys: Output, file: str) -> None:
    found = answer(capsys, file, "--model", "opencl-15-devices", "--devices", "gtx1080,rtx4090")
    (warning,) = (each for each in found["warnings"] if "rtx4090" in each)
    assert "is far outside of the 15 devices that the model was trained on in: second cache, " in warning
    known, new = (each["high_s"] / each["low_s"] for each in found["devices"])
    assert new > known
    (none,) = answer(capsys, file, "--model", "opencl-15-devices", "--devices", "gtx1080")["kernels"]
    assert not any("outside of the 15 devices" in each for each in none["warnings"])


def test_a_warning_about_several_kernels_is_told_once(
    capsys: Output, model: str, profile: Profile, tmp_path: Path
) -> None:
    other = {**profile.program, "compiler": "another compiler"}
    path = tmp_path / "both.parquet"
    write_parquet([replace(profile, kernel=name, program=other) for name in ("k3", "k4", "k5")], path)
    assert main(["predict", "time", str(path), "--model", model]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "another compiler" in line]
    assert len(told) == 1
    assert told[0].startswith("crosscast: warning: k3 and 2 more: ")
