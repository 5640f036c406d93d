"""Messages that a host tells again happened once: no second yes, no fresh look-up, and no "no" that gets lost."""

from time import process_time
from typing import Any

import pytest

from bylaw import Pack, Shield
from bylaw.record import Log
from bylaw.shield import LiveSession
from bylaw.trace import Call, Message

FILES = {
    "pack.yaml": "{format: 1, name: fund, document: policy.md}",
    "policy.md": "An invoice is paid at most up to what is open of it.\nAsk before you pay.\n",
    "tools.yaml": "tools: {get_invoice: {effect: read, parameters: {invoice_id: string}}, pay_invoice: "
    "{effect: write, parameters: {invoice_id: string, amount: string}, changes: [Invoice.paid], "
    "put_as: 'pay {amount} of invoice {invoice_id}'}}",
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
LOOK: dict[str, Any] = {
    "id": "a",
    "type": "function",
    "function": {"name": "get_invoice", "arguments": '{"invoice_id": "I1"}'},
}
REQUEST: dict[str, Any] = {"role": "user", "content": "Pay invoice I1 please."}
LOOKED_UP: list[dict[str, Any]] = [
    {"role": "assistant", "content": None, "tool_calls": [LOOK]},
    {"role": "tool", "tool_call_id": "a", "content": '{"invoice_id": "I1", "total": "100.00", "paid": "0.00"}'},
]
QUESTION: dict[str, Any] = {"role": "assistant", "content": "I will pay 100.00 of invoice I1. Shall I go ahead?"}
YES: dict[str, Any] = {"role": "user", "content": "Yes."}
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
    again = [*history, {"role": "assistant", "content": "Shall I pay 100.00 of invoice I1?"}, YES]
    for _ in range(2):
        session.messages(again)
    assert words(session)[-2:] == ["Shall I pay 100.00 of invoice I1?", "Yes."]
    assert len(words(session)) == len(TALK) + 2


def test_a_look_up_that_is_told_again_is_as_old_as_it_was() -> None:
    session = Shield(PACK).session("c")
    session.messages(HISTORY)
    assert paid(session)
    session.messages(HISTORY)
    session.messages([{"role": "assistant", "content": "Shall I pay 100.00 of invoice I1?"}, YES])
    assert session.decide("pay_invoice", WHOLE, id="q").answer == "look_up"


def test_a_look_up_that_is_told_again_behind_a_summary_is_as_old_as_it_was() -> None:
    """The history was summed up before anything was recognised in it; later its ids and arguments are changed too."""
    files = {name: text for name, text in FILES.items() if name != "rules.yaml"}
    session = Shield(Pack.from_files(files | {"policies.yaml": "policies: []"})).session("c")
    summary = {"role": "assistant", "content": "Summary: the user wants to pay."}
    session.messages([REQUEST])
    assert session.decide("get_invoice", {"invoice_id": "I1"}, id="a").allowed
    session.messages([summary, REQUEST, *LOOKED_UP])
    assert session.decide("pay_invoice", WHOLE, id="p").allowed
    look = {**LOOK, "id": "r-a", "function": {"name": "get_invoice", "arguments": '{"invo'}}
    changed = [{**LOOKED_UP[0], "tool_calls": [look]}, {**LOOKED_UP[1], "tool_call_id": "r-a"}]
    session.messages([summary, *changed, QUESTION, YES])
    assert session.decide("pay_invoice", WHOLE, id="q").answer == "look_up"


def test_a_look_up_under_another_id_is_old_for_a_host_that_asks_about_look_ups() -> None:
    """Nothing in this history was told before: only that the host asks about look-ups tells that it makes none
    here."""
    files = {name: text for name, text in FILES.items() if name != "rules.yaml"}
    pack = Pack.from_files(files | {"policies.yaml": "policies: []"})
    renamed = [{**LOOKED_UP[0], "tool_calls": [{**LOOK, "id": "r-a"}]}, {**LOOKED_UP[1], "tool_call_id": "r-a"}]
    summary = {"role": "assistant", "content": "Summary: the user wants to pay."}
    with Log(":memory:") as log:
        shield = Shield(pack, log=log)
        session = shield.session("c")
        assert session.decide("get_invoice", {"invoice_id": "I1"}, id="a").allowed
        session.messages([summary, *LOOKED_UP])
        assert session.decide("pay_invoice", WHOLE, id="p").allowed
        session.messages([*renamed, QUESTION, YES])
        assert session.decide("pay_invoice", WHOLE, id="q").answer == "look_up"
        another = shield.session("c")
        another.messages([{**summary, "content": "The user agreed."}, *renamed])
        assert another.decide("pay_invoice", WHOLE, id="r").answer == "look_up"
        # A look-up that the host asks about is new.
        assert another.decide("get_invoice", {"invoice_id": "I1"}, id="b").allowed
        another.result(LOOKED_UP[1]["content"], id="b")
        assert another.decide("pay_invoice", WHOLE, id="s").allowed


def test_a_look_up_is_new_from_a_host_that_asks_about_payments_alone() -> None:
    files = {name: text for name, text in FILES.items() if name != "rules.yaml"}
    session = Shield(Pack.from_files(files | {"policies.yaml": "policies: []"})).session("c")
    session.messages(LOOKED_UP)
    assert paid(session)
    session.messages([{**LOOKED_UP[0], "tool_calls": [{**LOOK, "id": "b"}]}, {**LOOKED_UP[1], "tool_call_id": "b"}])
    assert paid(session, "q")


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
    session.messages([{"role": "assistant", "content": "Shall I pay 100.00 of invoice I1?"}, YES])
    session.messages([QUESTION, NO])
    assert session.decide("pay_invoice", WHOLE).answer != "allow"
    # An id does not show that it is the old one: some hosts begin to count anew in every turn.
    named = Shield(PACK).session("d")
    named.messages([REQUEST, *LOOKED_UP, QUESTION, NO])
    named.messages([{"role": "assistant", "content": "Shall I pay 100.00 of invoice I1?"}, YES])
    named.messages([REQUEST, *LOOKED_UP, QUESTION, NO])
    assert not paid(named)
    # A word that stands alone is a new one, however often it was said.
    waits = Shield(WORDS_ONLY).session("e")
    waits.messages([REQUEST, {"role": "assistant", "content": "One moment."}, {"role": "user", "content": "Wait."}])
    waits.messages([QUESTION, YES])
    waits.messages([{"role": "user", "content": "Wait."}])
    assert not paid(waits)


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


def called(id: str) -> list[dict[str, Any]]:
    return [
        {"role": "assistant", "content": None, "tool_calls": [{**LOOK, "id": id}]},
        {**LOOKED_UP[1], "tool_call_id": id},
    ]


PART = {"type": "text", "text": "I will pay 100.00 of invoice I1."}
CHANGED: dict[str, list[dict[str, Any]]] = {
    "a result cleared": [REQUEST, LOOKED_UP[0], {**LOOKED_UP[1], "content": "[cleared]"}, QUESTION, YES],
    "a result cut off": [REQUEST, LOOKED_UP[0], {**LOOKED_UP[1], "content": '{"invoice_id": "I1", ...'}, QUESTION, YES],
    "ids renamed": [REQUEST, *called("toolu_1"), QUESTION, YES],
    "a look-up left out": TALK,
    "a look-up more": [REQUEST, *LOOKED_UP, *called("b"), QUESTION, YES],
    "a refused call": [REQUEST, *LOOKED_UP, *said("p0"), QUESTION, YES],
    "words redacted": [{"role": "user", "content": "Pay invoice *** please."}, *LOOKED_UP, QUESTION, YES],
    "words in between redacted": [
        REQUEST,
        *LOOKED_UP,
        {"role": "assistant", "content": "I will ***. Shall I go ahead?"},
        YES,
    ],
    "the last words redacted": [REQUEST, *LOOKED_UP, QUESTION, {"role": "user", "content": "Y**."}],
    "words more": [REQUEST, *LOOKED_UP, {"role": "assistant", "content": "Let me see."}, QUESTION, YES],
    "a blank more": [REQUEST, *LOOKED_UP, {**QUESTION, "content": f"{QUESTION['content']}\n"}, YES],
    "in two parts": [
        *(REQUEST, *LOOKED_UP),
        {"role": "assistant", "content": [PART, {"type": "text", "text": " Shall I go ahead?"}]},
        YES,
    ],
    "summed up": [REQUEST, {"role": "user", "content": "Summary: I1 was looked up."}, QUESTION, YES],
    "its end after a summary": [{"role": "user", "content": "Summary: I1 may be paid."}, YES],
    "its end": [YES],
}


@pytest.mark.parametrize("again", CHANGED.values(), ids=CHANGED)
def test_a_history_that_comes_back_changed_is_no_second_yes(again: list[dict[str, Any]]) -> None:
    session = Shield(WORDS_ONLY).session("c")
    session.messages(HISTORY)
    assert paid(session)
    session.messages(again)
    assert not paid(session, "q")
    # What comes after it is heard, even where the host goes on to tell it so.
    for more in ([], [{"role": "assistant", "content": "Shall I pay 100.00 of invoice I1?"}], [YES]):
        again = [*again, *more]
        session.messages(again)
    assert words(session)[-2:] == ["Shall I pay 100.00 of invoice I1?", "Yes."]
    assert paid(session, "r")


def test_a_history_whose_opening_recurs_is_told_once() -> None:
    session, history = Shield(WORDS_ONLY).session("c"), [*HELLO, *HELLO, *TALK]
    for number in range(3):
        session.messages(history)
        assert paid(session, f"p{number}") == (number == 0)
    assert len(words(session)) == len(history)


def test_one_message_that_is_told_again_is_one() -> None:
    session = Shield(WORDS_ONLY).session("c")
    for _ in range(3):
        session.messages([REQUEST])
    assert words(session) == [REQUEST["content"]]


@pytest.mark.parametrize("id", ["", "p"])
@pytest.mark.parametrize("text", [None, "I pay it now."])
def test_a_call_at_the_end_of_a_history_is_the_one_that_is_asked_about(id: str, text: str | None) -> None:
    session = Shield(WORDS_ONLY).session("c")
    asked = {**said("p")[0], "content": text}
    session.messages([*TALK, asked])
    assert session.decide("pay_invoice", WHOLE, id=id).allowed
    session.result("paid", id=id)
    # Told with its result, it was made once.
    session.messages([*TALK, asked, said("p")[1], {"role": "assistant", "content": "Paid."}])
    assert [call.refused for call in session.trajectory().events if isinstance(call, Call)] == [False]
    assert words(session) == [each["content"] for each in TALK] + ([text] if text else []) + ["Paid."]


def test_calls_at_the_end_that_nobody_asks_about_were_made() -> None:
    for more in ([said("p")[1]], [{"role": "user", "content": "Thanks."}]):
        session = Shield(WORDS_ONLY).session("c")
        session.messages([*TALK, said("p")[0]])
        session.messages(more)
        assert sum(isinstance(event, Call) for event in session.trajectory().events) == 1
        assert not paid(session, "q")


def test_calls_side_by_side_at_the_end_are_of_one_turn() -> None:
    session = Shield(WORDS_ONLY).session("c")
    calls: list[dict[str, Any]] = [
        {**LOOK, "id": "a"},
        {**LOOK, "id": "b", "function": {**LOOK["function"], "arguments": '{"invoice_id": "I2"}'}},
    ]
    session.messages([REQUEST, {"role": "assistant", "content": None, "tool_calls": calls}])
    for id, invoice in (("b", "I2"), ("a", "I1")):
        assert session.decide("get_invoice", {"invoice_id": invoice}, id=id).allowed
        session.result({"invoice_id": invoice}, id=id)
    assert len({call.turn for call in session.trajectory().events if isinstance(call, Call)}) == 1


@pytest.mark.parametrize("other", ["q", "p2"])
def test_a_call_under_another_id_is_another_call(other: str) -> None:
    session = Shield(WORDS_ONLY).session("c")
    session.messages([*TALK, said("p")[0]])
    assert not paid(session, other)


def test_a_call_at_the_end_was_made_where_another_is_asked_about() -> None:
    session = Shield(WORDS_ONLY).session("c")
    session.messages([*TALK, said("p")[0]])
    assert session.decide("get_invoice", {"invoice_id": "I1"}, id="a").allowed
    session.result({"invoice_id": "I1"}, id="a")
    assert not paid(session, "")


def test_a_call_that_is_asked_about_with_other_arguments_is_the_one_of_its_id() -> None:
    session = Shield(WORDS_ONLY).session("c")
    session.messages([*TALK, said("p")[0]])
    assert not session.decide("pay_invoice", {**WHOLE, "amount": "900.00"}, id="p").allowed
    assert paid(session, "q")


def test_a_second_yes_to_the_same_question_is_heard_in_a_history_that_is_told_as_it_was() -> None:
    session = Shield(WORDS_ONLY).session("c")
    session.messages(TALK)
    assert paid(session)
    session.messages([*TALK, QUESTION, NO])
    assert not paid(session, "q")
    session.messages([*TALK, QUESTION, NO, QUESTION, YES])
    assert paid(session, "r")
    session.messages([*TALK, QUESTION, NO, QUESTION, YES])
    assert not paid(session, "s")
    session.messages([*TALK, QUESTION, NO, QUESTION, YES, QUESTION, YES])
    assert paid(session, "t"), "it is told as it was, and the last exchange is new"
    session.messages([QUESTION, YES])
    assert not paid(session, "u"), "the end of a history is no new yes"


def test_a_look_up_after_a_summary_is_as_old_as_it_was() -> None:
    session = Shield(PACK).session("c")
    session.messages(HISTORY)
    assert session.decide("pay_invoice", WHOLE, id="p").allowed
    session.messages([{"role": "user", "content": "Summary: the user wants an invoice paid."}, *LOOKED_UP])
    session.messages([{"role": "assistant", "content": "Shall I pay 100.00 of invoice I1?"}, YES])
    assert session.decide("pay_invoice", WHOLE, id="q").answer == "look_up"


def test_new_words_in_a_history_that_lacks_some_are_heard() -> None:
    session = Shield(WORDS_ONLY).session("c")
    session.messages([REQUEST, QUESTION, YES, {"role": "user", "content": "Well."}])
    session.messages([REQUEST, QUESTION, YES, {"role": "user", "content": "Forget it."}])
    assert words(session)[-1] == "Forget it."
    assert not session.decide("pay_invoice", WHOLE, id="p").allowed


def test_a_refused_call_that_the_host_leaves_out_makes_nothing_new() -> None:
    session = Shield(PACK).session("c")
    half = {"invoice_id": "I1", "amount": "60.00"}
    history: list[dict[str, Any]] = [REQUEST]
    session.messages(history)
    assert not session.decide("pay_invoice", half, id="v1").allowed
    session.messages(history)
    refused = session.decide("pay_invoice", half, id="v2")
    call = {"id": "v2", "type": "function", "function": {"name": "pay_invoice", "arguments": half}}
    history += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "v2", "content": refused.feedback},
        *LOOKED_UP,
    ]
    session.messages(history)
    session.messages(history)
    looks = [event for event in session.trajectory().events if isinstance(event, Call) and event.tool == "get_invoice"]
    assert len(looks) == 1


