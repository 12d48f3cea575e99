"""Every kind of bad input ends in one clear sentence of the right kind."""

import contextlib
import gc
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import fuzz

import crosscast
from crosscast.characterization import run
from crosscast.characterization.engine import child, workers
from crosscast.characterization.engine.arguments import shared_empty
from crosscast.errors import (
    CompileError,
    CrosscastError,
    InputError,
    KernelFault,
    LaunchError,
    UnsupportedError,
)
from crosscast.kernel import Image, Kernel, Launch, Local, Program, Sampler
from support.launching import ints, launch, local_ints, zeros
from support.refusals import refusals

_ADD_ONE = "kernel void k(global int *a) { a[get_global_id(0)] += 1; }"


def _refusal(expected: type[CrosscastError], call: Callable[[], Any]) -> str:
    """Message of the error that `call` raises: one sentence, unless the compiler has more to say."""
    with pytest.raises(expected) as caught:
        call()
    message = str(caught.value)
    assert type(caught.value) is expected
    assert caught.value.exit_code == 2
    assert "Traceback" not in message
    if expected is not CompileError:
        assert "\n" not in message
    return message


def _fault(source: str, *args: Any, items: int = 16, group: int = 4, **more: Any) -> str:
    return _refusal(KernelFault, lambda: launch(source, items, group, *args, **more))


def _refused(expected: type[CrosscastError], kernel: Kernel) -> str:
    return _refusal(expected, lambda: crosscast.characterize(kernel, 1, 1, [ints(1)]))


# -- programs


def test_a_compile_error_shows_the_compilers_diagnostics(tmp_path: Path) -> None:
    path = tmp_path / "wrong.cl"
    path.write_text("kernel void k(global int *a) {\n  a[0] = missing;\n}\n")
    message = _refused(CompileError, Kernel.from_file(path, "k"))
    assert f"{path}:2:10: error: use of undeclared identifier 'missing'" in message


def test_a_program_of_a_newer_version_is_told_so_without_warnings() -> None:
    source = "void f(int *x) { *x = 1; }\n#warning old\nkernel void k(global int *a) { f(a); }"
    message = _refused(CompileError, Kernel.from_source(source, "k"))
    assert "OpenCL C 3.0 has what it needs: --std 3.0" in message
    assert "warning" not in message
    crosscast.characterize(Kernel.from_source(source, "k", standard="3.0"), 1, 1, [ints(1)])


def test_an_unknown_kernel_is_answered_with_those_there_are() -> None:
    source = "kernel void first(global int *a) {} kernel void second(int n) {} void helper(void) {}"
    message = _refused(InputError, Kernel.from_source(source, "third"))
    assert "'third'" in message
    assert message.endswith("first, second")


_UNSIZED = """target triple = "spir64-unknown-unknown"
%opaque = type opaque
define spir_kernel void @k(ptr addrspace(1) %a) {
  %b = alloca %opaque
  ret void
}
"""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"BC\xc0\xde", "expected LLVM bitcode of LLVM 14 to 22"),
        (b"BC\xc0\xde" + bytes(range(256)) * 4, "expected LLVM bitcode"),
        (b"BC" + b"\0" * 64, "expected LLVM bitcode"),
        (b"define spir_kernel void @k() { garbage }", "expected instruction opcode"),
        (_UNSIZED.encode(), "expected LLVM IR text"),
        (b'source_filename = "\xff', "expected LLVM IR text"),
    ],
    ids=["only a magic number", "a magic number and noise", "zeros", "garbage", "no size", "no text"],
)
def test_what_llvm_refuses_is_one_sentence(content: bytes, words: str) -> None:
    kernel = Kernel(Program(content, "bitcode" if content.startswith(b"BC") else "llvm-ir"), "k")
    message = _refused(CompileError, kernel)
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "nvptx64-nvidia-cuda", ""])
def test_ir_for_another_target_is_refused(triple: str) -> None:
    text = f'target triple = "{triple}"\n' if triple else ""
    kernel = Kernel.from_ir(f"{text}define spir_kernel void @k() {{\n  ret void\n}}\n", "k")
    message = _refused(InputError, kernel)
    assert f"expected IR for the target spir64, found {triple or 'no target'}" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot read"),
        (b"  \n", "empty"),
        (bytes(range(128, 256)), "found binary data"),
        (bytes(100), "found binary data"),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "k.cl"
    if content is not None:
        path.write_bytes(content)
    message = _refusal(InputError, lambda: Kernel.from_file(path, "k"))
    assert message.startswith(str(path))
    assert words in message


