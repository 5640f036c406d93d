"""Asks the user by MCP's elicitation, where a client has it: a card for their yes, a form for what only they can say.

The client puts it to the user; the agent neither sees the question nor answers it.
"""
# pyright: basic, reportMissingImports=false

from typing import Any

import mcp_types

from bylaw.integrations.follower import log
from bylaw.shield import Decision, LiveSession

BY = "elicitation"
"""How the user's answer to a card was given, as the log tells it."""
MOST = 4
"""Questions to the user over one call at most."""
CARD = {"type": "object", "properties": {"agree": {"type": "boolean", "title": "Yes, do this"}}, "required": ["agree"]}
FORM = {
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


def as_yes(answer: Any) -> bool | None:
    """The user's answer to a card; None where they gave none, or their client sent something else."""
    if answer is None or answer.action == "cancel":
        return None
    if answer.action != "accept":
        return False
    agrees = (answer.content or {}).get("agree")
    return agrees if isinstance(agrees, bool) else None


def as_words(answer: Any) -> str | None:
    """What the user answered to a question; None where they did not."""
    if answer is None or answer.action != "accept":
        return None
    said = (answer.content or {}).get("answer")
    return said.strip() or None if isinstance(said, str) else None


async def elicited(request: Any, form: mcp_types.ElicitRequestFormParams) -> Any:
    """The user's answer, while the call waits; None where the client could not ask."""
    try:
        return await request.session.elicit_form(form.message, form.requested_schema, request.request_id)
    except Exception as error:
        log.warning("the client could not put a question to its user: %s", error)
        return None


def take(session: LiveSession, answer: Any, *, question: str, card: str) -> bool:
    """Take in what the user answered: to a question in their own words, to a card with yes or no. Whether they did."""
    if question:
        if (said := as_words(answer)) is None:
            return False
        session.agent(question)
        session.user(said)
        return True
    if (yes := as_yes(answer)) is None:
        return False
    session.confirm(card, yes, by=BY)
    return True
