"""What every application of the suite must be and do, one by one."""

import re
from collections.abc import Callable, Iterable, Set
from itertools import pairwise, product

import numpy as np
import pytest

from crosscast.characterization import run
from crosscast.characterization.toolchain import compile_opencl
from crosscast.data.schema import SIZES
from crosscast.errors import CheckFailed
from crosscast.kernel import Argument, Program
from crosscast.measure.opencl import OpenCLQueue, devices
from crosscast.suite.application import Application, Array, Queue, working_set
from crosscast.suite.profiles import profiles_of
from crosscast.suite.registry import application, names
from support.examples import one_in

PUBLISHED = {
    "kmeans": {"kmeansPoint"},
    "lud": {"lud_diagonal", "lud_perimeter", "lud_internal"},
    "csr": {"csr"},
    "fft": {f"fftRadix{radix}Kernel" for radix in (2, 4, 8, 16)},
    "gem": {"calc_potential_single_step_dev"},
    "dwt": {"c_CopySrcToComponents", "cl_fdwt53Kernel"},
    "srad": {"srad_cuda_1", "srad_cuda_2"},
    "bfs": {"kernel1", "kernel2"},
    "nw": {"needle_opencl_shared_1", "needle_opencl_shared_2"},
    "hmm": {
        *(f"{name}_dev" for name in ("acc_b", "calc_alpha", "calc_beta", "calc_gamma", "calc_xi")),
        *(f"{name}_dev" for name in ("est_a", "est_b", "est_pi", "init_alpha", "init_beta", "init_ones")),
        *(f"{name}_dev" for name in ("scale_a", "scale_alpha", "scale_b")),
        *(f"{name}_kernel_naive" for name in ("mvm_non", "mvm_trans", "s_dot")),
    },
    "crc": {"crc32_slice8"},
}
"""Kernels of the Extended OpenDwarfs set, by application."""

REDUNDANT = {"hmm": ({"est_a_dev", "scale_a_dev"}, {"est_b_dev", "scale_b_dev"})}
"""Kernels of which each hides that another does nothing: both of a pair divide by what makes sums one."""

LIMITS = (*((1 << exponent) + odd for exponent in range(13, 30) for odd in (0, 4999)), 1 << 30)
SMALLEST_LIMITS = tuple(limit for limit in LIMITS if limit <= 256 << 10)

every_application = pytest.mark.parametrize("name", names())


def redundant(name: str, kernel: str) -> bool:
    return any(kernel in group for group in REDUNDANT.get(name, ()))


def make(name: str, size: str, seed: int = 0) -> Application:
    kind = application(name)
    return kind(kind.fit(working_set(size)), seed)


def program_of(kind: type[Application], *options: str) -> Program:
    return Program.from_file(kind.source_path(), options=(*kind.options, *options))


def pocl_queue(problem: Application) -> OpenCLQueue:
    return OpenCLQueue(devices()[0], program_of(type(problem)), problem.arrays)


def contents(arrays: Iterable[Array]) -> list[bytes]:
    return [array.tobytes() for array in arrays]


def fill_buffers(queue: OpenCLQueue, problem: Application, byte: int) -> None:
    """Let buffers on the device hold the same byte everywhere; arrays stay as they are."""
    for array in problem.arrays:
        kept = array.copy()
        array.view(np.uint8)[...] = byte
        queue.write(array)
        array[...] = kept


class Watched:
    """A queue that says what is done with it, and may leave kernels out or damage what is read.

    Parameters
    ----------
    queue
        What does the work.
    leave_out
        Kernels that are not launched.
    damage
        Called after each read with its number, counted from 0, and its arrays.
    """

    def __init__(
        self,
        queue: Queue,
        leave_out: Set[str] = frozenset(),
        damage: Callable[[int, tuple[Array, ...]], None] = lambda number, arrays: None,
    ) -> None:
        self._queue = queue
        self._leave_out = leave_out
        self._damage = damage
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
        assert len(global_size) == len(local_size)
        assert all(whole % part == 0 for whole, part in zip(global_size, local_size, strict=True))
        assert np.prod(local_size) <= 256
        self.launched.append(kernel)
        self.used.extend(arg for arg in args if isinstance(arg, np.ndarray))
        if kernel not in self._leave_out:
            self._queue.launch(kernel, global_size, local_size, *args)


