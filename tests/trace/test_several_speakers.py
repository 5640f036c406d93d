"""Several may speak as `user`, told apart by name: the user is who spoke first, and nobody else's yes is theirs."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw import Pack, Shield, read, verdicts
from bylaw.trace import Trajectory
from bylaw.trace.event import Message
from bylaw.trace.messages import follow_messages
from bylaw.trace.transcript import Transcript

PACK = {
    "pack.yaml": "format: 1\nname: bank\ndocument: policy.md\n",
    "policy.md": "Money is moved only after the customer has confirmed it.\n",
    "tools.yaml": "tools:\n  transfer: {effect: write, put_as: 'transfer {amount} to {to}', "
    "parameters: {to: string, amount: string}, changes: []}\n",
    "policies.yaml": "policies:\n  - id: confirm\n    kind: rule\n"
    "    spans: [Money is moved only after the customer has confirmed it.]\n",
    "rules.yaml": "predicates:\n  change: {effect: write}\n  agreed: {consented: told}\n"
    "rules:\n  - {id: confirm, formula: ALWAYS (change IMPLIES agreed)}\n",
}
ARGS = {"to": "AC-22", "amount": "250.00"}
CALL = {"id": "1", "type": "function", "function": {"name": "transfer", "arguments": json.dumps(ARGS)}}


def said(text: str, name: str | None, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **({"name": name} if name else {}), **more}


def talk(first: str | None, second: str | None, **more: Any) -> list[dict[str, Any]]:
    ask = {"role": "assistant", "content": "Shall I transfer 250.00 to AC-22?"}
    return [said("Send 250 to AC-22.", first, **more), ask, said("Yes.", second, **more)]


SAME = [("alice", "alice"), (None, None)]
OTHER = [("alice", "bob"), ("alice", "planner_agent"), (None, "bob"), ("alice", None)]
SHAPES: list[dict[str, Any]] = [{}, {"timestamp": "2026-11-18T04:00:00Z"}]


@pytest.mark.parametrize("more", SHAPES)
@pytest.mark.parametrize(("first", "second"), SAME + OTHER)
def test_a_yes_counts_only_from_who_is_the_user(
    first: str | None, second: str | None, more: dict[str, Any], tmp_path: Path
):
    pack, messages = Pack.from_files(PACK), talk(first, second, **more)
    is_theirs = (first, second) in SAME
    session = Shield(pack).session("x")
    session.messages(messages)
    assert session.decide("transfer", ARGS).allowed is is_theirs
    # One message at a time, as a host may tell them.
    session = Shield(pack).session("y")
    for message in messages:
        session.messages([message])
    assert session.decide("transfer", ARGS).allowed is is_theirs
    path = tmp_path / "log.jsonl"
    path.write_text(
        json.dumps({"id": "a", "messages": [*messages, {"role": "assistant", "tool_calls": [CALL]}]}) + "\n"
    )
    (told,) = read(path)
    assert isinstance(told, Trajectory)
    assert not verdicts(pack, told).findings
    heard = [event for event in told.events if isinstance(event, Message) and event.by == "user"]
    assert [event.captured for event in heard] == [True, is_theirs]


def test_who_the_user_is_is_known_after_a_restart():
    before = Transcript()
    follow_messages(talk("alice", "alice")[:2], before)
    for name, is_theirs in (("alice", True), ("bob", False)):
        script = Transcript()
        script.resume(before.events)
        follow_messages([said("Yes.", name)], script)
        event = script.events[-1]
        assert isinstance(event, Message)
        assert event.captured is is_theirs


def test_what_the_host_tells_is_the_users():
    session = Shield(Pack.from_files(PACK)).session("x")
    session.messages(talk("alice", "alice")[:2])
    session.user("Yes.")
    assert session.decide("transfer", ARGS).allowed


def test_langchain_names_speakers_too():
    script = Transcript()
    human = [{"type": "human", "content": "Send 250.", "name": name} for name in (None, "researcher")]
    follow_messages(human, script)
    assert [event.captured for event in script.events if isinstance(event, Message)] == [True, False]