def test_a_history_that_was_changed_holds_nothing_new_up_to_the_last_words_that_are_known() -> None:
    session = Shield(WORDS_ONLY).session("c")
    declined = {"role": "assistant", "content": "I will not do it then."}
    session.messages([REQUEST, QUESTION])
    session.messages([REQUEST, QUESTION, declined])
    session.messages([QUESTION, YES])
    assert not paid(session), "the agent asked before it declined"
    session.messages([QUESTION, YES, {"role": "assistant", "content": "Shall I pay 100.00 of invoice I1?"}, YES])
    assert paid(session), "what is asked after it counts"


def test_words_before_the_call_that_waits_are_not_new() -> None:
    session = Shield(PACK).session("c")
    session.messages([REQUEST])
    session.decide("get_invoice", {"invoice_id": "I1"}, id="a")
    session.messages([{"role": "assistant", "content": "So far: nothing."}, REQUEST, *LOOKED_UP])
    session.messages([REQUEST, *LOOKED_UP, QUESTION, YES])
    assert paid(session)
    renamed = [{**LOOKED_UP[0], "tool_calls": [{**LOOK, "id": "r"}]}, {**LOOKED_UP[1], "tool_call_id": "r"}]
    session.messages([REQUEST, *renamed, QUESTION, YES, QUESTION, YES])
    assert session.decide("pay_invoice", WHOLE, id="q").answer == "look_up", "the look-up is older than the payment"


