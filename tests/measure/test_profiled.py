"""Regions as programs write them."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast.data.configuration import Configuration
from crosscast.errors import InputError
from crosscast.measure.regions import recorder as applying
from crosscast.measure.regions.key import RegionKey, RegionRun
from crosscast.measure.regions.metering import Metering
from crosscast.measure.regions.recorder import History
from support.measuring import FORKS, SteadyMeter

SLOW, FAST = Configuration("node", {"core_clock_hz": 1e9}), Configuration("node", {"core_clock_hz": 2e9})


class ListChooser:
    """Chooses what a list says, and notes what it is told."""

    def __init__(self, *choices: Configuration | None) -> None:
        self.choices = list(choices)
        self.asked: list[RegionKey] = []
        self.told: list[RegionRun] = []

    def configuration(self, key: RegionKey) -> Configuration | None:
        self.asked.append(key)
        return self.choices.pop(0)

    def observed(self, key: RegionKey, run: RegionRun) -> None:
        assert key == run.key
        self.told.append(run)


pytestmark = pytest.mark.usefixtures("own_process")


def test_a_block_is_recorded_with_its_time_and_energy() -> None:
    times = iter([10.0, 12.0])
    meter = SteadyMeter(30.0, 5.0, clock=lambda: next(times))
    with crosscast.profiled("stencil", arguments=(np.zeros((4, 4)), 64), sensors=meter) as run:
        assert run.recorded is None
    assert run.key.name == "stencil"
    assert run.key.arguments == ("float64[4x4]", "64")
    recorded = run.recorded
    assert recorded is not None
    assert run.history.runs(run.key) == (recorded,)
    assert 0 < recorded.duration_s < 10
    assert recorded.energy_j == {"package-0": 60.0, "package-1": 10.0}
    assert recorded.metered_s is not None
    assert recorded.metered_s >= recorded.duration_s
    assert recorded.power_w == pytest.approx(70 / recorded.metered_s)
    assert recorded.powers_w["package-0"] == pytest.approx(60 / recorded.metered_s)
    assert recorded.failure is None


def test_without_sensors_there_is_no_energy() -> None:
    with crosscast.profiled("a", sensors="none") as run:
        pass
    assert run.recorded is not None
    assert (run.recorded.metered_s, run.recorded.power_w, dict(run.recorded.energy_j)) == (None, None, {})


def enter_from_here(callers: int = 0) -> RegionKey:
    with crosscast.profiled("a", callers=callers) as run:
        return run.key


def test_places_and_callers_tell_runs_apart_and_name_no_files() -> None:
    with crosscast.profiled("a") as one:
        pass
    with crosscast.profiled("a") as two:
        pass
    assert one.key != two.key
    module = __name__
    (place,) = one.key.site
    function = "test_places_and_callers_tell_runs_apart_and_name_no_files"
    line = test_places_and_callers_tell_runs_apart_and_name_no_files.__code__.co_firstlineno
    assert place == f"{module}.{function}:{line + 1}"
    assert enter_from_here() == enter_from_here()
    first = enter_from_here(1)
    second = enter_from_here(1)
    assert first.site[0] == second.site[0]
    assert first.site[1] != second.site[1]
    assert not [place for place in first.site if "/" in place]


def test_a_stack_of_contexts_is_not_the_place() -> None:
    with ExitStack() as stack:
        run = stack.enter_context(crosscast.profiled("a"))
    assert run.key.site[0].startswith(f"{__name__}.test_a_stack")


def test_each_call_of_a_decorated_function_is_a_run_and_a_wrong_one_is_none() -> None:
    history = History()

    @crosscast.profiled("scale", history=history)
    def scale(values: Any, factor: int = 2, *, label: str = "x") -> Any:
        """Multiply."""
        return values * factor

    assert scale.__doc__ == "Multiply."
    for _ in range(3):
        assert scale(np.ones(2)).tolist() == [2, 2]
    call: Callable[..., Any] = scale
    with pytest.raises(TypeError, match=r"scale\(\) missing 1 required positional argument"):
        call()
    scale(np.ones(2), factor=2)
    scale(np.ones(2), 3)
    scale(np.ones(3))
    found: dict[tuple[str, ...], int] = {}
    for key in history.keys("scale"):
        found[key.arguments] = found.get(key.arguments, 0) + len(history.runs(key))
    assert found == {("float64[2]", "2", "x"): 4, ("float64[2]", "3", "x"): 1, ("float64[3]", "2", "x"): 1}


def test_functions_that_run_in_turns_with_others_are_refused() -> None:
    def generator() -> Iterator[int]:
        yield 1

    async def coroutine() -> None: ...

    async def both() -> AsyncIterator[int]:
        yield 1

    functions: list[tuple[Callable[..., Any], str]] = [
        (generator, "generator"),
        (coroutine, "coroutine"),
        (both, "asynchronous generator"),
    ]
    for function, kind in functions:
        with pytest.raises(InputError, match=rf"found the {kind} .*{function.__name__}, which runs in turns"):
            crosscast.profiled("a")(function)


def test_tasks_enter_one_region_each_for_itself() -> None:
    region = crosscast.profiled("a", history=History())
    ended: list[str] = []

    async def work(name: str, entered: asyncio.Event, wait_for: asyncio.Event, left: asyncio.Event) -> Any:
        with region as run:
            entered.set()
            await wait_for.wait()
        ended.append(name)
        left.set()
        return run

    async def both() -> tuple[Any, Any]:
        b_entered, a_left, unused = asyncio.Event(), asyncio.Event(), asyncio.Event()
        # The first to enter is the first to leave.
        return await asyncio.gather(
            work("a", unused, b_entered, a_left), work("b", b_entered, a_left, unused)
        )

    one, two = asyncio.run(both())
    assert ended == ["a", "b"]
    assert one.recorded is not two.recorded
    assert [run.started_s for run in (one.recorded, two.recorded)] == sorted(
        run.recorded.started_s for run in (one, two)
    )
    assert len(region.history) == 2


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_exceptions_pass_and_their_run_is_no_sample(kind: type[BaseException]) -> None:
    chooser, history = ListChooser(SLOW, SLOW), History()
    metering = Metering([SteadyMeter(1.0)])

    @crosscast.profiled("call", history=history, selector=chooser, sensors=metering)
    def call() -> None:
        raise kind

    with pytest.raises(kind):
        call()
    with pytest.raises(kind), crosscast.profiled("b", history=history, selector=chooser, sensors=metering):
        raise kind
    for name in ("call", "b"):
        (key,) = history.keys(name)
        assert not history.runs(key)
        (run,) = history.runs(key, failed=True)
        assert (run.failure, run.power_w) == (kind.__name__, None)
    assert len(chooser.asked) == 2
    assert not chooser.told


def test_a_selector_is_asked_at_entry_and_told_at_exit() -> None:
    chooser = ListChooser(SLOW, None)
    metering = Metering([SteadyMeter(20.0)])
    for expected in (SLOW, None):
        with crosscast.profiled("a", arguments=(3,), selector=chooser, sensors=metering) as run:
            assert run.configuration is expected
            assert len(chooser.told) < len(chooser.asked)
        assert chooser.told[-1] is run.recorded
        assert run.recorded.configuration is expected
        # How much depends on how long this process was kept waiting between two looks at the clock.
        assert run.recorded.power_w is not None
        assert run.recorded.power_w > 0
    assert chooser.asked[0].arguments == ("3",)


@pytest.mark.parametrize("anew", [False, True], ids=["one function", "one that a loop makes anew"])
def test_a_configuration_is_applied_when_it_is_another_one_and_the_default_once(anew: bool) -> None:
    applied: list[Configuration | None] = []
    chooser = ListChooser(None, SLOW, SLOW, FAST, None, None)
    for _ in range(6):
        apply: Any = (lambda c: applied.append(c)) if anew else applied.append
        with crosscast.profiled("a", selector=chooser, apply=apply, sensors="none"):
            pass
    assert applied == ([SLOW, SLOW, FAST, None] if anew else [SLOW, FAST, None])


def enter(name: str, configuration: Configuration | None, apply: Callable[..., object]) -> None:
    with crosscast.profiled(name, configuration=configuration, apply=apply, sensors="none"):
        pass


def test_a_region_that_goes_back_leaves_the_knob_of_another_one_as_it_is() -> None:
    knobs: dict[str, list[Configuration | None]] = {"clock": [], "cap": []}
    enter("a", SLOW, lambda c: knobs["clock"].append(c))
    enter("b", None, lambda c: knobs["cap"].append(c))
    enter("b", FAST, lambda c: knobs["cap"].append(c))
    enter("a", None, lambda c: knobs["clock"].append(c))
    assert knobs == {"clock": [SLOW, None], "cap": [FAST]}
    enter("a", None, lambda c: knobs["clock"].append(c))
    enter("b", None, lambda c: knobs["cap"].append(c))
    assert knobs == {"clock": [SLOW, None], "cap": [FAST, None]}


@pytest.mark.parametrize("given", [(SLOW, None, None, None, None), (SLOW, SLOW, SLOW, SLOW, SLOW)])
def test_what_cannot_be_applied_or_undone_is_tried_again(given: tuple[Configuration | None, ...]) -> None:
    tries: list[Configuration | None] = []
    history = History()

    def apply(configuration: Configuration | None) -> None:
        tries.append(configuration)
        # The first one may have set something before it failed.
        if len(tries) < 4:
            raise PermissionError("only root may")

    for number, configuration in enumerate(given):
        with ExitStack() as stack:
            if number < 3:
                stack.enter_context(pytest.raises(PermissionError))
            region = crosscast.profiled("a", configuration=configuration, apply=apply, history=history)
            with region:
                pass
        assert len(history) == max(number - 2, 0)
    assert tuple(tries) == given[:4]


def test_no_more_than_the_last_thousand_regions_that_left_the_default_are_known() -> None:
    for number in range(1100):
        enter(f"region {number}", SLOW if number % 2 else FAST, lambda c: None)
    assert len(applying._regions) == 1000
    assert next(iter(applying._regions)) == "region 100"


def test_threads_apply_configurations_one_after_another() -> None:
    inside: list[Configuration | None] = []
    applied: list[Configuration | None] = []

    def apply(configuration: Configuration | None) -> None:
        assert not inside
        inside.append(configuration)
        time.sleep(0.001)
        applied.append(inside.pop())

    def work(number: int) -> None:
        for turn in range(5):
            own = Configuration("node", {"turn": turn, "number": number})
            with crosscast.profiled("a", configuration=own, apply=apply, sensors="none"):
                pass

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len(set(applied)) == len(applied) == 20
    assert applying._applied == (apply, applied[-1])


def test_a_program_may_say_itself_what_it_runs_on() -> None:
    with crosscast.profiled("a", configuration=FAST) as run:
        assert run.configuration == FAST
    assert run.history.runs(run.key, FAST) == (run.recorded,)


def test_a_sensor_that_fails_costs_its_energy_and_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    good, bad = SteadyMeter(1.0), SteadyMeter(2.0)
    bad.domains = ("gpu",)
    metering, chooser = Metering([bad, good]), ListChooser(*[None] * 5)
    found = []
    with caplog.at_level(logging.WARNING, "crosscast"):
        for number in range(5):
            with crosscast.profiled("a", selector=chooser, sensors=metering) as run:
                # In the middle of the second run.
                bad.fails = number >= 1
                good.fails = number >= 3
            found.append(run.recorded)
    assert [set(run.energy_j) for run in chooser.told] == [
        {"gpu", "package-0"},
        {"package-0"},
        {"package-0"},
        set(),
        set(),
    ]
    assert [run.power_w is None for run in chooser.told] == [False, True, True, True, True]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "regions have no energy of gpu from now on",
        "regions have no energy of package-0 from now on",
    ]


@pytest.mark.parametrize("end_j", [-1.0, float("nan")])
def test_a_meter_that_goes_back_tells_nothing_of_that_run(end_j: float) -> None:
    readings = iter([5.0, 5.0 + end_j, 6.0, 7.0])
    metering = Metering([SteadyMeter(1.0, clock=lambda: next(readings))])
    found = []
    for _ in range(2):
        with crosscast.profiled("a", sensors=metering) as run:
            pass
        assert run.recorded is not None
        found.append(dict(run.recorded.energy_j))
    assert found == [{}, {"package-0": 1.0}]


def test_a_selector_without_any_sensor_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    chooser = ListChooser(None, None, None)
    metering = Metering([], ["rapl: this machine shows no energy counters"])
    with caplog.at_level(logging.WARNING, "crosscast"):
        for _ in range(3):
            with crosscast.profiled("a", selector=chooser, sensors=metering) as run:
                assert run.configuration is None
    assert [record.getMessage() for record in caplog.records] == [
        "no sensor tells the power of regions, so no configuration can be chosen by it: "
        "rapl: this machine shows no energy counters"
    ]
    assert [run.power_w for run in chooser.told] == [None] * 3
    caplog.clear()
    with crosscast.profiled("a", sensors=Metering([])):
        pass
    assert not caplog.records, "without a selector, no sensor is no matter"


def test_nested_regions_have_the_energy_of_what_is_inside() -> None:
    now = [0.0]
    metering = Metering([SteadyMeter(10.0, clock=lambda: now[0])])
    with crosscast.profiled("outer", sensors=metering) as outer:
        now[0] += 1
        with crosscast.profiled("inner", sensors=metering) as inner:
            now[0] += 2
        now[0] += 4
    assert outer.recorded is not None
    assert inner.recorded is not None
    assert outer.recorded.energy_j == {"package-0": 70.0}
    assert inner.recorded.energy_j == {"package-0": 20.0}


def test_counters_are_recorded_where_the_machine_has_them() -> None:
    with crosscast.profiled("a", counters=("task_clock_s", "page_faults")) as run:
        sum(range(100_000))
    assert run.recorded is not None
    counters = run.recorded.counters
    assert counters.keys() <= {"task_clock_s", "page_faults"}
    if "task_clock_s" in counters:
        assert counters["task_clock_s"] > 0


@FORKS
def test_a_region_that_a_fork_doubles_is_recorded_once(tmp_path: Path) -> None:
    history = History(tmp_path / "runs.jsonl")
    with crosscast.profiled("a", history=history):
        child = os.fork()
    if child == 0:
        os._exit(len(history))
    assert os.waitpid(child, 0)[1] == 0
    assert len(crosscast.read_history(tmp_path / "runs.jsonl")) == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"name": ""}, "name: expected a text of 1 to 200 characters, found ''"),
        ({"name": "a" * 201}, "name: expected a text"),
        ({"arguments": np.zeros(3)}, "arguments of a: expected a tuple of them, found one of type ndarray"),
        ({"callers": 17}, "callers: expected a number from 0 to 16, found 17"),
        ({"callers": -1}, "callers: expected a number from 0"),
        (
            {"selector": ListChooser(), "configuration": SLOW},
            "expected a selector or a configuration, found both",
        ),
        ({"counters": "cycles"}, "counters: expected a list of names, found 'cycles'"),
        # These at entry.
        ({"sensors": "watts"}, "found 'watts'"),
        ({"counters": ["flops"]}, "found 'flops'"),
    ],
)
def test_a_wrong_argument_is_named(words: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint), crosscast.profiled(**({"name": "a"} | words)):
        pass
