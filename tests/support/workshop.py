"""A folder with a file of each kind that commands read, each made when a command line names it first."""

import itertools
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np

from crosscast.cli import main
from crosscast.cluster.job_types import JobTypes, write_job_types
from crosscast.data.corun import write_profile
from crosscast.data.dataset import Dataset, write_dataset
from crosscast.data.profiles import write_parquet
from crosscast.prediction.configuration.artefact import TrainedConfigurationModel
from crosscast.prediction.configuration.process import ProcessModel
from crosscast.profile import METRICS, Profile
from support import tables
from support.choices import named_surfaces, other_machine
from support.corun_models import constant
from support.datasets import made_dataset
from support.grids import NAMES, profiles_of
from support.johnston2018 import made_up
from support.mixes import counted_co_runs, make_isolated_run, measured_mixes
from support.models import TOOLCHAIN, chooser_card, kept, kept_chooser
from support.surfaces import configured_dataset, made_surfaces
from support.vectors import made_counted_dataset

EXAMPLES = Path(__file__).parents[2] / "examples"
ARGUMENT = '[[arg]]\ntype = "float"\nlength = 2\n'
SHEET = """type = "gpu"
compute_units = 20
cores = 2560
clock_hz = 1.7e9
peak_flop_per_s = 8.7e12
bandwidth_bytes_per_s = 3.2e11
"""
MACHINES = '[[machine]]\nname = "cpu"\nnodes = 6\n[[machine]]\nname = "gpu"\nnodes = 3\ngpu = true\n'
TEXTS: dict[str, str | bytes] = {
    "k.cl": "kernel void k(global float *a) { a[get_global_id(0) & 1] *= 2; }\n",
    "two.cl": "kernel void first() {}\nkernel void second() {}\n",
    "n.cl": "kernel void n(int n) {}\n",
    "empty.cl": " \n",
    "damaged.cl": "/* crosscast-profile 1 */\n",
    "k.ll": "define nonsense",
    "k.bc": b"BC\xc0\xdegarbage",
    **{f"garbage.{suffix}": b"\x7fELF\xff\x00\x80" for suffix in ("cl", "toml", "sim")},
    "k.sim": "k.cl k 4 1 1 2 1 1\n<size=8 fill=1.5 dump>\n",
    "k.toml": f'source = "k.cl"\nkernel = "k"\nglobal = 4\n{ARGUMENT}',
    "run.json": '{"counter-value" : "1000000000.0", "event" : "PAPI_TOT_INS"}\n'
    '{"counter-value" : "1500000000.0", "unit" : "ns", "event" : "duration_time"}\n',
    "odd.json": '{"counter-value" : "10.0", "event" : "odd-event"}\n',
    "cycles.json": '{"counter-value" : "7", "unit" : "", "event" : "cycles"}\n',
    "brace.json": "{",
    "list.json": "[]",
    "lacking.json": '{"kernel": "k"}',
    "other.csv": "a,b\n",
    "par1.parquet": "PAR1",
    "notes.txt": "mine",
    "watts.csv": "application,block,time_s,watts\nscan,8,4,30\n",
    "short.swf": "; MaxProcs: 4\n1 2 3\n",
    "machines.toml": MACHINES,
    "tpu.toml": '[[machine]]\nname = "tpu"\nnodes = 3\n',
    "narrow.toml": '[[machine]]\nname = "cpu"\nnodes = 2\n',
    "by-user.toml": f"placement = 'user'\n{MACHINES}",
    "one.toml": "placement = 'random'\n[[machine]]\nname = 'm'\nprocs = 5\n",
    "little-power.toml": "[[machine]]\nname = 'm'\nprocs = 5\nactive_w = 10\n[power]\nbudget_w = 49\n",
    "sheet-no-device.toml": 'type = "gpu"',
    "sheet-no-type.toml": 'device = "x"',
    "sheet-fpga.toml": 'device = "x"\ntype = "fpga"',
    "sheet-unknown.toml": 'device = "x"\ntype = "gpu"\nclock_mhz = 3',
    "sheet-negative.toml": 'device = "x"\ntype = "gpu"\ncores = -2',
    "sheet-known.toml": f'device = "big"\n{SHEET}',
    "sheet-few.toml": 'device = "x"\ntype = "gpu"\ncores = 64',
    "sheet-tflops.toml": 'device = "x"\ntype = "gpu"\npeak_flop_per_s = 82.6',
    "sheet-broken.toml": "device = ",
    "file": "",
    "taken/mine.txt": "mine",
    "trace/trace-7-0.jsonl": "",
    "empty/": "",
}
"""Contents by name, or of a name with a slash at its end, an empty folder."""

