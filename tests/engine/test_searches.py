"""Look-up functions: where a mapping cannot say what a result shows, code that searches the history can."""

from pathlib import Path

import pytest

from bylaw.engine.session import Session
from bylaw.errors import PackError
from bylaw.pack import Pack, load_pack
from bylaw.trace import Call, Result

FILES = {
    "pack.yaml": "format: 1\nname: shop\ndocument: policy.md\n",
    "policy.md": "# Shop\n\nA paid order is not cancelled.\n",
    "tools.yaml": """
tools:
  read_log: {effect: read, parameters: {order_id: string}}
  pay_order: {effect: write, parameters: {order_id: string}, changes: [Order.paid]}
  cancel_order: {effect: write, parameters: {order_id: string}, changes: []}
""",
    "entities.yaml": "entities:\n  Order: {key: order_id, fields: {paid: boolean}}\n",
    "policies.yaml": """
policies:
  - id: not-paid
    kind: guard
    tools: [cancel_order]
    definition: Only unpaid orders are cancelled.
    spans: [{quote: A paid order is not cancelled.}]
""",
    "guards/orders.py": """
def not_paid(call, facts):
    if facts.Order(call.order_id).paid:
        return deny("the order is paid")
    return permit()
""",
    "lookups/orders.py": """
def find_Order_paid(key, history):
    for entry in history.results("read_log", order_id=key.order_id):
        return found(any(line.event == "paid" for line in entry.value.lines))
    return unseen()
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        target = tmp_path / name
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return tmp_path


def outcome(pack: Pack, *events: Call | Result) -> str:
    session = Session(pack)
    for event in events:
        session.observe(event)
    judgement = session.judge(Call("cancel_order", {"order_id": "O1"}, turn=9))
    return judgement.evidence[0].completions[0].outcome


READ = Call("read_log", {"order_id": "O1"}, turn=1)


def shown(event: str) -> Result:
    return Result(0, f'{{"lines": [{{"event": "{event}"}}]}}')


def test_a_look_up_function_finds_what_no_observation_maps(folder: Path) -> None:
    pack = load_pack(folder)
    assert outcome(pack, READ, shown("paid")) == "deny"
    assert outcome(pack, READ, shown("placed")) == "permit"


def test_it_sees_nothing_of_another_thing_or_of_nothing(folder: Path) -> None:
    pack = load_pack(folder)
    assert outcome(pack) == "undetermined"
    assert outcome(pack, Call("read_log", {"order_id": "O2"}, turn=1), shown("paid")) == "undetermined"


def test_a_write_makes_what_it_found_stale(folder: Path) -> None:
    pay = Call("pay_order", {"order_id": "O1"}, turn=2)
    assert outcome(load_pack(folder), READ, shown("placed"), pay, Result(2, "ok")) == "undetermined"


def test_a_result_of_the_same_turn_is_not_searched(folder: Path) -> None:
    session = Session(load_pack(folder))
    session.observe(READ)
    judgement = session.judge(Call("cancel_order", {"order_id": "O1"}, turn=1))
    assert judgement.evidence[0].completions[0].outcome == "undetermined"


def test_a_faulty_look_up_function_is_named_with_its_line(folder: Path) -> None:
    (folder / "lookups" / "orders.py").write_text("def find_Order_colour(key, history):\n    return unseen()\n")
    with pytest.raises(PackError, match=r"lookups/orders\.py:1"):
        load_pack(folder)
