"""The model of launch times: what it promises of streams, what it refuses, and how it is trained.

Of a device that joins it learns, and the others stay as they are. Corrections fade with distance.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crosscast
from crosscast.arrays import Reals
from crosscast.data.profiles import LOOSE_PROFILES, to_row
from crosscast.data.table import save, table_of
from crosscast.data.times import KernelTime, LaunchTables
from crosscast.device import Device
from crosscast.devices.catalogue import catalogue, device_named
from crosscast.devices.sheets import sheets_of
from crosscast.errors import InputError
from crosscast.prediction.time.counts import work_of
from crosscast.prediction.time.datasets import launch_tables_of, read_training
from crosscast.prediction.time.launch_model import TrainedLaunchTimes
from crosscast.prediction.time.launch_times import (
    Correction,
    DeviceErrors,
    LaunchModels,
    in_common,
    kind_number,
    narrowed,
)
from crosscast.prediction.time.terms import TERMS, joined, terms
from crosscast.prediction.time.training_times import _widening, doubt_of, fit_correction, with_device
from crosscast.prediction.time.work import TRAITS
from support.refusals import refusal
from support.streams import launch_tables, stream, times_of_streams

GPUS = [device_named(key) for key, row in catalogue().items() if row["type"] == "gpu"]
LARGE = 1 << 26


@pytest.fixture(scope="module")
def model() -> TrainedLaunchTimes:
    model = crosscast.load_model("launch-times")
    assert isinstance(model, TrainedLaunchTimes)
    return model


def test_streams_reach_as_much_of_the_bandwidth_as_streams_do(model: TrainedLaunchTimes) -> None:
    known = [device for device in GPUS if device.numbers.get("bandwidth_bytes_per_s")]
    forecast = model.predict(stream(LARGE), known)
    limit = 8 * LARGE / np.array([device.numbers["bandwidth_bytes_per_s"] for device in known])
    share = limit / forecast.centre[0]
    # Those of one to five compute units, which were not trained on, come out least.
    assert (share > 0.44).all()
    assert (share < 1.0).all()
    assert (forecast.low[0] >= 0.9 * limit).all()


def test_a_million_elements_on_a_gtx1080_take_what_was_measured(model: TrainedLaunchTimes) -> None:
    predicted = model.predict(stream(1 << 20, accesses=3), ["gtx1080"])
    assert 40e-6 < predicted.centre[0, 0] < 75e-6
    assert predicted.high[0, 0] / predicted.low[0, 0] < 3


def test_errors_on_other_cpus_tell_nothing_of_one_with_measured_rates(model: TrainedLaunchTimes) -> None:
    counted, work = model.predictor.counted, work_of([stream(1 << 20)])
    numbers = {"compute_units": 8.0, "clock_hz": 3e9, "peak_flop_per_s": 8e11, "bandwidth_bytes_per_s": 4e10}
    on_paper, measured = (
        Device("m", "m", type="cpu", numbers=numbers, measured=each)
        for each in ({}, {"chain_flop_per_s": 8 * 2 * 3e9 / 4})
    )
    of_measured = counted.correction.side == kind_number(measured)
    assert 0 < of_measured.sum() < len(of_measured)
    for known, of in ((of_measured, measured), (~of_measured, on_paper)):
        errors = np.where(known, counted.correction.errors, 0.0)
        corrected = replace(counted, correction=replace(counted.correction, errors=errors))
        for device in (measured, on_paper):
            factors = np.exp(counted.efficiencies().of(device))
            uncorrected = joined(terms(work, sheets_of([device])) * factors)[0]
            change = corrected.predict(work, corrected.on((device,)))[0][0, 0] / uncorrected[0, 0] - 1
            assert (abs(change) > 1e-9) == (device is of)


def test_what_the_time_is_spent_on_is_said(model: TrainedLaunchTimes) -> None:
    predicted = model.predict(stream(LARGE), ["gtx1080"])
    shares = predicted.term_shares(0, 0)
    assert next(iter(shares)) == "memory"
    assert sum(shares.values()) == pytest.approx(1, abs=1e-3)
    document: dict[str, Any] = predicted.kernels()[0]
    assert document["devices"][0]["terms"] == shares
    term, share = predicted.most_saved(0, 0)
    assert document["devices"][0]["most_saved"] == {"term": term, "share": pytest.approx(share, abs=1e-4)}


def test_a_profile_of_metrics_alone_is_less_sure(model: TrainedLaunchTimes) -> None:
    whole = stream(LARGE)
    counted, alone = (model.predict(each, ["gtx1080"]) for each in (whole, replace(whole, launch={})))
    assert "no counts by sub-groups" in alone.warnings[0][0]
    without = replace(model, source=LaunchModels(model.predictor.counted, None))
    refused = refusal(without.predict, replace(whole, launch={}))
    assert "launch.sub_groups: expected counts by sub-groups" in refused
    assert not counted.warnings[0]
    assert (alone.high / alone.low)[0, 0] > (counted.high / counted.low)[0, 0]
    assert alone.low[0, 0] < counted.centre[0, 0] < alone.high[0, 0]


def test_how_likely_the_next_device_is_the_faster(model: TrainedLaunchTimes) -> None:
    predicted = model.predict(stream(LARGE), ["gtx1080", "gtx1080ti", "k20c"])
    (best,) = predicted.recommended
    assert best.device == "gtx1080ti"
    assert best.probability_faster is not None
    assert 0 < best.probability_faster < 0.5
    # A measured time decides it.
    (sure,) = model.predict(
        stream(LARGE), ["gtx1080", "k20c"], probes={"gtx1080": float(predicted.centre[0, 1])}
    ).recommended
    assert sure.device == "gtx1080"
    assert sure.probability_faster == pytest.approx(0, abs=0.05)


FIVE = {"compute_units": 46.0, "cores": 5888.0, "clock_hz": 2.4e9, "tdp_w": 200.0, "l2_bytes": 37748736.0}


def test_the_number_that_a_forecast_would_gain_most_from_is_said(model: TrainedLaunchTimes) -> None:
    few = Device("few", vendor="Nvidia", type="gpu", series="Ada Lovelace", numbers=FIVE)
    more = replace(few, key="more", numbers={**FIVE, "bandwidth_bytes_per_s": 4.4e11})
    predicted = model.predict(stream(1 << 26), [few, more])
    (said, known) = predicted.assumed
    assert (said.device, said.most) == ("few", "bandwidth_bytes_per_s")
    assert said.numbers["bandwidth_bytes_per_s"].of == "architecture"
    assert "would gain most from bandwidth_bytes_per_s of few" in predicted.warnings[0][0]
    (alone,) = model.predict(stream(1 << 26), [few]).warnings[0]
    assert "the forecast would gain most from bandwidth_bytes_per_s" in alone
    assert "bandwidth_bytes_per_s" not in known.numbers
    # To know it gains about the share that is said; times are alike, as siblings have about that bandwidth.
    widths = np.log(predicted.high / predicted.centre)[0]
    assert widths[1] < widths[0]
    assert 1 - (widths[1] / widths[0]) ** 2 == pytest.approx(sum(said.shares.values()), abs=0.1)
    assert predicted.centre[0, 0] == pytest.approx(predicted.centre[0, 1], rel=0.1)
    assert predicted.assumed[0].to_dict()["gains_most_from"] == "bandwidth_bytes_per_s"


def test_numbers_that_do_not_matter_are_no_warning(model: TrainedLaunchTimes) -> None:
    whole = device_named("rtx4090")
    numbers = {name: value for name, value in whole.numbers.items() if name != "l1_bytes"}
    predicted = model.predict(stream(1 << 26), [replace(whole, key="next", numbers=numbers)])
    assert predicted.warnings == ((),)
    assert predicted.assumed[0].numbers.keys() == {"l1_bytes"}


@pytest.mark.parametrize("key", ["rx7900xtx", "rtx4090", "a100-sxm-40gb"])
def test_what_nearly_fits_the_last_cache_may_partly_have_stayed_there(
    model: TrainedLaunchTimes, key: str
) -> None:
    device = device_named(key)
    cache = float(sheets_of([device]).last_cache.item())
    sizes = [int(share * cache / 8 / 256) * 256 for share in np.linspace(0.6, 1.2, 13)]
    forecasts = [model.predict(stream(size), [device]) for size in sizes]
    times, least = (
        np.array([each.centre[0, 0] for each in forecasts]),
        np.array([each.low[0, 0] for each in forecasts]),
    )
    assert (np.diff(times) > 0).all() and (np.diff(least) > -1e-9).all()
    assert (least < 0.97 * times).all()


def test_a_probe_far_from_its_forecast_is_doubted_an_absurd_one_refused(model: TrainedLaunchTimes) -> None:
    time = float(model.predict(stream(1 << 20), ["gtx1080"]).centre[0, 0])
    (warnings,) = model.predict(stream(1 << 20), ["k40c"], probes={"gtx1080": time * 30}).warnings
    assert any("the time measured on gtx1080" in each and "98 % interval" in each for each in warnings)
    with pytest.raises(InputError, match=r"probe: gtx1080: expected about .* is it in seconds"):
        model.predict(stream(1 << 20), ["k40c"], probes={"gtx1080": 1e6 * time})
    with pytest.raises(InputError, match=r"^probes: expected times of shape \(1, \d+\), found \(1, 2\)$"):
        model.predict(stream(1 << 20), ["k40c"], probes=np.ones((1, 2)))


def test_a_probe_is_its_own_forecast_and_narrows_the_others(model: TrainedLaunchTimes) -> None:
    before = model.predict(stream(1 << 20), ["gtx1080", "k40c"])
    after = model.predict(stream(1 << 20), ["gtx1080", "k40c"], probes={"gtx1080": 2e-4})
    assert after.centre[0, 0] == pytest.approx(2e-4)
    assert after.is_measured.tolist() == [[True, False]]
    assert after.centre[0, 1] > before.centre[0, 1]
    assert (after.high / after.low)[0, 1] < (before.high / before.low)[0, 1]
    cpus = [device.key for device in model.devices if device.kind == "cpu"]
    of_gpus, of_all = (model.suggest_probes(2, measured=keys) for keys in (cpus, cpus[:1]))
    assert of_all.devices and of_all.error < of_all.error_before
    for count in (0, -1, 1000):
        expected = f"suggest-probes: expected from 1 to .* measured, found {count}"
        assert re.match(expected, refusal(model.suggest_probes, count))
    assert "at least two devices that are not measured, found 1" in refusal(
        model.suggest_probes, 1, among=["gtx1080"]
    )
    # Errors on CPUs are larger than those on GPUs, and count only where a CPU is left.
    by_side = np.expm1(np.median(model.predictor.counted.doubt.deviations, axis=1) * np.sqrt(2 / np.pi))
    assert of_gpus.error < by_side[:2].max() < by_side[2]


def test_a_probe_may_be_of_any_device(model: TrainedLaunchTimes) -> None:
    own = replace(device_named("rtx4090"), key="own")
    before = model.predict(stream(1 << 26), [own, "gtx1080"])
    for name, device in (("own", own), ("rtx4090", device_named("rtx4090"))):
        twice = {name: 2 * float(model.predict(stream(1 << 26), [device]).centre[0, 0])}
        after = model.predict(stream(1 << 26), [own, "gtx1080"], probes=twice)
        assert after.centre[0, 1] > before.centre[0, 1]
        assert after.is_measured[0].tolist() == [name == "own", False]
    with pytest.raises(
        InputError, match=r"probe: expected .* the catalogue .* near .* titan-rtx.*, found 'titan'"
    ):
        model.predict(stream(1 << 26), ["gtx1080"], probes={"titan": 1.0})


def test_an_interval_is_of_no_higher_level_than_errors_are_known_of(model: TrainedLaunchTimes) -> None:
    usual, high, highest = (
        model.predict(stream(1 << 20), ["gtx1080"], level=each) for each in (0.9, 0.95, 0.99)
    )
    assert usual.level == 0.9 < high.level == highest.level < 0.95
    assert high.high[0, 0] == highest.high[0, 0] > usual.high[0, 0]


def test_a_time_of_a_launch_without_a_profile_is_refused(tmp_path: Path) -> None:
    launch_tables(tmp_path)
    save(table_of(LOOSE_PROFILES, [to_row(stream(1 << 20, name="stream2"))]), tmp_path / "profiles.parquet")
    with pytest.raises(InputError, match=r"parts.parquet: expected launches with a profile, found stream2"):
        read_training(tmp_path)


def test_doubt_covers_what_it_promises() -> None:
    rng = np.random.default_rng(0)
    shares = np.zeros((4000, len(TERMS)))
    shares[np.arange(4000), np.where(rng.random(4000) < 0.5, 0, TERMS.index("memory"))] = 1.0
    sides = (rng.random(4000) < 0.5).astype(int)
    errors = rng.normal(size=4000) * np.where(shares[:, 0] > 0, 0.5, 0.1) * np.where(sides > 0, 3.0, 1.0)
    doubt = doubt_of(errors, shares, np.ones(4000), sides, 4000)
    inside = np.abs(errors) <= doubt.factor(0.9) * doubt.deviation(shares, sides)
    for of_launch in (True, False):
        for side in (0, 1):
            rows = ((shares[:, 0] > 0) == of_launch) & (sides == side)
            assert inside[rows].mean() == pytest.approx(0.9, abs=0.04)
    # An interval of one more application is wider, the fewer there are.
    few = doubt_of(errors, shares, np.ones(4000), sides, 16)
    assert few.quantile(0.9) == doubt.quantile(0.9)
    assert few.factor(0.9) == few.quantile(0.9 * 17 / 16) > doubt.factor(0.9)
    assert few.quantile(0.96) / few.quantile(0.9) == pytest.approx(2.302 / 1.782, rel=1e-3)


DEVICES = [
    Device("ti", vendor="Nvidia", type="gpu", series="Pascal"),
    Device("x", vendor="Nvidia", type="gpu", series="Pascal"),
    Device("k", vendor="Nvidia", type="gpu", series="Kepler"),
    Device("fury", vendor="AMD", type="gpu", series="GCN 3"),
    Device("knl", vendor="Intel", type="accelerator", series="Knights Landing"),
    Device("mystery"),
]


TOGETHER = np.array([0.1, 0.2, 0.4, 0.6])


def device_errors(known: Sequence[float], shared: float = 1.0) -> DeviceErrors:
    """Errors of a kernel, of which the first are known."""
    n = len(DEVICES)
    errors = np.array([[*known, *[np.nan] * (n - len(known))]])
    deviation = np.array([[0.5, 0.5, 0.5, 0.5, 1.0, 1.0]])
    keys = tuple(device.key for device in DEVICES)
    return DeviceErrors(keys, deviation, np.full((1, n), shared), TOGETHER[in_common(DEVICES)], errors)


def test_a_probe_moves_other_devices_by_what_they_have_in_common() -> None:
    assert in_common(DEVICES)[0].tolist() == [3, 3, 2, 1, 0, 0]
    assert in_common(DEVICES)[5].tolist() == [0, 0, 0, 0, 1, 1]
    errors = device_errors([1.0])
    moved, left = errors.conditioned(np.zeros((1, len(DEVICES))))
    np.testing.assert_allclose(moved, [[1.0, 0.6, 0.4, 0.2, 0.2, 0.2]])
    correlation = moved[0, 1:] * 0.5 / errors.deviation[0, 1:]
    np.testing.assert_allclose(left[0, 1:], errors.deviation[0, 1:] * np.sqrt(1 - correlation**2))
    # Of what devices do not share, one says nothing of the others.
    alone, as_before = device_errors([1.0], shared=0.0).conditioned(np.zeros((1, len(DEVICES))))
    assert alone[0].tolist() == [1.0, 0, 0, 0, 0, 0]
    np.testing.assert_allclose(as_before[0, 1:], errors.deviation[0, 1:])


@given(st.lists(st.floats(-2, 2), max_size=len(DEVICES)), st.floats(0, 1))
def test_each_probe_leaves_less_doubt_and_is_its_own_forecast(known: list[float], shared: float) -> None:
    errors = device_errors(known, shared)
    moved, left = errors.conditioned(np.zeros((1, len(DEVICES))))
    np.testing.assert_allclose(moved[0, : len(known)], known, atol=1e-9)
    assert (left <= errors.deviation + 1e-9).all()
    assert (left[0, : len(known)] < 1e-3).all()
    # Between a known time and another is the doubt of that one alone.
    for first, second in itertools.product(range(len(known)), range(len(known), len(DEVICES))):
        chance = errors.probability_faster(0, DEVICES[first].key, DEVICES[second].key, 0.1)
        assert chance == pytest.approx(NormalDist().cdf(-0.1 / left[0, second]), abs=1e-6)


NEW = replace(device_named("gtx1080ti"), key="here")


@pytest.mark.parametrize("slower", [0.8, 1.0, 1.5])
def test_what_a_device_reaches_is_learned_and_others_stay_as_they_are(
    model: TrainedLaunchTimes, slower: float
) -> None:
    after, held_out = with_device(model, times_of_streams(model, NEW, slower))
    profile = stream(1 << 24, accesses=3)
    ratio = after.predict(profile, ["here"]).centre[0, 0] / model.predict(profile, [NEW]).centre[0, 0]
    assert ratio == pytest.approx(slower, rel=0.15)
    assert held_out.median_error < 0.2
    assert held_out.coverage > 0.75
    # A few applications make it no surer than other devices that were measured.
    assert (after.predictor.counted.wider >= 1).all()
    assert [each.key for each in after.devices] == [*(each.key for each in model.devices), "here"]
    # Like launches on devices of its kind alone take something of what was measured.
    for key in ("i7-6700k", "knl"):
        before, now = (each.predict(profile, [key]).centre[0, 0] for each in (model, after))
        assert now == pytest.approx(before, rel=0.15)
    # Times that agree make it surer than a data sheet does.
    sheet, joined_ = (model.predict(profile, [NEW]), after.predict(profile, ["here"]))
    assert slower != 1.0 or (joined_.high / joined_.low < sheet.high / sheet.low).all()
    facts = after.card.calibrated
    assert facts is not None
    assert (facts.device, facts.applications) == ("here", ("app0", "app1", "app2"))


def test_launches_that_are_timed_together_wait_for_the_host_in_part() -> None:
    cells = {("app", "copy", "ten"): [(0, 10.0)], ("app", "copy", "one"): [(0, 1.0)]}
    times = [
        KernelTime("lab", *cell, "gtx1080", 1e-4 * parts[0][1], "by the host", total=parts[0][1] > 1)
        for cell, parts in cells.items()
    ]
    training = read_training(LaunchTables("made", (stream(1 << 20),), tuple(times), cells, {}))
    together, alone = training.times.seconds[:, TERMS.index("launch")]
    assert together / alone == pytest.approx(0.1 + 0.3 * 0.9, rel=1e-6)
    assert training.times.share.tolist() == [10, 1]


def test_one_more_application_has_larger_errors_and_launches_near_known_ones_have_smaller_ones(
    model: TrainedLaunchTimes, tmp_path: Path
) -> None:
    launch_tables(tmp_path)
    training = read_training(tmp_path)
    errors = np.linspace(0.1, 2.0, len(training.rows))
    one, doubt = np.ones(len(errors)), model.predictor.counted.doubt
    usual, next_one = (
        _widening(training, errors, one, doubt, one > 0, few=few) * quantile(0.9)
        for few, quantile in ((False, doubt.quantile), (True, doubt.factor))
    )
    assert next_one > usual > 0
    assert narrowed(np.array([0.0, 0.5, 1.0]), np.array([0.4])).tolist() == pytest.approx([1.0, 0.7, 0.4])


def test_one_application_and_profiles_without_counts_are_too_little(model: TrainedLaunchTimes) -> None:
    one = times_of_streams(model, NEW, 1.0, applications=1)
    assert "expected times of two applications or more, found app0" in refusal(with_device, model, one)
    uncounted = refusal(launch_tables_of, crosscast.bundled_dataset(), NEW)
    assert "profiles: expected counts by sub-groups" in uncounted


K = len(TRAITS)
errors_of = st.lists(st.floats(-1.4, 1.4), min_size=2, max_size=8)


def fitted(errors: list[float]) -> Correction:
    """Launches one trait apart, each known well on GPUs."""
    n = len(errors)
    traits = np.zeros((n, K))
    traits[:, 0] = 5.0 * np.arange(n)
    names = [(f"application {k}", "kernel", "small") for k in range(n)]
    return fit_correction(traits, names, np.ones(n, np.int64), np.zeros(n), np.array(errors))


def corrected(correction: Correction, traits: Reals, kinds: list[int], memory: Reals) -> tuple[Reals, Reals]:
    return correction.of(correction.distances(traits), np.array(kinds), memory)


@given(errors_of)
def test_beside_a_launch_its_error_is_taken_in_part_and_more_on_its_own_kind(errors: list[float]) -> None:
    correction = fitted(errors)
    shift, explained = corrected(correction, correction.traits, [0, 1, 2], np.zeros((len(errors), 3)))
    assert (explained[:, 1] >= explained[:, 2]).all()
    assert (explained[:, 2] >= explained[:, 0]).all()
    assert ((explained >= 0) & (explained <= 1)).all()
    # Nothing is corrected by more than the largest error, and neighbours pull towards each other.
    assert np.abs(shift).max() <= np.abs(errors).max() + 1e-9


@given(errors_of, st.floats(0, 30))
def test_what_is_explained_falls_with_distance(errors: list[float], away: float) -> None:
    correction = fitted(errors)
    near, far = (np.full((1, K), -distance / np.sqrt(K)) for distance in (away, away + 1))
    _, of_near = corrected(correction, near, [1], np.zeros((1, 1)))
    _, of_far = corrected(correction, far, [1], np.zeros((1, 1)))
    assert of_near[0, 0] >= of_far[0, 0] - 1e-9
    nowhere = corrected(correction, np.full((1, K), 1e3), [1], np.zeros((1, 1)))
    assert np.abs(nowhere).max() < 1e-6


@given(errors_of)
def test_errors_of_launches_that_are_merely_similar_are_not_those_of_a_launch(errors: list[float]) -> None:
    """A distance of two is that of a lattice Boltzmann method from an FFT."""
    away = np.full((1, K), -2.0 / np.sqrt(K))
    shift, explained = corrected(fitted(errors), away, [1], np.zeros((1, 1)))
    assert np.abs(shift).max() <= 0.03 * np.abs(errors).max()
    assert explained.max() > 0.02


@given(errors_of, st.floats(0, 1))
def test_where_memory_takes_the_time_others_errors_say_less(errors: list[float], memory: float) -> None:
    correction = fitted(errors)
    without, explained = corrected(correction, correction.traits, [1], np.zeros((len(errors), 1)))
    some, same = corrected(correction, correction.traits, [1], np.full((len(errors), 1), memory))
    np.testing.assert_allclose(some, without * (1 - memory / 2))
    np.testing.assert_array_equal(explained, same)


def test_no_application_has_more_launches_than_the_most_that_count() -> None:
    traits = np.random.default_rng(0).normal(size=(100, K))
    names = [("one", "kernel", str(k)) for k in range(100)]
    assert len(fit_correction(traits, names, np.ones(100, np.int64), *np.zeros((2, 100))).names) == 25
