"""Orders through a pipe, as they come."""

import os

from crosscast.measure.corun.worker import Orders


def test_orders_come_one_by_one_however_they_were_written() -> None:
    here, there = os.pipe()
    orders = Orders(here)
    assert not orders.waiting()
    os.write(there, b'{"do": "a"}\n{"do": "b", "runs": 3}\n{"do":')
    assert orders.waiting()
    assert orders.next() == {"do": "a"}
    assert orders.waiting()
    assert orders.next() == {"do": "b", "runs": 3}
    os.write(there, b' "c"}\n')
    assert orders.next() == {"do": "c"}
    assert not orders.waiting()
    os.close(there)
    assert orders.waiting(), "a loop must end when nobody is there to end it"
    assert orders.next() is None
    os.close(here)
