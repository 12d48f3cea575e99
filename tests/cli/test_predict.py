"""``crosscast predict`` of times and of relative times, ``train relative``, and ``explain``."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import crosscast
from crosscast import forecasting
from crosscast.characterization.embedding import embed
from crosscast.data.dataset import write_dataset
from crosscast.data.profiles import write_parquet
from crosscast.devices.roofline import DEVICES
from crosscast.errors import ImplausibleError
from crosscast.kernel import Kernel, Launch, Program
from crosscast.prediction.relative.artefact import open_model
from crosscast.prediction.store import read
from crosscast.prediction.time.terms import TERMS
from crosscast.profile import compiler_options
from crosscast.report.prediction import verdict_lines
from support.commands import Command, Output, written
from support.counter_profiles import ncu_long, perf_file, perf_line
from support.csv_tables import write_csv
from support.datasets import made_dataset
from support.golden import assert_printed
from support.johnston2018 import made_up
from support.models import kept
from support.vectors import made_counted_dataset
from support.workshop import SHEET, known_profile

PREDICT = Command.of("predict time")
answer = PREDICT.answer


SOURCE = b"kernel void k3(global int *a) { a[get_global_id(0)] *= 3; }\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(kept(tmp_path_factory.mktemp("kept") / "model"))


PROFILE = known_profile()
"""A profile with the metrics of a training kernel, made as the training's were."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "k3.json"
    path.write_text(json.dumps(PROFILE.to_dict()))
    return path


def test_json_has_what_a_check_reads_and_people_see_the_same(capsys: Output, model: str, file: Path) -> None:
    found = answer(capsys, file, "--model", model)
    assert [each["device"] for each in found["devices"]] == ["big", "bigger", "red", "host"]
    for each in found["devices"]:
        assert 0 < each["low_s"] < each["time_s"] < each["high_s"]
    best = min(found["devices"], key=lambda each: float(each["time_s"]))
    assert (best["device"], best["rank"]) == (found["recommended"], 1)
    assert found["warnings"] == []
    assert found["kernels"][0]["devices"] == found["devices"]
    assert found["model"]["name"] == "physical"
    golden = Path(__file__).with_name("golden") / "predict-time.txt"
    assert_printed(PREDICT.text(capsys, file, "--model", model), golden)


def test_every_kind_of_file_gives_the_same(capsys: Output, model: str, file: Path, tmp_path: Path) -> None:
    write_parquet([PROFILE], tmp_path / "k.parquet")
    write_csv([PROFILE], tmp_path / "k.csv")
    (tmp_path / "k.cl").write_bytes(embed(SOURCE, [PROFILE], "k.cl"))
    (tmp_path / "lines.json").write_text(f"{json.dumps(PROFILE.to_dict())}\n")
    (tmp_path / "list.json").write_text(json.dumps([PROFILE.to_dict()]))
    expected = answer(capsys, file, "--model", model)
    for path in tmp_path.iterdir():
        assert answer(capsys, path, "--model", model) == expected


def test_a_launch_file_is_characterized_by_invocations(capsys: Output, model: str, tmp_path: Path) -> None:
    (tmp_path / "k3.cl").write_bytes(SOURCE)
    launches = "[[launch]]\nglobal = 64\n[[launch]]\nglobal = 128\n"
    arg = '[[arg]]\ntype = "int"\nlength = 128\n'
    (tmp_path / "k.toml").write_text(f'source = "k3.cl"\nkernel = "k3"\n{arg}{launches}')
    found = answer(capsys, tmp_path / "k.toml", "--model", model)
    assert (found["kernel"], found["invocations"]) == ("k3", 2)
    assert any("was made with clang 22." in each for each in found["warnings"])
    # The model's training profiles are not of what drivers compile.
    assert not any("-O3" in each for each in found["warnings"])


