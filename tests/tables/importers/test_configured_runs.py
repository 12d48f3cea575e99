"""Runs of kernels that were counted alone are sessions of their own."""

from crosscast.configuration import Configuration
from crosscast.data.sources.runs import ConfiguredRun, with_own_sessions


def run(application: str, kernel: str, size: str = "big", device: str = "gpu") -> ConfiguredRun:
    return ConfiguredRun(application, kernel, size, Configuration(device, {}), 1.0, ())


def test_runs_of_one_application_size_and_configuration_are_counted_from_0() -> None:
    runs = [run("a", "k"), run("a", "l"), run("b", "k"), run("a", "k", "small"), run("a", "m")]
    assert [each.repeat for each in with_own_sessions(runs)] == [0, 1, 0, 0, 2]


def test_nothing_else_of_a_run_changes() -> None:
    runs = [run("a", "k"), run("a", "k", device="cpu")]
    assert with_own_sessions(runs) == runs