_RECURSIVE = """int odd(int x);
int even(int x) { return x == 0 ? 1 : odd(x - 1); }
int odd(int x) { return x == 0 ? 0 : even(x - 1); }
kernel void k(global int *a) { a[0] = even(a[1]) + odd(a[2]); }"""
_UNDEFINED = "int foo(int x);\nkernel void k(global int *a) {\n  a[0] = foo(a[1]);\n}"


@pytest.mark.parametrize(
    ("expected", "source", "option", "words"),
    [
        (UnsupportedError, _UNDEFINED, "-Oz", r"line 3: .*'foo'"),
        (UnsupportedError, _RECURSIVE, "-O0", "recursion"),
        (InputError, _ADD_ONE, "-fplugin=evil.so", "-fplugin=evil.so"),
    ],
)
def test_what_cannot_be_run_is_refused(
    expected: type[CrosscastError], source: str, option: str, words: str
) -> None:
    assert re.search(words, _refusal(expected, lambda: launch(source, 1, 1, ints(3), options=[option])))


# -- launches


@refusals("extents groups words")
def test_sizes_that_do_not_fit(extents: Sequence[int], groups: Sequence[int], words: str) -> None:
    assert words in _refusal(LaunchError, lambda: launch(_ADD_ONE, extents, groups, ints(16)))


@refusals("offset words")
def test_offsets_that_do_not_fit(offset: Sequence[int], words: str) -> None:
    assert words in _refusal(LaunchError, lambda: launch(_ADD_ONE, 16, 4, ints(16), global_offset=offset))


def test_sizes_of_numpy_are_plain_numbers_and_halves_are_refused() -> None:
    kernel = Kernel.from_source("__global__ void k() {}", "k", form="cuda")
    block: Any = np.array([32, 2])
    grid: Any = np.int64(4)
    on_grid, whole = Launch.on_grid(kernel, grid, block), Launch(kernel, (32 * grid, 2), tuple(block))
    for each in (on_grid, whole):
        sizes = (each.global_size, each.local_size)
        assert sizes == ((128, 2), (32, 2)) and {type(n) for size in sizes for n in size} == {int}
    words = _refusal(LaunchError, lambda: Launch(kernel, (128.5,), (32,)))  # type: ignore[arg-type]
    assert "the global size must be whole numbers, found (128.5,)" in words


def test_a_kernel_may_require_a_size_of_its_groups() -> None:
    source = _ADD_ONE.replace("void", "__attribute__((reqd_work_group_size(4, 1, 1))) void")
    launch(source, 16, 4, ints(16))
    message = _refusal(LaunchError, lambda: launch(source, 16, 8, ints(16)))
    assert "the kernel requires work-groups of (4, 1, 1) work-items" in message


def test_offsets_up_to_the_limit_run() -> None:
    source = "kernel void k(global ulong *a) { a[get_local_id(0)] = get_global_id(0); }"
    out = np.zeros(4, np.uint64)
    launch(source, 4, 4, out, global_offset=((1 << 63) - 4,))
    assert out.tolist() == [(1 << 63) - 4 + k for k in range(4)]


_MANY = "kernel void k(global int *a, float f, local int *t, float4 v, read_only image2d_t m, sampler_t s) {}"
_GOOD: tuple[Any, ...] = (
    *(ints(4), np.float32(1), Local(16), np.zeros(4, np.float32)),
    *(Image(np.zeros((2, 2, 4), np.float32)), Sampler()),
)


@pytest.mark.parametrize(
    ("position", "argument", "words"),
    [
        (0, np.zeros(4, np.float32), "expected elements of int, found float32"),
        (0, np.int32(3), "expected an array, found a value of type int32"),
        (0, Local(4), "expected an array"),
        (0, np.zeros(4, ">i4"), "byte order"),
        (1, np.int32(3), "expected a value of float, found int32"),
        (1, 3.0, "expected a value, as a NumPy scalar, found float"),
        (1, None, "expected a value"),
        (2, np.zeros(4, np.int32), "expected local memory"),
        (3, np.zeros(3, np.float32), "expected 16 bytes, found 12"),
        (4, np.zeros(4, np.float32), "expected an image"),
        (5, np.int32(0), "expected a sampler"),
    ],
)
def test_arguments_that_do_not_fit_are_named(position: int, argument: Any, words: str) -> None:
    args = list(_GOOD)
    args[position] = argument
    message = _refusal(LaunchError, lambda: launch(_MANY, 1, 1, *args))
    assert message.startswith(f"k: argument {position} (")
    assert words in message


