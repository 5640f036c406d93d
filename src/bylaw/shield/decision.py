"""The records of a decision and its grounds. All text comes from the author of the pack."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.predicate_values import Answered
from bylaw.engine.request import Granted
from bylaw.policy.statement import Citation
from bylaw.policy.tool import Posture
from bylaw.trace.event import Card, LookedUp

Answer = Literal["allow", "deny", "look_up", "ask"]

GRAVEST: tuple[Answer, ...] = ("deny", "look_up", "ask", "allow")
"""The possible answers, the most severe first. The overall answer is the most severe answer of any policy."""

POSTURES: tuple[Posture, ...] = ("enforce", "advise", "shadow")
_GRAVITY: dict[Answer, int] = {answer: place for place, answer in enumerate(GRAVEST)}

Earlier = Literal["", "done", "perhaps"]
"""Whether the same call has run since the user's last message: `done`, `perhaps`, or an empty string for no."""

Whom = Literal["user", "person"]
"""Who can answer: the user (through the agent), or the reviewer (`person`) responsible for the policy or the host."""

GroundKind = Literal["guard", "rule", "call", "action", "person", "stop", "unguarded", "doubt"]


class LookUp(Struct, frozen=True, omit_defaults=True):
    """A look-up that would show a missing fact, with its arguments."""

    tool: str
    arguments: dict[str, Any]
    facts: tuple[str, ...]
    instead: bool = False
    """Whether to make the look-up in place of the refused call."""


class Question(Struct, frozen=True):
    """A question that no look-up can answer."""

    fact: str
    text: str
    whom: Whom


class Ground(Struct, frozen=True, omit_defaults=True):
    """The answer of one policy on a call, with reasons."""

    policy: str
    kind: GroundKind
    """The source of the objection. `call`: the call could not be judged. `action`: the call performs no declared
    action. `person`: a reviewer rejected the call. `stop`: a stop covers the call. `unguarded`: no policy applies to
    this write. `doubt`: the host objects to the tool.
    """
    answer: Answer
    posture: Posture
    because: str = ""
    citations: tuple[Citation, ...] = ()
    """The sentences of the policy in the document."""
    missing: tuple[str, ...] = ()
    """Facts that the answer depends on and that the agent has not seen."""
    look_ups: tuple[LookUp, ...] = ()
    """Look-ups in the order in which to make them."""
    questions: tuple[Question, ...] = ()
    retries: tuple[LookUp, ...] = ()
    """Failed look-ups that may be tried again if nobody can be asked."""
    failed: bool = False
    """Whether the guard failed. `because` then shows its author the failing line."""
    for_agent: str = ""
    """Describes the missing consent or the stop for the agent."""
    stands_in: bool = False
    """Whether a reviewer is asked in place of the user, because the host does not report user messages. The approval is
    recorded as an override.
    """
    is_unheard: bool = False
    """Whether the ground asks the user a question but the host would not report the answer."""
    puts_card: bool = False
    """Whether an answer to a card from the user would settle the ground."""


class PerformedAction(Struct, frozen=True):
    """An action of a call, with its arguments."""

    name: str
    arguments: dict[str, Any]


