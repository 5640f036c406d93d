"""Messages that a host tells again happened once: no second yes, no fresh look-up, and no "no" that gets lost."""

from typing import Any

import pytest

from bylaw import Pack, Shield
from bylaw.shield import LiveSession
from bylaw.trace import Message

FILES = {
    "pack.yaml": "{format: 1, name: fund, document: policy.md}",
    "policy.md": "An invoice is paid at most up to what is open of it.\nAsk before you pay.\n",
    "tools.yaml": "tools: {get_invoice: {effect: read, parameters: {invoice_id: string}}, pay_invoice: "
    "{effect: write, parameters: {invoice_id: string, amount: string}, changes: [Invoice.paid]}}",
    "entities.yaml": "entities: {Invoice: {key: invoice_id, read: get_invoice, fields: {total: money, paid: money}}}",
    "policies.yaml": "policies: [{id: confirm, kind: rule, spans: [Ask before you pay.]}]",
    "rules.yaml": "predicates: {change: {effect: write}, agreed: {consented: told}}\n"
    "rules: [{id: confirm, formula: ALWAYS (change IMPLIES agreed), hard: true}]",
    "guards/g.py": "def open_amount(call: pay_invoice, facts):\n"
    '    """An invoice is paid at most up to what is open of it."""\n'
    "    i = facts.Invoice(call.invoice_id)\n"
    '    return permit() if money(call.amount) <= i.total - i.paid else deny("more than is open")\n',
}
PACK = Pack.from_files(FILES)
WORDS_ONLY = Pack.from_files({name: text for name, text in FILES.items() if name != "guards/g.py"})
LOOK = {"id": "a", "type": "function", "function": {"name": "get_invoice", "arguments": '{"invoice_id": "I1"}'}}
REQUEST = {"role": "user", "content": "Pay invoice I1 please."}
LOOKED_UP = [
    {"role": "assistant", "content": None, "tool_calls": [LOOK]},
    {"role": "tool", "tool_call_id": "a", "content": '{"invoice_id": "I1", "total": "100.00", "paid": "0.00"}'},
]
QUESTION = {"role": "assistant", "content": "I will pay 100.00 of invoice I1. Shall I?"}
YES = {"role": "user", "content": "Yes."}
NO = {"role": "user", "content": "No."}
HISTORY: list[dict[str, Any]] = [REQUEST, *LOOKED_UP, QUESTION, YES]
TALK = [REQUEST, QUESTION, YES]
WHOLE = {"invoice_id": "I1", "amount": "100.00"}


def paid(session: LiveSession, id: str = "p") -> bool:
    decision = session.decide("pay_invoice", WHOLE, id=id)
    if decision.allowed:
        session.result("paid", id=id)
    return decision.allowed


def said(id: str) -> list[dict[str, Any]]:
    """The payment as the host has it in its history."""
    call = {"id": id, "type": "function", "function": {"name": "pay_invoice", "arguments": WHOLE}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": "paid"},
    ]


def words(session: LiveSession) -> list[str]:
    return [event.text for event in session.trajectory().events if isinstance(event, Message) and event.captured]


@pytest.mark.parametrize(("pack", "history"), [(PACK, HISTORY), (WORDS_ONLY, TALK)])
@pytest.mark.parametrize("has_payments", [False, True])
def test_one_yes_is_one_payment_however_often_it_is_told(
    pack: Pack, history: list[dict[str, Any]], has_payments: bool
) -> None:
    session = Shield(pack).session("c")
    session.messages(history)
    assert paid(session)
    session.messages([*history, *said("p")] if has_payments else history)
    assert words(session) == [each["content"] for each in history if each["role"] != "tool" and each["content"]]
    assert not paid(session, "q")
    # What is new after it is heard, and told again it still happened once.
    again = [*history, {"role": "assistant", "content": "Once more 100.00 of I1. Shall I?"}, YES]
    for _ in range(2):
        session.messages(again)
    assert words(session)[-2:] == ["Once more 100.00 of I1. Shall I?", "Yes."]
    assert len(words(session)) == len(TALK) + 2


def test_a_look_up_that_is_told_again_is_as_old_as_it_was() -> None:
    session = Shield(PACK).session("c")
    session.messages(HISTORY)
    assert paid(session)
    session.messages(HISTORY)
    session.messages([{"role": "assistant", "content": "I will pay 100.00 of invoice I1 again. Shall I?"}, YES])
    assert session.decide("pay_invoice", WHOLE, id="q").answer == "look_up"


def test_a_whole_history_that_grows_is_followed() -> None:
    session = Shield(PACK).session("c")
    for length in range(1, len(HISTORY) + 1):
        session.messages(HISTORY[:length])
    assert words(session) == ["Pay invoice I1 please.", QUESTION["content"], "Yes."]
    assert paid(session)


def test_what_may_have_been_said_once_more_is_not_known() -> None:
    """`No.` may be the old one or another; a yes since then must not outlive it."""
    session = Shield(WORDS_ONLY).session("c")
    session.messages([QUESTION, NO])
    session.messages([{"role": "assistant", "content": "Shall I pay 100.00 of invoice I1 now?"}, YES])
    session.messages([QUESTION, NO])
    assert session.decide("pay_invoice", WHOLE).answer != "allow"
    # An id shows that it is the old one.
    sure = Shield(PACK).session("d")
    sure.messages([REQUEST, *LOOKED_UP, QUESTION, NO])
    sure.messages([{"role": "assistant", "content": "Shall I pay 100.00 of invoice I1 now?"}, YES])
    sure.messages([REQUEST, *LOOKED_UP, QUESTION, NO])
    assert paid(sure)


HELLO = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello!"}]
SUMMARY = {"role": "user", "content": "So far: the user said hello and wants invoice I1 to be paid."}


@pytest.mark.parametrize("end", [[QUESTION, YES], TALK, [SUMMARY, QUESTION, YES], [SUMMARY, *TALK]])
@pytest.mark.parametrize("more", [[], [{"role": "assistant", "content": "Done."}]])
def test_the_end_of_a_history_and_one_that_was_summed_up_are_no_second_yes(
    end: list[dict[str, Any]], more: list[dict[str, Any]]
) -> None:
    session = Shield(WORDS_ONLY).session("c")
    session.messages([*HELLO, *TALK])
    assert paid(session)
    session.messages([*end, *more])
    assert session.decide("pay_invoice", WHOLE, id="q").answer != "allow"


def test_new_words_between_make_the_same_question_another() -> None:
    session = Shield(WORDS_ONLY).session("c")
    session.messages([*HELLO, QUESTION, YES])
    assert paid(session)
    session.messages([{"role": "user", "content": "And the second half of it."}])
    session.agent(QUESTION["content"])
    session.user("Yes.")
    assert paid(session, "q")
