"""Limits that span conversations: counted in the log, held by every process, given back where a call did not run."""

import asyncio
import json
import subprocess
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bylaw.errors import PackError
from bylaw.pack import Pack
from bylaw.policy.tool import Postures
from bylaw.record import Conflict, Draft, Entry, Log
from bylaw.record.verify import verify
from bylaw.shield import LiveSession, Shield
from tests.command import environment
from tests.packs import made
from tests.ready import begin
from tests.stores import KEY

FILES = {
    "policy.md": "# Desk\n\nAt most three refunds an hour are made for one customer.\nA refund needs a paid order.\n",
    "pack.yaml": "format: 1\nname: desk\nversion: '1'\ndocument: policy.md\n",
    "policies.yaml": "policies:\n  - {id: few-refunds, spans: ['At most three refunds an hour']}\n",
    "entities.yaml": """entities:
  Order: {key: order_id, read: get_order, fields: {paid: boolean}}
context:
  signed_in_as: string
""",
    "tools.yaml": """tools:
  get_order: {effect: read, parameters: {order_id: string}}
  refund: {effect: write, parameters: {order_id: string, amount: string}, changes: []}
  note: {effect: write, parameters: {text: string}}
""",
    "rules.yaml": """limits:
  - {id: few-refunds, tool: refund, most: 3, within: 1h, per: context.signed_in_as}
""",
    "guards/desk.py": '''def paid(call: refund, facts):
    """A refund needs a paid order."""
    return permit() if facts.Order(call.order_id).paid else deny("it was not paid")
''',
}
REFUND = {"order_id": "O1", "amount": "5.00"}


@cache
def pack(limit: str = "", **files: str) -> Pack:
    rules = f"limits:\n  - {{id: few-refunds, {limit}}}\n" if limit else FILES["rules.yaml"]
    return made({**FILES, "rules.yaml": rules, **files})


def looked_up(shield: Shield, name: str, customer: str = "C1", agent: str = "") -> LiveSession:
    session = shield.session(name, context={"signed_in_as": customer} if customer else None, agent=agent)
    assert session.decide("get_order", {"order_id": "O1"}).allowed
    session.result({"order_id": "O1", "paid": True})
    return session


def refunds(shield: Shield, name: str, customer: str = "C1", agent: str = "") -> bool:
    session = looked_up(shield, name, customer, agent)
    decision = session.decide("refund", REFUND)
    if decision.allowed:
        session.result({"refunded": "5.00"})
        session.flush()
    return decision.allowed


def test_a_limit_counts_over_conversations_and_per_customer(where: str) -> None:
    with Log(where) as log, Shield(pack(), log=log) as shield:
        assert [refunds(shield, f"a{number}") for number in range(4)] == [True, True, True, False]
        assert refunds(shield, "b", "C2")
        session = looked_up(shield, "c")
        refused = session.decide("refund", REFUND)
        assert (refused.answer, refused.policies) == ("deny", ("few-refunds",))
        assert "3 of 3 calls were made in the last hour (per `signed_in_as`)" in refused.feedback
        assert 'The policy says: "At most three refunds an hour are made for one customer."' in refused.feedback
        assert verify(log.journal.store, "default").faults == ()


@pytest.mark.parametrize(
    ("per", "others"), [("tenant", False), ("agent", True), ("call.order_id", False), ("context.signed_in_as", False)]
)
def test_whose_count_it_is(per: str, others: bool, tmp_path: Path) -> None:
    made = pack(f"tool: refund, most: 1, within: 1h, per: {per}")
    with Log(str(tmp_path / "log.db")) as log, Shield(made, log=log) as shield:
        assert refunds(shield, "a", "C1", "night")
        assert refunds(shield, "b", "C1", "day") is others


