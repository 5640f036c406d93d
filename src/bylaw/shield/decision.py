"""The records of a decision and of its grounds. All text in them comes from the author of the pack."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from bylaw.engine.predicate_values import Answered
from bylaw.engine.request import Granted
from bylaw.policy.statement import Citation
from bylaw.policy.tool import Posture
from bylaw.trace.event import Card, LookedUp

Answer = Literal["allow", "deny", "look_up", "ask"]

GRAVEST: tuple[Answer, ...] = ("deny", "look_up", "ask", "allow")
"""Answers by severity, the most severe first. The overall answer is the most severe one that any policy gives."""

POSTURES: tuple[Posture, ...] = ("enforce", "advise", "shadow")
_GRAVITY: dict[Answer, int] = {answer: place for place, answer in enumerate(GRAVEST)}

Earlier = Literal["", "done", "perhaps"]
"""Whether the same call has already run since the user's last message. Empty means no; otherwise `done` or
`perhaps`.
"""

Whom = Literal["user", "person"]
"""Who can answer: the user, through the agent, or a reviewer (`person`) who is responsible for the policy or
the host.
"""

GroundKind = Literal["guard", "rule", "call", "action", "person", "stop", "unguarded", "doubt"]


class LookUp(Struct, frozen=True, omit_defaults=True):
    """A look-up, with its arguments, that would show a missing fact."""

    tool: str
    arguments: dict[str, Any]
    facts: tuple[str, ...]
    instead: bool = False
    """Whether the look-up replaces the refused call."""


class Question(Struct, frozen=True):
    """A question that no look-up can answer."""

    fact: str
    text: str
    whom: Whom


class Ground(Struct, frozen=True, omit_defaults=True):
    """The answer of one policy on a call, with the reasons."""

    policy: str
    kind: GroundKind
    """What the objection comes from. `call`: the call could not be judged. `action`: the call performs no declared
    action. `person`: a reviewer rejected the call. `stop`: a stop covers the call. `unguarded`: no policy applies to
    this write. `doubt`: the host objects to the tool.
    """
    answer: Answer
    posture: Posture
    because: str = ""
    citations: tuple[Citation, ...] = ()
    """The sentences of the document that the policy is based on."""
    missing: tuple[str, ...] = ()
    """Facts that the answer depends on and that the agent has not seen."""
    look_ups: tuple[LookUp, ...] = ()
    """Look-ups, in the order in which to make them."""
    questions: tuple[Question, ...] = ()
    retries: tuple[LookUp, ...] = ()
    """Look-ups that failed, and that may be tried again if nobody can be asked."""
    failed: bool = False
    """Whether the guard failed. If so, `because` contains the failing line, for the author of the guard."""
    for_agent: str = ""
    """The missing consent or the stop, in words for the agent."""
    stands_in: bool = False
    """Whether a reviewer is asked instead of the user because the host does not report user messages. The reviewer's
    approval is recorded as an override.
    """
    is_unheard: bool = False
    """Whether the ground asks the user although the host would not report the answer."""
    puts_card: bool = False
    """Whether the user's answer to a card would settle the ground."""


class Text:
    """Text that is not composed until it is read."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make
        self._made: str | None = None

    def __str__(self) -> str:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class PerformedAction(Struct, frozen=True):
    """An action that a call performs, with its arguments."""

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
    """The posture behind `allowed`: the strictest posture among objecting grounds, or `enforce` if there are no
    objections.
    """
    grounds: tuple[Ground, ...] = ()
    """The grounds of every policy that applies to the call, with the objections first."""
    unguarded: bool = False
    """Whether the call is a write to which no policy applies."""
    to_agent: Any = field(default="", name="feedback")
    to_person: Any = field(default="", name="for_person")
    """The message for the reviewer. It is a `Text`, or a string if the decision was read from a log."""
    approval: str = ""
    """The id of the approval that the call waits for, or of the one that lets it run."""
    seconds: float = 0.0
    """The time that the decision took, in seconds."""
    model_queries: int = 0
    """The number of model requests since the previous decision."""
    probability: float | None = None
    """The probability that the call is permitted, if circuits were used."""
    interval: tuple[float, float] | None = None
    """The range of the margin over all possible values of unknown predicates."""
    answered: tuple[Answered, ...] = ()
    """The model's answers to predicates since the previous decision, each with the quoted words."""
    resolved: tuple[LookedUp, ...] = ()
    """Look-ups made by the shield. The grounds use their results, except with `resolve: show`: then the agent sees the
    results and makes the call again.
    """
    evidence: tuple[Ground, ...] = ()
    """Each policy's answer based only on what the agent had seen. Set if `grounds` use further facts."""
    is_over: bool = False
    """For a repeated request: whether the allowed call has returned a result in the meantime. If so, a write is not
    allowed again.
    """
    repeats: Literal["", "interrupted", "resumed"] = ""
    """Set if this decision repeats an earlier one, because the call was interrupted or is being resumed."""
    call: str = ""
    """The id of the interrupted or resumed call."""
    card: Card | None = None
    """The card to show to the user. If the user confirms it, the same call is allowed. Either the agent sends the
    card's text, or the host displays it and reports the answer with `confirm`.
    """
    request: str = ""
    """The digest of the allowance that the call was checked against, if the pack uses requests."""
    earlier: Earlier = ""
    """For a stopped call: whether the same call has run before."""
    actions: tuple[PerformedAction, ...] = ()
    """The actions that a call of a generic tool performs."""
    granted: tuple[Granted, ...] = ()
    """Actions that, according to a model, the request allows. Contains those found since the previous decision, as
    ranges of the user's words.
    """

    @property
    def is_put(self) -> bool:
        """Whether the call is stopped until somebody answers: the user on a card, or a reviewer on a request for
        approval.
        """
        return not self.allowed and (self.card is not None or (self.answer == "ask" and bool(self.approval)))

    @property
    def feedback(self) -> str:
        """The message for the agent: look-ups, questions or reasons. Empty if no policy objects outside shadow mode."""
        return str(self.to_agent)

    @property
    def for_person(self) -> str:
        """The message for the reviewer, which describes the call and the objections."""
        return str(self.to_person)

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
        """The policies for which a reviewer stood in for the user. `approval` identifies the reviewer's approval."""
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
        """The failed look-ups that may be tried again, without duplicates."""
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
    """Return the most severe answer among the grounds of each posture."""
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
    """Return the overall answer, whether the call may run, and the posture that determines this."""
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
