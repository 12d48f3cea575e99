"""Folders of datasets: written, built in parts, merged, cut off at any moment; and those that come along.

Datasets of several machines in one: devices once, hosts side by side, and no two truths.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crosscast
from crosscast.cli import main
from crosscast.data.corun import CoRuns, co_runs
from crosscast.data.dataset import (
    BUNDLED_CORUN,
    SPARE,
    TABLES,
    Dataset,
    applications_of,
    bundled_folder,
    bundled_named,
    merge_parts,
    parts,
    read_dataset,
    validate,
    without_applications,
    write_dataset,
    write_part,
)
from crosscast.data.description import describe
from crosscast.data.merge import hosts_of, merged
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import DEVICES, ENERGY, ISOLATED_RUNS, MIXES, RECORDS, SESSIONS, Schema
from crosscast.data.table import Table, table_of
from crosscast.errors import InputError
from crosscast.forecasting.kernels import read_profiles
from crosscast.kernel import Program
from crosscast.suite.application import working_set
from crosscast.suite.profiles import profiles_of
from crosscast.suite.registry import application, names
from support import tables as rows
from support.examples import examples, one_in
from support.refusals import refusal

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


def test_a_dataset_is_shown_by_its_label_and_numbers_of_rows() -> None:
    expected = (
        "<Dataset 'made up': devices 1, profiles 3, records 2, energy 1, sessions 1, "
        "isolated_runs 2, mixes 2>"
    )
    assert repr(FULL) == expected


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            rows.dataset(records=[rows.record(), rows.record(1, device="gpu")]),
            "records: column 'device', row 2: expected a device of the table of devices, found gpu",
        ),
        (
            rows.dataset(mixes=rows.mix(1.0, 1.5, device="gpu")),
            "mixes: column 'device', row 1: expected a device of the table of devices, found gpu",
        ),
        (
            rows.dataset(records=[rows.record(0, [1.0, 2.0], invocations=3)]),
            "records: column 'time_s', row 1: expected a time for each of 3 invocations, or one, found 2",
        ),
        (
            rows.dataset(energy=[rows.energy(), rows.energy(run=1, times_s=[0.0, 1.0], energies_j=[0.0])]),
            "energy: column 'energies_j', row 2: expected an energy for each of 2 times, found 1",
        ),
        (
            rows.dataset(energy=[rows.energy(energies_j=[0.0])]),
            "energy: column 'energies_j', row 1: expected an energy for each of 0 times, found 1",
        ),
        (
            rows.dataset(sessions=[rows.session(), rows.session(repeat=1, kernels="[1]")]),
            "sessions: column 'kernels', row 2: expected a list of names, found [1]",
        ),
        (
            rows.dataset(sessions=[rows.session(failure="")]),
            "sessions: column 'failure', row 1: expected why it failed, or an empty cell, "
            "found a text without a letter",
        ),
        (
            Dataset("made up", profiles=pa.concat_tables([FULL.profiles, FULL.profiles])),
            "profiles: rows 1 and 4 are both of application sums, kernel sum, size tiny, invocation 0",
        ),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(tmp_path: Path, wrong: Dataset, message: str) -> None:
    assert refusal(write_dataset, wrong, tmp_path) == f"made up: {message}"
    assert not list(tmp_path.iterdir())


def test_what_is_no_dataset_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for name, message in [
        ("none", "none: expected a folder with a dataset, found nothing"),
        ("file", "file: expected a folder with a dataset, found a file"),
        (
            "folder",
            "folder: expected one of profiles.parquet, records.parquet, isolated_runs.parquet, "
            "mixes.parquet of a ",
        ),
    ]:
        with pytest.raises(InputError, match=message):
            read_dataset(tmp_path / name)


def test_a_part_replaces_what_the_table_has_of_its_piece(tmp_path: Path) -> None:
    write_dataset(
        rows.dataset(
            profiles=[rows.profile(), rows.profile("old"), rows.profile(size="small")],
            records=[rows.record(run) for run in range(3)] + [rows.record(repeat=1)],
            energy=[rows.energy(), rows.energy(repeat=1)],
            sessions=[rows.session(), rows.session(repeat=1)],
        ),
        tmp_path,
    )
    put(tmp_path, DEVICES, "cpu", rows.device(vendor="new"))
    put(tmp_path, PROFILES, "sums tiny", rows.profile(opcode=3))
    put(tmp_path, RECORDS, "again", rows.record(0, [5.0]))
    put(tmp_path, SESSIONS, "again", rows.session(seed=8))
    found = read_dataset(tmp_path)
    assert found.devices.column("vendor").to_pylist() == ["new"]
    assert cells(found.profiles, "size", "kernel", "opcode") == [("small", "sum", None), ("tiny", "sum", 3)]
    assert cells(found.records, "repeat", "time_s") == [(0, [5.0]), (1, [1e-3])]
    assert cells(found.sessions, "repeat", "seed") == [(0, 8), (1, None)]
    # What the new session did not watch, the old one's energy does not stand for.
    assert found.energy.column("repeat").to_pylist() == [1]


def test_a_mix_that_is_measured_again_replaces_all_rows_of_the_one_before(tmp_path: Path) -> None:
    old = [*rows.mix(1.1, 1.2, 1.3), *rows.mix(1.4, 1.5, repeat=1), *rows.mix(1.6, 1.7, name="other")]
    write_dataset(
        rows.dataset(isolated_runs=[rows.isolated_run(), rows.isolated_run("lud")], mixes=old), tmp_path
    )
    put(tmp_path, ISOLATED_RUNS, "sums", rows.isolated_run(time_s=2.0))
    put(tmp_path, MIXES, "pair", *rows.mix(2.1, 2.2))
    expected = [("other", 0, 0, 1.6), ("other", 0, 1, 1.7), ("pair", 0, 0, 2.1), ("pair", 0, 1, 2.2)]
    expected += [("pair", 1, 0, 1.4), ("pair", 1, 1, 1.5)]
    for _ in range(2):
        found = read_dataset(tmp_path)
        assert cells(found.mixes, "mix", "repeat", "position", "slowdown") == expected
        assert cells(found.isolated_runs, "application", "time_s") == [("lud", 0.5), ("sums", 2.0)]
        merge_parts(tmp_path)


def test_a_part_may_have_any_name_but_that_of_a_hidden_file(tmp_path: Path) -> None:
    name = "sums/tiny, gpu:0 100 % ü.x"
    put(tmp_path, DEVICES, name, rows.device())
    put(tmp_path, RECORDS, name, rows.record())
    assert [(part.schema.table, part.name) for part in parts(tmp_path)] == [
        ("records", name),
        ("devices", name),
    ]
    assert read_dataset(tmp_path).records.num_rows == 1
    with pytest.raises(InputError, match=r"expected the name of a part not to start with a dot, found '\.x'"):
        put(tmp_path, DEVICES, ".x", rows.device())


def test_two_parts_may_not_hold_the_same_row(tmp_path: Path) -> None:
    for name in "ab":
        put(tmp_path, PROFILES, name, rows.profile())
    with pytest.raises(InputError, match="profiles: rows 1 and 2 are both of application sums, kernel sum"):
        read_dataset(tmp_path)


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    put(tmp_path, PROFILES, "piece", rows.profile())
    path = tmp_path / "parts" / "profiles" / "piece.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"parts/profiles/piece\.parquet: cannot read the table of profiles"):
        read_dataset(tmp_path)
    assert "piece.parquet" in refusal(merge_parts, tmp_path)
    assert path.exists()


def test_an_unfinished_build_is_not_overwritten(tmp_path: Path) -> None:
    put(tmp_path, PROFILES, "piece", rows.profile())
    with pytest.raises(InputError, match=r"expected no unfinished build, found .*piece\.parquet"):
        write_dataset(FULL, tmp_path)


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
    latest = {
        piece: (runs, number) for number, build in enumerate(generations) for piece, runs in build.items()
    }
    found = [rows_of(piece, runs, number) for piece, (runs, number) in latest.items()]
    return rows.dataset(
        records=[row for piece in found for row in piece["records"]],
        energy=[row for piece in found for row in piece["energy"]],
        sessions=[row for piece in found for row in piece["sessions"]],
    )


def put_pieces(folder: Path, build: dict[tuple[str, int], int], order: list[int], generation: int) -> None:
    """Write the parts of a build, the tables of all pieces in any order."""
    jobs = [
        (schema, f"{generation} {piece}", rows_of(piece, runs, generation)[schema.table])
        for piece, runs in build.items()
        for schema in (RECORDS, ENERGY, SESSIONS)
    ]
    for place in order:
        if place < len(jobs):
            put(folder, jobs[place][0], jobs[place][1], *jobs[place][2])


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
    """Stop at the given change of the file system; the list grows by one a change that is made."""
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
        yield done


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
            try:
                merge_parts(folder)
            except Killed:
                finished = False
            else:
                finished = True
        assert contents(read_dataset(folder)) == contents(expected)
        merge_parts(folder)
        assert file_bytes(folder) == file_bytes(undisturbed)
        if finished:
            break
    assert finished
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
        with killed_at(step):
            try:
                write_dataset(new, folder)
            except Killed:
                finished = False
            else:
                finished = True
        try:
            found = contents(read_dataset(folder))
        except InputError as error:
            assert str(error).endswith(
                "found some of an import that was cut off or is under way: import again"
            )
            outcomes.add("refused")
        else:
            assert found in (contents(old), contents(new))
            outcomes.add("old" if found == contents(old) else "new")
        write_dataset(new, folder)
        assert contents(read_dataset(folder)) == contents(new)
        assert file_bytes(folder).keys() == {
            f"{schema.table}.parquet" for schema in TABLES if schema not in SPARE
        }
        if finished:
            break
    assert finished
    assert outcomes == {"old", "refused", "new"}


def test_a_build_may_follow_a_write_that_was_killed_before_its_first_table(tmp_path: Path) -> None:
    with killed_at(0), pytest.raises(Killed):
        write_dataset(FULL, tmp_path)
    put_pieces(tmp_path, {("tiny", 0): 2}, list(range(15)), 0)
    put(tmp_path, DEVICES, "cpu", rows.device())
    merge_parts(tmp_path)
    assert contents(read_dataset(tmp_path)) == contents(built({("tiny", 0): 2}))


def test_a_dataset_without_two_applications_has_the_others(dataset: crosscast.Dataset) -> None:
    left = without_applications(dataset, ["kmeans", "gem"])
    validate(left)
    assert set(applications_of(dataset)) - set(applications_of(left)) == {"kmeans", "gem"}
    for table in (dataset.profiles, dataset.records, dataset.sessions):
        others = [name not in ("kmeans", "gem") for name in table.column("application").to_pylist()]
        assert vars(left)[str(table.schema.metadata[b"crosscast.table"], "ascii")] == table.filter(others)
    assert without_applications(dataset, []).records.equals(dataset.records)
    with pytest.raises(InputError, match=r"without: expected applications of .*bfs.*, found 'magic'"):
        without_applications(dataset, ["magic"])


SIZES = ("tiny", "small", "medium")
MOST_BYTES = 5_000_000


@pytest.fixture(scope="module")
def dataset() -> crosscast.Dataset:
    return crosscast.bundled_dataset()


def test_the_whole_suite_is_there_on_two_devices(dataset: crosscast.Dataset) -> None:
    description = describe(dataset)
    kernels = {f"{name}/{kernel}" for name in names() for kernel in application(name).kernels}
    assert set(description.kernels) == kernels
    assert description.sizes == SIZES
    assert len(description.devices) == 2
    assert description.cells == 2 * len(SIZES) * len(kernels)
    assert (description.failed, description.missing) == ((), ())


def test_it_is_small() -> None:
    sizes = {path.name: path.stat().st_size for path in bundled_folder().iterdir()}
    assert sum(sizes.values()) <= MOST_BYTES
    tables = {f"{table.table}.parquet" for table in TABLES if table not in SPARE}
    assert sizes.keys() == tables | {"launches.jsonl"}
    assert sum(path.stat().st_size for path in bundled_folder(BUNDLED_CORUN).iterdir()) <= 2_000_000


def test_each_kernel_has_a_launch_with_all_counts(dataset: crosscast.Dataset) -> None:
    launches, _ = read_profiles(bundled_folder() / "launches.jsonl")
    names = [(each.application, each.kernel) for each in launches]
    known = dataset.profiles.select(["application", "kernel"]).to_pylist()
    assert set(names) == {(row["application"], row["kernel"]) for row in known}
    assert len(names) == 3 * len(set(names))
    assert all(each.launch["sub_groups"] for each in launches)


def test_it_was_made_from_the_kernels_and_sizes_as_they_are_now(dataset: crosscast.Dataset) -> None:
    for session in dataset.sessions.to_pylist():
        kind = application(session["application"])
        assert session["source_sha256"] == Program.from_file(kind.source_path()).sha256
        assert json.loads(session["parameters"]) == kind.fit(working_set(session["size"]))


def test_its_profiles_are_those_that_are_made_now(dataset: crosscast.Dataset) -> None:
    kind = application("srad")
    rows = [
        row for row in dataset.profiles.to_pylist() if (row["application"], row["size"]) == ("srad", "tiny")
    ]
    profiles = {(p.kernel, p.invocation): p for p in profiles_of(kind(kind.fit(32 << 10), 0), "tiny")}
    assert len(rows) == len(profiles) > 0
    for row in rows:
        metrics = profiles[row["kernel"], row["invocation"]].metrics
        assert {name: row[name] for name in metrics} == metrics


@pytest.fixture(scope="module")
def found() -> CoRuns:
    dataset = bundled_named(BUNDLED_CORUN)
    assert dataset is not None
    return co_runs(dataset)


def test_the_whole_suite_is_there_alone_and_in_mixes_of_two_and_three(found: CoRuns) -> None:
    assert set(found.applications) == set(names())
    assert {len(mix.members) for mix in found.mixes} == {2, 3}
    assert not any(mix.failed for mix in found.mixes)
    assert all(
        member.slowdown and member.isolated_run.time_s for mix in found.mixes for member in mix.members
    )


def test_everything_is_known_beside_the_microbenchmarks(found: CoRuns) -> None:
    for isolated_run in found.isolated_runs:
        for level in ("low", "medium", "high"):
            assert {f"{what}_{level}" for what in ("slowdown", "inflicted", "fairness")} <= set(
                isolated_run.features
            )


def test_it_was_made_from_the_problems_as_they_are_now() -> None:
    dataset = bundled_named(BUNDLED_CORUN)
    assert dataset is not None
    for row in dataset.isolated_runs.to_pylist():
        kind = application(row["application"])
        problem = json.loads(row["environment"])["problem"]
        assert problem["parameters"] == kind.fit(working_set(row["size"]))
        assert problem["source_sha256"] == Program.from_file(kind.source_path()).sha256


def test_a_word_that_stands_for_nothing_is_no_dataset() -> None:
    assert bundled_named("bundled-other") is None


Row = dict[str, Any]
WHERE = {"application": "crc", "size": "tiny", "device": "cpu-2cu", "configuration": "{}"}


def made_of(host: str | None, repeats: int = 1, time_s: float = 1e-3, **cells: Row) -> Dataset:
    """What a build on a host gives; `cells` change rows of a table."""
    rows: dict[str, list[Row]] = {"records": [], "energy": [], "sessions": []}
    for repeat in range(repeats):
        facts = {} if host is None else {"host": host}
        whole = {**WHERE, "repeat": repeat, **cells.get("all", {})}
        rows["sessions"].append({**whole, "kernels": '["k"]', "environment": json.dumps(facts)})
        rows["records"].append({**whole, "kernel": "k", "run": 0, "invocations": 1, "time_s": [time_s]})
        energy = {"sensor": "rapl", "domain": "package-0", "energy_j": 1.0, "runs": 1}
        rows["energy"].append({**whole, **energy})
    device = {"device": "cpu-2cu", "name": "CPU", "type": "cpu", "driver": "3.0", "sources": "{}"}
    profile = {"application": "crc", "size": "tiny", "kernel": "k", "invocation": 0, "opcode": 7}
    profile |= {"run_s": time_s, "environment": json.dumps({"host": host})}
    tables: dict[Schema, list[Row]] = {
        DEVICES: [device | {"launch_overhead_s": time_s} | cells.get("devices", {})],
        PROFILES: [profile | cells.get("profiles", {})],
        RECORDS: rows["records"],
        ENERGY: rows["energy"],
        SESSIONS: rows["sessions"],
        ISOLATED_RUNS: [{**WHERE, "features": "{}", **cells["isolated_runs"]}]
        if "isolated_runs" in cells
        else [],
    }
    return Dataset(
        f"of {host}", **{schema.table: table_of(schema, found) for schema, found in tables.items()}
    )


def test_equal_devices_of_two_hosts_are_one_device_with_two_hosts() -> None:
    found = merged([made_of("a", 2, 1e-3), made_of("b", 2, 2e-3)], "both")
    (device,) = found.devices.to_pylist()
    assert device["launch_overhead_s"] == 1e-3
    assert hosts_of(found.sessions.to_pylist()) == {"cpu-2cu": ["a", "b"]}
    times = {row["repeat"]: row["time_s"] for row in found.records.to_pylist()}
    assert times == {0: [1e-3], 1: [1e-3], 2: [2e-3], 3: [2e-3]}
    assert sorted(row["repeat"] for row in found.energy.to_pylist()) == [0, 1, 2, 3]
    assert found.profiles.num_rows == 1


def test_measurements_without_a_session_are_kept() -> None:
    bare = made_of(None)
    bare = Dataset("bare", devices=bare.devices, records=bare.records)
    assert merged([bare, bare, made_of("a", 1, 5e-3)], "both").records.num_rows == 2


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            made_of("b", devices={"driver": "4.0"}),
            "of b: devices: cpu-2cu: expected the driver of of a .3.0.,",
        ),
        (made_of("b", profiles={"opcode": 8}), r"^of b: profiles: crc k tiny 0: expected the opcode of of a"),
        (made_of("a", 1, 2e-3), r"^of a: records: crc tiny cpu-2cu 0: expected the time_s of of a"),
        (made_of("b", isolated_runs={"time_s": 2.0}), "isolated_runs: crc tiny cpu-2cu: expected the time_s"),
    ],
)
def test_what_differs_is_refused_by_name(other: Dataset, message: str) -> None:
    with pytest.raises(InputError, match=message):
        merged([made_of("a", isolated_runs={"time_s": 1.0}), other], "both")


def test_the_command_joins_folders_into_a_new_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for host in "ab":
        write_dataset(made_of(host), tmp_path / host)
    words = ["dataset", "merge", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "c")]
    assert main([*words, "--json"]) == 0
    output = capfd.readouterr()
    assert "crosscast: note: cpu-2cu was measured on a, b" in output.err
    assert json.loads(output.out)["hosts"] == {"cpu-2cu": ["a", "b"]}
    assert main(["dataset", "describe", str(tmp_path / "c")]) == 0
    assert "cpu-2cu was measured on a, b" in capfd.readouterr().out
    assert read_dataset(tmp_path / "c").sessions.num_rows == 2
    assert main(words) == 2
    assert "--out: expected a new or empty folder" in capfd.readouterr().err
    assert main([*words[:3], str(tmp_path / "none"), "--out", str(tmp_path / "d")]) == 2
    assert not (tmp_path / "d").exists()
