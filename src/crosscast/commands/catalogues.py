"""``crosscast devices`` and ``models``: lists, details, and comparisons of two devices."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Literal

from crosscast.cli.options import Output, names_in
from crosscast.commands.output import check_output, show, warn_about
from crosscast.devices.catalogue import catalogue, filtered
from crosscast.devices.knowledge import known_of
from crosscast.errors import InputError
from crosscast.prediction.named_models import PLUGINS, load_model, model_named, named_models
from crosscast.report.catalogues import model_report, models_report
from crosscast.report.devices import catalogue_report, comparison_report, data_sheets_report, device_report


def devices(
    name: str | None,
    /,
    *,
    catalogue: bool,
    vendor: str | None,
    kind: Literal["cpu", "gpu", "accelerator"] | None,
    output: Output,
) -> None:
    """Run ``crosscast devices``."""
    check_output(output)
    if catalogue or vendor is not None or kind is not None:
        _list(name, vendor, kind, output)
    elif name is not None:
        _show(name, output)
    else:
        # Imported here, as the catalogue needs no OpenCL and no pyarrow.
        from crosscast.measure.inventory import inventory
        from crosscast.report.dataset import devices_report

        entries = inventory()
        show(output, lambda: [entry.to_dict() for entry in entries], lambda: devices_report(entries))


def _list(text: str | None, vendor: str | None, kind: str | None, output: Output) -> None:
    rows = filtered([] if text is None else names_in("NAME", text), vendor, kind)
    if not rows:
        vendors = ", ".join(dict.fromkeys(row.text("vendor") for row in catalogue().values()))
        filters = {"NAME": text, "--vendor": vendor, "--type": kind}
        words = ", ".join(f"{option} {value}" for option, value in filters.items() if value is not None)
        expected = f"devices of the catalogue (of {vendors}) that all of its words fit"
        raise InputError.of(where=words, expected=expected, found="none")
    is_complete = len(rows) == len(catalogue())
    show(output, lambda: rows, lambda: catalogue_report(rows) if is_complete else data_sheets_report(rows))


def _show(name: str, output: Output) -> None:
    known = known_of(name)
    show(output, known.to_dict, lambda: device_report(known))


def compare(first: str, second: str, /, *, output: Output) -> None:
    """Run ``crosscast devices compare``."""
    check_output(output)
    # Imported here, as a list of devices needs no models.
    from crosscast.comparison.devices import compare_devices

    comparison = compare_devices(first, second)
    warn_about(zip(comparison.forecast.labels, comparison.forecast.warnings, strict=True))
    show(output, comparison.to_dict, lambda: comparison_report(comparison))


def models(name: str | None, /, *, output: Output) -> None:
    """Run ``crosscast models``."""
    check_output(output)
    if name is None:
        listed = named_models()
        plugins = {entry.name: entry.dist.name if entry.dist else "" for entry in entry_points(group=PLUGINS)}
        show(
            output,
            lambda: {"models": [model.to_dict() for model in listed], "of_packages": plugins},
            lambda: models_report(listed, plugins),
        )
        return
    model = model_named(name)
    card = load_model(model.folder).card
    show(output, lambda: {**model.to_dict(), "card": card.to_dict()}, lambda: model_report(model, card))
