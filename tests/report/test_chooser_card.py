"""The card of a model of configurations as people see it."""

import io
from dataclasses import replace
from pathlib import Path

from crosscast.report.chooser_training import honest_chooser_errors, print_chooser_training
from kept_chooser import fitted_chooser

PREDICTOR, CARD = fitted_chooser()
CHOICES = [
    {
        "method": "published",
        "under_limit_share": 0.61,
        "under_performance": 0.8,
        "over_power": 1.12,
        "score": 0.48,
        "extra_runs": 0.0,
    },
    {"method": "published+fl", "under_limit_share": 1.0, "over_power": None, "extra_runs": 1.64},
]


def test_it_says_what_was_learned_what_to_run_and_how_good_it_is() -> None:
    stream = io.StringIO()
    card = replace(CARD, errors={**CARD.errors, "choices": CHOICES})
    print_chooser_training(card, Path("capmodel"), stream, (PREDICTOR.clusters.note, PREDICTOR.tree.text()))
    lines = stream.getvalue().splitlines()
    assert lines[0] == (
        "capmodel: published-2, trained on made up: 144 runs of 12 kernels at a size (6 applications) at 12 "
        "configurations of 1 device (node)."
    )
    assert "  node: cpu cap 100 W, gpu cap 250 W" in lines
    assert "2 clusters of" in stream.getvalue()
    assert any(line.startswith("|") or " <= " in line for line in lines)
    (first,) = [line.split() for line in lines if line.startswith("published  ")]
    assert first == ["published", "61", "%", "80", "%", "112", "%", "48", "%", "0.0"]
    (second,) = [line.split() for line in lines if line.startswith("published+fl")]
    assert second == ["published+fl", "100", "%", "—", "—", "—", "1.6"]


def test_errors_that_the_card_does_not_have_are_not_said() -> None:
    assert honest_chooser_errors(replace(CARD, errors={})) == []
    found = honest_chooser_errors(replace(CARD, errors={"rmse_log_power": 0.1, "coverage_power": 0.91}))
    assert found == [
        "On applications that it had not seen: power: RMSE of the logarithm 0.100, 90 % intervals held 91 %."
    ]
