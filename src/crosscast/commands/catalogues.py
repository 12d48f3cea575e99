"""Lists, details, comparisons: ``devices``, ``models``, ``dataset sources`` and ``compare``."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

from crosscast.cli.dataset import DatasetSources
from crosscast.cli.evaluate import Models
from crosscast.cli.machine import CompareDevices, Devices
from crosscast.cli.options import LAUNCH, LaunchOptions, names_in
from crosscast.cli.profiles import Compare
from crosscast.commands.files import read_profiles
from crosscast.commands.output import show, warn_about
from crosscast.comparison import Condition, contents_of, kind_of
from crosscast.comparison import compare as compared
from crosscast.data.sources import IMPORTERS
from crosscast.devices.architectures import known_of
from crosscast.devices.catalogue import catalogue, filtered
from crosscast.errors import InputError
from crosscast.forecasting import STORED
from crosscast.prediction.named_models import PLUGINS, load_model, model_named, named_models
from crosscast.profile import Profile
from crosscast.report.cards import comparison_report, model_report, models_report, sources_report
from crosscast.report.devices import (
    catalogue_report,
    data_sheets_report,
    device_comparison_report,
    device_report,
    devices_report,
)


def devices(options: Devices) -> None:
    """Run ``crosscast devices``."""
    words = {"NAME": options.name, "--vendor": options.vendor, "--type": options.kind}
    if options.catalogue or options.vendor or options.kind:
        texts = [] if options.name is None else names_in("NAME", options.name)
        rows = filtered(texts, options.vendor, options.kind)
        if not rows:
            vendors = ", ".join(dict.fromkeys(row.text("vendor") for row in catalogue().values()))
            expected = f"devices of the catalogue (of {vendors}) that all of its words fit"
            where = ", ".join(f"{word} {value}" for word, value in words.items() if value is not None)
            raise InputError.of(where=where, expected=expected, found="none")
        report = data_sheets_report if any(words.values()) else catalogue_report
        show(options.output, lambda: rows, lambda: report(rows))
    elif options.name is not None:
        known = known_of(options.name)
        show(options.output, known.to_dict, lambda: device_report(known))
    else:
        # Imported here, as the catalogue needs no OpenCL and no pyarrow.
        from crosscast.measure.inventory import inventory

        entries = inventory()
        show(options.output, lambda: [each.to_dict() for each in entries], lambda: devices_report(entries))


def compare_devices(options: CompareDevices) -> None:
    """Run ``crosscast devices compare``."""
    # Imported here, as a list of devices needs no models.
    from crosscast.comparison.devices import compare_devices as both

    comparison = both(options.first, options.second)
    warn_about(zip(comparison.forecast.labels, comparison.forecast.warnings, strict=True))
    show(options.output, comparison.to_dict, lambda: device_comparison_report(comparison))


def models(options: Models) -> None:
    """Run ``crosscast models``."""
    if options.name is None:
        listed = named_models()
        plugins = {entry.name: entry.dist.name if entry.dist else "" for entry in entry_points(group=PLUGINS)}
        answer = {"models": [model.to_dict() for model in listed], "of_packages": plugins}
        show(options.output, lambda: answer, lambda: models_report(listed, plugins))
        return
    model = model_named(options.name)
    card = load_model(model.folder).card
    described = {**model.to_dict(), "card": card.to_dict()}
    show(options.output, lambda: described, lambda: model_report(model, card))


def sources(options: DatasetSources) -> None:
    """Run ``crosscast dataset sources``."""
    rows = [importer.to_dict() for importer in IMPORTERS.values()]
    show(options.output, lambda: rows, lambda: sources_report(rows))


DIFFERS = 3
"""Exit code if a condition holds, which is neither wrong input nor a failure of the machine."""


def compare(options: Compare) -> int:
    """Run ``crosscast compare``."""
    for text in options.fail_on:
        Condition.parse(text)
    # Profiles are read here, so that launches are characterized with progress.
    left, right = (
        contents_of(path, _profiles(path, options.launch) if kind_of(path) == "profiles" else None)
        for path in (options.first, options.second)
    )
    comparison = compared(left, right, options.fail_on)
    show(options.output, comparison.to_dict, lambda: comparison_report(comparison))
    return 0 if comparison.passes else DIFFERS


def _profiles(path: Path, launch: LaunchOptions) -> list[Profile]:
    """Read the profiles of a side; launch options apply to programs only, not to stored profiles."""
    return read_profiles(path, LAUNCH if path.suffix in STORED else launch)[0]
