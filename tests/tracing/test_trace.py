"""Reading a trace: what was recorded is there wherever the file ends, and nothing in it is believed."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import CrosscastError, InputError
from crosscast.kernel import Image, Local, Sampler
from crosscast.tracing.replay import replay_of
from crosscast.tracing.summary import Trace, summary_of, write_timeline
from crosscast.tracing.trace import TracedProcess, read_processes
from support.examples import examples, one_in
from support.refusals import refusal, refusals

SOURCE = """#include "by.h"
kernel void twice(global float *x, local int *l, float by, sampler_t s, read_only image2d_t m) {
  x[get_global_id(0)] *= BY;
}
"""
NAME = "programs/" + 32 * "a" + ".cl"
INCLUDED = "programs/" + 32 * "c" + ".cl"
MEMORY = "memory/" + 32 * "b" + ".bin"
HEADER = ["crosscast-trace", 1, 7, 1, 1000, 2000, "layer", "/bin/app", "app --size 1", "/tmp"]
ARGUMENTS = [0, [8], "00000040", ["s", 0], 1]
RECORDS: list[list[Any]] = [
    HEADER,
    ["q", 0, 0, 1, 4, "GPU", "vendor", "1.0", "OpenCL 3.0"],
    ["p", 0, "source", NAME, [], ["build", 0, 5, "-D X=1 -cl-nv-verbose", "/tmp", {"by.h": 1}]],
    ["k", 0, 0, "twice", 0],
    ["m", 0, 16, 1, 0, 0],
    ["s", 0, 0, 0x1133, 0x1141],
    ["l", 0, 0, 0, 9, 1100, [4], [2], [], ARGUMENTS, [0, *4 * [-1]], 5 * [-1], 3, 4, 0],
    ["f", 0, 16, MEMORY],
    ["t", 0, 100, 10, 20, 500],
    ["l", 1, 0, 0, 9, 1200, [4], [2], [], 0, [], [], 3, 4, 0],
    ["o", 2, 0, 64, 1, 1300, 10, "read"],
    ["t", 1, 200, 10, 20, 700],
    ["t", 2, 300, 10, 20, 900],
    ["m", 1, 16, 1, 1, 0, [0x10F1, 0x10B0, 0x10DE, 2, 2, 0, 0, 4]],
    ["p", 1, "source", INCLUDED, [], None],
    ["n", "extension function", "clFoo"],
    ["e", 1400, 0, 0, 0],
]


def written(folder: Path, records: list[list[Any]]) -> Path:
    for name in ("programs", "memory"):
        (folder / name).mkdir(exist_ok=True)
    (folder / NAME).write_text(SOURCE)
    (folder / INCLUDED).write_text("#define BY by")
    (folder / MEMORY).write_bytes(bytes(16))
    text = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "trace-7-0.jsonl").write_text(text)
    return folder


def only(folder: Path) -> TracedProcess:
    (process,) = read_processes(folder)
    return process


def test_what_was_recorded_is_read(tmp_path: Path) -> None:
    process = only(written(tmp_path, RECORDS))
    assert (process.pid, process.way, process.command) == (7, "layer", "app --size 1")
    assert process.seconds.tolist() == [5e-7, 7e-7]
    assert process.transfer_seconds.tolist() == [9e-7]
    assert process.starts.tolist() == pytest.approx([1.3e-7, 2.3e-7])
    # Arguments that did not change are not written again.
    assert process.launches["args"].tolist() == [0, 0]
    launch = replay_of(process, 0).launch
    assert launch.kernel.program.options[0] == "-DX=1"
    *others, image = launch.args[1:]
    assert others == [Local(8), np.float32(2), Sampler("repeat", linear=True)]
    assert isinstance(image, Image)
    assert (image.array.tolist(), image.channel_order) == ([[0.0, 0.0], [0.0, 0.0]], "R")


def test_a_summary_counts_every_launch_and_transfer(tmp_path: Path) -> None:
    trace = Trace(written(tmp_path, RECORDS))
    summary = summary_of(trace)
    (only_class,) = summary.classes
    assert (only_class.count, len(only_class.replayable), only_class.timed) == (2, 1, 2)
    # The time of the launch whose memory was read is not taken, as reading disturbs it.
    assert only_class.median_s == 7e-7
    assert summary.device_s == pytest.approx(1.4e-6)
    (transfer,) = summary.transfers
    assert (transfer.kind, transfer.count, transfer.bytes) == ("read", 1, 64)
    assert summary.application == "app"
    assert summary.doubts == ["what is done with extension functions is not recorded: clFoo"]
    # Times are of the run without copies of memory, if there is one.
    (tmp_path / "times").mkdir()
    changed = [["t", 0, 100, 10, 20, 300] if row[:2] == ["t", 0] else row for row in RECORDS]
    written(tmp_path / "times", changed)
    columns = Trace(tmp_path).columns()
    assert (columns["time_s"], columns["memory_kept"]) == ([3e-7, 7e-7], [True, False])
    write_timeline(Trace(tmp_path), tmp_path / "timeline.json")
    events = json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    assert [each["dur"] for each in events if each["ph"] == "X"] == pytest.approx([0.3, 0.7, 0.9])


@pytest.mark.parametrize("every", one_in(2, [7, 1]))
def test_a_file_may_end_anywhere(tmp_path: Path, every: int) -> None:
    whole = (written(tmp_path, RECORDS) / "trace-7-0.jsonl").read_bytes()
    for size in range(0, len(whole), every):
        for tail in (b"", bytes(64)):
            (tmp_path / "trace-7-0.jsonl").write_bytes(whole[:size] + tail)
            found = read_processes(tmp_path)
            assert len(found) == (b"\n" in whole[:size])
            assert all(not process.ended for process in found)


@refusals("place record")
def test_a_record_that_no_layer_writes_is_refused_by_line(place: int, record: str, tmp_path: Path) -> None:
    records = [*RECORDS[:place], json.loads(record), *RECORDS[place + 1 :]]
    with pytest.raises(InputError, match=rf"trace-7-0.jsonl, line {place + 1}: expected a record of a trace"):
        read_processes(written(tmp_path, records))


def test_a_newer_trace_a_folder_without_one_and_a_file_of_another_size_are_refused(tmp_path: Path) -> None:
    assert "expected the folder of a trace" in refusal(read_processes, tmp_path)
    newer = written(tmp_path, [["crosscast-trace", 2, *HEADER[2:]]])
    assert "version 1, found version 2" in refusal(read_processes, newer)
    process = only(written(tmp_path, RECORDS))
    (tmp_path / MEMORY).write_bytes(bytes(15))
    assert "expected 16 bytes, found 15" in refusal(replay_of, process, 0)
    assert "memory was not kept" in refusal(replay_of, process, 1)


@refusals("place record reason")
def test_what_cannot_be_run_again_says_why(place: int, record: str, reason: str, tmp_path: Path) -> None:
    process = only(written(tmp_path, [*RECORDS[:place], json.loads(record), *RECORDS[place + 1 :]]))
    with pytest.raises(CrosscastError, match=reason):
        replay_of(process, 0)


NUMBERS = st.integers(-(1 << 70), 1 << 70) | st.floats(allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=8,
)


@examples(1500)
@given(place=st.integers(0, len(RECORDS) - 1), field=st.integers(0, 14), value=JSON)
def test_any_value_anywhere_is_read_or_refused(place: int, field: int, value: object) -> None:
    records = [list(record) for record in RECORDS]
    records[place][field % len(records[place])] = value
    with TemporaryDirectory() as folder:
        try:
            trace = Trace(written(Path(folder), records))
            summary_of(trace)
            trace.columns()
            for process, row in trace.launches:
                replay_of(process, row)
        except CrosscastError as error:
            assert "\n" not in str(error).split(": the compiler")[0]
