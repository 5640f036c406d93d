"""What the host says counts in both halves of a judgement, and the time of a call is that call's own."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw.engine.session import Mode, Session
from bylaw.facts.world import Snapshot
from bylaw.pack import Pack
from bylaw.trace import Call, Event, Message, Result
from tests.audit.logs import Shop, look, record, ship, user
from tests.policy.shop import FILES, load

AT_THE_DESK = """\
def only_paid(call, facts):
    if facts.context.channel == "desk":
        if facts.Order(call.order_id).paid:
            return permit()
        return deny("the order is not paid")
    return permit()
"""
BY_DAY = """\
def only_paid(call, facts):
    if now() > time("2025-01-01T18:00:00"):
        return deny("nothing is shipped after six")
    return permit()
"""


def guarded(guard: str) -> dict[str, str]:
    """The files of the shop with another guard for `only-paid`."""
    _, _, others = FILES["guards/shop.py"].partition("\n\n\n")
    return {
        "guards/shop.py": f"{guard}\n\n{others}",
        "entities.yaml": FILES["entities.yaml"] + "context: {channel: string}\n",
    }


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return load(tmp_path_factory.mktemp("desk"), guarded(AT_THE_DESK))


def judged(pack: Pack, mode: Mode, context: dict[str, Any], *, seen: bool | None, paid: bool) -> str:
    """The verdict on an order shipped after this was seen of it, while that was true.

    In a snapshot the world knows what is true; in hindsight a look after the call does.
    """
    known = Snapshot(pack.schema, lambda entity, key: {"order_id": key[0], "paid": paid})
    session = Session(pack, world=known if mode == "snapshot" else None, mode=mode, context=context)
    events: list[Event] = [Message("user", "ship it", 1)]
    if seen is not None:
        events += [Call("get_order", {"order_id": "O1"}, turn=2), Result(1, json.dumps({"paid": seen}))]
    shipped = Call("ship", {"order_id": "O1"}, turn=3)
    events += [shipped, Result(len(events), "ok")]
    events += [Call("get_order", {"order_id": "O1"}, turn=4), Result(len(events), json.dumps({"paid": paid}))]
    for event in events:
        if event is shipped:
            session.judge(shipped)
        session.observe(event)
    (verdict,) = session.settle()
    assert verdict.strict == verdict.determined
    return verdict.determined


@pytest.mark.parametrize("mode", ["snapshot", "hindsight"])
@pytest.mark.parametrize(
    ("channel", "seen", "paid", "wanted"),
    [
        ("desk", True, True, "compliant"),
        ("desk", False, False, "violation"),
        ("desk", None, True, "near_miss"),
        ("desk", None, False, "violation"),
        ("phone", None, True, "compliant"),
        ("phone", None, False, "compliant"),
        ("phone", False, False, "compliant"),
        (None, True, True, "compliant"),
        (None, False, False, "inconclusive"),
    ],
)
def test_the_world_half_knows_what_the_host_said(
    mode: Mode, channel: str | None, seen: bool | None, paid: bool, wanted: str, pack: Pack
) -> None:
    context = {} if channel is None else {"channel": channel}
    assert judged(pack, mode, context, seen=seen, paid=paid) == wanted


def test_the_same_call_at_another_time_is_judged_by_its_own(tmp_path: Path) -> None:
    """Many conversations alike, by day and by night in turn: what was said of one must not be said of the next."""
    shop = Shop(tmp_path)
    for name, text in guarded(BY_DAY).items():
        (shop.pack / name).write_text(text)
    manifest = shop.pack / "pack.yaml"
    manifest.write_text("".join(line for line in FILES["pack.yaml"].splitlines(True) if not line.startswith("now:")))
    hours = (9, 20, 9, 20, 17, 19)
    talks = []
    for hour in hours:
        talk = record(user("Please ship PAID."), look("PAID", paid=True), ship("PAID"))
        for message in talk["messages"]:
            message["timestamp"] = f"2025-01-01T{hour:02}:00:00Z"
        talks.append(talk)
    wanted = ["violation" if hour > 18 else "compliant" for hour in hours]
    for world in (True, False):
        assert [line["determined"] for line in shop.calls(*talks, world=world)] == wanted
