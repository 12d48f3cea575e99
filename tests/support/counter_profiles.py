"""Small profiles of counter tools, written by hand in the tools' formats."""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

# Linux perf


def perf_line(event: str, value: str, unit: str = "", **more: Any) -> str:
    facts = {"counter-value": value, "unit": unit, "event": event, "event-runtime": 1, "pcnt-running": 100.0}
    return json.dumps({**facts, **more})


def perf_file(path: Path, *lines: str) -> Path:
    path.write_text("# started on some day\n\n" + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


PERF = (
    perf_line("task-clock", "800.0", "msec", **{"metric-value": 0.4, "metric-unit": "CPUs utilized"}),
    perf_line("instructions:u", "4000.000000"),
    perf_line("branches:u", "500.000000"),
    perf_line("cache-misses", "<not counted>"),
    perf_line("LLC-loads", "<not supported>"),
)

# Nsight Compute

NCU_ABOUT = {
    "ID": "0",
    "Process ID": "7",
    "Process Name": "app",
    "Kernel Name": "add",
    "Device": "0",
    "CC": "9.0",
}


def quoted(cells: Sequence[str]) -> str:
    return ",".join(f'"{cell}"' for cell in cells) + "\n"


def ncu_wide(path: Path, units: Mapping[str, str], *launches: Mapping[str, str]) -> Path:
    """``ncu --csv --page raw``: a header, units, and a row for each launch."""
    lines = ["==PROF== Connected to process 7\n", quoted([*NCU_ABOUT, *units])]
    lines.append(quoted([*("" for _ in NCU_ABOUT), *units.values()]))
    for number, launch in enumerate(launches):
        about = {**NCU_ABOUT, "ID": str(number), **{key: launch[key] for key in NCU_ABOUT if key in launch}}
        lines.append(quoted([*about.values(), *(launch[name] for name in units)]))
    path.write_text("".join(lines), encoding="utf-8")
    return path


def ncu_long(path: Path, *metrics: tuple[str, str, str, str, str]) -> Path:
    """``ncu --csv --metrics``: a row for each metric, of launch, kernel, name, unit and value."""
    header = ["ID", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value"]
    rows = [[launch, kernel, "section", name, unit, value] for launch, kernel, name, unit, value in metrics]
    path.write_text("".join(map(quoted, [header, *rows])), encoding="utf-8")
    return path


# Caliper

CALI_HEAD = """\
__rec=node,id=12,attr=10,data=276,parent=3
__rec=node,id=13,attr=8,data=region,parent=12
__rec=node,id=14,attr=10,data=65,parent=5
__rec=node,id=15,attr=8,data=sum#time.duration,parent=14
__rec=node,id=16,attr=10,data=65,parent=3
__rec=node,id=17,attr=10,data=65,parent=2
__rec=node,id=18,attr=8,data=sum#papi.PAPI_BR_INS,parent=17
__rec=node,id=19,attr=8,data=mpi.rank,parent=17
__rec=node,id=20,attr=8,data=max#papi.PAPI_BR_INS,parent=17
__rec=node,id=21,attr=8,data=sum#papi.PAPI_TOT_INS,parent=17
__rec=node,id=30,attr=13,data=main
__rec=node,id=31,attr=13,data=solve,parent=30
"""


def cali_record(
    time_s: float, branches: int, instructions: int, node: int | None = None, rank: int = 0
) -> str:
    ref = "" if node is None else f",ref={node}"
    return f"__rec=ctx{ref},attr=15=18=21=19=20,data={time_s}={branches}={instructions}={rank}={branches}\n"


def cali_file(path: Path, *records: str) -> Path:
    """A file of records, which tests read with caliper-reader if it is installed."""
    pytest.importorskip("caliperreader", reason="caliper-reader is not installed")
    path.write_text(CALI_HEAD + "".join(records), encoding="utf-8")
    return path


def caliper_table(**changed: Any) -> dict[str, Any]:
    """The same two regions in json-split: 1 s and 3 s, nanoseconds told as Caliper tells them."""
    return {
        "data": [[0, 1e9, 100, 4e9, 0], [1, 3e9, 300, 3e9, 0]],
        "columns": ["path", "sum#time.duration.ns", "sum#rc.count", "inclusive#sum#cycles", "rank"],
        "column_metadata": [{"is_value": False}, *({"is_value": True} for _ in range(4))],
        "nodes": [{"label": "main", "column": "path"}, {"label": "solve", "column": "path", "parent": 0}],
        **changed,
    }


# HPCToolkit

TREE = """\
<PF i="2" s="2" l="0" lm="2" f="2" n="2">
 <C i="3" s="3" l="5"><PF i="4" s="4" l="9" lm="2" f="2" n="3">{statement}</PF></C>
</PF>
"""
STATEMENT = '<S i="5" it="5" s="5" l="10"/>'
OLD_METRICS = ("CPUTIME (usec):Sum (E)", "CPUTIME (usec):Sum (I)", "PAPI_BR_INS (E)", "PAPI_BR_INS (I)")


def old_database(
    folder: Path,
    metrics: Sequence[str] = OLD_METRICS,
    processes: int = 2,
    threads: int = 1,
    statement: str = STATEMENT,
) -> Path:
    """A database with experiment.xml; thread t of process p has 1 + p + t times 2 s and 300 branches."""
    folder.mkdir(parents=True)
    names = "".join(f'<MetricDB i="{i}" n="{name}"/>' for i, name in enumerate(metrics))
    (folder / "experiment.xml").write_text(
        '<?xml version="1.0"?>\n<HPCToolkitExperiment version="2.0"><Header n="app"/>'
        f'<SecCallPathProfile i="0" n="app"><SecHeader><MetricDBTable>{names}</MetricDBTable>'
        '<LoadModuleTable><LoadModule i="2" n="app"/></LoadModuleTable>'
        '<FileTable><File i="2" n="a.c"/></FileTable>'
        '<ProcedureTable><Procedure i="2" n="main"/><Procedure i="3" n="work"/></ProcedureTable></SecHeader>'
        f"<SecCallPathProfileData>{TREE.format(statement=statement)}</SecCallPathProfileData>"
        "</SecCallPathProfile></HPCToolkitExperiment>",
        encoding="utf-8",
    )
    exclusive, inclusive = (0, 0, 0, 3, 3), (3, 3, 3, 3, 3)
    for process in range(processes):
        for thread in range(threads):
            factor = 1 + process + thread
            shares = [inclusive if "(I)" in name else exclusive for name in metrics]
            units = [2e6 / 3 if "TIME" in name else 100 for name in metrics]
            values = [factor * s[node] * u for node in range(5) for s, u in zip(shares, units, strict=True)]
            body = struct.pack(f">{len(values)}d", *values)
            head = b"HPCPROF-metricdb__00.10b" + struct.pack(">ii", 5, len(metrics))
            path = folder / f"app-{process:06d}-{thread:03d}-a8c00170-77-0.metric-db"
            path.write_bytes(head + body)
    return folder


class _Bytes:
    """A file of format 4: sections behind a header of pointers."""

    def __init__(self, form: bytes, sections: int, version: int = 4) -> None:
        self.content = bytearray(b"HPCTOOLKIT" + form + bytes([version, 0]) + bytes(16 * sections))

    def put(self, data: bytes) -> int:
        self.content += bytes(-len(self.content) % 8)
        place = len(self.content)
        self.content += data
        return place

    def text(self, text: str) -> int:
        return self.put(text.encode() + b"\0")

    def section(self, number: int, data: bytes) -> int:
        place = self.put(data)
        struct.pack_into("<QQ", self.content, 16 + 16 * number, len(data), place)
        return place


def new_database(
    folder: Path,
    metrics: Sequence[str] = ("CPUTIME (sec)", "PAPI_BR_INS"),
    processes: int = 2,
    threads: int = 1,
    version: int = 4,
) -> Path:
    """A database with meta.db of the same program: an entry point, and the values of `old_database`."""
    (folder / "metrics").mkdir(parents=True)
    meta = _Bytes(b"meta", 8, version)
    title = meta.text("app")
    meta.section(0, struct.pack("<QQ", title, title))
    kinds = struct.pack("<4Q", *(meta.text(name) for name in ("SUMMARY", "NODE", "RANK", "THREAD")))
    meta.section(1, struct.pack("<QB", meta.put(kinds), 4))
    scopes = [
        meta.put(struct.pack("<QBB6x", meta.text(name), kind, 0))
        for name, kind in (("function", 3), ("execution", 2))
    ]
    descriptions = b""
    for number, name in enumerate(metrics):
        instances = meta.put(
            b"".join(struct.pack("<QH6x", at, 2 * number + i) for i, at in enumerate(scopes))
        )
        descriptions += struct.pack("<QQQHH4x", meta.text(name), instances, 0, 2, 0)
    listed = meta.put(descriptions)
    meta.section(2, struct.pack("<QIBBBxQHB", listed, len(metrics), 32, 16, 24, scopes[0], 2, 16))
    strings = meta.section(4, b"main thread\0")
    entry = meta.put(struct.pack("<QQIHxxQ", 0, 0, 1, 1, strings))
    meta.section(3, struct.pack("<QHB", entry, 1, 32))
    for number in (5, 6, 7):
        meta.section(number, struct.pack("<QIHxx", 0, 0, 16))
    (folder / "meta.db").write_bytes(meta.content)

    profile = _Bytes(b"prof", 2, version)
    measured = [(process, thread) for process in range(processes) for thread in range(threads)]
    tuples = profile.section(
        1,
        b"".join(
            struct.pack("<H6x", 2) + struct.pack("<BxHIQ", 2, 0, p, 0) + struct.pack("<BxHIQ", 3, 0, t, 0)
            for p, t in measured
        ),
    )
    profiles = struct.pack("<QQI4xQQI4x", 0, 0, 0, 0, 0, 1)
    values = {
        (p, t): [(1 + p + t) * (2.0 if "TIME" in name else 300.0) for name in metrics] for p, t in measured
    }
    for number, each in enumerate(measured):
        pairs = [struct.pack("<Hd", 2 * metric + 1, value) for metric, value in enumerate(values[each])]
        block = profile.put(b"".join(pairs * 2))
        contexts = profile.put(struct.pack("<IQIQ", 0, 0, 1, len(pairs)))
        profiles += struct.pack("<QQI4xQQI4x", 2 * len(pairs), block, 2, contexts, tuples + 40 * number, 0)
    profile.section(0, struct.pack("<QIB", profile.put(profiles), 1 + len(measured), 48))
    (folder / "profile.db").write_bytes(profile.content)
    _write_contexts(folder, metrics, [values[each] for each in measured])
    return folder


def _write_contexts(folder: Path, metrics: Sequence[str], values: Sequence[Sequence[float]]) -> None:
    """What hatchet reads, and we do not: values by context, and which scope is the inclusive one."""
    contexts = _Bytes(b"ctxt", 1)
    scoped = [each for metric in range(len(metrics)) for each in (metric, metric)]
    pairs = b"".join(
        struct.pack("<Id", 1 + number, each[metric])
        for metric in scoped
        for number, each in enumerate(values)
    )
    indices = b"".join(struct.pack("<HQ", number, number * len(values)) for number in range(len(scoped)))
    block = struct.pack(
        "<QQH6xQ", len(values) * len(scoped), contexts.put(pairs), len(scoped), contexts.put(indices)
    )
    listed = contexts.put(bytes(32) + block)
    contexts.section(0, struct.pack("<QIB", listed, 2, 32))
    (folder / "cct.db").write_bytes(contexts.content)
    formula = {
        key: {"standard": {"scope": scope}}
        for key, scope in (("inclusive", "execution"), ("exclusive", "function"))
    }
    roots = [
        {"name": name, "variants": {"Sum": {"render": ["percent"], "formula": formula}}} for name in metrics
    ]
    (folder / "metrics" / "default.yaml").write_text(json.dumps({"roots": roots}), encoding="utf-8")
