"""Choosing while a program runs, on a made-up machine whose every power is known."""

import logging
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast.data.configuration import Configuration
from crosscast.decide.policies import ClosedLoopSearch
from crosscast.decide.selector import Selector
from crosscast.errors import InputError
from crosscast.measure.regions import RegionKey, RegionRun, recorder, say_once
from crosscast.measure.regions.recorder import Metering
from crosscast.prediction.configuration import Surfaces
from crosscast.prediction.configuration.choice import select
from crosscast.prediction.configuration.process import ProcessModel
from support.choices import outcome
from support.examples import one_in
from support.measuring import SteadySensor
from support.models import chooser_card, fitted_chooser, kept_chooser
from support.refusals import refusal
from support.surfaces import made_surfaces

SURFACES = made_surfaces()
SPACE = SURFACES.space
SAMPLES = chooser_card().numbers
ROW = 3
KEY = RegionKey("step", ("8",))


@pytest.fixture(autouse=True)
def nothing_said_before() -> None:
    say_once.cache_clear()


class Machine:
    """A kernel of the made-up machine, as a program that asks a selector before each run."""

    def __init__(
        self, selector: Selector, key: RegionKey = KEY, row: int = ROW, surfaces: Surfaces = SURFACES
    ) -> None:
        self.selector, self.key, self.row, self.surfaces = selector, key, row, surfaces
        self.powers = surfaces.power_w[row].copy()

    def iterate(self, **changed: Any) -> int | None:
        """One iteration; the place of the configuration it ran at."""
        configuration = self.selector.configuration(self.key)
        if configuration is None:
            self.selector.observed(self.key, RegionRun(self.key, None, 0.0, 1.0))
            return None
        number = SPACE.number_of(configuration)
        domains = {name: float(values[self.row, number]) for name, values in self.surfaces.domains.items()}
        scale = float(self.powers[number] / sum(domains.values()))
        domains = {name: watts * scale for name, watts in domains.items()}
        time_s = float(self.surfaces.time_s[self.row, number])
        energy = {name: watts * time_s for name, watts in domains.items()}
        run = RegionRun(
            self.key, configuration, 0.0, time_s, time_s, energy, domains, float(self.powers[number])
        )
        self.selector.observed(self.key, run._replace(**changed))
        return number


def expected(cap: float, row: int = ROW) -> int | None:
    return select(fitted_chooser()[0].forecast(SURFACES.observed(row, SAMPLES)), cap)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return kept_chooser(tmp_path / "capmodel")


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_another_cap_is_obeyed_at_once_without_new_runs(model: Path) -> None:
    selector = crosscast.Selector(model, 320.0)
    machine = Machine(selector)
    machine.iterate()
    assert selector.choice(KEY) is None
    for _ in range(2):
        machine.iterate()
    for cap in (200.0, 250.0, 320.0):
        selector.power_cap = cap
        assert selector.power_cap == cap
        chosen = SPACE.configurations[expected(cap) or 0]
        choice = selector.choice(KEY)
        assert choice is not None and choice.recommended is not None
        assert selector.configuration(KEY) == choice.recommended.configuration == chosen
    with pytest.raises(InputError, match="power_cap: expected watts above 0, found 0"):
        selector.power_cap = 0.0
    assert selector.power_cap == 320.0


def test_a_choice_that_is_measured_above_the_cap_is_left(model: Path) -> None:
    cap = 250.0
    machine, first = Machine(Selector(model, cap)), expected(cap)
    assert first is not None and first not in SAMPLES
    machine.powers[first] = cap * 1.1
    assert [machine.iterate() for _ in range(3)] == [*SAMPLES, first]
    assert machine.iterate() not in (None, first)
    # What was measured stays known.
    machine.selector.power_cap = cap * 1.2
    choice = machine.selector.choice(KEY)
    assert choice is not None
    told = {each.configuration: each.power_w for each in choice.frontier}
    assert told.get(SPACE.configurations[first], cap * 1.1) == pytest.approx(cap * 1.1)


def test_limiting_ends_under_the_cap_or_at_the_default(model: Path) -> None:
    for row in range(len(SURFACES.kernels)):
        for cap in np.unique(SURFACES.power_w[row]):
            machine = Machine(Selector(model, float(cap)), row=row)
            numbers = [machine.iterate() for _ in range(3 + len(SPACE))]
            last = numbers[-1]
            assert last is None or machine.powers[last] <= cap * (1 + 1e-6)


