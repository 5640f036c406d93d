"""Calls that may have put something to the user, who answered there: after one, nobody proves that nothing was put."""

import re

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
    words = set(words_of(call.tool))
    is_plain = tool is None or tool.effect == "none"
    if call.refused or (is_plain and any(VERBS.get(word) == "none" for word in words)):
        # What an agent thinks or works out goes to nobody.
        return False
    if words & _ASKING and (is_plain or words & _PERSONS):
        return True
    described = set(re.findall("[a-z]+", tool.description.lower())) if tool is not None and is_plain else set[str]()
    if described & _ASKING and described & _PERSONS:
        return True
    return any(isinstance(value, str) and _QUESTION.search(value) for _, value in plain_values(call.arguments))
