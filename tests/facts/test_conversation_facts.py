"""Things only a conversation makes: what it showed is what is true, and what it did not show is surely not there."""

import json
from pathlib import Path

import pytest

from bylaw.engine.pack import Pack, load_pack
from bylaw.engine.session import Session
from bylaw.errors import PackError
from bylaw.facts.database import open_snapshot
from bylaw.trace.event import Call, Event, Result

FILES = {
    "pack.yaml": "format: 1\nname: p\ndocument: policy.md\n",
    "policy.md": "Cancel an order only for its owner, whom you located.\n",
    "policies.yaml": """policies:
  - {id: owner, tools: [cancel], spans: [{quote: "Cancel an order only for its owner, whom you located."}]}
""",
    "tools.yaml": """tools:
  find: {effect: read, parameters: {email: string}}
  get_order: {effect: read, parameters: {order_id: string}}
  cancel: {effect: write, parameters: {order_id: string}, changes: []}
""",
    "entities.yaml": """entities:
  Order: {key: order_id, read: get_order, fields: {user_id: string}}
  Identity: {key: user_id, origin: conversation, complete: true, fields: {located: boolean}}
observations:
  get_order: [{as: Order}]
  find: [{as: Identity, key: $.user_id, fields: {located: true}}]
""",
}
GUARD = """def owner(call, facts):
    if facts.Identity(facts.Order(call.order_id).user_id).exists:
        return permit()
    return deny("the owner was not located")
"""
ORDER = [Call("get_order", {"order_id": "W"}, turn=1), Result(0, '{"order_id": "W", "user_id": "ada"}')]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "guards").mkdir()
    (tmp_path / "guards" / "g.py").write_text(GUARD)
    (tmp_path / "world.json").write_text(json.dumps({"Order": [{"order_id": "W", "user_id": "ada"}]}))
    return tmp_path


def verdict(pack: Pack, events: list[Event], world: Path | None, after: list[Event] | None = None) -> str:
    session = Session(pack, world=open_snapshot(world, pack.schema) if world is not None else None)
    for event in events:
        session.observe(event)
    call = Call("cancel", {"order_id": "W"}, turn=9)
    session.judge(call)
    for event in (call, *(after or ())):
        session.observe(event)
    return session.settle()[0].determined


@pytest.mark.parametrize(
    ("found", "want"),
    [
        (None, "violation"),
        ('{"user_id": "ada"}', "compliant"),
        ('{"user_id": "bob"}', "violation"),
        ("{}", "violation"),
        ("nobody of that name, I think", "inconclusive"),
        ("Error: not found", "violation"),
    ],
)
@pytest.mark.parametrize("has_world", [False, True])
def test_nobody_was_located_is_a_definite_no(folder: Path, found: str | None, want: str, has_world: bool) -> None:
    events = [*ORDER]
    if found is not None:
        events += [Call("find", {"email": "a@b.c"}, turn=2), Result(2, found)]
    assert verdict(load_pack(folder), events, folder / "world.json" if has_world else None) == want


@pytest.mark.parametrize("has_world", [False, True])
def test_an_identity_established_after_the_call_was_not_established_then(folder: Path, has_world: bool) -> None:
    after: list[Event] = [Call("find", {"email": "a@b.c"}, turn=10), Result(3, '{"user_id": "ada"}')]
    world = folder / "world.json" if has_world else None
    assert verdict(load_pack(folder), [*ORDER], world, after) == "violation"


def test_what_a_system_knows_cannot_be_complete(folder: Path) -> None:
    (folder / "entities.yaml").write_text(FILES["entities.yaml"].replace("origin: conversation, ", ""))
    with pytest.raises(PackError, match=r"entities\.yaml:3: `Identity` cannot be complete"):
        load_pack(folder)
