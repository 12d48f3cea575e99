"""Settings look alike from kernels that they bind alike."""

from collections.abc import Mapping

import numpy as np
import pytest
from linear_machine import linear_samples, linear_space, linear_surfaces
from made_surfaces import made_space, made_surfaces

from crosscast.arrays import Reals
from crosscast.configuration import Configuration, Setting
from crosscast.predict.configuration.data import Observed, Space
from crosscast.predict.configuration.process import SettingInputs, cap_domains


def one(settings: Mapping[str, Setting], *, device: str = "a") -> Configuration:
    return Configuration(device, settings)


def run(power_w: float, **domains: float) -> Observed:
    watts = {name: np.array([value]) for name, value in domains.items()}
    return Observed(np.array([0]), np.ones(1), np.array([power_w]), watts)


def test_caps_are_known_by_their_names() -> None:
    space = Space(
        tuple(
            one({"cpu_cap_w": n, "power_limit_w": n, "cap_w": n, "clock_hz": n, "tall_cap_width_w": n})
            for n in (1.0, 2.0)
        )
    )
    assert cap_domains(space, ["cpu", "gpu"]) == {"cap_w": "", "cpu_cap_w": "cpu", "power_limit_w": ""}
    assert cap_domains(space, [])["cpu_cap_w"] == ""


def test_knobs_act_by_ratios() -> None:
    space = Space(tuple(one({"clock_hz": clock}) for clock in (1e9, 2e9, 4e9)))
    inputs = SettingInputs.of(space, (0,), ())
    assert inputs.width == 1
    assert np.diff(inputs.fixed[:, 0])[0] == pytest.approx(np.diff(inputs.fixed[:, 0])[1])
    np.testing.assert_allclose([inputs.fixed.mean(), inputs.fixed.std()], [0, 1], atol=1e-12)


def test_a_knob_that_can_be_zero_is_taken_as_it_is() -> None:
    space = Space(tuple(one({"offset": value}) for value in (-1.0, 0.0, 1.0)))
    assert SettingInputs.of(space, (0,), ()).fixed[:, 0] == pytest.approx([-(1.5**0.5), 0, 1.5**0.5])


def test_words_and_devices_are_columns_and_a_missing_knob_is_in_the_middle() -> None:
    space = Space(
        (
            *(one({"cores": n, "mode": word}, device="cpu") for n in (1, 4) for word in ("x", "y", "z")),
            one({}, device="gpu"),
        )
    )
    # One knob, three of four words ("" is a word that the GPU has), one of two devices.
    inputs = SettingInputs.of(space, (0,), ())
    assert inputs.width == 5
    assert inputs.fixed[6, 0] == pytest.approx(0)
    assert len(np.unique(inputs.fixed, axis=0)) == 7


def test_a_cap_counts_by_how_far_it_is_below_what_the_kernel_takes() -> None:
    space = Space(tuple(one({"cpu_cap_w": cap}) for cap in (50.0, 100.0, 110.0, 400.0)))
    inputs = SettingInputs.of(space, (3,), ("cpu",))
    seen = inputs.seen_by(run(500.0, cpu=100.0), [0])[:, 1]
    assert seen == pytest.approx(np.array([np.log(0.5), 0, np.log(1.1), 0.3]) / 0.3)
    # Twice the power with twice the caps looks the same.
    other = SettingInputs.of(
        Space(tuple(one({"cpu_cap_w": cap}) for cap in (100.0, 200.0, 220.0, 800.0))), (3,), ("cpu",)
    )
    assert other.seen_by(run(900.0, cpu=200.0), [0])[:, 1] == pytest.approx(seen)


@pytest.mark.parametrize("unknown", [{}, {"cpu": np.nan}, {"cpu": 0.0}])
def test_without_the_domain_a_cap_is_compared_with_all_power(unknown: dict[str, float]) -> None:
    space = Space(tuple(one({"cpu_cap_w": cap}) for cap in (50.0, 100.0)))
    inputs = SettingInputs.of(space, (1,), ("cpu",))
    assert inputs.seen_by(run(100.0, **unknown), [0])[:, 1] == pytest.approx(np.array([np.log(0.5), 0]) / 0.3)


def test_each_device_is_seen_from_its_own_sample() -> None:
    space = Space(tuple(one({"cap_w": cap}, device=key) for key in "ab" for cap in (50.0, 100.0)))
    inputs = SettingInputs.of(space, (1, 3), ())
    observed = Observed(np.array([3, 1]), np.ones(2), np.array([50.0, 100.0]))
    seen = inputs.seen_by(observed, [1, 0])[:, -1]
    assert seen == pytest.approx(np.clip(np.array([np.log(0.5), 0, 0, np.log(2)]) / 0.3, -9, 1))


def test_a_device_without_a_cap_is_not_limited() -> None:
    space = Space((one({"cap_w": 50.0}), one({"cap_w": 100.0}), one({"cores": 1.0}, device="b")))
    seen = SettingInputs.of(space, (1,), ()).seen_by(run(100.0), [0])[:, -1]
    assert seen[2] == 0


def test_one_configuration_has_no_coordinates() -> None:
    inputs = SettingInputs.of(Space((one({"cores": 2}),)), (0,), ())
    assert inputs.seen_by(run(100.0), [0]).shape == (1, 0)


def points(space: Space, samples: tuple[int, ...], observed: Observed) -> Reals:
    return SettingInputs.of(space, samples, ("cpu", "gpu")).seen_by(observed, list(range(len(samples))))


def test_made_up_machines_have_as_many_coordinates_as_knobs_caps_and_devices() -> None:
    space = linear_space()
    samples = linear_samples(space)
    assert points(space, samples, linear_surfaces(1).observed(0, samples)).shape == (12, 3)
    assert points(made_space(), (11, 0), made_surfaces(1).observed(0, (11, 0))).shape == (12, 4)
