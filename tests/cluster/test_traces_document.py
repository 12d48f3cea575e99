"""The document of the traces says what the code does."""

from pathlib import Path

from crosscast.cluster.job_types import JOB_TYPES
from crosscast.cluster.jobs import COLUMNS, read_machines
from crosscast.cluster.swf import FIELDS

_DOCUMENT = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")


def rows(title: str) -> list[str]:
    text = _DOCUMENT.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return [line for line in text.splitlines() if line.startswith("| ")]


def test_every_field_of_the_standard_workload_format_is_there() -> None:
    found = rows("The Standard Workload Format")[1:]
    assert len(found) == len(FIELDS)
    for number, (row, field) in enumerate(zip(found, FIELDS, strict=True), start=1):
        assert row.startswith(f"| {number} | `{field.name}` | {field.title}")
        assert ("KiB" in row) == (field.unit == 1024)


def test_every_column_of_job_types_is_there() -> None:
    assert rows("Job types")[1:] == [
        f"| `{column.name}` | {column.type} | {column.unit} | {column.title} |"
        for column in JOB_TYPES.columns
    ]


def test_every_column_of_a_schedule_is_there() -> None:
    text = " ".join(rows("Schedules"))
    assert [text.index(f"`{name}`") for name in COLUMNS] == sorted(
        text.index(f"`{name}`") for name in COLUMNS
    )


def test_its_machines_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "machines.toml"
    path.write_text(_DOCUMENT.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    assert [(machine.name, machine.procs, machine.device) for machine in read_machines(path)] == [
        ("quartz", 2988, None),
        ("lassen", 795, "v100"),
    ]
