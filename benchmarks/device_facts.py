"""What was measured on the devices of the catalogue, from the public results of clpeak.

``python -m benchmarks.device_facts RATES DEVICES [--out FILE]`` reads the tables of its results (bandwidth
and rates by vector width; launches) and writes ``src/crosscast/devices/measured.json``: of each result the
best of the vector widths, of each device the median of its results. clpeak is by Krishnaraj Bhat and others,
Apache-2.0 (https://github.com/krrishnarraj/clpeak). A multiply-add counts as two operations.

What is left out: results of cards that the name does not tell, launches of a millisecond or more (a driver
that builds the kernel, then), and bandwidths above the data sheet's, which are of another card.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

from crosscast.devices.catalogue import catalogue

DEFAULT = Path(__file__).parents[1] / "src" / "crosscast" / "devices" / "measured.json"
MORE = Path(__file__).with_name("clpeak_results.csv")

QUANTITIES = {
    "clpeak_global_bandwidth": "read_bytes_per_s",
    "clpeak_compute_half": "fp16_flop_per_s",
    "clpeak_compute_single": "fp32_flop_per_s",
    "clpeak_compute_double": "fp64_flop_per_s",
    "clpeak_compute_integer": "int32_op_per_s",
}
_LAUNCH_S = 1e-3
_OVER = 1.02

# Names in the results, and keys of the catalogue. Not here: Capeverde, Cypress, Oland, Tahiti and Iris Pro,
# as several are called; processors of telephones and of a Raspberry Pi by a PoCL that knew no vector units.
KEYS = {
    "AMD A10-7850K APU": "a10-7850k",
    "AMD A10-7850K APU [AMD A10-7850K APU with Radeon(TM) R7 Graphics]": "a10-7850k",
    "AMD A10-7850K APU [Spectre]": "a10-7850k-r7",
    "AMD A6-1450 APU [AMD A6-1450 APU with Radeon(TM) HD Graphics]": "a6-1450",
    "AMD A6-1450 APU [Kalindi]": "a6-1450-hd8250",
    "AMD E-350 [AMD E-350 Processor]": "e-350",
    "AMD E-350 [Loveland]": "e-350-hd6310",
    "AMD EPYC 7662": "epyc-7662",
    "AMD EPYC 7663": "epyc-7763",  # 128 threads of 2.45 GHz, which no 7663 has
    "AMD EPYC 7A53": "epyc-7a53",
    "AMD HAWAII W8100": "firepro-w8100",
    "AMD Hawaii W8100": "firepro-w8100",
    "AMD HAWAII W9100": "firepro-w9100",
    "AMD MI100 [gfx908:sramecc+:xnack-]": "mi100",
    "AMD MI250X [gfx90a:sramecc+:xnack-]": "mi250x-gcd",
    "AMD Phenom II X6 1055T": "phenom-ii-x6-1055t",
    "AMD Ryzen 5 1600": "ryzen-5-1600",
    "AMD Ryzen 7 3700X": "ryzen-7-3700x",
    "AMD Ryzen Threadripper 3970X": "threadripper-3970x",
    "Adreno 305": "adreno-305",
    "Cayman": "hd6970",  # 24 compute units, a rate above that of an HD 6990's
    "Galaxy S7": "adreno-530",
    "OnePlus 3T": "adreno-530",
    "Nexus 5": "adreno-330",
    "GeForce GT 650M": "gt650m",
    "GeForce GTX 1060": "gtx1060-3gb",  # 9 compute units
    "GeForce GTX 1080": "gtx1080",
    "GeForce GTX 1080 Ti": "gtx1080ti",
    "GeForce GTX 1660 Ti": "gtx1660ti",
    "GeForce GTX 465": "gtx465",
    "GeForce GTX 480": "gtx480",
    "GeForce GTX 660": "gtx660",
    "GeForce GTX 750": "gtx750",
    "GeForce GTX 960": "gtx960",
    "GeForce GTX 980": "gtx980",
    "GeForce GTX TITAN": "gtx-titan",
    "GeForce MX 130": "mx130",
    "GeForce RTX 2060": "rtx2060",
    "GeForce RTX 2080": "rtx2080",
    "GeForce RTX 2080 Super": "rtx2080-super",
    "GeForce RTX 2080 Ti": "rtx2080ti",
    "IBM POWER9": "power9",
    "NVIDIA Tesla V100-SXM2-16GB [pthread-POWER9, altivec supported]": "power9",
    "Intel Core i5-4570": "i5-4570",
    "Intel Core i7-10875h": "i7-10875h",
    "Intel Core i7-4700HQ": "i7-4700hq",
    "Intel Core i7-930": "i7-930",
    "Intel HD 4000 [Intel(R) HD Graphics 4000]": "hd-graphics-4000",
    "Intel HD 4600": "hd-graphics-4600",
    "Intel HD Graphics 530": "hd-graphics-530",
    "Intel N2930": "celeron-n2930",
    "Intel UHD Graphics 620": "uhd-graphics-620",
    "Intel Xeon E5-2603": "xeon-e5-2603v3-x2",  # 12 threads of 1.6 GHz: two sockets of version 3
    "Intel Xeon E5-2670": "xeon-e5-2670-x2",  # 32 threads: two sockets
    "Intel i7 3630QM [Intel(R) Core(TM) i7-3630QM CPU @ 2.40GHz]": "i7-3630qm",
    "Intel i7-7800X": "i7-7800x",
    "Intel i9-13900K": "i9-13900k",
    "Iris": "iris-5100",
    "Jetson Nano Tegra X1": "jetson-nano",
    "MTT S80": "mtt-s80",
    "Mac Pro Late 2013  [AMD Radeon HD - FirePro D700 Compute Engine]": "firepro-d700",
    "Mali-T604": "mali-t604",
    "Mali-T628-cl1.1-4core": "mali-t628-mp4",
    "Mali-T628-cl1.2-4core": "mali-t628-mp4",
    "Mali-T628-cl1.2-2core": "mali-t628-mp2",
    "NVIDIA A100-SXM4-40GB [NVIDIA A100-SXM4-40GB]": "a100-sxm-40gb",
    "NVIDIA GT 630": "gt630",
    "NVIDIA GT 750M": "gt750m",
    "NVIDIA TITAN V": "titan-v",
    "NVIDIA TITAN V [TITAN V]": "titan-v",
    "NVIDIA Tesla V100-SXM2-16GB [Tesla V100-SXM2-16GB]": "v100-sxm2",
    "Quadro GV100": "quadro-gv100",
    "Quadro K620": "quadro-k620",
    "Quadro P620": "quadro-p620",
    "R7 260X": "r7-260x",
    "R9 290x": "hawaii-r9-290x",
    "R9 380X": "r9-380x",
    "R9 390": "r9-390",
    "R9 390 Mesa11.0.3 LLVM3.7.0": "r9-390",
    "R9 Nano": "r9-nano",
    "RX 5500XT": "rx5500xt",
    "RX 570": "rx570",
    "Radeon-MI50-PCIeGen3": "mi50",
    "Radeon-MI50-PCIeGen4": "mi50",
    "Radeon-MI50-PCIeGen4-rocm3.10": "mi50",
    "Radeon-VII-Pro": "radeon-pro-vii",
    "Tesla K40c": "k40c",
    "Tesla K80": "k80-gpu",
    "Tesla P40": "p40",
    "Tesla T4": "t4",
    "Tesla V100": "v100-pcie",
    "Xeon Phi 5110": "xeon-phi-5110p",
    "Xeon Phi 7120": "xeon-phi-7120p",
    "m1": "m1",
    "m1 clvk": "m1",
}
# The processor graphics and the processor of one machine have one name, and results by platform.
_BY_PLATFORM = {
    ("Intel Core i7-10875h", "Intel_Graphics_Compute_Runtime"): "uhd-graphics-630",
    ("Nexus 5", "Portable_Computing_Language"): None,
}


def key_of(device: str, source: str) -> str | None:
    """Key of the device of a result; ``None`` if it is not used."""
    platform = source.rpartition("/")[0].rpartition("/")[2]
    return _BY_PLATFORM.get((device, platform), KEYS.get(device))


def read(rates: Path, devices: Path) -> dict[tuple[str, str], dict[str, float]]:
    """Best values of each result, by device and quantity, by the result's path."""
    best: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    with gzip.open(rates, "rt", encoding="utf-8", newline="") as file:
        names: dict[str, set[str]] = defaultdict(set)
        for row in csv.DictReader(file):
            names[row["source"]].add(row["device"])
            key, quantity = key_of(row["device"], row["source"]), QUANTITIES.get(row["kernel"])
            if key is None or quantity is None:
                continue
            work = row["bytes_moved"] if quantity == "read_bytes_per_s" else row["flops"]
            value = float(work) / float(row["time_s"])
            of = best[key, quantity]
            of[row["source"]] = max(of.get(row["source"], 0.0), value)
    with devices.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            source, latency = row["clpeak_source"], row["clpeak_launch_latency_us"]
            keys = {key_of(name, source) for name in names.get(source or "", ())} - {None}
            # Where a machine's two devices are in one result, the row does not say whose launch it is.
            if latency and len(keys) == 1 and 0 < float(latency) * 1e-6 < _LAUNCH_S:
                best[str(keys.pop()), "launch_s"][source] = float(latency) * 1e-6
    with MORE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            best[row["device"], row["quantity"]][f"krrishnarraj/clpeak:{row['source']}"] = float(row["value"])
    return best


