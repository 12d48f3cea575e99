"""Data sheets: the whole catalogue, how devices are named, and what is refused.

Architectures: every number has its source, and those of data sheets are what the catalogue has.

Files of devices: what is written is read again, and what cannot be is refused in one sentence.
"""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import crosscast
from crosscast.comparison.devices import compare_devices
from crosscast.data.fields import TableRow
from crosscast.data.schema import DEVICES
from crosscast.data.sources.aiwc import published_devices
from crosscast.data.table import table_of
from crosscast.device import SPEED_NUMBERS, Device
from crosscast.devices import device_files
from crosscast.devices.architectures import (
    _UNITS,
    Unit,
    double_share,
    known_of,
    known_unit,
    unit_sources,
)
from crosscast.devices.catalogue import (
    FACTS,
    _siblings,
    catalogue,
    device_named,
    device_of,
    expected,
    filled,
    reached,
    sheet_named,
)
from crosscast.devices.sheets import sheets_of, streams
from crosscast.errors import InputError
from crosscast.report.fields import probability
from support.commands import Command, Output
from support.refusals import refusal, refusals

COLUMNS = {column.name for column in DEVICES.columns}
PUBLISHED = [row["device"] for row in published_devices()]
CURRENT = sorted(catalogue().keys() - set(PUBLISHED))
GPUS = [key for key in CURRENT if sheet_named(key)["type"] == "gpu" and "peak_flop_per_s" in sheet_named(key)]


@pytest.mark.parametrize("key", catalogue())
def test_every_data_sheet_is_plausible_and_says_where_each_cell_is_from(key: str) -> None:
    row = TableRow(catalogue()[key])
    device_files.check_sheet(device_of(row), key)
    known = sum(name in row for name in SPEED_NUMBERS) + len(device_files.measured_devices().get(key, {}))
    assert known >= device_files.LEAST_NUMBERS
    sources = row.entries("sources")
    del row["sources"]
    assert row.keys() <= COLUMNS
    assert sources.keys() == row.keys() - {"device"}
    assert all("table II" in text or "http" in text for text in map(str, sources.values()))
    table_of(DEVICES, [{**row, "sources": json.dumps(sources)}])
    assert device_named(key) == device_named(row.text("name")) == device_of(row)


def test_the_catalogue_has_published_and_current_devices_with_the_rates_of_their_cores() -> None:
    assert list(catalogue())[:15] == PUBLISHED
    assert {sheet_named(key)["vendor"] for key in CURRENT} >= {"Nvidia", "AMD", "Intel", "Apple", "Amazon"}
    assert len(catalogue()) >= 270
    assert len(device_files.measured_devices()) >= 95
    shares = 0
    for key in GPUS:
        row = sheet_named(key)
        operations = row.number("peak_flop_per_s") / (row.integer("cores") * row.number("clock_hz"))
        assert min(abs(operations - 2), abs(operations - 4)) < 0.01, key
        if "peak_fp64_flop_per_s" in row:
            share = row.number("peak_flop_per_s") / row.number("peak_fp64_flop_per_s")
            assert min(abs(share / each - 1) for each in (1, 2, 3, 4, 5, 8, 12, 16, 24, 32, 64)) < 0.02, key
            shares += 1
    assert shares > 100


@pytest.mark.parametrize("key", device_files.measured_devices())
def test_what_was_measured_says_where_from_and_is_what_the_sheet_allows(key: str) -> None:
    device = device_named(key)
    for name, each in device_files.measured_devices()[key].items():
        assert name in device_files.QUANTITIES
        assert each.value == device.measured[name]
        assert each.low is None or each.high is None or each.low <= each.value <= each.high
        assert any(f"{program} " in each.source for program in ("clpeak", "OpenCL-Benchmark", "HIP"))
        assert all(word in each.source for word in ("https://", ": "))
        assert re.search("mean of" if name == "launch_s" else "of each.* the best of", each.statistic)
    facts = reached(device)
    assert facts.get("read", 0.5) <= 1.02
    # Clocks go a quarter above those of sheets.
    assert facts.get("fp32", 0.5) <= 1.3
    assert facts.get("int32", 0.5) <= 1.3


