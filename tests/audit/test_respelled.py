"""A private value stays out of what is written where the conversation spells it otherwise than its record."""

import pytest

from bylaw.audit.respelled import respelled
from bylaw.audit.scrub import Scrub
from bylaw.trace.event import Call, Event, Message, Result


def hidden(value: object, written: str) -> str:
    events: list[Event] = [
        Message("user", f"It is {written}, as I said."),
        Call("note", {"texts": [{"text": f"call ({written})"}]}),
        Result(1, f'{{"text": "noted: {written}"}}'),
    ]
    found = [(("Member.it", value, "it", False), 1)]
    scrub = Scrub([*found, *respelled(found, events)])
    told = [scrub.text(each) for each in (f"It is {written}, as I said.", f"call ({written})", f"noted: {written}")]
    assert len({each.count("[Member.it]") for each in told}) == 1
    return told[0]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("+351912345678", "+351 912 345 678"),
        ("+351912345678", "912-345-678"),
        ("+351912345678", "00351 912345678"),
        ("+12025550123", "(202) 555-0123"),
        ("351 912 345 678", "351912345678"),
        ("GB82WEST12345698765432", "gb82 west 1234 5698 7654 32"),
        ("1981-04-03", "3 April 1981"),
        ("1981-04-03", "April 3rd, 1981"),
        ("1981-04-03", "03/04/1981"),
        ("1981-04-03T00:00:00", "3 April 1981"),
        (52000, "52,000"),
        (52000.0, "52 000"),
    ],
)
def test_another_spelling_is_hidden(value: object, written: str):
    told = hidden(value, written)
    assert "[Member.it]" in told
    assert not any(part in told for part in written.replace("(", " ").split() if len(part) > 2 and part != "00351")


@pytest.mark.parametrize(
    ("value", "written"),
    [("+351912345678", "912345679"), ("1981-04-03", "4 April 1981"), (52000, "152,000"), ("B-1234", "1234")],
)
def test_another_value_is_left(value: object, written: str):
    assert hidden(value, written) == f"It is {written}, as I said."
