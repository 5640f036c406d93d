"""What a model is shown of an open consent, what it is not asked at all, and what its answer may rest on."""

import re
from collections.abc import Sequence

import msgspec
import pytest

from bylaw import Pack, verdicts
from bylaw.answering.consent import consent_answer, consent_request
from bylaw.consent import OpenConsent
from bylaw.engine.predicate_values import Answered
from bylaw.llm import Answer
from bylaw.pack.predicate import Predicate
from bylaw.rule.monitor import Act
from bylaw.trace import Trajectory
from bylaw.trace.event import Call, Card, Confirmation, Event, Message, Result
from tests.answering.test_consent import FILES

CALL = Call("cancel_order", {"order_id": "R-7"}, turn=9)
ASKED, YES = Message("agent", "So R-7 goes, right?", 1), Message("user", "Mhm, off with it.", 2)


class Reader:
    """Says yes to whatever it is asked, and takes down what it was shown."""

    def __init__(self, pack: Pack, events: Sequence[Event]) -> None:
        self._pack, self._events = pack, events
        self.shown: list[str] = []
        self.others: list[str] = []
        self._asked: list[tuple[Predicate, Act]] = []

    def __call__(self, name: str, act: Act) -> bool:
        self.others.append(name)
        return True

    def consented(self, predicate: Predicate, act: Act, question: OpenConsent) -> Answered:
        self._asked.append((predicate, act))
        request = consent_request(self._pack, predicate, act, question, self._events)
        self.shown.append(request.messages[1].content)
        return Answered(predicate.name, act.step, True)

    def quoting(self, step: int, text: str) -> bool | None:
        """What a yes that quotes these words settles of the last question."""
        said = msgspec.json.encode({"answer": "yes", "quotes": [{"step": step, "text": text}], "because": "."})
        return consent_answer(*self._asked[-1], Answer(said.decode()), self._events).value


def pack_with(beside: str = "", consented: str = "told") -> Pack:
    rules = FILES["rules.yaml"].replace("consented: told", f"consented: {consented}{beside}")
    return Pack.from_files({**FILES, "rules.yaml": rules})


def read(*events: Event, pack: Pack | None = None) -> Reader:
    pack = pack or pack_with()
    reader = Reader(pack, events)
    verdicts(pack, Trajectory("c", events), answer=reader)
    return reader


def shown(*events: Event, pack: Pack | None = None) -> str:
    *_, text = read(*events, pack=pack).shown
    return text


def test_the_call_is_shown_with_what_its_tool_does_and_what_the_pack_spares() -> None:
    call = Call("cancel_order", {"order_id": "R-7", "channel": "chat"}, turn=9)
    text = shown(ASKED, YES, call, pack=pack_with(", need_not_be_told: [channel]"))
    assert text.endswith(
        'The call:\ncancel_order({"channel":"chat","order_id":"R-7"})\nWhat the tool does: Cancels an order.\n'
        "Need not be told: channel\n\nHad the customer agreed to this call?"
    )
    assert "Need not be told" not in shown(ASKED, YES, call)


def test_a_look_up_is_shown_only_around_values_that_nobody_mentioned() -> None:
    filler = "x" * 2000
    found = Result(0, f'{filler} {{"card_id": "c4", "card": "Visa 3310"}} {filler} {{"id": "R-7", "sum": 58}} {filler}')
    look, other = Call("find", {}, turn=0), Result(0, '{"id": "R-71", "cards": ["c44"]}', tool="find")
    pack = Pack.from_files({**FILES, "tools.yaml": FILES["tools.yaml"] + "  find: {effect: read, parameters: {}}\n"})
    found = msgspec.structs.replace(found, tool="find")
    call = Call("cancel_order", {"order_id": "R-7", "channel": "c4"}, turn=9)
    text = shown(look, found, other, ASKED, YES, call, pack=pack)
    assert "Visa 3310" in text
    assert "58" not in text, "R-7 was mentioned"
    assert filler[:300] not in text
    assert "[2] tool" not in text, "R-71 is not R-7, and c44 is not c4"


