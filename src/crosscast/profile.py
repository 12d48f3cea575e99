"""The metrics, with their names, units and order, and the profile of one launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from crosscast.results import Tabular

Category = Literal["compute", "parallelism", "memory", "control"]
CATEGORIES: tuple[Category, ...] = ("compute", "parallelism", "memory", "control")

MetricValue = int | float | None
"""Value of a metric; ``None`` where it is not defined (a ratio whose denominator is 0)."""


@dataclass(frozen=True)
class Metric:
    """One architecture-independent metric.

    Parameters
    ----------
    name
        Its name in every table, API and file.
    category
        The one of the four categories that it belongs to.
    unit
        ``count``, ``bits``, ``1`` (a ratio) or ``elements``.
    title
        Its meaning in a few words, for people.
    """

    name: str
    category: Category
    unit: str
    title: str


METRICS: tuple[Metric, ...] = (
    Metric("opcode", "compute", "count", "opcodes that make up 90 % of the instructions"),
    Metric("total_instruction_count", "compute", "count", "executed instructions"),
    Metric("work_items", "parallelism", "count", "work-items"),
    Metric("work_groups", "parallelism", "count", "work-groups"),
    Metric("total_barriers_hit", "parallelism", "count", "barriers executed, over all work-items"),
    Metric("min_itb", "parallelism", "count", "instructions between barriers, least"),
    Metric("max_itb", "parallelism", "count", "instructions between barriers, most"),
    Metric("median_itb", "parallelism", "count", "instructions between barriers, median"),
    Metric("min_ipt", "parallelism", "count", "instructions per work-item, least"),
    Metric("max_ipt", "parallelism", "count", "instructions per work-item, most"),
    Metric("median_ipt", "parallelism", "count", "instructions per work-item, median"),
    Metric("load_imbalance", "parallelism", "count", "instructions per work-item, most minus least"),
    Metric("max_simd_width", "parallelism", "elements", "result elements per instruction, most"),
    Metric("mean_simd_width", "parallelism", "elements", "result elements per instruction, mean"),
    Metric("sd_simd_width", "parallelism", "elements", "result elements per instruction, deviation"),
    Metric("granularity", "parallelism", "1", "1 / work-items"),
    Metric("barriers_per_instruction", "parallelism", "1", "barriers and ends per instruction"),
    Metric("instructions_per_operand", "parallelism", "1", "instructions per result element"),
    Metric("total_memory_footprint", "memory", "count", "distinct addresses accessed"),
    Metric("footprint_90", "memory", "count", "addresses that make up 90 % of the accesses"),
    Metric("unique_reads", "memory", "count", "distinct addresses read"),
    Metric("unique_writes", "memory", "count", "distinct addresses written"),
    Metric("unique_read_write_ratio", "memory", "1", "distinct addresses read per written"),
    Metric("total_reads", "memory", "count", "reads"),
    Metric("total_writes", "memory", "count", "writes"),
    Metric("reread_ratio", "memory", "1", "distinct addresses read per read"),
    Metric("rewrite_ratio", "memory", "1", "distinct addresses written per write"),
    Metric("global_memory_address_entropy", "memory", "bits", "entropy of the addresses"),
    *(
        Metric(
            f"local_memory_address_entropy_{n}",
            "memory",
            "bits",
            f"the same, without the {n} lowest bits" if n > 1 else "the same, without the lowest bit",
        )
        for n in range(1, 11)
    ),
    Metric("global_accesses", "memory", "count", "loads and stores to global memory"),
    Metric("local_accesses", "memory", "count", "loads and stores to local memory"),
    Metric("constant_accesses", "memory", "count", "loads from constant memory"),
    Metric("unique_branches", "control", "count", "conditional branches executed"),
    Metric("branches_90", "control", "count", "branches that make up 90 % of the executions"),
    Metric("yokota_branch_entropy", "control", "1", "entropy of the branch history patterns"),
    Metric("average_linear_branch_entropy", "control", "1", "how open branches are after 16 known outcomes"),
)
"""All metrics, in the order in which tables show them."""


@dataclass(frozen=True)
class Profile(Tabular):
    """The architecture-independent metrics of one kernel launch.

    Parameters
    ----------
    kernel
        Name of the kernel.
    invocation
        Number of this launch among those of the same run, from 0.
    metrics
        Value of every metric of `METRICS`, by name, in that order.
    timing_s
        Seconds spent: ``compile``, ``instrument``, ``run`` (and ``run_cpu``, of all threads together),
        ``metrics`` (and ``metrics_cpu``). If an earlier launch of the same process compiled or instrumented
        the program, the time is that of the earlier launch.
    launch
        Sizes, and a summary of each argument.
    program
        Path, hash, form, compiler and options of the program.
    environment
        Package, toolchain and machine.
    printed
        Output of the kernel's ``printf``.
    published
        Metrics under the published tool's names and conventions, in its order, as
        (metric, category, value); empty unless asked for.
    application
        Application that launched the kernel, where it is one of a suite.
    size
        Name of its problem size.
    instructions
        Executed instructions by class, as `crosscast.characterization.metrics` says; empty where
        they were not counted.
    """

    kernel: str
    invocation: int
    metrics: Mapping[str, MetricValue]
    timing_s: Mapping[str, float]
    launch: Mapping[str, Any]
    program: Mapping[str, object]
    environment: Mapping[str, object]
    printed: str = ""
    published: tuple[tuple[str, str, int | float], ...] = field(default=())
    application: str | None = None
    size: str | None = None
    instructions: Mapping[str, int] = field(default_factory=dict)

    def columns(self) -> Mapping[str, Sequence[object]]:
        """A row for each metric."""
        return {
            "metric": [metric.name for metric in METRICS],
            "value": [self.metrics.get(metric.name) for metric in METRICS],
            "unit": [metric.unit for metric in METRICS],
            "what it says": [metric.title for metric in METRICS],
        }

    def caption(self) -> str:
        """The kernel and the number of the launch."""
        return f"Profile of {self.kernel}, launch {self.invocation}"

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        return {
            "application": self.application,
            "kernel": self.kernel,
            "size": self.size,
            "invocation": self.invocation,
            "metrics": dict(self.metrics),
            "timing_s": dict(self.timing_s),
            "launch": dict(self.launch),
            "program": dict(self.program),
            "environment": dict(self.environment),
            "printed": self.printed,
        }


def compiler_options(program: Mapping[str, object]) -> tuple[str, ...]:
    """Compiler options from a profile's `program`; empty where they are not known."""
    options = program.get("options")
    return tuple(map(str, options)) if isinstance(options, list | tuple) else ()


