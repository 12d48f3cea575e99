"""Rows of a small made-up dataset, for tests."""

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crosscast.data.dataset import TABLES, Dataset
from crosscast.data.schema import DEVICES
from crosscast.data.table import table_of

Row = dict[str, Any]
PIECE = {"application": "sums", "size": "tiny", "device": "cpu", "configuration": "{}", "repeat": 0}


def device(key: str = "cpu", **cells: Any) -> Row:
    return {"device": key, "name": f"the {key}", "type": "cpu", "sources": {}, **cells}


def profile(kernel: str = "sum", invocation: int = 0, **cells: Any) -> Row:
    return {"application": "sums", "size": "tiny", "kernel": kernel, "invocation": invocation, **cells}


def record(run: int = 0, time_s: Sequence[float] = (1e-3,), **cells: Any) -> Row:
    times = list(time_s)
    row = {**PIECE, "kernel": "sum", "run": run, "time_s": times, "invocations": len(times)}
    return row | cells


def energy(**cells: Any) -> Row:
    return {**PIECE, "sensor": "rapl", "domain": "package-0", "energy_j": 2.0, "runs": 50, **cells}


def session(**cells: Any) -> Row:
    return {**PIECE, "kernels": ["sum"], "runs": 50, "loop_s": 3.0, **cells}


def isolated_run(application: str = "sums", **cells: Any) -> Row:
    row = {"application": application, "size": "tiny", "device": "cpu", "configuration": "{}"}
    return {**row, "time_s": 0.5, "runs": 4, "features": {"ipc": 1.5}, **cells}


def mix(*slowdowns: float | None, name: str = "pair", **cells: Any) -> list[Row]:
    """Rows of a mix: as many applications as slowdowns."""
    row = {"mix": name, "size": "tiny", "device": "cpu", "configuration": "{}", "repeat": 0}
    return [
        {**row, "position": place, "application": "sums", "slowdown": slowdown, **cells}
        for place, slowdown in enumerate(slowdowns)
    ]


def dataset(**rows: Sequence[Row]) -> Dataset:
    """Rows of each table by its name; without any of devices, there is the CPU."""
    tables = {schema.table: table_of(schema, rows.get(schema.table, ())) for schema in TABLES}
    if "devices" not in rows:
        tables["devices"] = table_of(DEVICES, [device()])
    assert rows.keys() <= tables.keys()
    return Dataset("made up", **tables)


def powercap(cpu_cap_w: float = 65, gpu_cap_w: float = 100, **changed: Any) -> Row:
    """A row of powercap: 4 s at 60 W of the CPUs and 40 W of the GPU."""
    caps = {"cpu_cap_w": cpu_cap_w, "gpu_cap_w": gpu_cap_w}
    numbers = {"runtime_s": 4.0, "n": 3, "cpu_w": 60.0, "gpu_w": 40.0, "node_w": 100.0}
    return {"suite": "altis", "benchmark": "sort", **caps, **numbers, "size": "big", **changed}


def multicore(system: str = "amd", mode: str | None = None, cores: int = 1, **changed: Any) -> Row:
    """A row of multicore_energy: 10 s at 30 W, while the source's energy says 0."""
    place = {"system": system, "mode": mode, "app": "bs", "procs": 1, "cores": cores}
    numbers = {"time_s": 10.0, "energy_wh": 0.0, "energy_j": 0.0, "avg_power_w": 30.0, "freq_ghz": 2.1}
    return {**place, **numbers, **changed}


def epoch(power_limit: float = 100, **changed: Any) -> Row:
    """A row of gpu_power_limit: an epoch of 20 s at 90 W."""
    job = {"dataset": "cifar100", "network": "shufflenetv2", "batch_size": 1024, "optimizer": "adadelta"}
    numbers = {"power_limit": power_limit, "time_per_epoch": 20.0, "average_power": 90.0}
    return {**job, **numbers, **changed}


def gtx1080ti(core: float = 1600, memory: float = 4000, **changed: Any) -> Row:
    """A row of gtx1080ti: 2 ms at 200 W, with two counters."""
    place = {"Unnamed: 0": 4, "appName": "vectors", "coreF": core, "memF": memory, "argNo": "input00"}
    counted = {"blocks": "(224000 1 1) (128 1 1)", "warps": 896000.0, "executed_ipc": 1.5}
    return {**place, "kernel": "add", "time/ms": 2.0, **counted, "power/W": 200.0, **changed}


def titanx(core: float = 595, memory: float = 810, **changed: Any) -> Row:
    """A row of titanx: 20 ms at 80 W."""
    place = {"suite": "realbenchmarks", "kernel": "2mm", "mem_mhz": memory, "core_mhz": core}
    return {**place, "time_ms": 20.0, "power_w": 80.0, "energy_mj": 1600.0, **changed}


