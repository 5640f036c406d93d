"""The public front: turns, ids and pairing are kept by it, and live it says what a recorded conversation is told."""

import threading
from pathlib import Path
from typing import Any

import pytest

from bylaw import BylawError, Conversation, Pack, Trajectory, load_pack, verdicts
from bylaw.engine.finished import is_judged
from bylaw.facts.database import open_snapshot
from bylaw.trace import Call, Message, Result, read
from bylaw_lab.clinic.simulator.generate import write

FILES = {
    "pack.yaml": "format: 1\nname: shop\ndocument: policy.md\n",
    "policy.md": "Refund an order only after it was returned.\n",
    "tools.yaml": """tools:
  get_order: {effect: read, parameters: {order_id: string}}
  refund: {effect: write, parameters: {order_id: string}, changes: []}
""",
    "entities.yaml": """entities:
  Order: {key: order_id, read: get_order, fields: {returned: boolean}}
observations:
  get_order: [{as: Order}]
""",
    "policies.yaml": """policies:
  - {id: returned-first, tools: [refund], spans: [{quote: Refund an order only after it was returned.}]}
""",
    "guards/g.py": """def returned_first(call, facts):
    if facts.Order(call.order_id).returned:
        return permit()
    return deny("not returned")
""",
}


@pytest.fixture(scope="module")
def shop() -> Pack:
    return Pack.from_files(FILES)


def looked_up(shop: Pack) -> Conversation:
    conversation = Conversation(shop)
    conversation.user("Refund 7.")
    conversation.call("get_order", {"order_id": "7"})
    conversation.result({"order_id": "7", "returned": True})
    return conversation


def test_a_look_up_of_an_earlier_turn_is_seen_without_a_word_about_turns(shop: Pack) -> None:
    assert looked_up(shop).call("refund", {"order_id": "7"}).outcome == "permit"


def test_calls_side_by_side_do_not_see_each_other(shop: Pack) -> None:
    conversation = Conversation(shop)
    conversation.call("get_order", {"order_id": "7"}, id="a")
    assert conversation.call("refund", {"order_id": "7"}, id="b").outcome == "undetermined"
    conversation.result({"order_id": "7", "returned": True}, id="a")
    assert conversation.call("refund", {"order_id": "7"}, id="c").outcome == "permit"


def test_results_find_their_calls_by_id_in_any_order(shop: Pack) -> None:
    conversation = Conversation(shop)
    conversation.call("get_order", {"order_id": "7"}, id="a")
    conversation.call("get_order", {"order_id": "8"}, id="b")
    conversation.result({"returned": False}, id="b")
    conversation.result({"returned": True}, id="a")
    shown = [event.call for event in conversation.events if not isinstance(event, Call | Message)]
    assert shown == [1, 0]


def test_a_refused_call_was_never_made(shop: Pack) -> None:
    conversation = looked_up(shop)
    conversation.call("refund", {"order_id": "7"})
    conversation.refuse()
    conversation.result("not now")
    (verdict,) = conversation.verdicts()
    assert verdict.made.accepted is False
    assert verdict.made.call.refused


def test_a_result_never_answers_a_call_that_was_refused_before_the_next_one(shop: Pack) -> None:
    conversation = Conversation(shop)
    conversation.call("refund", {"order_id": "7"})
    conversation.refuse()
    conversation.call("get_order", {"order_id": "7"})
    conversation.result({"order_id": "7", "returned": True})
    assert conversation.call("refund", {"order_id": "7"}).outcome == "permit"


def test_a_yes_outlives_a_call_that_was_refused_before_it_ran() -> None:
    conversation = Conversation("clinic")
    call = ("cancel_appointment", {"patient_id": "P1", "appointment_id": "A1", "late_fee": "0.00", "reason": "illness"})
    conversation.agent("I'm about to cancel appointment A1 of patient P1 with a fee of $0.00. Shall I go ahead?")
    conversation.user("Yes, please.")
    first = conversation.call(*call)
    assert (first.rules, first.open_rules) == ((), ())
    conversation.refuse()
    conversation.result("look the appointment up first")
    conversation.call("get_appointment", {"appointment_id": "A1"})
    conversation.result({"appointment_id": "A1", "patient_id": "P1"})
    second = conversation.call(*call)
    assert (second.rules, second.open_rules) == ((), ())
    conversation.result({"cancelled": "A1"})
    assert not conversation.findings(ended=True)


