"""A sensor that replays a recording, for tests and for machines without sensors."""

from __future__ import annotations

import csv
import math
import time
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from pathlib import Path

from crosscast.errors import InputError, SensorFault
from crosscast.measure.sensors.sampler import Clock
from crosscast.measure.sensors.sensor import Reading, Sensor
from crosscast.tables.whole_file import whole_file

__all__ = ["ReplaySensor", "record"]

_HEADER = ["domain", "time_s", "energy_j"]
_MOST_SAMPLES_WANTED = 20


@dataclass
class _Track:
    """Samples of one domain: times in seconds and energies in joules, both since the first."""

    times_s: list[float]
    energies_j: list[float]

    def energy_at(self, time_s: float) -> float:
        """Energy at a time inside the recording, on the straight line between two samples."""
        i = min(bisect_right(self.times_s, time_s), len(self.times_s) - 1)
        (t0, t1), (e0, e1) = self.times_s[i - 1 : i + 1], self.energies_j[i - 1 : i + 1]
        return e0 + (e1 - e0) * (time_s - t0) / (t1 - t0)


def _number(text: str, column: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{place}: {column} must be a finite number, found {text!r}")
    return value


def _extend(tracks: dict[str, _Track], row: list[str], place: str) -> None:
    if len(row) != len(_HEADER):
        raise InputError(f"{place}: a row must hold {','.join(_HEADER)}, found {len(row)} fields")
    domain, time_s, energy_j = row[0], _number(row[1], "time_s", place), _number(row[2], "energy_j", place)
    if not domain:
        raise InputError(f"{place}: domain must not be empty")
    track = tracks.setdefault(domain, _Track([], []))
    if track.times_s and time_s <= track.times_s[-1]:
        raise InputError(f"{place}: time_s of {domain} must rise, found {time_s} after {track.times_s[-1]}")
    if track.times_s and energy_j < track.energies_j[-1]:
        raise InputError(
            f"{place}: energy_j of {domain} must not fall, found {energy_j} after {track.energies_j[-1]}"
        )
    track.times_s.append(time_s)
    track.energies_j.append(energy_j)


def _load(path: Path) -> dict[str, _Track]:
    """Read a recording.

    Raises
    ------
    InputError
        If the file cannot be read or is not a recording; names the line.
    """
    tracks: dict[str, _Track] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file, strict=True)
            if (header := next(rows, [])) != _HEADER:
                raise InputError(
                    f"{path}: the first line must be {','.join(_HEADER)}, found {','.join(header)[:80]!r}"
                )
            for row in rows:
                _extend(tracks, row, f"{path}, line {rows.line_num}")
    except OSError as error:
        raise InputError(f"{path}: cannot read the recording: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: must be a CSV file in UTF-8: {error}") from error
    if not tracks:
        raise InputError(f"{path}: the recording holds no samples")
    for domain, track in tracks.items():
        if len(track.times_s) < 2:
            raise InputError(f"{path}: domain {domain} needs two samples or more, found one")
    return {domain: _from_zero(track) for domain, track in tracks.items()}


def _from_zero(track: _Track) -> _Track:
    time_s, energy_j = track.times_s[0], track.energies_j[0]
    return _Track([t - time_s for t in track.times_s], [e - energy_j for e in track.energies_j])


class ReplaySensor:
    """Tells what a recording tells; each `start` begins at the beginning of the recording.

    Parameters
    ----------
    path
        CSV file with the columns ``domain``, ``time_s`` (rising in each domain) and ``energy_j``
        (cumulative: never falling). Both may start at any value.
    clock
        Tells how far the replay is.

    Raises
    ------
    InputError
        If the file cannot be read or is not a recording.
    """

    name = "replay"

    def __init__(self, path: Path, clock: Clock = time.monotonic) -> None:
        self._path = path
        self._tracks = _load(path)
        self._clock = clock
        self._start_s: float | None = None
        self._length_s = min(track.times_s[-1] for track in self._tracks.values())
        self.domains = tuple(self._tracks)
        fewest = min(len(track.times_s) for track in self._tracks.values())
        self.samples_wanted = min(_MOST_SAMPLES_WANTED, fewest - 1)

    def start(self) -> None:
        """Begin at the beginning of the recording."""
        self._start_s = self._clock()

    def samples_so_far(self) -> int:
        """Samples of the recording since its start, of the domain that has fewest.

        Raises
        ------
        SensorFault
            If the recording has ended.
        """
        now_s = self._now_s()
        return min(bisect_right(track.times_s, now_s) for track in self._tracks.values())

    def read_j(self) -> tuple[float, ...]:
        """Energy of each domain since `start`, in joules.

        Raises
        ------
        SensorFault
            If the recording has ended.
        """
        now_s = self._now_s()
        return tuple(track.energy_at(now_s) for track in self._tracks.values())

    def stop(self) -> tuple[Reading, ...]:
        """Tell the energy since `start`, on the straight line between two samples.

        Raises
        ------
        SensorFault
            If the recording has ended.
        """
        now_s = self._now_s()
        return tuple(self._reading(domain, track, now_s) for domain, track in self._tracks.items())

    def _now_s(self) -> float:
        if self._start_s is None:
            raise SensorFault("replay: the sensor was asked before it was started")
        now_s = self._clock() - self._start_s
        if now_s > self._length_s:
            raise SensorFault(f"replay: {self._path} ends after {self._length_s:.3g} s")
        return now_s

    def _reading(self, domain: str, track: _Track, now_s: float) -> Reading:
        passed = max(1, bisect_left(track.times_s, now_s))
        times_s = (*track.times_s[:passed], now_s)
        energies_j = (*track.energies_j[:passed], track.energy_at(now_s))
        return Reading(domain, len(times_s), times_s, energies_j, "J")


def record(sensor: Sensor, seconds: float, path: Path) -> None:
    """Watch for a while, and write what the sensor says as a recording.

    Parameters
    ----------
    sensor
        Sensor to record. `RaplSensor` takes an interval, for recordings finer than its own.
    seconds
        How long to watch.
    path
        File to write, CSV.

    Raises
    ------
    SensorFault
        If the sensor went away, or measures nothing.
    """
    sensor.start()
    time.sleep(seconds)
    readings = sensor.stop()
    if not readings:
        raise SensorFault(f"sensor {sensor.name} measures nothing that could be recorded")
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(_HEADER)
        for reading in readings:
            samples = zip(reading.times_s, reading.energies_j, strict=True)
            rows.writerows((reading.domain, *sample) for sample in samples)
