"""Cards and arrays of kept models, changed as damage or another program might."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crosscast.predict.artefact import CARD
from crosscast.tables.schema import json_text


def arrays_path(folder: Path) -> Path:
    """The file of the model's arrays."""
    (path,) = folder.glob("arrays-*.npz")
    return path


def rewrite_card(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the card and give it the checksum that it would have had."""
    path = folder / CARD
    card = json.loads(path.read_text())
    del card["sha256"]
    change(card)
    card["sha256"] = hashlib.sha256(json_text(card).encode()).hexdigest()
    path.write_text(json.dumps(card))
