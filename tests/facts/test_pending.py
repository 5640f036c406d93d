"""What writes of the same turn leave open: the old value or the new one, known where they are the same."""

import json
from typing import Any

import pytest

from bylaw.engine.session import Session
from bylaw.pack import Pack, load_pack
from bylaw.trace.event import Call, Event, Result

FILES = {
    "pack.yaml": "format: 1\nname: p\ndocument: policy.md\n",
    "policy.md": "Only economy is refunded. Nobody pays more than they have.\n",
    "policies.yaml": """policies:
  - {id: only-economy, tools: [refund], spans: [{quote: Only economy is refunded.}]}
  - {id: covered, tools: [pay], spans: [{quote: Nobody pays more than they have.}]}
""",
    "tools.yaml": """tools:
  get_trip: {effect: read, parameters: {trip_id: string}}
  set_cabin:
    effect: write
    parameters: {trip_id: string, cabin: string}
    changes: [Trip.cabin]
    effects: [{as: Trip, key: $args.trip_id, set: {cabin: $args.cabin}}]
  upgrade: {effect: write, parameters: {trip_id: string}, changes: [Trip.cabin]}
  charge:
    effect: write
    parameters: {trip_id: string, amount: number}
    changes: [Trip.credit]
    effects: [{as: Trip, key: $args.trip_id, set: {credit: {minus: $args.amount}}}]
  refund: {effect: write, parameters: {trip_id: string}, changes: []}
  pay: {effect: write, parameters: {trip_id: string, amount: number}, changes: []}
""",
    "entities.yaml": """entities:
  Trip: {key: trip_id, read: get_trip, fields: {cabin: string, credit: money}}
observations:
  get_trip: [{as: Trip}]
""",
}
GUARDS = """def only_economy(call, facts):
    if facts.Trip(call.trip_id).cabin == "economy":
        return permit()
    return deny("not economy")


def covered(call, facts):
    if facts.Trip(call.trip_id).credit >= call.amount:
        return permit()
    return deny("not covered")
"""


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    folder = tmp_path_factory.mktemp("pending")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "guards").mkdir()
    (folder / "guards" / "g.py").write_text(GUARDS)
    return load_pack(folder)


def said(
    pack: Pack,
    writes: list[tuple[str, dict[str, Any]]],
    *,
    look: str = '{"trip_id": "T", "cabin": "economy", "credit": 10}',
) -> tuple[str, str]:
    """The evidence on the last of some calls of one turn, and why the fact it hangs on is missing."""
    events: list[Event] = [Call("get_trip", {"trip_id": "T"}, turn=1), Result(0, look)]
    events += [Call(tool, {"trip_id": "T", **arguments}, turn=2) for tool, arguments in writes]
    session = Session(pack)
    *before, last = events
    for event in before:
        session.observe(event)
    assert isinstance(last, Call)
    outcomes = {c.outcome for evidence in session.judge(last).evidence for c in evidence.completions}
    session.observe(last)
    (policy,) = session.settle()[-1].policies
    return "/".join(sorted(outcomes)), ", ".join(missing.reason for missing in policy.missing if missing.decisive)


@pytest.mark.parametrize(
    ("writes", "evidence", "reason"),
    [
        ([("refund", {})], "permit", ""),
        ([("set_cabin", {"cabin": "economy"}), ("refund", {})], "permit", ""),
        ([("set_cabin", {"cabin": "business"}), ("refund", {})], "undetermined", "pending"),
        ([("upgrade", {}), ("refund", {})], "undetermined", "pending"),
        (
            [("set_cabin", {"cabin": "economy"}), ("set_cabin", {"cabin": "first"}), ("refund", {})],
            "undetermined",
            "pending",
        ),
        ([("charge", {"amount": 4}), ("pay", {"amount": 5})], "permit", ""),
        ([("charge", {"amount": 4}), ("charge", {"amount": 4}), ("pay", {"amount": 5})], "undetermined", "pending"),
        ([("charge", {"amount": 4}), ("pay", {"amount": 11})], "deny", ""),
        ([("set_cabin", {"cabin": "first"}), ("pay", {"amount": 5})], "permit", ""),
    ],
)
def test_a_write_of_the_same_turn_leaves_the_old_value_or_the_new_one(
    pack: Pack, writes: list[tuple[str, dict[str, Any]]], evidence: str, reason: str
) -> None:
    assert said(pack, writes) == (evidence, reason)


def test_what_was_not_known_before_the_turn_is_not_known_after_a_write_in_it(pack: Pack) -> None:
    writes: list[tuple[str, dict[str, Any]]] = [("set_cabin", {"cabin": "economy"}), ("refund", {})]
    assert said(pack, writes, look='{"trip_id": "other"}')[0] == "undetermined"


@pytest.mark.parametrize(
    ("written", "shown", "asked", "evidence"),
    [
        (("set_cabin", {"cabin": "economy"}), {"cabin": "economy"}, ("refund", {}), "permit"),
        (("set_cabin", {"cabin": "business"}), {"cabin": "business"}, ("refund", {}), "deny"),
        (("set_cabin", {"cabin": "business"}), {"cabin": "economy"}, ("refund", {}), "undetermined"),
        (("set_cabin", {"cabin": "economy"}), {"cabin": "business"}, ("refund", {}), "undetermined"),
        (("upgrade", {}), {"cabin": "economy"}, ("refund", {}), "undetermined"),
        (("charge", {"amount": 4}), {"credit": 10}, ("pay", {"amount": 5}), "permit"),
        (("charge", {"amount": 4}), {"credit": 10}, ("pay", {"amount": 7}), "undetermined"),
        (("charge", {"amount": 4}), {"credit": 10}, ("pay", {"amount": 11}), "deny"),
    ],
)
def test_a_look_up_beside_a_write_shows_the_old_value_or_the_new_one(
    pack: Pack,
    written: tuple[str, dict[str, Any]],
    shown: dict[str, Any],
    asked: tuple[str, dict[str, Any]],
    evidence: str,
) -> None:
    """Whether it came before the write or after it nobody can tell."""
    session = Session(pack)
    beside: list[Event] = [
        Call(written[0], {"trip_id": "T", **written[1]}, turn=1),
        Call("get_trip", {"trip_id": "T"}, turn=1),
        Result(0, '{"ok": true}'),
        Result(1, json.dumps({"trip_id": "T", **shown})),
    ]
    for event in beside:
        session.observe(event)
    call = Call(asked[0], {"trip_id": "T", **asked[1]}, turn=2)
    assert {c.outcome for each in session.judge(call).evidence for c in each.completions} == {evidence}