def test_what_is_expected_is_the_devices_own_or_its_nearest_siblings() -> None:
    def known(key: str, fact: str = "read", **changes: Any) -> Any:
        return expected(replace(device_named(key), **changes), fact)

    own, sibling = known("rtx2080"), known("rtx2070")
    assert (own.of, own.deviation, own.value) == ("device", 0.0, pytest.approx(400.8 / 448))
    assert (sibling.of, sibling.count) == ("architecture", 6)
    assert 0.82 <= sibling.value <= 0.92
    assert 0 < sibling.deviation < 0.1
    far = known("rtx4090", "int32")
    assert far.of == "vendor"
    assert far.deviation > sibling.deviation
    # What came later is no sibling of others, whose intervals were checked without it.
    assert "int32_op_per_s" in device_named("rx7700xt").measured
    assert known("rx7900xtx", "int32").of == "vendor"
    # A device is no sibling of itself.
    assert known("rtx2080", measured={}).count == 5


def test_spelling_does_not_matter_and_a_name_of_two_or_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"as 2 are called: titanx \(.*Pascal\), gtx-titanx \(.*Maxwell\)"):
        device_named("Titan X")
    assert device_named("titanx").series == "Pascal"
    assert device_named("GTX Titan X").series == "Maxwell"
    assert device_named("K20m") == device_named("k20c")
    assert device_named("i5-3550").key == "i5-3350"
    assert crosscast.device_named("geforce rtx-4090") == device_named("rtx4090")
    assert "found 'h100', near to which are h100-pcie, h100-sxm" in refusal(device_named, "h100")
    told = refusal(device_named, "abacus")
    assert told.endswith("(crosscast devices --catalogue lists it), found 'abacus'")


@refusals("name value reason")
def test_a_number_in_another_unit_is_refused_with_what_is_usual(name: str, value: float, reason: str) -> None:
    sound = device_named("rtx4090")
    wrong = replace(sound, numbers={**sound.numbers, name: value})
    with pytest.raises(InputError, match=rf"^next\.toml: {name}: expected ") as caught:
        device_files.check_sheet(wrong, "next.toml")
    assert str(caught.value).endswith(reason)
    low, high = (float(part) for part in str(caught.value.expected).split(",")[0].split()[:3:2])
    assert low <= sound.numbers[name] <= high
    few = replace(sound, numbers={"clock_hz": 3e9, "cores": 8, "memory_bytes": 2e10}, measured={})
    assert refusal(device_files.check_sheet, few, "next.toml").endswith(", found 2 (clock_hz, cores)")


DEVICES_COMMAND = Command.of("devices")


def test_the_command_lists_the_catalogue_in_short_and_says_where_a_number_is_from(capsys: Output) -> None:
    found: list[dict[str, Any]] = DEVICES_COMMAND.answer(capsys, "--catalogue")
    assert found == list(catalogue().values())
    assert len(DEVICES_COMMAND.text(capsys, "--catalogue").splitlines()) < 25
    text = DEVICES_COMMAND.text(capsys, "rtx4090")
    assert "82.58 Tflop/s" in text and "\nboost clock " in text
    assert "\nhighest clock " in DEVICES_COMMAND.text(capsys, "i7-6700k")
    assert "Nothing was measured on it." in text
    assert all(str(source) in text for source in sheet_named("rtx4090").entries("sources").values())
    measured = DEVICES_COMMAND.answer(capsys, "RTX 2080")["measured"]["read_bytes_per_s"]
    assert measured["of_sheet"] == pytest.approx(400.8 / 448)
    assert "results/old/NVIDIA_CUDA/GeForce_RTX_2080.log" in measured["source"]
    assert "89 %" in DEVICES_COMMAND.text(capsys, "rtx2080")
    assert "near to which are rtx4090" in DEVICES_COMMAND.refusal(capsys, "rtx409")


PHIS = {"knl", "xeon-phi-5110p", "xeon-phi-7120p"}


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (["--catalogue", "apple m1"], {"m1", "m1-pro", "m1-max", "m1-ultra"}),
        (["--vendor", "ampere"], {"altra-q80-30", "altra-max-m128-30"}),
        (["--type", "accelerator", "--vendor", "Intel"], PHIS),
        (["--catalogue", "accelerator, Intel"], PHIS),
    ],
)
def test_a_list_is_filtered_by_text_vendor_and_type(words: list[str], keys: set[str], capsys: Output) -> None:
    assert {row["device"] for row in DEVICES_COMMAND.answer(capsys, *words)} == keys
    assert all(key in DEVICES_COMMAND.text(capsys, *words) for key in keys)
    for none in (["--catalogue", "gpu,voodoo"], ["--vendor", "voodoo"]):
        assert "voodoo: expected devices of the catalogue (of Intel, " in DEVICES_COMMAND.refusal(
            capsys, *none
        )


