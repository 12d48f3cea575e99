from hypothesis import given
from hypothesis import strategies as st

from crosscast.cluster.swf import SwfHeader, header_of

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,8}", fullmatch=True)
LINES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "), max_size=20).map(
    str.strip
)


def test_typed_fields_are_numbers_and_answers() -> None:
    header = header_of(
        [
            "; MaxNodes: 36",
            ";MaxProcs:  1152 (36 nodes of 32)",
            "; MaxRuntime: 64800",
            "; UnixStartTime: 843480031",
            "; AllowOveruse: No",
            "; Preemption: Double",
        ]
    )
    assert (header.max_nodes, header.max_procs, header.procs) == (36, 1152, 1152)
    assert (header.max_run_s, header.unix_start_s) == (64800, 843480031)
    assert header.allow_overuse is False
    assert header.preemption == "Double"


def test_what_is_not_said_or_not_understood_is_not_known() -> None:
    header = header_of(["; MaxProcs: -1", "; MaxRuntime: a day", "; AllowOveruse:", "; UnixStartTime: 1e99x"])
    assert header.max_procs is None
    assert header.max_nodes is None
    assert header.procs is None
    assert header.max_run_s is None
    assert header.allow_overuse is None
    assert header.preemption is None


def test_overuse_may_be_allowed() -> None:
    assert header_of(["; AllowOveruse: Yes"]).allow_overuse is True
    assert header_of(["; AllowOveruse: True, by a little"]).allow_overuse is None
    assert header_of(["; AllowOveruse: True"]).allow_overuse is True


def test_nodes_count_where_nothing_is_said_of_processors() -> None:
    assert header_of(["; MaxNodes: 100"]).procs == 100


def test_a_text_goes_on_in_the_next_line_and_an_address_is_no_name() -> None:
    header = header_of(
        ["; Information: http://a.org/", ";              http://b.org/", ";", "; Queue: 1 a", "; Queue: 2 b"]
    )
    assert header.fields == {"Information": "http://a.org/\nhttp://b.org/", "Queue": "1 a\n2 b"}


def test_a_comment_that_belongs_to_no_name_is_passed_over() -> None:
    assert header_of(["; by hand", "; Note: a", ";", ";  another remark"]).fields == {"Note": "a"}


def test_what_steers_a_terminal_does_not_come_through() -> None:
    assert header_of(["; Note: \x1b[2Jgone"]).fields == {"Note": "[2Jgone"}


@given(st.dictionaries(NAMES, st.lists(LINES, min_size=1, max_size=3).map("\n".join)))
def test_lines_of_a_header_read_back_are_the_header(fields: dict[str, str]) -> None:
    header = SwfHeader(fields)
    assert header_of(header.lines()) == header
