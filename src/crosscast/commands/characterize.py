"""``crosscast characterize``: launches of files or options, and outputs of their profiles."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from crosscast.characterization import run
from crosscast.characterization.engine import runtime_objects
from crosscast.characterization.launchfiles.simfile import render_dumps
from crosscast.cli.options import IN_LAUNCHFILE, FigureOutput
from crosscast.cli.profiles import Characterize
from crosscast.commands import output
from crosscast.commands.launch import read_inputs, replay_trace, run_launch, show_launches
from crosscast.commands.output import raise_last, say, tell, warn
from crosscast.data.files import make_folder
from crosscast.data.profiles import csv_header, csv_row, require_pyarrow, write_aiwc, write_parquet
from crosscast.errors import CompileError, InputError, UnsupportedError
from crosscast.profile import Profile, doubts
from crosscast.report.profiles import MOST_PROFILES, kiviat, profiles_report, write_kiviat
from crosscast.tracing.trace import is_trace


@dataclass
class Outputs:
    """Receives each profile when it is done, and writes the files at the end."""

    options: Characterize
    profiles: list[Profile] = field(default_factory=list)  # Finished profiles

    def prepare(self) -> None:
        """Raise an error before the run unless all outputs can be written."""
        aiwc, parquet, plot = self.options.aiwc, self.options.parquet, self.options.plot
        if aiwc is not None and aiwc.exists() and not aiwc.is_dir():
            raise InputError.of(where="--aiwc", expected="a folder", found=f"the file {aiwc}")
        if parquet is not None:
            output.check_file("--parquet", parquet)
            require_pyarrow()
        if plot is not None:
            output.check_file("--plot", plot)
            output.check_picture("--plot", plot)
        output.check_output(FigureOutput(html=self.options.html))

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
        if self.options.json:
            output.print_json(profile.to_dict() if dump is None else {**profile.to_dict(), "dump": dump})
        else:
            if self.options.csv:
                header = [csv_header()] if len(self.profiles) == 1 else []
                print(*header, csv_row(profile), sep="\n", flush=True)
            stream = sys.stderr if self.options.csv else sys.stdout
            print(profile.printed + (dump or ""), end="", file=stream, flush=True)
        if self.options.aiwc is not None:
            make_folder(self.options.aiwc, "--aiwc")
            invocation = sum(other.kernel == profile.kernel for other in self.profiles) - 1
            tell(f"wrote {write_aiwc(profile, self.options.aiwc, invocation)}")

    def finish(self) -> None:
        """Show the table and write the files, with the finished profiles."""
        if not self.profiles:
            return
        options = self.options
        if not options.json and not options.csv:
            profiles_report(self.profiles, everything=options.all).print(sys.stdout)
        for flag, path, write in (
            ("--parquet", options.parquet, write_parquet),
            ("--plot", options.plot, write_kiviat),
        ):
            if path is None:
                continue
            try:
                write(self.profiles, path)
            except OSError as error:
                raise InputError(f"{flag}: cannot write {path} ({error.strerror or error})") from error
            tell(f"wrote {path}")
        if options.html is not None:
            many = len(self.profiles) > MOST_PROFILES
            figures = {} if many else {"Kiviat figure of the profiles": kiviat(self.profiles)}
            report = profiles_report(self.profiles, everything=True)
            tell(f"wrote {output.page_of(report, figures).write_html(options.html)}")


def characterize(options: Characterize) -> None:
    """Run ``crosscast characterize``."""
    files = (options.file, *options.more)
    if options.launches:
        for path in files:
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
    how = run.Options(
        threads=options.threads,
        check_bounds=options.check_bounds,
        timeout_s=options.timeout,
        memory_limit=options.memory_limit,
        published=options.aiwc is not None,
        host_time=True,
        sample_groups=sample_groups,
    )
    outputs = Outputs(options)
    outputs.prepare()
    # Finished profiles are shown even if a later launch fails; a refused kernel does not stop the others.
    refused: list[CompileError | UnsupportedError] = []
    try:
        # One file after the other, as the arguments of all may exceed the memory.
        for file in files:
            if is_trace(file):
                _of_trace(file, outputs, how)
                continue
            inputs = read_inputs(file, options.launch)
            with output.LaunchesStatus(len(inputs.launches)) as status:
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


def _of_trace(folder: Path, outputs: Outputs, how: run.Options) -> None:
    """Characterize a launch of each class of a recorded program, with warnings about failed replays."""
    outputs.options.launch.refuse(folder, IN_LAUNCHFILE)
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
