"""The importer of the published tool's files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.sources.aiwc import import_aiwc_folder
from crosscast.data.table import notes_of
from crosscast.errors import InputError

FILE = """metric,category,count
Opcode,Compute,10
Total Instruction Count,Compute,32500
Resource Pressure,Compute,7.98438
Median IPT,Parallelism,123
Min IPT,Parallelism,119
Max IPT,Parallelism,172
Unique Reads,Memory,1088
Unique Writes,Memory,0
Unique Read/Write Ratio,Memory,0
Total Reads,Memory,1532
Total Writes,Memory,0
LMAE -- Skipped 10 LSBs,Memory,2.02
Yokota Branch Entropy,Memory,29.92
"""


def write(folder: Path, name: str = "aiwc_reduce_0.csv", text: str = FILE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def profiles(folder: Path, **words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = import_aiwc_folder(str(folder), **words).profiles.to_pylist()
    return found


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_aiwc_folder(folder)
    return str(caught.value)


def test_names_become_ours(tmp_path: Path) -> None:
    (profile,) = profiles(write(tmp_path / "sums"))
    assert (profile["kernel"], profile["invocation"]) == ("reduce", 0)
    names = ("opcode", "total_instruction_count", "median_ipt", "local_memory_address_entropy_10")
    assert [profile[name] for name in names] == [10, 32500, 123.0, 2.02]
    assert profile["work_items"] is None


def test_ratios_come_from_the_counts_and_are_empty_where_not_defined(tmp_path: Path) -> None:
    (profile,) = profiles(write(tmp_path / "sums"))
    assert profile["reread_ratio"] == 1088 / 1532
    assert profile["unique_read_write_ratio"] is None
    assert profile["rewrite_ratio"] is None
    assert profile["load_imbalance"] == 53


def test_what_has_no_column_is_kept(tmp_path: Path) -> None:
    (profile,) = profiles(write(tmp_path / "sums"))
    assert profile["yokota_branch_entropy"] is None
    assert json.loads(profile["program"])["published"] == {
        "Resource Pressure": 7.98438,
        "Yokota Branch Entropy": 29.92,
    }


def test_our_own_names_are_known_too(tmp_path: Path) -> None:
    text = (
        "metric,category,count\nopcode,compute,10\ntotal_instruction_count,compute,12\n"
        "yokota_branch_entropy,control,0.5\n"
    )
    (profile,) = profiles(write(tmp_path / "sums", text=text))
    assert (profile["opcode"], profile["yokota_branch_entropy"]) == (10, 0.5)


def test_metrics_that_nobody_knows_are_noted(tmp_path: Path) -> None:
    write(tmp_path / "sums", text=f"{FILE}Novelty,Memory,1\n")
    notes = notes_of(import_aiwc_folder(tmp_path / "sums").profiles)
    assert notes["other metrics"] == "Metrics that Crosscast does not know: Novelty (1 files)."


def test_application_and_size_are_those_of_the_folders(tmp_path: Path) -> None:
    write(tmp_path / "lud" / "tiny", "aiwc_lud_internal_3.csv")
    write(tmp_path / "lud" / "small", "aiwc_lud_internal_3.csv")
    found = [(p["application"], p["size"], p["kernel"], p["invocation"]) for p in profiles(tmp_path)]
    assert found == [("lud", "small", "lud_internal", 3), ("lud", "tiny", "lud_internal", 3)]


def test_else_the_options_say_them_and_else_the_name_of_the_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "sums")
    (named,) = profiles(folder, application="a", size="tiny")
    (unnamed,) = profiles(folder)
    assert (named["application"], named["size"]) == ("a", "tiny")
    assert (unnamed["application"], unnamed["size"]) == ("sums", "unknown")


def test_a_file_that_we_write_is_read_back(tmp_path: Path, make_profile: Any) -> None:
    from crosscast.data.profiles import write_aiwc

    rows = (
        ("Opcode", "Compute", 12),
        ("Total Instruction Count", "Compute", 40),
        ("SD SIMD Width", "Parallelism", 0.25),
    )
    write_aiwc(replace(make_profile("k"), published=rows), tmp_path)
    (profile,) = profiles(tmp_path)
    assert (profile["opcode"], profile["sd_simd_width"], profile["kernel"]) == (12, 0.25, "k")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("aiwc_k_0.csv", "a,b\n", "expected the columns metric, category, count"),
        ("aiwc_k_0.csv", "", "expected the columns metric, category, count"),
        ("aiwc_k_0.csv", "metric,category,count\n", "expected the metric Opcode, found none"),
        (
            "aiwc_k_0.csv",
            "metric,category,count\nOpcode,Compute,3\n",
            "expected the metric Total Instruction Count, found none: the file may be cut off",
        ),
        ("aiwc_k_0.csv", f"{FILE}Opcode,Compute,3\n", "row 14: the metric Opcode is there a second time"),
        ("aiwc_k_0.csv", f"{FILE}opcode,Compute,3\n", "the metric opcode is there under two names"),
        ("aiwc_k_0.csv", f"{FILE}Work-items,Compute\n", "row 14: expected 3 cells, found 2"),
        ("aiwc_k_0.csv", f"{FILE}Work-items,Compute,nan\n", "column 'count', row 14: expected a finite"),
        ("aiwc_k_0.csv", f"{FILE}Work-items,Compute,-4\n", "column 'count', row 14: expected a finite"),
        ("aiwc_k_0.csv", f"{FILE}Work-items,Compute,four\n", "column 'count', row 14: expected a finite"),
        ("aiwc_k_0.csv", f"{FILE}Work-items,Compute,4.5\n", "Work-items: expected a whole number"),
        ("aiwc_k.csv", FILE, "expected a name such as aiwc_<kernel>_<n>.csv"),
    ],
)
def test_what_is_no_file_of_the_tool_is_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    folder = write(tmp_path / "sums", name, text)
    message = refusal(folder)
    assert message.startswith(f"{folder / name}: ")
    assert reason in message


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: expected files aiwc_<kernel>_<n>.csv, found none"
    assert "expected a folder" in refusal(tmp_path / "absent")


def test_files_in_other_folders_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "lud")
    assert "expected the file in the folder itself or <application>/<size>/" in refusal(tmp_path)
