"""The tables of an audit at 80 columns."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from bylaw.cli.tables import agents_table


def shown(*names: str) -> list[str]:
    rate = {"value": 0.123, "low": 0.1, "high": 0.15, "count": 1, "of": 9}
    rates = dict.fromkeys(("violation_rate", "near_miss_rate", "near_miss_rate_of_writing"), rate)
    row: dict[str, Any] = {"trajectories": 1234, "with_write_calls": 1100, "failure_rate": rate, "rule_rate": rate}
    agents = [{"agent": name, **row, "determined": rates} for name in names]
    console = Console(file=StringIO(), width=80)
    console.print(agents_table({"criterion": "determined", "agents": agents}, 80))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


@pytest.mark.parametrize("long", ["claude-3-7-sonnet-20250219 (changed policy)", "an_agent_" * 7])
def test_long_names_of_agents_stay_whole_above_their_numbers(long: str) -> None:
    lines = shown("logs", long)
    assert [line.strip() for line in lines if long[:10] in line] == [long]
    heads = next(line for line in lines if "violation" in line)
    below = lines[lines.index(f" {long}") + 1]
    assert below.index("12.3 [10-15]") + len("12.3 [10-15]") == heads.index("violation") + len("violation")


def test_short_names_stand_beside_their_numbers() -> None:
    assert any(line.split()[:3] == ["careful", "1,234", "1,100"] for line in shown("logs", "careful"))
