"""What every application of the suite must be and do, one by one."""

import re
from collections.abc import Callable, Iterable, Set
from itertools import chain, pairwise, product

import numpy as np
import pytest

from crosscast.characterization import run
from crosscast.characterization.toolchain import compile_opencl
from crosscast.data.schema import SIZES
from crosscast.errors import CheckFailed
from crosscast.kernel import Argument, Program
from crosscast.measure.opencl import OpenCLQueue, devices
from crosscast.suite.application import Application, Array, Queue, application, names, working_set
from crosscast.suite.profiles import profiles_of
from support.examples import one_in

HMM = (
    "acc_b calc_alpha calc_beta calc_gamma calc_xi est_a est_b est_pi init_alpha init_beta init_ones "
    "scale_a scale_alpha scale_b"
)
PUBLISHED: dict[str, set[str]] = {
    "kmeans": {"kmeansPoint"},
    "lud": {"lud_diagonal", "lud_perimeter", "lud_internal"},
    "csr": {"csr"},
    "fft": {f"fftRadix{radix}Kernel" for radix in (2, 4, 8, 16)},
    "gem": {"calc_potential_single_step_dev"},
    "dwt": {"c_CopySrcToComponents", "cl_fdwt53Kernel"},
    "srad": {"srad_cuda_1", "srad_cuda_2"},
    "bfs": {"kernel1", "kernel2"},
    "nw": {"needle_opencl_shared_1", "needle_opencl_shared_2"},
    "hmm": {f"{name}_dev" for name in HMM.split()}
    | {f"{name}_kernel_naive" for name in ("mvm_non", "mvm_trans", "s_dot")},
    "crc": {"crc32_slice8"},
}
"""Kernels of the Extended OpenDwarfs set, by application."""

REDUNDANT = {"hmm": ({"est_a_dev", "scale_a_dev"}, {"est_b_dev", "scale_b_dev"})}
"""Kernels of which each hides that another does nothing: both of a pair divide by what makes sums one."""

LIMITS = (*((1 << exponent) + odd for exponent in range(13, 30) for odd in (0, 4999)), 1 << 30)
every_application = pytest.mark.parametrize("name", names())


def make(name: str, size: str, seed: int = 0) -> Application:
    kind = application(name)
    return kind(kind.fit(working_set(size)), seed)


def program_of(kind: type[Application], *options: str) -> Program:
    return Program.from_file(kind.source_path(), options=(*kind.options, *options))


def contents(arrays: Iterable[Array]) -> list[bytes]:
    return [array.tobytes() for array in arrays]


def pocl_queue(problem: Application, byte: int = 0) -> OpenCLQueue:
    """A queue, on whose device buffers hold the same byte everywhere; arrays stay as they are."""
    queue = OpenCLQueue(devices()[0], program_of(type(problem)), problem.arrays)
    for array in problem.arrays:
        kept = array.copy()
        array.view(np.uint8)[...] = byte
        queue.write(array)
        array[...] = kept
    return queue


class Watched:
    """A queue that says what is done with it, may leave kernels out, and calls `damage` after each read."""

    def __init__(
        self,
        queue: Queue,
        leave_out: Set[str] = frozenset(),
        damage: Callable[[int, tuple[Array, ...]], None] = lambda number, arrays: None,
    ) -> None:
        self._queue, self._leave_out, self._damage = queue, leave_out, damage
        self.launched: list[str] = []
        self.read_arrays: list[tuple[Array, ...]] = []
        self.used: list[Array] = []

    def write(self, *arrays: Array) -> None:
        self.used.extend(arrays)
        self._queue.write(*arrays)

    def read(self, *arrays: Array) -> None:
        self.used.extend(arrays)
        self._queue.read(*arrays)
        self._damage(len(self.read_arrays), arrays)
        self.read_arrays.append(arrays)

    def launch(
        self, kernel: str, global_size: tuple[int, ...], local_size: tuple[int, ...], *args: Argument
    ) -> None:
        assert all(whole % part == 0 for whole, part in zip(global_size, local_size, strict=True))
        assert np.prod(local_size) <= 256
        self.launched.append(kernel)
        self.used.extend(arg for arg in args if isinstance(arg, np.ndarray))
        if kernel not in self._leave_out:
            self._queue.launch(kernel, global_size, local_size, *args)


@every_application
def test_it_has_the_name_and_the_kernels_of_its_source(name: str) -> None:
    kind = application(name)
    assert kind.name == kind.source_path().stem == name
    assert kind.__doc__ not in (None, Application.__doc__)
    in_source = re.findall(r"(?:__)?kernel\s[^;{]*?void\s+(\w+)\s*\(", kind.source_path().read_text("utf-8"))
    assert sorted(kind.kernels) == sorted(in_source)
    assert PUBLISHED.get(name, set()) <= set(kind.kernels)


# As boards, blocks and powers of two come, the last three fill less.
FILLED = {"crc": 1.0, "bfs": 0.99, "gem": 0.99, "dwt": 0.8, "fft": 0.5, "lud": 1 / 3, "nqueens": 0.2}


