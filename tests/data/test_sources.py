"""Laws of all sources: what each takes, refuses and writes, on a made example of its files."""

import gzip
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from crosscast.cli import main
from crosscast.data.dataset import TABLES, read_dataset, validate
from crosscast.data.schema import Column
from crosscast.data.sources import (
    IMPORTERS,
    aiwc,
    configurations,
    corun,
    import_source,
    kernel_times,
)
from crosscast.data.sources.source import File, Source, facts_of, store
from crosscast.data.table import notes_of
from support.commands import Command, Output
from support.examples import one_in
from support.golden import assert_printed
from support.refusals import refusal
from support.tables import EXAMPLES, write_example, write_rows, write_table

GOLDEN = Path(__file__).parent / "golden"
SOURCES: dict[str, Source] = {
    found.name: found
    for module in (aiwc, configurations, corun, kernel_times)
    for found in vars(module).values()
    if isinstance(found, Source)
}
FILES = [(name, file) for name, files in EXAMPLES.items() for file in files]
every_file = pytest.mark.parametrize(("name", "file"), FILES)


def declared(name: str, file: str) -> File:
    (found,) = (each for each in SOURCES[name].files if each.matches([Path(file)]))
    return found


ONE_OF_EACH_FORM = (
    ("powercap", "dual_cap_altis.csv"),
    ("rajaperf", "rajaperf.csv.gz"),
    ("rodinia9", "rodinia_9gpu.parquet"),
    ("lucid", "lucid_single.csv"),
)
refused = partial(refusal, import_source)


def test_each_source_has_a_command_an_example_and_is_found_by_its_name() -> None:
    assert SOURCES.keys() == IMPORTERS.keys() - {"aiwc", "crosscast", "tuning"}
    assert SOURCES.keys() == EXAMPLES.keys()
    assert "expected one of aiwc2018, " in refused("johnston", Path())


def test_columns_have_the_types_bounds_and_words_that_the_data_must_keep() -> None:
    lines: dict[str, None] = {}
    for name, file in FILES:
        found: dict[str, str] = {}
        for column in declared(name, file).columns:
            bounds = ((">", column.gt), (">=", column.ge), ("<", column.lt), ("<=", column.le))
            told = " ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)
            told += ", ".join(column.choices) + " or empty" * (not column.required)
            kind = f"{column.type} {told}".strip()
            found[kind] = f"{found.get(kind, '')} {column.name}".strip()
        title = "kernel_tuner" if name == "kernel_tuner" else file
        lines |= dict.fromkeys(f"{title}: {names}: {kind}\n" for kind, names in found.items())
    assert_printed("".join(lines), GOLDEN / "columns.txt")


@pytest.mark.parametrize("name", one_in(2, EXAMPLES))
def test_the_example_gives_the_same_bytes_twice_with_notes_and_sources(name: str, tmp_path: Path) -> None:
    folder = write_example(name, tmp_path / "source")
    dataset = import_source(name, folder)
    validate(dataset)
    for each in "ab":
        store(import_source(name.replace("_", "-"), folder), tmp_path / each)
    first, second = ({path.name: path.read_bytes() for path in (tmp_path / each).iterdir()} for each in "ab")
    assert first == second
    back = read_dataset(tmp_path / "a")
    noted, _ = facts_of(name)
    for schema in TABLES:
        if back.table(schema).num_rows:
            assert notes_of(back.table(schema)).keys() >= {*noted.get(schema.table, ())}
    for row in dataset.devices.to_pylist():
        facts = {fact for fact, cell in row.items() if cell is not None} - {"device", "sources"}
        assert facts == json.loads(row["sources"]).keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_rows_of_an_example_are_read_as_they_were(name: str, tmp_path: Path) -> None:
    dataset = import_source(name, write_example(name, tmp_path))
    lines = [f"devices {', '.join(dataset.devices.column('device').to_pylist())}"]
    for schema in TABLES[1:]:
        for row in dataset.table(schema).to_pylist():
            known = {column: cell for column, cell in row.items() if cell is not None}
            lines.append(f"{schema.table} {json.dumps(known)}")
    assert_printed("".join(f"{line}\n" for line in lines), GOLDEN / f"{name}.txt")


