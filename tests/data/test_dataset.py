"""Folders of datasets: written, built in parts, merged, cut off at any moment; and those that come along.

Datasets of several machines in one: devices once, hosts side by side, and no two truths.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import crosscast
from crosscast.cli import main
from crosscast.data.corun import co_runs
from crosscast.data.dataset import (
    BUNDLED_CORUN,
    SPARE,
    TABLES,
    Dataset,
    bundled_folder,
    merge_parts,
    parts,
    read_dataset,
    validate,
    write_dataset,
    write_part,
)
from crosscast.data.description import describe
from crosscast.data.merge import hosts_of, merged, without_applications
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import DEVICES, ENERGY, ISOLATED_RUNS, MIXES, RECORDS, SESSIONS, Schema
from crosscast.data.table import Table, table_of
from crosscast.errors import InputError
from crosscast.forecasting import read_profiles
from crosscast.kernel import Program
from crosscast.suite.application import application, names, working_set
from crosscast.suite.profiles import profiles_of
from support import tables as rows
from support.examples import examples, one_in
from support.refusals import refusal, refusals

FULL = rows.dataset(
    profiles=[rows.profile(), rows.profile("scale"), rows.profile(invocation=1)],
    records=[rows.record(), rows.record(1, [2e-3, 3e-3])],
    energy=[rows.energy()],
    sessions=[rows.session()],
    isolated_runs=[rows.isolated_run(), rows.isolated_run("lud")],
    mixes=rows.mix(1.2, 1.5, application="lud"),
)


def contents(dataset: Dataset) -> dict[str, list[dict[str, Any]]]:
    """Rows of each table, in an order that does not depend on theirs."""
    return {
        schema.table: sorted(dataset.table(schema).to_pylist(), key=lambda row: str([*row.values()]))
        for schema in TABLES
    }


def cells(table: Table, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.select(columns).to_pylist())


def file_bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def put(folder: Path, schema: Schema, name: str, *cells: rows.Row) -> None:
    write_part(folder, schema, name, table_of(schema, cells))


@refusals("table cells message")
def test_tables_that_do_not_fit_together_are_refused(
    tmp_path: Path, table: str, cells: list[rows.Row], message: str
) -> None:
    make = {"records": rows.record, "energy": rows.energy, "sessions": rows.session}[table]
    made = rows.dataset(**{table: [make(**each) for each in cells]})
    assert refusal(write_dataset, made, tmp_path) == f"made up: {table}: {message}"
    assert not list(tmp_path.iterdir())


def test_what_is_no_dataset_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    tables = "profiles.parquet, records.parquet, isolated_runs.parquet, mixes.parquet"
    for name, message in [
        ("none", "expected a folder with a dataset, found nothing"),
        ("file", "expected a folder with a dataset, found a file"),
        ("folder", f"expected one of {tables} of a dataset, found none"),
    ]:
        assert refusal(read_dataset, tmp_path / name) == f"{tmp_path / name}: {message}"


def test_a_part_replaces_what_the_table_has_of_its_piece(tmp_path: Path) -> None:
    before = rows.dataset(
        profiles=[rows.profile(), rows.profile("old"), rows.profile(size="small")],
        records=[*(rows.record(run) for run in range(3)), rows.record(repeat=1)],
        energy=[rows.energy(), rows.energy(repeat=1)],
        sessions=[rows.session(), rows.session(repeat=1)],
    )
    write_dataset(before, tmp_path)
    put(tmp_path, DEVICES, "cpu", rows.device(vendor="new"))
    put(tmp_path, PROFILES, "sums tiny", rows.profile(opcode=3))
    put(tmp_path, RECORDS, "again", rows.record(0, [5.0]))
    put(tmp_path, SESSIONS, "again", rows.session(seed=8))
    found = read_dataset(tmp_path)
    assert cells(found.devices, "vendor") == [("new",)]
    assert cells(found.profiles, "size", "kernel", "opcode") == [("small", "sum", None), ("tiny", "sum", 3)]
    assert cells(found.records, "repeat", "time_s") == [(0, [5.0]), (1, [1e-3])]
    assert cells(found.sessions, "repeat", "seed") == [(0, 8), (1, None)]
    # What the new session did not watch, the old one's energy does not stand for.
    assert cells(found.energy, "repeat") == [(1,)]


def test_a_mix_that_is_measured_again_replaces_all_rows_of_the_one_before(tmp_path: Path) -> None:
    runs = [rows.isolated_run(), rows.isolated_run("lud")]
    mixes = [*rows.mix(1.1, 1.2, 1.3), *rows.mix(1.4, 1.5, repeat=1), *rows.mix(1.6, 1.7, name="other")]
    write_dataset(rows.dataset(isolated_runs=runs, mixes=mixes), tmp_path)
    put(tmp_path, ISOLATED_RUNS, "sums", rows.isolated_run(time_s=2.0))
    put(tmp_path, MIXES, "pair", *rows.mix(2.1, 2.2))
    expected = [("other", 0, 1.6), ("other", 0, 1.7), ("pair", 0, 2.1), ("pair", 0, 2.2), ("pair", 1, 1.4)]
    for _ in range(2):
        found = read_dataset(tmp_path)
        assert cells(found.mixes, "mix", "repeat", "slowdown") == [*expected, ("pair", 1, 1.5)]
        assert cells(found.isolated_runs, "application", "time_s") == [("lud", 0.5), ("sums", 2.0)]
        merge_parts(tmp_path)


def test_a_part_may_have_any_name_but_that_of_a_hidden_file(tmp_path: Path) -> None:
    name = "sums/tiny, gpu:0 100 % ü.x"
    put(tmp_path, DEVICES, name, rows.device())
    put(tmp_path, RECORDS, name, rows.record())
    found = [(part.schema.table, part.name) for part in parts(tmp_path)]
    assert found == [("records", name), ("devices", name)]
    assert read_dataset(tmp_path).records.num_rows == 1
    told = refusal(put, tmp_path, DEVICES, ".x", rows.device())
    assert told.endswith("expected the name of a part not to start with a dot, found '.x'")


def test_a_damaged_part_is_named_and_no_build_is_overwritten(tmp_path: Path) -> None:
    put(tmp_path, PROFILES, "piece", rows.profile())
    path = tmp_path / "parts" / "profiles" / "piece.parquet"
    assert f"expected no unfinished build, found {path}" in refusal(write_dataset, FULL, tmp_path)
    put(tmp_path, PROFILES, "other", rows.profile())
    assert "profiles: rows 1 and 2 are both of application sums" in refusal(read_dataset, tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    for read in (read_dataset, merge_parts):
        assert f"{path}: cannot read the table of profiles" in refusal(read, tmp_path)
    assert path.exists()


# ---- laws -----------------------------------------------------------------------------------------------

pieces = st.tuples(st.sampled_from(["tiny", "small"]), st.integers(0, 2))
builds = st.dictionaries(pieces, st.integers(1, 3), max_size=5)


def rows_of(piece: tuple[str, int], runs: int, generation: int) -> dict[str, list[rows.Row]]:
    size, repeat = piece
    key = {"size": size, "repeat": repeat}
    return {
        "records": [rows.record(run, [1.0 + generation], **key) for run in range(runs)],
        "energy": [rows.energy(**key, energy_j=1.0 + generation)],
        "sessions": [rows.session(**key, seed=generation)],
    }


def built(*generations: dict[tuple[str, int], int]) -> Dataset:
    """What a dataset must hold after builds of which the later ones measured pieces again."""
    latest = {piece: (runs, n) for n, build in enumerate(generations) for piece, runs in build.items()}
    found = [rows_of(piece, runs, number) for piece, (runs, number) in latest.items()]
    tables = ("records", "energy", "sessions")
    return rows.dataset(**{name: [row for piece in found for row in piece[name]] for name in tables})


def put_pieces(folder: Path, build: dict[tuple[str, int], int], order: list[int], generation: int) -> None:
    """Write the parts of a build, the tables of all pieces in any order."""
    found = {piece: rows_of(piece, runs, generation) for piece, runs in build.items()}
    jobs = [(piece, schema) for piece in build for schema in (RECORDS, ENERGY, SESSIONS)]
    for piece, schema in (jobs[place] for place in order if place < len(jobs)):
        put(folder, schema, f"{generation} {piece}", *found[piece][schema.table])


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    return lambda: tmp_path_factory.mktemp("dataset")


@examples(15, fast=5)
@given(first=builds, second=builds, order=st.permutations(range(15)))
def test_parts_in_any_order_give_the_bytes_of_an_undisturbed_build(
    fresh: Callable[[], Path],
    first: dict[tuple[str, int], int],
    second: dict[tuple[str, int], int],
    order: list[int],
) -> None:
    parted, whole = fresh(), fresh()
    write_dataset(built(first), parted)
    put_pieces(parted, second, order, 1)
    expected = built(first, second)
    assert contents(read_dataset(parted)) == contents(expected)
    merge_parts(parted)
    write_dataset(expected, whole)
    assert file_bytes(parted) == file_bytes(whole)


each_or_some = pytest.mark.parametrize("every", one_in(2, [4, 1]))
"""Which changes of the file system are the last ones."""


class Killed(BaseException):
    """Stands for a signal that ends the process."""


@contextmanager
def killed_at(step: int) -> Iterator[list[int]]:
    """Stop at the given change of the file system; the list has each that is made, and whether all are."""
    done: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in ((Path, "replace"), (Path, "rename"), (Path, "unlink"), (os, "unlink")):
            change = getattr(owner, name)

            def counted(*args: Any, change: Callable[..., Any] = change, **options: Any) -> Any:
                if len(done) >= step:
                    raise Killed
                done.append(step)
                return change(*args, **options)

            patch.setattr(owner, name, counted)
        with suppress(Killed):
            yield done
            done.append(-1)


@each_or_some
def test_a_merge_may_be_killed_at_any_moment(fresh: Callable[[], Path], every: int) -> None:
    first, second = {("tiny", 0): 2, ("tiny", 1): 1}, {("tiny", 1): 3}
    expected = built(first, second)
    undisturbed = fresh()
    write_dataset(expected, undisturbed)
    for step in range(0, 100, every):
        folder = fresh()
        write_dataset(built(first), folder)
        put_pieces(folder, second, list(range(15)), 1)
        with killed_at(step) as done:
            merge_parts(folder)
        assert contents(read_dataset(folder)) == contents(expected)
        merge_parts(folder)
        assert file_bytes(folder) == file_bytes(undisturbed)
        if -1 in done:
            break
    assert done[-1] == -1
    assert len(done) > len(TABLES) + 4


@each_or_some
def test_a_write_that_is_killed_leaves_no_mixture(fresh: Callable[[], Path], every: int) -> None:
    old, new = built({("tiny", 0): 2}), built({("tiny", 0): 1, ("small", 1): 3})
    outcomes = set()
    for step in range(0, 100, every):
        folder = fresh()
        write_dataset(old, folder)
        # As by a process that was killed while it wrote.
        (folder / ".records.1.parquet").write_bytes(b"half")
        with killed_at(step) as done:
            write_dataset(new, folder)
        try:
            found = contents(read_dataset(folder))
        except InputError as error:
            assert str(error).endswith("an import that was cut off or is under way: import again")
            outcomes.add("refused")
        else:
            assert found in (contents(old), contents(new))
            outcomes.add("old" if found == contents(old) else "new")
        write_dataset(new, folder)
        assert contents(read_dataset(folder)) == contents(new)
        tables = {f"{schema.table}.parquet" for schema in TABLES if schema not in SPARE}
        assert file_bytes(folder).keys() == tables
        if -1 in done:
            break
    assert done[-1] == -1
    assert outcomes == {"old", "refused", "new"}


def test_a_build_may_follow_a_write_that_was_killed_before_its_first_table(tmp_path: Path) -> None:
    with killed_at(0) as done:
        write_dataset(FULL, tmp_path)
    assert not done
    put_pieces(tmp_path, {("tiny", 0): 2}, list(range(15)), 0)
    put(tmp_path, DEVICES, "cpu", rows.device())
    merge_parts(tmp_path)
    assert contents(read_dataset(tmp_path)) == contents(built({("tiny", 0): 2}))


def test_a_dataset_without_two_applications_has_the_others(dataset: crosscast.Dataset) -> None:
    left = without_applications(dataset, ["kmeans", "gem"])
    validate(left)
    for schema in (PROFILES, RECORDS, SESSIONS):
        table = dataset.table(schema)
        others = [name not in ("kmeans", "gem") for name in table.column("application").to_pylist()]
        assert left.table(schema) == table.filter(others)
    assert "without: expected applications of " in refusal(without_applications, dataset, ["magic"])


@pytest.fixture(scope="module")
def dataset() -> crosscast.Dataset:
    return crosscast.bundled_dataset()


def test_the_whole_suite_is_there_on_two_devices_and_small(dataset: crosscast.Dataset) -> None:
    description = describe(dataset)
    kernels = {f"{name}/{kernel}" for name in names() for kernel in application(name).kernels}
    assert set(description.kernels) == kernels
    assert description.sizes == ("tiny", "small", "medium")
    assert description.cells == len(description.devices) * 3 * len(kernels) == 2 * 3 * len(kernels)
    assert (description.failed, description.missing) == ((), ())
    launches, _ = read_profiles(bundled_folder() / "launches.jsonl")
    assert Counter(f"{each.application}/{each.kernel}" for each in launches) == dict.fromkeys(kernels, 3)
    assert all(each.launch["sub_groups"] for each in launches)
    sizes = {path.name: path.stat().st_size for path in bundled_folder().iterdir()}
    assert sum(sizes.values()) <= 5_000_000
    tables = {f"{table.table}.parquet" for table in TABLES if table not in SPARE}
    assert sizes.keys() == tables | {"launches.jsonl"}


def test_its_profiles_are_those_that_are_made_now(dataset: crosscast.Dataset) -> None:
    kind = application("srad")
    profiles = profiles_of(kind(kind.fit(32 << 10), 0), "tiny")
    rows = {tuple(row[name] for name in PROFILES.key): row for row in dataset.profiles.to_pylist()}
    stored = [rows["srad", each.kernel, "tiny", each.invocation] for each in profiles]
    assert len(stored) == sum(key[:1] + key[2:3] == ("srad", "tiny") for key in rows) > 0
    for row, profile in zip(stored, profiles, strict=True):
        assert {name: row[name] for name in profile.metrics} == profile.metrics


def test_the_whole_suite_is_there_alone_and_in_mixes_of_two_and_three() -> None:
    found = co_runs(crosscast.bundled_dataset(BUNDLED_CORUN))
    assert set(found.applications) == set(names())
    assert {len(mix.members) for mix in found.mixes} == {2, 3}
    assert not any(mix.failed for mix in found.mixes)
    members = [member for mix in found.mixes for member in mix.members]
    assert all(member.slowdown and member.isolated_run.time_s for member in members)
    for isolated_run in found.isolated_runs:
        for level in ("low", "medium", "high"):
            features = {f"{what}_{level}" for what in ("slowdown", "inflicted", "fairness")}
            assert features <= set(isolated_run.features)


def test_both_were_made_from_the_kernels_and_problems_as_they_are_now(dataset: crosscast.Dataset) -> None:
    mixes = crosscast.bundled_dataset(BUNDLED_CORUN).isolated_runs.to_pylist()
    for row in (*dataset.sessions.to_pylist(), *mixes):
        kind = application(row["application"])
        problem = row if "parameters" in row else json.loads(row["environment"])["problem"]
        parameters = problem["parameters"]
        given = json.loads(parameters) if isinstance(parameters, str) else parameters
        assert given == kind.fit(working_set(row["size"]))
        assert problem["source_sha256"] == Program.from_file(kind.source_path()).sha256


def made_of(host: str | None, repeats: int = 1, time_s: float = 1e-3, **cells: rows.Row) -> Dataset:
    """What a build on a host gives; `cells` change rows of a table."""
    facts = {"environment": json.dumps({} if host is None else {"host": host})}
    profile = rows.profile(run_s=time_s, opcode=7) | facts | cells.get("profiles", {})
    device = rows.device(driver="3.0", launch_overhead_s=time_s) | cells.get("devices", {})
    made = rows.dataset(
        devices=[device],
        profiles=[profile],
        records=[rows.record(0, [time_s], repeat=repeat) for repeat in range(repeats)],
        energy=[rows.energy(repeat=repeat) for repeat in range(repeats)],
        sessions=[rows.session(repeat=repeat, **facts) for repeat in range(repeats)],
        isolated_runs=[rows.isolated_run(**cells["isolated_runs"])] if "isolated_runs" in cells else [],
    )
    return replace(made, label=f"of {host}")


def test_equal_devices_of_two_hosts_are_one_device_with_two_hosts() -> None:
    found = merged([made_of("a", 2, 1e-3), made_of("b", 2, 2e-3)], "both")
    (device,) = found.devices.to_pylist()
    assert device["launch_overhead_s"] == 1e-3
    assert hosts_of(found.sessions.to_pylist()) == {"cpu": ["a", "b"]}
    times = {row["repeat"]: row["time_s"] for row in found.records.to_pylist()}
    assert times == {0: [1e-3], 1: [1e-3], 2: [2e-3], 3: [2e-3]}
    assert sorted(row["repeat"] for row in found.energy.to_pylist()) == [0, 1, 2, 3]
    assert found.profiles.num_rows == 1


def test_measurements_without_a_session_are_kept() -> None:
    bare = made_of(None)
    bare = Dataset("bare", devices=bare.devices, records=bare.records)
    assert merged([bare, bare, made_of("a", 1, 5e-3)], "both").records.num_rows == 2


@refusals("other message")
def test_what_differs_is_refused_by_name(other: dict[str, Any], message: str) -> None:
    first = made_of("a", isolated_runs={"time_s": 1.0})
    assert refusal(merged, [first, made_of(**{"host": "b"} | other)], "both").startswith(message)


def test_the_command_joins_folders_into_a_new_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for host in "ab":
        write_dataset(made_of(host), tmp_path / host)
    words = ["dataset", "merge", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "c")]
    assert main([*words, "--json"]) == 0
    output = capfd.readouterr()
    assert "crosscast: note: cpu was measured on a, b" in output.err
    assert json.loads(output.out)["hosts"] == {"cpu": ["a", "b"]}
    assert read_dataset(tmp_path / "c").sessions.num_rows == 2
    assert main(words) == 2
    assert "--out: expected a new or empty folder" in capfd.readouterr().err