@every_application
def test_fit_gives_whole_numbers_of_problems_that_fill_what_they_may_and_do_not_shrink(name: str) -> None:
    kind = application(name)
    found = [kind.fit(limit) for limit in LIMITS]
    assert found == [kind.fit(limit) for limit in LIMITS]
    assert len({tuple(extents) for extents in found}) == 1
    assert all(type(value) is int and value > 0 for extents in found for value in extents.values())
    assert len({tuple(kind.fit(working_set(size)).values()) for size in SIZES}) == len(SIZES)
    limits = [*(limit for limit in LIMITS if limit <= 256 << 10), 8 << 20]
    sizes = [kind(kind.fit(limit), 0).nbytes for limit in limits]
    filled = FILLED.get(name, 0.9)
    assert all(filled * limit <= size <= limit for size, limit in zip(sizes, limits, strict=True))
    # Where extents trade with each other, rounding may cost a little.
    assert all(after >= 0.9 * before for before, after in pairwise(sizes))


@every_application
def test_the_source_compiles_without_warnings_and_without_double_precision(name: str) -> None:
    kind = application(name)
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", kind.source_path().read_text("utf-8"), flags=re.DOTALL)
    assert not re.search(r"\bdouble\d*\b|\bprintf\b|#\s*pragma\s+OPENCL", code)
    # A literal without f is of double precision. Loops are not unrolled where size is what counts.
    warnings = ("-Wall", "-Wextra", "-Wdouble-promotion", "-Wno-pass-failed", "-Werror")
    compile_opencl(program_of(kind, *warnings))


@every_application
def test_the_same_seed_is_the_same_problem_and_another_one_is_not(name: str) -> None:
    problems = [make(name, "tiny", seed) for seed in (1, 1, 2)]
    values = [(*problem.arrays, *vars(problem).values()) for problem in problems]
    first, again, other = (contents(each for each in v if isinstance(each, np.ndarray)) for v in values)
    assert first == again
    assert (first != other) is (name != "nqueens")  # where nothing is random


@pytest.mark.parametrize("name", one_in(5, names()))
def test_runs_in_the_engine_stay_in_bounds_and_are_all_alike(name: str) -> None:
    problem = make(name, "tiny")
    options = run.Options(check_bounds=True)
    first = profiles_of(problem, "tiny", options=options)  # checks
    after_first = contents(problem.arrays)
    second = profiles_of(problem, "tiny", options=options)
    assert [(p.kernel, p.invocation) for p in second] == [(p.kernel, p.invocation) for p in first]
    assert [p.metrics for p in second] == [p.metrics for p in first]
    assert contents(problem.arrays) == after_first
    assert {p.kernel for p in first} == set(problem.kernels)
    assert {(p.application, p.size) for p in first} == {(name, "tiny")}


@pytest.mark.parametrize(("name", "size"), one_in(3, product(names(), ["tiny", "small"])))
def test_runs_on_a_device_launch_each_kernel_and_are_all_alike(name: str, size: str) -> None:
    problem = make(name, size)
    # What a kernel reads must have been written: garbage would show in the result.
    queue = pocl_queue(problem, 0xA5)
    first = Watched(queue)
    problem.run(first)
    problem.check()
    results = contents(first.read_arrays[-1])
    second = Watched(queue)
    problem.run(second)
    problem.check()
    assert contents(second.read_arrays[-1]) == results
    assert second.launched == first.launched
    assert set(first.launched) == set(problem.kernels)
    assert {id(array) for array in first.used} == {id(array) for array in problem.arrays}


@every_application
def test_one_damaged_element_of_any_result_fails_the_check(name: str) -> None:
    problem = make(name, "tiny", seed=2**32 + 7)
    queue = pocl_queue(problem)
    clean = Watched(queue)
    problem.run(clean)
    problem.check()
    last, results = len(clean.read_arrays) - 1, clean.read_arrays[-1]
    for which in range(len(results)):

        def damage(number: int, arrays: tuple[Array, ...], which: int = which) -> None:
            if number == last:
                arrays[which].reshape(-1)[:1].view(np.uint8)[...] ^= 0xFF

        problem.run(Watched(queue, damage=damage))
        with pytest.raises(CheckFailed):
            problem.check()
        # What one run did wrong must not stay.
        problem.run(queue)
        problem.check()


def left_out(name: str) -> list[tuple[str, Set[str]]]:
    """Kernels of an application of which it must show that they do nothing."""
    pairs = REDUNDANT.get(name, ())
    alone = set(application(name).kernels).difference(*pairs)
    return [(name, kernels) for kernels in (*pairs, *({kernel} for kernel in sorted(alone)))]


@pytest.mark.parametrize(("name", "kernels"), one_in(2, chain.from_iterable(map(left_out, names()))))
def test_kernels_that_do_nothing_fail_the_check(name: str, kernels: Set[str]) -> None:
    problem = make(name, "tiny")
    problem.run(Watched(pocl_queue(problem), leave_out=kernels))
    # Results of nothing may be infinite on the way to being wrong.
    with np.errstate(all="ignore"), pytest.raises(CheckFailed):
        problem.check()
