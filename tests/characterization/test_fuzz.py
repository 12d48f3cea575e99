"""A few of the mutated inputs of ``python -m benchmarks.fuzz``, and what LLVM cannot take."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks import fuzz

import crosscast
from crosscast.characterization.engine import llvm
from crosscast.kernel import Kernel, Launch
from support import random_kernels

_INPUTS = 30


@pytest.fixture(scope="module")
def watched() -> Iterator[fuzz.Watched]:
    process = fuzz.Watched()
    yield process
    process.close()


@pytest.mark.system
def test_mutated_inputs_give_a_profile_or_a_sentence(tmp_path: Path, watched: fuzz.Watched) -> None:
    fuzzer = fuzz.Fuzzer(tmp_path, fuzz.FORMATS)
    found = [fuzzer.attempt(seed, watched) for seed in range(_INPUTS)]
    assert not [one for one in found if one.is_failure]
    assert {one.outcome for one in found} == {"profile", "refused"}


def test_an_input_is_that_of_its_seed(tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        _, launch = fuzz.Fuzzer(tmp_path / name, fuzz.FORMATS).write(7)
        made.append([path.read_bytes() for path in sorted(launch.parent.glob("program*"))])
    assert made[0] == made[1]


def test_a_crash_of_llvm_is_a_refusal_and_the_next_program_is_read() -> None:
    nested = b"@a = external global " + b"[1 x " * 200_000 + b"i8" + b"]" * 200_000
    with pytest.raises(llvm.LLVMRefusedError, match="LLVM was stopped by SIG"):
        llvm.parse(nested, is_text=True)
    assert llvm.parse(b"", is_text=True).text


def test_a_program_that_llvm_crashes_on_is_optimized_less() -> None:
    made = random_kernels.make(506034, wild=True)  # of LLVM 22's vectorizer, for processors with AVX-512
    kernel = Kernel.from_source(made.source, "k", standard=made.standard, options=("-O2",))
    arguments = made.arguments()
    crosscast.characterize(Launch(kernel, made.global_size, made.local_size, tuple(arguments)), threads=1)
    arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
    for array, expected in zip(arrays, made.outputs(), strict=True):
        np.testing.assert_array_equal(array, expected)


def test_a_stage_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(llvm._LIMIT_S, "parse", 0.0)
    long = "\n".join(f"declare void @f{number}()" for number in range(100_000))
    with pytest.raises(llvm.LLVMRefusedError, match="did not end within 0"):
        llvm.parse(long.encode(), is_text=True)