@pytest.mark.parametrize("row", one_in(2, [0, 1, 6]))
def test_with_a_model_that_is_sure_of_itself_limiting_is_what_evaluations_show(row: int) -> None:
    noisy = made_surfaces(noise=0.05)
    others = noisy.take(~noisy.rows_of([noisy.kernels[row].application]))
    chooser = ClosedLoopSearch().fit(others, SAMPLES)
    predictor = ProcessModel().fit(others, SAMPLES)
    everything = np.ones(len(SPACE), np.bool_)
    changed = 0
    for cap in (1.001 * np.unique(noisy.power_w[row])[3:]).tolist():
        walk = chooser.decide(noisy.observed(row, SAMPLES), cap, everything, 8)
        settled = outcome(walk, lambda number: noisy.observed(row, (number,)), 8)
        machine = Machine(Selector(predictor, cap), row=row, surfaces=noisy)
        numbers = [machine.iterate() for _ in range(len(SAMPLES) + 10)]
        assert numbers[: len(SAMPLES)] == list(SAMPLES)
        assert numbers[-1] == settled.number
        changed += settled.changes
    assert changed > 0


def test_a_program_without_a_sensor_is_warned_once(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    selector = Selector(model, 250.0)
    region = crosscast.profiled("step", selector=selector, sensors=Metering([]))
    found = []
    for _ in range(4):
        with region as run:
            found.append(run.configuration)
    assert found[1:] == [None] * 3
    assert len(said(caplog)) == 1
    assert "no configuration can be chosen" in said(caplog)[0]


def test_a_cap_that_nothing_keeps_is_warned_of_once(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    selector = Selector(model, 20.0)
    machine = Machine(selector)
    assert [machine.iterate() for _ in range(5)] == [*SAMPLES, None, None, None]
    assert said(caplog) == [
        "step(8): no configuration is expected to keep to 20 W, so it runs as it does by default"
    ]
    selector.power_cap = 250.0
    assert machine.iterate() == expected(250.0)


def test_what_cannot_be_learned_from_is_passed_over_or_refused(model: Path) -> None:
    selector = Selector(model, 250.0)
    machine = Machine(selector)
    assert machine.iterate(failure="ValueError") == SAMPLES[0]
    # Nor from a run too short to tell its power.
    assert machine.iterate(powers_w={}, power_w=None) == SAMPLES[0]
    selector.observed(KEY, RegionRun(KEY, None, 0.0, 1.0, 1.0, {"cpu": 1.0}, {"cpu": 1.0}, 1.0))
    assert [machine.iterate() for _ in range(3)] == [*SAMPLES, expected(250.0)]
    selector = Selector(model, 250.0)
    elsewhere = Configuration("node", {"cpu_cap_w": 1})
    with pytest.raises(InputError, match="configuration: expected one of the 12 that are known"):
        selector.observed(KEY, RegionRun(KEY, elsewhere, 0.0, 1.0, 1.0, {"cpu": 1.0}, {"cpu": 1.0}, 1.0))


def test_wrong_arguments_are_refused_at_once(model: Path, tmp_path: Path) -> None:
    assert "power_cap: expected watts above 0, found 'abc'" in refusal(Selector, model, "abc")
    assert "objective: expected one of" in refusal(Selector, model, 100.0, objective="speed")
    assert "confidence: expected a probability" in refusal(Selector, model, 100.0, confidence=1.5)
    assert "found no card" in refusal(Selector, tmp_path, 100.0)
    for none in (3, None):
        assert "model: expected the folder of a model that chooses" in refusal(Selector, none, power_cap=1)


class CappedSensor(SteadySensor):
    """The sensor of the made-up machine: draws what the kernel takes under the caps that are set."""

    def __init__(self) -> None:
        super().__init__()
        self.domains = ("cpu", "gpu")
        self.number = len(SPACE) - 1
        self.now_s = 0.0

    def apply(self, configuration: Configuration | None) -> None:
        self.number = len(SPACE) - 1 if configuration is None else SPACE.number_of(configuration)

    def read_j(self) -> tuple[float, ...]:
        return tuple(float(SURFACES.domains[name][ROW, self.number]) * self.now_s for name in self.domains)


def test_a_profiled_program_runs_at_the_samples_and_then_keeps_to_its_cap(
    model: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = CappedSensor()
    # A busy machine would draw no other power than an idle one.
    clock = SimpleNamespace(time=time.time, perf_counter=lambda: sensor.now_s, sleep=time.sleep)
    monkeypatch.setattr(recorder, "time", clock)
    selector = crosscast.Selector(model, power_cap=250.0)
    region = crosscast.profiled(
        "step", selector=selector, apply=sensor.apply, sensors=Metering([sensor]), arguments=(8,)
    )
    numbers = []
    for iteration in range(24):
        if iteration == 12:
            selector.power_cap = 200.0
        with region as run:
            assert run.configuration is not None
            numbers.append(SPACE.number_of(run.configuration))
            run.device_s = float(SURFACES.time_s[ROW, numbers[-1]])
            sensor.now_s += run.device_s
    assert tuple(numbers[:2]) == SAMPLES
    assert SAMPLES[0] not in numbers[3:]
    for last, cap in ((numbers[11], 250.0), (numbers[23], 200.0)):
        assert SURFACES.power_w[ROW, last] <= cap
    assert said(caplog) == []