class Decision(Struct, frozen=True, omit_defaults=True):
    id: str
    tool: str
    arguments: dict[str, Any]
    answer: Answer
    """The answer before the posture is applied."""
    allowed: bool
    enforced: Posture
    """The posture that decides `allowed`: the strictest posture of the objections, or `enforce` without objections."""
    grounds: tuple[Ground, ...] = ()
    """The grounds of all policies for the call, with objections first."""
    unguarded: bool = False
    """Whether the call is a write without any policy."""
    feedback: str = ""
    """The message for the agent: look-ups, questions or reasons. Empty if there are no objections, or only in
    shadow mode.
    """
    for_person: str = ""
    """The message for the reviewer, with the call and the objections. Empty without objections."""
    approval: str = ""
    """The id of the approval that the call waits for or runs under."""
    seconds: float = 0.0
    """The duration of the decision, in seconds."""
    model_queries: int = 0
    """The number of model requests since the previous decision."""
    probability: float | None = None
    """The probability that the call is permitted, if circuits were used."""
    interval: tuple[float, float] | None = None
    """The range of the margin over all values of the unknown predicates."""
    answered: tuple[Answered, ...] = ()
    """Answers from the model since the previous decision, each with its quotation."""
    resolved: tuple[LookedUp, ...] = ()
    """Look-ups made by the shield. The grounds use their results, except with `resolve: show`. The agent then sees the
    results and repeats the call.
    """
    evidence: tuple[Ground, ...] = ()
    """The answer of each policy on only the facts that the agent had seen. Set if `grounds` use more facts."""
    is_over: bool = False
    """For a repeated request: whether the allowed call has a result by now. If so, a write is not allowed again."""
    repeats: Literal["", "interrupted", "resumed"] = ""
    """Set if this decision repeats an earlier one for an interrupted or resumed call."""
    call: str = ""
    """The id of the interrupted or resumed call."""
    card: Card | None = None
    """The card for the user. If the user confirms it, the same call is allowed. The agent sends the text of the card,
    or the host shows the card and reports the answer with `confirm`.
    """
    request: str = ""
    """The digest of the allowance used to check the call, if the pack uses requests."""
    earlier: Earlier = ""
    """For a stopped call: whether the same call has run earlier."""
    actions: tuple[PerformedAction, ...] = ()
    """The actions of a call to a generic tool."""
    granted: tuple[Granted, ...] = ()
    """Actions that the request allows, according to a model. Only those found since the previous decision, each with
    ranges of the user's words.
    """

    @property
    def is_put(self) -> bool:
        """Whether the call waits for an answer: from the user on a card, or from a reviewer on an approval request."""
        return not self.allowed and (self.card is not None or (self.answer == "ask" and bool(self.approval)))

    @property
    def policies(self) -> tuple[str, ...]:
        objecting = (ground.policy for ground in self.grounds if ground.answer != "allow")
        return tuple(dict.fromkeys(filter(None, objecting)))

    @property
    def sentences(self) -> tuple[Citation, ...]:
        objecting = (ground for ground in self.grounds if ground.answer != "allow")
        return tuple(dict.fromkeys(citation for ground in objecting for citation in ground.citations))

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(fact for ground in self.grounds for fact in ground.missing))

    @property
    def overrides(self) -> tuple[str, ...]:
        """The policies for which a reviewer answered in place of the user. `approval` identifies the approval."""
        return tuple(each.policy for each in self.grounds if each.answer == "allow" and each.stands_in)

    @property
    def look_ups(self) -> tuple[LookUp, ...]:
        found: dict[str, LookUp] = {}
        for ground in self.grounds:
            for look_up in ground.look_ups:
                name = f"{look_up.tool} {look_up.arguments}"
                before = found.get(name)
                facts = look_up.facts if before is None else tuple(dict.fromkeys((*before.facts, *look_up.facts)))
                found[name] = replace(look_up, facts=facts)
        return tuple(found.values())

    @property
    def retries(self) -> tuple[LookUp, ...]:
        """Failed look-ups to try again, without duplicates."""
        return tuple(
            {f"{each.tool} {each.arguments}": each for ground in self.grounds for each in ground.retries}.values()
        )

    @property
    def questions(self) -> tuple[Question, ...]:
        return tuple({(each.fact, each.text): each for ground in self.grounds for each in ground.questions}.values())

    def __repr__(self) -> str:
        what = f"{self.tool}: {self.answer}"
        return f"<decision {self.id} on {what}{'' if self.allowed == (self.answer == 'allow') else ', not enforced'}>"


def firmest(grounds: Iterable[Ground]) -> Mapping[Posture, Answer]:
    """Return the most severe answer for each posture."""
    found: dict[Posture, Answer] = {}
    for ground in grounds:
        posture, answer = ground.posture, ground.answer
        before = found.get(posture)
        if before is None or _GRAVITY[answer] < _GRAVITY[before]:
            found[posture] = answer
    return found


def gravest(answers: Iterable[Answer]) -> Answer:
    found: Answer = "allow"
    for answer in answers:
        if _GRAVITY[answer] < _GRAVITY[found]:
            found = answer
    return found


def outcome(grounds: Iterable[Ground]) -> tuple[Answer, bool, Posture]:
    """Return the overall answer, whether the call may run, and the posture that decides this."""
    objecting = [ground for ground in grounds if ground.answer != "allow"]
    if not objecting:
        return "allow", True, "enforce"
    if len(objecting) == 1:
        (only,) = objecting
        return only.answer, only.posture != "enforce", only.posture
    by_posture = firmest(objecting)
    answer = gravest(by_posture.values())
    posture: Posture = next(each for each in POSTURES if each in by_posture)
    return answer, posture != "enforce", posture
