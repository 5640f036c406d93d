"""Things only a conversation makes: what it showed is what is true, and what it did not show is surely not there."""

import json
from pathlib import Path

import pytest

from bylaw.engine.session import Session
from bylaw.errors import PackError
from bylaw.facts.database import open_snapshot
from bylaw.facts.entity import UNSEEN
from bylaw.facts.world import Snapshot
from bylaw.pack import Pack, load_pack
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


@pytest.mark.parametrize("has_world", [False, True])
def test_nobody_found_later_is_among_those_seen_at_a_call(folder: Path, has_world: bool) -> None:
    """The guide's recipe for one customer in a conversation asks for all that were seen, not for one by its key."""
    (folder / "guards" / "g.py").write_text("""def owner(call, facts):
    who = facts.Order(call.order_id).user_id
    if not any(each.user_id == who for each in facts.Identity.seen()):
        return deny("the owner was not located")
    return permit()
""")
    world = folder / "world.json" if has_world else None
    later: list[Event] = [Call("find", {"email": "a@b.c"}, turn=10), Result(3, '{"user_id": "ada"}')]
    assert verdict(load_pack(folder), [*ORDER], world, later) == "violation"
    before: list[Event] = [*ORDER, Call("find", {"email": "a@b.c"}, turn=2), Result(2, '{"user_id": "ada"}')]
    assert verdict(load_pack(folder), before, world) == "compliant"


def test_what_a_system_knows_cannot_be_complete(folder: Path) -> None:
    (folder / "entities.yaml").write_text(FILES["entities.yaml"].replace("origin: conversation, ", ""))
    with pytest.raises(PackError, match=r"entities\.yaml:3: `Identity` cannot be declared `complete`"):
        load_pack(folder)


QUOTES = {
    "pack.yaml": "format: 1\nname: q\ndocument: policy.md\n",
    "policy.md": "A quote is used once.\n",
    "tools.yaml": """tools:
  quote: {effect: none, parameters: {item: string}}
  use: {effect: write, parameters: {quote_id: string}, effects: [{as: Quote, key: $args.quote_id, set: {used: true}}]}
  spend:
    effect: write
    parameters: {quote_id: string, amount: money}
    effects: [{as: Quote, key: $args.quote_id, set: {left: {minus: $result.spent}}}]
  touch: {effect: write, parameters: {quote_id: string}}
""",
    "entities.yaml": """entities:
  Quote:
    key: quote_id
    origin: conversation
    complete: true
    fields: {left: money, used: {type: boolean, default: false}}
observations:
  quote: {as: Quote}
""",
}
ONCE = """def once(call: use, facts):
    \"\"\"A quote is used once.\"\"\"
    quote = facts.Quote(call.quote_id)
    return deny("used before") if quote.used or quote.left < money("5.00") else permit()
"""
GIVEN: list[Event] = [Call("quote", {"item": "x"}, turn=1), Result(0, '{"quote_id": "Q", "left": "9.00"}')]

AGAIN: list[Event] = [Call("quote", {"item": "x"}, turn=3), Result(4, '{"quote_id": "Q", "left": "9.00"}')]


def made(tool: str, result: str | None, *, turn: int = 2, error: bool = False, **arguments: str) -> list[Event]:
    call = Call(tool, {"quote_id": "Q", **arguments}, turn=turn)
    return [call, *([] if result is None else [Result(len(GIVEN), result, error=error)])]


@pytest.mark.parametrize(
    ("events", "want"),
    [
        (GIVEN, ("permit", "compliant")),
        ([], ("deny", "violation")),
        (GIVEN + made("use", '{"ok": true}'), ("deny", "violation")),
        (GIVEN + made("use", "no", error=True), ("permit", "compliant")),
        (GIVEN + made("use", None), ("undetermined", "uninformed")),
        (GIVEN + made("use", None, turn=9), ("undetermined", "uninformed")),  # the turn of the judged call
        (GIVEN + made("spend", '{"spent": "3.00"}', amount="3"), ("permit", "compliant")),
        (GIVEN + made("spend", '{"spent": "6.00"}', amount="3"), ("deny", "violation")),
        (GIVEN + made("spend", "{}", amount="3"), ("undetermined", "uninformed")),  # nobody knows how much
        (GIVEN + made("touch", "{}"), ("undetermined", "uninformed")),  # no effect says what it did
        (
            [
                *GIVEN,
                *made("use", "{}"),
                Call("quote", {"item": "x"}, turn=3),
                Result(4, '{"quote_id": "Q", "left": "9"}'),
            ],
            ("permit", "compliant"),
        ),
    ],
)
@pytest.mark.parametrize("has_world", [False, True])
def test_what_a_conversation_does_with_what_it_made_is_true(
    events: list[Event], want: tuple[str, str], has_world: bool, tmp_path: Path
) -> None:
    for name, text in {**QUOTES, "guards/g.py": ONCE, "world.json": '{"Other": []}'}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    pack = load_pack(tmp_path)
    world = Snapshot(pack.schema, lambda *_: UNSEEN, lambda *_: None) if has_world else None
    session = Session(pack, world=world)
    session.observe_all(events)
    call = Call("use", {"quote_id": "Q"}, turn=9)
    judged = session.judge(call)
    session.observe(call)
    assert (judged.evidence[0].outcome, session.settle()[-1].determined) == want
