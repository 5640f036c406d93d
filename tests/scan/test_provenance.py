"""Where a value came from: the user, the host, a record, free text in a result, or nowhere."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.facts.provenance import Provenance
from bylaw.facts.result_places import leaf_values
from bylaw.text.identifier import identifiers, is_identifier
from bylaw.trace import Result

from .library import Talk

END = 10_000


def origin(talk: Talk, value: Any, before: int = END) -> str:
    trajectory = talk.done()
    return Provenance(trajectory.events, instructions=trajectory.instructions).origin(value, before=before).source


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("cancel ABC123 please", "ABC123"),
        ("cancel abc123 please", "ABC123"),
        ("on May 20th", "2024-05-20"),
        ("on the 20th of May", "2024-05-20"),
        ("on 5/20", "2024-05-20"),
        ("at 10 on 2024-05-20", "2024-05-20 10:00"),
        ("pay $1,200", 1200),
        ("pay 1200.00", 1200.0),
        ("two bags", 2),
        ("a Round Trip", "round_trip"),
    ],
)
def test_the_users_words_in_their_usual_forms(said: str, value: Any) -> None:
    assert origin(Talk("t").user(said), value) == "user"


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("cancel ABC1234", "ABC123"),
        ("on May 21", "2024-05-20"),
        ("on 15/20", "2024-05-20"),
        ("pay 11200", 1200),
        ("pay 1200.50", 1200),
        ("pay 3,200", 200),
        ("someone", 1),
    ],
)
def test_what_only_looks_alike_is_not_said(said: str, value: Any) -> None:
    assert origin(Talk("t").user(said), value) == "agent"


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("cancel LW-1, jo.hart@example.com", "Hart"),
        ("my mail is x@may.com", "May"),
        ("mine is jo_hart@example.com", "Jo"),
        ("see https://example.com/hart?x=1", "Hart"),
        ("see www.hart.co.uk", "hart"),
        ("see hart.com/jo", "Hart"),
        ("it is in /home/hart/notes", "Hart"),
        ("it is in /home/hart/notes.txt", "notes.txt"),
        ("it is in hart.pdf", "Hart"),
        ("cancel hart-2041", "Hart"),
    ],
)
def test_a_part_of_an_address_a_link_a_path_or_an_id_is_not_said(said: str, value: str) -> None:
    assert origin(Talk("t").user(said), value) == "agent"
    assert origin(Talk("t", instructions=said).user("hi"), value) == "agent"
    assert origin(Talk("t").user(f"{said}; {value}"), value) == "user"


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("Hart/Smith, cancel it", "Hart"),
        ("the 12-month plan", "month"),
        ("$20/month", "month"),
        ("Hart, jo.hart@example.com", "Hart"),
        ("write to jo.hart@example.com", "jo.hart@example.com"),
        ("cancel hart-2041", "hart-2041"),
        ("a round_trip", "round_trip"),
        ("thanks.May I", "May"),
    ],
)
def test_what_stands_by_itself_is_said(said: str, value: str) -> None:
    assert origin(Talk("t").user(said), value) == "user"


@pytest.mark.parametrize("price", ["£96.00", "$96.00", "96,00 €", "GBP 96.00", "96.00 kr"])
def test_a_field_that_is_a_whole_amount_is_no_free_text(price: str) -> None:
    talk = Talk("t").user("refund me").call("get_booking", {"id": "LW-1", "price": price})
    for value in (96, 96.0):
        assert origin(talk, value) == "record"
        traced = next(Provenance(talk.done().events).sights(value, before=END))
        assert traced.is_whole
    if "." in price:
        assert origin(talk, "96.00") == "record"
    assert origin(Talk("t").user("hi").call("get_booking", {"note": f"refund {price} now"}), 96) == "content"
    assert origin(Talk("t").user("hi").call("get_room", {"id": "R2"}), 2) == "agent", "ids are no amounts"


@pytest.mark.parametrize("value", ["Zoë", "한국어", "Jo 😀 é", "a\\u00e9b", '"é"', "é\n"])
def test_what_json_escapes_is_found_as_it_is(value: str) -> None:
    for is_ascii in (True, False):
        events = Talk("t").user("hi").call("get", {"name": value}).done().events
        result = Result(1, json.dumps({"name": value}, ensure_ascii=is_ascii))
        assert Provenance([*events[:2], result]).origin(value, before=END).source == "record"


def test_a_field_of_a_record_is_told_from_free_text_inside_one() -> None:
    mail = {"id": "E77", "body": "Please pay to IBAN1234567 now, id: X99"}
    talk = Talk("t").user("read my mail").call("read_mail", mail)
    assert [origin(talk, value) for value in ("E77", "IBAN1234567", "X99", "E78")] == [
        "record",
        "content",
        "content",
        "agent",
    ]


def test_yaml_and_python_notation_are_records_too() -> None:
    listing = "- id: 6\n  recipient: US122\n  subject: 'pay US133 at\n\n    once: US144'\n"
    talk = Talk("t").user("go").call("list_payments", listing).call("info", "{'email': 'a@b.example', 'n': 5000}")
    assert [origin(talk, value) for value in ("US122", 6, "a@b.example", 5000)] == ["record"] * 4
    assert [origin(talk, value) for value in ("US133", "US144")] == ["content", "content"]


def test_a_bare_answer_and_a_plain_listing_are_records() -> None:
    talk = (
        Talk("t")
        .user("go")
        .call("get_iban", "DE8937040044")
        .call("hotels", "Hotels in Rome: Ritz\nGood Night\nCity Hub\n")
    )
    assert [origin(talk, value) for value in ("DE8937040044", "Good Night", "Ritz")] == ["record"] * 3


def test_json_inside_json_is_read() -> None:
    talk = Talk("t").user("go").call("tool", [{"type": "text", "text": json.dumps({"id": "Z900"})}])
    assert origin(talk, "Z900") == "record"


def test_the_host_is_known_by_its_instructions_and_context() -> None:
    talk = Talk("t", instructions="The user is Emma Johnson. Today is 2024-05-15.").user("hi")
    assert [origin(talk, value) for value in ("Emma", "2024-05-15")] == ["host", "host"]
    assert Provenance([], context={"principal": "u-17"}).origin("u-17", before=0).source == "host"


def test_what_comes_later_is_not_an_origin() -> None:
    talk = Talk("t").user("hi").call("get", {"id": "A1"}).user("it is A2")
    assert [origin(talk, "A1", before=step) for step in (1, 2, 3)] == ["agent", "agent", "record"]
    assert origin(talk, "A2", before=3) == "agent"


def test_the_user_comes_before_a_record_and_a_record_before_free_text() -> None:
    talk = Talk("t").call("page", "send it to A100 and B200 at once, they said").call("get", {"ids": ["A100"]})
    assert [origin(talk, value) for value in ("A100", "B200")] == ["record", "content"]
    assert origin(talk.user("to A100"), "A100") == "user"


def test_events_may_be_added_between_questions() -> None:
    trajectory = Talk("t").user("hi").done()
    events = list(trajectory.events)
    provenance = Provenance(events)
    assert provenance.origin("A100", before=END).source == "agent"
    events += Talk("t").user("use A100").done().events
    assert provenance.origin("A100", before=END).step == 1


codes = st.integers(1000, 9999).map("AB{}".format)
words = st.sampled_from(["pay", "to", "the", "account", "café", "now"])


@given(
    st.recursive(
        codes,
        lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(words, inner, min_size=1, max_size=3),
    )
)
def test_every_leaf_of_a_record_is_a_field_of_it(data: Any) -> None:
    talk = Talk("t").call("get", {"data": data})
    for _, leaf in leaf_values(data):
        assert origin(talk, leaf) == "record"


@given(codes, st.lists(words, min_size=3, max_size=6))
def test_the_same_code_inside_a_sentence_is_free_text(code: str, sentence: list[str]) -> None:
    talk = Talk("t").call("get", {"note": " ".join([*sentence, code, *sentence])})
    assert origin(talk, code) == "content"


def test_identifiers_are_found_in_running_text() -> None:
    text = "Write to bob@mail.example, see www.shop-1.com/x\\n and quote AB-12. Two of 3 on 2024-05-15."
    assert identifiers(text) == ["bob@mail.example", "www.shop-1.com/x", "AB-12"]
    assert [is_identifier(value) for value in ("economy", "2024-05-20", "12:30", "42")] == [False] * 4


def test_atoms_name_their_path_and_leave_composed_text_out() -> None:
    call = {
        "flights": [{"number": "HAT1"}, {"number": "HAT2"}],
        "note": "see that AB-12 is sent to them today",
        "ok": True,
    }
    assert sorted(leaf_values(call)) == [("flights[].number", "HAT1"), ("flights[].number", "HAT2"), ("note", "AB-12")]