def bytes_outside(work: Mapping[str, float]) -> float:
    """Bytes accessed outside of local memory, from a launch's `work`; 0 where none are counted."""
    return float(sum(work.get(f"{space}_bytes", 0) for space in ("global", "constant", "generic")))


def sampling_sentence(launch: Mapping[str, Any]) -> str:
    """Sentence about a launch of which only some work-groups ran; empty if all did.

    >>> error = {"instructions": 0.0, "distinct_bytes": 0.012}
    >>> sampling_sentence({"sampled": {"groups": 512, "of": 16384, "error": error}})
    '512 of 16,384 work-groups ran; counts are extended: instructions exact, distinct bytes ± 1.2 %'
    """
    sampled = launch.get("sampled")
    if not sampled:
        return ""
    errors = ", ".join(
        f"{name.replace('_', ' ')} {f'± {100 * error:.2g} %' if error else 'exact'}"
        for name, error in sampled["error"].items()
    )
    return f"{sampled['groups']:,} of {sampled['of']:,} work-groups ran; counts are extended: {errors}"


def doubts(launch: Mapping[str, Any]) -> list[str]:
    """Reasons to doubt the counts of a launch, as sentences.

    >>> doubts({"read_beyond": {"a": {"before": 0, "behind": 4}}})
    ['reads up to 4 bytes behind the end of a, where a device may have anything: zeros were read']
    """
    sentences = [sampling_sentence(launch)]
    for name, distances in launch.get("read_beyond", {}).items():
        sides = {"before": f"before the start of {name}", "behind": f"behind the end of {name}"}
        for side, where in sides.items():
            if distances[side]:
                effect = "where a device may have anything: zeros were read"
                sentences.append(f"reads up to {distances[side]} bytes {where}, {effect}")
    if "groups_wait" in launch:
        where = f" ({launch['groups_wait']})" if launch["groups_wait"] else ""
        sentences.append(
            f"work-groups wait for each other{where}: if each waits for the one before, add 0.5 us for each"
        )
    return [sentence for sentence in sentences if sentence]
