"""``crosscast devices``: those of this machine, the catalogue, what is known of one, and two side by side."""

from __future__ import annotations

from typing import Annotated, Literal

import cyclopts

from crosscast import commands
from crosscast.cli.dispatch import runs
from crosscast.commands.options import OUTPUT, Flag, Output

__all__ = ["app"]


@runs(lambda: commands.devices.devices)
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


@runs(lambda: commands.devices.compare)
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


app = cyclopts.App(name="devices")
app.default(devices)
app.command(compare)
