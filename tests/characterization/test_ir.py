"""Operands of instructions, as LLVM prints them."""

import pytest

from crosscast.characterization.ir import Instruction

OF_CONSTANTS = "getelementptr inbounds nuw (i8, ptr addrspace(3) @x.y, i64 4)"


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("add nsw i32 %a, %b", "i32: %a; i32: %b"),
        ("icmp samesign ult i32 %a, -5", "i32: %a; i32: -5"),
        ("fcmp fast olt <2 x double> %x, zeroinitializer", "<2 x double>: %x; <2 x double>: zeroinitializer"),
        ("zext nneg i32 %x to i64", "i32: %x"),
        ("load volatile i32, ptr addrspace(1) %x, align 4", "i32:; ptr addrspace(1): %x"),
        ("load ptr addrspace(1), ptr %x, align 8", "ptr addrspace(1):; ptr: %x"),
        ('store atomic i32 1, ptr %p syncscope("a, b") release, align 4', "i32: 1; ptr: %p"),
        (
            "atomicrmw volatile add ptr addrspace(1) %p, i32 1 monotonic, align 4",
            "ptr addrspace(1): %p; i32: 1",
        ),
        ("cmpxchg weak ptr %p, i32 %a, i32 0 acq_rel monotonic, align 4", "ptr: %p; i32: %a; i32: 0"),
        ('br i1 %c, label %"a, b", label %b', 'i1: %c; label: %"a, b"; label: %b'),
        (
            "switch i32 %v, label %d [ i32 0, label %a i32 1, label %d ]",
            "i32: %v; label: %d; i32: 0; label: %a; i32: 1; label: %d",
        ),
        ("ret void", ""),
        ("alloca [16 x { i32, <2 x float> }], align 4", "[16 x { i32, <2 x float> }]:"),
        ("extractvalue { i32, i1 } %x, 0", "{ i32, i1 }: %x; { i32, i1 }: 0"),
        ("getelementptr inbounds nuw %struct.S, ptr %p, i64 0, i32 1", "%struct.S:; ptr: %p; i64: 0; i32: 1"),
        (
            f"getelementptr [4 x i8], ptr addrspace(3) {OF_CONSTANTS}, i64 %i",
            f"[4 x i8]:; ptr addrspace(3): {OF_CONSTANTS}; i64: %i",
        ),
        (
            "select i1 %c, <2 x i32> splat (i32 1), <2 x i32> <i32 0, i32 1>",
            "i1: %c; <2 x i32>: splat (i32 1); <2 x i32>: <i32 0, i32 1>",
        ),
    ],
)
def test_operands_are_types_and_values(text: str, operands: str) -> None:
    instruction = Instruction(text, text.split(" ")[0])
    assert "; ".join(f"{each.type}: {each.value}".strip() for each in instruction.operands) == operands
    instruction.rename(lambda name: name)
    assert instruction.text == text


def test_arguments_of_a_call_have_attributes() -> None:
    text = (
        "tail call spir_func float @_Z3fooPU3AS1f(ptr addrspace(1) noundef align 4 %0, "
        "ptr byval(%struct.S) align 8 %s, float nofpclass(nan inf) 1.000000e+00, i64 range(i64 0, 5) %n)"
    )
    call = Instruction(text, "call", "float")
    assert call.callee == "_Z3fooPU3AS1f"
    assert [tuple(operand) for operand in call.operands] == [
        ("ptr addrspace(1)", "%0", "noundef align 4"),
        ("ptr", "%s", "byval(%struct.S) align 8"),
        ("float", "1.000000e+00", "nofpclass(nan inf)"),
        ("i64", "%n", "range(i64 0, 5)"),
    ]
    assert call.uses() == {"%0", "%s", "%n"}


def test_calls_without_a_name() -> None:
    assert Instruction('call i32 asm "@f()", "=r"()', "call", "i32").callee == ""
    assert Instruction("call void %f(i32 1)", "call").callee == ""


def test_labels_are_no_values() -> None:
    branch = Instruction("br i1 %c, label %a, label %b", "br")
    branch.retarget("%a", "%b")
    assert (branch.targets, branch.successors, branch.uses()) == (["%b", "%b"], ["%b"], frozenset({"%c"}))


def test_an_expression_of_constants_is_an_instruction() -> None:
    text = "getelementptr i8, ptr addrspace(4) addrspacecast (ptr addrspace(3) @x to ptr addrspace(4)), i64 4"
    _, base, _ = Instruction(text, "getelementptr", "ptr addrspace(4)").operands
    cast = base.constant_expression
    assert cast is not None
    assert (cast.opcode, cast.type, cast.text) == (
        "addrspacecast",
        "ptr addrspace(4)",
        "addrspacecast ptr addrspace(3) @x to ptr addrspace(4)",
    )
