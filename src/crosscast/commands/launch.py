"""Launches of files, options and recorded programs, and parsing of `--arg`."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from crosscast.characterization import default_local_size, frontend, launchfiles, run
from crosscast.characterization.cuda.compiler import Compiled
from crosscast.characterization.cuda.launches import HostLaunch, argument_texts, find_launches, with_members
from crosscast.characterization.launchfiles import SIZE_NAMES, refuse_sizes, simfile, write_launch
from crosscast.characterization.launchfiles.arguments import build_argument
from crosscast.characterization.run import Options
from crosscast.cli.options import IN_LAUNCHFILE, IN_SIMFILE, LaunchOptions
from crosscast.commands.output import ProgressLine, print_json, warn
from crosscast.data.fields import Fields
from crosscast.errors import CrosscastError, InputError, expect_known
from crosscast.kernel import LAUNCH_FILES, Argument, Kernel, Launch, Parameter, Program
from crosscast.profile import Profile
from crosscast.tracing.summary import Replayed, Summary, Trace, replayed, summary_of


def read_inputs(path: Path, direct: LaunchOptions) -> tuple[list[Launch], simfile.SimFile | None]:
    """Read FILE: a launch file, a simulator file, which is returned too, or a program with its launch."""
    if path.suffix in LAUNCH_FILES:
        direct.refuse(path, IN_LAUNCHFILE if path.suffix == ".toml" else IN_SIMFILE)
    if path.suffix == ".toml":
        return launchfiles.read(path), None
    if path.suffix == ".sim":
        sim = simfile.read(path, options=direct.option, standard=direct.std or "1.2")
        return [sim.launch], sim
    program = Program.from_file(path, options=direct.option, standard=direct.std or "")
    sizes = (direct.grid, direct.block, direct.global_size, direct.local_size, direct.offset)
    if program.is_cuda and sizes == (None,) * 5:
        return _launches_of_host(program, direct), None
    return [_launch(program, direct)], None


def _host_launches(program: Program, direct: LaunchOptions) -> list[tuple[HostLaunch, list[str | None], str]]:
    """Launches in host code, their texts for `--arg`, and the reason if parameters are not known."""
    launches = []
    for launch in find_launches(program):
        if direct.kernel not in (None, launch.kernel, launch.kernel.split("<")[0]):
            continue
        try:
            parameters = frontend.parameters(program, launch.kernel)
            split = with_members(launch, parameters)
            launches.append((split, argument_texts(split, parameters), ""))
        except CrosscastError as error:
            launches.append((launch, [None] * len(launch.arguments), str(error).partition("\n")[0]))
    return launches


def _missing(launch: HostLaunch, texts: Sequence[str | None], refusal: str) -> list[str]:
    """Parts of a launch that are not known."""
    pairs = zip(launch.arguments, texts, strict=False)
    unknown = [argument.text for argument, text in pairs if text is None]
    return [refusal] if refusal else list(dict.fromkeys([*launch.unknown, *unknown]))


def _launches_of_host(program: Program, direct: LaunchOptions) -> list[Launch]:
    """Launches in host code whose sizes and arguments are known from its constants."""
    launches, unknown = [], []
    for launch, texts, refusal in _host_launches(program, direct):
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
        note = f"; not known of the launches in host code: {'; '.join(unknown)}" if unknown else ""
        raise InputError(f"--grid is missing, expected grid and block, such as --grid 4096 --block 256{note}")
    if unknown:
        warn(f"{program.label}: left out of the launches in host code: {'; '.join(unknown)}")
    return launches


def show_launches(path: Path, direct: LaunchOptions, *, as_json: bool) -> None:
    """Print the launches of host code, with their known and unknown parts."""
    program = Program.from_file(path, options=direct.option, standard=direct.std or "")
    if not program.is_cuda:
        raise InputError.of(
            where="--launches", field=str(path), expected="a CUDA or HIP program", found=f"{program.language}"
        )
    launches = _host_launches(program, direct)
    if as_json:
        print_json(
            [
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
                for launch, texts, refusal in launches
            ]
        )
        return
    for launch, texts, refusal in launches:
        print(f"{launch.file}:{launch.line}: {launch.text}")
        words = [f"--kernel {shlex.quote(launch.kernel)}"]
        for name, size in (("grid", launch.grid), ("block", launch.block)):
            words.append(f"--{name} {'?' if size is None else ','.join(map(str, size))}")
        words += [f"--shared {launch.shared}"] if launch.shared else []
        print(" ", *words, *(f"--arg {text or '?'}" for text in texts))
        if unknown := _missing(launch, texts, refusal):
            print(f"  not known: {', '.join(unknown)}")
    if not launches:
        print(f"{path}: no launches in host code")


def _launch(program: Program, direct: LaunchOptions) -> Launch:
    """Make the launch that the command line describes."""
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
    # Check the sizes before arrays are made.
    Launch(kernel, global_size, local_size, (), offset)
    return Launch(kernel, global_size, local_size, _arguments(direct), offset)


def _grid_launch(program: Program, direct: LaunchOptions) -> Launch:
    """Make the launch of a CUDA or HIP kernel."""
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
        raise InputError.of(
            where=f"--variable {text}", expected=f"NAME={FORMS.split(',')[0]}, such as n=int=512"
        )
    return name, _argument(value, (1 << 16) + index, seed, f"--variable {text}")


def _arguments(direct: LaunchOptions) -> tuple[Argument, ...]:
    return tuple(_argument(text, index, direct.seed or 0) for index, text in enumerate(direct.arg))


def _kernel(program: Program, name: str | None) -> Kernel:
    """Kernel `name`, or the program's only kernel."""
    if name is not None:
        return Kernel(program, name)
    loaded = frontend.load(program)
    names = loaded.kernel_names
    if len(names) != 1:
        kernels = ", ".join(names) or _without_kernels(loaded.compiled)
        raise InputError(f"--kernel is missing, expected one kernel in {program.label}, found {kernels}")
    return Kernel(program, names[0])