def test_two_devices_are_compared_number_by_number_and_kernel_by_kernel(capsys: Output) -> None:
    found = DEVICES_COMMAND.answer(capsys, "compare", "v100-pcie", "t4")
    bandwidth = found["numbers"]["bandwidth_bytes_per_s"]
    assert bandwidth["ratio"] == pytest.approx(900 / 320)
    assert found["numbers"]["read_bytes_per_s"]["ratio"] == pytest.approx(810.4 / 263.4, rel=1e-3)
    ratios = [each["ratio"] for each in found["kernels"]]
    assert len(ratios) > 100
    assert ratios == sorted(ratios, reverse=True)
    text = DEVICES_COMMAND.text(capsys, "compare", "v100-pcie", "t4")
    assert f"v100-pcie is faster at {sum(ratio > 1 for ratio in ratios)}" in text
    assert "\nboost clock " in text
    # The speed of each is over that of the other: what is best is not "faster by 0.8".
    first, last = found["kernels"][0], found["kernels"][-1]
    for best, ratio, chance in (
        ("v100-pcie", first["ratio"], first["probability"]),
        ("t4", 1 / last["ratio"], 1 - last["probability"]),
    ):
        table = text.partition(f"Where {best} is best")[2].splitlines()
        assert re.search(rf"speed of {best} +chance$", table[1])
        assert re.search(rf" {ratio:.2f}× +{probability(chance)}$", table[2])
    assert "expected two devices, found t4 twice" in DEVICES_COMMAND.refusal(capsys, "compare", "t4", "T4")


def test_a_device_with_more_of_everything_is_forecast_to_be_faster() -> None:
    comparison = compare_devices("a100-sxm-80gb", "gtx1080")
    assert not any(comparison.forecast.warnings)
    faster = [each.ratio > 1 for each in comparison.kernels]
    assert sum(faster) > 0.95 * len(faster)
    for each in comparison.kernels:
        assert each.probability is not None
        assert (each.probability > 0.5) == (each.ratio > 1)


NUMBERS = ("clock_hz", "compute_units", "cores", "peak_flop_per_s", "bandwidth_bytes_per_s", "l2_bytes")


