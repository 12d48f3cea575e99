"""The base header: every version of the language compiles with it, and its constants are right."""

import math
import re
from collections.abc import Callable

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization import toolchain
from crosscast.characterization.builtins import library
from crosscast.characterization.builtins.declarations import ADDRESS_SPACES, BuiltinDeclaration, Type, parse
from crosscast.errors import UnsupportedError
from support.examples import one_in
from support.harness import DTYPES, MANGLED, evaluate
from support.refusals import refusals

COMMON = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable
constant float table[3] = {NAN, INFINITY, MAXFLOAT};
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
kernel void everything(global float4 *a, global double3 *d, global half *h, local int *l, global long *q,
                       read_only image2d_t picture, write_only image3d_t volume, global int *n, sampler_t s) {
  size_t i = get_global_id(0);
  float4 whole;
  int exponent;
  a[0] = sin(a[1]) + fract(a[2], &whole) + native_rsqrt(a[5]) + table[1];
  a[1] = (float4)(NAN, HUGE_VALF, M_PI_F, FLT_EPSILON) + whole;
  d[i] = pow(d[i], (double3)M_PI) + convert_double3_rtz(a[i].xyz) * DBL_MAX;
  d[1].x = frexp(d[2].x, &exponent);
  vstore_half4_rte(a[i], i, h);
  vstore4(sin(vload4(0, h)) * HALF_MAX + M_PI_H, 1, h);
  atomic_add(n, 1); atom_add(q, 1L); atom_max(q, 3L); atomic_inc(l);
  a[4] = read_imagef(picture, nearest, (int2)(1, 2)) + read_imagef(picture, s, (float2)(1, 2));
  write_imagef(volume, (int4)(1, 2, 3, 0), a[2]);
  n[1] = get_image_width(picture) + get_image_channel_order(picture) - CLK_RGBA;
  event_t copied = async_work_group_copy(l, n, 10, 0);
  wait_group_events(1, &copied);
  prefetch(n, 3);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  mem_fence(CLK_LOCAL_MEM_FENCE);
  n[2] = as_int(a[1].x) + any(isnan(a[1])) + clz(n[6]) + mad_sat(1, 2, n[3]) + UINT_MAX + exponent;
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


def test_integer_limits() -> None:
    names = {"char": "CHAR", "short": "SHRT", "int": "INT", "long": "LONG"}
    for base, prefix in names.items():
        info = np.iinfo(DTYPES[base])
        got = evaluate({"low": f"{prefix}_MIN", "high": f"{prefix}_MAX"}, base, {"x": np.zeros(1, np.int32)})
        assert (got["low"][0], got["high"][0]) == (info.min, info.max)
        prefix = "USHRT" if base == "short" else f"U{prefix}"
        got = evaluate({"high": f"{prefix}_MAX"}, f"u{base}", {"x": np.zeros(1, np.int32)})
        assert got["high"][0] == np.iinfo(DTYPES[f"u{base}"]).max


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
    "SQRT2": math.sqrt(2),
    "SQRT1_2": math.sqrt(0.5),
}


@pytest.mark.parametrize(
    ("base", "prefix", "suffix"), [("half", "HALF", "_H"), ("float", "FLT", "_F"), ("double", "DBL", "")]
)
def test_floating_point_limits_and_constants(base: str, prefix: str, suffix: str) -> None:
    dtype = DTYPES[base]
    info = np.finfo(dtype)
    expected = {f"M_{name}{suffix}": dtype(value) for name, value in CONSTANTS.items()}
    expected |= {
        f"{prefix}_MAX": info.max,
        f"{prefix}_MIN": info.smallest_normal,
        f"{prefix}_EPSILON": info.eps,
        f"{prefix}_MANT_DIG": info.nmant + 1,
        f"{prefix}_DIG": info.precision,
        f"{prefix}_MAX_EXP": info.maxexp,
        f"{prefix}_MIN_EXP": info.minexp + 1,
    }
    got = evaluate({name: name for name in expected}, base, {"x": np.zeros(1, np.int32)})
    for name, value in expected.items():
        assert got[name][0] == dtype(value), name


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


def test_exactly_the_demanded_symbols_are_defined() -> None:
    demanded = symbols()
    module = llvm.parse_assembly(library.llvm_ir(demanded))
    defined = {f.name for f in module.functions if not f.is_declaration and f.linkage.name != "internal"}
    assert defined == set(demanded)