@every_file
def test_a_missing_file_is_named(name: str, file: str, tmp_path: Path) -> None:
    folder = write_example(name, tmp_path / "source")
    (folder / file).unlink()
    if declared(name, file).is_required:
        message = refused(name, folder)
        assert message.startswith(f"{folder}: expected {declared(name, file).names[0]}")
        assert message.endswith("found none")
    else:
        import_source(name, folder)
    assert "no such file" in refused(name, tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("name", "file", "column"),
    [
        pytest.param(name, file, column, id=f"{name}-{column.name}")
        for name, file in ONE_OF_EACH_FORM
        for column in declared(name, file).columns
    ],
)
def test_what_is_wrong_with_a_column_is_named(name: str, file: str, column: Column, tmp_path: Path) -> None:
    path = write_example(name, tmp_path) / file
    first, *rest = EXAMPLES[name][file]
    place = f"{path}: column {column.name!r}"

    def told(cell: Any) -> str:
        write_table(path, [{**first, column.name: cell}, *rest])
        return refused(name, tmp_path).removeprefix(f"{place}, row 1: expected ")

    if column.required:
        assert told(None) == "a value, found none"
    else:
        write_table(path, [{**first, column.name: None}, *rest])
        import_source(name, tmp_path)
    if column.choices:
        assert told("abacus") == f"one of {', '.join(column.choices)}, found 'abacus'"
    if column.type == "integer":
        # Whole numbers may be written as real ones.
        rest = [{**row, column.name: float(row[column.name])} for row in rest]
        assert told(2.5) == "a whole number, found 2.5"
    write_table(path, [{key: row[key] for key in row if key != column.name} for row in (first, *rest)])
    assert refused(name, tmp_path).startswith(f"{place} of the table of ")
    if path.suffix == ".csv":
        written = pa.csv.read_csv(write_table(path, [first, *rest]))
        pa.csv.write_csv(written.append_column(column.name, written.column(column.name)), path)
        assert refused(name, tmp_path).endswith("is there more than once")
        if column.type == "text":
            write_rows(path, [{**row, column.name: "grün"} for row in (first, *rest)])
            path.write_bytes(path.read_text("utf-8").encode("latin-1"))
            assert (
                refused(name, tmp_path)
                == f"{place}, row 1: expected UTF-8, found {'grün'.encode('latin-1')!r}"
            )


@every_file
def test_a_file_of_something_else_or_with_no_rows_or_one_twice_is_refused(
    name: str, file: str, tmp_path: Path
) -> None:
    rows = EXAMPLES[name][file]
    path = write_example(name, tmp_path) / file
    good = path.read_bytes()
    cut = good[: len(good) // 2] if path.suffix != ".csv" else good[:20]
    for content in (b"", b"\n", b"\x00\xff\xfe", b"PAR1 and no more", "a,b\nä,ö\n".encode("utf-16"), cut):
        path.write_bytes(content)
        assert refused(name, tmp_path).startswith(f"{path}: ")
    write_table(path, [*rows, rows[0]])
    message = refused(name, tmp_path)
    again = f"row {len(rows) + 1}: expected other clocks than in the rows before"
    assert message.startswith((f"{path}: rows 1 and {len(rows) + 1} are both of ", f"{path}: {again}"))
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows).slice(0, 0), path)
    else:
        header = (gzip.decompress(good) if path.suffix == ".gz" else good).splitlines()[0] + b"\n"
        path.write_bytes(gzip.compress(header) if path.suffix == ".gz" else header)
    assert refused(name, tmp_path).startswith(f"{path}: expected rows of the table of ")


@pytest.mark.parametrize("name", one_in(5, EXAMPLES))
def test_another_dataset_is_not_replaced(name: str, tmp_path: Path, capsys: Output) -> None:
    out = tmp_path / "out"
    other = "lucid" if name == "powercap" else "powercap"
    store(import_source(other, write_example(other, tmp_path / "other")), out)
    folder = write_example(name, tmp_path / "source")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    told = Command.of("dataset import").refusal(capsys, name, folder, "--out", out)
    assert told.endswith("expected no other dataset: choose another folder, or remove it")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    shutil.rmtree(out)
    # The same once more is no other dataset.
    for _ in range(2):
        assert main(["dataset", "import", name.replace("_", "-"), str(folder), "--out", str(out)]) == 0
        assert capsys.readouterr().err.startswith(f"wrote {out} (")
    both = read_dataset(out), import_source(name, folder)
    stored, imported = (each.devices.sort_by("device") for each in both)
    assert stored.equals(imported)
