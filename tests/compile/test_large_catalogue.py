"""A catalogue too large for one question is asked about part by part, and nothing else grows with it."""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bylaw.compile.lookups import LOOKUPS, shown_fields
from bylaw.compile.pipeline import compile_pack
from tests.compile.large import Reader, house

LONGEST = 60_000
"""Letters of one request, all in all."""


@cache
def asked(*, tools: int, policies: int) -> tuple[Counter[str], Reader]:
    """How many requests each stage makes; every policy ends with a guard."""
    chat = Reader()
    with TemporaryDirectory() as folder:
        work, _ = compile_pack(house(Path(folder), tools=tools, policies=policies), chat)
    assert len(work.checks) == policies
    assert not [check.failed for check in work.checks.values() if check.failed]
    return Counter(request.name for requests in chat.rounds for request in requests), chat


def test_two_hundred_tools_are_described_part_by_part_each_once() -> None:
    found, chat = asked(tools=200, policies=12)
    parts = chat.asked("things") + chat.asked("things_more")
    told = [name for part in parts for name in re.findall(r"^(\w+)\(", part.messages[1].content, re.MULTILINE)]
    assert len(told) == len(set(told)) == 200
    assert found["things"] == 1
    assert found["things_more"] >= 1
    letters = [sum(len(message.content) for message in request.messages) for asked in chat.rounds for request in asked]
    assert max(letters) < LONGEST
    assert "get_account" not in parts[-1].messages[1].content.partition("The tools of this part:")[2]


def test_more_tools_ask_nothing_more_but_about_themselves() -> None:
    small, _ = asked(tools=40, policies=4)
    large, _ = asked(tools=240, policies=4)
    parts = {"things", "things_more"}
    assert {name: count for name, count in large.items() if name not in parts} == {
        name: count for name, count in small.items() if name not in parts
    }
    assert sum(large[name] for name in parts) <= 4, "as many parts as the letters of 240 tools fill"


@pytest.mark.parametrize("policies", [12, 24])
def test_requests_grow_with_the_policies_and_not_with_policies_times_tools(policies: int) -> None:
    found, _ = asked(tools=200, policies=policies)
    assert found.total() == {12: 14, 24: 21}[policies]
    assert found["sort"] == policies // 12
    assert found["cases"] == {12: 3, 24: 5}[policies]
    assert found["guards"] == 2 * found["cases"]


def test_look_up_functions_are_shown_the_tools_near_to_their_fields(tmp_path: Path) -> None:
    cards = house(tmp_path, tools=200, policies=1).cards
    entities = {"Courier": {"key": "courier_id", "fields": {"courier_region": "string"}}}
    shown = LOOKUPS.request(shown_fields(cards, [("Courier", "courier_region")], entities)).messages[1].content
    assert len(shown) < LONGEST
    assert all(f"\n{verb}_courier(" in shown for verb in ("get", "create", "update", "share"))
    others = shown.partition("by name alone: ")[2].partition("\n")[0].split(", ")
    assert len(others) > 50
    assert not [name for name in others if "courier" in name]
