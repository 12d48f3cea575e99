"""What Nsight Compute counted, in both forms of its tables."""

from pathlib import Path

import pytest
from made_counter_profiles import ncu_long, ncu_wide

from crosscast.data.counters.ncu import read_ncu
from crosscast.errors import InputError

UNITS = {
    "gpu__time_duration.sum": "usecond",
    "smsp__inst_executed.sum": "inst",
    "dram__bytes_read.sum": "Kbyte",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "%",
    "launch__func_cache_config": "",
}
FIRST = dict(zip(UNITS, ("10.0", "1,000", "2.5", "80", "CachePreferNone"), strict=True))
SECOND = dict(zip(UNITS, ("30.0", "3,000", "1.5", "40", "CachePreferNone"), strict=True))
TIME, INST, READ, THROUGHPUT, _ = UNITS


def wide(path: Path, *launches: dict[str, str]) -> Path:
    return ncu_wide(path / "app.csv", UNITS, *launches)


def refusal(path: Path, kernel: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read_ncu(path, kernel)
    return str(caught.value)


def test_amounts_are_added_over_launches_and_shares_are_weighted_by_time(tmp_path: Path) -> None:
    run = read_ncu(wide(tmp_path, FIRST, SECOND))
    assert run.time_s == pytest.approx(40e-6)
    assert run.counters == {
        INST: 4000,
        READ: pytest.approx(4000),
        THROUGHPUT: pytest.approx((0.8 * 10 + 0.4 * 30) / 40),
    }
    assert run.uses_gpu is True


def test_a_kernel_is_taken_alone(tmp_path: Path) -> None:
    run = read_ncu(
        wide(tmp_path, FIRST, SECOND | {"Kernel Name": "scale(float*, int)"}), "scale(float*, int)"
    )
    assert (run.counters[INST], run.kernel) == (3000, "scale(float*, int)")
    assert run.time_s == pytest.approx(30e-6)


def test_a_kernel_without_launches_is_refused(tmp_path: Path) -> None:
    assert "expected launches of fft, found add" in refusal(wide(tmp_path, FIRST), "fft")
    assert "expected launches of kernels, found none" in refusal(wide(tmp_path))


def test_the_long_form_says_the_same(tmp_path: Path) -> None:
    long = [
        (str(number), "add", name, unit, launch[name])
        for number, launch in enumerate((FIRST, SECOND))
        for name, unit in UNITS.items()
    ]
    assert read_ncu(ncu_long(tmp_path / "app.csv", *long)) == read_ncu(wide(tmp_path, FIRST, SECOND))


def test_a_metric_of_two_sections_counts_once_and_rules_are_passed_over(tmp_path: Path) -> None:
    rows = [
        ("0", "add", "Duration", "usecond", "4.00"),
        ("0", "add", "SM Frequency", "cycle/nsecond", "1.5"),
        ("0", "add", "Duration", "usecond", "4.00"),
        ("0", "add", "", "", ""),
        ("1", "add", "Duration", "usecond", "12.00"),
        ("1", "add", "SM Frequency", "cycle/nsecond", "1.1"),
    ]
    run = read_ncu(ncu_long(tmp_path / "app.csv", *rows))
    assert run.time_s == pytest.approx(16e-6)
    assert run.counters == {"SM Frequency": pytest.approx(1.2e9)}


def test_without_durations_launches_weigh_the_same_and_there_is_no_time(tmp_path: Path) -> None:
    units = {"lts__t_sector_hit_rate.pct": "%", "smsp__inst_executed.sum": "inst"}
    launches = [dict(zip(units, each, strict=True)) for each in (("90", "1"), ("50", "2"))]
    run = read_ncu(ncu_wide(tmp_path / "app.csv", units, *launches))
    assert run.counters == {"lts__t_sector_hit_rate.pct": pytest.approx(0.7), "smsp__inst_executed.sum": 3}
    assert run.time_s is None


def test_an_amount_that_a_launch_lacks_has_no_sum(tmp_path: Path) -> None:
    assert INST not in read_ncu(wide(tmp_path, FIRST, SECOND | {INST: "n/a"})).counters


def test_a_counter_that_is_no_number_is_refused(tmp_path: Path) -> None:
    message = refusal(wide(tmp_path, FIRST, SECOND | {INST: "many"}))
    assert "app.csv, line 5: smsp__inst_executed.sum: expected a number, found 'many'" in message


@pytest.mark.parametrize("duration", ["0", "-5"])
def test_a_time_that_is_not_above_0_is_refused(tmp_path: Path, duration: str) -> None:
    assert "took more than 0 seconds, found" in refusal(wide(tmp_path, FIRST | {TIME: duration}))


def test_a_table_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = wide(tmp_path, FIRST, SECOND)
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-8], encoding="utf-8")
    assert "expected CSV, found something else" in refusal(path)
    path.write_text(text[: text.rindex(',"40"')], encoding="utf-8")
    assert "line 5: expected 11 cells, found 9" in refusal(path)


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", '"ID","Name"\n', '"ID","Name"\n"0","x"\n'])
def test_another_table_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "app.csv").write_text(text, encoding="utf-8")
    assert "expected a table of ncu --csv with a column Kernel Name, found none" in refusal(
        tmp_path / "app.csv"
    )
