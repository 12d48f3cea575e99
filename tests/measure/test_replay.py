"""The replay sensor, and recordings good and bad."""

from pathlib import Path

import pytest

from crosscast.errors import InputError, SensorFault
from crosscast.measure.energy import NullSensor, Reading, ReplaySensor, record

HEADER = "domain,time_s,energy_j\n"


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def write(folder: Path, text: str) -> Path:
    path = folder / "recording.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_it_tells_the_energy_at_the_time_between_two_samples(tmp_path: Path) -> None:
    clock = Clock()
    path = write(tmp_path, HEADER + "gpu,50,7\nhost,50,0\ngpu,51,17\ngpu,52,37\nhost,60,5\n")
    sensor = ReplaySensor(path, clock)
    assert sensor.domains == ("gpu", "host")
    sensor.start()
    clock.now += 1.5
    gpu, host = sensor.stop()
    assert gpu.energy_j == pytest.approx(10 + 20 / 2)
    assert host.energy_j == pytest.approx(5 * 1.5 / 10)
    assert (gpu.times_s, gpu.samples, host.samples) == ((0.0, 1.0, 1.5), 3, 2)
    assert gpu.duration_s == 1.5


def test_each_start_begins_at_the_beginning(tmp_path: Path) -> None:
    clock = Clock()
    sensor = ReplaySensor(write(tmp_path, HEADER + "gpu,0,0\ngpu,1,1\ngpu,2,5\n"), clock)
    for _ in range(2):
        sensor.start()
        clock.now += 1.0
        assert sensor.stop()[0].energy_j == pytest.approx(1)


def test_samples_come_as_the_recording_goes_on(tmp_path: Path) -> None:
    clock = Clock()
    rows = [f"gpu,{second},{second * 9}\n" for second in range(100)]
    sensor = ReplaySensor(write(tmp_path, HEADER + "".join(rows)), clock)
    sensor.start()
    counts = []
    for _ in range(20):
        counts.append(sensor.samples_so_far())
        clock.now += 1.0
    assert counts == list(range(1, 21))
    assert sensor.samples_wanted == 20


def test_a_short_recording_wants_no_more_samples_than_it_has(tmp_path: Path) -> None:
    sensor = ReplaySensor(write(tmp_path, HEADER + "cpu,0,0\ncpu,3600,36000\n"), Clock())
    sensor.start()
    assert sensor.samples_so_far() >= sensor.samples_wanted
    assert sensor.stop()[0].samples == 2


def test_a_recording_that_ends_is_a_sensor_that_goes_away(tmp_path: Path) -> None:
    clock = Clock()
    sensor = ReplaySensor(write(tmp_path, HEADER + "cpu,0,0\ncpu,3,1\n"), clock)
    sensor.start()
    clock.now += 3.5
    with pytest.raises(SensorFault, match="ends after 3 s"):
        sensor.samples_so_far()
    with pytest.raises(SensorFault, match="ends after 3 s"):
        sensor.stop()


def test_what_is_recorded_replays_the_same(tmp_path: Path) -> None:
    clock = Clock()
    first = ReplaySensor(write(tmp_path, HEADER + "gpu,0,0.1\ngpu,0.01,0.4\ngpu,9,30.7\n"))
    record(first, 0.02, tmp_path / "copy.csv")
    second = ReplaySensor(tmp_path / "copy.csv", clock)
    second.start()
    clock.now += 0.01
    (reading,) = second.stop()
    assert reading.domain == "gpu"
    assert reading.energy_j == pytest.approx(0.3)


def test_power_is_recorded_as_energy(tmp_path: Path) -> None:
    class Steady(NullSensor):
        def stop(self) -> tuple[Reading, ...]:
            return (Reading("gpu", 3, (0.0, 1.0, 3.0), (10.0, 20.0, 20.0), "W"),)

    record(Steady(), 0, tmp_path / "power.csv")
    assert (tmp_path / "power.csv").read_text() == HEADER + "gpu,0.0,0.0\ngpu,1.0,15.0\ngpu,3.0,55.0\n"


def test_a_sensor_that_measures_nothing_cannot_be_recorded(tmp_path: Path) -> None:
    with pytest.raises(SensorFault, match="sensor none measures nothing"):
        record(NullSensor(), 0, tmp_path / "nothing.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the first line must be domain,time_s,energy_j, found ''"),
        ("time_s,energy_j\n0,0\n", "the first line must be domain,time_s,energy_j, found 'time_s,energy_j'"),
        (HEADER, "the recording holds no samples"),
        (HEADER + "cpu,0,0\n", "domain cpu needs two samples or more, found one"),
        (HEADER + "cpu,0\n", r"line 2: a row must hold domain,time_s,energy_j, found 2 fields"),
        (HEADER + ",0,0\n", "line 2: domain must not be empty"),
        (HEADER + "cpu,now,0\n", "line 2: time_s must be a finite number, found 'now'"),
        (HEADER + "cpu,0,nan\n", "line 2: energy_j must be a finite number, found 'nan'"),
        (HEADER + "cpu,0,0\ncpu,inf,1\n", "line 3: time_s must be a finite number, found 'inf'"),
        (HEADER + "cpu,1,0\ncpu,1,1\n", "line 3: time_s of cpu must rise, found 1.0 after 1.0"),
        (HEADER + "cpu,0,5\ncpu,1,4\n", "line 3: energy_j of cpu must not fall, found 4.0 after 5.0"),
        (HEADER + 'cpu,0,"5\n', "must be a CSV file in UTF-8"),
    ],
)
def test_a_bad_recording_is_refused_in_one_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        ReplaySensor(write(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path / "recording.csv"))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the recording: No such file"):
        ReplaySensor(tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="must be a CSV file in UTF-8"):
        ReplaySensor(tmp_path / "bytes.csv")
