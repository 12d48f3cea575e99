"""Characterization of one launch: compile, instrument, run in a child process, read counts, make profile."""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from crosscast.characterization import engine, ir
from crosscast.characterization.cuda.adapt import adapt_kernel
from crosscast.characterization.cuda.compiler import wave_size
from crosscast.characterization.cuda.kernels import image_sizes, pack, set_variables, unset_variables
from crosscast.characterization.engine.arguments import (
    Memory,
    copy_back,
    group_counts,
    lay_out,
    restore,
    same_buffers,
    snapshot,
    three,
)
from crosscast.characterization.engine.child import (
    SPOILT,
    Options,
    Progress,
    Run,
    RunResult,
)
from crosscast.characterization.engine.counts import Counts, read_results
from crosscast.characterization.engine.llvm import build_library, kernel_ir
from crosscast.characterization.frontend import LoadedKernel, load_kernel
from crosscast.characterization.instrumentation import inline
from crosscast.characterization.instrumentation.code import InstrumentationOptions
from crosscast.characterization.instrumentation.driver import emit
from crosscast.characterization.instrumentation.plan import Plan, make_plan
from crosscast.characterization.instrumentation.vector_accesses import hoist_ids, merge_accesses
from crosscast.characterization.launch_facts import (
    Built,
    Clock,
    Ran,
    describe_launch,
    describe_program,
    launch_geometry,
)
from crosscast.characterization.metrics import compute_metrics, published_metrics
from crosscast.characterization.sampling import (
    Box,
    BoxCounts,
    Sample,
    extend_sample,
    fewest_groups,
    sample_of,
)
from crosscast.data import environment
from crosscast.errors import KernelFault, LaunchError, UnsupportedError
from crosscast.kernel import Image, Kernel, Launch
from crosscast.profile import Profile
from crosscast.units import format_bytes

__all__ = ["Options", "Progress", "characterize_launch"]


MOST_WORK_ITEMS = (1 << 31) - 1
"""Larger launches would run for minutes at least, and a smaller one characterizes the kernel as well."""
_MOST_STACK_BYTES = 255 << 20
_MOST_FOR_TWO_THREADS = 64 << 20
"""Bytes of buffers up to which a second set of counters is affordable."""
_MOST_STREAM_BYTES = 1 << 30
"""Most bytes of the recorded addresses of a work-group."""
_MUCH_MEMORY, _MOST_MEMORY = 1 << 30, 4 << 30
"""Memory of a run from which on it is announced, and from which on groups are rather sampled."""
_PATIENCE_S, _LONGEST_S, _SAMPLED_S = 2.0, 20.0, 5.0
"""Seconds after which a run is judged, its longest estimated time, and the time of the sample instead."""
_SAMPLED_FOR_MEMORY = 1024
_MOST_QUICK_ITEMS, _QUICK_S = 4096, 0.2
"""Launches of so few work-items are built quickly, and with all optimizations once they ran for so long.

Of code of more than `_QUICK_CODE` instructions both are as many times more, as builds take longer.
"""
_QUICK_CODE = 256
_long_kernels: set[Kernel] = set()
"""Kernels of which such a launch did."""


@functools.lru_cache(maxsize=64)
def _build(
    loaded: LoadedKernel, options: InstrumentationOptions, *, host_time: bool, quick: bool, alone: bool
) -> Built:
    written = _write(loaded, options, host_time)
    start = time.perf_counter()
    symbols = written.library_symbols
    library = build_library(written.text, symbols, written.native, quick=quick, alone=alone)
    build_s = written.instrument_s + time.perf_counter() - start
    return replace(written, text="", native="", library=library, instrument_s=build_s)


@functools.lru_cache(maxsize=16)
def _write(loaded: LoadedKernel, options: InstrumentationOptions, host_time: bool) -> Built:
    start = time.perf_counter()
    native = ""
    with _located(loaded.kernel):
        module, plan, unset = _plan(loaded, options)
        emitted = emit(plan)
        if host_time and not plan.per_warp:
            uncounted, same, _ = _plan(loaded, replace(options, counts=False, check_bounds=False))
            native = kernel_ir(uncounted, emit(same).text, counts=False)
    text, symbols = kernel_ir(module, emitted.text), emitted.library_symbols
    return Built(loaded, plan, emitted.layout, unset, time.perf_counter() - start, text, symbols, native)