@pytest.mark.parametrize(("one", "other"), [("AC-22", "AC22"), ("AC22", "AC_22"), ("AC-22", "AC_22")])
def test_who_may_be_the_same_is_counted_apart_and_asked_about(one: str, other: str, tmp_path: Path) -> None:
    with Shield(pack(), log=str(tmp_path / "d.db")) as shield:
        assert refunds(shield, "a", one)
        assert refunds(shield, "b", other)
        assert refunds(shield, "c", one)
        asked = looked_up(shield, "d", other).decide("refund", REFUND)
        assert (asked.answer, "may count for the same `signed_in_as`" in asked.grounds[0].because) == ("ask", True)
        assert refunds(shield, "e", "AC23")


@pytest.mark.parametrize(("one", "other"), [("P-1", "P1"), ("P1", "P-1"), ("P-1", "P_1")])
def test_two_spellings_of_a_name_never_both_take_the_last_place(one: str, other: str, where: str) -> None:
    made = pack("tool: refund, most: 1, within: 1h, per: context.signed_in_as")
    with Log(where) as log, Shield(made, log=log) as shield, Log(where) as elsewhere:
        first, append = looked_up(shield, "a", one), log.append

        def overtaken(drafts: Sequence[Draft]) -> list[Entry | Conflict]:
            """Another worker allows the other spelling after the places were counted, and writes first."""
            log.append = append
            with Shield(made, log=elsewhere) as worker:
                assert refunds(worker, "b", other)
            return append(drafts)

        log.append = overtaken
        decision = first.decide("refund", REFUND)
        assert (decision.allowed, decision.answer) == (False, "ask")
        assert verify(log.journal.store, "default").faults == ()


def test_a_place_that_was_given_back_is_given_back_to_who_may_be_the_same(tmp_path: Path) -> None:
    with Shield(pack(), log=str(tmp_path / "d.db")) as shield:
        for number in range(3):
            session = looked_up(shield, f"a{number}", "AC-22")
            assert session.decide("refund", REFUND).allowed
            session.result({"error": "no"}, refused=True) if number == 0 else session.result({"refunded": "5.00"})
            session.flush()
        assert refunds(shield, "b", "AC22")
        assert not refunds(shield, "c", "AC22")


def test_a_place_is_free_again_when_its_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pack("tool: refund, most: 1, within: 1h")
    now = [time.time()]
    monkeypatch.setattr(time, "time", lambda: now[0])
    with Log(str(tmp_path / "log.db")) as log, Shield(made, log=log) as shield:
        assert refunds(shield, "a")
        now[0] += 3599
        assert not refunds(shield, "b")
        now[0] += 2
        assert refunds(shield, "c")


def test_what_the_tool_refused_gives_its_place_back_and_what_nobody_knows_keeps_it(where: str) -> None:
    made = pack("tool: refund, most: 1, within: 1h")
    with Log(where) as log, Shield(made, log=log) as shield:
        session = looked_up(shield, "a")
        assert session.decide("refund", REFUND).allowed
        assert not refunds(shield, "b")
        session.result("Error: the till is closed", error=True, refused=True)
        session.flush()
        # Told of in another process, or after a restart, it is the same.
        lost = looked_up(shield, "c")
        assert lost.decide("refund", REFUND).allowed
        lost.result("", captured=False)
        lost.flush()
        assert not refunds(shield, "d")
        assert verify(log.journal.store, "default").faults == ()


def test_an_error_may_come_after_the_deed_and_keeps_its_place(tmp_path: Path) -> None:
    made = pack("tool: refund, most: 1, within: 1h")
    with Shield(made, log=str(tmp_path / "log.db")) as shield:
        session = looked_up(shield, "a")
        assert session.decide("refund", REFUND).allowed
        session.result("Object of type Decimal is not JSON serializable", error=True)
        assert not any(refunds(shield, name) for name in "bcd")


def test_a_place_that_was_given_back_is_there_for_the_next_call(tmp_path: Path) -> None:
    """Not only for the one after it: the refusal and the next decision are written together."""
    made = pack("tool: refund, most: 1, within: 1h")
    with Shield(made, log=str(tmp_path / "log.db")) as shield:
        session = looked_up(shield, "a")
        for _ in range(3):
            assert session.decide("refund", REFUND).allowed
            session.result("order not found", error=True, refused=True)
        assert session.decide("refund", REFUND).allowed
        session.result("refunded")
        assert not refunds(shield, "b")


