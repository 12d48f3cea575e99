"""Reading several meters together."""

import logging
import os
from pathlib import Path

import pytest
from fresh_process import begin_anew
from made_meters import SteadyMeter

from crosscast.errors import InputError
from crosscast.measure.regions.history import Metering, metering_of

# Libraries have threads of their own, of which Python warns from 3.12 on.
FORKS = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture(autouse=True)
def own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    begin_anew(monkeypatch)


def test_a_meter_that_fails_is_said_once_and_not_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    good, bad = SteadyMeter(1.0), SteadyMeter(2.0, 3.0)
    bad.domains = ("gpu-0", "gpu-1")
    metering = Metering([bad, good])
    first = metering.read()
    bad.fails = True
    with caplog.at_level(logging.WARNING, "crosscast"):
        for _ in range(3):
            found = metering.read()
    assert [found[0] is None, first[0] is None] == [True, False]
    assert metering.by_domain(found).keys() == {"package-0"}
    assert (bad.reads, good.reads) == (2, 4)
    assert [record.getMessage() for record in caplog.records] == [
        "regions have no energy of gpu-0, gpu-1 from now on: steady: the sensor was unplugged"
    ]


def test_meters_of_a_name_are_opened_once(tmp_path: Path) -> None:
    path = tmp_path / "energy.csv"
    path.write_text("domain,time_s,energy_j\ngpu,0,0\ngpu,100,100\n")
    metering = metering_of(f"replay:{path}")
    assert metering_of(f"replay:{path}") is metering
    assert metering_of(metering) is metering
    assert metering.domains == ("gpu",)


@FORKS
def test_a_forked_process_opens_its_own() -> None:
    metering = metering_of("none")
    child = os.fork()
    if child == 0:
        os._exit(1 if metering_of("none") is metering else 0)
    assert os.waitpid(child, 0)[1] == 0


def test_a_name_that_is_none_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(InputError, match="found 'watts'"):
            metering_of("watts")
