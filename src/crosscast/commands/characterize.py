"""``crosscast characterize``: launches of files or options, and outputs of their profiles."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from crosscast.characterization import run
from crosscast.characterization.engine import runtime_objects
from crosscast.characterization.launchfiles.simfile import render_dumps
from crosscast.cli.options import IN_LAUNCHFILE, FigureOutput, LaunchOptions, bytes_in
from crosscast.cli.profiles import CharacterizeOptions
from crosscast.commands.launch import read_inputs, replay_trace, run_launch, show_launches
from crosscast.commands.output import (
    LaunchesStatus,
    check_file,
    check_output,
    check_picture,
    page_of,
    print_json,
    raise_last,
    say,
    tell,
    warn,
)
from crosscast.data.files import make_folder
from crosscast.data.profiles import csv_header, csv_row, require_pyarrow, write_aiwc, write_parquet
from crosscast.errors import CompileError, InputError, UnsupportedError
from crosscast.profile import Profile, doubts
from crosscast.report.profiles import MOST_PROFILES, kiviat, profiles_report, write_kiviat
from crosscast.tracing.trace import is_trace


@dataclass
class Outputs:
    """Receives each profile when it is done, and writes the files at the end."""

    form: Literal["table", "json", "csv"] = "table"  # Format on standard output
    aiwc_folder: Path | None = None  # Folder for the published tool's CSV files, if requested
    parquet: Path | None = None  # Paths of the Parquet table, the Kiviat figure and the page, if requested
    plot: Path | None = None
    html: Path | None = None
    everything: bool = False  # Whether the table has all metrics and counts, not only a summary
    profiles: list[Profile] = field(default_factory=list)  # Finished profiles

    def prepare(self) -> None:
        """Raise an error before the run unless all outputs can be written."""
        if self.aiwc_folder is not None and self.aiwc_folder.exists() and not self.aiwc_folder.is_dir():
            raise InputError.of(where="--aiwc", expected="a folder", found=f"the file {self.aiwc_folder}")
        for flag, path in (("--parquet", self.parquet), ("--plot", self.plot)):
            if path is not None:
                check_file(flag, path)
        if self.parquet is not None:
            require_pyarrow()
        if self.plot is not None:
            check_picture("--plot", self.plot)
        if self.html is not None:
            check_output(FigureOutput(html=self.html))

    def add(self, profile: Profile, dump: str | None = None) -> None:
        """Take a finished profile, with the text of the arguments to dump if there is one."""
        self.profiles.append(profile)
        if unset := profile.launch.get("unset_variables"):
            warn(
                f"{profile.kernel} reads {', '.join(unset)}, which nothing sets: zeros; loops may be empty; "
                f"set with --variable {unset[0]}=TYPE=VALUE, or [[variable]] in a launch file"
            )
        for doubt in doubts({"read_beyond": profile.launch.get("read_beyond", {})}):
            warn(f"{profile.kernel} {doubt}; --check-bounds tells the work-item and the line")
        if self.form == "json":
            row = profile.to_dict() if dump is None else {**profile.to_dict(), "dump": dump}
            print_json(row)
        elif self.form == "csv":
            self._print_csv(profile)
            print(profile.printed + (dump or ""), end="", file=sys.stderr, flush=True)
        else:
            print(profile.printed + (dump or ""), end="", flush=True)
        if self.aiwc_folder is not None:
            self._write_aiwc(profile, self.aiwc_folder)

    def finish(self) -> None:
        """Show the table and write the files, with the finished profiles."""
        if not self.profiles:
            return
        if self.form == "table":
            profiles_report(self.profiles, everything=self.everything).print(sys.stdout)
        if self.parquet is not None:
            self._write("--parquet", self.parquet, write_parquet)
        if self.plot is not None:
            self._write("--plot", self.plot, write_kiviat)
        if self.html is not None:
            figures = (
                {"Kiviat figure of the profiles": kiviat(self.profiles)}
                if len(self.profiles) <= MOST_PROFILES
                else {}
            )
            report = profiles_report(self.profiles, everything=True)
            tell(f"wrote {page_of(report, figures).write_html(self.html)}")

    def _write(self, flag: str, path: Path, write: Callable[[list[Profile], Path], None]) -> None:
        try:
            write(self.profiles, path)
        except OSError as error:
            raise InputError(f"{flag}: cannot write {path} ({error.strerror or error})") from error
        print(f"wrote {path}", file=sys.stderr)

    def _write_aiwc(self, profile: Profile, folder: Path) -> None:
        make_folder(folder, "--aiwc")
        invocation = sum(other.kernel == profile.kernel for other in self.profiles) - 1
        print(f"wrote {write_aiwc(profile, folder, invocation)}", file=sys.stderr)

    def _print_csv(self, profile: Profile) -> None:
        if len(self.profiles) == 1:
            print(csv_header())
        print(csv_row(profile), flush=True)


def characterize(file: Path, /, *more: Path, options: CharacterizeOptions) -> None:
    """Run ``crosscast characterize``."""
    if options.launches:
        for path in (file, *more):
            show_launches(path, options.launch, as_json=options.json)
        return

    runtime_objects.start()

    if options.json and options.csv:
        raise InputError("--json and --csv both want standard output: choose one")
    sample_groups = options.launch.sampled("all")
    if options.aiwc is not None and sample_groups != "all":
        raise InputError(
            "--aiwc: the published tool's metrics are of all work-groups; leave --sample-groups out"
        )
    if options.threads is not None and options.threads < 1:
        raise InputError.of(where="--threads", expected="at least 1", found=f"{options.threads}")
    if not options.timeout > 0:
        raise InputError.of(where="--timeout", expected="more than 0 seconds", found=f"{options.timeout:g}")
    outputs = Outputs(
        "json" if options.json else "csv" if options.csv else "table",
        options.aiwc,
        options.parquet,
        options.plot,
        options.html,
        options.all,
    )
    limit = options.memory_limit
    memory_limit = None if limit is None else bytes_in("--memory-limit", limit)
    how = run.Options(
        threads=options.threads,
        check_bounds=options.check_bounds,
        timeout_s=options.timeout,
        memory_limit=memory_limit,
        published=options.aiwc is not None,
        host_time=True,
        sample_groups=sample_groups,
    )
    outputs.prepare()
    _run((file, *more), options.launch, outputs, how)


def _run(files: Sequence[Path], direct: LaunchOptions, outputs: Outputs, how: run.Options) -> None:
    """Characterize all launches; finished profiles are shown even if a later launch fails.

    A kernel that is refused does not stop the launches of others.
    """
    refused: list[CompileError | UnsupportedError] = []
    try:
        # One file after the other, as the arguments of all may exceed the memory.
        for file in files:
            if is_trace(file):
                _of_trace(file, direct, outputs, how)
                continue
            inputs = read_inputs(file, direct)
            with LaunchesStatus(len(inputs.launches)) as status:
                for launch in inputs.launches:
                    try:
                        profile = run_launch(launch, len(outputs.profiles), how)
                    except (CompileError, UnsupportedError) as error:
                        refused.append(error)
                    else:
                        outputs.add(profile, render_dumps(inputs.simfile) if inputs.simfile else None)
                    status.advance()
    finally:
        outputs.finish()
    raise_last(refused)


def _of_trace(folder: Path, direct: LaunchOptions, outputs: Outputs, how: run.Options) -> None:
    """Characterize a launch of each class of a recorded program, with warnings about failed replays."""
    direct.refuse(folder, IN_LAUNCHFILE)
    summary, replayed = replay_trace(folder, how)
    interpolated = 0
    for launch_class, replay in zip(summary.classes, replayed, strict=True):
        if replay.profile is not None:
            outputs.add(replay.profile, None)
        elif replay.refused:
            warn(f"{launch_class.kernel} {launch_class.size_label}: {replay.refused}")
        else:
            interpolated += 1
    if interpolated:
        say(f"note: {interpolated} sizes between those of the same kernel are not characterized")
    if not any(replay.profile for replay in replayed):
        raise InputError.of(where=folder, expected="a launch that can be run again", found="none")
