"""The base header: every version of the language compiles with it, and its constants are right."""

import math
import random
import re
from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization import builtins as library
from crosscast.characterization import toolchain
from crosscast.characterization.builtins import Access, BuiltinDeclaration, Type, parse
from crosscast.errors import UnsupportedError
from support.examples import one_in
from support.harness import DTYPES, compiled_ir, evaluate
from support.refusals import refusals

COMMON = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
kernel void everything(global float4 *a, global double3 *d, global half *h, local int *l, global long *q,
                       read_only image2d_t picture, global int *n, sampler_t s) {
  float4 whole;
  a[0] = sin(a[1]) + fract(a[2], &whole) + native_rsqrt(a[5]) + whole;
  d[0] = pow(d[1], (double3)M_PI) + convert_double3_rtz(a[1].xyz);
  vstore_half4_rte(a[1], 2, h);
  atomic_add(n, 1); atom_add(q, 1L); atomic_inc(l);
  a[4] = read_imagef(picture, nearest, (int2)(1, 2)) + read_imagef(picture, s, (float2)(1, 2));
  n[1] = get_image_width(picture) + get_image_channel_order(picture) - CLK_RGBA;
  event_t copied = async_work_group_copy(l, n, 10, 0);
  wait_group_events(1, &copied);
  prefetch(n, 3);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  n[2] = as_int(a[1].x) + any(isnan(a[1])) + clz(n[6]) + mad_sat(1, 2, n[3]);
  a[6] = select(shuffle(a[3], (uint4)(1, 2, 3, 0)), a[2], isless(a[3], a[4]));
}
"""
NEWER = """
kernel void newer(global int *n, local int *l) {
  int *anywhere = n[0] ? (int *)n : (int *)l;
  *anywhere = 3;
  atomic_int made;
  atomic_init(&made, 3);
  atomic_fetch_add_explicit((global atomic_int *)n, 1, memory_order_relaxed, memory_scope_device);
  work_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_device);
  n[9] = work_group_reduce_add(3) + get_local_linear_id() + work_group_all(3);
  atomic_flag_test_and_set((global atomic_flag *)n);
}
"""


def compile_as(standard: str, source: str) -> None:
    arguments = [
        *("-x", "cl", f"-cl-std=CL{standard}", "-target", "spir64-unknown-unknown", "-S", "-emit-llvm"),
        *("-isystem", str(toolchain.INCLUDE_DIR), "-Wall", "-Werror"),
    ]
    toolchain.clang(arguments, source.encode(), "everything")


@pytest.mark.parametrize("standard", ["1.0", "1.1", "1.2", "2.0", "3.0"])
def test_every_version_of_the_language_compiles(standard: str) -> None:
    compile_as(standard, COMMON)
    if standard >= "1.2":
        compile_as(standard, 'kernel void say(int n) { printf("%d\\n", n + popcount(n)); }')
    if standard >= "2.0":
        compile_as(standard, NEWER)


@pytest.mark.parametrize(
    "absent", ["cl_khr_subgroups", "cl_intel_subgroups", "cl_amd_media_ops", "__opencl_c_pipes"]
)
def test_what_crosscast_does_not_run_is_not_announced(absent: str) -> None:
    compile_as("3.0", f"#ifdef {absent}\n#error announced\n#endif\nkernel void empty() {{}}")


CONSTANTS = {
    "E": math.e,
    "LOG2E": math.log2(math.e),
    "LOG10E": math.log10(math.e),
    "LN2": math.log(2),
    "LN10": math.log(10),
    "PI": math.pi,
    "PI_2": math.pi / 2,
    "PI_4": math.pi / 4,
    "1_PI": 1 / math.pi,
    "2_PI": 2 / math.pi,
    "2_SQRTPI": 2 / math.sqrt(math.pi),
    "SQRT2": 2**0.5,
    "SQRT1_2": 0.5**0.5,
}
PREFIXES = {
    "half": ("HALF", "_H"),
    "float": ("FLT", "_F"),
    "double": ("DBL", ""),
    "char": ("CHAR", ""),
    "short": ("SHRT", ""),
    "int": ("INT", ""),
    "long": ("LONG", ""),
    "uchar": ("UCHAR", ""),
    "ushort": ("USHRT", ""),
    "uint": ("UINT", ""),
    "ulong": ("ULONG", ""),
}


@pytest.mark.parametrize("base", PREFIXES)
def test_limits_and_constants(base: str) -> None:
    dtype, (prefix, suffix) = DTYPES[base], PREFIXES[base]
    info: Any = np.finfo(dtype) if suffix or base == "double" else np.iinfo(dtype)
    expected = {f"{prefix}_MAX": info.max, f"{prefix}_MIN": info.min}
    if base.startswith("u"):
        del expected[f"{prefix}_MIN"]
    if isinstance(info, np.finfo):
        expected |= {f"M_{name}{suffix}": dtype(value) for name, value in CONSTANTS.items()}
        expected |= {f"{prefix}_MIN": info.smallest_normal, f"{prefix}_EPSILON": info.eps}
        expected |= {f"{prefix}_MANT_DIG": info.nmant + 1, f"{prefix}_DIG": info.precision}
        expected |= {f"{prefix}_MAX_EXP": info.maxexp, f"{prefix}_MIN_EXP": info.minexp + 1}
    got = evaluate({name: name for name in expected}, base, {"x": np.zeros(1, np.int32)})
    assert {name: row[0] for name, row in got.items()} == expected


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


@pytest.mark.parametrize("cpu", one_in(2, ["x86-64", "x86-64-v3"]))
def test_exactly_the_demanded_symbols_are_defined_and_only_those_of_the_c_library_open(cpu: str) -> None:
    """On a processor without any extension LLVM calls more routines than on others."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    demanded = {*symbols(), *library.HALF_RUNTIME}
    text = re.sub(r"^target .*\n", "", library.llvm_ir(sorted(demanded)), flags=re.MULTILINE)
    module = llvm.parse_assembly(text.replace("spir_func ", "").replace("dso_local ", ""))
    defined = [f for f in module.functions if not f.is_declaration]
    assert {f.name for f in defined if f.linkage.name != "internal"} == demanded
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu=cpu, opt=1, reloc="pic", codemodel="small")
    called = set(re.findall(r"\b(?:callq?|jmp)\s+([A-Za-z_]\w*)", machine.emit_assembly(module)))
    assert called - {f.name for f in defined} <= library.LIBM