def _without_kernels(compiled: Compiled | None) -> str:
    """Return what a program without kernels has instead."""
    if compiled is not None and compiled.templates:
        names = ", ".join(f"'{name}'" for name in compiled.templates)
        return f"none but templates, which are named with their arguments: {names}"
    if compiled is not None and compiled.refused:
        reasons = (f"{name}: {refusal.reason}" for name, refusal in compiled.refused.items())
        return f"none that can be compiled ({'; '.join(reasons)})"
    return "none"


def _argument(text: str, index: int, seed: int, where: str | None = None) -> Argument:
    fields = parse_argument(text, where)

    def parameter() -> Parameter:
        raise InputError.of(where=fields.where, problem="the type is missing")

    return build_argument(fields, Path(), (seed, index), parameter)


def _sizes(flag: str, text: str) -> tuple[int, ...]:
    """Parse one to three whole numbers separated by commas."""
    try:
        return tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        raise InputError.of(
            where=flag, expected="1 to 3 whole numbers such as 512,512", found=repr(text)
        ) from None


@contextmanager
def launch_file(what: str, launch: LaunchOptions) -> Iterator[str]:
    """Yield `what` or, where the options describe its launch, a temporary launch file."""
    if launch.sample_groups is not None:
        raise InputError.of(where="--sample-groups", problem="what is measured runs in full; leave it out")
    is_program = Path(what).is_file() and Path(what).suffix not in LAUNCH_FILES
    if not launch.described and not (launch.kernel and is_program):
        if launch.kernel:
            raise InputError.of(where="--kernel", problem=f"all kernels of {what} are measured; leave it out")
        yield what
        return
    described, *others = read_inputs(Path(what), launch)[0]
    if others:
        names = list(dict.fromkeys(each.kernel.name for each in (described, *others)))
        missing = "--kernel is missing" if len(names) > 1 else "--grid and --block are missing"
        found = f"{len(others) + 1}, of {', '.join(names)}"
        raise InputError(f"{missing}, expected one launch in {what}, found {found}")
    with tempfile.TemporaryDirectory(prefix="crosscast-") as folder:
        path = Path(folder) / f"{Path(what).stem}.toml"
        write_launch(described, path)
        yield str(path)


def run_launch(launch: Launch, invocation: int, options: Options) -> Profile:
    """Characterize a launch, with progress on standard error."""
    with ProgressLine(launch.kernel.name) as progress:
        return run.characterize_launch(
            launch, invocation=invocation, options=replace(options, progress=progress, note=progress.say)
        )