def test_what_cannot_be_is_an_error_and_loses_nothing(shop: Pack) -> None:
    conversation = looked_up(shop)
    with pytest.raises(BylawError, match="no call is waiting"):
        conversation.result("refunded")
    with pytest.raises(BylawError, match="no judged call left to refuse"):
        conversation.refuse()
    conversation.call("refund", {"order_id": "7"}, id="x")
    with pytest.raises(BylawError, match="still waiting"):
        conversation.call("refund", {"order_id": "7"}, id="x")
    with pytest.raises(BylawError, match="no call `y` is waiting"):
        conversation.result("refunded", id="y")
    with pytest.raises(BylawError, match="message 0 is a `int`"):
        conversation.messages([7])
    conversation.result("refunded", id="x")
    assert [verdict.determined for verdict in conversation.verdicts()] == ["compliant"]


@pytest.mark.parametrize(
    "call",
    [
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "function": {"name": "refund", "arguments": '{"order_id": "7"}'}}],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c", "name": "refund", "input": {"order_id": "7"}}],
        },
        {"type": "ai", "content": "", "tool_calls": [{"id": "c", "name": "refund", "args": {"order_id": "7"}}]},
    ],
)
def test_messages_may_have_any_shape_that_logs_have(shop: Pack, call: dict[str, object]) -> None:
    assert [judgement.outcome for judgement in looked_up(shop).messages([call])] == ["permit"]


def test_files_of_a_pack_stay_inside_it() -> None:
    with pytest.raises(BylawError, match="does not name a file"):
        Pack.from_files({"../pack.yaml": "format: 1"})


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clinic")
    write(folder, seeds=(11,), count=40)
    return folder


def live(pack: Pack, trajectory: Trajectory) -> Conversation:
    """The conversation told anew through the front, call by call; guards must say the same then and in the end."""
    conversation = Conversation(pack)
    said: list[tuple[str, ...]] = []
    turn = -1
    for event in trajectory.events:
        if not isinstance(event, Result) and event.turn != turn:
            conversation.end_turn()
            turn = event.turn
        if isinstance(event, Message):
            conversation.user(event.text) if event.by == "user" else conversation.agent(event.text)
        elif isinstance(event, Call):
            judgement = conversation.call(event.tool, event.arguments, id=event.id)
            if is_judged(pack, event):
                said.append(tuple(evidence.outcome for evidence in judgement.evidence))
        else:
            call = trajectory.events[event.call if event.call is not None else -1]
            assert isinstance(call, Call)
            conversation.result(event.content, id=call.id, error=event.error, captured=event.captured)
    assert said == [tuple(policy.evidence for policy in verdict.policies) for verdict in conversation.verdicts()]
    return conversation


def test_live_says_what_a_recorded_conversation_is_told(clinic: Path) -> None:
    pack = load_pack("clinic")
    judged = 0
    for trajectory in read(clinic / "logs.jsonl.gz"):
        assert isinstance(trajectory, Trajectory)
        conversation = live(pack, trajectory)
        recorded = verdicts(pack, trajectory)
        now = verdicts(pack, conversation.trajectory())
        assert [(v.strict, v.determined) for v in conversation.verdicts()] == [
            (v.strict, v.determined) for v in now.calls
        ]
        assert [(v.strict, v.determined) for v in recorded.calls] == [(v.strict, v.determined) for v in now.calls]
        assert [(f.step, f.rule.name) for f in recorded.findings] == [(f.step, f.rule.name) for f in now.findings]
        judged += len(now.calls)
    assert judged > 25


