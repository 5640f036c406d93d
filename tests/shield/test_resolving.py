"""`resolve: live`: the shield looks up what is missing; the decision goes by it, the evidence does not."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bylaw import BylawError, Call, Result, Trajectory, read, verdicts
from bylaw.packs.clinic.simulator.desk import Desk
from bylaw.packs.clinic.simulator.world import build
from bylaw.policy.posture import Postures
from bylaw.record import Log
from bylaw.shield import Decision, Shield
from bylaw.shield.history import read_history
from bylaw.trace.chat_record import chat_line
from tests.command import bylaw
from tests.engine.clinic import conversations, pack
from tests.engine.test_conversation import FILES
from tests.shield.test_decisions import APPOINTMENT, CANCEL, PATIENT, asked, shop
from tests.shield.test_history import SAYS, follow

LIVE = Postures(resolve="live")
REFUND = {"order_id": "7"}


class Host:
    """The host's read tools."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        self.calls.append((tool, dict(arguments)))
        answer = self.answers[tool]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(("returned", "answer"), [(True, "allow"), (False, "deny")])
def test_the_shield_looks_up_what_the_agent_did_not(returned: bool, answer: str) -> None:
    host = Host(get_order={"order_id": "7", "returned": returned})
    session = Shield(shop(), postures=LIVE, tools=host).session()
    decision = session.decide("refund", REFUND)
    assert (decision.answer, [each.answer for each in decision.evidence]) == (answer, ["look_up"])
    assert [(each.tool, each.arguments, each.failed) for each in decision.resolved] == [("get_order", REFUND, False)]
    # The agent has not seen it: the audit says so, and the next call is looked up anew.
    (verdict,) = verdicts(session.shield.pack, session.trajectory(), mode="none").calls
    assert verdict.policies[0].evidence == "undetermined"
    session.decide("refund", REFUND)
    assert len(host.calls) == 2


def test_links_are_followed_one_after_the_other() -> None:
    host = Host(
        get_patient=PATIENT, get_appointment=APPOINTMENT, get_membership={"membership_id": "M878", "tier": "gold"}
    )
    session = Shield("clinic", postures=LIVE, tools=host).session()
    session.user("I'm ill and can't make A0362. I'm P121.")
    session.agent("I'm about to cancel A0362 with a fee of $0.00. Shall I go ahead?")
    session.user("Yes, please.")
    decision = session.decide("cancel_appointment", CANCEL)
    assert decision.answer == "allow"
    assert ("get_membership", {"membership_id": "M878"}) in host.calls
    assert len(decision.resolved) == 3


def test_a_look_up_that_fails_is_asked_of_a_person() -> None:
    decision = Shield(shop(), postures=LIVE, tools=Host(get_order=OSError("down"))).session().decide("refund", REFUND)
    assert (decision.answer, decision.allowed) == ("ask", False)
    assert (decision.resolved[0].failed, decision.resolved[0].content) == (True, "OSError: down")


def test_what_is_seen_already_is_not_looked_up(tmp_path: Path) -> None:
    host = Host(get_membership={"membership_id": "M878", "tier": "standard"})
    with Shield("clinic", postures=LIVE, tools=host, log=tmp_path / "decisions.db") as shield:
        decision = asked(shield.session("c")).decide("cancel_appointment", CANCEL)
    assert (decision.answer, host.calls) == ("deny", [("get_membership", {"membership_id": "M878"})])
    assert decision.grounds[0].because == "the fee is $40.00, not $0.00"


def test_a_broken_rule_is_not_mended_by_a_look_up() -> None:
    host = Host(
        get_patient=PATIENT, get_appointment=APPOINTMENT, get_membership={"membership_id": "M878", "tier": "gold"}
    )
    session = Shield("clinic", postures=LIVE, tools=host).session()
    session.user("Cancel A0362. I'm P121.")
    decision = session.decide("cancel_appointment", CANCEL)
    assert (decision.answer, decision.resolved) == ("deny", ())
    assert host.calls == []


def test_live_needs_tools() -> None:
    with pytest.raises(BylawError, match="needs the host's tools"):
        Shield(shop(), postures=LIVE)


TIERS: dict[str, tuple[Any, str, str]] = {
    "allow": ({"membership_id": "M878", "tier": "gold"}, "permit", "near_miss"),
    "deny": ({"membership_id": "M878", "tier": "standard"}, "deny", "violation"),
    "ask": (OSError("down"), "unknown", "uninformed"),
}