@contextmanager
def _located(kernel: Kernel) -> Iterator[None]:
    """Name source and kernel in errors that name a line only."""
    try:
        yield
    except (UnsupportedError, LaunchError) as error:
        if error.field is None or error.where is not None:
            raise
        raise error.within(f"{kernel.program.label}: {kernel.name}") from error


def _plan(loaded: LoadedKernel, options: InstrumentationOptions) -> tuple[ir.Module, Plan, tuple[str, ...]]:
    """Return the module and the plan of a kernel, and the names of unset variables that it reads."""
    kernel, module = loaded.kernel, loaded.program.module
    unset: tuple[str, ...] = ()
    flat = inline.flatten(module, loaded.function)
    if kernel.program.is_cuda:
        module = adapt_kernel(module, flat, options.shared)
        merge_accesses(flat, module.sizes)
        declared = loaded.program.compiled.variables if loaded.program.compiled else ()
        unset = tuple(unset_variables(flat, module, options.variables))
        module = set_variables(module, flat, declared, kernel, options.variables, options.images)
    elif kernel.program.is_optimized and not options.published:
        merge_accesses(flat, module.sizes)
    if kernel.program.form not in ("llvm-ir", "bitcode") and not options.published:
        hoist_ids(flat)
    return module, make_plan(module, flat, options), unset


