"""``crosscast characterize`` and ``embed``: profiles of launches, in files and in the kernel itself."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from crosscast.characterization import embedding, engine, run
from crosscast.characterization.embedding import EmbeddingTarget, read_content
from crosscast.characterization.launchfiles.simfile import render_dumps
from crosscast.characterization.run import Options
from crosscast.characterization.spirv import compile_module
from crosscast.cli.options import IN_LAUNCHFILE, LAUNCH, FigureOutput
from crosscast.cli.profiles import Characterize, Embed
from crosscast.commands import output
from crosscast.commands.launch import read_inputs, replay_trace, run_launch, show_launches
from crosscast.commands.output import print_json, raise_last, say, tell, warn
from crosscast.data.files import make_folder
from crosscast.data.profiles import (
    csv_header,
    csv_row,
    read_csv,
    read_parquet,
    require_pyarrow,
    write_aiwc,
    write_parquet,
)
from crosscast.errors import CompileError, InputError, UnsupportedError
from crosscast.kernel import LAUNCH_FILES, Launch, Program
from crosscast.profile import Profile, compiler_options, doubts
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
                raise InputError.of(
                    where=flag, problem=f"cannot write {path} ({error.strerror or error})"
                ) from error
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
    engine.start()
    if options.json and options.csv:
        raise InputError("--json and --csv both want standard output: choose one")
    sample_groups = options.launch.sampled("all")
    if options.aiwc is not None and sample_groups != "all":
        raise InputError.of(
            where="--aiwc",
            problem="the published tool's metrics are of all work-groups; leave --sample-groups out",
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
            launches, sim = read_inputs(file, options.launch)
            with output.LaunchesStatus(len(launches)) as status:
                for launch in launches:
                    try:
                        profile = run_launch(launch, len(outputs.profiles), how)
                    except (CompileError, UnsupportedError) as error:
                        refused.append(error)
                    else:
                        outputs.add(profile, render_dumps(sim) if sim else None)
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


def embed(options: Embed) -> None:
    """Run ``crosscast embed``."""
    if options.out is not None and options.in_place:
        raise InputError("--out and --in-place exclude each other: choose one")
    subject = _subject(options)
    path, content = subject.path, subject.program.content
    beside = options.out or _profiled(path)
    target = EmbeddingTarget.of(path, content, beside, in_place=options.in_place)
    spirv = options.spirv
    module = None if spirv == Path("none") else _module(spirv, beside, in_place=options.in_place)
    profiles = (
        _characterized(subject, options) if options.profiles is None else _stored(subject, options.profiles)
    )
    with_profiles = embedding.embed(content, profiles, str(path))
    reason = _write_module(*module, subject.bare, profiles) if module else None
    target.write(with_profiles)
    written = str(module[0].path) if module and not reason else None
    if options.json:
        listed = [profile.to_dict() for profile in profiles]
        print_json({"source": str(target.path), "spirv": written, "no_spirv": reason, "profiles": listed})
    else:
        paths = filter(None, (str(target.path), written))
        print(f"wrote {' and '.join(paths)} with {_named(profiles)}")
    if reason:
        say(f"no SPIR-V module is written: {reason}")


def _named(profiles: Sequence[Profile]) -> str:
    """Write the kernels with their numbers of launches for people."""
    kernels = Counter(profile.kernel for profile in profiles)
    parts = [name if count == 1 else f"{name} ({count} launches)" for name, count in kernels.items()]
    return f"the profile{'s' if len(profiles) > 1 else ''} of {', '.join(parts)}"


def _profiled(path: Path) -> Path:
    return path.with_name(f"{path.stem}.profiled{path.suffix}")


@dataclass(frozen=True)
class _Subject:
    """A source and its launches."""

    program: Program  # The source, as it is
    path: Path
    bare: Program  # The source without embedded profiles
    launches: tuple[Launch, ...]  # Launches of FILE; empty if it is the source


def _subject(options: Embed) -> _Subject:
    file, profiles, launch = options.file, options.profiles, options.launch
    launches: tuple[Launch, ...] = ()
    if profiles is not None and launch != LAUNCH:
        raise InputError.of(
            where="--profiles",
            problem="nothing to launch, as the table has the profiles; leave the launch out",
        )
    if file.suffix in LAUNCH_FILES or launch.described:
        launches = tuple(read_inputs(file, launch)[0])
        program = launches[0].kernel.program
    elif profiles is not None:
        program = Program.from_file(file)
    else:
        raise InputError.of(
            where=file,
            expected=(
                f"a launch file ({', '.join(LAUNCH_FILES)}), which names a source and says "
                "what to launch, or --profiles or a launch (--global 1024 --arg ...) beside a "
                "source"
            ),
        )
    if program.form != "opencl-c":
        raise InputError.of(where=program.label, expected="a source in OpenCL C", found=f"{program.form}")
    bare = replace(program, content=embedding.take_out(program.content, program.label)[0])
    return _Subject(program, program.path or file, bare, launches)


def _module(given: Path | None, beside: Path, *, in_place: bool) -> tuple[EmbeddingTarget, bytes | None, str]:
    """Output for the module, the given module without profiles, and its name for messages.

    It is read first, so that errors in it are raised before anything runs.
    """
    if given is None:
        path = beside.with_suffix(".spv")
        if path == beside:
            raise InputError.of(
                where="--out", expected="a name for the source with its profiles", found=f"{beside}"
            )
        return EmbeddingTarget.new(path), None, str(path)
    content = read_content(given)
    bare, _ = embedding.take_out_of_module(content, str(given))
    return EmbeddingTarget.of(given, content, _profiled(given), in_place=in_place), bare, str(given)


def _write_module(
    target: EmbeddingTarget, bare: bytes | None, where: str, program: Program, profiles: Sequence[Profile]
) -> str | None:
    """Write a module with profiles; return the reason if the compiler cannot make one."""
    try:
        bare = bare or compile_module(_as_profiled(program, profiles))
    except (CompileError, UnsupportedError) as error:
        # The second line has the compiler's first diagnostic.
        return str(error).splitlines()[:2][-1]
    target.write(embedding.embed_in_module(bare, profiles, where))
    return None


def _as_profiled(program: Program, profiles: Sequence[Profile]) -> Program:
    """Set the compiler options of the profiles."""
    settings = {(str(p.program.get("standard") or "1.2"), compiler_options(p.program)) for p in profiles}
    if len(settings) > 1:
        raise UnsupportedError.of(
            where=program.label, problem="its profiles were made with different compiler options"
        )
    ((standard, options),) = settings
    return replace(program, standard=standard, options=options)


def _characterized(subject: _Subject, options: Embed) -> list[Profile]:
    """Characterize each launch of the source without embedded profiles."""
    engine.start()
    how = Options(optimize=True, sample_groups=options.launch.sampled("all"))
    return [
        run_launch(replace(launch, kernel=replace(launch.kernel, program=subject.bare)), number, how)
        for number, launch in enumerate(subject.launches)
    ]


def _stored(subject: _Subject, table: Path) -> list[Profile]:
    """Read the profiles of a table that were made from the source, with or without embedded profiles."""
    profiles = read_csv(table) if table.suffix == ".csv" else read_parquet(table)
    hashes = {subject.program.sha256, subject.bare.sha256}
    chosen = [profile for profile in profiles if profile.program.get("sha256") in hashes]
    if not chosen:
        raise InputError.of(
            where=table,
            expected=f"profiles of {subject.path} as it is (SHA-256 {subject.bare.sha256[:12]}...)",
            found=f"{len(profiles)} of other sources",
        )
    return chosen