def test_a_symbol_is_defined_once_and_nothing_without_demand() -> None:
    assert library.llvm_ir(["_Z3sinf", "_Z3sinf"]) == library.llvm_ir(["_Z3sinf"])
    assert not list(llvm.parse_assembly(library.llvm_ir([])).functions)


@refusals("symbol shown")
def test_unknown_functions_are_named(symbol: str, shown: str) -> None:
    with pytest.raises(UnsupportedError, match=shown):
        library.llvm_ir([symbol])


ACCESSES: dict[str, tuple[Access, ...]] = {
    "_Z3sinDv4_f": (),
    "_Z4helpPU3AS1f": (),
    "_Z6vload2mPU3AS1Kc": (Access("read", 1, 0, 2, 2, 1),),
    "_Z7vload16mPU3AS1Kd": (Access("read", 1, 0, 128, 128, 8),),
    "_Z7vstore3Dv3_fmPU3AS3f": (Access("write", 2, 1, 12, 12, 4),),
    "_Z11vload_half3mPU3AS1KDh": (Access("read", 1, 0, 6, 6, 2),),
    # Only aligned halves of three take the room of four.
    "_Z12vloada_half3mPU3AS1KDh": (Access("read", 1, 0, 8, 6, 8),),
    "_Z17vstorea_half3_rtzDv3_fmPU3AS1Dh": (Access("write", 2, 1, 8, 6, 8),),
    "_Z11vstore_halffmPU3AS4Dh": (Access("write", 2, 1, 2, 2, 2),),
    "_Z5fractDv4_fPU3AS1S_": (Access("write", 1, None, 0, 16, 16),),
    "_Z6remquoDv3_dS_PU3AS3Dv3_i": (Access("write", 2, None, 0, 16, 16),),
    "_Z10atomic_addPU3AS1Vii": (Access("read-write", 0, None, 0, 4, 4),),
    "_Z8atom_incPU3AS3Vl": (Access("read-write", 0, None, 0, 8, 8),),
    "_Z14atomic_cmpxchgPU3AS1Viii": (Access("compare-exchange", 0, None, 0, 4, 4, "equals-argument"),),
    "_Z28atomic_compare_exchange_weakPU3AS4VU7_AtomiciPU3AS4ii": (
        Access("compare-exchange", 0, None, 0, 4, 4, "result"),
    ),
    "_Z11atomic_loadPU3AS4VU7_Atomicd": (Access("read", 0, None, 0, 8, 8),),
    "_Z12atomic_storePU3AS4VU7_Atomicdd": (Access("write", 0, None, 0, 8, 8),),
    "_Z11atomic_initPU3AS4VU7_Atomicii": (Access("write", 0, None, 0, 4, 4),),
    "_Z17atomic_flag_clearPU3AS4VU7_Atomici": (Access("write", 0, None, 0, 4, 4),),
    "_Z24atomic_flag_test_and_setPU3AS4VU7_Atomici": (Access("read-write", 0, None, 0, 4, 4),),
    # Private
    **dict.fromkeys(("_Z6vload4mPKf", "_Z5fractfPf", "_Z11atomic_initPVU7_Atomicii"), ()),
}


