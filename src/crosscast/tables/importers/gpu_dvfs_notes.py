"""What a person must know about the data of GPU clocks; kept with the tables, by name."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["GTX1080TI_ORIGIN", "TITANX_ORIGIN", "notes_of_files"]

GTX1080TI_ORIGIN = "github.com/HKBU-HPML/GPU-DVFS-Job-Schedule (no licence stated: not for passing on)."
TITANX_ORIGIN = "github.com/hpc-ulisboa/gpuPTXModel (BSD-3-Clause), datasets/gtxtitanx."

_ORIGINS = {"gtx1080ti": GTX1080TI_ORIGIN, "titanx": TITANX_ORIGIN}

_RECORDS = {
    "gtx1080ti": {
        "gtx1080ti: left out": (
            "The number of the row, argNo (input00 throughout) and blocks (grid and work-group as text)."
        ),
        "gtx1080ti: related programs": (
            "These share code: convolutionSeparable and convolutionTexture, matrixMulGlobal and "
            "matrixMulShared (each two with one kernel name), backpropForward and backpropBackward, "
            "scanScanExclusiveShared and scanUniformUpdate, quasirandomGenerator and SobolQRNG."
        ),
    },
    "titanx": {
        "titanx: left out": "suite (a kernel's name tells), and energy_mj, which is power times time.",
        "titanx: two series": (
            "The source has stencil2d twice at all 32 pairs of clocks, the second 1.2 to 1.8 times slower. "
            "That has the size 'second series' here. The origin's list of programs has stencil2d and "
            "stencil2d_double; which series is which, the source does not say."
        ),
        "titanx: micro-kernels": (
            "140 of the 164 kernels are micro-benchmarks that differ in one parameter (fadd_dram_10_90_64p, "
            "sp_add_16): near-duplicates of each other, not independent programs. So are s3d and s3d_double, "
            "2mm and 3mm, atax, bicg and mvt, covariance and correlation."
        ),
    },
}

_SESSIONS = {
    "gtx1080ti": {
        "gtx1080ti: counters": (
            "Columns of nvprof by the source's names and in its units, at each pair of clocks: totals of a "
            "run, rates, shares and means alike. l2_tex_write_throughput.1 is a second column of that name."
        )
    }
}


def notes_of_files(devices: Collection[str]) -> dict[str, dict[str, str]]:
    """Notes by table, and by their names, on the data of these devices."""
    origin = {f"{device}: origin": _ORIGINS[device] for device in devices}
    energy = "Mean power of the GPU times the time. The source does not say how power was measured."
    return {
        "devices": origin,
        "records": origin | {name: text for d in devices for name, text in _RECORDS[d].items()},
        "energy": {**origin, "energy": energy},
        "sessions": origin | {name: text for d in devices for name, text in _SESSIONS.get(d, {}).items()},
    }