def test_a_database_may_be_asked_in_another_thread(clinic: Path) -> None:
    pack = load_pack("clinic")
    world = open_snapshot(clinic / "clinic.sqlite", pack.schema)
    conversation = Conversation(pack, world=world)
    conversation.call("waive_invoice", {"patient_id": "P001", "invoice_id": "I0001"})
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(v.determined for v in conversation.verdicts()))
    thread.start()
    thread.join()
    assert len(found) == 1


def test_a_judgement_reads_in_one_line(shop: Pack) -> None:
    assert repr(looked_up(shop).call("refund", {"order_id": "7"})) == "<judgement of refund at step 3: permit>"
    unseen = Conversation(shop).call("refund", {"order_id": "7"})
    assert repr(unseen) == f"<judgement of refund at step 0: undetermined ({next(iter(shop.guards))})>"
    unknown = Conversation(shop).call("rename", {})
    assert repr(unknown) == "<judgement of rename at step 0: failed (unknown tool `rename`)>"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (None, "pass a mapping from file names to their contents, not `NoneType`"),
        ({"pack.yaml": b"x"}, "the content of `pack.yaml` must be a string, not `bytes`"),
    ],
)
def test_files_that_are_no_texts_are_told(files: Any, words: str) -> None:
    with pytest.raises(BylawError, match=words):
        Pack.from_files(files)


def told(conversation: Conversation, content: str, id: str) -> None:
    conversation.messages([{"role": "tool", "tool_call_id": id, "content": content}])


def answered(conversation: Conversation, content: str, id: str) -> None:
    conversation.result(content, id=id)


def taken_up(conversation: Conversation) -> Conversation:
    """The same in another process, which has read the events."""
    other = Conversation(conversation.pack)
    other.resume(conversation.events)
    return other


RETURNED_7 = '{"order_id": "7", "returned": true}'


@pytest.mark.parametrize("tell", [answered, told])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "elsewhere"])
@pytest.mark.parametrize("is_told", [False, True], ids=["", "what was refused was told"])
@pytest.mark.parametrize("between", [False, True], ids=["at once", "in another turn"])
@pytest.mark.parametrize("refusals", [1, 2])
def test_a_result_is_that_of_the_call_which_has_its_id_last(
    shop: Pack, tell: Any, elsewhere: bool, is_told: bool, between: bool, refusals: int
) -> None:
    conversation = Conversation(shop)
    conversation.user("Refund 7.")
    for _ in range(refusals):
        conversation.call("get_order", {"order_id": "7"}, id="a")
        conversation.refuse()
        if is_told:
            conversation.result("Not now.", id="a")
        if between:
            conversation.user("Go on.")
    conversation.call("get_order", {"order_id": "7"}, id="a")
    conversation = taken_up(conversation) if elsewhere else conversation
    made = conversation.length - 1
    tell(conversation, RETURNED_7, "a")
    result = conversation.events[-1]
    assert isinstance(result, Result)
    assert result.call == made
    assert conversation.waiting() == []
    with pytest.raises(BylawError, match="no call `a` is waiting"):
        conversation.result(RETURNED_7, id="a")
    conversation = taken_up(conversation) if elsewhere else conversation
    assert conversation.call("refund", {"order_id": "7"}, id="a").outcome == "permit"


@pytest.mark.parametrize("tell", [answered, told])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "elsewhere"])
@pytest.mark.parametrize("id", ["b", ""])
def test_what_is_told_of_a_refused_call_is_no_result_of_another(
    shop: Pack, tell: Any, elsewhere: bool, id: str
) -> None:
    conversation = Conversation(shop)
    conversation.user("Refund 7.")
    conversation.call("refund", {"order_id": "7"}, id="a")
    conversation.refuse()
    conversation.call("get_order", {"order_id": "7"}, id=id)
    conversation = taken_up(conversation) if elsewhere else conversation
    tell(conversation, "Look it up first.", "a")
    result = conversation.events[-1]
    assert isinstance(result, Result)
    assert result.call == 1
    assert [call.tool for call in conversation.waiting()] == ["get_order"]
    conversation.result(RETURNED_7, id=id)
    assert conversation.call("refund", {"order_id": "7"}, id="c").outcome == "permit"
