"""Traces that tests make up."""

from pathlib import Path

import numpy as np

from crosscast.cluster.swf import NAMES, SwfHeader, Trace

SOUND = "{job} {submit} 5 100 4 -1 -1 4 200 -1 1 7 1 -1 -1 -1 -1 -1"


def sound_line(job: int = 1, submit: float = 0) -> str:
    return SOUND.format(job=job, submit=submit)


def line_with(**fields: object) -> str:
    """A sound line but for some fields, by the names of their columns."""
    cells = dict(zip(NAMES, sound_line().split(), strict=True)) | {
        name: str(value) for name, value in fields.items()
    }
    return " ".join(cells.values())


def written(folder: Path, *lines: str, name: str = "made.swf") -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def trace_with(*, header: dict[str, str] | None = None, **columns: list[float]) -> Trace:
    """A trace of these columns; the others hold what sound lines do, or nothing."""
    count = len(next(iter(columns.values())))
    sound = {"submit_s": 0.0, "run_s": 100.0, "procs": 4.0, "requested_s": 200.0, "status": 1.0}
    filled = {name: np.full(count, sound.get(name, np.nan)) for name in NAMES}
    filled["job"] = np.arange(1.0, count + 1)
    filled |= {name: np.array(cells, dtype=np.float64) for name, cells in columns.items()}
    return Trace("made", SwfHeader(header or {}), filled)
