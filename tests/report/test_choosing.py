"""A choice as people see it."""

import io
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from made_surfaces import made_surfaces

from crosscast.configuration import Configuration
from crosscast.decide.power_cap import Choice, choice_of
from crosscast.decide.samples import SampledKernel
from crosscast.predict.configuration.data import Space
from crosscast.predict.configuration.forecast import Quantity, SurfaceForecast
from crosscast.report.choosing import print_chosen
from kept_chooser import fitted_chooser

SURFACES = made_surfaces()
CARD = fitted_chooser()[1]
KERNEL = SampledKernel("a kernel", ("a kernel",), SURFACES.observed(3, CARD.samples), (2, 1))


def forecast(time_scale: float = 1.0, row: int = 3) -> SurfaceForecast:
    measured = np.isin(np.arange(12), CARD.samples)
    spread = np.where(measured, 0.0, 0.1)
    errors = np.linspace(-2, 2, 401)
    return SurfaceForecast(
        Quantity(SURFACES.time_s[row] * time_scale, spread, errors),
        Quantity(SURFACES.power_w[row], spread, errors),
        measured,
    )


def shown(choices: Sequence[Choice], space: Space = SURFACES.space) -> str:
    stream = io.StringIO()
    print_chosen(KERNEL, choices, replace(CARD, space=space), stream)
    return stream.getvalue()


def test_the_table_has_the_frontier_with_the_chosen_one_marked() -> None:
    choice = choice_of(forecast(), SURFACES.space, 250.0)
    text = shown([choice])
    lines = [line for line in text.splitlines() if line.startswith("node ")]
    assert len(lines) == len(choice.frontier)
    (marked,) = [line for line in lines if "← 250 W" in line]
    assert choice.chosen is not None
    assert f"{choice.chosen.power_w:.1f}" in marked
    assert f"{choice.chosen.power_low_w:.1f} to {choice.chosen.power_high_w:.1f}" in marked
    assert f"{choice.chosen.relative_performance:.2f}" in marked
    assert lines[-1].count("1.00") == 1
    assert "Measured in 3 runs at node: cpu cap 100 W, gpu cap 250 W; node: cpu cap 60 W" in text


def test_what_was_measured_has_no_interval() -> None:
    text = shown([choice_of(forecast(), SURFACES.space, 400.0)])
    (line,) = [line for line in text.splitlines() if line.startswith("Under 400 W")]
    assert "; measured power " in line
    assert " to " not in line.split(";")[1].split("it keeps")[0]


def test_a_choice_off_the_frontier_is_below_it_and_said_to_be() -> None:
    made = forecast()
    # The fastest that surely keeps to the cap is one that was measured, slower than others at its power.
    made.time.centre[CARD.samples[0]] *= 1.05
    made.power.centre[CARD.samples[0]] *= 1.2
    made.power.spread[:] = np.where(made.measured, 0, 3.0)
    cap = float(made.power.centre[CARD.samples[0]])
    text = shown([choice_of(made, SURFACES.space, cap, confidence=0.99)])
    assert "below it what was chosen off it" in text
    assert text.count(f"← {cap:g} W") == 1
    assert "that keeps to it with 99 %:" in text


def test_no_choice_is_said_to_be_certain() -> None:
    text = shown([choice_of(forecast(), SURFACES.space, 1e6)])
    assert "it keeps to the cap with a probability over 99.9 %." in text


def test_no_number_is_cut_off_however_many_columns_there_are() -> None:
    names = [f"a_setting_with_a_long_name_{number}_w" for number in range(6)]
    space = Space(
        tuple(
            Configuration("a device with a long name", dict.fromkeys(names, 1e5 + number))
            for number in range(12)
        )
    )
    text = shown([choice_of(forecast(1e6), space, 250.0)], space)
    assert "…" not in text
    assert max(map(len, text.splitlines())) > 200
