"""Profiles of streaming kernels, with counts by sub-groups."""

from dataclasses import replace
from pathlib import Path

from crosscast.data.launch_counts import SUB_GROUPS
from crosscast.data.profiles import LOOSE_PROFILES, to_row
from crosscast.data.table import save, table_of
from crosscast.data.times import PARTS, TIMES, KernelTime, LaunchTables
from crosscast.device import Device
from crosscast.devices.catalogue import device_named
from crosscast.prediction.time.launch_model import TrainedLaunchTimes
from crosscast.profile import Profile

SIZES = (("sectors_32", 32), ("lines_64", 64), ("lines_128", 128))


def stream(items: int, *, group: int = 256, accesses: int = 2, name: str = "copy") -> Profile:
    """A profile of a kernel that reads floats and writes some, counted by hand."""
    groups, nbytes = items // group, 4 * items
    counts = {
        str(width): {
            "accesses_read": items // width,
            "accesses_write": (accesses - 1) * items // width,
            **{f"{what}_{side}": nbytes // size for what, size in SIZES for side in ("read", "write")},
            "local_wavefronts_32_banks": 0,
            "instructions_without_phi": 8 * items,
            "sub_group_instructions_without_phi": 8 * items // width,
            "atomic_conflicts": 0,
            "atomic_accesses": 0,
            "same_address_read": 0,
            "sectors_32_read_only": 0,
        }
        for width in SUB_GROUPS
    }
    moved = {"first": accesses * nbytes, **{str(1 << bits): accesses * nbytes for bits in range(14, 27)}}
    launch = {
        "geometry": {"groups": groups, "group_items": group, "registers": 4}
        | {f"sub_groups_{width}": items // width for width in SUB_GROUPS},
        "instructions": {"fp32": {"add": items}, "loads": {"global": {"4": items}}},
        "path": {"instructions": 4, "loads": {"global": 1}},
        "distinct_bytes": {"global": {"read": nbytes, "written": (accesses - 1) * nbytes}},
        "access_patterns": {"contiguous": items, "uniform": 0, "strided": 0, "irregular": 0},
        "reuse": {"bytes": {line: {str(n): moved for n in (1, 16, 256)} for line in ("64", "128")}},
        "sub_groups": counts,
    }
    metrics = {"work_items": items, "work_groups": groups, "total_instruction_count": 8 * items, "max_ipt": 8}
    metrics |= {"total_reads": items, "total_writes": (accesses - 1) * items}
    metrics |= {"unique_reads": items, "unique_writes": (accesses - 1) * items}
    return Profile(name, 0, metrics, {}, launch, {}, {}, application=name, size=str(items))


def launch_tables(folder: Path) -> None:
    """Times of four streaming kernels on three devices, at 80 % of their bandwidth."""
    profiles = [
        stream(1 << bits, accesses=n, name=f"stream{n}") for n in (2, 3, 4, 5) for bits in (20, 24, 26)
    ]
    names = [{"application": p.application, "kernel": p.kernel, "launch": p.size} for p in profiles]
    parts = [
        name
        | {"part": 0, "profile_kernel": p.kernel, "profile_size": p.size}
        | {"profile_invocation": 0, "launches": 1.0}
        for name, p in zip(names, profiles, strict=True)
    ]
    times = [
        name
        | {"source": "lab" if n % 2 else "other", "device": device.key, "configuration": {}}
        | {"time_s": 1e-5 + sum(p.launch["distinct_bytes"]["global"].values()) / bandwidth / 0.8}
        | {"statistic": "median", "timed": "by the host", "total": 0, "runs": 1}
        for n, (name, p) in enumerate(zip(names, profiles, strict=True))
        for device in map(device_named, ("gtx1080", "k40c", "p100-pcie-16gb"))
        for bandwidth in [device.numbers["bandwidth_bytes_per_s"]]
    ]
    save(table_of(LOOSE_PROFILES, map(to_row, profiles)), folder / "profiles.parquet")
    save(table_of(PARTS, parts), folder / "parts.parquet")
    save(table_of(TIMES, times), folder / "times.parquet")


def times_of_streams(
    model: TrainedLaunchTimes, device: Device, slower: float, applications: int = 3
) -> LaunchTables:
    """Times of streams of some applications on a device, so many times those forecast."""
    profiles: list[Profile] = []
    rows, parts = [], {}
    for place in range(applications):
        for size in (1 << bits for bits in (14, 18, 20, 23, 25)):
            profile = replace(stream(size, accesses=2 + place), application=f"app{place}", size=str(size))
            cell = (f"app{place}", profile.kernel, str(size))
            parts[cell] = [(len(profiles), 1.0)]
            profiles.append(profile)
            seconds = slower * float(model.predict(profile, [device]).centre[0, 0])
            rows.append(KernelTime("measured", *cell, device.key, seconds, "host", total=False))
    return LaunchTables("made", tuple(profiles), tuple(rows), parts, {device.key: device})
