"""Make `made-cluster.swf`: the jobs of a day and a half on a cluster of 64 processors that does not exist.

`python examples/made_cluster.py > examples/made-cluster.swf` makes the file that is there.
"""

import numpy as np

JOBS, PROCS, SEED = 200, 64, 1

HEADER = f"""\
; Version: 2.2
; Computer: a made-up cluster
; Note: SYNTHETIC. No machine ran these jobs: examples/made_cluster.py drew them, seed {SEED}
; MaxJobs: {JOBS}
; MaxRecords: {JOBS}
; MaxProcs: {PROCS}
; AllowOveruse: No"""


def main() -> None:
    """Print the trace."""
    random = np.random.default_rng(SEED)
    procs = 2 ** random.integers(0, 6, JOBS)
    run = np.exp(random.uniform(np.log(60), np.log(6 * 3600), JOBS)).astype(int)
    # Users ask for more than they need, in quarters of an hour.
    requested = np.ceil(run * random.uniform(1, 4, JOBS) / 900).astype(int) * 900
    # As much work as the cluster could do in that time, so that jobs have to wait.
    submit = np.cumsum(random.exponential(np.sum(procs * run) / PROCS / JOBS, JOBS)).astype(int)
    submit -= submit[0]
    user = random.integers(1, 7, JOBS)
    print(HEADER)
    for job in range(JOBS):
        ran = f"{submit[job]} -1 {run[job]} {procs[job]} -1 -1"
        print(f"{job + 1} {ran} {procs[job]} {requested[job]} -1 1 {user[job]} -1 -1 -1 -1 -1 -1")


if __name__ == "__main__":
    main()
