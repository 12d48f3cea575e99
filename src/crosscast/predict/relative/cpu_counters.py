"""Counters of CPUs by the names of PAPI, HPCToolkit and Linux perf, and the features that they give."""

from __future__ import annotations

from crosscast.predict.relative.counter_amounts import Amount, of, total
from crosscast.predict.relative.feature_rules import Rule, rules

__all__ = ["CPU_RULES"]

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
