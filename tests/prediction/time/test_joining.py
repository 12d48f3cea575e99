"""A device joins the model of launch times: what is learned of it, what stays, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import crosscast
from crosscast.devices.catalogue import device_named
from crosscast.errors import InputError
from crosscast.prediction.time.joining import joined, launch_tables_of
from crosscast.prediction.time.launch_model import TrainedLaunchTimes
from support.streams import stream, times_of_streams

NEW = replace(device_named("gtx1080ti"), key="here")


@pytest.fixture(scope="module")
def model() -> TrainedLaunchTimes:
    model = crosscast.load_model("launch-times")
    assert isinstance(model, TrainedLaunchTimes)
    return model


@pytest.mark.parametrize("slower", [0.8, 1.0, 1.5])
def test_what_a_device_reaches_is_learned(model: TrainedLaunchTimes, slower: float) -> None:
    after, held_out = joined(model, times_of_streams(model, NEW, slower))
    profile = stream(1 << 24, accesses=3)
    ratio = after.predict(profile, ["here"]).centre[0, 0] / model.predict(profile, [NEW]).centre[0, 0]
    assert ratio == pytest.approx(slower, rel=0.15)
    assert held_out.median_error < 0.2
    assert held_out.coverage > 0.75
    facts = after.card.calibrated
    assert facts is not None
    assert (facts.device, facts.applications) == ("here", ("app0", "app1", "app2"))


def test_other_devices_stay_as_they_are(model: TrainedLaunchTimes) -> None:
    after, _ = joined(model, times_of_streams(model, NEW, 1.5))
    assert [each.key for each in after.devices] == [*(each.key for each in model.devices), "here"]
    # Like launches on devices of its kind alone take something of what was measured.
    profile = stream(1 << 24)
    for key in ("i7-6700k", "knl"):
        before, now = (each.predict(profile, [key]).centre[0, 0] for each in (model, after))
        assert now == pytest.approx(before, rel=0.15)


def test_times_that_agree_make_it_surer_than_a_data_sheet(model: TrainedLaunchTimes) -> None:
    after, _ = joined(model, times_of_streams(model, NEW, 1.0))
    profile = stream(1 << 24)
    width = {
        name: float(np.log(predicted.high / predicted.low)[0, 0])
        for name, predicted in (
            ("sheet", model.predict(profile, [NEW])),
            ("joined", after.predict(profile, ["here"])),
        )
    }
    assert width["joined"] < width["sheet"]


def test_one_application_is_too_few(model: TrainedLaunchTimes) -> None:
    with pytest.raises(InputError, match="expected times of two applications or more, found app0"):
        joined(model, times_of_streams(model, NEW, 1.0, applications=1))


def test_a_dataset_whose_profiles_were_not_counted_is_refused() -> None:
    with pytest.raises(InputError, match="profiles: expected counts by sub-groups"):
        launch_tables_of(crosscast.bundled_dataset(), NEW)
