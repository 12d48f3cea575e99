"""Laws of all sources on made examples of their files, and the published data as a whole."""

import gzip
import json
import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from crosscast.cli import main
from crosscast.data.corun import co_runs
from crosscast.data.dataset import TABLES, Dataset, read_dataset, validate
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
from crosscast.data.views import configured
from support.commands import Command, Output
from support.examples import one_in
from support.golden import assert_printed
from support.refusals import refusal, refusals
from support.shared import shared_data
from support.tables import (
    EXAMPLES,
    SMALL,
    Row,
    default_features,
    epoch,
    gtx1080ti,
    lassen,
    pair,
    quartz,
    titanx,
    write_example,
    write_rows,
    write_table,
)

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


def test_another_dataset_is_not_replaced_and_the_same_is_no_other(tmp_path: Path, capsys: Output) -> None:
    out = tmp_path / "out"
    store(import_source("lucid", write_example("lucid", tmp_path / "other")), out)
    folder = write_example("powercap", tmp_path / "source")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    told = Command.of("dataset import").refusal(capsys, "powercap", folder, "--out", out)
    assert told.endswith("expected no other dataset: choose another folder, or remove it")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    shutil.rmtree(out)
    for _ in range(2):
        assert main(["dataset", "import", "powercap", str(folder), "--out", str(out)]) == 0
        assert capsys.readouterr().err.startswith(f"wrote {out} (")


def grid(dataset: Dataset) -> Counter[tuple[str, ...]]:
    """Configurations of each application, size and device; each cell has a power."""
    validate(dataset)
    rows = configured(dataset).to_pylist()
    assert len(rows) == dataset.records.num_rows
    assert all(row["power_w"] > 0 and row["time_s"] > 0 for row in rows)
    return Counter((row["application"], row["size"], row["device"]) for row in rows)


def test_powercap_is_a_full_grid_whose_node_is_the_cpus_and_the_gpu() -> None:
    dataset = import_source("powercap", shared_data("powercap"))
    cells = grid(dataset)
    assert len(cells) == 15 * 2
    assert set(cells.values()) == {81}
    assert dataset.energy.num_rows == 3 * 2430
    assert Counter(dataset.sessions.column("runs").to_pylist()) == {1: 19, 2: 1014, 3: 1396, 4: 1}
    for row in configured(dataset).to_pylist():
        powers = json.loads(row["powers"])
        assert row["power_w"] == powers["node"] == pytest.approx(powers["cpu"] + powers["gpu"])


def test_multicore_energy_has_seven_systems_of_unlike_cores() -> None:
    cells = grid(import_source("multicore_energy", shared_data("multicore_energy")))
    found = {(device, count) for (_, _, device), count in cells.items()}
    assert found == {("amd", 48), ("arm", 48), ("i7", 8), ("pi3", 4), ("tx2", 18), ("xeon", 20), ("xu3", 24)}
    assert sum(cells.values()) == 1286


def test_gpu_power_limit_has_gaps_in_seven_jobs() -> None:
    cells = grid(import_source("gpu_power_limit", shared_data("gpu_power_limit")))
    found = Counter((device, count) for (_, _, device), count in cells.items())
    a40, rtx6000 = {("a40", 9): 47, ("a40", 5): 6}, {("rtx6000", 8): 51, ("rtx6000", 2): 1}
    assert found == {("v100", 7): 68, **a40, **rtx6000}


def test_pairs_of_gavel_and_lucid_are_read() -> None:
    found = co_runs(import_source("gavel_pairs", shared_data("gpu_corun")))
    counts = Counter((mix.device, mix.fits) for mix in found.mixes)
    assert counts == {("p100", True): 340, ("p100", False): 11, ("v100", True): 330, ("v100", False): 21}
    names = "A3C CycleGAN LM Recommendation ResNet-18 ResNet-50 Transformer"
    assert found.applications == tuple(names.split())
    members = [member for mix in found.mixes for member in mix.members]
    assert min(member.slowdown for member in members if member.slowdown is not None) == 1
    other = co_runs(import_source("lucid", shared_data("gpu_corun")))
    assert (len(other.isolated_runs), len(other.mixes), len(other.applications)) == (48, 605, 8)
    assert all(mix.fits and len(mix.members) == 2 for mix in other.mixes)
    members += [member for mix in other.mixes for member in mix.members]
    assert all(member.isolated_run.time_s for member in members)


