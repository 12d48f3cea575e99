"""Policies compared on the same jobs."""

import numpy as np
import pytest

from crosscast.cluster.jobs import Jobs, Machine, Policy, Schedule
from crosscast.cluster.policies import compare_policies, policy_label


def jobs() -> Jobs:
    """On 5 processors: the second waits for the first, and the third and fourth may pass it."""
    run_s = np.array([[4.0], [2.0], [3.0], [9.0]])
    return Jobs(
        np.arange(1, 5),
        np.zeros(4),
        np.array([3, 4, 1, 1]),
        run_s,
        run_s,
        np.array([0, 0, 1, 1]),
        ("ann", "bob"),
    )


def test_a_result_for_each_policy_in_their_order() -> None:
    kept: list[tuple[Policy, Schedule]] = []
    policies = [Policy(backfill=None), Policy()]
    found = compare_policies(
        jobs(), [Machine("one", 5)], policies, keep=lambda policy, schedule: kept.append((policy, schedule))
    )
    assert [each.label for each in found] == ["fcfs", "easy"]
    assert [each.metrics.makespan_s for each in found] == [15.0, 9.0]
    assert [policy for policy, _ in kept] == policies
    assert [schedule.start_s.tolist() for _, schedule in kept] == [[0, 4, 4, 6], [0, 4, 0, 0]]
    assert [user.mean_wait_s for user in found[1].users] == [2.0, 0.0]


def test_json_has_what_a_check_reads() -> None:
    (found,) = compare_policies(jobs(), [Machine("one", 5)], [Policy("fcfs", "widest")])
    listed = found.to_dict()
    assert (listed["policy"], listed["queue"], listed["backfill"]) == ("easy", "fcfs", "widest")
    assert listed["jobs"] == 4
    assert listed["makespan_s"] == 9
    assert listed["jobs_per_s"] == pytest.approx(4 / listed["simulation_s"])
    assert "users" not in listed
    assert [user["user"] for user in found.to_dict(users=True)["users"]] == ["ann", "bob"]


def test_labels_tell_policies_apart() -> None:
    policies = [Policy(a, b) for a in ("fcfs", "widest") for b in (None, "fcfs", "shortest")]
    assert len({policy_label(policy) for policy in policies}) == 6
