"""``crosscast explain``: what bounds kernels on devices, and what to try."""

from __future__ import annotations

from pathlib import Path

from crosscast.cli.profiles import ExplainOptions
from crosscast.commands.files import only_named, read_profiles
from crosscast.commands.output import check_output, show
from crosscast.devices.catalogue import device_named
from crosscast.devices.device_files import read_device
from crosscast.forecasting import forecast_beside
from crosscast.report.verdict import roofline_figures, verdicts_report
from crosscast.roofline import DEVICES, verdicts_of


def explain(file: Path, /, *more: Path, options: ExplainOptions) -> None:
    """Run ``crosscast explain``."""
    check_output(options.output)

    named = options.devices if options.devices is not None else () if options.device_file else DEVICES
    chosen = [*map(device_named, named), *map(read_device, options.device_file)]
    profiles = [each for path in (file, *more) for each in read_profiles(path, options.launch)[0]]
    profiles = only_named(profiles, options.application, options.launch.kernel)
    found = verdicts_of(profiles, chosen)
    forecast = forecast_beside(profiles, chosen)

    show(
        options.output,
        lambda: (
            {"verdicts": [each.to_dict() for each in found.verdicts]}
            | ({} if forecast is None else {"forecasts": forecast.to_dict()["kernels"]})
        ),
        lambda: verdicts_report(found, forecast),
        lambda: roofline_figures(found.verdicts),
    )
