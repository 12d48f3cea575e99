"""Characterize applications of the suite in this process, and say how long each took.

``python -m benchmarks.suite_profiles SIZE APPLICATION...`` prints a JSON object: for each application the
seconds that its profiles took, their number, and the bytes of its buffers. `benchmarks.suite` runs it.
"""

from __future__ import annotations

import json
import sys
import time

from crosscast.suite.application import application, working_set
from crosscast.suite.profiles import profiles_of


def main() -> int:
    """Characterize, print, and return the exit status."""
    size, *names = sys.argv[1:]
    found = {}
    for name in names:
        kind = application(name)
        start = time.perf_counter()
        problem = kind(kind.fit(working_set(size)), 0)
        profiles = profiles_of(problem, size)
        seconds = time.perf_counter() - start
        found[name] = {"seconds": seconds, "profiles": len(profiles), "nbytes": problem.nbytes}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
