"""The measuring process: reads a job, runs it, and answers in lines of JSON.

Progress is a line ``{"runs": …, "elapsed_s": …}``; the last line is ``{"answer": …}`` or
``{"error": …, "arguments": …}``. A co-runner then takes orders, each a line of JSON, and answers each;
meanwhile it sends ``{"jobs": …}``.
"""

from __future__ import annotations

import sys

from crosscast.measure import subjects
from crosscast.measure.processes import CharacterizeJob, InstructionMixJob, Orders, answering, read_job


def main() -> int:
    """Run the job on standard input for the process of the id in `sys.argv`; return the exit code."""
    with answering(int(sys.argv[1])) as send:
        orders = Orders(sys.stdin.fileno())
        job = read_job(orders.line() or "")
        # Imported here, so that a missing extra becomes an answer; characterizing needs no OpenCL.
        if isinstance(job, CharacterizeJob):
            send(answer={"profiles": subjects.profile_rows(job.subject, job.timeout_s)})
        elif isinstance(job, InstructionMixJob):
            send(answer={"mix": subjects.instruction_mix_of(job.subject, job.timeout_s)})
        else:
            from crosscast.measure import session

            session.answer(job, orders, send)
    return 0


if __name__ == "__main__":
    sys.exit(main())