def write_rows(path: Path, rows: Sequence[Row]) -> Path:
    """Write a CSV file with these rows; its columns are those of the first one."""
    path.parent.mkdir(exist_ok=True, parents=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), extrasaction="raise")
        writer.writeheader()
        writer.writerows(rows)
    return path


SMALL, LARGE, SPREAD = "LM (batch size 5)", "LM (batch size 80)", "v100_unconsolidated"


def alone(job: str = SMALL, gpu: str = "v100", steps: float = 8.0, **cells: Any) -> Row:
    """A job alone, as Gavel's file has it."""
    row = {"file": "simulation_throughputs", "gpu": gpu, "job": job, "gpus": 1, "steps_per_s": steps}
    return {**row, **cells}


def pair(
    jobs: tuple[str, str] = (SMALL, LARGE),
    steps: tuple[float, float] = (4.0, 1.0),
    gpu: str = "v100",
    gpus: int = 1,
    **cells: Any,
) -> Row:
    """A pair, as Gavel's file has it."""
    row: Row = {"file": "simulation_throughputs", "gpu": gpu}
    for member, (job, speed) in enumerate(zip(jobs, steps, strict=True), start=1):
        row |= {f"job{member}": job, f"gpus{member}": gpus, f"steps_per_s{member}": speed}
    return {**row, **cells}


def single(model: str = "ResNet18", dataset: str = "CIFAR-10", **cells: Any) -> Row:
    """A job alone, as Lucid's file has it."""
    row = {"model": model, "dataset": dataset, "batchsize": 32, "amp": 0, "speed": 2000.0}
    return {**row, "gpu_util": 58.0, "gmem_util": 25.0, "gmem": 2360.0, "label": 1, **cells}


def packed(first: Row, second: Row, speeds: tuple[float, float] = (0.8, 0.5), **cells: Any) -> Row:
    """A pair of such jobs, as Lucid's file has it."""
    row: Row = {}
    for member, (job, speed) in enumerate(zip((first, second), speeds, strict=True), start=1):
        row |= {f"{name}{member}": job[name] for name in ("model", "dataset", "batchsize", "amp")}
        row |= {f"gpu_num{member}": 1, f"speed{member}": speed}
    return {**row, "gpu_util": 90.0, "gmem_util": 40.0, "gmem": 5000.0, **cells}


TOPDOWN = (
    *("retiring", "frontend_bound", "backend_bound", "bad_speculation", "branch_mispredict"),
    *("machine_clears", "frontend_latency", "frontend_bandwidth", "memory_bound", "core_bound"),
    *("ext_mem_bound", "l1_bound", "l2_bound", "l3_bound"),
)


def _suite(file: str, cluster: str, compiler: str, time_s: float) -> Row:
    place = {"file": file, "cluster": cluster, "variant": "Base", "tuning": "any", "compiler": compiler}
    work = {"size": 8388608.0, "group": "Stream", "kernel": "Stream_ADD", "BlockSize": None}
    analytic = {"Bytes/Rep": 201326592.0, "Kernels/Rep": 1.0, "Reps": 1000.0}
    analytic |= dict.fromkeys(("Flops/Rep", "Iterations/Rep", "ProblemSize"), 8388608.0)
    return {**place, **work, **analytic, **{f"topdown.{name}": None for name in TOPDOWN}, "time_s": time_s}


def quartz(level: str = "O2", number: int = 1, **changed: Any) -> Row:
    """A row of rajaperf on the CPU: 1,000 repetitions in 36 s, every share 0.1."""
    file = f"quartz/GCC_10.3.1_BaseSeq_08388608/{level}/GCC_1031_BaseSeq_{level}_8388608_{number:02}.cali"
    counted = {f"topdown.{name}": 0.1 for name in TOPDOWN}
    return _suite(file, "quartz", "g++-10.3.1", 36.0) | counted | changed


def lassen(block: float = 256, **changed: Any) -> Row:
    """A row of rajaperf on the GPU: 1,000 repetitions in 0.25 s."""
    file = f"lassen/clang10.0.1_nvcc10.2.89_8388608/1/Base_CUDA-block_{block:g}.cali"
    return _suite(file, "lassen", "clang++-10.0.1", 0.25) | {"BlockSize": block, **changed}


def launch(gpu: str = "Tesla-K40", kernel: str = "bpnn_layerforward_CUDA", **changed: Any) -> Row:
    """A row of rodinia9: 0.1 ms, with three of its counters."""
    sizes = {"input.size.1": 8192, "input.size.2": 0}
    grid = {"grid.x": 1, "grid.y": 512, "block.x": 16, "block.y": 16}
    counted = {"registers.per.thread": 11.0, "static.smem": 1088.0, "inst_executed": 213017.0}
    numbers = {"duration": 1e-4, "device": 2.0, "kernel": 1.0}
    return {"kernel_file": kernel, "gpu": gpu, **sizes, **grid, **counted, **numbers, **changed}


