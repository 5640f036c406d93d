"""Where the pack lets another principal go on, what was looked up stays, and nothing that was said, agreed to or
approved counts for them; an audit of the recorded conversation says the same."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from bylaw.engine.finished import verdicts
from bylaw.errors import UsageError
from bylaw.policy.tool import Postures
from bylaw.record import Log
from bylaw.record.verify import verify
from bylaw.shield import Decision, LiveSession, Shield
from bylaw.trace.event import Call, Confirmation, Event, Message, Result, Trajectory
from bylaw.trace.reader import read
from bylaw.trace.transcript import chat_line
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, PUT_REFUND, REFUND, desk
from tests.shield.scenes import looked_up, shop

OTHER = {"signed_in_as": "C2"}
ALLOWED = Postures(handover=True)
RENTAL = {"rental_id": "R1", "customer_id": "C2", "ends_on": "2026-11-18", "paid": "400.00", "refunded": "0.00"}
"""It is of whom the conversation is handed to."""


def open_desk(folder: Path, **given: Any) -> Shield:
    return desk(folder, log=folder / "log.db", postures=ALLOWED, **given)


def look_up(session: LiveSession, id: str = "look") -> None:
    assert session.decide("get_rental", {"rental_id": "R1"}, id=id).allowed
    session.result(RENTAL, id=id)


def extend(session: LiveSession, **more: Any) -> Decision:
    return session.decide("extend_rental", EXTEND, **more)


def agree(session: LiveSession, put: str = PUT_EXTEND) -> None:
    session.user("Please do it.")
    session.agent(put)
    session.user("Yes")


def test_what_was_looked_up_stays_and_what_was_agreed_does_not(tmp_path: Path) -> None:
    with open_desk(tmp_path) as shield:
        session = shield.session("c", context=CUSTOMER)
        look_up(session)
        agree(session)
        assert "another customer's rental" in extend(session).feedback
        assert session.vouch(OTHER)
        refused = extend(session)
        assert (refused.answer, refused.look_ups, refused.allowed) == ("ask", (), False)
        agree(session)
        assert extend(session).allowed
        assert session.id == "c"


def test_a_yes_to_what_was_put_to_the_first_is_no_yes_of_the_second(tmp_path: Path) -> None:
    with open_desk(tmp_path) as shield:
        session = shield.session("c", context=CUSTOMER)
        look_up(session)
        session.user("Please do it.")
        session.agent(PUT_EXTEND)
        session.vouch(OTHER)
        session.user("Yes")
        assert not extend(session).allowed


def test_a_call_that_nobody_asked_about_was_made_before_the_handover(tmp_path: Path) -> None:
    look = {"id": "look", "type": "function", "function": {"name": "get_rental", "arguments": '{"rental_id": "R1"}'}}
    with open_desk(tmp_path) as shield:
        session = shield.session("c", context=CUSTOMER)
        session.messages([{"role": "assistant", "content": None, "tool_calls": [look]}])
        session.vouch(OTHER)
        call, handover = session.trajectory().events
        assert isinstance(call, Call)
        assert call.id == "look"
        assert isinstance(handover, Message)
        assert handover.handover == OTHER
        # Its result is not that of a call of the second's.
        session.result(RENTAL, id="look")
        result = session.trajectory().events[-1]
        assert isinstance(result, Result)
        assert result.call == 0


def test_without_leave_of_the_pack_another_principal_is_refused(tmp_path: Path) -> None:
    with desk(tmp_path) as shield:
        session = shield.session("c", context=CUSTOMER)
        look_up(session)
        with pytest.raises(UsageError, match="opened with a different context"):
            session.vouch(OTHER)


def test_a_card_of_before_is_neither_confirmed_nor_used(tmp_path: Path) -> None:
    with open_desk(tmp_path) as shield:
        session = shield.session("c", context={"signed_in_as": "C2", "channel": "web"})
        look_up(session)
        session.user("Keep it until the 20th.")
        waiting, other = extend(session).card, session.decide("extend_rental", {**EXTEND, "new_end": "2026-11-21"}).card
        assert waiting is not None
        assert other is not None
        session.confirm(other, yes=True)
        session.vouch(CUSTOMER)
        session.vouch(OTHER)
        with pytest.raises(UsageError, match="has no card"):
            session.confirm(waiting, yes=True)
        assert not session.decide("extend_rental", {**EXTEND, "new_end": "2026-11-21"}).allowed
        anew = extend(session).card
        assert anew is not None
        assert anew.id != waiting.id
        session.confirm(anew, yes=True)
        assert extend(session).allowed
        # What was vouched for the first is not vouched for the second.
        assert session.context == OTHER


def test_an_approval_of_before_is_not_found_and_expires(tmp_path: Path) -> None:
    with Log(str(tmp_path / "log.db")) as log:
        shield = Shield(shop(), log=log, postures=ALLOWED)
        session = shield.session("c", context=CUSTOMER)
        looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7"})
        first = session.decide("refund", {"order_id": "7"})
        log.approve(first.approval, by="ann")
        session.vouch(OTHER)
        second = session.decide("refund", {"order_id": "7"})
        assert (second.answer, second.allowed) == ("ask", False)
        assert second.approval not in ("", first.approval)
        assert {each.id: each.status for each in log.approvals("default")}[first.approval] == "expired"
        log.approve(second.approval, by="ann")
        # Another worker finds the same.
        again = Shield(shop(), log=log, postures=ALLOWED).session("c", context=OTHER)
        assert again.decide("refund", {"order_id": "7"}).allowed
        assert verify(log.journal.store, "default").faults == ()


def test_one_that_is_approved_only_after_it_does_not_count_either(tmp_path: Path) -> None:
    with Log(str(tmp_path / "log.db")) as log:
        session = Shield(shop(), log=log, postures=ALLOWED).session("c", context=CUSTOMER)
        looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7"})
        first = session.decide("refund", {"order_id": "7"})
        session.vouch(OTHER)
        session.flush()
        log.approve(first.approval, by="ann")
        again = Shield(shop(), log=log, postures=ALLOWED).session("c", context=OTHER)
        assert not again.decide("refund", {"order_id": "7"}).allowed


def test_a_reason_that_the_first_gave_is_not_the_seconds(tmp_path: Path) -> None:
    with open_desk(tmp_path) as shield:
        session = shield.session("c", context=CUSTOMER)
        look_up(session)
        session.user("The car broke down.")
        session.vouch(OTHER)
        agree(session, PUT_REFUND)
        asked = session.decide("refund", REFUND)
        assert (asked.answer, [each.text for each in asked.questions][:1]) == (
            "ask",
            ["Why does the customer want the money back?"],
        )
        session.user("It was dirty.")
        agree(session, PUT_REFUND)
        assert session.decide("refund", REFUND).allowed


def test_what_has_to_come_first_comes_first_for_the_second_too(tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    desk(tmp_path)
    (folder / "rules.yaml").write_text(
        "predicates:\n  change: {effect: write}\n  looked: {tool: get_rental}\n"
        "rules:\n  - {id: confirm, formula: ALWAYS (change IMPLIES ONCE looked)}\n"
    )
    shield = Shield(folder, postures=ALLOWED)
    session = shield.session("c", context=OTHER)
    look_up(session)
    session.vouch(CUSTOMER)
    session.vouch(OTHER)
    assert extend(session).answer == "deny"
    look_up(session, "again")
    assert extend(session).allowed


def test_what_may_be_done_once_is_not_done_again_for_the_second(tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    desk(tmp_path)
    (folder / "rules.yaml").write_text(
        "predicates:\n  change: {effect: write}\n"
        "rules:\n  - {id: confirm, formula: ALWAYS (change IMPLIES NOT YESTERDAY ONCE change)}\n"
    )
    shield = Shield(folder, postures=ALLOWED)
    session = shield.session("c", context=OTHER)
    look_up(session)
    assert extend(session, id="w").allowed
    session.result({"extended": "R1"}, id="w")
    session.vouch(CUSTOMER)
    session.vouch(OTHER)
    assert session.decide("extend_rental", {**EXTEND, "new_end": "2026-11-25"}).answer == "deny"


def test_whoever_does_not_say_who_speaks_is_refused_from_then_on(tmp_path: Path) -> None:
    with open_desk(tmp_path) as shield:
        session = shield.session("c", context=CUSTOMER)
        look_up(session)
        session.vouch(OTHER)
        agree(session)
        session.flush()
        with pytest.raises(UsageError, match="does not name the current user"):
            extend(shield.session("c"))
        with pytest.raises(UsageError, match="does not name the current user"):
            shield.session("c", context={"locale": "de"}).user("Yes")
        with pytest.raises(UsageError, match="does not name the current user"):
            session.vouch({"locale": "de"})


def test_a_worker_that_speaks_for_the_first_never_acts_as_the_second(tmp_path: Path) -> None:
    with open_desk(tmp_path) as shield, open_desk(tmp_path) as elsewhere:
        first = shield.session("c", context=CUSTOMER)
        look_up(first)
        second = elsewhere.session("c", context=OTHER)
        agree(second)
        second.flush()
        refused = extend(first)
        assert "another customer's rental" in refused.feedback
        first.agent(PUT_EXTEND)
        first.user("Yes")
        first.flush()
        assert not extend(second).allowed


def test_what_messages_say_of_a_handover_hands_nothing_over(tmp_path: Path) -> None:
    with desk(tmp_path, postures=ALLOWED) as shield:
        told = [
            {"role": "user", "content": "", "handover": OTHER},
            {"role": "assistant", "content": None, "tool_calls": [call_of("get_rental", {"rental_id": "R1"}, "a")]},
            {"role": "tool", "tool_call_id": "a", "content": str(RENTAL)},
            {"role": "assistant", "content": PUT_EXTEND},
            {"role": "user", "content": "Yes"},
        ]
        decision = shield.decide(told, "extend_rental", EXTEND, context=CUSTOMER)
        assert "another customer's rental" in decision.feedback


def call_of(tool: str, arguments: Any, id: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": tool, "arguments": arguments}}


WRITES = (("extend_rental", EXTEND, PUT_EXTEND), ("refund", REFUND, PUT_REFUND))


def random_talk(session: LiveSession, chance: random.Random) -> None:
    """Anything that may happen, handovers among it."""
    look_up(session)
    for number in range(chance.randint(6, 16)):
        tool, arguments, put = chance.choice(WRITES)
        match chance.randrange(10):
            case 0:
                session.vouch(CUSTOMER)
            case 1 | 2:
                session.vouch(OTHER)
            case 3:
                session.user(chance.choice(["Yes", "No", "Please do it."]))
            case 4:
                session.user("The car broke down.")
            case 5:
                session.agent(put)
            case 6 | 7:
                decision = session.decide(tool, arguments, id=f"w-{number}")
                if decision.allowed:
                    session.result({"done": "R1"}, id=f"w-{number}")
                elif decision.card is not None and chance.random() < 0.6:
                    session.confirm(decision.card, yes=True)
            case _:
                agree(session, put)


@pytest.mark.parametrize("seed", range(40))
def test_the_second_may_do_what_they_might_in_a_conversation_that_begins_there(seed: int, tmp_path: Path) -> None:
    """Whatever was said, put, confirmed or decided before, what runs after a handover runs as it would in a
    conversation that begins there with the same look-ups; and an audit of the record has nothing against it."""
    shield = open_desk(tmp_path)
    chance = random.Random(seed)
    session = shield.session("c", context=chance.choice((CUSTOMER, OTHER)))
    random_talk(session, chance)
    session.flush()
    path = tmp_path / "talk.jsonl"
    path.write_bytes(chat_line(session.trajectory()))
    (recorded,) = read(path)
    assert isinstance(recorded, Trajectory)
    assert [kind_of(each) for each in recorded.events] == [kind_of(each) for each in session.trajectory().events]
    found = verdicts(shield.pack, recorded)
    assert not [each for each in found.calls if each.determined != "compliant" and not each.made.call.refused]
    assert not [each for each in found.findings if each.standing == "broken"]
    events = session.trajectory().events
    cut = max((at for at, each in enumerate(events) if kind_of(each)[1] is not None), default=0)
    fresh = desk(tmp_path, postures=ALLOWED).session("d", context=session.context)
    begin_with(fresh, events, cut)
    for number, (tool, arguments, _) in enumerate(WRITES):
        if session.decide(tool, arguments, id=f"x{number}").allowed:
            assert fresh.decide(tool, arguments, id=f"x{number}").allowed


def kind_of(event: Event) -> tuple[type, Any]:
    return type(event), event.handover if isinstance(event, Message) else None


def begin_with(fresh: LiveSession, events: Sequence[Event], cut: int) -> None:
    """What was done before a step, in silence, and all that came since."""
    cards: dict[str, str] = {}
    for step, event in enumerate(events):
        match event:
            case Call(refused=True):
                card = fresh.decide(event.tool, event.arguments, id=event.id).card if step > cut else None
                cards |= {event.card.id: card.id} if event.card is not None and card is not None else {}
            case Call():
                calls = [call_of(event.tool, event.arguments, event.id)]
                fresh.messages([{"role": "assistant", "content": None, "tool_calls": calls}])
            case Result():
                made = events[event.call or 0]
                assert isinstance(made, Call)
                if not made.refused:
                    assert isinstance(event.content, Raw | str)
                    content = event.content if isinstance(event.content, str) else bytes(event.content).decode()
                    fresh.messages([{"role": "tool", "tool_call_id": made.id, "content": content}])
            case Message(confirmation=Confirmation() as said) if step > cut:
                fresh.confirm(cards[said.card], yes=said.yes)
            case Message() if step > cut:
                (fresh.user if event.by == "user" else fresh.agent)(event.text)
            case _:
                pass


def test_another_principal_does_not_resume_an_interrupted_call(tmp_path: Path) -> None:
    with open_desk(tmp_path) as shield:
        first = shield.session("c", context=OTHER)
        look_up(first)
        agree(first)
        allowed = extend(first, id="k")
        assert allowed.allowed
        first.interrupt("k", allowed)
        first.flush()
    with open_desk(tmp_path) as shield:
        assert shield.session("c", context=OTHER).resume("k", "extend_rental", EXTEND) is not None
    with open_desk(tmp_path) as shield:
        assert shield.session("c", context=CUSTOMER).resume("k", "extend_rental", EXTEND) is None
