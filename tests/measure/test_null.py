"""The sensor that measures nothing."""

from crosscast.measure.energy import NullSensor, Sensor


def test_it_is_a_sensor_that_asks_for_nothing_and_says_nothing() -> None:
    sensor: Sensor = NullSensor()
    sensor.start()
    assert sensor.samples_so_far() >= sensor.samples_wanted
    assert len(sensor.stop()) == len(sensor.domains) == 0
