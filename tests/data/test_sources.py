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
from support.examples import one_in
from support.golden import assert_printed
from support.refusals import refusal
from support.tables import EXAMPLES, TOPDOWN, write_example, write_rows, write_table

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


ONE_OF_EACH_FORMAT = [
    *(
        ("powercap", "dual_cap_altis.csv"),
        ("rajaperf", "rajaperf.csv.gz"),
        ("rodinia9", "rodinia_9gpu.parquet"),
    ),
    ("lucid", "lucid_single.csv"),
]
"""Columns are read alike in all files; what each file declares is compared with `BOUNDS`."""


def every_column(*types: str, suffix: str = "") -> pytest.MarkDecorator:
    found = [
        (name, file, column)
        for name, file in ONE_OF_EACH_FORMAT
        for column in declared(name, file).columns
        if file.endswith(suffix) and (not types or column.type in types)
    ]
    names = [f"{name}-{column.name}" for name, _, column in found]
    return pytest.mark.parametrize(("name", "file", "column"), found, ids=names)


refused = partial(refusal, import_source)


def refusal_of_cell(tmp_path: Path, name: str, file: str, column: Column, cell: Any) -> str:
    """What is said of the example with another cell in the first row, and a file that says where."""
    first, *rest = EXAMPLES[name][file]
    write_example(name, tmp_path)
    path = write_table(tmp_path / file, [{**first, column.name: cell}, *rest])
    message = refused(name, tmp_path)
    place = f"{path}: column {column.name!r}, row 1: "
    assert message.startswith(place), message
    return message.removeprefix(place)


def test_each_source_has_a_command_an_example_and_is_found_by_its_name() -> None:
    assert SOURCES.keys() == IMPORTERS.keys() - {"aiwc", "crosscast", "tuning"}
    assert SOURCES.keys() == EXAMPLES.keys()
    assert "expected one of aiwc2018, " in refused("johnston", Path())


BOUNDS = {
    "dual_cap_altis.csv": {"> 0": "cpu_cap_w gpu_cap_w cpu_w gpu_w node_w runtime_s", ">= 1": "n"},
    "loghin.csv": {">= 1": "cores", "> 0": "time_s avg_power_w"},
    "zeus_v100.csv": {">= 1": "batch_size", "> 0": "power_limit average_power time_per_epoch"},
    "gtx1080ti.csv": {"> 0": "coreF memF time/ms power/W"},
    "titanx.csv": {"> 0": "mem_mhz core_mhz time_ms power_w"},
    "rajaperf.csv.gz": {
        ">= 1": "size",
        "": " ".join(("BlockSize", *(f"topdown.{share}" for share in TOPDOWN))),
        ">= 0": "Bytes/Rep Flops/Rep Iterations/Rep Kernels/Rep ProblemSize",
        "> 0": "Reps time_s",
    },
    "rodinia_9gpu.parquet": {
        ">= 0": "input.size.1 input.size.2",
        ">= 1": "grid.x grid.y block.x block.y",
        "> 0": "duration",
    },
    "cgo17_nvidia.csv": {
        ">= 0": "comp rational mem localmem coalesced atomic transfer wgsize",
        "> 0": "runtime_cpu runtime_gpu",
    },
    "cgo17_sources.csv": {},
    "gavel_standalone.csv": {">= 1": "gpus", ">= 0": "steps_per_s"},
    "gavel_pairs.csv": {">= 1": "gpus1 gpus2", ">= 0": "steps_per_s1 steps_per_s2"},
    "lucid_single.csv": {
        ">= 1": "batchsize",
        ">= 0 <= 1": "amp",
        "> 0": "speed",
        ">= 0 <= 100": "gpu_util gmem_util",
        ">= 0": "gmem",
    },
    "lucid_pairs.csv": {
        ">= 1": "batchsize1 gpu_num1 batchsize2 gpu_num2",
        ">= 0 <= 1": "amp1 amp2",
        "> 0": "speed1 speed2",
    },
    **{file: {"> 0": "time_median_s", ">= 1": "repetitions"} for file in EXAMPLES["kernel_tuner"]},
    "times.csv": {"> 0": "time_s"},
    "times.csv.gz": {"> 0": "time_ms", ">= 1": "B H grid_x grid_y grid_z block_x block_y block_z"},
    "runtimes.parquet": {">= 1": "run", ">= 0": "kernel_time_us"},
    "energy_joules.csv": {">= 0": "energy", ">= 1": "run"},
}
"""Said here once more, as the laws ask the declarations: a bound that is lost there must be missed."""


@every_file
def test_bounds_of_numbers_are_those_that_the_data_must_keep(name: str, file: str) -> None:
    found: dict[str, str] = {}
    for column in declared(name, file).columns:
        if column.type != "text":
            bounds = ((">", column.gt), (">=", column.ge), ("<", column.lt), ("<=", column.le))
            told = " ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)
            found[told] = f"{found.get(told, '')} {column.name}".strip()
    if file in BOUNDS:
        assert found == BOUNDS[file]
    else:
        assert found.pop(">= 1") == "workitems total_instruction_count"
        assert found.keys() == {">= 0"}


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


