from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import CheckFailed
from crosscast.suite.fft.driver import Fft
from crosscast.suite.registry import profiles_of


@given(st.integers(8 << 10, 1 << 30))
def test_the_longest_power_of_two_fills_what_it_may(limit: int) -> None:
    assert limit / 2 < 16 << Fft.fit(limit)["log2_points"] <= limit


def test_the_buffers_are_the_working_set() -> None:
    assert Fft(Fft.fit(32 << 10), seed=1).nbytes == 32 << 10


@pytest.mark.parametrize("log2_points", [4, 5, 6, 7])
def test_every_radix_agrees_with_scipy_whatever_is_left_for_the_last_pass(log2_points: int) -> None:
    profiles = profiles_of(Fft({"log2_points": log2_points}, seed=2), "tiny")
    assert {profile.kernel for profile in profiles} == set(Fft.kernels)


def test_passes_of_a_transform_join_all_points() -> None:
    profiles = profiles_of(Fft({"log2_points": 7}, seed=3), "tiny")
    radices = [int(profile.kernel.removeprefix("fftRadix").removesuffix("Kernel")) for profile in profiles]
    assert radices == [2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 2, 8, 8, 2, 16, 8]
    assert prod(radices) == (2**7) ** 4


def test_four_transforms_give_the_signal_back() -> None:
    application = Fft({"log2_points": 6}, seed=4)
    profiles_of(application, "tiny")
    # Two transforms reverse a signal of n points and multiply it by n.
    np.testing.assert_allclose(application.spectra[-1] / 64**2, application.signal, atol=1e-5)


def test_a_second_run_starts_from_the_same_signal() -> None:
    application = Fft({"log2_points": 4}, seed=5)
    profiles_of(application, "tiny")
    first = [spectrum.copy() for spectrum in application.spectra]
    profiles_of(application, "tiny")
    assert np.array_equal(np.stack(application.spectra), np.stack(first))


@pytest.mark.parametrize(("transform", "radix"), [(0, 2), (1, 4), (2, 8), (3, 16)])
def test_one_wrong_point_of_any_spectrum_fails_the_check(transform: int, radix: int) -> None:
    application = Fft({"log2_points": 5}, seed=6)
    profiles_of(application, "tiny")
    application.spectra[transform][31] *= np.float32(1.001)
    with pytest.raises(CheckFailed, match=rf"spectrum of radix {radix}: 1 of 32 .* first at \(31,\)"):
        application.check()


def test_a_spectrum_that_is_not_finite_fails_the_check() -> None:
    application = Fft({"log2_points": 4}, seed=7)
    profiles_of(application, "tiny")
    application.spectra[0][3, 1] = np.nan
    with pytest.raises(CheckFailed, match="spectrum of radix 2"):
        application.check()