@pytest.mark.parametrize("answer", TIERS)
def test_the_audit_of_an_export_knows_what_the_shield_looked_up(tmp_path: Path, answer: str) -> None:
    shown, world, verdict = TIERS[answer]
    with Shield("clinic", postures=LIVE, tools=Host(get_membership=shown), log=tmp_path / "log.db") as shield:
        session = asked(shield.session("c"))
        decision = session.decide("cancel_appointment", CANCEL)
        assert decision.answer == answer
        session.result({"ok": True} if decision.allowed else decision.feedback)
        live = session.trajectory()
    assert bylaw(tmp_path, "log", "export", "--log", "log.db", "--out", "log.jsonl").returncode == 0
    bylaw(tmp_path, "audit", "log.jsonl", "--pack", "clinic", "--out", "out")
    lines = [json.loads(line) for line in (tmp_path / "out" / "calls.jsonl").read_text().splitlines()]
    (told,) = [each for each in lines[-1]["policies"] if each["id"] == "late-cancel-fee"]
    assert (told["evidence"], told["world"], told["determined"]) == ("undetermined", world, verdict)
    assert [(each["entity"], each["field"]) for each in told["missing"]] == [("Membership", "tier")]
    # The session tells of itself what the export does.
    (exported,) = read(tmp_path / "log.jsonl")
    assert isinstance(exported, Trajectory)
    assert [event.looked_up for event in exported.events if isinstance(event, Call)] == [(), (), decision.resolved]
    assert [event.looked_up for event in live.events if isinstance(event, Call)] == [(), (), decision.resolved]


def test_what_a_write_beside_it_may_have_changed_is_not_what_was_looked_up(tmp_path: Path) -> None:
    tools = FILES["tools.yaml"].replace("changes: []", "changes: [Order]")
    host = Host(get_order={"order_id": "7", "returned": True})
    with Shield(shop(tools_yaml=tools), postures=LIVE, tools=host).session("c") as session:
        first, second = session.decide_turn("Twice.", [("refund", REFUND, "a"), ("refund", REFUND, "b")])
        # What the first changes can be looked up only after it.
        assert (first.answer, second.answer) == ("allow", "look_up")
        one, two = verdicts(session.pack, session.trajectory()).calls
    assert [one.policies[0].world, two.policies[0].world] == ["permit", "undetermined"]
    assert [one.determined, two.determined] == ["near_miss", "uninformed"]


def test_the_audit_of_an_export_is_what_was_decided_with_what_was_looked_up(tmp_path: Path) -> None:
    desk, exported, count = Desk(build()), tmp_path / "export.jsonl", Counter[str]()
    decided: dict[str, list[Decision]] = {}
    with Log(str(tmp_path / "log.db")) as log, exported.open("wb") as out:
        shield = Shield(pack(), postures=LIVE, tools=lambda tool, given: desk.call(tool, dict(given)), log=log)
        for number, trajectory in enumerate(conversations()[:80]):
            with shield.session(f"c{number}", context={"channel": "phone"}) as session:
                # A hasty agent: what it had looked up it has not.
                decided[session.id] = follow(session, hasty(trajectory))
            history = read_history(log.conversation("default", session.id))
            assert history is not None
            out.write(chat_line(history.trajectory(session.id)))
    for trajectory in read(exported):
        assert isinstance(trajectory, Trajectory)
        told = verdicts(pack(), trajectory).calls
        for verdict, decision in zip(told, decided[trajectory.id], strict=True):
            grounds = {ground.policy: ground.answer for ground in decision.grounds if ground.kind == "guard"}
            before = {ground.policy: ground.answer for ground in decision.evidence if ground.kind == "guard"}
            for policy in verdict.policies:
                name, world = policy.policy.id, policy.world
                assert (before or grounds)[name] in SAYS[policy.evidence]
                if before and before[name] == "look_up" and grounds[name] in ("allow", "deny"):
                    assert world == ("permit" if grounds[name] == "allow" else "deny")
                    assert policy.determined == ("near_miss" if grounds[name] == "allow" else "violation")
                    count[grounds[name]] += 1
    assert min(count["allow"], count["deny"]) > 10, count


def hasty(trajectory: Trajectory) -> Trajectory:
    """The same conversation, and nothing was looked up in it."""
    reads = {name for name, tool in pack().schema.tools.items() if tool.effect == "read"}
    events, steps = trajectory.events, dict[int, int]()
    kept = []
    for step, event in enumerate(events):
        if isinstance(event, Call) and event.tool in reads:
            continue
        if isinstance(event, Result):
            if event.call not in steps:
                continue
            event = replace(event, call=steps[event.call])
        steps[step] = len(kept)
        kept.append(event)
    return replace(trajectory, events=kept)
