"""Where profiles go: standard output in one form, and the files that were asked for."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from crosscast.errors import InputError
from crosscast.profile import Profile

__all__ = ["Outputs"]


@dataclass
class Outputs:
    """Receives each profile when it is done, and writes the files at the end.

    Parameters
    ----------
    form
        What standard output gets: a table for people, JSON, or CSV.
    aiwc_folder
        Folder for the published tool's CSV files, if wanted.
    parquet, plot
        Path of the Parquet table and of the Kiviat picture, if wanted.
    profiles
        What has arrived.
    """

    form: Literal["table", "json", "csv"] = "table"
    aiwc_folder: Path | None = None
    parquet: Path | None = None
    plot: Path | None = None
    profiles: list[Profile] = field(default_factory=list)

    def prepare(self) -> None:
        """Refuse what cannot be written, before a long run rather than after it.

        Raises
        ------
        InputError
            If a folder does not exist.
        MissingExtraError
            If an optional part is not installed.
        """
        if self.aiwc_folder is not None and self.aiwc_folder.exists() and not self.aiwc_folder.is_dir():
            raise InputError(f"--out: expected a folder, found the file {self.aiwc_folder}")
        for flag, path in (("--parquet", self.parquet), ("--plot", self.plot)):
            if path is not None and not path.absolute().parent.is_dir():
                raise InputError(f"{flag}: the folder {path.absolute().parent} does not exist")
        if self.parquet is not None:
            from crosscast.tables.profiles import require_pyarrow

            require_pyarrow()
        if self.plot is not None:
            from crosscast.report.canvas import require_matplotlib
            from crosscast.report.kiviat import check_format

            require_matplotlib()
            check_format(self.plot)

    def add(self, profile: Profile, dump: str | None = None) -> None:
        """Take a finished profile, with the text of the arguments to dump if there is one."""
        self.profiles.append(profile)
        if self.form == "json":
            row = profile.to_dict() if dump is None else {**profile.to_dict(), "dump": dump}
            print(json.dumps(row, allow_nan=False), flush=True)
        elif self.form == "csv":
            self._print_csv(profile)
            print(profile.printed + (dump or ""), end="", file=sys.stderr, flush=True)
        else:
            print(profile.printed + (dump or ""), end="", flush=True)
        if self.aiwc_folder is not None:
            self._write_aiwc(profile, self.aiwc_folder)

    def finish(self) -> None:
        """Show the table and write the files, with the profiles that have arrived."""
        if not self.profiles:
            return
        if self.form == "table":
            from crosscast.report.table import print_table

            print_table(self.profiles, sys.stdout)
        if self.parquet is not None:
            from crosscast.tables.profiles import write_parquet

            self._write("--parquet", self.parquet, write_parquet)
        if self.plot is not None:
            from crosscast.report.kiviat import write_kiviat

            self._write("--plot", self.plot, write_kiviat)

    def _write(self, flag: str, path: Path, write: Callable[[list[Profile], Path], None]) -> None:
        try:
            write(self.profiles, path)
        except OSError as error:
            raise InputError(f"{flag}: cannot write {path} ({error.strerror or error})") from error
        print(f"wrote {path}", file=sys.stderr)

    def _write_aiwc(self, profile: Profile, folder: Path) -> None:
        from crosscast.tables.aiwc import write_aiwc
        from crosscast.tables.whole_file import make_folder

        make_folder("--out", folder)
        print(f"wrote {write_aiwc(profile, folder)}", file=sys.stderr)

    def _print_csv(self, profile: Profile) -> None:
        from crosscast.tables.profiles import csv_header, csv_row

        if len(self.profiles) == 1:
            print(csv_header())
        print(csv_row(profile), flush=True)