def test_a_refusal_that_is_told_after_a_restart_gives_the_place_back(tmp_path: Path) -> None:
    made, path = pack("tool: refund, most: 1, within: 1h"), str(tmp_path / "log.db")
    with Shield(made, log=path) as shield:
        assert looked_up(shield, "a").decide("refund", REFUND, id="k1").allowed
    with Shield(made, log=path) as shield:
        shield.session("a").result("Error: the till is closed", id="k1", error=True, refused=True)
    with Shield(made, log=path) as shield:
        assert refunds(shield, "b")


def test_a_call_that_is_not_made_takes_no_place(tmp_path: Path) -> None:
    made = pack("tool: refund, most: 1, within: 1h")
    with Log(str(tmp_path / "log.db")) as log, Shield(made, log=log) as shield:
        session = shield.session("a")
        assert session.decide("refund", REFUND).answer == "look_up"
        assert refunds(shield, "b")


def test_the_calls_of_one_turn_share_what_is_left(tmp_path: Path) -> None:
    with Log(str(tmp_path / "log.db")) as log, Shield(pack(), log=log) as shield:
        assert [refunds(shield, name) for name in "ab"] == [True, True]
        session = looked_up(shield, "c")
        assert session.decide("get_order", {"order_id": "O2"}).allowed
        session.result({"order_id": "O2", "paid": True})
        calls = [("refund", REFUND, "k1"), ("refund", {**REFUND, "order_id": "O2"}, "k2")]
        first, second = session.decide_turn("", calls)
        assert (first.allowed, second.allowed, second.policies) == (True, False, ("few-refunds",))


def test_what_came_before_a_turn_is_seen_where_the_turn_is_decided_twice(tmp_path: Path) -> None:
    with Log(str(tmp_path / "log.db")) as log, Shield(pack(), log=log) as shield:
        # The look-up's result is told and not written yet.
        session = looked_up(shield, "a")
        log.stop("tool", "note", by="ann", reason="why", until=time.time() + 60)
        (decision,) = session.decide_turn("", [("refund", REFUND)])
        assert decision.allowed, decision.feedback


def test_beyond_a_limit_that_asks_a_person_may_say_yes_once(tmp_path: Path) -> None:
    made = pack("tool: refund, most: 1, within: 1h, over: ask")
    with Log(str(tmp_path / "log.db")) as log, Shield(made, log=log) as shield:
        assert refunds(shield, "a")
        session = looked_up(shield, "b")
        asked = session.decide("refund", REFUND)
        assert (asked.answer, asked.allowed) == ("ask", False)
        assert "Should one more call be made now?" in asked.for_person
        log.approve(asked.approval, by="ann")
        assert session.decide("refund", REFUND).allowed
        session.result({"refunded": "5.00"})
        assert not session.decide("refund", REFUND).allowed
        assert verify(log.journal.store, "default").faults == ()


def test_a_limit_in_shadow_counts_and_stops_nobody(tmp_path: Path) -> None:
    made = pack("tool: refund, most: 1, within: 1h")
    firmness = Postures(policies={"few-refunds": "shadow"})
    with Log(str(tmp_path / "log.db")) as log:
        with Shield(made, log=log, postures=firmness) as shield:
            assert [refunds(shield, name) for name in "ab"] == [True, True]
            assert looked_up(shield, "c").decide("refund", REFUND).answer == "deny"
        with Shield(made, log=log) as shield:
            assert not refunds(shield, "d")