Rows = list[dict[str, Any]]


def features(application: str, kernel: str, size: str, invocation: int, **changed: Any) -> dict[str, Any]:
    """A row of the features: 4 work-items of 10 instructions each, 2 barriers in all."""
    row: Row = {"application": application, "kernel": kernel, "size": size, "invocation": invocation}
    row |= {"opcode": 3.0, "total_instruction_count": 40.0, "workitems": 4.0, "operand_sum": 50.0}
    row |= {"granularity": 1 / 40, "barriers_per_instruction": 3 / 40, "instructions_per_operand": 0.8}
    row |= {"total_barriers_hit": 2.0, "min_instructions_to_barrier": 5.0}
    row |= {"max_instructions_to_barrier": 10.0, "median_instructions_to_barrier": 7.5}
    row |= {"max_simd_width": 2.0, "mean_simd_width": 1.25, "stddev_simd_width": 0.4}
    row |= {"total_memory_footprint": 8.0, "ninety_percent_memory_footprint": 7.0}
    row |= {"global_memory_address_entropy": 2.5}
    row |= {f"local_memory_address_entropy_{n}": 1.5 for n in range(1, 11)}
    row |= {"total_unique_branch_instructions": 2.0, "ninety_percent_branch_instructions": 1.0}
    return row | {"branch_entropy_yokota": 31.5, "branch_entropy_average_linear": 0.25, **changed}


def runtime(device: str, run: int, time_us: float, **changed: Any) -> dict[str, Any]:
    """A row of the runtimes."""
    place = {"application": "lud", "kernel": "lud_internal", "size": "tiny", "device": device, "run": run}
    return {**place, "kernel_time_us": time_us, "total_time_us": time_us, **changed}


def default_features() -> Rows:
    return [features("lud", "lud_internal", "tiny", n) for n in range(3)]


def default_runtimes() -> Rows:
    times_us = (("gtx1080", 1, 12.5), ("gtx1080", 3, 13.0), ("i5-3350", 1, 100.0), ("i5-3350", 1, 50.0))
    return [*(runtime(*each) for each in times_us), runtime("i5-3350", 2, 60.0, kernel="lud_diagonal")]


ENERGIES = [
    {"application": name, "device": device, "size": "large", "energy": joules, "run": 1.0}
    for name, device, joules in (
        *(("lud", "i7-6700k", 20.5), ("lud", "gtx1080", 1.25)),
        # Of one of its kernels alone
        *(("kmeans", "gtx1080", 1.0), ("dwt", "i7-6700k", 2.0)),
    )
]
RESNET = single()
BERT = single("BERT", "SQuAD", amp=1, batchsize=64, speed=100.0, gmem=1024.5)
JOBS = [alone(SMALL, steps=8.0), alone(LARGE, steps=4.0), alone(SMALL, "k80", 2.0), alone(LARGE, "k80", 0.0)]
"""Both jobs on a V100; the large one does not fit on a K80."""

ADD = "__kernel void A(__global float* a, int n) {\n  int i = get_global_id(0);\n  if (i < n) a[i] += 1;\n}\n"


def mapped(kernel: str = "npb-3.3-CG-add", dataset: str = "A", **cells: Any) -> Row:
    """A kernel at a size, as the file of Cummins et al. has it."""
    counted = {"comp": 2, "rational": 1, "mem": 1, "localmem": 0, "coalesced": 1, "atomic": 0}
    sizes = {"transfer": 4096, "wgsize": 64, "runtime_cpu": 1.5, "runtime_gpu": 0.5}
    return {"benchmark": kernel, "dataset": dataset, **counted, **sizes} | cells


def tuned(variant: str = "block_size_x=16;tile_size_x=2;use_shmem=1", **cells: Any) -> Row:
    """A configuration of a tuned kernel, as the files of the benchmark hub have it."""
    return {"variant": variant, "time_median_s": 0.002, "repetitions": 10} | cells


def streamed(kernel: str = "copy", model: str = "OpenCL", device: str = "Tesla K20c", **cells: Any) -> Row:
    """A result of BabelStream."""
    variant = f"model={model};version=2.0;type=double;n=33554432;repetitions=100"
    place = {"source": f"{model}.txt", "device": device, "kernel": f"babelstream_{kernel}"}
    return {**place, "variant": variant, "time_s": 0.003} | cells


def elementwise(op: str = "add", device: str = "Tesla T4", **cells: Any) -> Row:
    """A kernel of PyTorch on B x H elements."""
    grid = {"grid_x": 2, "grid_y": 1, "grid_z": 1, "block_x": 128, "block_y": 1, "block_z": 1}
    return {"op": op, "device": device, "time_ms": 1.5, "B": 1, "H": 1024, **grid} | cells


