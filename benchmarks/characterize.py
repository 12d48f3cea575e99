"""Price of a characterization: against native execution, against Oclgrind, in threads and in memory.

``python -m benchmarks.characterize`` prints one table and whether the project's figures are met; its exit
status is 0 if they are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import crosscast
from benchmarks.command_line import crosscast_command, environment, measure_peak, memory_limit
from benchmarks.kernels import CASES, SHAPES, Argument, Case, Workload
from benchmarks.peers.peer import Peer, PeerError, native, oclgrind
from benchmarks.rows import Row, Simulated, judge
from benchmarks.table import milliseconds, number, text_table
from crosscast.errors import CrosscastError
from crosscast.kernel import Local
from crosscast.profile import Profile

_TYPES = {"float32": "float", "int32": "int", "uint32": "uint", "uint8": "uchar"}

_LEGEND = """\
Times are ms, minimum / median of the repeats. Crosscast's are those of run, reduction and metrics together.
native, cold, crosscast, Oclgrind: CPU time on one thread; wall, 2 threads: wall time of Crosscast on one
thread and on two. native: PoCL; cold: with its caches emptied before. ratio: crosscast by native, minimum by
minimum; (2 threads): two threads by native, both in wall time.

"""


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    with native() as pocl, tempfile.TemporaryDirectory(prefix="crosscast-cache-") as cache:
        # An empty cache: the compile and instrument times are those of a kernel not seen before.
        os.environ["XDG_CACHE_HOME"] = cache
        native_platform = pocl.platform
        rows = []
        for name in options.kernels:
            print(f"{name} ...", file=sys.stderr)
            row, workload = _measure(CASES[name], pocl, options.repeat)
            if not options.no_oclgrind:
                _simulate(row, CASES[name], workload, options.oclgrind_limit)
            rows.append(row)
        shapes = []
        for name in options.shapes:
            print(f"{name} ...", file=sys.stderr)
            shapes.append(_measure(SHAPES[name], pocl, options.repeat, whole=False)[0])
    verdicts = judge(rows, shapes)
    host = {
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "native": native_platform,
        "repeats": options.repeat,
    }
    if options.json:
        judged = [{"title": v.title, "found": v.found, "met": v.met} for v in verdicts]
        measured = {"rows": [row.to_dict() for row in rows], "shapes": [row.to_dict() for row in shapes]}
        print(json.dumps({"host": host, **measured, "verdicts": judged}))
    else:
        print("\n".join(f"{key}: {value}" for key, value in host.items()), end="\n\n")
        tables = [_LEGEND + _times(rows), _rest(rows)] if rows else []
        tables += [f"Stencils by work-group\n\n{_times(shapes)}"] if shapes else []
        print(*tables, *_notes([*rows, *shapes]), "\n".join(map(str, verdicts)), sep="\n\n")
    return 0 if all(verdict.met is not False for verdict in verdicts) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.characterize", description=__doc__)
    parser.add_argument(
        "--kernels", nargs="*", choices=list(CASES), default=list(CASES), metavar="NAME",
        help=f"which kernels, of {', '.join(CASES)}; none after a bare --kernels (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--shapes", nargs="*", choices=list(SHAPES), default=list(SHAPES), metavar="NAME",
        help=f"which stencils, of {', '.join(SHAPES)}; none after a bare --shapes (default: all)",
    )  # fmt: skip
    parser.add_argument("--repeat", type=int, default=7, help="repeats of each measurement (default: 7)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--no-oclgrind", action="store_true", help="leave the simulator out")
    parser.add_argument(
        "--oclgrind-limit", type=float, default=60.0, metavar="S",
        help="give a kernel on Oclgrind up after this many seconds (default: 60)",
    )  # fmt: skip
    return parser.parse_args()


def _measure(case: Case, pocl: Peer, repeat: int, *, whole: bool = True) -> tuple[Row, Workload]:
    """Measure native execution and Crosscast on one case, and the memory of the whole command."""
    workload = case.workload()
    row = Row(case.name, case.size, workload.buffer_bytes)
    pocl.load(case.name, case.size)
    pocl.run()
    phases: list[dict[str, float]] = []
    # Interleaved, so that a busy moment of the machine hits both sides alike.
    for _ in range(repeat):
        ran = pocl.run()
        row.native_s.append(ran.wall_s)
        row.native_cpu_s.append(ran.cpu_s)
        _run_ours(row, case, workload, phases)
        row.cold_cpu_s.append(pocl.run(cold=True).cpu_s)
    fault = pocl.check()
    if fault is not None:
        row.faults.append(f"PoCL: {fault}")
    if phases:
        # Later characterizations find the compiled kernel in a cache.
        row.phases_s = {phase: phases[0][phase] for phase in ("compile", "instrument")}
        row.phases_s |= {
            phase: statistics.median(timing[phase] for timing in phases)
            for phase in ("run_cpu", "metrics_cpu")
        }
    if whole:
        row.peak_bytes = _peak(row, case, workload)
    return row, workload


def _run_ours(row: Row, case: Case, workload: Workload, phases: list[dict[str, float]]) -> None:
    """Characterize on one thread and on two, and compare the two profiles."""
    try:
        one, fault_of_one = _characterized(case, workload, 1)
        row.one_s.append(_sum(one, "run", "metrics"))
        row.one_cpu_s.append(_sum(one, "run_cpu", "metrics_cpu"))
        two, fault_of_two = _characterized(case, workload, 2)
        row.two_s.append(_sum(two, "run", "metrics"))
    except CrosscastError as error:
        _note(row, f"Crosscast: {type(error).__name__}: {error}")
        return
    phases.append(dict(one.timing_s))
    instructions = one.metrics["total_instruction_count"]
    row.instructions = None if instructions is None else int(instructions)
    for label, fault in (("one thread", fault_of_one), ("two threads", fault_of_two)):
        if fault is not None:
            _note(row, f"Crosscast, {label}: {fault}")
    unlike = [name for name, value in one.metrics.items() if two.metrics[name] != value]
    if unlike:
        _note(row, f"Crosscast: one and two threads differ in {', '.join(unlike)}")


def _characterized(case: Case, workload: Workload, threads: int) -> tuple[Profile, str | None]:
    """Profile of a workload on fresh copies of its outputs, and what is wrong with these."""
    args = workload.fresh_args()
    kernel = crosscast.Kernel.from_source(case.source, case.function)
    sizes = workload.global_size, workload.local_size
    return crosscast.characterize(kernel, *sizes, args, threads=threads), workload.fault(args)


def _sum(profile: Profile, *phases: str) -> float:
    """Seconds of some phases together."""
    return sum(profile.timing_s[phase] for phase in phases)


def _note(row: Row, fault: str) -> None:
    """Record a fault once, however often it comes."""
    if fault not in row.faults:
        row.faults.append(fault)


def _peak(row: Row, case: Case, workload: Workload) -> int | None:
    """Peak memory of the whole command that characterizes this workload."""
    with tempfile.TemporaryDirectory(prefix="crosscast-benchmark-") as name:
        path = _launch_file(Path(name), case, workload)
        # A cache of its own, still empty: the compiler's memory counts too.
        variables = environment(XDG_CACHE_HOME=name)
        peak = measure_peak(crosscast_command("characterize", str(path), "--json"), variables)
    if peak.status != 0:
        _note(row, f"crosscast characterize ended with status {peak.status}: {peak.last_words}")
        return None
    return peak.nbytes


def _launch_file(folder: Path, case: Case, workload: Workload) -> Path:
    """Write a workload's launch file, and a ``.npy`` file for each buffer, and return the former's path."""
    lines = [
        f'source = "{case.path}"',
        f'kernel = "{case.function}"',
        f"global = {list(workload.global_size)}",
        f"local = {list(workload.local_size)}",
    ]
    for index, arg in enumerate(workload.args):
        lines += ["", "[[arg]]", *_argument(folder, index, arg)]
    path = folder / f"{case.name}.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _argument(folder: Path, index: int, arg: Argument) -> list[str]:
    """Fields of one argument; a buffer's values go into a file of their own."""
    if isinstance(arg, Local):
        return [f"local = {arg.nbytes}"]
    declared = f'type = "{_TYPES[arg.dtype.name]}"'
    if isinstance(arg, np.generic):
        return [declared, f"value = {arg.item()}"]
    np.save(folder / f"{index}.npy", arg.reshape(-1))
    return [declared, f'file = "{index}.npy"']