@pytest.mark.parametrize("symbol", ACCESSES)
def test_calls_report_their_accesses(symbol: str) -> None:
    assert library.accesses(symbol) == ACCESSES[symbol]


COMMUTE = [
    *("_Z10atomic_addPU3AS1Vii", "_Z10atomic_decPU3AS1Vj"),
    "_Z25atomic_fetch_xor_explicitPU3AS4VU7_Atomicll12memory_order",
]
DO_NOT = [
    *("_Z11atomic_xchgPU3AS1Vii", "_Z14atomic_cmpxchgPU3AS1Viii", "_Z16atomic_fetch_addPU3AS1VU7_Atomicff"),
    *("_Z11atomic_loadPU3AS4VU7_Atomici", "_Z12atomic_storePU3AS4VU7_Atomicii", "_Z3maxii"),
]


@pytest.mark.parametrize("symbol", [*COMMUTE, *DO_NOT])
def test_only_updates_of_integers_may_change_places(symbol: str) -> None:
    assert library.is_commutative(symbol) is (symbol in COMMUTE)


POINTED = [
    *(Type(base, width) for base in ("char", "ulong", "half", "float") for width in (1, 3, 16)),
    *(Type(base, atomic=True) for base in ("int", "ulong")),
]
OPAQUE = ("ocl_image2d_ro", "ocl_image3d_wo", "ocl_sampler", "ocl_event", "memory_order")
PARAMETERS = [
    *(each for each in POINTED if not each.atomic),
    *(replace(each, pointer=True, address_space=space) for each in POINTED for space in range(1, 5)),
    *(replace(each, pointer=True, const=True, address_space=2) for each in POINTED),
    *(replace(each, pointer=True, volatile=True, address_space=1) for each in POINTED),
    *map(Type, OPAQUE),
]


def test_symbols_are_read_as_clang_writes_them() -> None:
    chance = random.Random(5)
    drawn = {f"f{n}": tuple(chance.choices(PARAMETERS, k=n % 8)) for n in range(150)}
    # Private pointers stand at the end, as in builtins.
    drawn |= {
        f"g{n}": (*each, replace(POINTED[n % 14], pointer=True)) for n, each in enumerate(drawn.values())
    }
    source = "#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable\n" + "".join(
        f"__attribute__((overloadable)) void {name}"
        f"({', '.join(f'{t.spelling} a{k}' for k, t in enumerate(types)) or 'void'}) {{}}\n"
        for name, types in drawn.items()
    )
    symbols = re.findall(r"^define .*@(_Z\w+)\(", compiled_ir(source, "3.0"), re.M)
    for symbol, (name, types) in zip(symbols, drawn.items(), strict=True):
        assert parse(symbol) == BuiltinDeclaration(symbol, name, types)


@pytest.mark.parametrize(
    ("symbol", "text"),
    [
        ("_Z3sinDv4_f", "sin(float4)"),
        ("_Z6vload4mPU3AS1Kf", "vload4(ulong, global const float*)"),
        ("_Z10atomic_addPU8CLglobalVjj", "atomic_add(global volatile uint*, uint)"),
        (
            "_Z11read_imagef14ocl_image2d_ro11ocl_samplerDv2_i",
            "read_imagef(read_only image2d_t, sampler_t, int2)",
        ),
        ("_Z19get_local_linear_idv", "get_local_linear_id()"),
    ],
)
def test_declarations_are_shown_as_in_opencl_c(symbol: str, text: str) -> None:
    assert str(parse(symbol)) == text


@pytest.mark.parametrize(
    "symbol",
    ["", "printf", "_Z", "_Z9short", "_Z3sin!", "_Z3sinS_", "_Z3sinPPf", "_ZN3foo3barEf", "_Z1fPU3AS9f"],
)
def test_what_no_builtin_has_is_refused(symbol: str) -> None:
    assert parse(symbol) is None


@given(st.text(alphabet="_Zsinfcvdj0123456789PKVUDhASCLglobal", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    declaration = parse(text)
    assert declaration is None or declaration.symbol == text
