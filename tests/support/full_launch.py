"""A launch of which everything was counted: a product of matrices by tiles, with an atomic at its end."""

from typing import Any

from crosscast.data.launch_counts import REUSE_CACHES, REUSE_GROUPS, REUSE_LINES


def _sub_groups(width: int) -> dict[str, int]:
    whole = 32_768 // width
    return {
        "accesses_read": 16 * whole,
        "accesses_write": 2 * whole,
        "sectors_32_read": 128 * whole,
        "sectors_32_write": 5 * whole,
        "lines_64_read": 64 * whole,
        "lines_64_write": 3 * whole,
        "lines_128_read": 32 * whole,
        "lines_128_write": 2 * whole,
        "local_wavefronts_32_banks": 60 * whole,
        "instructions_without_phi": 13_107_200,
        "sub_group_instructions_without_phi": 500 * whole,
        "sub_group_fp32": 70 * whole,
        "sub_group_fp64": whole,
        "atomic_conflicts": 12 * whole,
        "atomic_accesses": whole,
        "same_address_read": 3 * whole,
        "sectors_32_read_only": 2 * whole,
    }


def full_launch() -> dict[str, Any]:
    """What a profile's `launch` is then."""
    return {
        "global_size": [32_768],
        "local_size": [256],
        "arguments": [],
        "work": {
            "flops_single": 4_194_304,
            "flops_double": 32_768,
            "global_bytes": 2_490_368,
            "local_bytes": 4_194_304,
            "instructions": {"alu": 6_000_000, "fp": 4_227_072, "mem": 2_000_000, "control": 880_128},
        },
        "sub_groups": {str(width): _sub_groups(width) for width in (32, 64)},
        "access_patterns": {
            "uniform": 100_000,
            "contiguous": 300_000,
            "strided": 50_000,
            "irregular": 50_000,
            "stride_bytes": 102_400_000,
            "vectorized": True,
        },
        "work_item": {"moved_bytes": 1_000_000, "mean_walk_log2": 12.5, "mean_alignment_log2": 6.5},
        "distinct_bytes": {"global": {"read": 1_048_576, "written": 131_072}, "local": {"read": 2048}},
        "geometry": {
            "groups": 128,
            "group_items": 256,
            "sub_groups_32": 1024,
            "sub_groups_64": 512,
            "local_bytes": {"static": 2048, "arguments": 0},
            "registers": 21,
            "private_bytes": 64,
        },
        "instructions": {
            "fp32": {"fused": 2_097_152, "native_exp": 32_768},
            "fp64": {"add": 32_768},
            "loads": {"global": {"4": 524_288}, "local": {"4": 1_015_808}},
            "stores": {"global": {"4": 32_768}},
            "atomics": {"global": 32_768},
            "barriers": 65_536,
        },
        "path": {
            "instructions": 100,
            "loads": {"global": 16, "local": 32},
            "block_instructions": 400,
            "block_loads": {"global": 20, "local": 40},
        },
        "reuse": {
            "bytes": {
                str(line): {
                    str(groups): {str(cache): 1 << 30 - place for place, cache in enumerate(REUSE_CACHES)}
                    | {"first": 1_179_648}
                    for groups in REUSE_GROUPS
                }
                for line in REUSE_LINES
            },
            "rate": 0.01,
            "error": 0.02,
            "channel_share": 0.07,
        },
        "host": {"time_s": 0.00125, "repeats": 3, "threads": 2},
    }