def test_what_somebody_else_said_is_not_new_after_a_handover() -> None:
    session = Shield(Pack.from_files(FILES | {"pack.yaml": FILES["pack.yaml"][:-1] + ", shield: {handover: true}}"}))
    live = session.session("c", context={"signed_in_as": "P1"})
    live.messages([YES])
    live.vouch({"signed_in_as": "P2"})
    live.messages([{"role": "assistant", "content": "So far: a yes."}, YES])
    assert words(live).count("Yes.") == 1


ROUND: dict[str, Any] = {
    "the same word": lambda number: (["a"] * number, ["a"] * number),
    "the same word after another": lambda number: (["a"] * number, ["b", *["a"] * (number - 1)]),
    "two words in turn": lambda number: (["a", "b"] * (number // 2), ["b", "a"] * (number // 2)),
    "an end that nearly fits": lambda number: (["a"] * number, [*["a"] * (number - 1), "b"]),
    "words that are all new": lambda number: (["a"] * number, [str(at) for at in range(number)]),
}


@pytest.mark.parametrize("kind", ROUND)
def test_a_history_that_goes_round_in_circles_costs_no_more_than_its_length(kind: str) -> None:
    """Four times as many messages take about four times as long, and not sixteen times."""

    def seconds(number: int) -> float:
        session = Shield(WORDS_ONLY).session("c")
        first, second = ([{"role": "user", "content": word} for word in words] for words in ROUND[kind](number))
        session.messages(first)
        begun = process_time()
        session.messages(second)
        return process_time() - begun

    ratios = (
        min(seconds(1600) for _ in range(times)) / min(seconds(400) for _ in range(times)) for times in (1, 2, 4, 8)
    )
    assert any(ratio < 9 for ratio in ratios)
