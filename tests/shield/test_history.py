"""With a log a conversation goes on after a restart, in another worker, and reads in an audit as it was decided."""

import asyncio
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bylaw import Call, Message, Result, Trajectory, read, verdicts
from bylaw.engine.finished import is_judged
from bylaw.errors import BylawError
from bylaw.record import Log
from bylaw.record.entry import Anchor
from bylaw.record.journal import LogError
from bylaw.record.verify import verify
from bylaw.shield import Decision, LiveSession, Shield
from bylaw.shield.history import event_body, read_history
from bylaw.trace.event import Event
from bylaw.trace.transcript import chat_line
from tests.engine.clinic import conversations, pack
from tests.engine.test_conversation import FILES
from tests.shield.scenes import CANCEL, asked, looked_up, shop
from tests.stores import KEY

MEMBERSHIP = {"membership_id": "M878", "tier": "gold"}


def test_a_conversation_goes_on_after_a_restart(where: str) -> None:
    with Shield("clinic", log=where) as shield, shield.session("c") as session:
        assert asked(session).decide("cancel_appointment", CANCEL).answer == "look_up"
        session.result("look it up")
    with Log(str(where)) as log:
        looked_up(Shield("clinic", log=log).session("c"), "get_membership", {"membership_id": "M878"}, MEMBERSHIP)
    # What was not flushed is lost with a worker that dies: the membership was asked for, and no answer came.
    with Shield("clinic", log=where) as shield, shield.session("c") as session:
        session.result(MEMBERSHIP)
        decision = session.decide("cancel_appointment", CANCEL)
        assert (decision.id, decision.answer) == ("c/5", "allow")
        session.result({"ok": True})
    with Log(str(where)) as log:
        history = read_history(log.conversation("default", "c"))
        assert history is not None
        assert [each.answer for each in history.decisions] == ["allow", "allow", "look_up", "allow", "allow"]
        assert isinstance(history.events[-1], Result)


def test_nobody_decides_after_what_somebody_has_put_into_a_log(tmp_path: Path) -> None:
    where = str(tmp_path / "log.db")
    with Shield(shop(), log=where) as shield, shield.session("c") as session:
        session.decide("get_order", {"order_id": "7"})
        session.result({"order_id": "7", "returned": False})
    with sqlite3.connect(where) as connection:
        said = "replace(CAST(body AS TEXT), 'false', 'true')"
        changed = connection.execute(
            f"UPDATE entries SET body = CAST({said} AS BLOB) WHERE body <> CAST({said} AS BLOB)"
        )
        assert changed.rowcount > 0
    with Shield(shop(), log=where) as shield, pytest.raises(LogError, match="of conversation `c` was altered"):
        # By what stands there now the order was returned.
        shield.session("c").decide("refund", {"order_id": "7"})


def test_a_log_that_counts_otherwise_is_told_as_such_and_not_tried_again_and_again(tmp_path: Path) -> None:
    where = str(tmp_path / "log.db")
    with Shield(shop(), log=where) as shield:
        shield.session("c").decide("get_order", {"order_id": "7"})
    with sqlite3.connect(where) as connection:
        connection.execute("UPDATE conversations SET length = 1")
    with Shield(shop(), log=where) as shield:
        for session in (shield.session("c"), shield.session("c")):
            with pytest.raises(LogError, match="`c` is incomplete: it has 3 entries"):
                session.decide("refund", {"order_id": "7"})


EMPTY = "UPDATE entries SET conversation = NULL, position = NULL, id = NULL, body = NULL, salt = NULL"


@pytest.mark.parametrize("way", [EMPTY, "DELETE FROM entries"])
@pytest.mark.parametrize("others", [0, 3])
def test_nobody_decides_in_a_conversation_whose_end_was_taken_out(way: str, others: int, tmp_path: Path) -> None:
    where = str(tmp_path / "log.db")
    tools = FILES["tools.yaml"].replace("changes: []", "changes: [Order]")
    with Shield(shop(tools_yaml=tools), log=where) as shield, shield.session("c") as session:
        looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
        session.flush()
        assert shield.log is not None
        kept = shield.log.length_of("default", "c")
        assert session.decide("refund", {"order_id": "7"}).allowed
        for number in range(others):
            shield.session(f"other {number}").decide("get_order", {"order_id": "8"})
    with sqlite3.connect(where) as connection:
        connection.execute(f"{way} WHERE conversation = 'c' AND position >= ?", (kept,))
        connection.execute("UPDATE conversations SET length = ? WHERE name = 'c'", (kept,))
    with Shield(shop(tools_yaml=tools), log=where) as shield, pytest.raises(LogError, match="is incomplete"):
        # By what stands there now nothing was refunded.
        shield.session("c").decide("refund", {"order_id": "7"})


