"""The launches that files and options describe."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from crosscast.characterization import default_local_size, frontend, run
from crosscast.characterization.cuda.compiler import preprocess
from crosscast.characterization.cuda.launches import FoundLaunch, argument_texts, find_launches
from crosscast.characterization.launchfiles import launchfile, simfile
from crosscast.characterization.launchfiles.arguments import build_argument
from crosscast.characterization.launchfiles.launchfile import SIZE_NAMES, refuse_sizes, write_launch
from crosscast.characterization.run import Options
from crosscast.cli.launch_options import IN_LAUNCHFILE, IN_SIMFILE, LaunchOptions
from crosscast.commands.argument_text import FORMS, parse_argument
from crosscast.commands.output import print_json
from crosscast.commands.status import ProgressLine
from crosscast.errors import CrosscastError, InputError
from crosscast.kernel import Argument, Kernel, Launch, Parameter, Program
from crosscast.profile import Profile

__all__ = ["Inputs", "launch_file", "read_inputs", "run_launch", "show_launches"]


@dataclass(frozen=True)
class Inputs:
    """What to run."""

    launches: list[Launch]  # The launches, in order
    simfile: simfile.SimFile | None = None  # The simulator file that holds the only launch, if it is one


def read_inputs(path: Path, direct: LaunchOptions) -> Inputs:
    """Read FILE: a launch file, a simulator file, or a program with its launch on the command line."""
    if path.suffix == ".toml":
        direct.refuse(path, IN_LAUNCHFILE)
        return Inputs(launchfile.read(path))
    if path.suffix == ".sim":
        direct.refuse(path, IN_SIMFILE)
        sim = simfile.read(path, options=direct.option, standard=direct.std or "1.2")
        return Inputs([sim.launch], sim)
    program = Program.from_file(path, options=direct.option, standard=direct.std or "")
    sizes = (direct.grid, direct.block, direct.global_size, direct.local_size, direct.offset)
    if program.is_cuda and sizes == (None,) * 5:
        return Inputs(_launches_of_host(program, direct))
    return Inputs([_launch(program, direct)])


def _found(program: Program, direct: LaunchOptions) -> list[tuple[FoundLaunch, list[str | None], str]]:
    """Launches in host code, what `--arg` takes for each, and why the parameters are not known."""
    found = []
    for launch in find_launches(preprocess(program)):
        if direct.kernel not in (None, launch.kernel, launch.kernel.split("<")[0]):
            continue
        try:
            parameters = frontend.parameters(program, launch.kernel)
            found.append((launch, argument_texts(launch, parameters), ""))
        except CrosscastError as error:
            found.append((launch, [None] * len(launch.arguments), str(error).partition("\n")[0]))
    return found


def _missing(launch: FoundLaunch, texts: Sequence[str | None], refusal: str) -> list[str]:
    """What is not known of a launch."""
    pairs = zip(launch.arguments, texts, strict=False)
    unknown = [argument.text for argument, text in pairs if text is None]
    return [refusal] if refusal else list(dict.fromkeys([*launch.unknown, *unknown]))


def _launches_of_host(program: Program, direct: LaunchOptions) -> list[Launch]:
    """The launches of host code whose sizes and arguments its constants tell."""
    launches, unknown = [], []
    for launch, texts, refusal in _found(program, direct):
        given = list(direct.arg) if direct.arg else [text for text in texts if text is not None]
        if refusal or launch.unknown or (len(given) < len(texts) and not direct.arg):
            missing = ", ".join(_missing(launch, texts, refusal))
            unknown.append(f"line {launch.line}: {launch.kernel} ({missing})")
            continue
        sized = replace(
            direct,
            kernel=launch.kernel,
            grid=",".join(map(str, launch.grid or ())),
            block=",".join(map(str, launch.block or ())),
            shared=direct.shared if direct.shared is not None else launch.shared,
            arg=tuple(given),
        )
        launches.append(_grid_launch(program, sized))
        if direct.arg:
            break
    if not launches:
        told = f"; not known of the launches in host code: {'; '.join(unknown)}" if unknown else ""
        raise InputError(f"--grid is missing, expected grid and block, such as --grid 4096 --block 256{told}")
    return launches


def show_launches(path: Path, direct: LaunchOptions, *, as_json: bool) -> None:
    """Print the launches of host code, what is known of them, and what is not."""
    program = Program.from_file(path, options=direct.option, standard=direct.std or "")
    if not program.is_cuda:
        raise InputError.of(
            where="--launches", field=str(path), expected="a CUDA or HIP program", found=f"{program.language}"
        )
    rows = []
    for launch, texts, refusal in _found(program, direct):
        rows.append(
            {
                "file": launch.file,
                "line": launch.line,
                "kernel": launch.kernel,
                "launch": launch.text,
                "grid": launch.grid,
                "block": launch.block,
                "shared": launch.shared,
                "arguments": texts,
                "unknown": _missing(launch, texts, refusal),
            }
        )
    if as_json:
        print_json(rows)
        return
    for row in rows:
        print(f"{row['file']}:{row['line']}: {row['launch']}")
        words = [f"--kernel {shlex.quote(str(row['kernel']))}"]
        for name in ("grid", "block"):
            size = row[name]
            words.append(f"--{name} {','.join(map(str, size)) if isinstance(size, tuple) else '?'}")
        words += [f"--shared {row['shared']}"] if row["shared"] else []
        arguments = row["arguments"]
        words += [f"--arg {text or '?'}" for text in arguments] if isinstance(arguments, list) else []
        print(f"  {' '.join(words)}")
        if unknown := row["unknown"]:
            print(f"  not known: {', '.join(unknown) if isinstance(unknown, list) else unknown}")
    if not rows:
        print(f"{path}: no launches in host code")


def _launch(program: Program, direct: LaunchOptions) -> Launch:
    """The launch that the command line describes."""
    sizes = (direct.global_size, direct.local_size, direct.offset, direct.grid, direct.block, direct.shared)
    given = {name: size is not None for name, size in zip(SIZE_NAMES, sizes, strict=True)}
    refuse_sizes(program, given, program.label, "--")
    if program.is_cuda:
        return _grid_launch(program, direct)
    if direct.variable:
        raise InputError(f"--variable is not for {program.language}, but for CUDA and HIP")
    if direct.global_size is None:
        raise InputError("--global is missing, expected the global size, such as --global 512,512")
    global_size = _sizes("--global", direct.global_size)
    local_size = (
        default_local_size(global_size) if direct.local_size is None else _sizes("--local", direct.local_size)
    )
    offset = () if direct.offset is None else _sizes("--offset", direct.offset)
    kernel = _kernel(program, direct.kernel)
    # Sizes are checked before arrays are made.
    Launch(kernel, global_size, local_size, (), offset)
    return Launch(kernel, global_size, local_size, _arguments(direct), offset)


def _grid_launch(program: Program, direct: LaunchOptions) -> Launch:
    """The launch of a CUDA or HIP kernel."""
    if direct.grid is None or direct.block is None:
        missing = "--grid" if direct.grid is None else "--block"
        raise InputError(f"{missing} is missing, expected grid and block, such as --grid 4096 --block 256")
    grid, block = _sizes("--grid", direct.grid), _sizes("--block", direct.block)
    kernel = _kernel(program, direct.kernel)
    Launch.on_grid(kernel, grid, block, shared=direct.shared)
    variables = dict(_variable(text, index, direct.seed or 0) for index, text in enumerate(direct.variable))
    return Launch.on_grid(kernel, grid, block, _arguments(direct), shared=direct.shared, variables=variables)


def _variable(text: str, index: int, seed: int) -> tuple[str, Argument]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--variable {text}: expected NAME={FORMS.split(',')[0]}, such as n=int=512")
    return name, _argument(value, (1 << 16) + index, seed)


def _arguments(direct: LaunchOptions) -> tuple[Argument, ...]:
    return tuple(_argument(text, index, direct.seed or 0) for index, text in enumerate(direct.arg))


def _kernel(program: Program, name: str | None) -> Kernel:
    """Kernel `name`, or the only one there is."""
    if name is not None:
        return Kernel(program, name)
    names = frontend.kernel_names(program)
    if len(names) != 1:
        found = f"found {', '.join(names)}" if names else "found none"
        if not names and program.is_cuda:
            found = "found none but templates, which are named with their arguments: 'saxpy<float>'"
        raise InputError(f"--kernel is missing, expected one kernel in {program.label}, {found}")
    return Kernel(program, names[0])


def _argument(text: str, index: int, seed: int) -> Argument:
    def parameter() -> Parameter:
        raise InputError(f"--arg {text}: the type is missing")

    return build_argument(parse_argument(text), Path(), (seed, index), parameter)


def _sizes(flag: str, text: str) -> tuple[int, ...]:
    """One to three whole numbers between commas."""
    try:
        return tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        raise InputError.of(
            where=flag, expected="1 to 3 whole numbers such as 512,512", found=repr(text)
        ) from None


@contextmanager
def launch_file(what: str, launch: LaunchOptions) -> Iterator[str]:
    """`what` itself; where the options describe its launch, a launch file of it until the block ends."""
    if launch.sample_groups is not None:
        raise InputError("--sample-groups: what is measured runs in full; leave it out")
    if not launch.described:
        yield what
        return
    (described,) = read_inputs(Path(what), launch).launches
    with tempfile.TemporaryDirectory(prefix="crosscast-") as folder:
        path = Path(folder) / f"{Path(what).stem}.toml"
        write_launch(described, path)
        yield str(path)


def run_launch(launch: Launch, invocation: int, options: Options) -> Profile:
    """Characterize the launch of this number; how far it is shows on standard error."""
    with ProgressLine(sys.stderr, launch.kernel.name) as progress:
        return run.characterize_launch(
            launch, invocation=invocation, options=replace(options, progress=progress, said=progress.say)
        )
