"""What columns of one's own runs are taken as."""

import pytest

from crosscast.data.sources.runs import ColumnRoles, roles_of
from crosscast.errors import InputError

BEGIN = ("application", "time_s", "power_w")


def roles(*columns: str, settings: list[str] | None = None) -> ColumnRoles:
    return roles_of([*BEGIN, *columns], settings, "f, line 1")


def refusal(*columns: str, settings: list[str] | None = None) -> str:
    with pytest.raises(InputError) as caught:
        roles_of(columns, settings, "f, line 1")
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        *("cpu_cap_w", "cap_w", "power_limit_w", "core_clock_hz", "clock_hz", "cores", "threads"),
        *("cluster", "scheduling", "governor"),
    ],
)
def test_names_of_settings_are_settings(name: str) -> None:
    assert roles(name) == ColumnRoles((name,), (), (), ())


@pytest.mark.parametrize("name", ["cpu_w", "package-0/core_w", "capped_w"])
def test_watts_that_are_no_caps_are_powers(name: str) -> None:
    assert roles(name) == ColumnRoles((), (name[:-2],), (), ())


@pytest.mark.parametrize("name", ["instructions", "block_size", "mean_hz", "cores_used"])
def test_all_else_is_a_counter(name: str) -> None:
    assert roles(name) == ColumnRoles((), (), (name,), ())


@pytest.mark.parametrize("name", ["energy_j", "repeat", "run", "started_s"])
def test_what_other_columns_say_is_passed_over(name: str) -> None:
    assert roles(name) == ColumnRoles((), (), (), (name,))


def test_named_settings_are_the_only_ones() -> None:
    found = roles("threads", "block_size", "cpu_cap_w", settings=["block_size"])
    assert found == ColumnRoles(("block_size",), (), (), ("threads", "cpu_cap_w"))


def test_any_column_may_be_named_a_setting() -> None:
    names = ["gpu_w", "core_mhz", "energy_j"]
    assert roles(*names, settings=names).settings == tuple(names)


def test_known_columns_are_nothing_else() -> None:
    assert roles("kernel", "size", "device", "runtime_s") == ColumnRoles((), (), (), ())


def test_each_kind_is_told_in_a_line() -> None:
    columns = [*BEGIN, "threads", "cpu_w", "cycles", "run"]
    assert list(roles_of(columns, None, "f").sentences(columns)) == [
        "settings: threads",
        "powers: power_w, cpu_w",
        "counters: cycles",
        "passed over: run",
    ]
    assert list(roles().sentences(BEGIN)) == ["settings: none", "powers: power_w"]


@pytest.mark.parametrize("name", ["core_mhz", "mem_clock_GHz", "board_mW", "gpu_mj", "copy_ms"])
def test_other_units_are_refused(name: str) -> None:
    assert refusal(*BEGIN, name).startswith(f"f, line 1: {name}: expected seconds, hertz, watts or joules")


@pytest.mark.parametrize(
    ("columns", "settings", "found"),
    [
        (("time_s", "power_w"), None, "expected a column application, found time_s, power_w"),
        (("application", "power_w"), None, "expected a column time_s, found application, power_w"),
        (("application", "time_s"), None, "expected a column power_w, or powers of domains such as cpu_w"),
        (("application", "time_s", "cpu_cap_w"), None, "expected a column power_w"),
        ((*BEGIN, "node_w"), None, "expected power_w or node_w, the power of the whole, found both"),
        ((*BEGIN, "a"), ["b"], "settings: expected columns out of a, found b"),
        (BEGIN, ["time_s"], "settings: expected columns out of none, found time_s"),
        ((*BEGIN, ""), None, "expected columns with names of 1 to 200 characters, found ''"),
        ((*BEGIN, "a\nb"), None, "found 'a\\nb'"),
        ((*BEGIN, "a" * 201), None, "expected columns with names of 1 to 200 characters"),
        ((*BEGIN, *map(str, range(998))), None, "expected 1000 columns at most, found 1001"),
    ],
)
def test_bad_headers_are_refused_in_a_sentence(
    columns: tuple[str, ...], settings: list[str] | None, found: str
) -> None:
    text = refusal(*columns, settings=settings)
    assert text.startswith("f, line 1: ")
    assert found in text
    assert "\n" not in text