def facts(best: dict[tuple[str, str], dict[str, float]]) -> dict[str, dict[str, object]]:
    """The shipped table: by device and quantity the median, its range if there are several, its sources."""
    found: dict[str, dict[str, object]] = {}
    for (key, quantity), values in sorted(best.items()):
        sheet = catalogue()[key].get("bandwidth_bytes_per_s")
        if quantity == "read_bytes_per_s" and sheet and median(values.values()) > _OVER * sheet:
            continue
        entry: dict[str, object] = {"value": _rounded(median(values.values()))}
        if len(values) > 1:
            entry["range"] = [_rounded(min(values.values())), _rounded(max(values.values()))]
        entry["results"] = [source.partition(":results/")[2] for source in sorted(values)]
        found.setdefault(key, {})[quantity] = entry
    return found


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def main() -> int:
    """Write the table, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device_facts", description=__doc__)
    parser.add_argument("rates", type=Path, help="clpeak/rates.csv.gz")
    parser.add_argument("devices", type=Path, help="devices/devices.csv")
    parser.add_argument("--out", type=Path, default=DEFAULT)
    options = parser.parse_args()
    table = {
        "about": "Measured on devices of the catalogue. Of several results of a device the median. Drivers "
        "and clocks are those of who sent them in; on a CPU a rate is what its OpenCL compiler makes of it.",
        "source": "clpeak (https://github.com/krrishnarraj/clpeak)",
        "licence": "Apache-2.0",
        "launches": "of each the mean of several empty launches",
        "statistic": "of each the best of vector widths 1 to 16, each a mean of 10 to 50 runs",
    }
    devices = facts(read(options.rates, options.devices))
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in devices.items()]
    head = json.dumps(table, indent=1, ensure_ascii=False)[:-2]
    options.out.write_text(f'{head},\n "devices": {{\n' + ",\n".join(lines) + "\n }\n}\n", encoding="utf-8")
    print(f"{len(lines)} devices, {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
