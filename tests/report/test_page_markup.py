"""HTML whose texts are escaped, whatever they are."""

import pytest

from crosscast.report.page.markup import Markup, clean, element, joined, paragraph, table


def test_texts_are_escaped_and_elements_are_not() -> None:
    assert element("p", "<b> & ", element("b", "c")) == "<p>&lt;b&gt; &amp; <b>c</b></p>"


def test_attributes_are_escaped() -> None:
    assert element("img", alt='"><script>') == '<img alt="&quot;&gt;&lt;script&gt;">'


def test_attributes_get_the_names_that_python_does_not_allow() -> None:
    assert element("td", class_="number", aria_label="a") == '<td class="number" aria-label="a"></td>'


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\u202e", "\ud800", "\u2028"])
def test_what_cannot_be_shown_is_replaced(character: str) -> None:
    assert clean(f"a{character}b") == "a\ufffdb"
    assert element("p", f"a{character}b") == "<p>a\ufffdb</p>"


def test_lines_of_a_text_stay_lines() -> None:
    assert element("pre", "one\ntwo") == "<pre>one\ntwo</pre>"


def test_joined_parts_are_markup() -> None:
    assert joined(["<", Markup("<br>")], " ") == "&lt; <br>"
    assert paragraph("One.", "Two.", class_="note") == '<p class="note">One. Two.</p>'


def test_a_table_says_which_cells_are_headings_and_which_are_numbers() -> None:
    found = table("<things>", ("name", "count"), [("<a>", "1")])
    assert "<caption>&lt;things&gt;</caption>" in found
    assert '<th scope="row">&lt;a&gt;</th><td class="number">1</td>' in found
    assert 'aria-label="&lt;things&gt;"' in found
