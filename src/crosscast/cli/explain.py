"""``crosscast explain``: what bounds kernels on devices, and what to try."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crosscast.cli.launch import LAUNCH, OfLaunch
from crosscast.cli.options import OUTPUT, Application, Names, Output, Repeated
from crosscast.cli.predict import only_named

__all__ = ["explain"]


def explain(
    file: Path,
    /,
    *more: Path,
    devices: Annotated[Names | None, Parameter(show_default=False)] = None,
    device_file: Annotated[tuple[Path, ...], Repeated] = (),
    application: Application = None,
    launch: OfLaunch = LAUNCH,
    output: Output = OUTPUT,
) -> None:
    """Say what bounds a kernel on a device: memory, compute, launch or latency; why, and what to try.

    What bounds it follows from the profile and the device's data sheet alone (docs/verdicts.md). Beside it
    stand the forecast and what its time is spent on, as `crosscast predict` makes them. FILE is what that
    takes.

    Parameters
    ----------
    file
        What to explain.
    more
        Further files.
    devices
        Devices of the catalogue, separated by commas (`crosscast devices --catalogue`); by default h100-sxm,
        rtx4090 and epyc-9654.
    device_file
        Data sheet (TOML) of a further device; may be repeated.
    """
    output.check()
    # Imported here: `--help` needs no NumPy.
    from crosscast.cli.files import read_profiles
    from crosscast.devices.catalogue import device_named
    from crosscast.devices.device_files import read_device
    from crosscast.forecasting import forecast_beside
    from crosscast.roofline import DEVICES, verdicts_of

    named = devices if devices is not None else () if device_file else DEVICES
    chosen = [*map(device_named, named), *map(read_device, device_file)]
    profiles = [each for path in (file, *more) for each in read_profiles(path, launch)[0]]
    profiles = only_named(profiles, application, launch.kernel)
    found = verdicts_of(profiles, chosen)
    forecast = forecast_beside(profiles, chosen)
    from crosscast.report.verdict import roofline_figures, verdicts_report

    output.show(
        lambda: (
            {"verdicts": [each.to_dict() for each in found.verdicts]}
            | ({} if forecast is None else {"forecasts": forecast.to_dict()["kernels"]})
        ),
        lambda: verdicts_report(found, forecast),
        lambda: roofline_figures(found.verdicts),
    )
