"""What a person must know about the published data; kept with the tables, by name."""

from __future__ import annotations

__all__ = ["DEVICE_NOTES", "ENERGY_NOTES", "PROFILE_NOTES", "RECORD_NOTES", "SESSION_NOTES"]

_ORIGIN = (
    "The published data of 2018 (github.com/BeauJoh/opencl-predictions-with-aiwc, MIT licence): AIWC "
    "features and kernel times on 15 devices."
)

PROFILE_NOTES = {
    "origin": _ORIGIN,
    "definitions": (
        "Counted by the published tool of its day. granularity and barriers_per_instruction are computed "
        "here by our definitions, from work_items, total_barriers_hit and total_instruction_count: the "
        "tool had 1 / instructions and (barriers + 1) / instructions. Its two branch entropies follow "
        "other formulas than ours (that named after Yokota is a sum, and far above 1), so our columns are "
        "empty. What the tool had is in the column program, under published, with its operand_sum."
    ),
    "precision": (
        "Six significant digits, in large counts too, except for total_instruction_count, work_items, "
        "total_memory_footprint and footprint_90, which are exact."
    ),
    "counting": (
        "Local memory addresses count as global ones of the same value, and branches are told apart by "
        "their source line, as the tool does it."
    ),
    "absent": (
        "work_groups, instructions per work-item, load_imbalance, and all counts and ratios of reads, "
        "writes and accesses by memory were not recorded."
    ),
    "stray row": (
        "The features have a row kmeans, calc_potential_single_step_dev, medium: that kernel is gem's, and "
        "the row is its row of size small once more. It was left out."
    ),
    "same profiles": "Kernels and sizes have 104 pairs, but only 93 profiles that differ.",
    "crc": (
        "crc32_slice8 is launched with a single work-item. A GPU is about 22 times slower there, which "
        "rules any mean of slowdowns."
    ),
}

RECORD_NOTES = {
    "origin": _ORIGIN,
    "times": (
        "Each time is the mean of the kernel's invocations in one run. The times of the source are in "
        "microseconds. invocations is the number of the characterized run, which need not be that of the "
        "timed one."
    ),
    "total time": (
        "The source's total_time_us is the sum of kernel_time_us over the kernels of a run, not a time of "
        "the host. It was left out, and host_s is empty."
    ),
    "runs": (
        "40 of the 50 runs of nearly each cell, drawn by the source. A run's number is that of the "
        "source less 1. Where the source has a run twice, the second record's number has 100 added."
    ),
    "merged regions": (
        "hmm scale_alpha_dev has 90 records a cell: those of two regions of the program with one name. Of "
        "the two records of a run, the one with 100 added is of the second region."
    ),
    "mixed populations": (
        "The 81 records a kernel of kmeans, large, on k20c are of two populations, one 11 times (of "
        "invert_mapping) or 77 times (of kmeansPoint) slower than the other. bfs, large, on fiji-furyx has "
        "74 records a kernel and crc, large, on firepro-s9150 has 50, each of one population."
    ),
    "fft": (
        "The kernels of all radices share one measured time a size: fftRadix16Kernel has the times of "
        "fftRadix8Kernel at tiny and medium, of fftRadix4Kernel at small, of fftRadix2Kernel at large. A "
        "split that leaves out a kernel leaks there; leave out applications."
    ),
    "sizes": (
        "hmm (17 kernels) and gem exist at tiny and small only; fftRadix8Kernel at tiny and medium, "
        "fftRadix4Kernel at small, fftRadix2Kernel at large only."
    ),
    "weight of hmm": "hmm makes 34 of the 104 pairs of kernel and size: report means by application as well.",
}

SESSION_NOTES = {
    "origin": _ORIGIN,
    "sessions": (
        "One for each application, size and device; how many processes there were was not recorded. Each "
        "ran for at least 50 iterations and 2 s (table II's paper, section III-A). The column runs is "
        "empty: the source does not have all of them."
    ),
}

ENERGY_NOTES = {
    "origin": _ORIGIN,
    "energy": (
        "Size large only. Energy of the measured kernels of a run: of the processor cores (RAPL, PP0 of "
        "package 0) on i7-6700k, and of the board (NVML: power times kernel time) on gtx1080, as "
        "codes/load_runtime_data.R of the origin has it. kmeans is kmeansPoint alone, and dwt "
        "cl_fdwt53Kernel alone."
    ),
}

DEVICE_NOTES = {
    "keys": (
        "The data's keys differ from the paper's names: xeon_es-2697v2 is its Xeon E5-2697 v2, i5-3350 its "
        "i5-3550, k20c its K20m, k40c its K40m, knl its Xeon Phi 7210."
    ),
}