@pytest.mark.parametrize("error", [True, None])
def test_what_became_of_an_earlier_change_is_shown(error: bool | None) -> None:
    first = Call("cancel_order", {"order_id": "R-8"}, turn=3)
    text = shown(ASKED, YES, first, Result(2, "the desk is shut", error, tool="cancel_order"), CALL)
    assert f"[3] tool{' (it failed)' if error else ''}: the desk is shut" in text


def test_what_was_not_recorded_and_answers_on_cards_are_told_and_cannot_be_quoted() -> None:
    card = Card("k", "d", "Please confirm: cancel order R-9")
    refused = Call("cancel_order", {"order_id": "R-9"}, turn=0, refused=True, card=card)
    lost, on_card = Message("user", "", 3, captured=False), Message("user", "", 4, confirmation=Confirmation("k", True))
    reader = read(refused, ASKED, lost, on_card, Message("agent", "And R-7?", 5), YES, CALL)
    *_, text = reader.shown
    assert "[2] user: (what was said was not recorded)" in text
    assert "[3] user: (answers yes on a card: Please confirm: cancel order R-9)" in text
    assert reader.quoting(2, "what was said was not recorded") is None
    assert reader.quoting(3, "answers yes") is None
    assert reader.quoting(5, "off with it") is True
    assert reader.quoting(4, "And R-7?") is None


def test_a_request_is_enough_only_where_the_pack_says_so() -> None:
    assert "For this policy a request is enough" in shown(ASKED, YES, CALL, pack=pack_with(consented="requested"))
    assert "a request is enough" not in shown(ASKED, YES, CALL)


def test_the_last_exchange_is_whole_and_earlier_messages_are_short() -> None:
    said = [Message(("agent", "user")[at % 2], f"line {at} " + "la " * 3000, at) for at in range(40)]
    long = Message("agent", "begin " + "la " * 3000 + "So R-7 goes, right?", 50)
    text = shown(*said, long, YES, CALL)
    assert len(text) < 20_000
    assert f"[40] agent: {long.text}\n[41] user: Mhm, off with it." in text
    assert re.search(r"\[39\] user: line 39 la.{300,1000}\n", text)
    assert re.search(r"\[2\] agent: line 2 la.{50,150}\n", text)
    many = [Message(("agent", "user")[at % 2], f"{at} " * 80, at) for at in range(400)]
    text = shown(*many, long, YES, CALL)
    assert len(text) < 35_000
    assert "earlier pieces are left out here)\n[" in text


def test_what_is_repeated_is_shown_where_it_was_said_last() -> None:
    terms = "Cancelling order R-7 costs 12.00 and cannot be undone."
    first = Message("agent", f"Let me see.\n{terms}\nShall I?", 1)
    text = shown(first, Message("user", "What about R-8?", 2), Message("agent", f"No.\n{terms}\nR-7?", 3), YES, CALL)
    assert text.count(terms) == 1
    assert text.index(terms) > text.index("What about R-8?")


def test_what_is_too_old_or_may_be_done_already_is_no_question() -> None:
    late = msgspec.structs.replace(CALL, time=2e6)
    old = [msgspec.structs.replace(each, time=1e6) for each in (ASKED, YES)]
    tools = FILES["tools.yaml"].replace("channel: string", "channel: string, reason: string")
    twice = msgspec.structs.replace(CALL, arguments={"order_id": "R-7", "reason": "b"})
    again = msgspec.structs.replace(CALL, arguments={"order_id": "R-7", "reason": "a"}, turn=8)
    done = (ASKED, YES, again, Result(2, "cancelled", tool="cancel_order"), twice)
    for events, reason, at in (((*old, late), "expired", 0), (done, "perhaps_spent", 1)):
        pack = Pack.from_files({**FILES, "tools.yaml": tools})
        reader = Reader(pack, events)
        found = verdicts(pack, Trajectory("c", events), answer=reader).calls[at]
        assert [each["reason"] for _, each in found.open_rules[0].whys] == [reason]
        assert not reader.others
        assert len(reader.shown) == at