def test_where_conversations_were_removed_and_folded_others_go_on(where: str) -> None:
    with Shield(shop(), log=where) as shield:
        for name in ("a", "b", "c"):
            shield.session(name).decide("get_order", {"order_id": "7"})
    with Log(where) as log:
        (last,) = [entry for entry in log.entries("default") if entry.number == 3]
        for name in ("a", "c"):
            log.journal.store.remove("default", key=KEY, conversation=name)
        anchor = Anchor(last.time, "default", last.number, last.link.hex())
        folded = log.journal.store.fold("default", key=KEY, before=time.time(), anchors=[anchor])
        assert folded.until == 3
    with Shield(shop(), log=where) as shield:
        assert shield.session("b").decide("get_order", {"order_id": "7"}).allowed
        with pytest.raises(LogError, match="was removed"):
            shield.session("a").decide("get_order", {"order_id": "7"})


def test_a_decision_is_in_the_log_before_its_answer_leaves(where: str) -> None:
    shield = Shield(shop(), log=where)
    decision = shield.session("c").decide("refund", {"order_id": "7"})
    with Log(where) as other:
        history = read_history(other.conversation("default", "c"))
        assert history is not None
        (kept,) = history.decisions
        assert (kept.id, kept.answer, kept.look_ups) == (decision.id, "look_up", decision.look_ups)
        (call,) = history.events
        assert isinstance(call, Call)
        assert call.refused
    shield.close()
    with pytest.raises(BylawError, match="could not be read"):
        shield.session("c").decide("refund", {"order_id": "7"})


def test_two_workers_share_a_conversation(where: str) -> None:
    tools = FILES["tools.yaml"].replace("changes: []", "changes: [Order]")
    with Shield(shop(tools_yaml=tools), log=where) as one, Shield(shop(tools_yaml=tools), log=where) as two:
        here, there = one.session("c"), two.session("c")
        here.user("Refund 7.")
        assert here.decide("get_order", {"order_id": "7"}, id="a").allowed
        there.result({"order_id": "7", "returned": True}, id="a")
        assert there.decide("refund", {"order_id": "7"}, id="b").allowed
        # The first worker has not heard of it: its next decision is made on all that was written.
        assert here.decide("refund", {"order_id": "7"}, id="c").answer == "look_up"
        history = read_history(one.log.conversation("default", "c") if one.log else [])
        assert history is not None
        assert [type(event) for event in history.events] == [Message, Call, Result, Call, Call]


