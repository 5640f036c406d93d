"""A desk where nothing is changed before the customer has agreed: packs for it, and what is found of a call."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bylaw import Pack
from bylaw.consent import Basis, CardWords, Consent, Consents, Terms
from bylaw.facts.ledger import Ledger
from bylaw.trace.event import Call, Event, Message, Result


def desk(tools: str, consented: str = "told") -> Pack:
    """A pack of these tools; `consented` is what its one predicate about consent says, after that word."""
    return Pack.from_files(
        {
            "pack.yaml": "format: 1\nname: desk\ndocument: policy.md\n",
            "policy.md": "Change nothing before the customer has agreed to it.\n",
            "policies.yaml": (
                "policies:\n - {id: ask, kind: rule, spans: [Change nothing before the customer has agreed to it.]}\n"
            ),
            "rules.yaml": (
                f"predicates: {{change: {{effect: write}}, agreed: {{consented: {consented}}}}}\n"
                "rules:\n  - {id: ask, formula: ALWAYS (change IMPLIES agreed)}\n"
            ),
            "tools.yaml": tools,
        }
    )


def user(text: str, time: float | None = None) -> Message:
    return Message("user", text, time=time)


def agent(text: str, time: float | None = None) -> Message:
    return Message("agent", text, time=time)


def done(tool: str, arguments: Mapping[str, Any], answer: Any = "done", **told: Any) -> list[Event]:
    """A call and what its tool returned."""
    content = answer if isinstance(answer, str) else json.dumps(answer)
    return [Call(tool, dict(arguments)), Result(None, content, told.pop("error", None), tool=tool, **told)]


def in_order(said: Sequence[Event | list[Event]]) -> list[Event]:
    """Events with their turns, each result at the call before it."""
    events: list[Event] = []
    for part in said:
        for event in part if isinstance(part, list) else [part]:
            at = len(events)
            events.append(replace(event, call=at - 1) if isinstance(event, Result) else replace(event, turn=at))
    return events


def found(
    pack: Pack,
    said: Sequence[Event | list[Event]],
    tool: str,
    arguments: Mapping[str, Any],
    basis: Basis = "told",
    terms: Terms | None = None,
    words: CardWords | None = None,
    time: float | None = None,
) -> Consent:
    """What is found of a call after this."""
    events = in_order([*said, Call(tool, dict(arguments), time=time)])
    ledger = Ledger(pack.schema)
    ledger.observe_all(0, events)
    return Consents(events, ledger, terms, words).find(ledger.calls[len(events) - 1], basis)