@every_column()
def test_a_missing_or_doubled_column_is_named(name: str, file: str, column: Column, tmp_path: Path) -> None:
    path = write_example(name, tmp_path) / file
    rows = [{key: cell for key, cell in row.items() if key != column.name} for row in EXAMPLES[name][file]]
    write_table(path, rows)
    assert refused(name, tmp_path).startswith(f"{path}: column {column.name!r} of the table of ")
    if path.suffix == ".csv":
        written = pa.csv.read_csv(write_table(path, EXAMPLES[name][file]))
        pa.csv.write_csv(written.append_column(column.name, written.column(column.name)), path)
        assert refused(name, tmp_path).endswith("is there more than once")


@every_column("integer")
def test_a_number_that_is_not_whole_is_named(name: str, file: str, column: Column, tmp_path: Path) -> None:
    rows = [{**row, column.name: float(row[column.name])} for row in EXAMPLES[name][file]]
    path = write_example(name, tmp_path) / file
    write_table(path, [{**rows[0], column.name: 2.5}, *rows[1:]])
    found = f"{path}: column {column.name!r}, row 1: expected a whole number, found 2.5"
    assert refused(name, tmp_path) == found


@every_column()
def test_a_missing_cell_is_named(name: str, file: str, column: Column, tmp_path: Path) -> None:
    if column.required:
        found = refusal_of_cell(tmp_path, name, file, column, None)
        assert found == "expected a value, found none"
    else:
        first, *rest = EXAMPLES[name][file]
        write_table(write_example(name, tmp_path) / file, [{**first, column.name: None}, *rest])
        import_source(name, tmp_path)


@every_file
def test_another_word_than_those_that_are_known_is_named(name: str, file: str, tmp_path: Path) -> None:
    for column in declared(name, file).columns:
        if column.choices:
            found = refusal_of_cell(tmp_path, name, file, column, "abacus")
            assert found == f"expected one of {', '.join(column.choices)}, found 'abacus'"


@every_file
def test_a_row_that_is_there_twice_is_refused(name: str, file: str, tmp_path: Path) -> None:
    rows = EXAMPLES[name][file]
    path = write_example(name, tmp_path) / file
    write_table(path, [*rows, rows[0]])
    message = refused(name, tmp_path)
    again = f"row {len(rows) + 1}: expected other clocks than in the rows before"
    assert message.startswith((f"{path}: rows 1 and {len(rows) + 1} are both of ", f"{path}: {again}"))


@every_file
def test_a_file_of_something_else_is_refused(name: str, file: str, tmp_path: Path) -> None:
    path = write_example(name, tmp_path) / file
    good = path.read_bytes()
    cut = good[: len(good) // 2] if path.suffix != ".csv" else good[:20]
    for content in (b"", b"\n", b"\x00\xff\xfe", b"PAR1 and no more", "a,b\nä,ö\n".encode("utf-16"), cut):
        path.write_bytes(content)
        assert refused(name, tmp_path).startswith(f"{path}: ")


@every_file
def test_a_header_alone_is_refused(name: str, file: str, tmp_path: Path) -> None:
    path = write_example(name, tmp_path) / file
    if path.suffix == ".parquet":
        pq.write_table(pq.read_table(path).slice(0, 0), path)
    else:
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        header = text.splitlines()[0] + b"\n"
        path.write_bytes(gzip.compress(header) if path.suffix == ".gz" else header)
    assert refused(name, tmp_path).startswith(f"{path}: expected rows of the table of ")


@every_column("text", suffix=".csv")
def test_a_text_in_another_encoding_is_refused(name: str, file: str, column: Column, tmp_path: Path) -> None:
    path = write_example(name, tmp_path) / file
    write_rows(path, [{**row, column.name: "grün"} for row in EXAMPLES[name][file]])
    path.write_bytes(path.read_text("utf-8").encode("latin-1"))
    place = f"{path}: column {column.name!r}, row 1: "
    assert refused(name, tmp_path) == place + f"expected UTF-8, found {'grün'.encode('latin-1')!r}"


@pytest.mark.parametrize("name", one_in(5, EXAMPLES))
def test_another_dataset_is_not_replaced(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "lucid" if name == "powercap" else "powercap"
    store(import_source(other, write_example(other, tmp_path / "other")), tmp_path / "out")
    folder = write_example(name, tmp_path / "source")
    words = ["dataset", "import", name, str(folder), "--out", str(tmp_path / "out")]
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert main(words) == 2
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("expected no other dataset: choose another folder, or remove it")
    shutil.rmtree(tmp_path / "out")
    words[2] = name.replace("_", "-")
    assert main(words) == 0
    assert capsys.readouterr().err.startswith(f"wrote {tmp_path / 'out'} (")
    keys = [
        set(each.devices.column("device").to_pylist())
        for each in (read_dataset(tmp_path / "out"), import_source(name, folder))
    ]
    assert keys[0] == keys[1]
    # The same once more is no other dataset.
    assert main(words) == 0