def test_threads_and_coroutines_decide_in_one_conversation(where: str) -> None:
    with Shield(shop(), log=where) as shield:
        sessions = [shield.session("c") for _ in range(4)]

        def ask(session: LiveSession) -> None:
            for _ in range(5):
                session.decide("get_order", {"order_id": "7"})

        threads = [threading.Thread(target=ask, args=(session,)) for session in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        async def ask_all() -> None:
            await asyncio.gather(*(sessions[0].decide_async("get_order", {"order_id": "7"}) for _ in range(5)))

        asyncio.run(ask_all())
        assert shield.log is not None
        history = read_history(shield.log.conversation("default", "c"))
        assert history is not None
        assert [each.id for each in history.decisions] == [f"c/{number}" for number in range(1, 26)]


def test_a_conversation_stays_under_the_pack_it_began_with(where: str) -> None:
    old = shop()
    stricter = 'def returned_first(call, facts):\n    return deny("no refunds any more")\n'
    new = shop(guards__g_py=stricter)
    with Shield(old, log=where) as shield, shield.session("c") as session:
        looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
    with Shield(new, log=where) as shield, pytest.raises(BylawError, match="began under"):
        shield.session("c").decide("refund", {"order_id": "7"})
    with Shield(new, log=where, earlier=[old]) as shield:
        assert shield.session("c").decide("refund", {"order_id": "7"}).allowed
        assert shield.session("d").decide("refund", {"order_id": "7"}).answer == "deny"


def test_what_the_host_vouched_for_does_not_change(where: str) -> None:
    with Shield(shop(), log=where) as shield:
        with shield.session("c", context={"caller": "P1"}) as session:
            session.user("Hello.")
        with pytest.raises(BylawError, match="a different context"):
            shield.session("c", context={"caller": "P2"}).user("Hello.")
        shield.session("c").user("Hello.")


@pytest.mark.parametrize(
    "arguments", [{"order_id": 2**70}, '{"order_id": 1e999}', {"order_id": "\ud800"}, {"a": float("nan")}]
)
def test_what_cannot_be_written_is_refused_and_the_conversation_goes_on(where: str, arguments: Any) -> None:
    with Shield(shop(), log=where) as shield:
        session = shield.session("c")
        session.user("\ud800 refund \x00")
        assert not session.decide("refund", arguments).allowed
        looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
        assert session.decide("refund", {"order_id": "7"}).allowed
        session.flush()
        assert shield.session("c").decide("refund", arguments).answer != "allow"


def follow(session: LiveSession, trajectory: Trajectory) -> list[Decision]:
    """Play a recorded conversation to a session: what is not allowed is refused, and the agent is told why."""
    found: list[Decision] = []
    refused: set[int] = set()
    holding: Any = None
    turn = -1
    for step, event in enumerate(trajectory.events):
        if not isinstance(event, Result) and event.turn != turn:
            turn = event.turn
            if holding is not None:
                holding.__exit__(None, None, None)
                holding = None
            if event.by == "agent":
                holding = session.turn()
                holding.__enter__()
        if isinstance(event, Message):
            session.user(event.text) if event.by == "user" else session.agent(event.text)
        elif isinstance(event, Call):
            decision = session.decide(event.tool, event.arguments, id=event.id)
            if is_judged(session.shield.pack, event):
                found.append(decision)
            if not decision.allowed:
                refused.add(step)
        else:
            assert event.call is not None
            call = trajectory.events[event.call]
            assert isinstance(call, Call)
            told = found[-1].feedback if event.call in refused else event.content
            session.result(told, id=call.id, error=event.error)
    if holding is not None:
        holding.__exit__(None, None, None)
    return found


SAYS = {"permit": ("allow",), "deny": ("deny",), "undetermined": ("look_up", "ask", "deny"), "failed": ("deny",)}


def test_the_audit_of_the_export_is_what_was_decided(where: str, tmp_path: Path) -> None:
    exported = tmp_path / "export.jsonl"
    decided: dict[str, list[Decision]] = {}
    live: dict[str, tuple[Event, ...]] = {}
    with Shield(pack(), log=where) as shield:
        for number, trajectory in enumerate(conversations()[:80]):
            with shield.session(f"c{number}", context={"channel": "phone"}) as session:
                decided[session.id] = follow(session, trajectory)
                live[session.id] = tuple(session.trajectory().events)
        assert shield.log is not None
        assert not verify(shield.log.journal.store, "default").faults
        with exported.open("wb") as out:
            for name in decided:
                history = read_history(shield.log.conversation("default", name))
                assert history is not None
                out.write(chat_line(history.trajectory(name)))
    refused = side_by_side = 0
    for trajectory in read(exported):
        assert isinstance(trajectory, Trajectory)
        assert trajectory.context == {"channel": "phone"}
        assert list(map(event_of, trajectory.events)) == list(map(event_of, live[trajectory.id]))
        told = verdicts(pack(), trajectory).calls
        assert len(told) == len(decided[trajectory.id])
        for verdict, decision in zip(told, decided[trajectory.id], strict=True):
            assert verdict.made.call.refused == (not decision.allowed)
            refused += verdict.made.call.refused
            side_by_side += verdict.made.call.refused and verdict.made.step > verdict.made.start
            grounds = {ground.policy: ground for ground in decision.grounds if ground.kind == "guard"}
            for policy in verdict.policies:
                ground = grounds.pop(policy.policy.id)
                assert ground.answer in SAYS[policy.evidence]
                assert {str(each.fact) for each in policy.missing if each.decisive} <= set(ground.missing)
            assert not grounds
            refused_by = {each.policy for each in decision.grounds if each.kind == "rule" and each.answer != "allow"}
            assert {finding.rule.policy for finding in (*verdict.rules, *verdict.open_rules)} == refused_by
    assert refused > 40
    assert side_by_side > 0


def event_of(event: Event) -> Any:
    """An event without what the export makes up: ids, and data as text."""
    written = msgspec.json.decode(event_body(event))
    written.pop("id", None)
    if "data" in written:
        written["text"] = msgspec.json.encode(written.pop("data")).decode()
    if "text" in written and isinstance(event, Result):
        written["text"] = event.value()
    return written
