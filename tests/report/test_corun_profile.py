"""A profile on a terminal: what is known, and a dash or a sentence for what is not."""

import io
import json
from dataclasses import replace
from pathlib import Path

from crosscast.data.corun import Solo
from crosscast.measure.corun.crew import Work
from crosscast.measure.corun.profile import Calibration, Level
from crosscast.measure.subjects import Microbenchmark
from crosscast.report.corun import CoRunProfile, print_corun_profile

LEVELS = tuple(
    Level(name, Work(Microbenchmark(name, {}), 3), 0.2, rate, rate)
    for name, rate in (("low", 4e10), ("medium", 1e10), ("high", 5e9))
)
KNOWN = {
    "mix_sse": 0.0,
    "mix_mem": 0.25,
    "ipc": 1.234,
    "llc_miss": 0.5,
    "utilisation": 0.5,
    "slowdown_low": 1.5,
    "inflicted_low": 3.0,
    "fairness_low": 0.5,
    "power_low_w": 61.0,
}
SOLO = Solo("gem", "tiny", "cpu-of-a-test", 0.25, runs=1200, power_w=40.0, memory_bytes=2048, features=KNOWN)
PROFILE = CoRunProfile(
    SOLO,
    "pocl:0",
    "A CPU [x]",
    Calibration("pocl:0", 1 << 25, 1 << 27, LEVELS),
    ["beside the microbenchmark high: it hangs"],
    Path("gem-tiny.json"),
)


def printed(profile: CoRunProfile) -> list[str]:
    stream = io.StringIO()
    print_corun_profile(profile, stream)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_what_was_measured_is_shown_for_people() -> None:
    assert printed(PROFILE) == [
        "gem tiny on pocl:0 (A CPU [x])",
        "a job of 1,200 runs: 250 ms alone",
        "power 40 W",
        "memory 2 KiB",
        "cores used 50 %",
        "instructions: memory 25 %",
        "CPU counters: 1.23 instructions a cycle, misses of the last-level cache 50 %",
        "",
        "beside each microbenchmark",
        "beside  slowdown  slowdown of the other  fairness  power",
        "low        1.500                  3.000     0.500   61 W",
        "medium         —                      —         —      —",
        "high           —                      —         —      —",
        "microbenchmarks on pocl:0: low 40 GB/s, medium 10 GB/s, high 5 GB/s; 4 images of 32 MiB "
        "(no counters of misses here: bandwidths)",
        "warning: beside the microbenchmark high: it hangs",
    ]


def test_what_is_not_known_is_said_to_be_so() -> None:
    bare = replace(PROFILE, solo=Solo("gem", "tiny", "cpu-of-a-test", 0.25))
    assert printed(bare)[1:5] == [
        "a job of 1 run: 250 ms alone",
        "power: no sensor (crosscast devices says why)",
        "instructions: not characterized",
        "CPU counters: none that work here (crosscast devices says why)",
    ]


def test_microbenchmarks_out_of_order_are_a_warning() -> None:
    turned = replace(PROFILE, calibration=replace(PROFILE.calibration, levels=LEVELS[::-1]))
    assert any(line.startswith("warning: microbenchmarks on pocl:0: expected") for line in printed(turned))


def test_json_has_what_the_file_has_and_how_it_was_made() -> None:
    found = json.loads(json.dumps(PROFILE.to_dict(), allow_nan=False))
    assert (found["application"], found["time_s"], found["features"]) == ("gem", 0.25, KNOWN)
    assert found["microbenchmarks"]["levels"]["high"]["bandwidth_bytes_per_s"] == 5e9
    assert found["device"] == {"id": "pocl:0", "key": "cpu-of-a-test", "name": "A CPU [x]"}
    assert found["notes"] == ["beside the microbenchmark high: it hangs"]
