"""The instruction mix: each executed instruction in one class, on kernels small enough to count."""

import numpy as np
import pytest
from launching import LEVELS, ints, launch, local_ints, zeros

from crosscast.characterization.instruction_mix import CLASSES, instruction_mix
from crosscast.profile import Profile


def counts(body: str, *args: object, level: str = "-Oz") -> dict[str, int]:
    """Instructions by class of one work-item that runs a kernel of one statement or several."""
    parameters = "global int *i, global float *f, global float4 *v, local int *l"
    arrays = (ints(64), zeros(64, np.float32), zeros((64, 4), np.float32), local_ints(64))
    source = f"kernel void k({parameters}) {{ {body} }}"
    return dict(launch(source, 1, 1, *arrays, options=[level]).instructions)


def test_a_kernel_of_nothing_only_returns() -> None:
    assert counts("") == {"control": 1}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # A load, what the statement does, a store, and the return.
        ("i[0] = i[0] + 3;", {"alu": 1, "mem": 2, "control": 1}),
        ("i[0] = i[0] ^ 3;", {"alu": 1, "mem": 2, "control": 1}),
        ("i[0] = i[0] << 3;", {"shift": 1, "mem": 2, "control": 1}),
        ("i[0] = i[0] * 7;", {"shift": 1, "mem": 2, "control": 1}),
        ("f[0] = f[0] + 3;", {"fp": 1, "mem": 2, "control": 1}),
        ("f[0] = i[0];", {"fp": 1, "mem": 2, "control": 1}),
        ("f[0] = sqrt(f[0]);", {"fp": 1, "mem": 2, "control": 1}),
        ("v[0] = v[0] + v[0];", {"sse": 1, "mem": 2, "control": 1}),
        ("v[0] = sqrt(v[0]);", {"sse": 1, "mem": 2, "control": 1}),
        ("i[0] = clz(i[0]);", {"alu": 1, "mem": 2, "control": 1}),
        ("atomic_add(i, 5);", {"mem": 1, "control": 1}),
        ("barrier(CLK_LOCAL_MEM_FENCE);", {"control": 2}),
    ],
)
def test_an_instruction_is_in_the_class_of_what_it_does(body: str, expected: dict[str, int]) -> None:
    assert counts(body) == expected


def test_a_copy_of_memory_is_one_instruction_of_its_own_class() -> None:
    source = (
        "typedef struct { int a[100]; } Large; kernel void k(global Large *to, global Large *a) { *to = *a; }"
    )
    profile = launch(source, 1, 1, zeros(100), zeros(100))
    assert profile.instructions == {"string": 1, "control": 1}


def test_variables_without_optimization_are_on_the_stack() -> None:
    # Two of the kernel's own; the parameters have theirs too.
    assert counts("int a = i[0]; i[0] = a;", level="-O0")["stack"] == 5


@pytest.mark.parametrize("level", LEVELS)
def test_classes_add_up_to_all_instructions(level: str) -> None:
    source = """
    float half_of(float x) { return x / 2; }
    kernel void k(global float *f, global int *i) {
        int n = get_global_id(0);
        for (int j = 0; j < n; j++)
            f[n] += j % 2 ? half_of(f[j]) : (float)(i[j] << 1);
    }"""
    profile = launch(source, 8, 4, zeros(8, np.float32), ints(8), options=[level])
    assert sum(profile.instructions.values()) == profile.metrics["total_instruction_count"]
    assert set(profile.instructions) <= {*CLASSES, "other"}


def test_the_mix_is_of_all_launches_together(make_profile: object) -> None:
    assert callable(make_profile)
    first: Profile = make_profile()
    one = [{"alu": 3, "other": 1}, {"alu": 1, "mem": 5}]
    profiles = [Profile(**{**vars(first), "instructions": found}) for found in one]
    mix = instruction_mix(profiles)
    assert tuple(mix) == CLASSES
    assert {name: share for name, share in mix.items() if share} == {"alu": 0.4, "mem": 0.5}


def test_of_profiles_that_did_not_count_classes_nothing_is_known(make_profile: object) -> None:
    assert callable(make_profile)
    assert instruction_mix([make_profile()]) == {}
    assert instruction_mix([]) == {}
