"""``crosscast characterize``: launches of files, or described by options, and where their profiles go."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter as Option
from cyclopts import Token

from crosscast.cli.options import (
    Block,
    FigureOutput,
    Flag,
    GlobalSize,
    Grid,
    LocalSize,
    Whole,
    check_picture,
    page_of,
    tell,
    warn,
)
from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.profile import Profile
from crosscast.units import parse_bytes

if TYPE_CHECKING:
    from crosscast.characterization import run
    from crosscast.characterization.launchfiles import simfile
    from crosscast.kernel import Argument, Kernel, Launch, Parameter, Program


_FILL_FIELDS = {
    "zeros": (),
    "constant": ("value",),
    "arange": ("start", "step"),
    "uniform": ("low", "high"),
    "normal": ("mean", "sd"),
}
_FORMS = (
    "TYPE=VALUE, TYPE:LENGTH[:FILL], TYPE@FILE, local:BYTES, null, "
    "image:TYPE:ORDER:SHAPE[:FILL] or sampler[:WORDS]"
)


def parse_argument(text: str) -> Fields:
    """Translate one ``--arg``.

    >>> dict(parse_argument("float:1024:uniform:-1:1").items())
    {'type': 'float', 'length': 1024, 'fill': 'uniform', 'low': -1, 'high': 1}
    >>> dict(parse_argument("int=512").items())
    {'type': 'int', 'value': 512}
    """
    where = f"--arg {text}"
    head, colon, rest = text.partition(":")
    if text == "null":
        return Fields({"null": True}, where)
    if head == "local" and colon:
        return Fields({"local": _number(where, rest)}, where)
    if head == "sampler":
        return Fields({"sampler": _sampler(where, rest)}, where)
    if head == "image" and colon:
        return Fields({"image": _image(where, rest)}, where)
    # A file's name may hold `:` and `=`, a number may not hold `@`: the first mark decides.
    mark = min((text.find(m) for m in "=@:" if m in text), default=-1)
    if mark < 1:
        raise InputError(f"{where}: expected {_FORMS}")
    kind, rest = text[:mark], text[mark + 1 :]
    if text[mark] == "@":
        return Fields({"type": kind, "file": rest}, where)
    if text[mark] == "=":
        return Fields({"type": kind, "value": _value(where, rest)}, where)
    length, _, fill = rest.partition(":")
    return Fields({"type": kind, "length": _number(where, length), **_fill(where, fill)}, where)


def _number(where: str, text: str) -> int | float:
    """Whole (also ``0x10``) or real number."""
    for read in (lambda t: int(t, 0), float):
        try:
            return read(text)
        except ValueError:
            continue
    raise InputError(f"{where}: expected a number, found {text!r}")


def _value(where: str, text: str) -> Any:
    """One number, or several between commas for a vector or a struct."""
    numbers = [_number(where, part) for part in text.split(",")]
    return numbers if len(numbers) > 1 else numbers[0]


def _fill(where: str, text: str) -> dict[str, Any]:
    """``FILL[:NUMBER[:NUMBER]]``; empty is zeros."""
    if not text:
        return {}
    name, *numbers = text.split(":")
    if name not in _FILL_FIELDS:
        raise InputError(f"{where}: fill: expected one of {', '.join(_FILL_FIELDS)}, found {name!r}")
    names = _FILL_FIELDS[name]
    if len(numbers) > len(names):
        raise InputError(
            f"{where}: fill: {name} takes at most {len(names)} numbers ({', '.join(names) or 'none'}), "
            f"found {len(numbers)}"
        )
    values = {field: _number(where, number) for field, number in zip(names, numbers, strict=False)}
    return {"fill": name, **values}


def _image(where: str, text: str) -> dict[str, Any]:
    """``TYPE:ORDER:HEIGHTxWIDTH[:FILL]``."""
    kind, *rest = text.split(":", 3)
    if len(rest) < 2:
        raise InputError(f"{where}: expected image:TYPE:ORDER:SHAPE[:FILL], such as image:uchar:RGBA:480x640")
    shape = [_number(where, extent) for extent in rest[1].split("x")]
    return {"type": kind, "channel_order": rest[0], "shape": shape, **_fill(where, ":".join(rest[2:]))}


def _sampler(where: str, text: str) -> dict[str, Any]:
    """Words between colons: an addressing mode, ``linear``, ``normalized_coords``."""
    table: dict[str, Any] = {}
    for word in filter(None, text.split(":")):
        if word in ("linear", "normalized_coords"):
            table[word] = True
        else:
            table["addressing"] = word
    return table


@dataclass(frozen=True)
class Direct:
    """What the command line says about a launch, as it stands there.

    Parameters
    ----------
    kernel, global_size, local_size, offset, grid, block, shared, seed, standard
        Value of the option; ``None`` if it was not given.
    args
        Each ``--arg``.
    options
        Compiler options.
    """

    kernel: str | None = None  # Value of the option; `None` if it was not given
    global_size: str | None = None
    local_size: str | None = None
    offset: str | None = None
    args: tuple[str, ...] = ()  # Each `--arg`
    seed: int | None = None
    options: tuple[str, ...] = ()  # Compiler options
    standard: str | None = None
    grid: str | None = None
    block: str | None = None
    shared: int | None = None

    def refuse(self, path: Path, names: Sequence[str]) -> None:
        """Refuse options that the file itself decides."""
        flags = {
            "--kernel": self.kernel,
            "--global": self.global_size,
            "--local": self.local_size,
            "--offset": self.offset,
            "--arg": self.args,
            "--seed": self.seed,
            "--option, -D and -I": self.options,
            "--std": self.standard,
            "--grid": self.grid,
            "--block": self.block,
            "--shared": self.shared,
        }
        for flag in names:
            if flags[flag] not in (None, ()):
                raise InputError(f"{flag}: {path} itself says this; leave the option out or edit the file")


@dataclass(frozen=True)
class Inputs:
    """What to run.

    Parameters
    ----------
    launches
        The launches, in order.
    simfile
        The simulator file that holds the only launch, if it is one.
    """

    launches: list[Launch]  # The launches, in order
    simfile: simfile.SimFile | None = None  # The simulator file that holds the only launch, if it is one


_IN_SIMFILE = tuple("--kernel --global --local --offset --grid --block --shared --arg --seed".split())
_IN_LAUNCHFILE = (*_IN_SIMFILE, "--option, -D and -I", "--std")


def read_inputs(path: Path, direct: Direct) -> Inputs:
    """Read FILE: a launch file, a simulator file, or a program with its launch on the command line."""
    # Imported here and below: `--help` needs no NumPy.
    from crosscast.characterization.launchfiles import launchfile, simfile
    from crosscast.kernel import Program

    if path.suffix == ".toml":
        direct.refuse(path, _IN_LAUNCHFILE)
        return Inputs(launchfile.read(path))
    if path.suffix == ".sim":
        direct.refuse(path, _IN_SIMFILE)
        sim = simfile.read(path, options=direct.options, standard=direct.standard or "1.2")
        return Inputs([sim.launch], sim)
    program = Program.from_file(path, options=direct.options, standard=direct.standard or "")
    return Inputs([_launch(program, direct)])


def _launch(program: Program, direct: Direct) -> Launch:
    """The launch that the command line describes."""
    from crosscast.characterization import default_local_size
    from crosscast.characterization.launchfiles.launchfile import SIZE_NAMES, refuse_sizes
    from crosscast.kernel import Launch

    sizes = (direct.global_size, direct.local_size, direct.offset, direct.grid, direct.block, direct.shared)
    given = {name: size is not None for name, size in zip(SIZE_NAMES, sizes, strict=True)}
    refuse_sizes(program, given, program.label, "--")
    if program.is_cuda:
        return _grid_launch(program, direct)
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


def _grid_launch(program: Program, direct: Direct) -> Launch:
    """The launch of a CUDA or HIP kernel."""
    from crosscast.kernel import Launch

    if direct.grid is None or direct.block is None:
        missing = "--grid" if direct.grid is None else "--block"
        raise InputError(f"{missing} is missing, expected grid and block, such as --grid 4096 --block 256")
    grid, block = _sizes("--grid", direct.grid), _sizes("--block", direct.block)
    kernel = _kernel(program, direct.kernel)
    Launch.on_grid(kernel, grid, block, shared=direct.shared)
    return Launch.on_grid(kernel, grid, block, _arguments(direct), shared=direct.shared)


def _arguments(direct: Direct) -> tuple[Argument, ...]:
    return tuple(_argument(text, index, direct.seed or 0) for index, text in enumerate(direct.args))


def _kernel(program: Program, name: str | None) -> Kernel:
    """Kernel `name`, or the only one there is."""
    from crosscast.kernel import Kernel

    if name is not None:
        return Kernel(program, name)
    # Imported here, as the frontend brings the compiler.
    from crosscast.characterization import frontend

    names = frontend.kernel_names(program)
    if len(names) != 1:
        found = f"found {', '.join(names)}" if names else "found none"
        if not names and program.is_cuda:
            found = "found none but templates, which are named with their arguments: 'saxpy<float>'"
        raise InputError(f"--kernel is missing, expected one kernel in {program.label}, {found}")
    return Kernel(program, names[0])


def _argument(text: str, index: int, seed: int) -> Argument:
    from crosscast.characterization.launchfiles.arguments import build_argument

    def parameter() -> Parameter:
        raise InputError(f"--arg {text}: the type is missing")

    return build_argument(parse_argument(text), Path(), (seed, index), parameter)


def _sizes(flag: str, text: str) -> tuple[int, ...]:
    """One to three whole numbers between commas."""
    try:
        return tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        raise InputError(f"{flag}: expected 1 to 3 whole numbers such as 512,512, found {text!r}") from None


@dataclass
class Outputs:
    """Receives each profile when it is done, and writes the files at the end.

    Parameters
    ----------
    form
        What standard output gets: a table for people, JSON, or CSV.
    aiwc_folder
        Folder for the published tool's CSV files, if wanted.
    everything
        Whether the table has all metrics and counts, and not a summary alone.
    parquet, plot, html
        Path of the Parquet table, of the Kiviat picture and of the page, if wanted.
    profiles
        What has arrived.
    """

    # What standard output gets: a table for people, JSON, or CSV
    form: Literal["table", "json", "csv"] = "table"
    aiwc_folder: Path | None = None  # Folder for the published tool's CSV files, if wanted
    parquet: Path | None = None  # Path of the Parquet table and of the Kiviat picture, if wanted
    plot: Path | None = None
    html: Path | None = None
    everything: bool = False  # Whether a table has all metrics and counts, and not a summary alone
    profiles: list[Profile] = field(default_factory=list)  # What has arrived

    def prepare(self) -> None:
        """Refuse what cannot be written, before a long run rather than after it."""
        if self.aiwc_folder is not None and self.aiwc_folder.exists() and not self.aiwc_folder.is_dir():
            raise InputError(f"--out: expected a folder, found the file {self.aiwc_folder}")
        for flag, path in (("--parquet", self.parquet), ("--plot", self.plot)):
            if path is not None and not path.absolute().parent.is_dir():
                raise InputError(f"{flag}: the folder {path.absolute().parent} does not exist")
        if self.parquet is not None:
            from crosscast.data.profiles import require_pyarrow

            require_pyarrow()
        if self.plot is not None:
            check_picture("--plot", self.plot)
        if self.html is not None:
            FigureOutput(html=self.html).check()

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
            from crosscast.report.profiles import profiles_report

            profiles_report(self.profiles, everything=self.everything).print(sys.stdout)
        if self.parquet is not None:
            from crosscast.data.profiles import write_parquet

            self._write("--parquet", self.parquet, write_parquet)
        if self.plot is not None:
            from crosscast.report.profiles import write_kiviat

            self._write("--plot", self.plot, write_kiviat)
        if self.html is not None:
            from crosscast.report.profiles import MOST_PROFILES, kiviat, profiles_report

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
        from crosscast.data.files import made
        from crosscast.data.profiles import write_aiwc

        made(folder, "--out")
        invocation = sum(other.kernel == profile.kernel for other in self.profiles) - 1
        print(f"wrote {write_aiwc(profile, folder, invocation)}", file=sys.stderr)

    def _print_csv(self, profile: Profile) -> None:
        from crosscast.data.profiles import csv_header, csv_row

        if len(self.profiles) == 1:
            print(csv_header())
        print(csv_row(profile), flush=True)


Standard = Literal["1.0", "1.1", "1.2", "2.0", "3.0", "clc++1.0", "clc++2021", "c++14", "c++17", "c++20"]
_Repeated = Annotated[tuple[str, ...], Option(negative="", show_default=False, allow_leading_hyphen=True)]


def _compiler_options(type_: type, tokens: Sequence[Token]) -> tuple[str, ...]:
    """The options as a compiler takes them: `-D N` and `-I folder` in one word."""
    del type_
    flags = {"--define": "-D", "-D": "-D", "--include": "-I", "-I": "-I"}
    return tuple(flags.get(token.keyword or "", "") + token.value for token in tokens)


def characterize(
    file: Path,
    /,
    *more: Path,
    kernel: str | None = None,
    global_size: GlobalSize = None,
    local_size: LocalSize = None,
    offset: str | None = None,
    grid: Grid = None,
    block: Block = None,
    shared: int | None = None,
    arg: _Repeated = (),
    seed: Whole | None = None,
    option: Annotated[
        tuple[str, ...],
        Option(
            name=["--option", "--define", "-D", "--include", "-I"],
            converter=_compiler_options,
            negative="",
            show_default=False,
            allow_leading_hyphen=True,
        ),
    ] = (),
    std: Standard | None = None,
    all: Flag = False,
    json: Flag = False,
    csv: Flag = False,
    parquet: Path | None = None,
    plot: Path | None = None,
    html: Path | None = None,
    compat: Literal["aiwc"] | None = None,
    out: Path | None = None,
    check_bounds: Flag = False,
    threads: Whole | None = None,
    timeout: float = 600.0,
    memory_limit: str | None = None,
) -> None:
    """Profile each kernel launch of FILE, independently of any device.

    FILE is a launch file (`.toml`), a simulator file of Oclgrind (`.sim`), or a program (OpenCL C,
    CUDA `.cu`, HIP `.hip`, LLVM IR text or bitcode) whose launch the options describe.

    `--arg`, once for each kernel parameter in order:

    - `int=512`, `float4=1,2,3,4`: a value
    - `float:1048576`: a buffer of that many values, zeros; or filled: `float:1024:uniform:LOW:HIGH`,
      `:normal:MEAN:SD`, `:arange:START:STEP`, `:constant:VALUE` (numbers may be left out)
    - `float@data.npy`, `uint@data.bin`: a buffer with the content of a file
    - `local:1024`: local memory, in bytes
    - `null`: a null buffer
    - `image:uchar:RGBA:480x640:uniform`, `sampler:clamp:linear`: an image (height x width), a sampler

    Example: `crosscast characterize vecadd.cl --global 1048576 --arg float:1048576:uniform
    --arg float:1048576:uniform --arg float:1048576 --arg int=1048576`

    A CUDA kernel: `crosscast characterize saxpy.cu --kernel 'saxpy<float>' --grid 4096 --block 256
    --arg int=1048576 --arg float=2 --arg float:1048576:uniform --arg float:1048576`

    Parameters
    ----------
    file
        What to characterize.
    more
        Further files, whose launches follow.
    kernel
        Kernel to launch, such as `vecadd`, `'saxpy<float>'` or `ns::scale`; may be left out if the program
        has only one.
    offset
        Offset of the global ids.
    shared
        Bytes of dynamic shared memory (`extern __shared__`) of a block.
    arg
        A kernel argument; see above.
    seed
        Random seed of the fills; 0 unless given.
    option
        For the compiler: a macro (`-D N=16`), a folder of included files (`-I include`), or any other
        option (`--option -cl-fast-relaxed-math`).
    std
        Version of OpenCL C, 1.2 unless given, or C++ for OpenCL; of C++ for CUDA and HIP.
    all
        Print all metrics and counts, not a summary alone.
    json
        Print one JSON object a launch, each on a line.
    csv
        Print one CSV row a launch.
    parquet
        Write the profiles to this Parquet file.
    plot
        Draw a Kiviat picture to this file (.png, .svg or .pdf).
    html
        Also write the tables and the Kiviat picture as one HTML page.
    compat
        `aiwc`: write the published tool's `aiwc_<kernel>_<n>.csv` files.
    out
        Folder for these; by default the working directory.
    check_bounds
        Check each access against its buffer, and say which one is out of bounds.
    threads
        Threads that run work-groups; the profile does not depend on it.
    timeout
        Longest run of a kernel, in seconds.
    memory_limit
        Most memory of the process that runs the kernel, such as `4G`.
    """
    # Imported here: the engine brings the compiler and NumPy, which `--help` does not need.
    from crosscast.characterization.engine import runtime_objects

    runtime_objects.start()
    from crosscast.characterization import run

    if json and csv:
        raise InputError("--json and --csv both want standard output: choose one")
    if out is not None and compat is None:
        raise InputError("--out is the folder of --compat aiwc: give both or none")
    if threads is not None and threads < 1:
        raise InputError(f"--threads: expected at least 1, found {threads}")
    if not timeout > 0:
        raise InputError(f"--timeout: expected more than 0 seconds, found {timeout:g}")
    outputs = Outputs(
        "json" if json else "csv" if csv else "table",
        (out or Path()) if compat else None,
        parquet,
        plot,
        html,
        all,
    )
    options = run.Options(
        threads=threads,
        check_bounds=check_bounds,
        timeout_s=timeout,
        memory_limit=None if memory_limit is None else parse_bytes(memory_limit),
        published=compat is not None,
        host_time=True,
    )
    direct = Direct(*(kernel, global_size, local_size, offset, arg, seed, option, std, grid, block, shared))
    outputs.prepare()
    _run((file, *more), direct, outputs, options)


def _run(files: Sequence[Path], direct: Direct, outputs: Outputs, options: run.Options) -> None:
    """Run every launch; what is finished is shown even if a later one fails."""
    from crosscast.characterization.launchfiles.simfile import render_dumps
    from crosscast.cli.running import LaunchesStatus, run_launch
    from crosscast.tracing.trace import is_trace

    try:
        # One file after the other, as the arguments of all may be more than memory holds.
        for file in files:
            if is_trace(file):
                _of_trace(file, direct, outputs, options)
                continue
            inputs = read_inputs(file, direct)
            with LaunchesStatus(len(inputs.launches)) as status:
                for launch in inputs.launches:
                    profile = run_launch(launch, len(outputs.profiles), options)
                    outputs.add(profile, render_dumps(inputs.simfile) if inputs.simfile else None)
                    status.advance()
    finally:
        outputs.finish()


def _of_trace(folder: Path, direct: Direct, outputs: Outputs, options: run.Options) -> None:
    """A launch of each class of a recorded program; those that cannot be run again are told."""
    from crosscast.cli.running import replay_trace

    direct.refuse(folder, _IN_LAUNCHFILE)
    summary, found = replay_trace(folder, options)
    for each, one in zip(summary.classes, found, strict=True):
        if one.profile is None:
            warn(f"{each.kernel} {each.size_label}: {one.refused}")
        else:
            outputs.add(one.profile, None)
    if not any(one.profile for one in found):
        raise InputError(f"{folder}: expected a launch that can be run again, found none")
