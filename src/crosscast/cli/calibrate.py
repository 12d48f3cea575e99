"""``crosscast calibrate``: a device of this machine joins the bundled model of times."""

from __future__ import annotations

from crosscast.cli.options import OUTPUT, Output, check_place, tell
from crosscast.errors import InputError

__all__ = ["calibrate"]

_FIT_S = 20


def calibrate(*, device: str, minutes: float = 2.0, name: str = "mine", output: Output = OUTPUT) -> None:
    """Measure kernels of the suite on a device of this machine, and add it to the bundled model of times.

    From then on `crosscast predict` knows the device by its name. What was measured is kept in
    `XDG_DATA_HOME/crosscast`, by default `~/.local/share/crosscast`: the same command resumes a calibration
    that was interrupted, and one with more minutes adds to it.

    Parameters
    ----------
    device
        Device id, as `crosscast devices` shows it, such as `pocl:0`.
    minutes
        How long to measure; with less than about a quarter, few kernels can be measured.
    name
        What the device is called from now on.
    """
    # Imported here: `--help` needs no OpenCL and no NumPy.
    from crosscast.measure.subjects import expect_installed
    from crosscast.suite.registry import selected

    output.check()
    if not 0 < minutes <= 24 * 60:
        raise InputError(f"--minutes: expected more than 0, at most {24 * 60}, found {minutes:g}")
    expect_installed(selected(["all"]))
    from crosscast import calibration
    from crosscast.cli.running import LabelStatus
    from crosscast.measure.opencl import selected as selected_devices
    from crosscast.prediction.named_models import models_home
    from crosscast.report.models import calibration_report

    calibration.check_name(name)
    check_place("XDG_DATA_HOME", models_home())
    (chosen,) = selected_devices([device])
    tell(f"crosscast: measuring on {chosen.name} for {60 * minutes:.0f} s, then fitting for about {_FIT_S} s")
    with LabelStatus() as status:
        found = calibration.calibrate(chosen, name, seconds=60 * minutes, report=status)
    for note in found.notes:
        tell(f"crosscast: {note}")
    output.show(found.to_dict, lambda: calibration_report(found))
