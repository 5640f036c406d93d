"""Decisions and their grounds as records; all their text comes from the pack's author."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct, field

from bylaw.engine.predicate_values import Answered
from bylaw.engine.request import Granted
from bylaw.policy.posture import Posture
from bylaw.policy.statement import Citation
from bylaw.trace.event import Card, LookedUp

Answer = Literal["allow", "deny", "look_up", "ask"]

GRAVEST: tuple[Answer, ...] = ("deny", "look_up", "ask", "allow")
"""The first of these that any policy gives is the overall answer."""

POSTURES: tuple[Posture, ...] = ("enforce", "advise", "shadow")
"""The strictest first."""
_GRAVITY: dict[Answer, int] = {answer: place for place, answer in enumerate(GRAVEST)}

Earlier = Literal["", "done", "perhaps"]
"""Whether the same call has already been carried out, since the user last wrote: not, surely, or perhaps."""

Whom = Literal["user", "person"]
"""Who can answer: the user, whom the agent asks, or a person responsible for the policy or the host."""

GroundKind = Literal["guard", "rule", "call", "action", "person", "stop", "unguarded", "doubt"]


class LookUp(Struct, frozen=True):
    """A look-up that would show a missing fact; its arguments are already known."""

    tool: str
    arguments: dict[str, Any]
    facts: tuple[str, ...]
    """The facts it would show."""


class Question(Struct, frozen=True):
    """A question that no look-up answers."""

    fact: str
    text: str
    whom: Whom


class Ground(Struct, frozen=True):
    """One policy's answer on the call, with its reasons."""

    policy: str
    kind: GroundKind
    """`call` if the call itself could not be judged, `action` if it performs none that is declared, `person` if a
    person said no, `stop` if a person stopped such calls, `unguarded` if no policy binds a write, `doubt` if the host
    has something against the tool."""
    answer: Answer
    posture: Posture
    because: str = ""
    citations: tuple[Citation, ...] = ()
    """Where the document says it."""
    missing: tuple[str, ...] = ()
    """Unseen facts the answer depends on."""
    look_ups: tuple[LookUp, ...] = ()
    """In the order to make them."""
    questions: tuple[Question, ...] = ()
    retries: tuple[LookUp, ...] = ()
    """Look-ups that failed and may be tried again if nobody can be asked."""
    failed: bool = False
    """Whether its guard failed; `because` gives the line, for the guard's author."""
    for_agent: str = ""
    """What is missing for a rule about consent, or what is stopped, in words for the agent."""
    stands_in: bool = False
    """Whether a person is asked in the user's place because the host does not report user messages; their yes is an
    override.
    """
    is_unheard: bool = False
    """Whether it asks the user although their answer would not be reported."""
    puts_card: bool = False
    """Whether the user's answer to a card would settle it."""


class Text:
    """Text that is composed when it is read."""

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
    """An action that a call performs, with the values taken for it."""

    name: str
    arguments: dict[str, Any]


