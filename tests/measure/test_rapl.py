"""RAPL against a tree of files like the one that Linux shows."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crosscast.errors import EnvironmentFault, SensorFault
from crosscast.measure.energy import RaplSensor

RANGE_UJ = 262_143_328_850


def make_zone(root: Path, zone: str, name: str, energy_uj: int, range_uj: int | None = RANGE_UJ) -> Path:
    folder = root / zone
    folder.mkdir()
    (folder / "name").write_text(f"{name}\n")
    if range_uj is not None:
        (folder / "max_energy_range_uj").write_text(f"{range_uj}\n")
    (folder / "energy_uj").write_text(f"{energy_uj}\n")
    return folder / "energy_uj"


def at(*seconds: float) -> Callable[[], float]:
    """Make a clock that tells these times, one after the other."""
    times: Iterator[float] = iter(seconds)
    return lambda: next(times)


def test_every_package_and_every_part_is_a_domain(tmp_path: Path) -> None:
    make_zone(tmp_path, "intel-rapl:1", "package-1", 5)
    make_zone(tmp_path, "intel-rapl:0", "package-0", 5)
    make_zone(tmp_path, "intel-rapl:0:0", "core", 5)
    make_zone(tmp_path, "intel-rapl:0:1", "dram", 5)
    make_zone(tmp_path, "intel-rapl:10", "psys", 5)
    make_zone(tmp_path, "intel-rapl-mmio:0", "package-0", 5)
    (tmp_path / "intel-rapl").mkdir()
    assert RaplSensor(tmp_path).domains == (
        "package-0",
        "package-0/core",
        "package-0/dram",
        "package-1",
        "psys",
    )


def test_energy_is_the_difference_of_two_readings_in_joules(tmp_path: Path) -> None:
    package = make_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    core = make_zone(tmp_path, "intel-rapl:0:0", "core", 7)
    sensor = RaplSensor(tmp_path, clock=at(100.0, 102.5))
    sensor.start()
    assert sensor.samples_so_far() == sensor.samples_wanted
    package.write_text("91000000\n")
    core.write_text("30000007\n")
    whole, part = sensor.stop()
    assert (whole.domain, part.domain) == ("package-0", "package-0/core")
    assert whole.energy_j == pytest.approx(90)
    assert part.energy_j == pytest.approx(30)
    assert (whole.duration_s, whole.samples, whole.times_s) == (2.5, 2, (0.0, 2.5))


def test_it_may_be_started_again(tmp_path: Path) -> None:
    energy = make_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    sensor = RaplSensor(tmp_path)
    for end_uj in (2_000_000, 5_000_000):
        sensor.start()
        energy.write_text(str(end_uj))
        (reading,) = sensor.stop()
    assert reading.energy_j == pytest.approx(3)
    assert reading.samples == 2


def test_a_counter_that_wraps_around_goes_on(tmp_path: Path) -> None:
    energy = make_zone(tmp_path, "intel-rapl:0", "package-0", RANGE_UJ - 1_000_000)
    sensor = RaplSensor(tmp_path, clock=at(0.0, 1.0))
    sensor.start()
    energy.write_text("2000000")
    assert sensor.stop()[0].energy_j == pytest.approx(3)


def test_no_wrap_around_is_missed_while_it_watches(tmp_path: Path) -> None:
    # 30 J of range, and 25 J between any two looks: three times round before it ends.
    energy = make_zone(tmp_path, "intel-rapl:0", "package-0", 0, range_uj=30_000_000)
    sensor = RaplSensor(tmp_path, interval_s=0.005)
    sensor.start()
    for step in range(1, 5):
        seen = sensor.samples_so_far()
        energy.with_name("new").write_text(str(step * 25_000_000 % 30_000_000))
        energy.with_name("new").replace(energy)
        while sensor.samples_so_far() < seen + 2:
            pass
    (reading,) = sensor.stop()
    assert reading.energy_j == pytest.approx(100)
    assert list(reading.energies_j) == sorted(reading.energies_j)


@pytest.mark.parametrize(
    ("range_uj", "interval_s"), [(RANGE_UJ, 10.0), (65_532_610_987, 10.0), (4_000_000_000, 2.0), (None, 10.0)]
)
def test_the_interval_is_half_of_the_range_at_a_kilowatt(
    tmp_path: Path, range_uj: int | None, interval_s: float
) -> None:
    make_zone(tmp_path, "intel-rapl:0", "package-0", 0, range_uj)
    assert RaplSensor(tmp_path).interval_s == pytest.approx(interval_s)


@pytest.mark.parametrize(("range_uj", "before"), [(RANGE_UJ, 50_000_000), (None, 50_000_000)])
def test_a_counter_that_was_set_back_is_a_fault(tmp_path: Path, range_uj: int | None, before: int) -> None:
    energy = make_zone(tmp_path, "intel-rapl:0", "package-0", before, range_uj)
    sensor = RaplSensor(tmp_path, clock=at(0.0, 1.0))
    sensor.start()
    energy.write_text("0")
    with pytest.raises(SensorFault, match="went back from 50000000 to 0, which is no wrap-around"):
        sensor.stop()


def test_counters_that_stand_still_are_a_fault(tmp_path: Path) -> None:
    make_zone(tmp_path, "intel-rapl:0", "package-0", 12345)
    sensor = RaplSensor(tmp_path, clock=at(0.0, 2.0))
    sensor.start()
    with pytest.raises(SensorFault, match="stood still for 2 s"):
        sensor.stop()


def test_a_file_that_goes_away_is_a_fault(tmp_path: Path) -> None:
    energy = make_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    sensor = RaplSensor(tmp_path)
    sensor.start()
    energy.unlink()
    with pytest.raises(SensorFault, match=r"energy_uj failed: No such file"):
        sensor.stop()


def test_a_file_that_goes_away_meanwhile_stops_the_waiting(tmp_path: Path) -> None:
    energy = make_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    sensor = RaplSensor(tmp_path, interval_s=0.005)
    sensor.start()
    energy.write_text("not a number")
    with pytest.raises(SensorFault, match="invalid literal"):
        while sensor.samples_so_far() < 1_000_000:
            pass
    with pytest.raises(SensorFault, match="invalid literal"):
        sensor.stop()


def test_a_machine_without_counters_says_so(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"shows no energy counters \(no intel-rapl:\* in "):
        RaplSensor(tmp_path / "powercap")


def test_counters_for_root_only_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    deny(monkeypatch, "intel-rapl:0")
    with pytest.raises(EnvironmentFault, match="energy_uj may be read by root only"):
        RaplSensor(tmp_path)


def test_a_zone_that_may_not_be_read_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    make_zone(tmp_path, "intel-rapl:0:0", "core", 0)
    deny(monkeypatch, "intel-rapl:0:0")
    assert RaplSensor(tmp_path).domains == ("package-0",)


def deny(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    """Refuse to read a counter, as Linux does to others than root; the tests may run as root."""
    read_text = Path.read_text

    def refuse(file: Path) -> str:
        if file.name == "energy_uj" and file.parent.name == zone:
            raise PermissionError(13, "Permission denied")
        return read_text(file)

    monkeypatch.setattr(Path, "read_text", refuse)
