"""``crosscast explain``, and the verdict that ``crosscast predict`` begins with."""

import json
import re
from pathlib import Path

import pytest

import crosscast
from crosscast.devices.roofline import DEVICES, Verdict
from crosscast.prediction.time.terms import TERMS
from crosscast.report.verdict import verdict_lines
from support.commands import Command, Output

ROOT = Path(__file__).parents[2]
VECADD = [
    str(ROOT / "examples" / "vecadd.cl"),
    *["--global", "1048576", *["--arg", "float:1048576"] * 3, "--arg", "int=1048576"],
]

explain, predict = Command.of("explain"), Command.of("predict")


def test_the_verdict_comes_before_tables_and_the_page_has_a_roofline(capsys: Output, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "page.html"
    lines = explain.text(capsys, *VECADD, "--devices", "gtx1080", "--html", page).splitlines()
    assert lines[0] == "What bounds these kernels"
    assert lines[2].startswith("vecadd on gtx1080 is bound by memory: 12.6 MB at 320 GB/s take about 39.3 µs")
    assert lines[3] == "It does 0.083 flop for each byte that has to be moved; gtx1080 balances at 28."
    assert lines[4].startswith("Try ")
    assert "How long each limit alone takes" in lines[6]
    text = page.read_text()
    assert "Roofline: what each device can at most do" in text
    assert "data:image/svg+xml" in text


def test_json_has_what_the_sentences_say(capsys: Output) -> None:
    found = explain.answer(capsys, *VECADD)["verdicts"]
    assert [each["device"] for each in found] == list(DEVICES)
    for each in found:
        assert each["limits_s"][each["bound"]] == max(each["limits_s"].values())
        assert each["flops"] == 1 << 20
        assert each["text"].startswith(f"vecadd on {each['device']} is bound by {each['bound']}")


def test_without_counts_by_sub_groups_there_is_no_forecast_of_terms(capsys: Output, tmp_path: Path) -> None:
    made = Command.of("characterize").answer(capsys, *VECADD)
    del made["launch"]["sub_groups"]
    old = tmp_path / "old.json"
    old.write_text(json.dumps(made))
    assert "forecasts" not in explain.answer(capsys, old, "--devices", "gtx1080")
    assert "Forecast\n" not in explain.text(capsys, old, "--devices", "gtx1080")


def test_several_files_and_a_data_sheet_of_ones_own(capsys: Output, tmp_path: Path) -> None:
    sheet = tmp_path / "mine.toml"
    sheet.write_text(
        'device = "mine"\ntype = "gpu"\nclock_hz = 1e9\ncores = 1024\ncompute_units = 8\n'
        "peak_flop_per_s = 2.048e12\nbandwidth_bytes_per_s = 1e11\n"
    )
    files = [str(ROOT / "examples" / f"{name}.toml") for name in ("matmul", "reduce")]
    found = explain.answer(capsys, *files, "--device-file", sheet, "--kernel", "matmul")["verdicts"]
    assert [(each["kernel"], each["device"], each["bound"]) for each in found] == [
        ("matmul", "mine", "compute")
    ]


def test_a_kernel_without_operations_on_reals_has_no_roofline(capsys: Output, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = explain.text(capsys, ROOT / "examples" / "histogram.toml", "--html", page)
    assert "It does no floating-point operations." in text
    assert "Roofline" not in page.read_text()


def test_a_forecast_begins_with_the_verdict_on_the_recommended_device(capsys: Output, tmp_path: Path) -> None:
    lines = predict.text(capsys, *VECADD).splitlines()
    assert " is bound by memory" in lines[0]
    assert "vecadd" in lines
    found = predict.answer(capsys, *VECADD, "--html", tmp_path / "page.html")
    assert found["verdict"]["device"] == found["recommended"]
    assert found["verdict"]["text"] == lines[0]
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


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    return crosscast.explain(ROOT / "examples" / "vecadd.toml", devices=["gtx1080"]).verdicts[0]


@pytest.mark.parametrize("term", TERMS)
def test_each_term_has_words_and_advice(verdict: Verdict, term: str) -> None:
    lines = verdict_lines(verdict, 1e-3, {term: 0.9})
    is_the_verdict = term in ("memory", "scattered")
    assert any("mostly" in line for line in lines) != is_the_verdict
    assert lines[-1].startswith("Try ")
