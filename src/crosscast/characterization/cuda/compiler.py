"""Compiler of CUDA and HIP sources to LLVM bitcode.

The preprocessor runs first, and skips missing headers. Its output is split into declarations; kernels and
the declarations that they need are compiled, as HIP for SPIR-V, with a header of ours that declares the
functions of CUDA and HIP by OpenCL's builtins. So host code does not interfere with kernels. A kernel that
does not compile is left out with its reason, and the others of its file are compiled without it.

Three rewrites precede the optimizer: copies of aligned structures, such as the vector types, become those of
their members, sums of global thread indices one call each, and atomic sums of pairs atomics of vectors. Lanes
may shuffle variables without a value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from crosscast.characterization import toolchain
from crosscast.characterization.cuda.source import CudaSource, DeclarationRefusal
from crosscast.characterization.cuda.uninitialized import allow_uninitialized
from crosscast.errors import CompileError, InputError
from crosscast.kernel import Program

_MOST_BYTES = 64
_COPY = re.compile(
    r"^  call void @llvm\.memcpy\.[^(]*\("
    r"(?P<to>ptr(?: addrspace\(\d\))?) align (?P<to_align>\d+) (?P<target>.+), "
    r"(?P<of>ptr(?: addrspace\(\d\))?) align (?P<of_align>\d+) (?P<source>.+), "
    r"i64 (?P<nbytes>\d+), i1 false\)(?P<where>, !dbg !\d+)?, !tbaa\.struct !(?P<members>\d+)$",
    re.MULTILINE,
)
_NODE = re.compile(r"^!(\d+) = !\{(.*)\}$", re.MULTILINE)
_MEMBER = re.compile(r"i64 (\d+), i64 (\d+), !(\d+)")
_TYPE_NAME = re.compile(r'!"([^"]*)"')
_TYPES = {
    "omnipotent char": ("i8", 1),
    "bool": ("i8", 1),
    "short": ("i16", 2),
    "int": ("i32", 4),
    "long": ("i64", 8),
    "long long": ("i64", 8),
    "_Float16": ("half", 2),
    "__bf16": ("bfloat", 2),
    "float": ("float", 4),
    "double": ("double", 8),
}
"""Type in the IR and bytes of a member, by the name of its type in the metadata."""


_PAIR_SUM = re.compile(
    r"call spir_func noundef (?P<type><2 x \w+>) @_Z13cc_atomic_add\w+\("
    r"(?P<pointer>ptr addrspace\(4\)) noundef (?P<to>\S+), <2 x \w+> noundef (?P<value>\S+)\) #\d+"
)


class _Member(NamedTuple):
    offset: int
    nbytes: int
    type: str
    tag: str  # Number of its metadata node

    def aligned(self, alignment: str) -> int:
        """Return its alignment in a structure with an alignment."""
        return min(int(alignment), self.offset & -self.offset) if self.offset else int(alignment)


def separate_members(text: str) -> str:
    """Replace copies of aligned structures in unoptimized IR by loads and stores of their members.

    Otherwise the optimizer keeps copies of several unused members together, such as 12 bytes of a ``float4``,
    whose alignment is that of one member. A structure is aligned if its alignment exceeds the size of each
    member. Those with padding, unions or pointers are copied as before.
    """
    nodes: dict[str, str] = {}
    copies = 0

    def separated(copy: re.Match[str]) -> str:
        nonlocal copies
        if not nodes:
            nodes.update(_NODE.findall(text))
        members = _members(nodes, copy["members"])
        nbytes, alignment = int(copy["nbytes"]), min(int(copy["to_align"]), int(copy["of_align"]))
        is_whole = sum(member.nbytes for member in members) == nbytes <= _MOST_BYTES
        if not is_whole or alignment <= max(member.nbytes for member in members):
            return copy[0]
        copies += 1
        return _copied(copy, members, f"%copied.{copies}")

    return _COPY.sub(separated, text)


def _members(nodes: Mapping[str, str], number: str) -> list[_Member]:
    """Return the scalars in a structure, from its metadata node; none if it has other members."""
    members = []
    for offset, nbytes, tag in _MEMBER.findall(nodes[number]):
        name = _TYPE_NAME.match(nodes[nodes[tag].partition(",")[0].removeprefix("!")])
        type_, size = _TYPES.get(name[1] if name else "", ("", 0))
        if size != int(nbytes):
            return []
        members.append(_Member(int(offset), size, type_, tag))
    return members


def _copied(copy: re.Match[str], members: Iterable[_Member], name: str) -> str:
    loads, stores = [], []
    for number, member in enumerate(members):
        value = f"{name}.{number}"
        end = f"{copy['where'] or ''}, !tbaa !{member.tag}"
        lines, source = _address(copy, "of", "source", member, value)
        loads += [
            *lines,
            f"  {value} = load {member.type}, {source}, align {member.aligned(copy['of_align'])}{end}",
        ]
        lines, target = _address(copy, "to", "target", member, value)
        stores += [
            *lines,
            f"  store {member.type} {value}, {target}, align {member.aligned(copy['to_align'])}{end}",
        ]
    return "\n".join([*loads, *stores])


def _address(
    copy: re.Match[str], type_: str, pointer: str, member: _Member, value: str
) -> tuple[list[str], str]:
    """Return the lines that compute a member's address, and the address with its type."""
    if not member.offset:
        return [], f"{copy[type_]} {copy[pointer]}"
    name = f"{value}.{pointer}"
    whole = f"{copy[type_]} {copy[pointer]}"
    line = f"  {name} = getelementptr inbounds i8, {whole}, i64 {member.offset}{copy['where'] or ''}"
    return [line], f"{copy[type_]} {name}"