JOBS = ((1, 0, 4, 3, 5, 1), (2, 0, 2, 4, 2, 1), (3, 0, 3, 1, 3, 2), (4, 0, 9, 1, 20, 2), (5, 30, 5, 5, 5, 2))
"""Number, submitted, ran, processors, requested time, user of the jobs of a small trace."""


def write_trace(path: Path, head: str = "; MaxProcs: 5\n", users: bool = True) -> None:
    """Five jobs on five processors: the second waits, and jobs may pass it; one was cancelled."""
    lines = [
        f"{job} {submit} 0 {ran} {procs} -1 -1 {procs} {requested} -1 1 {user if users else -1} "
        "-1 -1 -1 -1 -1 -1"
        for job, submit, ran, procs, requested, user in JOBS
    ]
    lines.append(f"6 31 5 -1 -1 -1 -1 2 50 -1 5 {1 if users else -1} -1 -1 -1 -1 -1 -1")
    path.write_text(f"; Computer: a small one\n{head}" + "\n".join(lines) + "\n")


def write_table(path: Path, **changed: object) -> None:
    """Eight types of jobs on a CPU and a GPU, of which every second one is for the GPU."""
    gpu = np.arange(8) % 2 == 0
    times_s = np.random.default_rng(2).uniform(2, 9, (8, 1)) * np.where(gpu[:, None], [1.0, 0.2], [1.0, 3.0])
    cells: dict[str, object] = {
        "devices": ("cpu", "gpu"),
        "application": tuple(f"app{place}" for place in range(8)),
        "kernel": (None,) * 8,
        "size": (None,) * 8,
        "procs": np.arange(8) % 3 + 1,
        "uses_gpu": gpu,
        "repeats": np.ones(8, dtype=np.int64),
        "submit_s": None,
        "user": (None,) * 8,
        "times_s": times_s,
        "predicted": times_s / times_s.max(axis=1, keepdims=True),
        "source": ("cpu",) * 8,
        "model": ("never wrong",) * 8,
    }
    write_job_types(JobTypes(**(cells | changed)), path)  # type: ignore[arg-type]


def known_profile() -> Profile:
    """A profile with the metrics of a kernel that the model `times` was trained on."""
    known = dict(zip(NAMES, profiles_of("abcdef", 8).metrics[3].tolist(), strict=True))
    metrics: dict[str, float] = {}
    for metric in METRICS:
        value = known.get(metric.name, 0.5)
        is_real = metric.unit in ("1", "bits")
        metrics[metric.name] = (value if is_real else round(value)) if value == value else 7
    return Profile(
        kernel="k3",
        invocation=0,
        metrics=metrics,
        timing_s={},
        launch={},
        program={"sha256": "ab" * 32, "compiler": TOOLCHAIN.compiler},
        environment={},
    )


SURFACES = made_surfaces(noise=0.01)


def write_runs(path: Path, *rows: int) -> Path:
    """Runs of made-up kernels, by default of one, at the samples of the choosers."""
    lines = ["application,size,cpu_cap_w,gpu_cap_w,time_s,cpu_w,gpu_w,stalls"]
    for row, number in itertools.product(rows or (3,), chooser_card().numbers):
        kernel, settings = SURFACES.kernels[row], SURFACES.space.configurations[number].settings.values()
        powers = (SURFACES.domains[name][row, number] for name in ("cpu", "gpu"))
        measured = (SURFACES.time_s[row, number], *powers, SURFACES.counters["stalls"][row, number])
        lines.append(",".join(map(str, (kernel.application, kernel.size, *settings, *measured))))
    path.write_text("\n".join(lines))
    return path


