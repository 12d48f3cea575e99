"""Counters of GPUs by the names of nvprof, CUPTI, Nsight Compute and rocprof, and the features they give."""

from __future__ import annotations

from crosscast.predict.relative.counter_amounts import missed, of, share_of, total
from crosscast.predict.relative.feature_rules import Rule, rules

__all__ = ["GPU_RULES"]

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