def test_retention_leaves_what_still_counts_until_its_time_is_over(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pack("tool: refund, most: 1, within: 1h, per: context.signed_in_as")
    with Log(where) as log, Shield(made, log=log) as shield:
        assert refunds(shield, "a")
        undone = looked_up(shield, "b", "C2")
        assert undone.decide("refund", REFUND).allowed
        undone.result("the till is closed", error=True, refused=True)
        undone.flush()
        store, later = log.journal.store, time.time() + 60
        store.remove("default", key=KEY, before=later)
        assert store.conversations("default") == ["a"], "what was undone does not count"
        assert not refunds(shield, "c")
        clock = SimpleNamespace(time=lambda: time.time() + 3601)
        monkeypatch.setattr("bylaw.record.removal.clock", clock)
        store.remove("default", key=KEY, before=later)
        assert store.conversations("default") == []
        assert verify(store, "default", key=KEY).faults == ()


def test_what_cannot_be_counted_is_asked_and_never_allowed(tmp_path: Path) -> None:
    with Shield(pack()) as shield:
        decision = looked_up(shield, "").decide("refund", REFUND)
        assert (decision.answer, decision.allowed) == ("ask", False)
        assert "cannot be counted: the shield has no log" in decision.feedback
    with Log(str(tmp_path / "log.db")) as log, Shield(pack(), log=log) as shield:
        decision = looked_up(shield, "a", customer="").decide("refund", REFUND)
        assert (decision.answer, decision.allowed) == ("ask", False)
        assert "`signed_in_as` is unknown" in decision.feedback


@pytest.mark.parametrize("statement", ["DELETE FROM uses", "UPDATE uses SET conversation = 'other'"])
def test_a_count_that_was_tampered_with_is_seen(tmp_path: Path, statement: str) -> None:
    import sqlite3

    path = str(tmp_path / "log.db")
    with Shield(pack(), log=path) as shield:
        assert refunds(shield, "a")
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    with Log(path) as log:
        assert any("count against limits" in fault for fault in verify(log.journal.store, "default").faults)


def test_a_coroutine_counts_too(where: str) -> None:
    async def go(shield: Shield) -> list[bool]:
        sessions = [looked_up(shield, f"c{number}") for number in range(8)]
        decisions = await asyncio.gather(*(each.decide_async("refund", REFUND) for each in sessions))
        return [each.allowed for each in decisions]

    with Log(where) as log, Shield(pack(), log=log) as shield:
        assert sum(asyncio.run(go(shield))) == 3


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("tool: refund, most: 0, within: 1h", "is less than 1"),
        ("tool: refund, most: 1, within: soon", "not a duration"),
        ("tool: refnd, most: 1, within: 1h", "`refnd` is not a tool"),
        ("tool: refund, most: 1, within: 1h, per: moon", "counts per `moon`"),
        ("tool: refund, most: 1, within: 1h, per: call.ordr", "has no argument `ordr`"),
        ("tool: refund, most: 1, within: 1h, policy: none", "does not exist"),
        ("tool: refund, most: 1, within: 1h, over: allow", "over"),
    ],
)
def test_a_limit_that_says_nothing_is_a_fault_of_the_pack(limit: str, message: str) -> None:
    with pytest.raises(PackError) as raised:
        pack(limit)
    assert message in "\n".join(map(str, raised.value.faults))


WORKER = """
import json, sys
from bylaw.record import Conflict, Draft, Entry, Log
from bylaw.shield import Shield
from tests.shield.test_limits import pack, refunds

where, number = sys.argv[1:]
with Log(where, is_shared=True) as log, Shield(pack(), log=log) as shield:
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps([refunds(shield, f"w{number}-{turn}") for turn in range(6)]), flush=True)
"""


def test_processes_never_both_take_the_last_place(where: str) -> None:
    root = Path(__file__).parents[2]
    processes: list[Any] = [
        subprocess.Popen(
            [*begin("-c"), WORKER, where, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env=environment(),
        )
        for number in range(3)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [json.loads(process.communicate(timeout=250)[0]) for process in processes]
    assert sum(sum(each) for each in told) == 3
    with Log(where) as log:
        assert verify(log.journal.store, "default").faults == ()
