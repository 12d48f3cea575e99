"""``crosscast devices`` and ``models``: what there is, all about one, and two devices side by side."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Literal

from crosscast.cli.options import Output
from crosscast.commands.output import check_output, show
from crosscast.devices.catalogue import catalogue, filtered
from crosscast.devices.knowledge import known_of
from crosscast.errors import InputError
from crosscast.prediction.named_models import PLUGINS, load_model, named_models
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
        # Imported here: the catalogue needs no OpenCL and no pyarrow.
        from crosscast.measure.inventory import inventory
        from crosscast.report.dataset import devices_report

        found = inventory()
        show(output, lambda: [entry.to_dict() for entry in found], lambda: devices_report(found))


def _list(text: str | None, vendor: str | None, kind: str | None, output: Output) -> None:
    rows = filtered(text, vendor, kind)
    if not rows:
        asked = {"NAME": text, "--vendor": vendor, "--type": kind}
        words = ", ".join(f"{option} {value}" for option, value in asked.items() if value is not None)
        vendors = ", ".join(dict.fromkeys(row.text("vendor") for row in catalogue().values()))
        raise InputError.of(where=words, expected=f"devices of the catalogue (of {vendors})", found="none")
    whole = len(rows) == len(catalogue())
    show(output, lambda: rows, lambda: catalogue_report(rows) if whole else data_sheets_report(rows))


def _show(name: str, output: Output) -> None:
    known = known_of(name)
    show(output, known.to_dict, lambda: device_report(known))


def compare(first: str, second: str, /, *, output: Output) -> None:
    """Run ``crosscast devices compare``."""
    check_output(output)
    # Imported here: a list of devices needs no models.
    from crosscast.comparison.devices import compare_devices

    found = compare_devices(first, second)
    show(output, found.to_dict, lambda: comparison_report(found))


def models(name: str | None, /, *, output: Output) -> None:
    """Run ``crosscast models``."""
    check_output(output)
    found = {each.name: each for each in named_models()}
    if name is None:
        plugged = {each.name: each.dist.name if each.dist else "" for each in entry_points(group=PLUGINS)}
        show(
            output,
            lambda: {"models": [each.to_dict() for each in found.values()], "of_packages": plugged},
            lambda: models_report(list(found.values()), plugged),
        )
        return
    if name not in found:
        raise InputError.of(where="NAME", expected=f"one of {', '.join(found)}", found=repr(name))
    trained = load_model(found[name].folder)
    show(
        output,
        lambda: {**found[name].to_dict(), "card": trained.card.to_dict()},
        lambda: model_report(found[name], trained.card),
    )
