"""The library: the names it defines, those it leaves open, and what it refuses."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest

from crosscast.characterization import toolchain
from crosscast.characterization.builtins import library
from crosscast.errors import UnsupportedError

words = str.split
REAL = words(
    "acos acosh acospi asin asinh asinpi atan atanh atanpi cbrt ceil cos cosh cospi erf erfc exp exp10 exp2 "
    "expm1 fabs floor lgamma log log10 log1p log2 logb rint round rsqrt sin sinh sinpi sqrt tan tanh tanpi "
    "tgamma trunc degrees radians sign length normalize"
)
REAL_PAIRS = words(
    "atan2 atan2pi copysign fdim fmax fmin fmod hypot maxmag minmag nextafter pow powr remainder max min "
    "step dot distance"
)
REAL_TRIPLES = words("fma mad clamp mix smoothstep bitselect")
TYPES = ("f", "d", "Dh", "Dv2_f", "Dv3_d", "Dv4_Dh")


def symbols() -> list[str]:
    """Functions of every family, on scalars and vectors."""
    found = []
    for type_ in TYPES:
        vector = type_.startswith("Dv")
        again = "S_" if vector else type_
        found += [f"_Z{len(n)}{n}{type_}" for n in REAL]
        found += [f"_Z{len(n)}{n}{type_}{again}" for n in REAL_PAIRS]
        found += [f"_Z{len(n)}{n}{type_}{again}{again}" for n in REAL_TRIPLES]
        found += [f"_Z{len(n)}{n}{type_}PU3AS1{again}" for n in ("fract", "modf", "sincos")]
        integers = f"{type_[:4]}i" if vector else "i"
        found += [f"_Z{len(n)}{n}{type_}{integers}" for n in ("ldexp", "pown", "rootn")]
        found += [f"_Z{len(n)}{n}{type_}PU3AS3{integers}" for n in ("frexp", "lgamma_r")]
        found.append(f"_Z6remquo{type_}{again}PU3AS1{integers}")
        for target in ("char", "uint", "long", "half", "float", "double"):
            width = type_[2] if vector else ""
            name = f"convert_{target}{width}_rtp"
            found.append(f"_Z{len(name)}{name}{type_}")
    return found


def compiled(source: str) -> llvm.ModuleRef:
    arguments = [
        *("-x", "cl", "-cl-std=CL3.0", "-O2", "-target", "spir64-unknown-unknown", "-S", "-emit-llvm"),
        *("-isystem", str(toolchain.INCLUDE_DIR), "-Werror"),
    ]
    text = toolchain.clang(arguments, source.encode(), "builtins").decode()
    return llvm.parse_assembly(text)


def test_exactly_the_demanded_symbols_are_defined() -> None:
    demanded = symbols()
    module = compiled(library.source(demanded))
    defined = {f.name for f in module.functions if not f.is_declaration and f.linkage.name != "internal"}
    assert defined == set(demanded)


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3"])
def test_only_c_library_symbols_stay_open(cpu: str) -> None:
    """On a processor without any extension LLVM calls more routines than on others."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    text = str(compiled(library.source([*symbols(), *library.HALF_RUNTIME])))
    text = re.sub(r"^target .*\n", "", text, flags=re.MULTILINE)
    module = llvm.parse_assembly(text.replace("spir_func ", "").replace("dso_local ", ""))
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu=cpu, opt=1, reloc="pic", codemodel="small")
    called = set(re.findall(r"\b(?:callq?|jmp)\s+([A-Za-z_]\w*)", machine.emit_assembly(module)))
    assert called - {f.name for f in module.functions if not f.is_declaration} <= library.LIBM


def test_the_same_symbol_is_defined_once() -> None:
    assert library.source(["_Z3sinf", "_Z3sinf"]) == library.source(["_Z3sinf"])


def test_nothing_demanded_is_an_empty_program() -> None:
    assert not list(compiled(library.source([])).functions)


@pytest.mark.parametrize(
    ("symbol", "shown"),
    [
        ("_Z17sub_group_shufflefj", r"sub_group_shuffle\(float, uint\)"),
        ("_Z4helpf", r"help\(float\)"),
        ("outside", "outside"),
        ("_Z3sini", r"sin\(int\)"),
        ("_Z5clampff", r"clamp\(float, float\)"),
        ("_Z12convert_int4Dv2_f", r"convert_int4\(float2\)"),
    ],
)
def test_unknown_functions_are_named(symbol: str, shown: str) -> None:
    assert not library.defines(symbol)
    with pytest.raises(UnsupportedError, match=shown):
        library.source([symbol])


def test_functions_that_touch_no_memory_report_no_access() -> None:
    assert library.defines("_Z3sinDv4_f")
    assert library.accesses("_Z3sinDv4_f") == ()
    assert library.accesses("_Z4helpPU3AS1f") == ()
