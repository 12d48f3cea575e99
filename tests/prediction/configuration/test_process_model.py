"""The process is fitted to any machine that has two programs, honestly and the same each time."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from crosscast.data.configuration import Configuration
from crosscast.errors import InputError
from crosscast.prediction.configuration.data import ConfigurationSpace, KernelAt, Surfaces
from crosscast.prediction.configuration.features import TrainingRuns
from crosscast.prediction.configuration.process import (
    FittedProcess,
    ProcessModel,
    ProcessPredictor,
    _Training,
)
from support.grids import linear_surfaces
from support.refusals import refusal
from support.surfaces import made_surfaces

SURFACES, SAMPLES = made_surfaces(4, noise=0.01), (11, 0)


def digest(fitted: FittedProcess) -> str:
    state = sorted(fitted.state().items())
    return hashlib.sha256(b"".join(name.encode() + array.tobytes() for name, array in state)).hexdigest()


def made_of(space: ConfigurationSpace, time_s: list[list[float]], power_w: list[list[float]]) -> Surfaces:
    """A program a row."""
    kernels = tuple(KernelAt(f"app{number}", f"app{number}", "only") for number in range(len(time_s)))
    return Surfaces("made up", kernels, space, np.array(time_s), np.array(power_w))


def check(fitted: ProcessPredictor, surfaces: Surfaces, row: int) -> None:
    """All cells are forecast, with numbers that can be."""
    forecast = fitted.forecast(surfaces.observed(row, fitted.samples))
    for each in (forecast.time, forecast.power):
        assert np.isfinite(each.centre).all()
        assert (each.centre > 0).all()
        assert (each.spread[~forecast.measured] > 0).all()
        assert (np.diff(each.errors) >= 0).all()


def test_what_is_said_of_a_left_out_program_does_not_come_from_its_values() -> None:
    out = SURFACES.rows_of(["app2"])
    unmeasured = ~np.isin(np.arange(12), SAMPLES)
    wrong = np.where(out[:, None] & unmeasured, 7.0, 1.0)
    domains = {name: values * wrong for name, values in SURFACES.domains.items()}
    changed = replace(
        SURFACES, time_s=SURFACES.time_s * wrong, power_w=SURFACES.power_w * wrong, domains=domains
    )
    with threadpool_limits(1):
        one, other = (_Training.of(TrainingRuns.of(each, SAMPLES), SAMPLES) for each in (SURFACES, changed))
        everyone, covariances = np.ones(len(out), np.bool_), one.covariances(0)
        left, wrongly = (each.conditioned(covariances, ~out) for each in (one, other))
        whole, other_whole = (each.conditioned(covariances, everyone) for each in (one, other))
    assert digest(left) == digest(wrongly)
    assert digest(whole) != digest(other_whole)
    # Nor does it remember the program's points.
    points = np.unique(left.quantities[0].process.points, axis=0)
    held_out_points = one.points[out[one.kernels]]
    assert not (points[:, None] == held_out_points[None]).all(axis=2).any()


def test_each_program_weighs_the_same_in_the_mean() -> None:
    space = ConfigurationSpace(tuple(Configuration("a", {"cores": n}) for n in (1, 2)))
    surfaces = made_of(space, [[1.0, 0.5], [1.0, 0.5], [1.0, 1.0]], [[1.0, 1.0]] * 3)
    kernels = (KernelAt("x", "x", "big"), KernelAt("x", "x", "small"), KernelAt("y", "y", "big"))
    training = _Training.of(TrainingRuns.of(replace(surfaces, kernels=kernels), (0,)), (0,))
    assert training._mean("time", np.array([True, True, True])) == pytest.approx([0, np.log(0.5) / 2])
    assert training._mean("time", np.array([False, False, True])) == pytest.approx([0, 0])


def test_two_programs_are_needed() -> None:
    assert "made up: expected at least 2 programs that ran at all samples, found app0" in refusal(
        ProcessModel().fit, SURFACES.take(SURFACES.rows_of(["app0"])), SAMPLES
    )
    lost = replace(SURFACES, time_s=SURFACES.time_s.copy())
    lost.time_s[:, 0] = np.nan
    assert "expected a kernel that ran at all samples" in refusal(ProcessModel().fit, lost, SAMPLES)
    assert "samples: expected at least one" in refusal(ProcessModel().fit, SURFACES, ())
    check(ProcessModel().fit(SURFACES.take(SURFACES.rows_of(["app0", "app1"])), SAMPLES), SURFACES, 6)


def test_a_sample_may_not_be_there_twice() -> None:
    with pytest.raises(InputError, match="samples: expected indices from 0 to 11, each once, found 3, 3"):
        ProcessModel().fit(SURFACES, (3, 3))


def test_a_device_that_no_kernel_with_the_samples_ran_on_is_forecast_without_much_trust() -> None:
    surfaces = linear_surfaces(5)
    space = surfaces.space
    on_gpu = space.device_numbers == 1
    # The last program ran on the GPU, but not at the sample.
    holes = np.broadcast_to(on_gpu, surfaces.time_s.shape).copy()
    holes[-1] = space.device_numbers == 0
    time_s, power_w = (np.where(holes, np.nan, each) for each in (surfaces.time_s, surfaces.power_w))
    fitted = ProcessModel().fit(replace(surfaces, time_s=time_s, power_w=power_w), (8,))
    check(fitted, surfaces, 0)
    forecast = fitted.forecast(surfaces.observed(0, (8,)))
    assert forecast.time.spread[on_gpu].min() > np.median(forecast.time.spread[~on_gpu])


@pytest.mark.parametrize("count", [1, 2])
def test_a_machine_of_one_or_two_configurations_is_a_machine(count: int) -> None:
    space = ConfigurationSpace(tuple(Configuration("a", {"cores": n}) for n in range(1, count + 1)))
    rows = [[1.0 + n, 0.6 + n][:count] for n in range(3)]
    surfaces = made_of(space, rows, [[50.0 + n, 60.0][:count] for n in range(3)])
    fitted = ProcessModel().fit(surfaces, (0,))
    forecast = fitted.forecast(surfaces.observed(0, (0,)))
    assert forecast.time.centre[0] == 1
    assert np.isfinite(forecast.time.quantile(0.9)).all()
