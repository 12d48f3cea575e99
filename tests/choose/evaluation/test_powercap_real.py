"""Methods without a model on published data: programs of Altis under caps of two powers.

It lies beside the checkout, in ``shared/data``, or where ``CROSSCAST_DATA`` points.
"""

import pytest

from crosscast.decide.evaluation import ALONE, MachineChoices, evaluate_choices
from crosscast.decide.policies import Fixed, Limiter, Oracle, knob_limiters
from crosscast.decide.power_cap import Method
from crosscast.decide.scores import ChoiceResult
from crosscast.predict.configuration.data import machines_of
from crosscast.tables.configured import configured
from crosscast.tables.importers.powercap import import_powercap
from shared_data import shared_data


@pytest.fixture(scope="module")
def found() -> MachineChoices:
    (surfaces,) = machines_of(configured(import_powercap(shared_data("powercap"))), "powercap")
    methods: list[Method] = [Limiter(), *knob_limiters(surfaces.space), Fixed(), Oracle()]
    return evaluate_choices(surfaces, methods)


def of(found: MachineChoices, method: str) -> ChoiceResult:
    return next(each for each in found.results if each.method == method and each.protocol == ALONE)


def test_all_programs_are_asked_about(found: MachineChoices) -> None:
    assert len(found.cases.programs) == 15
    assert len(found.cases) == 669
    assert not found.cases.left_out
    assert found.groups == (
        ("busspeeddownload", "busspeedreadback"),
        ("cfd", "cfd_double"),
        ("particlefilter_float", "particlefilter_naive"),
    )


def test_the_limiter_of_both_caps_needs_many_runs(found: MachineChoices) -> None:
    limiter = of(found, "limiter")
    assert limiter.metrics.under_limit_share == pytest.approx(1.0, abs=0.001)
    assert limiter.metrics.under_performance == pytest.approx(0.947, abs=0.001)
    assert limiter.metrics.score == pytest.approx(0.947, abs=0.001)
    assert limiter.metrics.extra_runs == pytest.approx(7.4, abs=0.05)
    scores = [limiter.curve.metrics[budget].score for budget in (0, 1, 2, 4, 8)]
    assert scores == pytest.approx([0.018, 0.061, 0.161, 0.294, 0.649], abs=0.001)


def test_a_limiter_of_one_cap_often_ends_above_the_limit(found: MachineChoices) -> None:
    cpu, gpu = of(found, "cpu+fl").metrics, of(found, "gpu+fl").metrics
    assert cpu.under_limit_share == pytest.approx(0.695, abs=0.002)
    assert gpu.under_limit_share == pytest.approx(0.281, abs=0.002)
    assert cpu.under_performance == pytest.approx(0.934, abs=0.002)
    assert cpu.over_power == pytest.approx(1.216, abs=0.002)


def test_a_fixed_configuration_wastes_a_quarter(found: MachineChoices) -> None:
    fixed = of(found, "fixed").metrics
    assert fixed.under_limit_share == pytest.approx(0.857, abs=0.01)
    assert fixed.under_performance == pytest.approx(0.725, abs=0.01)
    assert fixed.extra_runs == 0


def test_repeats_alone_fail_more_than_a_quarter_of_the_oracles_choices(found: MachineChoices) -> None:
    assert found.noise is not None
    assert found.split_half is not None
    # 29 % fail on real repeats, which are not in the data; these are simulated.
    assert found.split_half.violations == pytest.approx(0.29, abs=0.05)
    assert of(found, "oracle").metrics.score == pytest.approx(1)
