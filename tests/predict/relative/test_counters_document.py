"""The document of counters says what the rules say."""

from pathlib import Path

import pytest

from crosscast.predict.relative.counters import RULES

DOCUMENT = (Path(__file__).parents[3] / "docs" / "counters.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("tool", dict.fromkeys(rule.tool for rule in RULES))
def test_every_rule_is_in_the_table_of_its_tool(tool: str) -> None:
    text = DOCUMENT.split(f"\n### {tool}\n")[-1].split("\n### ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert rows == [
        f"| {rule.feature} | `{rule.amount.text}` | {f'`{rule.whole.text}`' if rule.whole else ''} |"
        for rule in RULES
        if rule.tool == tool
    ]