def _code_size(plan: Plan) -> int:
    """Return the size of a kernel's code in units of `_QUICK_CODE` instructions, at least 1."""
    return max(1, plan.facts.code // _QUICK_CODE)


def characterize_launch(launch: Launch, *, invocation: int = 0, options: Options) -> Profile:
    """Run one launch and return its profile; arrays among the arguments hold the output afterwards.

    If only some of its work-groups run, arrays do not change.
    """
    engine.start()
    if options.optimize:
        launch = replace(launch, kernel=launch.kernel.optimized())
    loaded = load_kernel(launch.kernel)
    if options.published and options.sample_groups != "all":
        raise LaunchError.of(
            where=launch.kernel.name, problem="the published tool's metrics are those of all work-groups"
        )
    if options.sample_groups != "all":
        options = replace(options, host_time=False)
    runner = _Runner(launch, options, loaded)
    sample, reason = _sample(runner)
    if sample is None:
        box = None if options.first_groups is None else Box((0, 0, 0), options.first_groups)
        ran = runner.run(box, _too_slow(runner))
        if ran is not None:
            return _profile(runner, ran, invocation)
        sample, reason = _sample_in_time(runner)
    return _sampled(runner, sample, reason, invocation)


def _sample(runner: _Runner) -> tuple[Sample | None, str]:
    """Select the work-groups to run, as far as possible before a run, with the reason."""
    name, requested = runner.launch.kernel.name, runner.options.sample_groups
    groups = group_counts(runner.launch)
    needed, fewest = _needed_bytes(runner), fewest_groups(groups)
    excess, sample = _over_limit(runner, needed), None
    if waiting := _waiting(runner.built.plan):
        if isinstance(requested, int):
            raise LaunchError.of(
                where=name,
                problem=(
                    f"{waiting}, so that none can be left out: expected no --sample-groups, found {requested}"
                ),
            )
        if excess:
            raise LaunchError.of(where=name, problem=f"{excess}; {waiting}, so that none can be left out")
    if isinstance(requested, int):
        if fewest is not None and requested < fewest:
            raise LaunchError.of(
                where=name,
                expected=f"at least {fewest} work-groups to sample of {_spelled(groups)}",
                found=f"{requested}",
            )
        sample = sample_of(groups, requested)
    elif requested == "auto" and (excess or (needed > _MOST_MEMORY and _may_sample(runner))):
        sample = sample_of(groups, max(_SAMPLED_FOR_MEMORY, fewest or 0))
    if excess and sample is None:
        raise LaunchError.of(
            where=name, problem=f"{excess}; --sample-groups runs some of its work-groups in less"
        )
    if needed >= _MUCH_MEMORY and sample is None and runner.options.note:
        buffers = format_bytes(runner.memory.nbytes)
        runner.options.note(f"{name}: needs about {format_bytes(needed)}: {buffers} of buffers, and counters")
    return sample, "memory" if excess or requested == "auto" else "asked"


def _may_sample(runner: _Runner) -> bool:
    """Return whether groups may be sampled unasked: output and effects of their order are not extended."""
    return not runner.built.layout.is_ordered and bool(fewest_groups(group_counts(runner.launch)))


def _waiting(plan: Plan) -> str:
    """Say that work-groups wait for each other, and where; empty if they do not."""
    if plan.waiting is None:
        return ""
    where = f" ({plan.waiting.where})" if plan.waiting.where else ""
    return f"work-groups wait for each other{where}"


def _spelled(groups: Sequence[int]) -> str:
    return " x ".join(str(n) for n in groups if n > 1) or "1"


def _too_slow(runner: _Runner) -> Callable[[Progress], bool] | None:
    """Return a check whether a run will take too long, if it may be given up."""
    if runner.options.sample_groups != "auto" or not _may_sample(runner):
        return None

    def is_too_slow(progress: Progress) -> bool:
        runner.rate = progress.groups_done / progress.elapsed_s if progress.elapsed_s else 0.0
        if progress.elapsed_s < _PATIENCE_S or not progress.groups_done:
            return False
        return (progress.groups_total - progress.groups_done) / runner.rate > _LONGEST_S

    return is_too_slow


def _sample_in_time(runner: _Runner) -> tuple[Sample, str]:
    groups = group_counts(runner.launch)
    affordable = int(_SAMPLED_S * runner.rate / 2.5)  # Some groups run twice
    sample = sample_of(groups, max(affordable, fewest_groups(groups) or 0))
    assert sample is not None
    return sample, "time"


def _profile(runner: _Runner, ran: Ran, invocation: int) -> Profile:
    launch, options, program = runner.launch, runner.options, runner.loaded.program
    counts, result, clock = ran.counts, ran.result, ran.clock
    with clock:
        metrics = compute_metrics(counts, math.prod(ran.box.size if ran.box else group_counts(launch)))
        described = describe_launch(launch, ran)
        lines = [line for _, line in program.module.branches]
        shared, items = ran.built.plan.line_branches, math.prod(launch.local_size)
        rows = published_metrics(counts, metrics, shared, lines, items) if options.published else ()
    return Profile(
        kernel=launch.kernel.name,
        invocation=invocation,
        metrics=metrics,
        timing_s={
            "compile": program.compile_s,
            "instrument": ran.built.instrument_s,
            "run": result.run_s,
            "run_cpu": result.cpu_s,
            "metrics": result.reduce_s + clock.wall_s,
            "metrics_cpu": result.reduce_cpu_s + clock.cpu_s,
        },
        launch=described,
        program=describe_program(launch.kernel.program, program),
        environment=environment.facts(),
        printed=result.printed,
        published=rows,
        instructions=dict(sorted(counts.classes.items())),
    )


def _sampled(runner: _Runner, sample: Sample, reason: str, invocation: int) -> Profile:
    """Make the profile of a launch from some of its work-groups."""
    launch, options = runner.launch, runner.options
    if options.note:
        options.note(
            f"{launch.kernel.name}: {sample.ran_groups()} of {math.prod(sample.groups)} work-groups are run, "
            "and counts extended"
        )

    def measured(box: Box) -> BoxCounts:
        ran = runner.run(box)
        assert ran is not None
        return BoxCounts(_profile(runner, ran, invocation), ran.counts.distinct_of, ran.atomic_memory)

    boxes = {run: measured(sample.box(run)) for run in sample.runs()}
    profile = extend_sample(sample, boxes, measured(sample.larger_box()[0]))
    facts = {
        "geometry": launch_geometry(launch, runner.built),
        "sampled": {**profile.launch["sampled"], "because": reason},
    }
    return replace(profile, launch={**profile.launch, **facts}, printed="")


@dataclass
class _Runner:
    """Runs a launch, or some of its work-groups, repeatedly if the counts of a run are invalid."""

    launch: Launch
    options: Options
    loaded: LoadedKernel

    def __post_init__(self) -> None:
        launch, options = self.launch, self.options
        _check_sizes(launch, self.loaded.required_local_size)
        instrumentation = _instrumentation_options(launch, options)
        written = _write(self.loaded, instrumentation, options.host_time)
        is_small = math.prod(launch.global_size) <= _MOST_QUICK_ITEMS * _code_size(written.plan)
        self.is_quick = (
            (is_small or options.trial) and launch.kernel not in _long_kernels and not options.host_time
        )
        self.threads = _threads(launch, options, written)
        # An atomic takes several times as long as a plain access; where work-items wait it must stay one.
        can_be_plain = self.threads == 1 or bool(written.plan.sharing.sums)
        self.is_alone = can_be_plain and written.plan.waiting is None
        self._build(instrumentation)
        self.memory = self._laid_out()
        self.rate = 0.0  # Work-groups a second, of a run that was given up

    def _laid_out(self) -> Memory:
        layout = self.built.layout
        return lay_out(self.launch, self.loaded.parameters, layout.local_bytes, layout.is_accessed)

    def run(
        self, box: Box | None = None, is_too_slow: Callable[[Progress], bool] | None = None
    ) -> Ran | None:
        """Run it; return the result, or ``None`` if it was given up."""
        threads = self.threads
        pieces = [] if box is None else _shared_pieces(box.pieces(group_counts(self.launch)), threads)
        keeps_buffers = box is not None or self.options.trial
        before = {} if keeps_buffers else snapshot(self.memory, self.built.layout)
        while True:
            layout = self.built.layout
            gives_up = self._is_long if self.is_quick else is_too_slow
            waiting = _waiting(self.built.plan)
            run = Run(self.launch, self.memory, layout, self.options, threads, pieces, gives_up, waiting)
            result = run.run(self.built.library)
            if result is None:
                if not keeps_buffers:
                    self._restore(before)
                if not self.is_quick:
                    return None
                self.is_quick = False
                _long_kernels.add(self.launch.kernel)
                self._build(self.instrumentation)
                continue
            clock = Clock()
            with clock:
                counts = self._counts(result)
            if not counts.instructions:
                raise KernelFault(f"{self.launch.kernel.name}: no instruction was executed")
            if counts.conflict:
                # Work-groups that communicate must run in the defined order, one after another.
                threads = 1
            elif result.overflow and not self.instrumentation.checked:
                # One work-group alone could overflow a counter: check at each increment.
                self._build(replace(self.instrumentation, checked=True))
            elif self.instrumentation.stream_words < (words := _stream_words(counts, self.built)):
                # Work-items of long loops recorded more addresses than fit.
                threads = 1
                self._build(replace(self.instrumentation, stream_words=words))
            else:
                if not keeps_buffers:
                    copy_back(self.memory)
                # The intended number of threads, as conflicts between them depend on chance.
                beyond = {
                    layout.parameters[placed.position].name: counts.beyond[placed.address]
                    for placed in self.memory.placed
                    if placed.address in counts.beyond
                }
                return Ran(
                    built=self.built,
                    threads=self.threads,
                    result=result,
                    counts=counts,
                    clock=clock,
                    box=box,
                    beyond=beyond,
                    atomic_memory=self._atomic_memory(counts),
                )
            if not keeps_buffers:
                self._restore(before)

    def _atomic_memory(self, counts: Counts) -> frozenset[tuple[int, int]]:
        """Return buffers with atomics by address and size, or variables if some are elsewhere."""
        sites = self.built.layout.sub_groups.sites
        positions = {site.buffer for site in sites if site.is_atomic and not site.is_local}
        buffers = {placed.address: placed.position for placed in self.memory.placed}
        return frozenset(key for key in counts.distinct_of if buffers.get(key[0], -1) in positions)

    def _restore(self, before: dict[int, bytes]) -> None:
        """Restore buffers to their content before a run."""
        self.memory = self._laid_out()
        restore(self.memory, before)

    def _is_long(self, progress: Progress) -> bool:
        """Whether a run has taken so long that all optimizations would have paid."""
        return progress.elapsed_s > _QUICK_S * _code_size(self.built.plan)

    def _build(self, instrumentation: InstrumentationOptions) -> None:
        self.instrumentation = instrumentation
        host_time, quick, alone = self.options.host_time, self.is_quick, self.is_alone
        self.built = _build(self.loaded, instrumentation, host_time=host_time, quick=quick, alone=alone)

    def _counts(self, result: RunResult) -> Counts:
        try:
            return read_results(result.words, self.built.layout)
        except (ValueError, LookupError, OverflowError, TypeError) as error:
            raise KernelFault(f"{self.launch.kernel.name}: {SPOILT} ({error})") from error


def _shared_pieces(pieces: Sequence[tuple[int, int]], threads: int) -> list[tuple[int, int]]:
    """Split pieces so that all threads get some."""
    most = max(1, sum(end - first for first, end in pieces) // (16 * threads)) if threads > 1 else 1 << 62
    return [(g, min(g + most, end)) for first, end in pieces for g in range(first, end, most)]


def _stream_words(counts: Counts, built: Built) -> int:
    """Return the words for the addresses of the longest work-group at one access; 0 if they need too much."""
    words = 1 << (counts.sub_groups.overflow - 1).bit_length() if counts.sub_groups.overflow else 0
    return words if 8 * words * built.layout.sub_groups.streams <= _MOST_STREAM_BYTES else 0


def _instrumentation_options(launch: Launch, options: Options) -> InstrumentationOptions:
    offsets, cuda = three(launch.global_offset, 0), launch.kernel.program.is_cuda
    sizes = list(zip(three(launch.global_size, 1), three(launch.local_size, 1), offsets, strict=True))
    return InstrumentationOptions(
        local_size=three(launch.local_size, 1),
        uniform=all(global_ % local == 0 for global_, local, _ in sizes),
        check_bounds=options.check_bounds,
        published=options.published,
        small_ids=max(global_ + offset for global_, _, offset in sizes) <= 1 << 31,
        same=same_buffers(launch),
        cuda=cuda,
        shared=launch.shared,
        variables=pack(launch.variables, launch.kernel.name),
        images=tuple(image_sizes(a) if cuda and isinstance(a, Image) else () for a in launch.args),
        warp=wave_size(launch.kernel.program),
    )


def _threads(launch: Launch, options: Options, built: Built) -> int:
    """Return the threads to use: by default two, if memory stays within three times the buffers."""
    sharing = built.plan.sharing
    if built.layout.is_ordered or sharing.overlapping:
        return 1
    threads = options.threads
    if threads is None:
        nbytes = sum(a.nbytes for a in launch.args if isinstance(a, np.ndarray))
        # Threads that update the same memory mostly wait for each other, if each has no sums of its own.
        two = nbytes <= _MOST_FOR_TWO_THREADS and sharing.commuting <= sharing.sums.keys()
        threads = min(2, len(os.sched_getaffinity(0))) if two else 1
    return min(threads, math.prod(group_counts(launch)))


def _check_sizes(launch: Launch, required: tuple[int, int, int] | None) -> None:
    items = math.prod(launch.global_size)
    if items > MOST_WORK_ITEMS:
        extents = f" ({' x '.join(map(str, launch.global_size))})" if len(launch.global_size) > 1 else ""
        raise LaunchError.of(
            where=launch.kernel.name,
            problem=(
                f"a launch that is characterized has at most {MOST_WORK_ITEMS} work-items "
                f"(2^31 - 1), found {items}{extents}"
            ),
        )
    if required is not None and required != three(launch.local_size, 1):
        raise LaunchError.of(
            where=launch.kernel.name,
            problem=(
                f"the kernel requires work-groups of {required} work-items "
                f"(reqd_work_group_size), found {launch.local_size}"
            ),
        )


def _needed_bytes(runner: _Runner) -> int:
    """Return the bytes of buffers, their counters on all threads, and private memory."""
    layout = runner.built.layout
    if layout.stack_bytes > _MOST_STACK_BYTES:
        raise KernelFault(
            f"{runner.launch.kernel.name}: a work-item needs {layout.stack_bytes} bytes of private "
            f"memory, over the limit of {_MOST_STACK_BYTES} bytes"
        )
    private = layout.private_bytes * math.prod(runner.launch.local_size) * runner.threads
    return runner.memory.nbytes * (1 + runner.threads) + private


def _over_limit(runner: _Runner, needed: int) -> str:
    """Return the reason why the whole launch exceeds memory; empty if it does not."""
    limit = runner.options.memory_limit or environment.memory_bytes()
    if needed <= limit:
        return ""
    private = needed - runner.memory.nbytes * (1 + runner.threads)
    return (
        f"buffers of {runner.memory.nbytes} bytes, their counters and {private} bytes of private memory "
        f"on {runner.threads} threads need {needed} bytes, over the memory limit of {limit} bytes"
    )
