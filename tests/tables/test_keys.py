import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.table import key_numbers

rows = st.lists(st.tuples(st.sampled_from(["a", "b", "\x1f", "", None]), st.integers(0, 2)), max_size=9)


@given(first=rows, second=rows)
def test_numbers_are_equal_where_keys_are(
    first: list[tuple[str | None, int]], second: list[tuple[str | None, int]]
) -> None:
    tables = [
        pa.table({"name": pa.array([n for n, _ in part], pa.string()), "run": pa.array([r for _, r in part])})
        for part in (first, second)
    ]
    tables = [table.set_column(1, "run", table.column("run").cast(pa.int64())) for table in tables]
    left, right = key_numbers(tables, ["name", "run"])
    keys, numbers = first + second, [*left.tolist(), *right.tolist()]
    assert len(set(zip(keys, numbers, strict=True))) == len(set(keys)) == len(set(numbers))
    assert set(numbers) == set(range(len(set(keys))))