def test_a_forecast_is_of_what_drivers_compile_and_a_profile_of_the_published_level() -> None:
    launch = Launch(Kernel(Program(SOURCE), "k3"), (64,), (64,), (np.zeros(64, np.int32),))
    for options, level in (((), "-O3"), (("-DN=1", "-O1"), "-O1"), (("-O0",), "-O0")):
        built = replace(launch, kernel=Kernel(Program(SOURCE, options=options), "k3"))
        ((profile,), _) = forecasting.profiles_of(built)
        assert compiler_options(profile.program)[-1] == level
        assert compiler_options(crosscast.characterize(built).program) == options
    # An absurd probe is taken to no other model.
    with pytest.raises(ImplausibleError, match=r"gtx1080: expected about .* found 52 s: is it in seconds"):
        crosscast.predict(launch, devices=["k40c"], probes={"gtx1080": 52.0})


def test_loops_that_drivers_unroll_are_named() -> None:
    for body in ("a[get_global_id(0)] *= 3;", "for (int k = 0; k < 9; k++) a[k] += b[k];"):
        kernel = Kernel.from_source(f"kernel void k(global int *a, global int *b) {{ {body} }}", "k")
        launch = Launch(kernel, (64,), (64,), (np.zeros(64, np.int32), np.zeros(64, np.int32)))
        warned = [
            any("--option -O3" in each for each in crosscast.predict(what, devices=["gtx1080"]).warnings[0])
            for what in (crosscast.characterize(launch), launch)
        ]
        assert warned == ["for" in body, False]


def test_an_application_is_all_its_kernels(capsys: Output) -> None:
    found = answer(capsys, "bundled", "--application", "kmeans", "--devices", "gtx1080")
    sums: dict[str, float] = {}
    for each in found["kernels"]:
        name, time_s = f"kmeans {each['size']}", each["invocations"] * each["devices"][0]["time_s"]
        sums[name] = sums.get(name, 0.0) + time_s
    whole = {each["application"]: each["devices"][0]["time_s"] for each in found["applications"]}
    assert list(whole) == ["kmeans medium", "kmeans small", "kmeans tiny"]
    assert whole == pytest.approx(sums)


def test_devices_to_measure_on_are_named(capsys: Output, model: str, file: Path) -> None:
    asked = (file, "--model", model, "--probe", "host=0.00001", "--suggest-probes", "1")
    found = answer(capsys, *asked)["suggested_probes"]
    (device,) = found["devices"]
    assert device != "host"
    assert found["error"] < found["error_before"]
    assert f"Measure on {device} (--probe): times on the others" in PREDICT.text(capsys, *asked)


def test_a_described_device_is_predicted(capsys: Output, model: str, file: Path, tmp_path: Path) -> None:
    path = tmp_path / "next.toml"
    path.write_text(f'device = "next"\nvendor = "Nvidia"\n{SHEET}')
    for words, expected in (
        ((), "big bigger red host next"),
        (("--devices", "big"), "big next"),
        (("--devices", "next"), "next"),
    ):
        found = answer(capsys, file, "--model", model, "--device-file", path, *words)
        assert " ".join(each["device"] for each in found["devices"]) == expected


def test_a_device_far_outside_of_the_known_ones_is_warned_of(capsys: Output, file: Path) -> None:
    words = (file, "--model", "opencl-15-devices", "--devices")
    found = answer(capsys, *words, "gtx1080,rtx4090")
    (warning,) = (each for each in found["warnings"] if "rtx4090" in each)
    assert "is far outside of the 15 devices that the model was trained on in: second cache, " in warning
    known, new = (each["high_s"] / each["low_s"] for each in found["devices"])
    assert new > known
    (none,) = answer(capsys, *words, "gtx1080")["kernels"]
    assert not any("outside of the 15 devices" in each for each in none["warnings"])


def test_a_warning_about_several_kernels_is_told_once(capsys: Output, model: str, tmp_path: Path) -> None:
    other = {**PROFILE.program, "compiler": "another compiler"}
    path = tmp_path / "both.parquet"
    write_parquet([replace(PROFILE, kernel=name, program=other) for name in ("k3", "k4", "k5")], path)
    assert PREDICT(path, "--model", model) == 0
    (told,) = [line for line in capsys.readouterr().err.splitlines() if "another compiler" in line]
    assert told.startswith("crosscast: warning: k3 and 2 more: ")


COMMAND = Command()
RELATIVE = Command.of("predict relative")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(written(made_counted_dataset(), tmp_path_factory, "counted"))


