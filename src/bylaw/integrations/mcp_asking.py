"""Asks the user by MCP's elicitation, where a client does not tell what is said: a card for their yes, a form for what
only they can say. The client puts it to the user; the agent neither sees the question nor answers it.
"""
# pyright: basic, reportMissingImports=false

from typing import Any

import mcp_types

from bylaw.integrations.undecided import log
from bylaw.shield import Decision, LiveSession

BY = "elicitation"
"""How the user's answer to a card was given, as the log tells it."""
MOST = 4
"""Questions to the user over one call at most."""
_CARD = {
    "type": "object",
    "properties": {"agree": {"type": "boolean", "title": "Yes, do this"}},
    "required": ["agree"],
}
_FORM = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Your answer", "maxLength": 2000}},
    "required": ["answer"],
}


def can_ask(request: Any) -> bool:
    """Whether the client puts questions to its user while a call waits."""
    if request is None:
        return False
    wanted = mcp_types.ClientCapabilities(elicitation=mcp_types.ElicitationCapability())
    try:
        return bool(request.session.check_client_capability(wanted))
    except Exception:
        return False


def question_for_user(decision: Decision) -> str:
    """What only the user can say of a call, apart from their yes; nothing where a denial stands beside it."""
    if decision.answer != "ask":
        return ""
    asked = [
        each.text
        for ground in decision.grounds
        if ground.answer == "ask" and ground.posture == "enforce" and not ground.puts_card
        for each in ground.questions
        if each.whom == "user"
    ]
    return asked[0] if asked else ""


async def ask_for_yes(request: Any, text: str) -> bool | None:
    """The user's answer to a card; None where they gave none."""
    answer = await _elicited(request, text, _CARD)
    if answer is None or answer.action == "cancel":
        return None
    return answer.action == "accept" and (answer.content or {}).get("agree") is True


async def ask_in_words(request: Any, question: str) -> str | None:
    """What the user answers to a question; None where they did not."""
    answer = await _elicited(request, question, _FORM)
    if answer is None or answer.action != "accept":
        return None
    said = (answer.content or {}).get("answer")
    return said.strip() or None if isinstance(said, str) else None


async def _elicited(request: Any, message: str, schema: dict[str, Any]) -> Any:
    try:
        return await request.session.elicit_form(message, schema, request.request_id)
    except Exception as error:
        log.warning("the client could not put a question to its user: %s", error)
        return None


def answered(session: LiveSession, question: str, said: str) -> None:
    """Take in what the user answered: they were asked, and these are their words."""
    session.agent(question)
    session.user(said)
