"""The process of a member of a bag: answers in lines of JSON, as `crosscast.measure.corun.serving` says."""

from __future__ import annotations

import sys

from crosscast.measure.answering import answering

__all__ = ["main"]


def main() -> int:
    """Serve the process of the id in `sys.argv`, as standard input orders; return the exit code."""
    with answering(int(sys.argv[1])) as send:
        from crosscast.measure.corun.orders import Orders
        from crosscast.measure.corun.serving import serve
        from crosscast.measure.jobs import SessionJob, read_job

        orders = Orders(sys.stdin.fileno())
        job = read_job(orders.line() or "")
        assert isinstance(job, SessionJob)
        serve(job, orders, send)
    return 0


if __name__ == "__main__":
    sys.exit(main())
