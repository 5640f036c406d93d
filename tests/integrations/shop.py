"""A shop under a pack, for the tests of every integration: real tools, a scripted model, and what must come of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bylaw import Pack
from bylaw.engine.session import Session
from bylaw.shield import LiveSession
from bylaw.trace import Call, Event, Trajectory, read
from tests.engine.test_conversation import FILES
from tests.integrations.script import Script, serve

ORDERS = {"7": {"order_id": "7", "returned": True}, "8": {"order_id": "8", "returned": False}}


Files = Mapping[str, str]


def write_pack(folder: Path, files: Files = FILES) -> Path:
    """The pack in a folder."""
    for name, text in files.items():
        path = folder / "pack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "pack"


class Shop:
    """The real tools; `ran` is what they did."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def get_order(self, order_id: str) -> dict[str, Any]:
        """Show an order."""
        self.ran.append(f"get_order {order_id}")
        return ORDERS[order_id]

    def refund(self, order_id: str) -> str:
        """Pay an order back."""
        self.ran.append(f"refund {order_id}")
        return f"refunded {order_id}"


def step(number: int, *calls: tuple[str, str], text: str | None = None) -> dict[str, Any]:
    """What the model says and asks for at once."""
    told = [
        {"id": f"call_{number}_{at}", "name": tool, "arguments": {"order_id": order}}
        for at, (tool, order) in enumerate(calls)
    ]
    return {"text": text, "calls": told}


TALK: dict[str, Any] = {
    "id": "c1",
    "turns": [
        {
            "user": "Refund order 7, I sent it back.",
            "steps": [
                step(1, ("refund", "7")),
                step(2, ("get_order", "7"), text="Let me look."),
                step(3, ("refund", "7")),
                step(4, text="Order 7 is refunded."),
            ],
        },
        {
            "user": "And order 8.",
            "steps": [
                step(5, ("get_order", "8"), ("refund", "8")),
                step(6, ("refund", "8")),
                step(7, text="Order 8 was not returned."),
            ],
        },
    ],
}
"""A hasty agent: it refunds before it looks, and beside its look-up, but goes by what it is told."""
USERS: list[str] = [turn["user"] for turn in TALK["turns"]]
RAN = ["get_order 7", "refund 7", "get_order 8"]
"""What may have been done in the end."""


def start_model(folder: Path, *talks: dict[str, Any]) -> tuple[Script, str]:
    """A model on the loopback that says its lines whatever it hears, and notes what it hears."""
    path = folder / "script.json"
    path.write_bytes(msgspec.json.encode({"conversations": talks or (TALK,)}))
    script = Script(path)
    return script, serve(script)


def answers(request: dict[str, Any]) -> list[str]:
    """The results of tools in what a model was asked, over the chat API or the Responses API."""
    items = request.get("messages") or request["input"]
    blocks = [block for item in items if isinstance(item.get("content"), list) for block in item["content"]]
    if results := [block["content"] for block in blocks if block.get("type") == "tool_result"]:
        return [each if isinstance(each, str) else each[0]["text"] for each in results]
    found = [item.get("content") for item in items if item.get("role") == "tool"]
    return [str(each) for each in found] or [
        str(item["output"]) for item in items if item.get("type") == "function_call_output"
    ]


def check_talk(script: Script, shop: Shop) -> None:
    """No refused tool ran, the model saw why in place of the result, and went on to the end."""
    assert shop.ran == RAN
    heard = [answers(request) for request in script.requests]
    assert len(heard) == sum(len(turn["steps"]) for turn in TALK["turns"]), "the model did not go on to the end"
    assert "get_order(order_id=7)" in heard[1][-1]
    assert "Refund an order only after it was returned." in heard[1][-1]
    assert heard[3][-1] in ("refunded 7", '{"result": "refunded 7"}')
    beside = next(each for each in heard[5][-2:] if "Not done yet" in each)
    assert "get_order(order_id=8)" in beside
    assert "not returned" in heard[6][-1]


def check_log(session: LiveSession, log: Path, files: Files = FILES) -> None:
    """What the session has seen, and knows as refused, is what the framework's own log shows."""
    (recorded,) = [each for each in read(log) if isinstance(each, Trajectory)]
    live = session.trajectory()
    assert facts(live.events, files) == facts(recorded.events, files)
    assert facts(live.events, files), "nothing was seen"
    for told in (live, recorded):
        assert [event.refused for event in told.events if isinstance(event, Call)] == [
            *(True, False, False),
            *(False, True, True),
        ]


def facts(events: Sequence[Event], files: Files = FILES) -> dict[str, list[Any]]:
    """Every fact of a conversation's ledger, with what it was shown to be, in order."""
    pack = Pack.from_files(files)
    session = Session(pack)
    session.observe_all(events)
    return {
        f"{entity.name}{key}.{field}": [shown.value for shown in session.ledger.shown(entity, key, field)]
        for entity in pack.schema.entities.values()
        for key in session.ledger.keys(entity)
        for field in entity.fields
    }
