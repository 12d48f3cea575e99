"""The picture of a choice."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_surfaces import made_surfaces

from crosscast.configuration import Configuration
from crosscast.decide.power_cap import Choice, choice_of
from crosscast.errors import InputError
from crosscast.predict.configuration.data import Space
from crosscast.predict.configuration.forecast import Quantity, SurfaceForecast
from crosscast.report import canvas, choice_figure
from crosscast.report.choice_figure import write_choice_figure

SURFACES = made_surfaces()


def forecast(*, sure: bool = True, power_w: Any = None) -> SurfaceForecast:
    measured = np.isin(np.arange(12), (11, 0))
    spread = np.where(measured, 0.0, 0.1)
    errors = np.linspace(-2, 2, 401) if sure else np.empty(0)
    power = SURFACES.power_w[3] if power_w is None else power_w
    return SurfaceForecast(
        Quantity(SURFACES.time_s[3], spread, errors), Quantity(power, spread, errors), measured
    )


def drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: SurfaceForecast, space: Space, *caps: float
) -> Any:
    """Axes of the picture that is written."""
    figures: list[Any] = []
    new_figure = canvas.new_figure

    def noted(width: float, height: float) -> Any:
        figures.append(new_figure(width, height))
        return figures[-1]

    monkeypatch.setattr(choice_figure, "new_figure", noted)
    choices = [choice_of(made, space, cap) for cap in caps]
    path = write_choice_figure("a kernel", made, space, choices, tmp_path / "f.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    (axes,) = figures[0].axes
    return axes


def labels(axes: Any) -> list[str]:
    return list(axes.get_legend_handles_labels()[1])


def test_it_shows_configurations_frontier_intervals_runs_cap_and_choice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = forecast()
    axes = drawn(monkeypatch, tmp_path, made, SURFACES.space, 250.0)
    assert labels(axes) == [
        "node",
        "predicted frontier",
        "measured",
        "power cap",
        "chosen",
        "90 % intervals",
    ]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("power, W", "time, s")
    assert axes.get_yscale() == "log"
    chosen = choice_of(made, SURFACES.space, 250.0).chosen
    assert chosen is not None
    assert axes.get_title(loc="left").startswith("a kernel under 250 W: node: cpu cap ")
    (star,) = [each for each in axes.collections if each.get_label() == "chosen"]
    np.testing.assert_allclose(star.get_offsets(), [[chosen.power_w, chosen.time_s]])


def test_each_device_has_a_colour_and_far_powers_a_logarithmic_axis(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    space = Space(tuple(Configuration(f"d{number % 3}", {"x": number}) for number in range(12)))
    made = forecast(power_w=np.geomspace(1, 500, 12))
    axes = drawn(monkeypatch, tmp_path, made, space, 20.0, 100.0)
    assert labels(axes)[:3] == ["d0", "d1", "d2"]
    colours = {tuple(each.get_facecolor()[0][:3]) for each in axes.collections[:3]}
    assert len(colours) == 3
    assert axes.get_xscale() == "log"
    assert axes.get_title(loc="left") == "a kernel under 20, 100 W"


def test_without_sureness_or_choice_there_is_less_to_show(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    axes = drawn(monkeypatch, tmp_path, forecast(sure=False), SURFACES.space, 20.0)
    assert labels(axes) == ["node", "predicted frontier", "measured", "power cap"]
    assert axes.get_title(loc="left") == "a kernel under 20 W: nothing is chosen"


def test_a_picture_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    made = forecast()
    choices: list[Choice] = [choice_of(made, SURFACES.space, 250.0)]
    with pytest.raises(InputError, match="cannot write"):
        write_choice_figure("a", made, SURFACES.space, choices, tmp_path / "no" / "f.png")
