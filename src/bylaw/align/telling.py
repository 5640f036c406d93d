"""Conversations, acts and policies in plain text, for a model to read."""

from collections.abc import Sequence

import msgspec

from bylaw.pack import Pack
from bylaw.trace.event import Call, Event, Message, Result

_LONGEST = 1500
"""Characters of one result that are shown."""


def conversation_text(events: Sequence[Event]) -> str:
    """A conversation, a line an event."""
    return "\n".join(event_text(event) for event in events) or "(nothing yet)"


def event_text(event: Event) -> str:
    """One event on a line."""
    match event:
        case Message():
            return f"{'User' if event.by == 'user' else 'Assistant'}: {_line(event.text)}"
        case Call():
            return f"Assistant calls {event.tool} {msgspec.json.encode(event.arguments).decode()}"
        case Result():
            content = event.content if isinstance(event.content, str) else bytes(event.content).decode()
            return f"Result: {_line(content) if event.captured else '(not recorded)'}"


def policy_text(pack: Pack, *, whole: bool = False) -> str:
    """The policy: the whole document, or each policy in a sentence."""
    if whole and pack.document is not None:
        return pack.document.text.strip()
    return "\n".join(f"- {policy.definition}" for policy in pack.policies.values() if policy.kind != "knowledge")


def _line(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LONGEST else plain[:_LONGEST] + " ..."