def test_the_published_kernels_are_there() -> None:
    assert sum(map(len, PUBLISHED.values())) == 36
    for name, kernels in PUBLISHED.items():
        assert kernels <= set(application(name).kernels)
    assert {"swat", "nqueens", "cfd"} <= set(names())


@every_application
def test_it_is_named_after_its_folder_and_says_what_it_computes(name: str) -> None:
    kind = application(name)
    assert kind.name == kind.folder().name == name
    assert kind.source_path().is_file()
    assert kind.__doc__ is not None
    assert kind.__doc__ != Application.__doc__


@every_application
def test_kernels_are_those_of_its_source_each_once(name: str) -> None:
    kind = application(name)
    in_source = re.findall(r"(?:__)?kernel\s[^;{]*?void\s+(\w+)\s*\(", kind.source_path().read_text("utf-8"))
    assert sorted(kind.kernels) == sorted(in_source)
    assert len(set(kind.kernels)) == len(kind.kernels)


@every_application
def test_fit_is_deterministic_and_gives_positive_whole_numbers(name: str) -> None:
    kind = application(name)
    names_of_extents = set(kind.fit(LIMITS[0]))
    for limit in LIMITS:
        found = kind.fit(limit)
        assert found == kind.fit(limit)
        assert set(found) == names_of_extents
        assert all(type(value) is int and value > 0 for value in found.values())


@every_application
def test_a_problem_fits_and_does_not_shrink_as_the_limit_grows(name: str) -> None:
    kind = application(name)
    sizes = [kind(kind.fit(limit), 0).nbytes for limit in SMALLEST_LIMITS]
    assert all(0 < size <= limit for size, limit in zip(sizes, SMALLEST_LIMITS, strict=True))
    # Where extents trade with each other, rounding may cost a little.
    assert all(after >= 0.9 * before for before, after in pairwise(sizes))


# As boards, blocks and powers of two come, the last three fill less.
FILLED = {"crc": 1.0, "bfs": 0.99, "gem": 0.99, "dwt": 0.8, "fft": 0.5, "lud": 1 / 3, "nqueens": 0.2}


@every_application
@pytest.mark.parametrize("limit", [8 << 10, 31 * 999, 50_001, 256 << 10, 8 << 20])
def test_a_working_set_fills_what_was_asked_for(name: str, limit: int) -> None:
    kind = application(name)
    assert FILLED.get(name, 0.9) * limit <= kind(kind.fit(limit), 0).nbytes <= limit


@every_application
def test_the_sizes_are_different_problems(name: str) -> None:
    extents = [tuple(application(name).fit(working_set(size)).items()) for size in SIZES]
    assert len(set(extents)) == len(SIZES)


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
    problems = (make(name, "tiny", seed) for seed in (1, 1, 2))
    first, again, other = (
        contents(each for each in (*problem.arrays, *vars(problem).values()) if isinstance(each, np.ndarray))
        for problem in problems
    )
    assert first == again
    if name != "nqueens":  # where nothing is random
        assert first != other


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
    queue = pocl_queue(problem)
    # What a kernel reads must have been written: garbage would show in the result.
    fill_buffers(queue, problem, 0xA5)
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
def test_other_seeds_pass_the_check(name: str) -> None:
    problem = make(name, "tiny", seed=2**32 + 7)
    problem.run(pocl_queue(problem))
    problem.check()


@every_application
def test_one_damaged_element_of_any_result_fails_the_check(name: str) -> None:
    problem = make(name, "tiny")
    queue = pocl_queue(problem)
    clean = Watched(queue)
    problem.run(clean)
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


@pytest.mark.parametrize(
    ("name", "left_out"),
    one_in(
        2,
        [
            (name, kernels)
            for name in names()
            for kernels in (
                *REDUNDANT.get(name, ()),
                *({kernel} for kernel in application(name).kernels if not redundant(name, kernel)),
            )
        ],
    ),
)
def test_kernels_that_do_nothing_fail_the_check(name: str, left_out: Set[str]) -> None:
    problem = make(name, "tiny")
    queue = pocl_queue(problem)
    fill_buffers(queue, problem, 0)
    problem.run(Watched(queue, leave_out=left_out))
    # Results of nothing may be infinite on the way to being wrong.
    with np.errstate(all="ignore"), pytest.raises(CheckFailed):
        problem.check()
