"""What is counted, made of the counters of a tool: sums, and what a rate makes of a sum."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.relative.data import Observations

Lookup = Mapping[str, Reals]
"""Values of counters by their plain names, each of shape ``(r,)``; not a number where a run lacks one."""


@dataclass(frozen=True)
class Amount:
    """An amount that counters give."""

    text: str  # The formula, for people
    needs: tuple[str, ...]  # Plain names of counters; a run that lacks one lacks the amount
    formula: Callable[..., Reals]  # Makes the amount of them, of shape `(r,)`
    may_use: tuple[str, ...] = ()  # Plain names of counters that are added where a run has them

    def values(self, counters: Lookup, rows: int) -> Reals:
        """The amounts of ``rows`` runs; not a number where a counter is missing."""
        if any(name not in counters for name in self.needs):
            return np.full(rows, np.nan)
        amount = self.formula(*(counters[name] for name in self.needs))
        for name in self.may_use:
            if name in counters:
                amount = amount + np.nan_to_num(counters[name])
        return np.where(np.isfinite(amount), amount, np.nan)


def total(*names: str, also: tuple[str, ...] = (), times: float = 1) -> Amount:
    """Sum of counters, and of some more where they are there, times a factor."""
    text = " + ".join((*names, *(f"[{name}]" for name in also)))
    if times != 1:
        text = f"{times:g} · ({text})" if len(names) > 1 else f"{times:g} · {text}"

    def summed(*counts: Reals) -> Reals:
        whole: Reals = times * np.sum(counts, axis=0)
        return whole

    return Amount(text, _plain(names), summed, _plain(also))


def of(*factors: tuple[float, str]) -> Amount:
    """Sum of counters, each times its own factor."""
    text = " + ".join(name if factor == 1 else f"{factor:g} · {name}" for factor, name in factors)

    def weighed(*counts: Reals) -> Reals:
        whole: Reals = np.sum(
            [factor * count for (factor, _), count in zip(factors, counts, strict=True)], axis=0
        )
        return whole

    return Amount(text, _plain(tuple(name for _, name in factors)), weighed)


def missed(requests: str, rate: str) -> Amount:
    """Requests that hit nothing, of a hit rate (or efficiency) in percent."""
    return Amount(
        f"{requests} · (1 − {rate} / 100)",
        _plain((requests, rate)),
        lambda count, percent: count * np.maximum(1 - percent / 100, 0.0),
    )


def share_of(whole: str, part: str, other: str) -> Amount:
    """The share of a whole that goes to a part of two."""

    def shared(count: Reals, one: Reals, two: Reals) -> Reals:
        both = one + two
        share: Reals = np.divide(one, both, out=np.full(both.shape, np.nan), where=both > 0)
        return count * share

    return Amount(f"{whole} · {part} / ({part} + {other})", _plain((whole, part, other)), shared)


def _plain(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


INTENSITIES = (
    "branch intensity",
    "store intensity",
    "load intensity",
    "single fp intensity",
    "double fp intensity",
    "arithmetic intensity",
)
"""Features that are ratios to the total number of instructions."""

AMOUNTS = (
    "l1 load misses",
    "l1 store misses",
    "l2 load misses",
    "l2 store misses",
    "io bytes written",
    "io bytes read",
    "extended page table",
    "memory stalls",
)
"""Features that are amounts."""


@dataclass(frozen=True)
class Rule:
    """A way to a feature."""

    feature: str  # One of `INTENSITIES` and `AMOUNTS`
    tool: str  # Whose counters these are
    amount: Amount  # What is counted
    whole: Amount | None = None  # All instructions, of which an intensity is the share; `None` for an amount


def rules(tool: str, whole: Amount | None, **amounts: Amount) -> tuple[Rule, ...]:
    """Ways to several features, by their names with ``_`` for spaces, with the counters of one tool."""
    return tuple(
        Rule(name, tool, amount, whole if name in INTENSITIES else None)
        for name, amount in ((key.replace("_", " "), each) for key, each in amounts.items())
    )


_PAPI = rules(
    "PAPI",
    total("PAPI_TOT_INS"),
    branch_intensity=total("PAPI_BR_INS"),
    store_intensity=total("PAPI_SR_INS"),
    load_intensity=total("PAPI_LD_INS"),
    single_fp_intensity=total("PAPI_SP_OPS"),
    double_fp_intensity=total("PAPI_DP_OPS"),
    l1_load_misses=total("PAPI_L1_LDM"),
    l1_store_misses=total("PAPI_L1_STM"),
    l2_load_misses=total("PAPI_L2_LDM"),
    l2_store_misses=total("PAPI_L2_STM"),
    memory_stalls=total("PAPI_MEM_SCY"),
)
_CALIPER = tuple(
    rule
    for written, read in (("ibw.bytes.written", "ibr.bytes.read"), ("Bytes written", "Bytes read"))
    for rule in rules("Caliper", None, io_bytes_written=total(written), io_bytes_read=total(read))
)
_NATIVE = tuple(
    rule
    for name in ("bdw_ep::ARITH", "clx::ARITH", "PAPI_INT_INS")
    for rule in rules("PAPI", total("PAPI_TOT_INS"), arithmetic_intensity=total(name))
)
_HPCTOOLKIT = rules(
    "HPCToolkit",
    None,
    io_bytes_written=total("IO Bytes Written"),
    io_bytes_read=total("IO Bytes Read"),
    extended_page_table=total("EPT"),
)


def _fp(kind: str, widths: tuple[float, float, float]) -> Amount:
    """Operations, as PAPI counts them: instructions of vectors as many times as they have elements."""
    names = (f"scalar_{kind}", f"128b_packed_{kind}", f"256b_packed_{kind}")
    return of(*((width, f"fp_arith_inst_retired.{name}") for width, name in zip(widths, names, strict=True)))


_PERF = (
    *(
        rule
        for branches in ("branches", "branch-instructions", "br_inst_retired.all_branches")
        for rule in rules("perf", total("instructions"), branch_intensity=total(branches))
    ),
    *rules(
        "perf",
        total("instructions"),
        store_intensity=total("mem_inst_retired.all_stores"),
        load_intensity=total("mem_inst_retired.all_loads"),
        single_fp_intensity=_fp("single", (1, 4, 8)),
        double_fp_intensity=_fp("double", (1, 2, 4)),
        arithmetic_intensity=total("arith.divider_active"),
        l1_load_misses=total("L1-dcache-load-misses"),
        l1_store_misses=total("L1-dcache-store-misses"),
        l2_load_misses=total("l2_rqsts.demand_data_rd_miss"),
        l2_store_misses=total("l2_rqsts.rfo_miss"),
        memory_stalls=total("cycle_activity.stalls_mem_any"),
    ),
    *rules(
        "perf",
        total("instructions"),
        store_intensity=total("mem_uops_retired.all_stores"),
        load_intensity=total("mem_uops_retired.all_loads"),
    ),
    *rules(
        "perf",
        total("instructions"),
        store_intensity=total("L1-dcache-stores"),
        load_intensity=total("L1-dcache-loads"),
    ),
)

CPU_RULES: tuple[Rule, ...] = (*_PAPI, *_NATIVE, *_HPCTOOLKIT, *_CALIPER, *_PERF)


_WARPS = total("inst_executed")
_THREADS = total("inst_executed", times=32)
_NVPROF = (
    *rules(
        "nvprof, CUPTI",
        _WARPS,
        branch_intensity=total("cf_executed"),
        store_intensity=total("inst_executed_local_stores", "inst_executed_global_stores"),
        load_intensity=total("inst_executed_local_loads", "inst_executed_global_loads"),
    ),
    *rules(
        "nvprof, CUPTI",
        _THREADS,
        single_fp_intensity=total("flop_count_sp"),
        double_fp_intensity=total("flop_count_dp"),
        arithmetic_intensity=total("inst_integer"),
    ),
    *rules(
        "nvprof, CUPTI",
        None,
        l1_load_misses=missed("local_load_requests", "local_hit_rate"),
        l1_store_misses=missed("local_store_requests", "local_hit_rate"),
        l2_load_misses=missed("gld_transactions", "gld_efficiency"),
        l2_store_misses=missed("gst_transactions", "gst_efficiency"),
        memory_stalls=total("GINST:STL_ANY"),
    ),
    *rules("nvprof, CUPTI", None, memory_stalls=total("GINS:STL_ANY")),
)

_RODINIA = (
    *rules(
        "nvprof, rodinia9",
        _WARPS,
        branch_intensity=total("executed_control.flow_instructions"),
        store_intensity=total("gst_request", "shared_store"),
        load_intensity=total("gld_request", "shared_load"),
    ),
    *rules(
        "nvprof, rodinia9",
        _THREADS,
        single_fp_intensity=total("floating_point_operations.single_precision."),
        double_fp_intensity=total("floating_point_operations.double_precision."),
        arithmetic_intensity=total("integer_instructions"),
    ),
    *rules(
        "nvprof, rodinia9",
        None,
        l1_load_misses=total("l2_read_transactions"),
        l1_store_misses=total("l2_write_transactions"),
        l2_load_misses=total("device_memory_read_transactions"),
    ),
)

_SASS = "smsp__sass_thread_inst_executed_op_"
_NCU = (
    *rules(
        "Nsight Compute",
        total("smsp__inst_executed.sum"),
        branch_intensity=total(
            "smsp__inst_executed_pipe_cbu.sum", also=("smsp__inst_executed_pipe_adu.sum",)
        ),
        store_intensity=total(
            "smsp__inst_executed_op_global_st.sum", also=("smsp__inst_executed_op_local_st.sum",)
        ),
        load_intensity=total(
            "smsp__inst_executed_op_global_ld.sum", also=("smsp__inst_executed_op_local_ld.sum",)
        ),
    ),
    *rules(
        "Nsight Compute",
        total("smsp__inst_executed.sum", times=32),
        single_fp_intensity=of(
            (1, f"{_SASS}fadd_pred_on.sum"), (1, f"{_SASS}fmul_pred_on.sum"), (2, f"{_SASS}ffma_pred_on.sum")
        ),
        double_fp_intensity=of(
            (1, f"{_SASS}dadd_pred_on.sum"), (1, f"{_SASS}dmul_pred_on.sum"), (2, f"{_SASS}dfma_pred_on.sum")
        ),
        arithmetic_intensity=total(f"{_SASS}integer_pred_on.sum"),
    ),
    *rules(
        "Nsight Compute",
        None,
        l1_load_misses=total(
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum",
            also=("l1tex__t_sectors_pipe_lsu_mem_local_op_ld_lookup_miss.sum",),
        ),
        l1_store_misses=total(
            "l1tex__t_sectors_pipe_lsu_mem_global_op_st_lookup_miss.sum",
            also=("l1tex__t_sectors_pipe_lsu_mem_local_op_st_lookup_miss.sum",),
        ),
        l2_load_misses=total("lts__t_sectors_op_read_lookup_miss.sum"),
        l2_store_misses=total("lts__t_sectors_op_write_lookup_miss.sum"),
        memory_stalls=total("smsp__pcsamp_warps_issue_stalled_long_scoreboard"),
    ),
)

_MEMORY_INSTS = ("VFetchInsts", "VWriteInsts", "SFetchInsts", "LDSInsts", "GDSInsts", "FlatVMemInsts")
_ROCPROF = (
    *rules(
        "rocprof",
        total("VALUInsts", "SALUInsts", also=_MEMORY_INSTS),
        store_intensity=total("LDSInsts", "GDSInsts"),
        load_intensity=total("LDSInsts", "GDSInsts"),
        single_fp_intensity=total("VALUInsts", "SALUInsts"),
        double_fp_intensity=total("VALUInsts", "SALUInsts"),
    ),
    *rules(
        "rocprof",
        None,
        l2_load_misses=share_of("TCC_MISS_sum", "TCC_EA_RDREQ_sum", "TCC_EA_WRREQ_sum"),
        l2_store_misses=share_of("TCC_MISS_sum", "TCC_EA_WRREQ_sum", "TCC_EA_RDREQ_sum"),
        memory_stalls=total("MemUnitStalled"),
    ),
    *rules(
        "rocprof",
        None,
        l2_load_misses=share_of("TCC_MISS_sum", "TCC_EA_RDREQ", "TCC_EA_WRREQ"),
        l2_store_misses=share_of("TCC_MISS_sum", "TCC_EA_WRREQ", "TCC_EA_RDREQ"),
    ),
)

GPU_RULES: tuple[Rule, ...] = (*_NVPROF, *_RODINIA, *_NCU, *_ROCPROF)


_AIWC = rules(
    "AIWC",
    total("total_instruction_count"),
    store_intensity=total("total_writes"),
    load_intensity=total("total_reads"),
)

RULES: tuple[Rule, ...] = (*CPU_RULES, *GPU_RULES, *_AIWC)
"""All ways to features; of those to the same, a run takes the first that it has the counters for."""

_PREFIX = re.compile(r"^(papi\.|papi::|perf::|perf\.)")
_UNIT = re.compile(r"^cpu(?:_core|_atom)?/([^/]+)/[a-z]*$")
_MODIFIER = re.compile(r"(?<=[^:]):[ukhgppsdwei]+$")


def plain_name(counter: str) -> str:
    """Name of a counter without what tools put around it, in small letters.

    >>> plain_name("papi.PAPI_BR_INS"), plain_name("instructions:u"), plain_name("cpu_core/branches/")
    ('papi_br_ins', 'instructions', 'branches')
    """
    name = _PREFIX.sub("", counter.strip().lower()).replace(": ", ":")
    unit = _UNIT.fullmatch(name)
    return unit[1] if unit else _MODIFIER.sub("", name)


AS_IS, LOGARITHM, ROOT = range(3)
"""Shares stay; amounts become the logarithm of one more, signed values their inverse hyperbolic sine."""


def scale_for(values: Reals) -> int:
    """Choose a scale by the values of the rows that a model is fitted to.

    Shares are from 0 to 1, or in percent from 0 to 100 and not all whole. If one is below 0, all are signed.
    All else are amounts.
    """
    there = values[np.isfinite(values)]
    if there.min() < 0:
        return ROOT
    is_percent = there.max() <= 100 and bool((there != np.floor(there)).any())
    return AS_IS if there.max() <= 1 or is_percent else LOGARITHM


def on_scale(values: Reals, scale: int) -> Reals:
    """Values on a scale; not a number where they are not finite.

    A negative amount, which no row had that the scale was chosen by, is put as far below 0 as its opposite is
    above.
    """
    values = np.where(np.isfinite(values), values, np.nan)
    if scale == LOGARITHM:
        return np.sign(values) * np.log1p(np.abs(values))
    if scale == ROOT:
        return np.arcsinh(values)
    return values


COUNTED = (*INTENSITIES, *AMOUNTS)
"""Features that are made of counters, in the order of the table."""

SETTINGS = ("nodes", "cores", "uses_gpu")
"""Features that a run was set to."""


@dataclass(frozen=True)
class Counted:
    """Features of ``r`` runs, and what they are made of."""

    # Of shape `(r, len(COUNTED))`; not a number where a run lacks counters, or has no instructions
    values: Reals
    # For each of `COUNTED` the counters, by the names that the runs have for them, that gave it to a run
    used: tuple[frozenset[str], ...]


def counted(observations: Observations) -> Counted:
    """Features of Table III that counters give.

    Intensities are ratios to the total number of instructions. Where one name has several counters, such as
    those of the two kinds of cores of a processor, they are added up.
    """
    rows = len(observations)
    lookup, names = by_plain_name(observations)
    values = np.full((rows, len(COUNTED)), np.nan)
    used: list[set[str]] = [set() for _ in COUNTED]
    for rule in RULES:
        column = COUNTED.index(rule.feature)
        found = _of_rule(rule, lookup, rows)
        new = np.isnan(values[:, column]) & ~np.isnan(found)
        if new.any():
            values[new, column] = found[new]
            used[column].update(
                name for each in (*rule.amount.needs, *rule.amount.may_use) for name in names.get(each, ())
            )
    return Counted(values, tuple(map(frozenset, used)))


def _of_rule(rule: Rule, lookup: dict[str, Reals], rows: int) -> Reals:
    amount = rule.amount.values(lookup, rows)
    if rule.whole is None:
        return amount
    whole = rule.whole.values(lookup, rows)
    ratio: Reals = np.divide(amount, whole, out=np.full(rows, np.nan), where=whole > 0)
    return ratio


def by_plain_name(observations: Observations) -> tuple[dict[str, Reals], dict[str, list[str]]]:
    """Values of counters, of shape ``(r,)`` each, and the names that runs have for them, by plain names.

    Counters with one plain name, such as those of two kinds of cores, are added up.
    """
    lookup: dict[str, Reals] = {}
    names: dict[str, list[str]] = {}
    for name, column in zip(observations.names, observations.counters.T, strict=True):
        plain = plain_name(name)
        names.setdefault(plain, []).append(name)
        before = lookup.get(plain)
        lookup[plain] = column if before is None else _added(before, column)
    return lookup, names


def _added(one: Reals, other: Reals) -> Reals:
    """Their sum; where one of them is missing, the other."""
    return np.where(np.isnan(one), other, np.where(np.isnan(other), one, one + other))


def set_to(observations: Observations) -> Reals:
    """Nodes, cores and whether a GPU was used, of shape ``(r, 3)``; not a number where a run does not say."""
    values = np.full((len(observations), len(SETTINGS)), np.nan)
    for column, name in enumerate(SETTINGS):
        if name in observations.configuration:
            values[:, column] = observations.settings[:, observations.configuration.index(name)]
    return values