@pytest.fixture(scope="module")
def counted_model(dataset: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "rpv"
    words = ("--model", "published-linear", "--jobs", "1", "--out", folder)
    assert COMMAND("train", "relative", dataset, *words) == 0
    return folder


@pytest.fixture
def perf(tmp_path: Path) -> Path:
    counted = [perf_line("PAPI_TOT_INS", "1000000000.0"), perf_line("PAPI_BR_INS", "100000000.0")]
    return perf_file(tmp_path / "run.json", *counted, perf_line("duration_time", "1500000000.0", "ns"))


def test_json_of_a_prediction_has_what_a_check_reads(capsys: Output, counted_model: Path, perf: Path) -> None:
    words = (perf, "--model", counted_model, "--source", "cpu", "--relative-to")
    found = RELATIVE.answer(capsys, *words, "cpu")
    assert (found["relative_to"], found["source"], found["level"]) == ("cpu", "cpu", 0.9)
    cpu, *others = found["devices"]
    assert cpu["relative"] == cpu["low"] == cpu["high"] == cpu["speed_up"] == 1
    for each in others:
        assert 0 < each["low"] < each["relative"] < each["high"]
        # 1.5 seconds on the CPU, as perf says.
        assert each["time_s"] == pytest.approx(1.5 * each["relative"])
    assert found["recommended"] == found["order"][0]
    assert found["runs"][0]["devices"] == found["devices"]
    assert found["model"]["name"] == "published-linear"
    assert RELATIVE(*words, "gpu") == 0
    captured = capsys.readouterr()
    assert not captured.err
    assert_printed(captured.out, Path(__file__).with_name("golden") / "predict-relative.txt")


def test_runs_of_a_dataset_are_predicted_and_can_be_chosen(
    capsys: Output, dataset: str, counted_model: Path
) -> None:
    words = (dataset, "--model", counted_model, "--application", "app03", "--kernel", "kernel1")
    both = RELATIVE.answer(capsys, *words)["runs"]
    assert sorted(each["source"] for each in both) == ["cpu", "cpu", "fast", "fast"]
    assert {each["application"] for each in both} == {"app03"}
    own = RELATIVE.answer(capsys, *words, "--source", "fast")["runs"]
    assert [each["source"] for each in own] == ["fast", "fast"]


def test_profiles_of_no_device_are_learned_from_and_predicted(capsys: Output, tmp_path: Path) -> None:
    """A dataset of AIWC profiles: vectors of its devices, by its metrics; a time may be told."""
    folder, one, model = tmp_path / "small", tmp_path / "one", ("--model", tmp_path / "rpv")
    write_dataset(made_up(), folder)
    words = ("--model", "published-mean", "--jobs", "1", "--out", tmp_path / "rpv")
    text = COMMAND.text(capsys, "train", "relative", folder, *words)
    assert "with architecture-independent profiles" in text
    device = open_model(read(tmp_path / "rpv")).devices[0]
    plain = RELATIVE.answer(capsys, folder, *model)["runs"]
    assert all(each["source"] is None and each["time"] is None for each in plain)
    told = ("--source", device, "--time", "2")
    assert "--source: expected with --time" in RELATIVE.refusal(capsys, folder, *model, *told[:2])
    expected = f"--time: expected one run to predict, found {len(plain)}"
    assert expected in RELATIVE.refusal(capsys, folder, *model, *told)
    write_dataset(made_dataset(("bfs",), kernels=("first",), sizes=("tiny",)), one)
    timed = RELATIVE.answer(capsys, one, *model, *told)
    assert timed["time"] == {"device": device, "time_s": 2}
    assert timed["devices"][0]["time_s"] == 2


def test_counters_of_a_gpu_are_asked_of_the_model_that_knows_most_of_them(
    capsys: Output, tmp_path: Path
) -> None:
    # A model of a Xeon's counters comes first in the list, and knows the bytes alone.
    counted = {"smsp__inst_executed.sum": "inst", "dram__bytes.sum": "byte", "launch__thread_count": "thread"}
    rows = [("0", "k", name, unit, "1000") for name, unit in counted.items()]
    assert RELATIVE(ncu_long(tmp_path / "ncu.csv", *rows)) == 0
    told = capsys.readouterr().err
    assert "crosscast: model seven-gpus: " in told
    assert f"the model knows {', '.join(counted)} only" in told


EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = f"{EXAMPLES / 'vecadd.cl'} --global 1048576{' --arg float:1048576' * 3} --arg int=1048576"
VECADD = WORDS.split()

explain, predict = Command.of("explain"), Command.of("predict")


def test_a_page_has_a_roofline_of_kernels_that_compute_with_reals(capsys: Output, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "page.html"
    text = explain.text(capsys, *VECADD, "--devices", "gtx1080", "--html", page)
    assert "\n\nvecadd on gtx1080 is bound by memory: 12.6 MB at 320 GB/s take about 39.3 µs" in text
    assert "Roofline: what each device can at most do" in page.read_text()
    explain.text(capsys, EXAMPLES / "histogram.toml", "--html", page)
    assert "Roofline" not in page.read_text()


def test_json_has_what_the_sentences_say(capsys: Output, tmp_path: Path) -> None:
    found = explain.answer(capsys, *VECADD)["verdicts"]
    assert [each["device"] for each in found] == list(DEVICES)
    for each in found:
        assert each["limits_s"][each["bound"]] == max(each["limits_s"].values())
        assert each["text"].startswith(f"vecadd on {each['device']} is bound by {each['bound']}")
    # Of several files, and with a data sheet of one's own.
    sheet = tmp_path / "mine.toml"
    sheet.write_text(f'device = "mine"\n{SHEET}')
    files = [EXAMPLES / f"{name}.toml" for name in ("matmul", "reduce")]
    (only,) = explain.answer(capsys, *files, "--device-file", sheet, "--kernel", "matmul")["verdicts"]
    assert (only["kernel"], only["device"], only["bound"]) == ("matmul", "mine", "compute")


def test_without_counts_by_sub_groups_there_is_no_forecast_of_terms(capsys: Output, tmp_path: Path) -> None:
    made = Command.of("characterize").answer(capsys, *VECADD)
    del made["launch"]["sub_groups"]
    old = tmp_path / "old.json"
    old.write_text(json.dumps(made))
    assert "forecasts" not in explain.answer(capsys, old, "--devices", "gtx1080")
    assert "Forecast\n" not in explain.text(capsys, old, "--devices", "gtx1080")


def test_a_forecast_begins_with_the_verdict_on_the_recommended_device(capsys: Output, tmp_path: Path) -> None:
    lines = predict.text(capsys, *VECADD, "--html", tmp_path / "page.html").splitlines()
    assert " is bound by memory" in lines[0]
    assert "vecadd" in lines
    found = predict.answer(capsys, *VECADD)
    assert (found["verdict"]["device"], found["verdict"]["text"]) == (found["recommended"], lines[0])
    assert "Roofline" in (tmp_path / "page.html").read_text()


ROWS = """kernel void rows(global const float *a, global float *b, int n) {
    int row = get_global_id(0);
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k];
    b[row] = sum;
}"""


def test_a_forecast_that_no_limit_explains_says_what_it_is_spent_on(capsys: Output, tmp_path: Path) -> None:
    path = tmp_path / "rows.cl"
    path.write_text(ROWS)
    launch = ("--global", "4096", "--local", "64", "--devices", "rtx4090")
    args = ("--arg", f"float:{4096 * 1024}", "--arg", "float:4096", "--arg", "int=1024")
    text = predict.text(capsys, path, *launch, *args)
    assert text.startswith("rows on rtx4090 is bound by memory")
    assert re.search(r"(?m)^The forecast of .* is mostly l1 \(\d+ %\): lines or texels touched, and", text)
    assert "\nTry neighbouring addresses for neighbouring work-items, wider accesses.\n" in text


def test_each_term_has_words_and_advice() -> None:
    verdict = crosscast.explain(EXAMPLES / "vecadd.toml", devices=["gtx1080"]).verdicts[0]
    for term in TERMS:
        lines = verdict_lines(verdict, 1e-3, {term: 0.9})
        is_the_verdict = term in ("memory", "scattered")
        assert any("mostly" in line for line in lines) != is_the_verdict
        assert lines[-1].startswith("Try ")
