from __future__ import annotations

from io import StringIO

from rich.text import Text

from crosscast.report.text import console_of_numbers, number_table, print_table


def test_names_are_on_the_left_and_as_they_are_numbers_on_the_right() -> None:
    table = number_table("[bold]x", ["gpu[0]", "n"])
    table.add_row(Text("[red]name"), "1", "2.5")
    stream = StringIO()
    print_table(console_of_numbers(stream), "by [machine]", table)
    assert [line.rstrip() for line in stream.getvalue().splitlines()] == [
        "",
        "by [machine]",
        "[bold]x    gpu[0]    n",
        "[red]name       1  2.5",
    ]
