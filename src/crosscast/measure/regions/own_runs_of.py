"""Runs on configurations out of the history of a program's regions."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

from crosscast.measure.regions.key import RegionKey
from crosscast.measure.regions.reading import read_history
from crosscast.tables.importers.configured_runs import DEFAULT_SIZE
from crosscast.tables.importers.own_runs import FoundRuns, OwnRun

__all__ = ["own_runs_of"]

_MOST_CHARACTERS = 120


def own_runs_of(path: Path) -> FoundRuns:
    """Read the runs of a history.

    The application, and its kernel, is the region. The size is what else tells runs apart: what the arguments
    are, and where the region was entered. Powers are as the history has them: that of a run may be over it
    and the short ones before it. Runs that failed, whose configuration is not known or that took no time are
    left out.

    Parameters
    ----------
    path
        The file, as `crosscast.profiled` writes it.

    Raises
    ------
    InputError
        If the file cannot be read or is not a history; names the line and the field.
    """
    history = read_history(path)
    runs = []
    left_out: Counter[str] = Counter()
    taken: dict[tuple[str, str], RegionKey] = {}
    keys = history.keys()
    for key in keys:
        size = _size(key)
        if taken.setdefault((key.name, size), key) != key:
            size = f"{size} {_digest(key)}"
        for number, run in enumerate(history.runs(key, failed=True), start=1):
            configuration = run.configuration
            if run.failure is not None:
                left_out["failed"] += 1
            elif configuration is None:
                left_out["without a configuration"] += 1
            elif not run.duration_s:
                left_out["without a time"] += 1
            else:
                # Where one of the domains is not known, the others are not the whole.
                powers_w = run.powers_w if run.power_w else {}
                where = f"{path}: {key}, run {number}"
                runs.append(
                    OwnRun(
                        key.name,
                        key.name,
                        size,
                        configuration,
                        run.duration_s,
                        run.power_w or None,
                        powers_w,
                        run.counters,
                        where,
                    )
                )
    return FoundRuns(runs, left_out=left_out)


def _size(key: RegionKey) -> str:
    arguments = ", ".join(key.arguments)
    text = " ".join([arguments or DEFAULT_SIZE, *(f"at {place}" for place in key.site)])
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}… {_digest(key)}"


def _digest(key: RegionKey) -> str:
    """Eight digits that tell a key apart from others of which the text begins alike."""
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:8]