_FILL_FIELDS = {
    "zeros": (),
    "constant": ("value",),
    "arange": ("start", "step"),
    "uniform": ("low", "high"),
    "normal": ("mean", "sd"),
}
FORMS = (
    "TYPE=VALUE, TYPE:LENGTH[:FILL], TYPE@FILE, local:BYTES, null, "
    "image:TYPE:ORDER:SHAPE[:FILL] or sampler[:WORDS]"
)


def parse_argument(text: str, where: str | None = None) -> Fields:
    """Parse one ``--arg``; `where` begins messages instead.

    >>> dict(parse_argument("float:1024:uniform:-1:1").items())
    {'type': 'float', 'length': 1024, 'fill': 'uniform', 'low': -1, 'high': 1}
    >>> dict(parse_argument("int=512").items())
    {'type': 'int', 'value': 512}
    """
    where = where or f"--arg {text}"
    head, colon, rest = text.partition(":")
    if text == "null":
        return Fields({"null": True}, where)
    if head == "local" and colon:
        return Fields({"local": _number(where, rest)}, where)
    if head == "sampler":
        return Fields({"sampler": _sampler(where, rest)}, where)
    if head == "image" and colon:
        return Fields({"image": _image(where, rest)}, where)
    # The first mark decides, as a file's name may contain `:` and `=`, but a number no `@`.
    mark = min((text.find(m) for m in "=@:" if m in text), default=-1)
    if mark < 1:
        raise InputError.of(where=where, expected=FORMS)
    kind, rest = text[:mark], text[mark + 1 :]
    if text[mark] == "@":
        return Fields({"type": kind, "file": rest}, where)
    if text[mark] == "=":
        return Fields({"type": kind, "value": _value(where, rest)}, where)
    length, _, fill = rest.partition(":")
    return Fields({"type": kind, "length": _number(where, length), **_fill(where, fill)}, where)


def _number(where: str, text: str) -> int | float:
    """Parse a whole (also ``0x10``) or real number."""
    for read in (lambda t: int(t, 0), float):
        try:
            return read(text)
        except ValueError:
            continue
    raise InputError.of(where=where, expected="a number", found=repr(text))


def _value(where: str, text: str) -> object:
    """Parse one number, or several separated by commas for a vector or a struct."""
    numbers = [_number(where, part) for part in text.split(",")]
    return numbers if len(numbers) > 1 else numbers[0]


def _fill(where: str, text: str) -> dict[str, object]:
    """Parse ``FILL[:NUMBER[:NUMBER]]``; empty is zeros."""
    if not text:
        return {}
    name, *numbers = text.split(":")
    expect_known(name, _FILL_FIELDS, where=where, field="fill")
    names = _FILL_FIELDS[name]
    if len(numbers) > len(names):
        raise InputError.of(
            where=where,
            problem=(
                f"fill: {name} takes at most {len(names)} numbers ({', '.join(names) or 'none'}"
                f"), found {len(numbers)}"
            ),
        )
    values = {field: _number(where, number) for field, number in zip(names, numbers, strict=False)}
    return {"fill": name, **values}


def _image(where: str, text: str) -> dict[str, object]:
    """Parse ``TYPE:ORDER:HEIGHTxWIDTH[:FILL]``."""
    kind, *rest = text.split(":", 3)
    if len(rest) < 2:
        raise InputError.of(
            where=where, expected="image:TYPE:ORDER:SHAPE[:FILL], such as image:uchar:RGBA:480x640"
        )
    shape = [_number(where, extent) for extent in rest[1].split("x")]
    return {"type": kind, "channel_order": rest[0], "shape": shape, **_fill(where, ":".join(rest[2:]))}


def _sampler(where: str, text: str) -> dict[str, object]:
    """Parse words separated by colons: an addressing mode, ``linear``, ``normalized_coords``."""
    table: dict[str, object] = {}
    for word in filter(None, text.split(":")):
        if word in ("linear", "normalized_coords"):
            table[word] = True
        else:
            table["addressing"] = word
    return table


def replay_trace(folder: Path, options: Options | None = None) -> tuple[Summary, list[Replayed]]:
    """Summarize a recorded program, and characterize a launch of each class, with progress.

    Without options, as forecasts do.
    """
    how = options or Options(optimize=True, sample_groups="auto")
    summary = summary_of(Trace(folder))
    return summary, replayed(summary, lambda launch, number: run_launch(launch, number, how))
