"""A private value stays out of what is written where the conversation spells it otherwise than its record."""

import json
from html.entities import codepoint2name
from typing import Literal
from unicodedata import normalize
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.audit import private as module
from bylaw.audit.private import Scrub, respelled
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
        ("+4915123456789", "0151 23456789"),
        ("+49 151 23456789", "+49 (0) 151/234-567-89"),
        ("+49 151 23456789", "004915123456789"),
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


def test_a_value_that_also_stands_as_it_was_found_is_hidden_in_both_spellings():
    assert hidden("351912345678", "351912345678 or 351 912 345 678") == "It is [Member.it] or [Member.it], as I said."


@pytest.mark.parametrize(
    "value",
    ["In\u00e8s L\u00e4ngstr\u00f6m", "Zo\u00eb", "Nguy\u1ec5n Th\u1ebf", "\u00c5se", "\ud55c\uad6d\uc0ac\ub78c"],
)
@pytest.mark.parametrize("kept", ["NFC", "NFD"])
@pytest.mark.parametrize("written", ["NFC", "NFD"])
def test_letters_and_marks_may_stand_apart(value: str, kept: Literal["NFC", "NFD"], written: Literal["NFC", "NFD"]):
    scrub = Scrub([(("Member.it", normalize(kept, value), "it", False), 1)])
    told = normalize(written, value)
    html = "".join(f"&{codepoint2name[ord(each)]};" if ord(each) in codepoint2name else each for each in told)
    for each in (html, told, told.upper(), json.dumps(told), quote(told), json.dumps({"text": json.dumps(told)})):
        assert "[Member.it]" in scrub.text(f"It is {each}.") or "[private]" in scrub.text(f"It is {each}.")
    assert scrub.text(f"It is {told}.") == "It is [Member.it]."


def test_a_letter_with_one_of_two_marks_apart_is_the_same():
    scrub = Scrub([(("Member.it", "Nguy\u1ec5n", "it", False), 1)])
    assert scrub.text("It is Nguy\u00ea\u0303n.") == "It is [Member.it]."


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A number, and texts that have it, parts of it, and others, in groups or not."""
    number = draw(st.text("123", min_size=5, max_size=8))
    cuts = st.sets(st.integers(1, len(number) - 1), max_size=3).map(sorted)
    pieces = st.one_of(
        st.just(number),
        cuts.flatmap(lambda at: st.sampled_from(" -.").map(lambda joint: grouped(number, at, joint))),
        st.text("123 -x", max_size=6),
    )
    return number, draw(st.lists(st.lists(pieces, max_size=4).map(" ".join), max_size=3))


def grouped(number: str, cuts: list[int], joint: str) -> str:
    return joint.join(number[start:end] for start, end in zip([0, *cuts], [*cuts, len(number)], strict=True))


@given(spelled())
def test_nothing_is_missed_for_not_being_searched_for(drawn: tuple[str, list[str]]):
    number, texts = drawn
    events: list[Event] = [Message("user", text) for text in texts]
    quick = {value for (_, value, _, _), _ in respelled([(("Member.it", number, "it", False), 1)], events)}
    pattern = module._grouped(number)  # pyright: ignore[reportPrivateUsage]
    plain = {match[0] for text in texts for match in pattern.finditer(text)}
    assert quick | {number} == plain | {number}
