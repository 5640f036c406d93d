"""Asks the user through MCP elicitation: a card to confirm, or a form for facts that only the user knows.

The client shows the question to the user. The agent can neither see nor answer the question. Without sessions
(2026-07-28), the response to a call contains the question, and the client repeats the call with the user's answer. The
SDK seals the state of earlier rounds and binds it to the tool and its arguments. Another proxy with the same key can
then continue the call.
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Mapping, MutableMapping
from typing import Any

import mcp_types
import msgspec
from fastmcp.tools.base import InputRequiredToolResult
from msgspec import Struct, field
from msgspec.structs import replace

from bylaw.integrations.follower import log
from bylaw.shield import Decision, LiveSession

BY = "elicitation"
"""The way in which the user answered a card, for the log."""
MOST_QUESTIONS = 4
"""The maximum number of questions to the user about one call."""
CARD = {"type": "object", "properties": {"agree": {"type": "boolean", "title": "Yes, do this"}}, "required": ["agree"]}
FORM = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Your answer", "maxLength": 2000}},
    "required": ["answer"],
}
OURS = "bylaw"
"""The key under which the question from Bylaw appears among the questions of a call."""
_MARK = "bylaw:"


def can_ask(request: Any) -> bool:
    """Whether the client can ask its user during a call."""
    if request is None:
        return False
    wanted = mcp_types.ClientCapabilities(elicitation=mcp_types.ElicitationCapability())
    try:
        return bool(request.session.check_client_capability(wanted))
    except Exception:
        return False


def question_for_user(decision: Decision) -> str:
    """Return a question, other than a confirmation, that only the user can answer.

    Return an empty text if the call is denied anyway.
    """
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
    """Return the user's answer to a card, or None if the answer is unusable."""
    if answer is None or answer.action == "cancel":
        return None
    if answer.action != "accept":
        return False
    agrees = (answer.content or {}).get("agree")
    return agrees if isinstance(agrees, bool) else None


def as_words(answer: Any) -> str | None:
    if answer is None or answer.action != "accept":
        return None
    said = (answer.content or {}).get("answer")
    return said.strip() or None if isinstance(said, str) else None


async def elicited(request: Any, form: mcp_types.ElicitRequestFormParams) -> Any:
    """Return the user's answer while the call is waiting, or None if the client could not ask."""
    try:
        return await request.session.elicit_form(form.message, form.requested_schema, request.request_id)
    except Exception as error:
        log.warning("the client could not ask its user: %s", error)
        return None


def take(session: LiveSession, answer: Any, *, question: str, card: str) -> bool:
    """Process the user's answer: a text for a question, or yes or no for a card. Return False if the user did not
    answer.
    """
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


class Round(Struct, frozen=True, omit_defaults=True):
    """The state of a call after earlier rounds of questions."""

    call: str = ""
    """The id of an allowed call whose server needs more input."""
    question: str = ""
    card: str = ""
    """The text of the question, or the id of the card, that the user was asked."""
    times: int = 0
    state: str | None = None
    """State from the server, which must be returned to the server."""
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    """The client's answers to the server's questions."""

    def asking(self, decision: Decision) -> "Round | None":
        """Return a round that asks the user a question or shows a card. Return None if neither would help."""
        if question := question_for_user(decision):
            return Round("", question, "", self.times + 1, self.state, self.answers)
        if decision.card is not None:
            return Round("", "", decision.card.id, self.times + 1, self.state, self.answers)
        return None

    def form(self, decision: Decision) -> mcp_types.ElicitRequestFormParams:
        if self.question or decision.card is None:
            return mcp_types.ElicitRequestFormParams(message=self.question, requested_schema=FORM)
        return mcp_types.ElicitRequestFormParams(message=decision.card.text, requested_schema=CARD)

    def asks(self, decision: Decision) -> InputRequiredToolResult | None:
        """Return a response that asks the user first. Return None if the user was already asked or if asking would not
        help.
        """
        asking = self.asking(decision)
        if asking is None or asking.times > MOST_QUESTIONS:
            return None
        return _required({OURS: mcp_types.ElicitRequest(params=asking.form(decision))}, asking)

    def goes_on(self, call: str, answer: InputRequiredToolResult) -> InputRequiredToolResult:
        """Return the response with the server's own question, to continue its call."""
        asked = answer.input_required
        return _required(asked.input_requests, Round(call, state=asked.request_state))


def _required(requests: Any, round: Round) -> InputRequiredToolResult:
    state = _MARK + msgspec.json.encode(round).decode()
    return InputRequiredToolResult(mcp_types.InputRequiredResult(input_requests=requests, request_state=state))


def needs_rounds(request: Any) -> bool:
    """Whether the client can be asked only in the response to its call."""
    return not request.session.can_send_request


def take_round(request: Any) -> tuple[Round, mcp_types.ElicitResult | None]:
    """Return the round of a call and the user's answer to the question from Bylaw. Answers for the server are passed
    on.
    """
    params = request._srctx.params if request is not None else None
    given = params.get("requestState") if isinstance(params, Mapping) else None
    if not isinstance(params, MutableMapping) or not (isinstance(given, str) and given.startswith(_MARK)):
        return Round(), None
    round = msgspec.json.decode(given.removeprefix(_MARK), type=Round)
    answers = {**round.answers, **(params.get("inputResponses") or {})}
    ours = answers.pop(OURS, None)
    for name, value in (("requestState", round.state), ("inputResponses", answers or None)):
        if value is None:
            params.pop(name, None)
        else:
            params[name] = value
    said = mcp_types.ElicitResult.model_validate(ours) if ours is not None else None
    return replace(round, answers=answers), said
