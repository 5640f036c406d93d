"""The shield's word on a call, and the grounds it stands on: records, no text but what the pack's author wrote."""

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
"""Over a call the first of these that any policy says."""

POSTURES: tuple[Posture, ...] = ("enforce", "advise", "shadow")
"""The firmest first."""
_GRAVITY: dict[Answer, int] = {answer: place for place, answer in enumerate(GRAVEST)}

Earlier = Literal["", "done", "perhaps"]
"""Whether the same call was carried out before, since the user last wrote: not, surely, or perhaps."""

Whom = Literal["user", "person"]
"""Who can answer: the user, whom the agent asks, or somebody who answers for the policy or the host."""

GroundKind = Literal["guard", "rule", "call", "action", "person", "stop", "unguarded", "doubt"]


class LookUp(Struct, frozen=True):
    """A read call that would show what is missing; its arguments are known now."""

    tool: str
    arguments: dict[str, Any]
    facts: tuple[str, ...]
    """What it would show."""


class Question(Struct, frozen=True):
    """Something that no look-up tells."""

    fact: str
    text: str
    whom: Whom


class Ground(Struct, frozen=True):
    """What one policy says of the call."""

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
    """Facts that were not seen and that it hangs on."""
    look_ups: tuple[LookUp, ...] = ()
    """In the order to make them."""
    questions: tuple[Question, ...] = ()
    retries: tuple[LookUp, ...] = ()
    """Look-ups that were made and failed: they may be tried again, where nobody can be asked."""
    failed: bool = False
    """Its guard could not answer; `because` has the line of it, for whoever wrote the guard."""
    for_agent: str = ""
    """What a rule about the user's consent found missing, or what is stopped, in words for the agent."""
    stands_in: bool = False
    """It asks a person what only the user could say, since nobody tells what the user says: a yes is an override."""
    is_unheard: bool = False
    """It asks the user, whose answer nobody would tell."""
    puts_card: bool = False
    """The user's answer to a card would settle it."""


class Text:
    """Words that are put together when somebody reads them."""

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
    """What is to become of one call."""

    id: str
    tool: str
    arguments: dict[str, Any]
    answer: Answer
    """The true decision, whatever the posture."""
    allowed: bool
    """What happens: the call runs."""
    enforced: Posture
    """The posture that what happens rests on: of the grounds that object, the firmest; `enforce` where none does."""
    grounds: tuple[Ground, ...] = ()
    """Every policy that bound the call, those that object first."""
    unguarded: bool = False
    """It changes something, and no policy binds it."""
    to_agent: Any = field(default="", name="feedback")
    to_person: Any = field(default="", name="for_person")
    """A `Text`, or, read from a log, its words."""
    approval: str = ""
    """The approval that the call waits for, or that let it run."""
    seconds: float = 0.0
    """Time taken."""
    model_queries: int = 0
    """How often a model was asked since the decision before."""
    probability: float | None = None
    """How likely the call is to be in order, where circuits spoke."""
    interval: tuple[float, float] | None = None
    """Where the margin lies, whatever is not known."""
    answered: tuple[Answered, ...] = ()
    """What was answered since the decision before of predicates that code could not settle, with the words it rests on.
    """
    resolved: tuple[LookedUp, ...] = ()
    """Look-ups that the shield made itself: `grounds` go by them, save where the agent is shown them and is to make the
    call again (`resolve: show`)."""
    evidence: tuple[Ground, ...] = ()
    """What each policy said on what the agent had seen, where `grounds` go by more."""
    is_over: bool = False
    """Where it answers a request that was sent again: the call that it let run has had its result since. A call that
    may change something is then not allowed a second time."""
    repeats: Literal["", "interrupted", "resumed"] = ""
    """Set where nothing was decided anew: a call that was allowed was interrupted before it was done, or goes on."""
    call: str = ""
    """The id of that call."""
    card: Card | None = None
    """What to put to the user, whose yes to it lets the same call run: the agent shows its text, or the host shows it
    and reports the answer with `confirm`."""
    request: str = ""
    """By its digest, what the user's request allows that the call was held to, where the pack asks for that."""
    earlier: Earlier = ""
    """Where it stops a call: whether the same call was carried out before."""
    actions: tuple[PerformedAction, ...] = ()
    """What the call of a generic tool does, by the pack's actions."""
    granted: tuple[Granted, ...] = ()
    """What a model said since the decision before that the request allows: places in the user's words."""

    @property
    def is_put(self) -> bool:
        """Whether it stops the call and somebody is asked: the user by a card, or a person for an approval."""
        return not self.allowed and (self.card is not None or (self.answer == "ask" and bool(self.approval)))

    @property
    def feedback(self) -> str:
        """For the agent: what to look up, what to ask, why not; empty where nothing or only a shadow objects."""
        return str(self.to_agent)

    @property
    def for_person(self) -> str:
        """For whoever answers for the policy: the call, and what stands against it."""
        return str(self.to_person)

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies that object."""
        objecting = (ground.policy for ground in self.grounds if ground.answer != "allow")
        return tuple(dict.fromkeys(filter(None, objecting)))

    @property
    def sentences(self) -> tuple[Citation, ...]:
        """Where the document says what stands against the call."""
        objecting = (ground for ground in self.grounds if ground.answer != "allow")
        return tuple(dict.fromkeys(citation for ground in objecting for citation in ground.citations))

    @property
    def missing(self) -> tuple[str, ...]:
        """The facts that were not seen, over all policies."""
        return tuple(dict.fromkeys(fact for ground in self.grounds for fact in ground.missing))

    @property
    def overrides(self) -> tuple[str, ...]:
        """The policies in which a person stood in for the user; `approval` says who."""
        return tuple(each.policy for each in self.grounds if each.answer == "allow" and each.stands_in)

    @property
    def look_ups(self) -> tuple[LookUp, ...]:
        """The look-ups to make, in order, whatever the answer; each once."""
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
        """Look-ups that failed and may be tried again; each once."""
        return tuple(
            {f"{each.tool} {each.arguments}": each for ground in self.grounds for each in ground.retries}.values()
        )

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions to put, whatever the answer; each once."""
        return tuple({(each.fact, each.text): each for ground in self.grounds for each in ground.questions}.values())

    def __repr__(self) -> str:
        what = f"{self.tool}: {self.answer}"
        return f"<decision {self.id} on {what}{'' if self.allowed == (self.answer == 'allow') else ', not enforced'}>"


def firmest(grounds: Iterable[Ground]) -> Mapping[Posture, Answer]:
    """For each posture the gravest answer among the grounds that stand under it."""
    found: dict[Posture, Answer] = {}
    for ground in grounds:
        posture, answer = ground.posture, ground.answer
        before = found.get(posture)
        if before is None or _GRAVITY[answer] < _GRAVITY[before]:
            found[posture] = answer
    return found


def gravest(answers: Iterable[Answer]) -> Answer:
    """The answer over all policies."""
    found: Answer = "allow"
    for answer in answers:
        if _GRAVITY[answer] < _GRAVITY[found]:
            found = answer
    return found


def outcome(grounds: Iterable[Ground]) -> tuple[Answer, bool, Posture]:
    """The true answer, whether the call runs, and the posture that rests on."""
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