_NAME = r"%[-\w.$]+"
_FUNCTION = re.compile(r"^define [^\n]*\n.*?^}$", re.MULTILINE | re.DOTALL)
_GETTER = re.compile(
    rf"  ({_NAME}) = call spir_func noundef i32 @_ZN\d+(threadIdx|blockIdx|blockDim)_t5get_([xyz])Ev\("
)
_OPERATION = re.compile(rf"  ({_NAME}) = (add|mul) (?:nuw |nsw )*i32 ({_NAME}), ({_NAME})(, !dbg !\d+)?")
_GENERIC = re.compile(rf"  ({_NAME}) = addrspacecast ptr ({_NAME}) to ptr addrspace\(4\)")
_STORE = re.compile(rf"  store i32 (%?[-\w.$]+), ptr(?: addrspace\(4\))? ({_NAME})")
_LOAD = re.compile(rf"  ({_NAME}) = load i32, ptr(?: addrspace\(4\))? ({_NAME})")
_HARMLESS = re.compile(rf"  (?:{_NAME} = alloca |{_NAME} = addrspacecast |call void @llvm\.lifetime| *#dbg_)")
_Meaning = tuple[str, object]


def name_indexes(text: str) -> str:
    """Replace ``blockIdx.x * blockDim.x + threadIdx.x`` by one call in unoptimized IR.

    The optimizer would transform the sum, for a comparison such as ``i == 0`` for instance. A variable with a
    single store stands for its value.
    """
    changed = _FUNCTION.sub(lambda match: _named(match[0]), text)
    if changed == text:
        return text
    declaration = re.search(r"^declare (.*)@_Z12get_local_idj\(i32 noundef\)(.*)$", text, re.MULTILINE)
    kind, attributes = (declaration[1], declaration[2]) if declaration else ("spir_func noundef i64 ", "")
    return f"{changed}\ndeclare {kind}@_Z13get_global_idj(i32 noundef){attributes}\n"


def _named(function: str) -> str:
    if "threadIdx_t5get_" not in function:
        return function
    lines = function.split("\n")
    values = _written_once(lines)
    meanings: dict[str, _Meaning | None] = {}
    for number, line in enumerate(lines):
        if getter := _GETTER.match(line):
            meanings[getter[1]] = (getter[2], getter[3])
        elif load := _LOAD.match(line):
            meanings[load[1]] = meanings.get(values.get(load[2], ""))
        elif operation := _OPERATION.match(line):
            result, kind, first, second, where = operation.groups()
            terms = frozenset((meanings.get(first), meanings.get(second)))
            meanings[result] = None if None in terms else (kind, terms)
            if (dimension := _INDEXES.get(meanings[result])) is not None:
                lines[number] = (
                    f"  {result}.wide = call spir_func noundef i64 @_Z13get_global_idj"
                    f"(i32 noundef {dimension}){where or ''}\n"
                    f"  {result} = trunc i64 {result}.wide to i32{where or ''}"
                )
    return "\n".join(lines)