class Decision(Struct, frozen=True):
    """The decision on one call."""

    id: str
    tool: str
    arguments: dict[str, Any]
    answer: Answer
    """The decision itself, regardless of the posture."""
    allowed: bool
    """Whether the call runs."""
    enforced: Posture
    """The posture that determines `allowed`: the strictest among objecting grounds; `enforce` if there are none."""
    grounds: tuple[Ground, ...] = ()
    """Every policy that bound the call, objections first."""
    unguarded: bool = False
    """Whether it changes something but no policy binds it."""
    to_agent: Any = field(default="", name="feedback")
    to_person: Any = field(default="", name="for_person")
    """A `Text`, or the text itself if read from a log."""
    approval: str = ""
    """The approval that the call waits for, or that let it run."""
    seconds: float = 0.0
    """Time taken."""
    model_queries: int = 0
    """Model questions since the previous decision."""
    probability: float | None = None
    """The probability that the call is permitted, if circuits were used."""
    interval: tuple[float, float] | None = None
    """The range of the margin over all values of unknown predicates."""
    answered: tuple[Answered, ...] = ()
    """Answers, since the previous decision, for predicates that code could not settle, with the words they rest on."""
    resolved: tuple[LookedUp, ...] = ()
    """Look-ups made by the shield: `grounds` use them, unless they are shown to the agent, which then repeats the call
    (`resolve: show`).
    """
    evidence: tuple[Ground, ...] = ()
    """Each policy's answer on what the agent had seen, if `grounds` use more."""
    is_over: bool = False
    """For a repeated request: whether the call it allowed has since returned a result. A call that may change something
    is then not allowed again.
    """
    repeats: Literal["", "interrupted", "resumed"] = ""
    """Set if nothing new was decided: an allowed call was interrupted, or continues."""
    call: str = ""
    """The id of that call."""
    card: Card | None = None
    """The card to show to the user, whose yes allows the same call: the agent sends its text, or the host displays it
    and reports the answer with `confirm`.
    """
    request: str = ""
    """Digest of the allowance that the call was checked against, if the pack uses requests."""
    earlier: Earlier = ""
    """If the call is stopped: whether the same call ran before."""
    actions: tuple[PerformedAction, ...] = ()
    """The actions a call of a generic tool performs."""
    granted: tuple[Granted, ...] = ()
    """What a model, since the previous decision, found the request to allow: ranges of the user's words."""

    @property
    def is_put(self) -> bool:
        """Whether it stops the call and somebody is asked: the user by a card, or a person for an approval."""
        return not self.allowed and (self.card is not None or (self.answer == "ask" and bool(self.approval)))

    @property
    def feedback(self) -> str:
        """The message for the agent: what to look up, what to ask, or why not; empty if there is no objection, or only
        one in shadow mode.
        """
        return str(self.to_agent)

    @property
    def for_person(self) -> str:
        """The message for the approver: the call, and the objections."""
        return str(self.to_person)

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies that object."""
        objecting = (ground.policy for ground in self.grounds if ground.answer != "allow")
        return tuple(dict.fromkeys(filter(None, objecting)))

    @property
    def sentences(self) -> tuple[Citation, ...]:
        """The sentences of the document behind the objections."""
        objecting = (ground for ground in self.grounds if ground.answer != "allow")
        return tuple(dict.fromkeys(citation for ground in objecting for citation in ground.citations))

    @property
    def missing(self) -> tuple[str, ...]:
        """The unseen facts of all policies."""
        return tuple(dict.fromkeys(fact for ground in self.grounds for fact in ground.missing))

    @property
    def overrides(self) -> tuple[str, ...]:
        """The policies in which a person stood in for the user; `approval` says who."""
        return tuple(each.policy for each in self.grounds if each.answer == "allow" and each.stands_in)

    @property
    def look_ups(self) -> tuple[LookUp, ...]:
        """All look-ups to make, in order and without repeats, whatever the answer."""
        found: dict[str, LookUp] = {}
        for ground in self.grounds:
            for look_up in ground.look_ups:
                name = f"{look_up.tool} {look_up.arguments}"
                before = found.get(name)
                facts = look_up.facts if before is None else tuple(dict.fromkeys((*before.facts, *look_up.facts)))
                found[name] = LookUp(look_up.tool, look_up.arguments, facts)
        return tuple(found.values())

    @property
    def retries(self) -> tuple[LookUp, ...]:
        """Failed look-ups that may be tried again, without repeats."""
        return tuple(
            {f"{each.tool} {each.arguments}": each for ground in self.grounds for each in ground.retries}.values()
        )

    @property
    def questions(self) -> tuple[Question, ...]:
        """All questions to ask, without repeats, whatever the answer."""
        return tuple({(each.fact, each.text): each for ground in self.grounds for each in ground.questions}.values())

    def __repr__(self) -> str:
        what = f"{self.tool}: {self.answer}"
        return f"<decision {self.id} on {what}{'' if self.allowed == (self.answer == 'allow') else ', not enforced'}>"


def firmest(grounds: Iterable[Ground]) -> Mapping[Posture, Answer]:
    """The most severe answer among the grounds of each posture."""
    found: dict[Posture, Answer] = {}
    for ground in grounds:
        posture, answer = ground.posture, ground.answer
        before = found.get(posture)
        if before is None or _GRAVITY[answer] < _GRAVITY[before]:
            found[posture] = answer
    return found


def gravest(answers: Iterable[Answer]) -> Answer:
    """The most severe answer."""
    found: Answer = "allow"
    for answer in answers:
        if _GRAVITY[answer] < _GRAVITY[found]:
            found = answer
    return found


def outcome(grounds: Iterable[Ground]) -> tuple[Answer, bool, Posture]:
    """The overall answer, whether the call runs, and the posture behind that."""
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
