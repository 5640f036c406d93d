"""What cases leave out is asked about: each word of an enumeration that a guard reads, and each bound of it."""

import json
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from bylaw.compile.check import Check
from bylaw.compile.pipeline import compile_pack
from bylaw.llm import Request
from tests.compile.shop import CARDS, CASES, LIMIT, THINGS, WINDOW, Scripted, source, unsettled

LEVELS = THINGS.replace("level: [none, gold]", "level: [none, gold, awaiting]")
"""A level that no sentence and no case names."""


def checked(chat: Scripted) -> Check:
    return compile_pack(source(), chat)[0].checks["refund-limit"]


def referee(want: str) -> Callable[[Request], str]:
    """Rules so on the word that no case has, and leaves open all else."""

    def answer(request: Request) -> str:
        rulings = json.loads(unsettled(request))["rulings"]
        return json.dumps({"rulings": [{**each, "want": want, "why": "it says so"} for each in rulings]})

    return answer


def test_a_word_that_no_case_has_becomes_a_case_as_the_referee_says() -> None:
    chat = Scripted(things=LEVELS, referee=referee("deny"))
    check = checked(chat)
    (asked,) = chat.asked("referee")
    assert "level: awaiting" in asked.messages[1].content
    (case,) = (each for each in check.cases if "awaiting" in str(each["facts"]))
    assert case["want"] == "deny"
    assert case["note"].startswith("Customer.level: awaiting")
    assert not check.questions


def test_a_guard_that_lets_the_word_through_is_mended() -> None:
    """All cases and both generations agree on `none` and `gold`, and neither says anything of a third level."""
    lax = LIMIT.replace('.level != "gold"', '.level == "none"')
    chat = Scripted(things=LEVELS, guards=WINDOW + lax, referee=referee("deny"), repair=LIMIT)
    check = checked(chat)
    assert '!= "gold"' in check.code
    assert len(chat.asked("repair")) == 1


def test_the_owner_is_asked_what_the_document_does_not_say() -> None:
    check = checked(Scripted(things=LEVELS))
    (question,) = check.questions
    assert question.about == "the document does not say"
    assert question.text == "Customer.level: awaiting: the guard says deny; not said"
    assert question.input is not None
    assert "call" in question.input


@pytest.mark.parametrize("limit", ["200.01", "500.01"])
def test_a_bound_that_no_case_meets_is_asked_about(limit: str) -> None:
    """Both cases at this bound are a dollar away from it."""
    far = CASES.replace(limit, "600.01").replace(limit.replace("01", "00") + '"}}', '100.00"}}')
    chat = Scripted(cases=far)
    check = checked(chat)
    assert any("at the bound of" in each.text and limit[:3] in each.text for each in check.questions), check.questions


def test_a_record_that_does_not_exist_and_an_argument_that_is_not_read_say_nothing_of_a_value() -> None:
    reason = {"type": "string", "enum": ["damaged", "late"]}
    refund = replace(CARDS["refund"], parameters={**CARDS["refund"].parameters, "reason": reason})
    chat = Scripted(things=LEVELS, referee=referee("deny"))
    compile_pack(replace(source(), cards={**CARDS, "refund": refund}), chat)
    for asked in chat.asked("referee"):
        situations = asked.messages[1].content.partition("The situations:")[2]
        assert "null" not in situations
        assert situations.count("number:") == 1, "one situation, for the level `awaiting`"


def test_a_guard_that_fails_where_a_record_has_no_value_is_mended() -> None:
    mended = WINDOW.replace("    if ", "    if facts.Order(call.order_id).delivered_on == None or ", 1)
    things = THINGS.replace("delivered_on: date", 'delivered_on: "date?"')
    chat = Scripted(things=things, repair=mended)
    compile_pack(source(), chat)
    assert "`Order.delivered_on` is `None`" in chat.asked("repair")[0].messages[1].content


def test_a_case_that_contradicts_a_tools_schema_is_sent_back() -> None:
    chat = Scripted(cases=CASES.replace("order_id: A1", "order_id: 1"))
    compile_pack(source(), chat)
    (told,) = (each.messages[-1].content for each in chat.asked("cases")[1:2])
    assert "does not fit the schema" in told