def test_the_number_of_arguments_is_checked() -> None:
    launch(_MANY, 1, 1, *_GOOD)
    message = _refusal(LaunchError, lambda: launch(_MANY, 1, 1, *_GOOD[:2]))
    assert "expected 6 arguments (int* a, float f, int* t, float4 v" in message
    assert message.endswith("found 2")
    assert "found 7" in _refusal(LaunchError, lambda: launch(_MANY, 1, 1, *_GOOD, np.int32(1)))


def test_a_buffer_holds_whole_elements() -> None:
    source = "kernel void k(global float4 *a) { a[0] = 1; }"
    message = _refusal(LaunchError, lambda: launch(source, 1, 1, zeros(6, np.float32)))
    assert message.endswith("expected a multiple of 16 bytes, found 24 bytes")


def test_buffers_that_overlap_are_refused() -> None:
    source, data = "kernel void k(global int *a, global int *b) { a[0] = b[0]; }", ints(16)
    message = _refusal(LaunchError, lambda: launch(source, 1, 1, data[:10], data[4:]))
    assert "arguments 0 and 1 overlap" in message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threads": 0}, "threads"),
        ({"timeout_s": 0.0}, "time"),
        ({"memory_limit": 0}, "memory"),
        ({"memory_limit": 5000}, "over the memory limit of 5000 bytes"),
    ],
)
def test_limits_are_positive_and_hold_before_running(options: dict[str, Any], words: str) -> None:
    assert words in _refusal(LaunchError, lambda: launch(_ADD_ONE, 4, 4, ints(1000), **options))


# -- memory faults


def test_an_access_out_of_bounds_is_told_in_full() -> None:
    source = "kernel void k(global int *a) {\n  int i = get_global_id(0);\n  a[i] = a[i + 4];\n}"
    message = _fault(source, ints(16), check_bounds=True)
    assert message == (
        "k: out-of-bounds read of 4 bytes by work-item 12 in line 3: "
        "byte offset 64 of buffer 'a' (argument 0, 64 bytes)"
    )


def test_a_work_item_of_a_smaller_group_is_named() -> None:
    source = "kernel void k(global int *a) { if (get_global_id(0) == 4 && get_global_id(1)) a[16] = 1; }"
    message = _refusal(
        KernelFault,
        lambda: launch(source, (5, 2), (4, 2), ints(16), standard="2.0", check_bounds=True),
    )
    assert "out-of-bounds write of 4 bytes by work-item (4, 1) in line 1" in message


@pytest.mark.parametrize("check_bounds", [False, True])
def test_a_null_buffer_is_named(check_bounds: bool) -> None:
    message = _fault(_ADD_ONE, None, check_bounds=check_bounds)
    assert "null pointer, argument 0 (a)" in message
    assert ("in line 1" if check_bounds else "--check-bounds") in message


@refusals("statement words")
def test_every_kind_of_access_is_checked(statement: str, words: str) -> None:
    source = f"kernel void k(global int *a, local int *t, global int *r) {{\n  {statement};\n}}"
    kernel, args = Kernel.from_source(source, "k"), (ints(16), local_ints(4), ints(16))
    given = Launch(kernel, (8, 4), (4, 2), args, read_only=frozenset([2]))
    options = run.Options(check_bounds=True, threads=1)
    assert words in _refusal(KernelFault, lambda: run.characterize_launch(given, options=options))


@refusals("source words")
def test_a_crash_without_checks_is_a_sentence(source: str, words: str) -> None:
    assert words in _fault(f"kernel void k(global int *a) {{ {source}; }}", ints(16))


# -- other faults


@refusals("body words")
def test_a_fault_of_the_kernel_is_told(body: str, words: str) -> None:
    assert words in _fault(f"kernel void k(global int *a) {{ {body} }}", ints(16), standard="2.0")


@pytest.mark.parametrize("level", ["-Oz", "-O0"])
@refusals("body")
def test_a_barrier_that_not_all_reach_is_told_and_does_not_hang(body: str, level: str) -> None:
    source = f"kernel void k(global int *a) {{\n  {body}\n}}"
    message = _fault(source, ints(16), options=[level], timeout_s=20.0)
    assert "barrier was not reached by all work-items of work-group" in message
    assert "line 2" in message


