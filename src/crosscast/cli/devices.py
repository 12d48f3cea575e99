"""``crosscast devices``: the OpenCL devices of this machine, and the sensors that work."""

from __future__ import annotations

import json as json_format
import sys

from crosscast.cli.options import Flag

__all__ = ["devices"]


def devices(*, json: Flag = False) -> None:
    """List the OpenCL devices of this machine, with what their drivers say and the sensors that work.

    Of a CPU, 1, 2, 4, ... compute units are devices of their own: `pocl:0/1` is one core of `pocl:0`.

    Parameters
    ----------
    json
        Print a JSON list, one object a device.
    """
    # Imported here: `--help` needs no OpenCL.
    from crosscast.measure.inventory import inventory
    from crosscast.report.devices import print_devices

    found = inventory()
    if json:
        print(json_format.dumps([entry.to_dict() for entry in found], allow_nan=False))
    else:
        print_devices(found, sys.stdout)
