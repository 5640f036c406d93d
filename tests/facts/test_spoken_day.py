"""Days in people's words, and what it means that nobody said something."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from bylaw.engine.session import Session
from bylaw.pack import load_pack
from bylaw.text.day import spoken_day
from bylaw.trace.event import Call, Event, Message
from tests.policy.shop import write_pack


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("14th November 1969", date(1969, 11, 14)),
        ("the 14th of November, 1969", date(1969, 11, 14)),
        ("4 Jan 1963.", date(1963, 1, 4)),
        ("Nov 14, 1969", date(1969, 11, 14)),
        ("Sept. 1st 2001", date(2001, 9, 1)),
        ("1969-11-14", date(1969, 11, 14)),
        ("14/11/1969", date(1969, 11, 14)),
        ("11/14/1969", date(1969, 11, 14)),
        ("05.05.1970", date(1970, 5, 5)),
        ("04/01/1963", None),
        ("31 February 1990", None),
        ("45/13/1990", None),
        ("14 November", None),
        ("14 November 69", None),
        ("in May 2020", None),
        ("", None),
    ],
)
def test_days_are_read_where_only_one_can_be_meant(text: str, day: date | None) -> None:
    assert spoken_day(text) == day


FILES = {
    "policy.md": "Tell nobody anything who has not said who they are.\n",
    "policies.yaml": "policies: []\n",
    "tools.yaml": "tools:\n  send: {effect: write, parameters: {id: string}, changes: []}\n",
    "entities.yaml": """\
entities:
  Caller:
    key: []
    fields:
      born: {type: date, origin: user, from: [{says: 'born (?:on )?([^.]+)'}]}
      name: {origin: user, default: "", from: [{says: "name is ([A-Z][a-z]+)"}]}
""",
    "guards/g.py": """\
def named(call: send, facts):
    \"\"\"Tell nobody anything who has not said who they are.\"\"\"
    return deny("no name was given") if facts.Caller.name == "" else permit()


def born(call: send, facts):
    \"\"\"Tell nobody anything who has not said who they are.\"\"\"
    return permit() if facts.Caller.born == date("1969-11-14") else deny("another day")
""",
    "guards/shop.py": None,
    "cases/shop.yaml": None,
}


@pytest.mark.parametrize(
    ("events", "want"),
    [
        ([Message("user", "My name is Ada, born 14th November 1969.")], ("compliant", "compliant")),
        ([Message("user", "My name is Ada, born on 13/11/1969.")], ("compliant", "violation")),
        ([Message("user", "I was born 04/01/1969.")], ("violation", "inconclusive")),
        ([Message("user", "Hello.")], ("violation", "inconclusive")),
        ([Message("user", "Hello."), Message("user", "", captured=False)], ("inconclusive", "inconclusive")),
        ([], ("inconclusive", "inconclusive")),
    ],
)
def test_what_nobody_said_is_what_the_pack_says(events: list[Event], want: Any, tmp_path: Path) -> None:
    session = Session(load_pack(write_pack(tmp_path, FILES)))
    session.observe_all(events)
    call = Call("send", {"id": "1"}, turn=9)
    session.judge(call)
    session.observe(call)
    found = {each.policy.id: each.determined for each in session.settle()[-1].policies}
    assert (found["named"], found["born"]) == want