@pytest.mark.parametrize(
    ("name", "error"), list(zip(NUMBERS, (0.15, 0.01, 0.01, 0.01, 0.25, 0.4), strict=True))
)
def test_siblings_have_about_the_number_that_a_sheet_lacks(name: str, error: float) -> None:
    errors, inside = [], []
    for device in map(device_named, catalogue()):
        if not device.numbers.get(name):
            continue
        numbers = {each: value for each, value in device.numbers.items() if each != name}
        sheet = filled(replace(device, numbers=numbers, measured={}))
        if name in sheet.taken:
            off = abs(math.log(sheet.device.numbers[name] / device.numbers[name]))
            errors.append(off)
            inside.append(off <= 1.645 * sheet.taken[name].deviation)
    assert len(errors) > 100
    assert sorted(errors)[len(errors) // 2] <= error
    assert 0.85 <= sum(inside) / len(inside) <= 0.96


@pytest.mark.parametrize("fact", FACTS)
def test_nine_of_ten_facts_are_in_the_interval_that_siblings_give(fact: str) -> None:
    inside = []
    for device in _siblings():
        if (value := reached(device).get(fact)) is not None:
            known = expected(replace(device, measured={}), fact)
            assert known is not None
            inside.append(abs(math.log(value / known.value)) <= 1.645 * known.deviation)
    assert len(inside) > 50
    assert 0.84 <= sum(inside) / len(inside) <= 0.97
    # Something is expected of every device.
    for key in catalogue():
        known = expected(device_named(key), fact)
        assert known is not None and known.value > 0, key


def test_what_was_measured_says_more_than_siblings_of_their_sheets() -> None:
    device, lacking = device_named("rtx2080"), ("bandwidth_bytes_per_s", "peak_flop_per_s")
    numbers = {name: value for name, value in device.numbers.items() if name not in lacking}
    sheet = filled(replace(device, key="next", numbers=numbers))
    for name in lacking:
        assert sheet.device.numbers[name] == pytest.approx(device.numbers[name], rel=0.1)
    assert filled(device).taken.keys() <= {"l1_bytes", "l2_bytes"}
    unknown = device_named("uhd-graphics-620")
    assert "bandwidth_bytes_per_s" not in unknown.numbers
    ((bandwidth,),) = sheets_of([unknown]).bandwidth
    assert unknown.measured["read_bytes_per_s"] <= bandwidth <= 2 * unknown.measured["read_bytes_per_s"]
    # Runtimes reach little of some CPUs, and never more than there is.
    slow, fast = (
        filled(replace(MINE, measured={"read_bytes_per_s": rate})).device.numbers["bandwidth_bytes_per_s"]
        for rate in (1e9, 1e13)
    )
    assert (slow > 4e9, fast) == (True, 1e13)


def of_series(series: str) -> list[Device]:
    return [device_named(key) for key, row in catalogue().items() if row["series"] == series]


@pytest.mark.parametrize("series", _UNITS)
def test_every_number_of_an_architecture_has_its_source_and_is_that_of_a_device(series: str) -> None:
    sources = unit_sources(series)
    assert sources.keys() == set(Unit._fields)
    assert all(
        "http" in text or text.startswith(("data sheets", "the catalogue's", "chosen"))
        for text in sources.values()
    )
    assert sources["l2_clock"].startswith(("chosen", "te42kyfo", "Intel"))
    assert series.startswith("RDNA") == any("RDNA Architecture" in text for text in sources.values())
    devices, unit = of_series(series), _UNITS[series]
    assert devices
    assert unit.width in (32, 64)
    # Every sub-group that fits can have 16 registers for each work-item.
    assert unit.registers >= 16 * unit.width * unit.sub_groups
    assert unit.groups <= unit.sub_groups
    shares = {
        device.numbers["peak_fp64_flop_per_s"]
        / min(device.numbers["peak_flop_per_s"], 2 * device.numbers["cores"] * device.numbers["clock_hz"])
        for device in devices
        if {"peak_fp64_flop_per_s", "peak_flop_per_s", "cores"} <= device.numbers.keys()
    }
    assert not shares or any(each == pytest.approx(unit.fp64, rel=0.01) for each in shares)
    assert double_share(next(each for each in devices if known_unit(each) is unit)) == unit.fp64
    like = of_series("GCN 3") if series == "Kaveri" else devices
    known = {device.numbers["l2_bytes"] for device in like if "l2_bytes" in device.numbers}
    assert not known or unit.l2_bytes in known


@pytest.mark.parametrize(("copy", "writing"), [(80.0, 200 / 3), (300.0, 600.0), (0.0, math.nan)])
def test_writing_takes_what_copies_take_beyond_reading(copy: float, writing: float) -> None:
    device = replace(MINE, measured={"read_bytes_per_s": 100.0, "copy_bytes_per_s": copy})
    read = 100.0 if copy else math.nan
    assert streams(device) == pytest.approx((read, writing), nan_ok=True)


def test_a_chip_is_not_taken_for_one_whose_name_ends_alike() -> None:
    small = Device(key="rtx-a1000", name="RTX A1000", vendor="Nvidia", type="gpu", series="Ampere")
    keys = ("a100-sxm4-80gb", "rtx-a3000", "a30", "b200", "b300")
    others = [replace(small, key=key) for key in keys]
    assert [double_share(each) for each in (small, *others)] == [1 / 64, 1 / 2, 1 / 64, 1 / 2, 1 / 2, 1 / 64]
    as_drivers_call_it = replace(small, key="mine", name="NVIDIA A100-SXM4-80GB")
    assert double_share(as_drivers_call_it) == 1 / 2


MINE = Device(
    "mine",
    "A processor",
    "AMD",
    "cpu",
    "Zen 4",
    {"compute_units": 2.0, "clock_hz": 3.1e9, "l3_bytes": 33554432.0},
    {"read_bytes_per_s": 1.2e10, "fp32_flop_per_s": 9.1e10, "launch_s": 2e-5},
)
FEW = """
device = "next"
type = "gpu"
vendor = "Nvidia"
compute_units = 46
clock_hz = 1.7e9
cores = 2944
tdp_w = 215
"""


def test_a_calibrated_device_is_known_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert device_files.own_devices() == []
    path = tmp_path / "crosscast" / "devices" / "mine.toml"
    path.parent.mkdir(parents=True)
    facts: dict[str, Any] = {
        "conditions": {"load": 1.5, "notes": ["loaded"]},
        "working_sets": {"bytes": [16384.0, 32768.0]},
    }
    device_files.write_device(path, MINE, how={"launch_s": 'the "median" of 100'}, **facts)
    assert device_files.read_device(path) == device_named("mine") == MINE
    assert known_of("mine").measured["launch_s"].statistic == 'the "median" of 100'
    assert "near to which are mine" in refusal(device_named, "min")


@refusals("line reason")
def test_a_wrong_file_is_refused(line: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "next.toml"
    path.write_text(FEW + line)
    with pytest.raises(InputError, match=reason) as caught:
        device_files.read_device(path)
    assert str(caught.value).startswith(str(path))
    path.write_bytes(b"\xff\xfe")
    assert "expected UTF-8" in refusal(device_files.read_device, path)
    assert "cannot read the description of a device" in refusal(
        device_files.read_device, tmp_path / "none.toml"
    )
