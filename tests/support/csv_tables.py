"""CSV files that commands read: profiles, and samples of regions."""

import csv
from collections.abc import Iterable
from pathlib import Path

from crosscast.data.profiles import csv_header, csv_row
from crosscast.measure.regions import History, RegionRun, samples_of
from crosscast.profile import Profile


def write_csv(profiles: Iterable[Profile], path: str | Path) -> None:
    Path(path).write_text("".join(f"{line}\n" for line in (csv_header(), *map(csv_row, profiles))))


def write_samples(runs: Iterable[RegionRun], path: Path) -> None:
    """Write runs of one key, all with the same columns."""
    history = History()
    for run in runs:
        history.record(run)
    keys = history.keys()
    rows = [row for key in keys for row in samples_of(history, key)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