def test_a_folder_gives_the_gpus_that_it_has_with_their_notes(tmp_path: Path) -> None:
    for name, found in (("", "none"), ("clocks.csv", "no such file")):
        told = f"expected gtx1080ti.csv or titanx.csv, or a folder with it, found {found}"
        assert refusal(import_source, "gpu_dvfs", tmp_path / name) == f"{tmp_path / name}: {told}"
    for keys, row in ((["titanx"], titanx()), (["gtx1080ti", "titanx"], gtx1080ti())):
        write_rows(tmp_path / f"{keys[0]}.csv", [row])
        devices = import_source("gpu_dvfs", tmp_path).devices
        assert devices.column("device").to_pylist() == keys
        assert set(notes_of(devices)) == {f"{key}: origin" for key in keys}


def test_the_origins_names_of_files_are_known_but_not_beside_ours(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "summary_power_p100.csv", [epoch()])
    assert import_source("gpu_power_limit", path).devices.column("name").to_pylist() == ["P100"]
    write_rows(tmp_path / "zeus_p100.csv", [epoch()])
    expected = "expected one file of p100, found summary_power_p100.csv and zeus_p100.csv"
    assert refusal(import_source, "gpu_power_limit", tmp_path) == f"{tmp_path}: {expected}"


@pytest.mark.parametrize(
    ("file", "rows", "options", "message"),
    [
        ("rajaperf.csv.gz", [lassen(BlockSize=None)], {}, "column 'BlockSize', row 1: expected a number on"),
        ("rajaperf.csv.gz", [lassen(256)], {"block_size": 64}, "column 'BlockSize': expected runs with 64,"),
        ("rajaperf.csv.gz", [quartz(file="q/a.cali")], {}, "column 'file', row 1: expected a path with the"),
        ("rajaperf.csv.gz", [quartz()], {"cores": 0}, "cores: expected at least 1, found 0"),
        ("gavel_pairs.csv", [pair(gpus2=2)], {}, "column 'gpus2', row 1: expected 1 as gpus1, found 2"),
        ("gavel_pairs.csv", [pair(), pair(("A3C", SMALL))], {}, "row 2: expected jobs with a speed in"),
        ("gavel_pairs.csv", [pair(file="other")], {}, "expected rows whose file is simulation_throughputs"),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    tmp_path: Path, file: str, rows: list[Row], options: dict[str, Any], message: str
) -> None:
    name = file.partition(".")[0]
    path = write_table(write_example(name, tmp_path) / file, rows)
    told = refusal(import_source, name, tmp_path, **options)
    assert told.removeprefix(f"{path}: ").removeprefix(f"{tmp_path}: ").startswith(message)


def test_stated_cores_divide_the_times_of_the_cpu_alone_and_are_noted(tmp_path: Path) -> None:
    dataset = import_source("rajaperf", write_example("rajaperf", tmp_path), cores=36)
    times = {row["device"]: row["time_s"] for row in dataset.records.to_pylist()}
    assert times == {"quartz": [pytest.approx(0.001)], "lassen": [0.00025]}
    assert "stated 36-core node with ideal scaling" in notes_of(dataset.records)["quartz"]
    assert dataset.devices.to_pylist()[0]["cores"] == 36
    assert "scaling" not in notes_of(import_source("rajaperf", tmp_path).records)["quartz"]


@refusals("changed found")
def test_a_wrong_counter_is_named(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    path = write_rows(tmp_path / "gtx1080ti.csv", [gtx1080ti(), gtx1080ti(1700, **changed)])
    assert refusal(import_source, "gpu_dvfs", path).startswith(f"{path}: {found}")


def test_the_files_of_r_and_first_invocations_alone_are_refused_with_what_they_lack(tmp_path: Path) -> None:
    first = [row for row in default_features() if row["invocation"] == 0]
    write_table(write_example("aiwc2018", tmp_path / "first") / "features_all_invocations.parquet", first)
    told = refusal(import_source, "aiwc2018", tmp_path / "first")
    assert "expected all invocations of each kernel, found 0 alone" in told
    for name in ("full_dat.Rda", "featdata.Rda"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
        for path in (tmp_path / name, tmp_path / name / name):
            told = refusal(import_source, "aiwc2018", path)
            assert "features_all_invocations.parquet and runtimes" in told and name in told
