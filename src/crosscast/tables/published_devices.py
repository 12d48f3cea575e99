"""The 15 devices of the published study, with the source of every number."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from typing import Any

__all__ = ["published_devices"]

_FILE = "published_devices.toml"
_DEFAULT = "{paper}"


def published_devices() -> list[dict[str, Any]]:
    """Rows of the table of devices, by their keys in the published data.

    Returns
    -------
    list of dict
        Cells by column, in the order of the paper's table II. What no source says is not there.
    """
    text = resources.files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    content = tomllib.loads(text)
    return [_row(device, cells, content["sources"]) for device, cells in content["devices"].items()]


def _row(device: str, cells: dict[str, Any], sources: dict[str, str]) -> dict[str, Any]:
    told = cells.pop("from", {})
    origin = {column: told.get(column, _DEFAULT).format_map(sources) for column in cells}
    return {"device": device, **cells, "sources": json.dumps(origin)}
