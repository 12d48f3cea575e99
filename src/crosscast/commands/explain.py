"""``crosscast explain``: what bounds kernels on devices, and what to try."""

from __future__ import annotations

from pathlib import Path

from crosscast.commands.files import only_named, read_profiles
from crosscast.commands.launch_options import LaunchOptions
from crosscast.commands.options import Output
from crosscast.commands.output import check_output, show
from crosscast.devices.catalogue import device_named
from crosscast.devices.device_files import read_device
from crosscast.forecasting import forecast_beside
from crosscast.report.verdict import roofline_figures, verdicts_report
from crosscast.roofline import DEVICES, verdicts_of


def explain(
    file: Path,
    /,
    *more: Path,
    devices: list[str] | None,
    device_file: tuple[Path, ...],
    application: str | None,
    launch: LaunchOptions,
    output: Output,
) -> None:
    """Run ``crosscast explain``."""
    check_output(output)

    named = devices if devices is not None else () if device_file else DEVICES
    chosen = [*map(device_named, named), *map(read_device, device_file)]
    profiles = [each for path in (file, *more) for each in read_profiles(path, launch)[0]]
    profiles = only_named(profiles, application, launch.kernel)
    found = verdicts_of(profiles, chosen)
    forecast = forecast_beside(profiles, chosen)

    show(
        output,
        lambda: (
            {"verdicts": [each.to_dict() for each in found.verdicts]}
            | ({} if forecast is None else {"forecasts": forecast.to_dict()["kernels"]})
        ),
        lambda: verdicts_report(found, forecast),
        lambda: roofline_figures(found.verdicts),
    )