def _index(axis: str) -> _Meaning:
    product = ("mul", frozenset({("blockIdx", axis), ("blockDim", axis)}))
    return "add", frozenset({product, ("threadIdx", axis)})


_INDEXES: dict[_Meaning | None, int] = {_index(axis): dimension for dimension, axis in enumerate("xyz")}


def _written_once(lines: list[str]) -> dict[str, str]:
    """Return the value of each local variable with a single store and only loads, by its addresses."""
    variables: dict[str, str] = {}  # by their addresses, of which the generic one is another
    stored: dict[str, list[str]] = defaultdict(list)
    escaped: set[str] = set()
    for line in lines:
        if generic := _GENERIC.match(line):
            variables[generic[1]] = generic[2]
        if store := _STORE.match(line):
            stored[variables.get(store[2], store[2])].append(store[1])
        elif not _LOAD.match(line) and not _HARMLESS.match(line):
            escaped.update(variables.get(name, name) for name in re.findall(_NAME, line))
    once = {name: values[0] for name, values in stored.items() if len(values) == 1 and name not in escaped}
    return once | {address: once[name] for address, name in variables.items() if name in once}


INCLUDE_DIR = Path(__file__).parent / "include"
_ALLOWED_OPTION = re.compile(
    rf"{toolchain.ALLOWED_OPTIONS}|-m(no-)?wavefrontsize64"
    r"|--?use_fast_math|--?fmad=(true|false)|--?(arch|gpu-architecture|offload-arch)=[a-z0-9_:+-]+"
)
_MOST_ROUNDS = 32
_TARGET = "spir64-unknown-unknown"
# Errors of clang for code that nvcc accepts.
_DIALECT = (
    "-Wno-register",
    "-Wno-c++11-narrowing",
    "-Wno-reserved-user-defined-literal",
    "-Wno-error=writable-strings",
    "-Wno-invalid-utf8",
)
_DIAGNOSTIC = re.compile(r"^<stdin>:(\d+):(\d+): (fatal error|error|note): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Compiled:
    """A compiled source."""

    bitcode: bytes
    unoptimized: str  # The IR before optimization
    refused: dict[str, DeclarationRefusal]  # Kernels and device functions left out, by name
    templates: tuple[str, ...]  # Kernel templates with their parameters
    instances: dict[str, str]  # Names of instances of kernel templates by other spellings, without spaces
    missing: tuple[str, ...]  # Headers that were not found
    variables: tuple[str, ...]  # Names of device variables and textures


def compile_cuda(program: Program, instance: str = "") -> Compiled:
    """Compile a CUDA or HIP source, optionally with an instance of a kernel template.

    Raises
    ------
    CompileError
        If an error is not in a declaration.
    """
    options = _options(program)
    source = preprocess(program, instance)
    for _ in range(_MOST_ROUNDS):
        done = toolchain.run_clang([*options, "-", "-o", "-"], source.compiled.encode("latin-1"))
        if done.returncode == 0:
            symbols, text = _take_annotations(done.stdout.decode("latin-1"))
            text = _for_any_integer(text)
            return Compiled(
                _optimize(text, program),
                text,
                source.refused,
                source.templates,
                _instances(source, symbols),
                source.missing,
                source.variables,
            )
        diagnostics = done.stderr.decode(errors="replace")
        if not all(
            [source.refuse(error.message, error.positions) for error in _errors(diagnostics)] or [False]
        ):
            break
    raise CompileError(f"{program.label}: the compiler refused the program\n{source.located(diagnostics)}")


_ANNOTATIONS = re.compile(r"^@llvm\.global\.annotations = .*\n", re.MULTILINE)
_ANNOTATION = re.compile(r'^(@\.str[.\d]*) = .* c"cc:(\d+)\\00", section "llvm\.metadata"', re.MULTILINE)
_ANNOTATED = re.compile(r'@("[^"]+"|[-\w$.]+) to ptr addrspace\(1\)\), ptr addrspace\(1\) (@\.str[.\d]*),')


def _take_annotations(text: str) -> tuple[list[tuple[int, str]], str]:
    """Return numbers of instances with the names of their functions, and the IR without annotations."""
    annotations = _ANNOTATIONS.search(text)
    if not annotations:
        return [], text
    numbers = {name: int(number) for name, number in _ANNOTATION.findall(text)}
    found = [
        (numbers[n], symbol.strip('"')) for symbol, n in _ANNOTATED.findall(annotations[0]) if n in numbers
    ]
    is_ours = len(found) == annotations[0].count("@.str") / 2
    return found, _ANNOTATIONS.sub("", text) if is_ours else text


def _instances(source: CudaSource, symbols: list[tuple[int, str]]) -> dict[str, str]:
    found = source.repeated | {source.instances[number]: symbol for number, symbol in symbols}
    return {re.sub(r"\s", "", spelling): name for spelling, name in found.items()}


class _Error(NamedTuple):
    message: str
    positions: list[tuple[int, int]]  # Line and column, then those of the template's instantiations


def _errors(diagnostics: str) -> Iterator[_Error]:
    error: _Error | None = None
    for line, column, kind, message in _DIAGNOSTIC.findall(diagnostics):
        if kind != "note":
            if error:
                yield error
            error = _Error(message, [(int(line), int(column))])
        elif (error and "in instantiation of" in message) or "requested here" in message:
            assert error is not None
            error.positions.append((int(line), int(column)))
    if error:
        yield error


def preprocess(program: Program, instance: str = "") -> CudaSource:
    """Run the preprocessor, which skips missing headers.

    Raises
    ------
    InputError
        If a compiler option is not accepted.
    """
    arguments = [
        *_language(program),
        *("-ivfsoverlay", str(INCLUDE_DIR / "headers.yaml")),
        *("-isystem", str(INCLUDE_DIR), "-isystem", str(toolchain.compiler_headers())),
        *(["-I", str(program.path.parent.absolute())] if program.path is not None else []),
        *_macros(program),
        *("-include", "crosscast_cuda.h", *_program_options(program, of_preprocessor=True)),
        # Missing headers are listed instead of errors.
        *("-E", "-dD", "-Xclang", "-MG", "-Xclang", "-dependency-file", "-Xclang", "/dev/stderr"),
        *("-Xclang", "-MT", "-Xclang", "headers", "-", "-o", "-"),
    ]
    done = toolchain.run_clang(arguments, program.content)
    diagnostics = done.stderr.decode(errors="replace")
    listed = re.search(r"^headers:((?:.*\\\n)*.*)$", diagnostics, re.MULTILINE)
    names = listed[1].replace("\\\n", " ").split() if listed else []
    missing = tuple(name for name in names if not name.startswith(("/", "-", "<")))
    if not listed:
        raise CompileError(f"{program.label}: the preprocessor refused the program\n{diagnostics.strip()}")
    ours = str(INCLUDE_DIR), str(toolchain.compiler_headers())
    return CudaSource(done.stdout.decode("latin-1"), program.label, ours, missing, instance)


def may_have_instance(text: str, name: str) -> bool:
    """Whether a source may instantiate a template itself, such as ``ns::saxpy<float>``."""
    template = re.escape(name.split("<")[0].rsplit("::", 1)[-1].strip())
    return re.search(rf'\b{template}\s*<|#\s*include\s*"', text) is not None


def _for_any_integer(text: str) -> str:
    """Return IR for the target of OpenCL C, without native integer widths."""
    text = re.sub(r'^(target datalayout = ".*)-n[\d:]+(.*")$', r"\1\2", text, count=1, flags=re.MULTILINE)
    text = re.sub(r"^target triple = .*$", f'target triple = "{_TARGET}"', text, count=1, flags=re.MULTILINE)
    # Clang's builtins have no atomics of vectors, LLVM has.
    text = _PAIR_SUM.sub(r"atomicrmw fadd \g<pointer> \g<to>, \g<type> \g<value> monotonic, align 4", text)
    return allow_uninitialized(separate_members(name_indexes(text)))


def _optimize(text: str, program: Program) -> bytes:
    """Optimize IR as for OpenCL C."""
    # A work-item of a GPU has no vector registers.
    scalar = "-fno-slp-vectorize"
    arguments = ["-x", "ir", "-target", _TARGET, scalar, *_passes(program), toolchain.level(program)]
    return toolchain.clang([*arguments, "-emit-llvm", "-c"], text.encode("latin-1"), program.label)


def _passes(program: Program) -> list[str]:
    """Return the options that select passes of the optimizer."""
    return [o for o in program.options if re.fullmatch(r"-f(no-)?(unroll-loops|(slp-)?vectorize)", o)]


def wave_size(program: Program) -> int:
    """Return the lanes of a warp: 32, or 64 with AMD's wide wavefronts."""
    options = [option for option in program.options if option.endswith("wavefrontsize64")]
    return 64 if options and not options[-1].startswith("-mno") else 32


def _options(program: Program) -> list[str]:
    return [
        *_language(program),
        *("-ferror-limit=0", "-w", *_DIALECT),
        *("-fno-caret-diagnostics", "-Xclang", "-fno-diagnostics-use-presumed-location"),
        *("-ffp-contract=on", "-fno-discard-value-names", "-fuse-cuid=none"),
        *("-Xclang", "-debug-info-kind=limited", "-Xclang", "-dwarf-version=5"),
        *(*_program_options(program, of_preprocessor=False), toolchain.level(program)),
        *("-Xclang", "-disable-llvm-passes", "-emit-llvm", "-S"),
    ]


def _language(program: Program) -> list[str]:
    """Return the common options of preprocessor and compiler."""
    # Our headers need C++14, which accepts C++03 except for the errors that _DIALECT disables.
    standard = "c++14" if program.standard in ("c++03", "c++11") else program.standard
    return [
        *("-x", "hip", f"-std={standard}", "--cuda-device-only", "--offload=spirv64"),
        *("-nogpulib", "-nogpuinc", "-nostdinc", "-ffreestanding", "-fdeclspec"),
        "-Wno-unused-command-line-argument",
    ]


def _program_options(program: Program, *, of_preprocessor: bool) -> list[str]:
    """Return the program's options in clang's spelling."""
    options = []
    for option in program.options:
        if not _ALLOWED_OPTION.fullmatch(option):
            raise InputError(
                f"{program.label}: compiler option {option!r} is not accepted; expected -D, -U, -I, -W*, -w, "
                "-O*, -std=c++*, -use_fast_math, -fmad=false, -arch=*, -mwavefrontsize64, "
                "or a floating-point -f option"
            )
        if not option.startswith("-O") and of_preprocessor == option.startswith(("-D", "-U", "-I")):
            options += _clang_options(option)
    return options


def _macros(program: Program) -> list[str]:
    macros = [f"-DCROSSCAST_WARP_SIZE={wave_size(program)}"]
    if program.form == "hip":
        return [*macros, "-D__HIPCC__=1", "-D__HIP_PLATFORM_AMD__=1", "-D__HIP_PLATFORM_HCC__=1"]
    architecture = next((m[1] for o in program.options if (m := re.search(r"(?:sm|compute)_(\d+)", o))), "80")
    macros += ["-U__HIP__", "-U__HIPCC__", "-U__HIP_DEVICE_COMPILE__", "-D__CUDACC__=1", "-D__NVCC__=1"]
    return [*macros, f"-D__CUDA_ARCH__={architecture}0", "-D__CUDACC_VER_MAJOR__=12"]


def _clang_options(option: str) -> list[str]:
    """Translate an option of nvcc or hipcc to clang's."""
    if option.endswith("use_fast_math"):
        return ["-ffast-math"]
    if "fmad=" in option:
        return ["-ffp-contract=off" if option.endswith("false") else "-ffp-contract=on"]
    if "arch" in option or option.endswith("wavefrontsize64"):
        return []
    return [toolchain.absolute(option)]
