"""Bags."""

from crosscast.data.corun import Bag, Member, Solo

SUMS, LUD = Solo("sums", "tiny", "cpu", 0.5), Solo("lud", "tiny", "cpu", 0.25)


def test_an_application_may_be_in_a_bag_twice() -> None:
    bag = Bag("b", "cpu", (Member(SUMS, 1.5), Member(LUD, 1.1), Member(SUMS, 1.4)))
    assert bag.solos == (SUMS, LUD, SUMS)
    assert bag.applications == {"sums", "lud"}


def test_a_bag_has_failed_if_a_member_has() -> None:
    assert not Bag("b", "cpu", (Member(SUMS), Member(LUD))).failed
    assert Bag("b", "cpu", (Member(SUMS), Member(LUD, failure="it hung"))).failed


def test_a_solo_run_has_a_name_for_people_and_a_key() -> None:
    assert SUMS.name == "sums tiny"
    assert SUMS.key == ("sums", "tiny", "cpu", "{}")
