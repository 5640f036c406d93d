"""A call that waits for somebody's yes is a pause of the framework: one prompt for one write, and its answer.

The user answers a card, which is a confirmation. A person who answers for the policy gives an approval, with their
name; it never counts as the user's yes. The call is then made again, the same by its id and its arguments.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec import Struct

from bylaw.errors import BylawError, UsageError
from bylaw.facts.value import alike
from bylaw.integrations.follower import Follower, log, tell, undecided
from bylaw.integrations.history import Asked
from bylaw.shield import Decision, LiveSession
from bylaw.shield.decision import Whom
from bylaw.trace.event import Call, Message


class Prompt(Struct, frozen=True):
    """What a call waits for."""

    whom: Whom
    """Who is to answer: `user`, or `person` for somebody who answers for the policy."""
    text: str
    """What to show them."""
    tool: str
    arguments: dict[str, Any]
    id: str
    """Of the card, or of the approval; an answer bears it, so that it is never taken for another's."""


class Paused(Exception):
    """A call stops here until its prompt is answered."""

    def __init__(self, prompt: Prompt) -> None:
        super().__init__(f"`{prompt.tool}` waits for an answer")
        self.prompt = prompt


def once(answer: Any) -> Callable[[Prompt], Any]:
    """Puts a prompt by stopping the call, unless it comes back with an answer, which is taken once."""
    answers = [answer] if answer is not None else []

    def put(prompt: Prompt) -> Any:
        if not answers:
            raise Paused(prompt)
        return answers.pop()

    return put


def prompts(decision: Decision) -> list[Prompt]:
    """What to put to whom before a call may run; nothing where it may, or where nobody's yes would let it."""
    if not decision.is_put:
        return []
    found: list[Prompt] = []
    card, call = decision.card, (decision.tool, decision.arguments)
    if card is not None and any(each.puts_card and not each.stands_in for each in decision.grounds):
        found.append(Prompt("user", card.text, *call, card.id))
    if decision.answer == "ask" and decision.approval:
        found.append(Prompt("person", decision.for_person, *call, decision.approval))
    return found


def is_declined(session: LiveSession, decision: Decision) -> bool:
    """Whether the user has said no to a card for the same call, however it was spelled, and nothing since: they are not
    asked again. A yes to that spelling is none to this one."""
    if decision.card is None:
        return False
    events = session.trajectory().events
    made = decision.tool, alike(decision.arguments)
    cards = {
        event.card.id: event.card.digest
        for event in events
        if isinstance(event, Call) and event.card is not None and (event.tool, alike(event.arguments)) == made
    }
    for event in reversed(events):
        if isinstance(event, Message) and event.by == "user":
            if event.confirmation is None:
                return False
            digest = cards.get(event.confirmation.card)
            if digest is not None and (digest == decision.card.digest or not event.confirmation.yes):
                return not event.confirmation.yes
    return False


def confirm(session: LiveSession, prompt: Prompt, yes: bool, *, by: str = "") -> None:
    """The user answered a card; `by` says how, such as the button they pressed."""
    if prompt.whom != "user":
        raise UsageError(f"`{prompt.tool}` waits for a person here, not for the user", hint="use `approve`")
    session.confirm(prompt.id, yes, by=by)


def approve(session: LiveSession, prompt: Prompt, yes: bool, *, by: str, note: str = "") -> None:
    """A person answered for the policy; `by` is their name, which the log keeps."""
    if prompt.whom != "person":
        hint = "show them the card, and use `confirm`"
        raise UsageError(f"`{prompt.tool}` waits for the user here: nobody else can say yes for them", hint=hint)
    assert session.shield.log is not None
    answer = session.shield.log.approve if yes else session.shield.log.reject
    answer(prompt.id, by=by, note=note, tenant=session.shield.tenant)


def decide(
    follower: Follower, call: Asked, put: Callable[[Prompt], Any] | None, *, agent: str = "", replays: bool = False
) -> Decision:
    """The decision on a call once it was put to whom it waits for; `put` gives the answer, or ends the run for now.
    Without `put` nobody is asked.

    Each prompt is put once. A framework that `replays` runs all of this again, and expects the same prompts in order.
    """
    session, made = follower.session, (call.id, call.tool, call.arguments)
    if put is None:
        return follower.decide(*made, agent=agent)
    was_put: set[tuple[Whom, str]] = set()
    try:
        decision = follower.asked(*made, agent=agent)
        earlier = follower.asked_before(call.id) if replays else []
    except Exception as error:
        return undecided(session.shield, call.tool, call.arguments, error)
    for before in earlier:
        if (prompt := _next(before, was_put)) is not None:
            _answer(prompt, put)
    if decision is None:
        decision = follower.decide(*made, agent=agent)
    while not is_declined(session, decision) and (prompt := _next(decision, was_put)) is not None:
        is_yes = _take(session, prompt, _answer(prompt, put))
        decision = follower.decide(*made, agent=agent)
        if is_yes is False:
            break
    return decision


def _next(decision: Decision, was_put: set[tuple[Whom, str]]) -> Prompt | None:
    """The first prompt of a decision that was not put yet; from now on it was. The card and the approval of one call
    may have the same id."""
    found = next((each for each in prompts(decision) if (each.whom, each.id) not in was_put), None)
    if found is not None:
        was_put.add((found.whom, found.id))
    return found


def _answer(prompt: Prompt, put: Callable[[Prompt], Any]) -> Mapping[str, Any]:
    """What is answered to this prompt; what was answered to another, or bears no id or no name, is no answer."""
    while True:
        given = put(prompt)
        if isinstance(given, Mapping):
            answer = cast("Mapping[str, Any]", given)
            if answer.get("id") == prompt.id and _is_signed(prompt, answer):
                return answer
        holds = f'"id": "{prompt.id}"' + (', "by": NAME' if prompt.whom == "person" else "")
        log.warning("no answer to `%s` about `%s`: it holds {%s}", prompt.whom, prompt.tool, holds)


def _is_signed(prompt: Prompt, answer: Mapping[str, Any]) -> bool:
    """Whether an answer says whose it is, where it must: a person's does, and without a name their prompt stays."""
    return prompt.whom != "person" or "approve" not in answer or bool(str(answer.get("by") or "").strip())


def _take(session: LiveSession, prompt: Prompt, answer: Mapping[str, Any]) -> bool | None:
    """Take in an answer: `{"id": ..., "confirm": True, "by": "app"}`, or `{"id": ..., "approve": False, "by": "ann"}`.

    None where it does not say what was answered here: an approval is not the user's yes.
    """
    by, note = str(answer.get("by") or ""), str(answer.get("note") or "")
    yes = answer.get("confirm" if prompt.whom == "user" else "approve")
    if not isinstance(yes, bool):
        return None
    try:
        if prompt.whom == "user":
            confirm(session, prompt, yes, by=by)
        else:
            approve(session, prompt, yes, by=by, note=note)
    except BylawError as error:
        # What became of it meanwhile is found when the call is decided anew.
        tell(error, f"an answer about `{prompt.tool}` does not count")
        return None
    return yes