@pytest.mark.parametrize("cpu", one_in(2, ["x86-64", "x86-64-v3"]))
def test_only_c_library_symbols_stay_open(cpu: str) -> None:
    """On a processor without any extension LLVM calls more routines than on others."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    text = library.llvm_ir([*symbols(), *library.HALF_RUNTIME])
    text = re.sub(r"^target .*\n", "", text, flags=re.MULTILINE)
    module = llvm.parse_assembly(text.replace("spir_func ", "").replace("dso_local ", ""))
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu=cpu, opt=1, reloc="pic", codemodel="small")
    called = set(re.findall(r"\b(?:callq?|jmp)\s+([A-Za-z_]\w*)", machine.emit_assembly(module)))
    assert called - {f.name for f in module.functions if not f.is_declaration} <= library.LIBM


def test_the_same_symbol_is_defined_once() -> None:
    assert library.llvm_ir(["_Z3sinf", "_Z3sinf"]) == library.llvm_ir(["_Z3sinf"])


def test_nothing_demanded_is_an_empty_program() -> None:
    assert not list(llvm.parse_assembly(library.llvm_ir([])).functions)


@refusals("symbol shown")
def test_unknown_functions_are_named(symbol: str, shown: str) -> None:
    with pytest.raises(UnsupportedError, match=shown):
        library.llvm_ir([symbol])


def test_functions_that_touch_no_memory_report_no_access() -> None:
    assert library.accesses("_Z3sinDv4_f") == ()
    assert library.accesses("_Z4helpPU3AS1f") == ()


OPAQUE = ("ocl_image2d_ro", "ocl_image3d_wo", "ocl_sampler", "ocl_event", "memory_order")

values = st.builds(Type, st.sampled_from(sorted(MANGLED)), st.sampled_from([1, 2, 3, 4, 8, 16]))
pointers = st.builds(
    Type,
    st.sampled_from(sorted(MANGLED)),
    st.sampled_from([1, 2, 4]),
    st.just(True),
    st.integers(0, 4),
    st.booleans(),
    st.booleans(),
) | st.builds(
    Type,
    st.sampled_from(["int", "ulong"]),
    st.just(1),
    st.just(True),
    st.integers(0, 4),
    atomic=st.just(True),
)
types = values | pointers | st.builds(Type, st.sampled_from(OPAQUE))


class Encoder:
    """The part of the Itanium C++ ABI's mangling that builtins need."""

    def __init__(self, named_spaces: bool) -> None:
        self._named_spaces = named_spaces
        self._seen: list[str] = []

    def symbol(self, name: str, parameters: tuple[Type, ...]) -> str:
        return f"_Z{len(name)}{name}{''.join(map(self._parameter, parameters)) or 'v'}"

    def _parameter(self, type_: Type) -> str:
        if not type_.pointer:
            return self._value(type_)
        qualifiers = self._space(type_.address_space)
        qualifiers += "V" * type_.volatile + "K" * type_.const
        # A pointer and what it points to are candidates of their own, by what they mean.
        return self._once(("pointer", type_), lambda: "P" + self._qualified(qualifiers, type_))

    def _qualified(self, qualifiers: str, type_: Type) -> str:
        if not qualifiers:
            return self._value(type_)
        return self._once(("qualified", type_), lambda: qualifiers + self._value(type_))

    def _value(self, type_: Type) -> str:
        if type_.atomic:
            return self._once(("atomic", type_.base), lambda: "U7_Atomic" + MANGLED[type_.base])
        if type_.width > 1:
            vector = f"Dv{type_.width}_{MANGLED[type_.base]}"
            return self._once(("vector", type_.base, type_.width), lambda: vector)
        if type_.base in MANGLED:
            return MANGLED[type_.base]
        return self._once(("name", type_.base), lambda: f"{len(type_.base)}{type_.base}")

    def _space(self, number: int) -> str:
        if number == 0:
            return ""
        name = f"CL{ADDRESS_SPACES[number]}" if self._named_spaces else f"AS{number}"
        return f"U{len(name)}{name}"

    def _once(self, meaning: object, encode: Callable[[], str]) -> str:
        key = repr(meaning)
        if key in self._seen:
            index = self._seen.index(key)
            return "S_" if index == 0 else f"S{index - 1:X}_"
        text = encode()
        self._seen.append(key)
        return text


@given(st.from_regex(r"[a-z][a-z_0-9]{0,20}", fullmatch=True), st.lists(types, max_size=7), st.booleans())
def test_what_was_encoded_is_read_back(name: str, parameters: list[Type], named_spaces: bool) -> None:
    symbol = Encoder(named_spaces).symbol(name, tuple(parameters))
    assert parse(symbol) == BuiltinDeclaration(symbol, name, tuple(parameters))


@given(st.text(alphabet="_Zsinfcvdj0123456789PKVUDhASCLglobal", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    declaration = parse(text)
    assert declaration is None or declaration.symbol == text


def test_clang_agrees() -> None:
    parameters = (
        Type("float", 4),
        Type("float", 4, pointer=True, address_space=1),
        Type("int", pointer=True, address_space=1, volatile=True, atomic=True),
        Type("half", 16, pointer=True, address_space=3),
        Type("char", pointer=True, address_space=2, const=True),
        Type("double", 3, pointer=True),
        Type("ocl_image2d_ro"),
        Type("ocl_sampler"),
        Type("ulong", pointer=True, address_space=4),
        Type("memory_order"),
        Type("float", 4, pointer=True, address_space=1),
    )
    spelled = ", ".join(f"{t.spelling} a{k}" for k, t in enumerate(parameters))
    source = f"__attribute__((overloadable)) void many({spelled}) {{}}"
    arguments = [
        *("-x", "cl", "-cl-std=CL3.0", "-target", "spir64-unknown-unknown", "-S", "-emit-llvm"),
        *("-isystem", str(toolchain.INCLUDE_DIR)),
    ]
    text = toolchain.clang(arguments, source.encode(), "source").decode()
    match = re.search(r"@(_Z4many\w+)\(", text)
    assert match is not None
    declaration = parse(match[1])
    assert declaration is not None
    assert declaration.parameters == parameters


@pytest.mark.parametrize(
    ("symbol", "text"),
    [
        ("_Z3sinDv4_f", "sin(float4)"),
        ("_Z5clampfff", "clamp(float, float, float)"),
        ("_Z6vload4mPU3AS1Kf", "vload4(ulong, global const float*)"),
        ("_Z10atomic_addPU8CLglobalVjj", "atomic_add(global volatile uint*, uint)"),
        ("_Z5fractDv2_fPU3AS1S_", "fract(float2, global float2*)"),
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
