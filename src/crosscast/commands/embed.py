"""``crosscast embed``: write profiles into the kernel's source as a comment, and into its SPIR-V module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosscast.characterization.embedding import files
from crosscast.characterization.embedding import spirv as modules
from crosscast.characterization.embedding.files import EmbeddingTarget, read_content
from crosscast.characterization.engine import runtime_objects
from crosscast.characterization.run import Options
from crosscast.cli.options import LAUNCH
from crosscast.cli.profiles import Embed
from crosscast.commands.launch import read_inputs, run_launch
from crosscast.commands.output import print_json, say
from crosscast.data.profiles import read_csv, read_parquet
from crosscast.errors import CompileError, InputError, UnsupportedError
from crosscast.kernel import LAUNCH_FILES, Launch, Program
from crosscast.profile import Profile, compiler_options


def embed(options: Embed) -> None:
    """Run ``crosscast embed``."""
    if options.out is not None and options.in_place:
        raise InputError("--out and --in-place exclude each other: choose one")
    subject = _subject(options)
    path, content = subject.path, subject.program.content
    beside = options.out or _profiled(path)
    target = EmbeddingTarget.of(path, content, beside, in_place=options.in_place)
    module = None if options.spirv == Path("none") else _Module.of(options.spirv, beside, options.in_place)
    profiles = (
        _characterized(subject, options) if options.profiles is None else _stored(subject, options.profiles)
    )
    with_profiles = files.embed(content, profiles, str(path))
    reason = module.write(subject.bare, profiles) if module else None
    target.write(with_profiles)
    written = str(module.target.path) if module and not reason else None
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
        raise InputError("--profiles: nothing to launch, as the table has the profiles; leave the launch out")
    if file.suffix in LAUNCH_FILES or launch.described:
        launches = tuple(read_inputs(file, launch).launches)
        program = launches[0].kernel.program
    elif profiles is not None:
        program = Program.from_file(file)
    else:
        raise InputError(
            f"{file}: expected a launch file ({', '.join(LAUNCH_FILES)}), which names a source and says what "
            "to launch, or --profiles or a launch (--global 1024 --arg ...) beside a source"
        )
    if program.form != "opencl-c":
        raise InputError.of(where=program.label, expected="a source in OpenCL C", found=f"{program.form}")
    bare = replace(program, content=files.take_out(program.content, program.label)[0])
    return _Subject(program, program.path or file, bare, launches)


@dataclass(frozen=True)
class _Module:
    """The module into which the profiles are written."""

    target: EmbeddingTarget
    given: bytes | None  # The module without profiles; `None` if it is to be compiled
    where: str  # The module for messages

    @classmethod
    def of(cls, given: Path | None, beside: Path, in_place: bool) -> _Module:
        """Read the given module, so that errors in it are raised before anything runs."""
        if given is None:
            path = beside.with_suffix(".spv")
            if path == beside:
                raise InputError.of(
                    where="--out", expected="a name for the source with its profiles", found=f"{beside}"
                )
            return cls(EmbeddingTarget.new(path), None, str(path))
        content = read_content(given)
        bare, _ = modules.take_out(content, str(given))
        return cls(EmbeddingTarget.of(given, content, _profiled(given), in_place=in_place), bare, str(given))

    def write(self, program: Program, profiles: Sequence[Profile]) -> str | None:
        """Write the module with profiles; return the reason if the compiler cannot make one."""
        try:
            bare = (
                modules.compile_module(_as_profiled(program, profiles)) if self.given is None else self.given
            )
        except (CompileError, UnsupportedError) as error:
            # The second line has the compiler's first diagnostic.
            return str(error).splitlines()[:2][-1]
        self.target.write(modules.embed(bare, profiles, self.where))
        return None


def _as_profiled(program: Program, profiles: Sequence[Profile]) -> Program:
    """Set the compiler options of the profiles."""
    settings = {(str(p.program.get("standard") or "1.2"), compiler_options(p.program)) for p in profiles}
    if len(settings) > 1:
        raise UnsupportedError(f"{program.label}: its profiles were made with different compiler options")
    ((standard, options),) = settings
    return replace(program, standard=standard, options=options)


def _characterized(subject: _Subject, options: Embed) -> list[Profile]:
    """Characterize each launch of the source without embedded profiles."""
    runtime_objects.start()
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
