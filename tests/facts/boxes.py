"""A world of boxes: a small schema, and random histories over it."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st

from bylaw.facts.ledger import Ledger
from bylaw.facts.schema import Schema
from bylaw.facts.schema_reader import SchemaReader
from bylaw.facts.seen import SeenFacts, TrueFacts
from bylaw.pack.statements import read_tools
from bylaw.policy.yaml import read_yaml
from bylaw.trace.event import Call, Event, Message, Result

TOOLS = """\
refused: '^(?:Error: |\\{"error")'
tools:
  look: {effect: read, parameters: {box_id: string}}
  peek: {effect: read, parameters: {box_id: string}}
  list: {effect: read, parameters: {}}
  set_a: {effect: write, parameters: {box_id: string, to: integer}, changes: [Box.a]}
  set_both: {effect: write, parameters: {box_id: string}, changes: [Box.a, Box.b]}
  wipe: {effect: write, parameters: {}, changes: [Box.b]}
  smash: {effect: write, parameters: {box_id: string}}
  move: {effect: write, parameters: {source: string, to: string, note: string}}
  note: {effect: write, parameters: {source: string}, changes: []}
  set_many: {effect: write, parameters: {ids: array}, changes: [{as: Box, each: "$args.ids[*]", key: $, fields: [a]}]}
"""
ENTITIES = """\
entities:
  Box:
    key: box_id
    read: look
    fresh_for: 100
    fields: {a: integer, b: integer}
observations:
  look: [{as: Box, absent: "no box"}]
  peek: [{as: Box, fields: {a: $.top}, only: true}]
  list: [{each: "$[*]", as: Box}]
  set_a: [{as: Box}]
"""
CHANGED: dict[str, set[str]] = {
    "set_a": {"a"},
    "set_both": {"a", "b"},
    "wipe": {"b"},
    "smash": {"a", "b", "exists", "box_id"},
    "set_many": {"a"},
}


@cache
def schema() -> Schema:
    tools, faults = read_tools(read_yaml(TOOLS, file="tools.yaml"))
    reader = SchemaReader(read_yaml(ENTITIES, file="entities.yaml"), tools, read_yaml(TOOLS, file="tools.yaml"))
    found = reader.read()
    assert not faults
    assert not reader.faults
    return found


def ledger_of(events: Sequence[Event]) -> Ledger:
    ledger = Ledger(schema())
    for step, event in enumerate(events):
        ledger.observe(step, event)
    return ledger


_NUMBER = st.integers(0, 3)
_BOX = st.sampled_from(["1", "2"])
_ODD_BOX = st.sampled_from([*["1", "2"] * 6, 1, " 2", "1.0", ["1"], {"id": "2"}, "[2]", "３"])
"""How a write may name a box: mostly as it should."""


@st.composite
def _content(draw: Any, call: Call) -> str:
    """What a tool may return: mostly what it should, sometimes an error or nonsense."""
    kind = draw(st.sampled_from(["good"] * 6 + ["error", "text", "absent"]))
    if kind == "error":
        return '{"error": "the system is busy"}'
    if kind == "text":
        return draw(st.sampled_from(["", "null", "[]", "Error: no", "something else", "3"]))
    if kind == "absent":
        return '{"error": "no box here"}' if draw(st.booleans()) else "Error: no box"
    match call.tool:
        case "look":
            body: Any = {name: draw(_NUMBER) for name in draw(st.sets(st.sampled_from(["a", "b"])))}
            if draw(st.booleans()):
                body["box_id"] = draw(_BOX)
        case "peek":
            body = {"top": draw(_NUMBER), "a": 9}
        case "list":
            body = [
                {"box_id": box, **({"a": draw(_NUMBER)} if draw(st.booleans()) else {"b": draw(_NUMBER)})}
                for box in draw(st.lists(_BOX, max_size=2))
            ]
        case "set_a":
            body = {"a": draw(_NUMBER)} if draw(st.booleans()) else {"ok": True}
        case _:
            body = {"ok": True}
    return msgspec.json.encode(body).decode()


@st.composite
def _call(draw: Any, turn: int, time: float | None) -> Call:
    tool = draw(st.sampled_from([*["look"] * 4, *["peek"] * 2, *["list"] * 3, *CHANGED, "unheard_of"]))
    arguments: dict[str, Any] = {}
    if tool in ("look", "peek"):
        arguments["box_id"] = draw(_BOX)
    if tool in ("set_a", "set_both", "smash"):
        arguments["box_id"] = draw(_ODD_BOX)
    if tool == "unheard_of":
        arguments = draw(st.sampled_from([{}, {"id": "1"}, {"of": {"them": ["2", 3]}}, {"note": "put Box 1 there"}]))
    if tool == "set_many":
        arguments["ids"] = draw(st.lists(_BOX, max_size=2))
    if tool == "set_a" and draw(st.booleans()):
        arguments["to"] = draw(_NUMBER)
    by = draw(st.sampled_from(["agent"] * 7 + ["user"]))
    agent = draw(st.sampled_from([*[""] * 7, "helper"]))
    fault = draw(st.sampled_from([""] * 19 + ["arguments not captured"])) if tool in (*CHANGED, "unheard_of") else ""
    return Call(tool, {} if fault else arguments, by=by, turn=turn, agent=agent, fault=fault, time=time)


@st.composite
def histories(draw: Any) -> list[Event]:
    """Turns of one to three calls; results late, out of order, missing, duplicated or not captured.

    Times are borne by all events, by some, or by none, and now and then go backward.
    """
    events: list[Event] = []
    waiting: list[int] = []
    step: int
    time = 0.0
    bearing = draw(st.sampled_from([[False], [True], [True] * 5 + [False], [True, False]]))
    for turn in range(1, draw(st.integers(3, 12))):
        time += draw(st.sampled_from([1.0, 1.0, 60.0, 60.0, -0.5, -30.0]))
        if draw(st.integers(0, 4)) == 0:
            events.append(Message("user", "I said so", turn, time=time if draw(st.sampled_from(bearing)) else None))
            continue
        for _ in range(draw(st.sampled_from([1, 1, 2, 3]))):
            waiting.append(len(events))
            events.append(draw(_call(turn, time if draw(st.sampled_from(bearing)) else None)))
        for step in draw(st.permutations(waiting)):
            fate = draw(st.sampled_from(["come"] * 10 + ["wait", "lost", "dark", "twice"]))
            if fate == "wait":
                continue
            waiting.remove(step)
            call = events[step]
            assert isinstance(call, Call)
            if fate != "lost":
                stamp = time + 1 if draw(st.sampled_from(bearing)) else None
                result = Result(step, draw(_content(call)), captured=fate != "dark", time=stamp)
                events.extend([result] * (2 if fate == "twice" else 1))
    return events


BOX = schema().entities["Box"]
A, B = BOX.fields["a"], BOX.fields["b"]
LOOK = Call("look", {"box_id": "1"}, turn=1)
SEEN = Result(0, '{"a": 5, "b": 6}')


def judged(events: list[Event], call: Call | None = None) -> tuple[SeenFacts, TrueFacts]:
    """What is known to a last call in a turn of its own."""
    last = call or Call("set_a", {"box_id": "1"}, turn=99)
    ledger = ledger_of([*events, last])
    made = ledger.calls[len(events)]
    return SeenFacts(ledger, made, {}), TrueFacts(ledger, made, {})


def sees(events: list[Event], call: Call | None = None, *, box: str = "1") -> tuple[Any, Any]:
    seen, _ = judged(events, call)
    return seen.read(BOX, (box,), A), seen.read(BOX, (box,), B)
