"""What a person must know about the Rodinia data of nine GPUs; kept with the tables, by name."""

from __future__ import annotations

__all__ = ["NOTES"]

_ORIGIN = {
    "origin": (
        "github.com/marcosamaris/gpuperfpredict (CC BY 4.0), traces and counters of nvprof, of lud_perimeter "
        "a tenth of the launches."
    )
}

NOTES = {
    "devices": {
        **_ORIGIN,
        "gtx-970": "The origin's row of it has the cores and the clock of the Titan X; they are not used.",
    },
    "records": {
        **_ORIGIN,
        "times": "Time of one launch on the GPU, in the source's seconds; the shortest is 3 microseconds.",
        "programs": (
            "The origin's R-code/include/common.R says which program a kernel is of: `kernel` is heartwall's."
        ),
        "sizes": "The input's sizes, the grid and the work-group, as one text.",
        "gaps": (
            "gtx-970 and titanx lack lud_perimeter: 251 launches of 1,094. The other seven GPUs have all."
        ),
        "unequal kernels": (
            "lud_perimeter is 843 of the 1,094 launches, as one decomposition launches it with ever smaller "
            "grids; backprop's kernels are 57 each, heartwall 85, lud_diagonal 32, hotspot 20. Weigh kernels "
            "equally, not rows."
        ),
        "near-repeats": (
            "The launches of heartwall on a GPU take the same time at all 85 sizes (within 14 %), those of "
            "lud_diagonal at all 32 (within 30 %): a split by rows or sizes tests what was learned."
        ),
        "repeats": (
            "The kernels of backprop have launches of one size. Each has its own counters, so that each is a "
            "session, and the number of the repeat tells them apart."
        ),
    },
    "sessions": {
        **_ORIGIN,
        "counters": (
            "Columns of nvprof by the source's names and in its units, the launch's sizes (grid.x, grid.y, "
            "block.x, block.y), registers.per.thread and static.smem. That is in bytes here; the source has "
            "KiB on gtx-980 and tesla-p100. Totals, rates, shares and means alike."
        ),
        "left out": "device and kernel, which number the GPUs and kernels; the input's sizes are in `size`.",
        "unlike": (
            "Counters of one name do not count alike everywhere: dram reads of hotspot are 0 on the Maxwell "
            "GPUs, 2 on tesla-p100 and 15,788 on gtx-680 (medians); executed_ipc of lud_diagonal, one block, "
            "is 0.004 on tesla-p100 and 0.07 to 0.12 elsewhere."
        ),
    },
}
