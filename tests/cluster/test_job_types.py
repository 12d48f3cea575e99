import numpy as np
import pytest
from made_types import made_types

from crosscast.cluster.job_types import for_machines
from crosscast.cluster.jobs import Machine
from crosscast.errors import InputError


def test_a_job_runs_as_often_as_it_repeats() -> None:
    np.testing.assert_array_equal(made_types().run_s[0], [20, np.nan, 5])
    assert len(made_types()) == 3


def test_machines_have_the_columns_of_their_devices_in_their_order() -> None:
    machines = [Machine("gpu", 2), Machine("quartz", 8, device="cpu"), Machine("ruby", 4, device="cpu")]
    types = for_machines(made_types(), machines)
    assert types.devices == ("gpu", "cpu", "cpu")
    np.testing.assert_array_equal(types.times_s, [[0.5, 2, 2], [np.nan, 3, 3], [0.1, np.nan, np.nan]])
    np.testing.assert_array_equal(types.predicted, [[0.25, 1, 1], [np.nan, np.nan, np.nan], [0.5, 1, 1]])
    assert types.application == made_types().application


@pytest.mark.parametrize("device", ["fpga", "phi"])
def test_a_machine_whose_device_no_job_has_times_for_is_refused(device: str) -> None:
    machines = [Machine("gpu", 2), Machine("cpu", 2), Machine("catalyst", 8, device=device)]
    message = (
        rf"machine catalyst: device: expected one on which jobs have times \(cpu, gpu\), found '{device}'"
    )
    with pytest.raises(InputError, match=message):
        for_machines(made_types(), machines)


def test_a_job_without_a_time_on_any_machine_is_refused() -> None:
    message = r"job type 2 \(lud\): times: expected one on a device of the machines \(gpu\), found cpu$"
    with pytest.raises(InputError, match=message):
        for_machines(made_types(), [Machine("gpu", 2)])
