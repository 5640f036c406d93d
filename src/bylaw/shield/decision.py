"""The records of a decision and of its grounds. All text in them comes from the pack's author."""

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
"""The possible answers, the most severe first. The overall answer is the most severe one that any policy gives."""

POSTURES: tuple[Posture, ...] = ("enforce", "advise", "shadow")
_GRAVITY: dict[Answer, int] = {answer: place for place, answer in enumerate(GRAVEST)}

Earlier = Literal["", "done", "perhaps"]
"""Whether the same call has already run since the user's last message: empty if it has not, otherwise `done` or
`perhaps`.
"""

Whom = Literal["user", "person"]
"""Who can answer: the user (through the agent), or the reviewer (`person`) who is responsible for the policy or the
host.
"""

GroundKind = Literal["guard", "rule", "call", "action", "person", "stop", "unguarded", "doubt"]


class LookUp(Struct, frozen=True, omit_defaults=True):
    """A look-up, with its arguments, that would reveal a missing fact."""

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
    """The answer of one policy on a call, with the reasons."""

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
    """The sentences of the document that the policy is based on."""
    missing: tuple[str, ...] = ()
    """Facts that the answer depends on and that the agent has not seen."""
    look_ups: tuple[LookUp, ...] = ()
    """Look-ups, in the order in which they should be made."""
    questions: tuple[Question, ...] = ()
    retries: tuple[LookUp, ...] = ()
    """Look-ups that failed but may be tried again if nobody can be asked."""
    failed: bool = False
    """Whether the guard failed. If so, `because` contains the failing line for the guard's author."""
    for_agent: str = ""
    """The missing consent or the stop, described for the agent."""
    stands_in: bool = False
    """Whether a reviewer is asked in place of the user because the host does not report user messages. The reviewer's
    approval is recorded as an override.
    """
    is_unheard: bool = False
    """Whether the ground asks the user a question although the host would not report the answer."""
    puts_card: bool = False
    """Whether the ground would be settled by the user's answer to a card."""


class Text:
    """Text that is composed only when it is read."""

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
    """The posture that determines `allowed`: the strictest posture of the objecting grounds, or `enforce` if there are
    no objections.
    """
    grounds: tuple[Ground, ...] = ()
    """The grounds of every policy that applies to the call, with the objections first."""
    unguarded: bool = False
    """Whether the call is a write to which no policy applies."""
    to_agent: Any = field(default="", name="feedback")
    to_person: Any = field(default="", name="for_person")
    """The message for the reviewer. A `Text`, or a string if the decision was read from a log."""
    approval: str = ""
    """The id of the approval that the call is waiting for, or of the approval that lets it run."""
    seconds: float = 0.0
    """The time that the decision took, in seconds."""
    model_queries: int = 0
    """The number of requests sent to models since the previous decision."""
    probability: float | None = None
    """The probability that the call is permitted. Set if circuits were used."""
    interval: tuple[float, float] | None = None
    """The range of the margin over all possible values of the unknown predicates."""
    answered: tuple[Answered, ...] = ()
    """The values that the model has given predicates since the previous decision, each with the words that it quoted.
    """
    resolved: tuple[LookedUp, ...] = ()
    """Look-ups made by the shield. The grounds use their results. The exception is `resolve: show`, with which the
    agent sees the results and makes the call again.
    """
    evidence: tuple[Ground, ...] = ()
    """Each policy's answer based only on what the agent had seen. Set if `grounds` use further facts."""
    is_over: bool = False
    """For a repeated request: whether the allowed call has returned a result in the meantime. If so, a write is not
    allowed a second time.
    """
    repeats: Literal["", "interrupted", "resumed"] = ""
    """Set if this decision repeats an earlier one because the call was interrupted or is being resumed."""
    call: str = ""
    """The id of the call that was interrupted or is being resumed."""
    card: Card | None = None
    """The card to show to the user. If the user confirms it, the same call will be allowed. Either the agent sends the
    card's text, or the host displays the card and reports the answer with `confirm`.
    """
    request: str = ""
    """The digest of the allowance that the call was checked against, if the pack uses requests."""
    earlier: Earlier = ""
    """For a stopped call: whether the same call has run earlier."""
    actions: tuple[PerformedAction, ...] = ()
    """The actions that a call to a generic tool performs."""
    granted: tuple[Granted, ...] = ()
    """Actions that the request allows, according to a model. Contains only those found since the previous decision,
    each with ranges of the user's words.
    """

    @property
    def is_put(self) -> bool:
        """Whether the call is stopped until somebody answers: the user on a card, or a reviewer on an approval
        request.
        """
        return not self.allowed and (self.card is not None or (self.answer == "ask" and bool(self.approval)))

    @property
    def feedback(self) -> str:
        """The message for the agent: look-ups, questions or reasons. Empty if only policies in shadow mode object, or
        if none do.
        """
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
        """The policies for which a reviewer answered in place of the user. `approval` identifies the reviewer's
        approval.
        """
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
    """Return, for each posture, the most severe answer among its grounds."""
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
    """Return the overall answer, whether the call may run, and the posture that determines whether it may."""
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