def test_private_arrays_of_a_group_over_the_memory_limit_are_told() -> None:
    source = """kernel void k(global int *a) {
      int own[1000];
      for (int i = 0; i < 1000; i++) own[i] = a[i & 15];
      barrier(CLK_GLOBAL_MEM_FENCE);
      a[get_global_id(0)] = own[a[0]];
    }"""
    message = _refusal(LaunchError, lambda: launch(source, 256, 64, ints(256), memory_limit=100_000))
    assert "private memory" in message
    launch(source.replace("1000", "10000000"), 1, 1, buffer := ints(16))  # Within the limit
    assert buffer[0] == 0


_ENDLESS = "kernel void k(volatile global int *a) { while (a[0] >= 0) a[0] = 1; }"


def _children() -> list[int]:
    """Processes that run kernels for this one."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            # Idle workers have no child.
            busy = any((task / "children").read_text() for task in (entry / "task").iterdir())
            if busy and parent == os.getpid() and b"/worker.py" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except (OSError, IndexError):  # it has ended meanwhile
            continue
    return found


def test_a_child_that_is_killed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_QUICK_S", 60.0)  # another child would take its place

    def kill() -> None:
        deadline = time.monotonic() + 20
        while not (children := _children()) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)
        for number in children:
            os.kill(number, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    message = _fault(_ENDLESS, ints(4), items=4, timeout_s=30.0)
    killer.join()
    assert "killed by signal 9" in message


def test_an_interrupt_takes_the_child_along() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        with pytest.raises(KeyboardInterrupt):
            launch(_ENDLESS, 4, 1, ints(4), timeout_s=30.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not _children()


def test_nothing_is_copied_back_after_a_fault() -> None:
    buffer = zeros(16)
    _fault("kernel void k(global int *a) { a[get_global_id(0)] = 7; a[0] /= a[1] - 7; }", buffer)
    assert not buffer.any()


def test_the_memory_of_a_buffer_ends_with_it() -> None:
    descriptors = Path("/proc/self/fd")
    gc.collect()
    before = len([*descriptors.iterdir()])
    buffers = [shared_empty(4, np.int32) for _ in range(8)]
    assert len([*descriptors.iterdir()]) > before
    buffers.clear()
    gc.collect()
    assert len([*descriptors.iterdir()]) == before


def test_a_second_run_starts_from_the_first_ones_input() -> None:
    # Work-groups that communicate run again, on one thread; the buffer is the engine's own memory.
    source = "kernel void k(volatile global int *a, int n) { for (int i = 0; i < n; i++) a[0] += 1; }"
    buffer = shared_empty(1, np.int32)
    launch(source, 2000, 1, buffer, np.int32(300), threads=2)
    assert buffer[0] == 600_000


# -- IR that tries to reach outside

_IR = """\
target datalayout = "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-G1"
target triple = "spir64-unknown-unknown"
{module}
define spir_kernel void @k(ptr addrspace(1) %a) {{
  {body}
  store i32 1, ptr addrspace(1) %a, align 4
  ret void
}}
"""
_CONSTRUCTORS = """\
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @c, ptr null }]
define internal void @c() {
  ret void
}"""


@refusals("module body words")
def test_ir_that_reaches_outside_the_program_is_refused(module: str, body: str, words: str) -> None:
    module = module.replace("CONSTRUCTORS", _CONSTRUCTORS)
    kernel = Kernel.from_ir(_IR.format(module=module, body=body), "k")
    assert words in _refused(UnsupportedError, kernel)


@pytest.mark.parametrize("symbol", [f"_Z{5000 * '9'}f", f"_Z3sinDv{5000 * '9'}_f", f"_Z3sin{5000 * 'Dv2_'}f"])
def test_names_of_any_length_are_no_builtins(symbol: str) -> None:
    text = _IR.format(module=f"declare void @{symbol}()", body=f"call void @{symbol}()")
    assert "unresolved function" in _refused(UnsupportedError, Kernel.from_ir(text, "k"))


_ODD = ("cc_group", "write", "cc.cuts", '"a = b, section c"', '" global "', '"\\22, align 4"', '"\\C3\\A9"')


def test_names_of_variables_are_no_ir_and_not_the_runtimes() -> None:
    lines = [f"%v{n} = load i32, ptr addrspace(1) @{name}" for n, name in enumerate(_ODD)]
    lines += [f"%s{n} = add i32 %v{n}, {f'%s{n - 1}' if n else 0}" for n in range(len(_ODD))]
    body = "\n  ".join([*lines, f"store i32 %s{len(_ODD) - 1}, ptr addrspace(1) %b, align 4"])
    module = "\n".join(f"@{name} = addrspace(1) global i32 {10**n}" for n, name in enumerate(_ODD))
    text = _IR.format(module=module, body=body).replace("%a)", "%a, ptr addrspace(1) %b)")
    out = ints(1)
    crosscast.characterize(Kernel.from_ir(text, "k"), 1, 1, [ints(1), out])
    assert out[0] == 1_111_111


def test_names_of_labels_are_no_ir() -> None:
    labels = ('"x%5"', '"a, label %b"', '"a ;b"', '"a: b"', '"}"', '"\\22"')
    body = "\n".join(f"br label %{label}\n{label}:" for label in labels)
    kernel = Kernel.from_ir(_IR.format(module="", body=body), "k")
    counted = crosscast.characterize(kernel, 1, 1, [ints(1)]).metrics["total_instruction_count"]
    assert counted == len(labels) + 2


@pytest.mark.parametrize("sizes", ["i32 2", '!"a", !"b", !"c"'])
def test_metadata_of_another_form_is_told(sizes: str) -> None:
    names = '!1 = !{!"a", !"b", !"c"}'  # more than there are parameters
    text = _IR.format(module=f"!0 = !{{{sizes}}}\n{names}", body="")
    text = text.replace("%a) {", "%a) !kernel_arg_name !1 !reqd_work_group_size !0 {")
    message = _refused(InputError, Kernel.from_ir(text, "k"))
    assert "reqd_work_group_size: expected three sizes, found" in message


@pytest.mark.parametrize("name", ["words", "printed"])
def test_results_that_a_kernel_spoilt_are_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rest = np.frombuffer(b"\xff" * 64, np.uint64)
    if name == "words":
        monkeypatch.setattr(np, "fromfile", lambda *_: rest)
    else:
        monkeypatch.setattr(child, "_content", lambda _: rest.tobytes())
    message = _fault('kernel void k(global int *a) { printf("%d", a[0]); }', ints(1))
    assert message.startswith("k: what the kernel left cannot be read")


@pytest.mark.system
def test_a_kernel_that_prints_without_end_is_told() -> None:
    source = f"""kernel void k(global int *a) {{ while (!a[0]) printf("%s", "{50_000 * "x"}"); }}"""
    assert _fault(source, ints(1)) == "k: work-group 0 printed more than the limit of 1024 MiB"


def test_a_kernel_that_executes_nothing_is_told() -> None:
    text = _IR.format(module="", body="unreachable\ndead:")
    assert _refused(KernelFault, Kernel.from_ir(text, "k")) == "k: no instruction was executed"


@pytest.mark.parametrize("threads", [1, 2])
@refusals("body")
def test_accesses_outside_of_every_buffer_are_noticed_without_checks(body: str, threads: int) -> None:
    source = f"kernel void k(global int *a, global int *b, int n) {{ int x = get_global_id(0); {body} }}"
    a, b = np.zeros(16, np.int32), np.zeros(64, np.int32)
    with pytest.raises(KernelFault, match=r"k: .*accessed memory that is not its own: .*--check-bounds"):
        launch(source, 32, 16, a, b, np.int32(32), threads=threads)


def test_a_process_that_was_killed_while_idle_is_passed_over() -> None:
    launch(_ADD_ONE, 4, 1, ints(4))
    for worker in workers._idle["kernel"]:
        worker.process.kill()
        worker.process.wait()
    launch(_ADD_ONE, 4, 1, ints(4))


@pytest.mark.system
def test_mutated_inputs_give_a_profile_or_a_sentence(tmp_path: Path) -> None:
    """A few of those of ``python -m benchmarks.fuzz``."""
    fuzzer, watched = fuzz.Fuzzer(tmp_path, fuzz.FORMATS), fuzz.Watched()
    with contextlib.closing(watched):
        found = [fuzzer.attempt(seed, watched) for seed in range(30)]
    assert not [one for one in found if one.is_failure]
    assert {one.outcome for one in found} == {"profile", "refused"}
