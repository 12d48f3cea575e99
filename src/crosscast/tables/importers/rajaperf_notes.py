"""What a person must know about the data of the RAJA Performance Suite; kept with the tables, by name."""

from __future__ import annotations

__all__ = ["SYSTEMS", "V100", "notes_of"]

_ORIGIN = "github.com/LLNL/thicket-tutorial (MIT), data/quartz and data/lassen."
SYSTEMS = (
    "D. Nichols et al.: Predicting Cross-Architecture Performance of Parallel Programs (2024), table I: what "
    "the clusters quartz and lassen are"
)
V100 = (
    "NVIDIA Volta Tesla V100 cards detailed "
    "(https://www.techrival.com/nvidia-volta-tesla-v100-cards-detailed-150w-single-slot-300w-dual-slot-gv100-powered-pcie-accelerators/)"
)

_TIMES = (
    "Time of one repetition: the source's time_s over Reps, which is the same on both clusters for each "
    "kernel. That time_s is of all repetitions follows from the data: with it so, MEMCPY moves 6.6 GB/s on "
    "a core and MEMSET 854 GB/s on the V100 (peak 900); were it of one, it would be 0.07 and 8.5 GB/s."
)
_COUNTERS = (
    "On quartz, shares of pipeline slots of the top-down method (topdown.*; l1_bound and l2_bound can be "
    "slightly negative, as they are differences), and what the suite computes of a kernel (Bytes/Rep, "
    "Flops/Rep, Iterations/Rep, Kernels/Rep, ProblemSize, Reps). None on lassen: no hardware counters, and "
    "what the suite computes is the same number as on quartz."
)


def notes_of(cores: int | None, block_size: int) -> dict[str, dict[str, str]]:
    """Notes by table, and by their names.

    Parameters
    ----------
    cores
        Number by which the CPU's times were divided; none if they are as measured.
    block_size
        Block size of the runs on the GPU.
    """
    origin = {"origin": _ORIGIN}
    return {
        "devices": origin,
        "records": {
            **origin,
            "times": _TIMES,
            "quartz": _of_cpu(cores),
            "lassen": (
                f"Base_CUDA with blocks of {block_size:g} threads, clang++-10.0.1 and nvcc 10.2.89, one GPU. "
                "Runs with other block sizes are left out. Size 1048576 was run twice, the others once."
            ),
            "repeats": (
                "A file of the source is a process that ran all kernels: ten of each compiler and level of "
                "optimisation on quartz. Counters are those of one kernel, so that each kernel of a process "
                "is a session of its own here, and the number of the repeat tells them apart."
            ),
            "gaps": (
                "quartz has 67 kernels at size 8388608 only, lassen 60 of them at four sizes. Missing on "
                "lassen: SCAN, SORT, SORTPAIRS, CONVECTION3DPA, DIFFUSION3DPA, MASS3DEA, MASS3DPA."
            ),
            "left out": "variant and tuning, which the cluster and the block size say.",
        },
        "sessions": {**origin, "counters": _COUNTERS},
    }


def _of_cpu(cores: int | None) -> str:
    measured = "Base_Seq, measured on one core of a Xeon E5-2695 v4."
    if cores is None:
        return f"{measured} A whole node would be faster: --cores 36 states one."
    return (
        f"{measured} Times are divided by {cores}: a stated {cores}-core node with ideal scaling, not a "
        "measured one. Kernels that are bound by memory do not scale so. Counters are those of one core."
    )
