"""Look-up functions: asked for where no observation reaches, tried on recorded results, and never foreign code."""

from bylaw.compile.assemble import assemble
from bylaw.compile.pipeline import compile_pack
from bylaw.engine.finished import verdicts
from bylaw.pack import Pack
from bylaw.trace import Call, Result, Trajectory
from tests.compile.shop import THINGS, Scripted, source

SEES_LITTLE = "  get_order: {as: Order, only: true, fields: {customer_id: $.customer_id}}\n"
BLIND = THINGS.replace("  get_order: {as: Order, absent: no order}\n", SEES_LITTLE)
FOUND = """
def find_Order_delivered_on(key, history):
    for entry in history.results("get_order", order_id=key.order_id):
        return found(entry.value.delivered_on)
    return unseen()
"""


def test_a_field_that_nothing_shows_gets_a_function() -> None:
    chat = Scripted(things=BLIND, lookups=FOUND)
    files = assemble(source(), compile_pack(source(), chat)[0], name="shop")
    (request,) = chat.asked("lookups")
    assert "- Order, key order_id: delivered_on (date)" in request.messages[1].content
    assert "find_Order_delivered_on" in files["lookups/found.py"]
    pack = Pack.from_files({**{n: t for n, t in files.items() if n != "compiled.yaml"}})
    order = '{"order_id": "A1", "delivered_on": "2025-01-10"}'
    refund = Call("refund", {"order_id": "A1", "customer_id": "C1", "amount": "20.00"}, turn=2)
    shown = (Call("get_order", {"order_id": "A1"}, turn=1), Result(0, order), refund)
    policies = {each.policy.id: each for each in verdicts(pack, Trajectory("one", shown)).calls[0].policies}
    assert not policies["refund-window"].missing


def test_a_function_outside_the_language_is_sent_back_and_then_left_out() -> None:
    foreign = "def find_Order_delivered_on(key, history):\n    import os\n    return found(os.environ)\n"
    chat = Scripted(things=BLIND, lookups=foreign)
    work, _ = compile_pack(source(), chat)
    assert len(chat.asked("lookups")) == 3
    assert work.lookups is not None
    assert not work.lookups.codes
    assert "import" in work.lookups.failed["Order.delivered_on"]


def test_observations_that_reach_leave_nothing_to_ask() -> None:
    chat = Scripted()
    compile_pack(source(), chat)
    assert not chat.asked("lookups")
