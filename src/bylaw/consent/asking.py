"""Calls that may have put something to the user, who answered there: after one, nobody proves that nothing was put."""

import re
from functools import lru_cache

from bylaw.consent.records import plain_values
from bylaw.policy.tool import Tool
from bylaw.policy.verb import VERBS, words_of
from bylaw.trace.event import Call

_ASKS = """
ask asks question questions confirm confirmation approve approval consent permission prompt prompts input elicit
elicitation clarify clarification
"""
_ASKING = frozenset(_ASKS.split())
_PEOPLE = "user users customer client human person people caller member guest patient"
_PERSONS = frozenset(_PEOPLE.split())
_QUESTION = re.compile(r"[?\u061f\uff1f](?=[\"')\]*\s]|$)")


def may_ask(call: Call, tool: Tool | None) -> bool:
    """Whether a call may have asked the user something: it was given a question, or is named or described so.

    What is known to read or to write asks only where its name has a person in it, too: `confirm_booking` does not.
    """
    is_plain = tool is None or tool.effect == "none"
    is_asking = _is_asking(call.tool, tool.description if tool is not None and is_plain else "", is_plain)
    if is_asking is not None or call.refused:
        return bool(is_asking) and not call.refused
    return any(isinstance(value, str) and _QUESTION.search(value) for _, value in plain_values(call.arguments))


@lru_cache(maxsize=1024)
def _is_asking(name: str, description: str, is_plain: bool, /) -> bool | None:
    """Whether a tool asks, whatever it is given; None where only that tells."""
    words, described = set(words_of(name)), set(re.findall("[a-z]+", description.lower()))
    if is_plain and any(VERBS.get(word) == "none" for word in words):
        # What an agent thinks or works out goes to nobody.
        return False
    is_named = words & _ASKING and (is_plain or words & _PERSONS)
    return True if is_named or (described & _ASKING and described & _PERSONS) else None