def _simulate(row: Row, case: Case, workload: Workload, limit_s: float) -> None:
    """Time a case on Oclgrind at its reduced size."""
    try:
        # A process for each case: one that ran into the limit answers no more.
        with oclgrind(limit_s) as simulator:
            reduced = simulator.load(case.name, case.reduced)
            factor = workload.work / reduced
            row.oclgrind = Simulated(simulator.platform, simulator.run().cpu_s, case.reduced, factor)
            fault = simulator.check()
    except PeerError as error:
        _note(row, str(error))
        return
    if fault is not None:
        _note(row, f"Oclgrind: {fault}")


def _times(rows: Sequence[Row]) -> str:
    head = [
        "kernel", "native", "cold", "crosscast", "ratio", "(median)", "(wall)", "(cold)", "wall", "2 threads",
        "(2 threads)", "Oclgrind", "x faster",
    ]  # fmt: skip
    body = [
        [
            row.kernel,
            milliseconds(row.native_cpu_s),
            milliseconds(row.cold_cpu_s),
            milliseconds(row.one_cpu_s),
            number(row.ratio),
            number(row.median_ratio),
            number(row.wall_ratio),
            number(row.cold_ratio),
            milliseconds(row.one_s),
            milliseconds(row.two_s),
            number(row.two_ratio),
            "-" if row.oclgrind is None else number(1e3 * row.oclgrind.scaled_s, 0),
            number(row.times_faster, 0),
        ]
        for row in rows
    ]
    return text_table(head, body)


def _rest(rows: Sequence[Row]) -> str:
    head = [
        "kernel", "size", "instructions", "Oclgrind at size", "scaled by", "buffers MB", "peak MB",
        "limit MB", "compile ms", "instrument ms", "run ms", "metrics ms",
    ]  # fmt: skip
    body = [
        [
            row.kernel,
            str(row.size),
            "-" if row.instructions is None else str(row.instructions),
            "-" if row.oclgrind is None else str(row.oclgrind.size),
            "-" if row.oclgrind is None else number(row.oclgrind.factor, 1),
            number(row.buffer_bytes / 1e6, 1),
            "-" if row.peak_bytes is None else number(row.peak_bytes / 1e6, 0),
            number(memory_limit(row.buffer_bytes) / 1e6, 0),
            *(
                "-" if phase not in row.phases_s else number(1e3 * row.phases_s[phase], 1)
                for phase in ("compile", "instrument", "run_cpu", "metrics_cpu")
            ),
        ]
        for row in rows
    ]
    return text_table(head, body)


def _notes(rows: Sequence[Row]) -> list[str]:
    faults = [f"{row.kernel}: {fault}" for row in rows for fault in row.faults]
    return ["\n".join(faults)] if faults else []


def _cpu() -> str:
    """Model of the CPU; the machine's type where it is not told."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )


if __name__ == "__main__":
    sys.exit(main())
