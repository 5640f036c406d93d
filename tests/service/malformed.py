"""Requests that are wrong somewhere, or just odd, and what must hold of their answers."""

import copy
import json
import random
from typing import Any

from bylaw.service.openapi import document

REFUND = {"tool": "refund", "arguments": {"order_id": "7"}}
LOOK = {"tool": "get_order", "arguments": {"order_id": "7"}, "id": "a"}
ODD = [
    None,
    True,
    0,
    -1,
    2**70,
    1e308,
    "",
    "x" * 400,
    "\ud800",
    "\x00",
    [],
    {},
    [[]],
    {"a": None},
    "c",
    "refund",
    "get_order",
]


NOTHING_SHOWN = {"result": {"order_id": "7"}, "call": "a"}
"""Nothing that is sent says that the order was returned, so no refund can be in order."""


def malformed(rng: random.Random, name: str = "c") -> tuple[str, bytes]:
    """A request that is wrong somewhere, or just odd, most often about the conversation of this name."""
    refund, events = {"conversation": name, **REFUND}, {"conversation": name, "events": [NOTHING_SHOWN, {"user": "hi"}]}
    subject, resource = {"type": "agent", "id": "b"}, {"type": "order", "id": "7", "properties": {"order_id": "7"}}
    action, context = {"name": "refund", "properties": {}}, {"conversation": name}
    good: dict[str, list[Any]] = {
        "/v1/decide": [refund, {"conversation": name, **LOOK}, {"conversation": name, "calls": [LOOK, REFUND]}],
        "/v1/decide/batch": [{"requests": [refund, {"conversation": name, **LOOK}]}],
        "/v1/events": [events],
        "/v1/events/batch": [{"requests": [events, events]}],
        "/access/v1/evaluation": [{"subject": subject, "action": action, "resource": resource, "context": context}],
        "/access/v1/evaluations": [
            {"subject": subject, "resource": resource, "context": context, "evaluations": [{"action": action}] * 2}
        ],
        "/v1/confirm": [{"conversation": name, "card": f"{name}/1", "answer": "yes", "request": "x"}],
        "/v1/approvals": [{"id": f"{name}/1", "answer": "reject", "by": "x"}],
    }
    path, wrong = rng.choice(list(good)), rng.choice(list(document()["paths"]))
    body: Any = copy.deepcopy(rng.choice(good[path]))
    for _ in range(rng.randint(1, 4)):
        place: Any = body
        while isinstance(place, dict | list) and place and rng.random() < 0.6:
            inner = place[rng.choice(list(place))] if isinstance(place, dict) else rng.choice(place)
            if not isinstance(inner, dict | list) or not inner:
                break
            place = inner
        if isinstance(place, dict):
            place[rng.choice([*place, "extra", "tool", "arguments", "events", "context", "result"])] = copy.deepcopy(
                rng.choice(ODD)
            )
        elif isinstance(place, list):
            place.append(copy.deepcopy(rng.choice(ODD)))
    text = json.dumps(body).encode()
    match rng.randrange(12):
        case 0:
            text = text[: rng.randrange(len(text) + 1)]
        case 1:
            text = bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
        case 2:
            text = b'{"conversation":"c","tool":"refund","arguments":' + b"[" * 3000
        case 3:
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice([b"\xff", b"\\ud800", b"NaN", b"1e999", b"\x00", b'"', b"}"]) + text[at:]
        case _:
            pass
    return path if rng.random() < 0.9 else wrong, text


def allowed_writes(status: int, body: bytes) -> list[Any]:
    """Decisions in an answer, of any route, that let something else run than the one tool that only reads."""
    if status != 200:
        return []
    found: list[Any] = []
    waiting: list[Any] = [json.loads(body)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if value.get("allowed") is True and value.get("tool", "get_order") != "get_order":
                found.append(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return found