def _two_machines() -> Dataset:
    # Programs have other names on the second: it would be one machine to choose from otherwise.
    lonely = other_machine()
    kernels = tuple(each._replace(application=f"{each.application}.") for each in lonely.kernels)
    renamed = type(lonely)(lonely.label, kernels, lonely.space, lonely.time_s, lonely.power_w)
    return configured_dataset(named_surfaces(), renamed)


def _without_power() -> Dataset:
    whole = configured_dataset(named_surfaces())
    return replace(whole, energy=whole.energy.slice(0, 0))


def keep_process_chooser(folder: Path) -> None:
    """A chooser that knows how sure it is."""
    card = msgspec.structs.replace(chooser_card(), kind="process")
    fitted = ProcessModel().fit(SURFACES, card.numbers)
    TrainedConfigurationModel(card, fitted).save(folder)


def _relative_model(folder: Path) -> None:
    with TemporaryDirectory() as data:
        write_dataset(made_counted_dataset(), Path(data) / "counted")
        words = ["train", "relative", f"{data}/counted", "--model", "published-linear", "--jobs", "1"]
        assert main([*words, "--out", str(folder)]) == 0


def _two_devices() -> Dataset:
    co_runs = counted_co_runs((2,))
    isolated_runs = [
        tables.isolated_run(each.application, size=each.size, device=each.device, time_s=each.time_s)
        for each in co_runs.isolated_runs
    ]
    return tables.dataset(devices=[tables.device("cpu"), tables.device("other")], isolated_runs=isolated_runs)


def _profile(name: str, device: str = "cpu") -> Callable[[Path], None]:
    return lambda path: write_profile(
        replace(make_isolated_run(name), device=device), {"device": device, "type": "cpu"}, path
    )


def _dataset(make: Callable[[], Dataset]) -> Callable[[Path], None]:
    return lambda path: write_dataset(make(), path)


MAKERS: dict[str, Callable[[Path], object]] = {
    "saxpy.cu": lambda path: shutil.copy(EXAMPLES / "saxpy.cu", path),
    "small.swf": write_trace,
    "unsaid.swf": lambda path: write_trace(path, head=""),
    "nobody.swf": lambda path: write_trace(path, users=False),
    "jobs.parquet": write_table,
    "timed.parquet": lambda path: write_table(path, submit_s=np.arange(8.0)),
    "k3.json": lambda path: path.write_text(json.dumps(known_profile().to_dict())),
    "k3.parquet": lambda path: write_parquet([known_profile()], path),
    "no-opcode.json": lambda path: path.write_text(
        json.dumps({**known_profile().to_dict(), "metrics": {**known_profile().metrics, "opcode": None}})
    ),
    "runs.csv": write_runs,
    "times": kept,
    "chooser": keep_process_chooser,
    "sureless": kept_chooser,
    "relative": _relative_model,
    "pairs": lambda path: constant(path, 1.25, error=0.05),
    "counted": _dataset(made_counted_dataset),
    "profiles": _dataset(made_dataset),
    "profiles-one": _dataset(lambda: made_dataset(("alone",))),
    "made": _dataset(made_up),
    "node": _dataset(lambda: configured_dataset(named_surfaces())),
    "two": _dataset(_two_machines),
    "dark": _dataset(_without_power),
    "mixes": _dataset(measured_mixes),
    "mixes-few": _dataset(lambda: measured_mixes(("bfs",))),
    "mixes-none": _dataset(tables.dataset),
    "two-devices": _dataset(_two_devices),
    "bfs.json": _profile("bfs"),
    "cfd.json": _profile("cfd"),
    "crc.json": _profile("crc"),
    "far.json": _profile("far", "gpu"),
}


class Workshop:
    """The folder; no test may write into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, content in TEXTS.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            if name.endswith("/"):
                path.mkdir()
            else:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def make_those_in(self, line: str) -> None:
        """Make what a command line names and is not made yet."""
        for name in re.split(r"[ =]", line):
            if name in MAKERS and not (self.folder / name).exists():
                MAKERS[name](self.folder / name)

    def listing(self) -> list[Path]:
        """All that it contains."""
        return sorted(self.folder.rglob("*"))
