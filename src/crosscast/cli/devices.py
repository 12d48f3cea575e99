"""``crosscast devices``: those of this machine, the catalogue, what is known of one, and two side by side."""

from __future__ import annotations

from typing import Annotated, Literal

import cyclopts

from crosscast.cli.options import OUTPUT, Flag, Output
from crosscast.errors import InputError

__all__ = ["app"]


def devices(
    name: str | None = None,
    /,
    *,
    catalogue: Flag = False,
    vendor: str | None = None,
    kind: Annotated[Literal["cpu", "gpu", "accelerator"] | None, cyclopts.Parameter(name="--type")] = None,
    output: Output = OUTPUT,
) -> None:
    """List the devices of this machine, say what is known of a device, and compare two.

    Those of this machine are its OpenCL devices, with their properties and working sensors; of a CPU, 1, 2,
    4, ... compute units are devices of their own: `pocl:0/1` is one core of `pocl:0`. What is known of a
    device of the catalogue, or of one that was calibrated, is its data sheet beside what was measured.

    Parameters
    ----------
    name
        The device; with `--catalogue`, a text that its key, name, vendor or architecture has.
    catalogue
        List the devices that come with Crosscast, for `crosscast predict --devices`, not this machine's;
        in short if nothing says which.
    vendor
        List those of this vendor alone.
    kind
        List those of this type alone.
    """
    output.check()
    if catalogue or vendor is not None or kind is not None:
        _list(name, vendor, kind, output)
    elif name is not None:
        _show(name, output)
    else:
        # Imported here: `--help` needs no OpenCL.
        from crosscast.measure.inventory import inventory
        from crosscast.report.dataset import devices_report

        found = inventory()
        output.show(lambda: [entry.to_dict() for entry in found], lambda: devices_report(found))


def _list(text: str | None, vendor: str | None, kind: str | None, output: Output) -> None:
    from crosscast.devices.catalogue import catalogue, filtered
    from crosscast.report.devices import catalogue_report, data_sheets_report

    rows = filtered(text, vendor, kind)
    if not rows:
        asked = {"NAME": text, "--vendor": vendor, "--type": kind}
        words = ", ".join(f"{option} {value}" for option, value in asked.items() if value is not None)
        vendors = ", ".join(dict.fromkeys(row["vendor"] for row in catalogue().values()))
        raise InputError(f"{words}: expected devices of the catalogue (of {vendors}), found none")
    whole = len(rows) == len(catalogue())
    output.show(lambda: rows, lambda: catalogue_report(rows) if whole else data_sheets_report(rows))


def _show(name: str, output: Output) -> None:
    from crosscast.devices.knowledge import known_of
    from crosscast.report.devices import device_report

    known = known_of(name)
    output.show(known.to_dict, lambda: device_report(known))


def compare(first: str, second: str, /, *, output: Output = OUTPUT) -> None:
    """Show two devices side by side, with ratios, and which kernels of the suite each is faster at.

    Times of the kernels are forecasts by the model `opencl-15-devices`, of the bundled profiles.

    Parameters
    ----------
    first
        A device of the catalogue, or one that was calibrated.
    second
        Another.
    """
    output.check()
    # Imported here: `--help` needs no NumPy.
    from crosscast.device_comparison import compare_devices
    from crosscast.report.devices import comparison_report

    found = compare_devices(first, second)
    output.show(found.to_dict, lambda: comparison_report(found))


app = cyclopts.App(name="devices")
app.default(devices)
app.command(compare)