EXAMPLES: dict[str, dict[str, Rows]] = {
    "powercap": {"dual_cap_altis.csv": [powercap(65), powercap(70)]},
    "multicore_energy": {
        "loghin.csv": [
            *(multicore("amd"), multicore("i7", cores=4), multicore("xu3", "static/all_cores", 4)),
            multicore("xu3", "dynamic/little_cores", 4),
        ]
    },
    "gpu_power_limit": {"zeus_v100.csv": [epoch(100), epoch(125)]},
    "gpu_dvfs": {
        "gtx1080ti.csv": [gtx1080ti(), gtx1080ti(1700)],
        "titanx.csv": [
            *(titanx(), titanx(633), titanx(kernel="stencil2d")),
            # The source has this kernel twice at the same clocks.
            titanx(kernel="stencil2d", time_ms=30),
        ],
    },
    "rajaperf": {"rajaperf.csv.gz": [quartz(), quartz("O3", 2), lassen(), lassen(128)]},
    "rodinia9": {
        "rodinia_9gpu.parquet": [
            *(launch(), launch("Titan"), launch(kernel="bpnn_adjust_weights_cuda", inst_executed=7.0)),
            *(launch(kernel=kernel) for kernel in ("kernel", "calculate_temp", "lud_diagonal")),
            # In kibibytes
            *(launch(gpu) | {"static.smem": 1.0625} for gpu in ("GTX-980", "Tesla-P100")),
        ]
    },
    "cgo17": {
        "cgo17_nvidia.csv": [mapped(), mapped(dataset="B", transfer=8192)],
        "cgo17_sources.csv": [{"benchmark": "npb-3.3-CG-add", "src": ADD}],
    },
    "gavel_pairs": {
        "gavel_standalone.csv": [
            # Copies first: the order of the rows tells nothing.
            *(alone(gpu=SPREAD), alone(LARGE, SPREAD, 4.0), alone(gpu=SPREAD, steps=3.0, gpus=2)),
            *(*JOBS, *(alone(job, steps=12.0, gpus=2) for job in (SMALL, LARGE))),
            alone(steps=9.0, file="physical_cluster_throughputs"),
        ],
        "gavel_pairs.csv": [
            *(pair(gpu=SPREAD), pair(), pair((SMALL, SMALL)), pair((SMALL, SMALL), (2.0, 2.0), SPREAD)),
            # With other numbers, it is a repeat.
            pair((LARGE, SMALL), (2.0, 5.0)),
            *(pair(steps=(0.0, 0.0), gpus=2), pair((LARGE, LARGE), (6.0, 4.0), gpus=2)),
            pair(steps=(0.5, 0.5), file="physical_cluster_throughputs"),
        ],
    },
    "lucid": {
        "lucid_single.csv": [RESNET, BERT],
        "lucid_pairs.csv": [
            *(packed(RESNET, BERT), packed(RESNET, RESNET, (0.8, 1.25)), packed(BERT, RESNET, gpu_num1=2)),
        ],
    },
    "kernel_tuner": {
        "kt_convolution_RTX_3090.csv": [tuned(), tuned("block_size_x=32;tile_size_x=2;use_shmem=0")],
        "kt_convolution_milo_RTX_A4000.csv": [tuned()],
        "kt_gemm_RTX_2080_Ti.csv.gz": [tuned("MWG=16;SA=0"), tuned("MWG=16;SA=1")],
    },
    "babelstream": {
        "times.csv": [
            *(streamed(), streamed("triad"), streamed(model="CUDA", device="Tesla K80 (1 GPU, ECC)")),
            # Without a data sheet
            streamed(device="FirePro S10000 (1 GPU)"),
        ]
    },
    "elementwise": {"times.csv.gz": [elementwise(), elementwise("ln"), elementwise(device="Tesla P4")]},
    "aiwc2018": {
        "features_all_invocations.parquet": [
            *default_features(),
            features("kmeans", "calc_potential_single_step_dev", "medium", 0),  # Left out
        ],
        "runtimes.parquet": default_runtimes(),
        "energy_joules.csv": ENERGIES,
    },
}
"""Rows of the files of each source."""


def write_example(name: str, folder: Path) -> Path:
    """Write the files of a source's example into a folder."""
    for file, rows in EXAMPLES[name].items():
        write_table(folder / file, rows)
    return folder


def write_table(path: Path, rows: Rows) -> Path:
    """Write rows into a file of the form that its name says."""
    if path.suffix == ".parquet":
        path.parent.mkdir(exist_ok=True, parents=True)
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    write_rows(path, rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(path.read_bytes()))
    return path
