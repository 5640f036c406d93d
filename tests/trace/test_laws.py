"""Laws: reading what was written gives the same events, whatever the values are."""

import json
import tracemalloc

from hypothesis import given
from hypothesis import strategies as some

from bylaw.trace import Call, Event, Message, Result, Trajectory, read
from bylaw.trace.transcript import Transcript
from tests.examples import examples

texts = some.text(some.characters(codec="utf-8"), min_size=1, max_size=12)
values = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**53), 2**53) | texts,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
tool_names = some.sampled_from(["look_up", "change", "send"])


@some.composite
def conversations(draw) -> list[Event]:
    """Turns of users and agents; each call has an id of its own and at most one result, in any order."""
    events: list[Event] = []
    for turn in range(draw(some.integers(0, 5))):
        if draw(some.booleans()):
            events.append(Message("user", draw(texts), turn))
            continue
        if draw(some.booleans()):
            events.append(Message("agent", draw(texts), turn))
        steps = []
        count = draw(
            some.integers(0 if events and events[-1].__class__ is Message and events[-1].turn == turn else 1, 3)
        )
        for _ in range(count):
            steps.append(len(events))
            arguments = draw(some.dictionaries(texts, values, max_size=3))
            events.append(Call(draw(tool_names), arguments, f"call-{len(events)}", turn=turn))
        for step in draw(some.permutations(steps)):
            if draw(some.booleans()):
                events.append(Result(step, draw(texts), tool=events[step].tool))
    return events


def to_chat(events: list[Event], *, strings: bool) -> list[dict]:
    """A small writer: OpenAI messages, arguments as JSON strings or as objects."""
    messages: list[dict] = []
    said: dict[int, dict] = {}
    for event in events:
        match event:
            case Message(by="user"):
                messages.append({"role": "user", "content": event.text})
            case Result():
                messages.append({"role": "tool", "tool_call_id": events[event.call].id, "content": event.content})
            case _:
                if event.turn not in said:
                    said[event.turn] = {"role": "assistant", "content": None}
                    messages.append(said[event.turn])
                if isinstance(event, Message):
                    said[event.turn]["content"] = event.text
                else:
                    arguments = json.dumps(event.arguments) if strings else event.arguments
                    call = {
                        "id": event.id,
                        "type": "function",
                        "function": {"name": event.tool, "arguments": arguments},
                    }
                    said[event.turn].setdefault("tool_calls", []).append(call)
    return messages


@examples(50)
@given(some.lists(conversations(), min_size=1, max_size=3), some.booleans(), some.booleans())
def test_reading_what_was_written_gives_the_same_events(tmp_path_factory, talks, strings, ascii_only):
    path = tmp_path_factory.mktemp("law") / "logs.jsonl"
    lines = (json.dumps({"messages": to_chat(talk, strings=strings)}, ensure_ascii=ascii_only) for talk in talks)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    found = list(read(path))
    assert all(isinstance(each, Trajectory) for each in found), found
    assert [each.events for each in found] == talks


def pair_slowly(calls: list[tuple[str, int]], results: list[str]) -> list[int | None]:
    """The rule of pairing as one would say it: `calls` are (id, turn), all made before the `results` (ids) come."""
    waiting = list(range(len(calls)))
    answered: set[str] = set()
    paired: list[int | None] = []
    for id in results:
        fitting = [step for step in waiting if id and calls[step][0] == id]
        if not fitting and id not in answered:
            fitting = list(waiting)
            if id:
                # The id is that of no call: at most of the one that has none.
                unnamed = [step for step in waiting if not calls[step][0]]
                fitting = unnamed if len(unnamed) == 1 else []
        if not fitting or (id in answered and not any(calls[step][0] == id for step in waiting)):
            paired.append(None)
            continue
        latest = max(calls[step][1] for step in fitting)
        step = min(step for step in fitting if calls[step][1] == latest)
        waiting.remove(step)
        if id:
            answered.add(id)
        paired.append(step)
    return paired


ids = some.sampled_from(["", "1", "2", "3"])


@examples(200)
@given(some.lists(some.lists(ids, max_size=3), max_size=4), some.lists(ids, max_size=8))
def test_results_pair_with_calls_by_id_then_by_order(turns, results):
    transcript = Transcript()
    calls = []
    for turn, made in enumerate(turns):
        transcript.begin_turn()
        for id in made:
            transcript.call("tool", {}, id)
            calls.append((id, turn))
    for id in results:
        transcript.answer("x", id)
    assert [event.call for event in transcript.events if isinstance(event, Result)] == pair_slowly(calls, results)


def test_lines_are_read_in_the_memory_of_one_conversation(tmp_path):
    path = tmp_path / "logs.jsonl"
    line = json.dumps({"messages": [{"role": "user", "content": "x" * 20_000}]}) + "\n"
    with path.open("w") as out:
        for _ in range(1500):
            out.write(line)
    tracemalloc.start()
    assert sum(isinstance(each, Trajectory) for each in read(path)) == 1500
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 25_000_000
    assert peak < 6_000_000
