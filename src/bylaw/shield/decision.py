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
"""The possible decisions, the most severe first. The decision on a call is the most severe decision of any policy."""

POSTURES: tuple[Posture, ...] = ("enforce", "advise", "shadow")
_GRAVITY: dict[Answer, int] = {answer: place for place, answer in enumerate(GRAVEST)}

Earlier = Literal["", "done", "perhaps"]
"""Whether the same call has run since the user's last message: `done` (yes), `perhaps`, or empty (no)."""

Whom = Literal["user", "person"]
"""Who can answer a question: `user` (through the agent), or `person`, which is a reviewer for the policy or the host.
"""

GroundKind = Literal["guard", "rule", "call", "action", "person", "stop", "unguarded", "doubt"]


class LookUp(Struct, frozen=True, omit_defaults=True):
    """A look-up that would show missing facts, with its arguments."""

    tool: str
    arguments: dict[str, Any]
    facts: tuple[str, ...]
    instead: bool = False
    """Whether the look-up replaces the refused call."""


class Question(Struct, frozen=True):
    """A question about a fact that no look-up shows."""

    fact: str
    text: str
    whom: Whom


class Ground(Struct, frozen=True, omit_defaults=True):
    """One policy's decision on a call, with the reasons. Objections that come from no policy are grounds too."""

    policy: str
    kind: GroundKind
    """Where the ground comes from.

    `guard`, `rule`: a policy. `call`: the call could not be judged. `action`: the call performs no declared action.
    `person`: a reviewer rejected the call. `stop`: a stop covers the call. `unguarded`: no policy applies to this
    write. `doubt`: the host objects to the tool.
    """
    answer: Answer
    posture: Posture
    because: str = ""
    citations: tuple[Citation, ...] = ()
    """The sentences of the policy document on which the policy is based."""
    missing: tuple[str, ...] = ()
    """Facts that the agent has not seen and that could change the decision."""
    look_ups: tuple[LookUp, ...] = ()
    """Look-ups to make, in this order."""
    questions: tuple[Question, ...] = ()
    retries: tuple[LookUp, ...] = ()
    """Failed look-ups to try again if nobody can be asked."""
    failed: bool = False
    """Whether the guard itself failed. `because` then names the failing line for the author of the guard."""
    for_agent: str = ""
    """For the agent: a description of the missing consent or of the stop."""
    stands_in: bool = False
    """Whether a reviewer is asked in place of the user, because the host does not report user messages. The approval is
    then recorded as an override.
    """
    is_unheard: bool = False
    """Whether the ground asks the user a question to which the host would not report the answer."""
    puts_card: bool = False
    """Whether the user's answer to a card would settle the ground."""


class PerformedAction(Struct, frozen=True):
    """An action that a call performs, with the action's arguments."""

    name: str
    arguments: dict[str, Any]


class Decision(Struct, frozen=True, omit_defaults=True):
    id: str
    tool: str
    arguments: dict[str, Any]
    answer: Answer
    """The decision before the posture is applied."""
    allowed: bool
    enforced: Posture
    """The posture that determines `allowed`: the strictest posture among the objections, or `enforce` if there are
    none.
    """
    grounds: tuple[Ground, ...] = ()
    """The grounds of all policies that apply to the call, objections first."""
    unguarded: bool = False
    """Whether the call is a write without any policy."""
    feedback: str = ""
    """The message for the agent, with look-ups, questions or reasons. Empty if there are no objections, or if all are
    in shadow mode.
    """
    for_person: str = ""
    """The message for the reviewer, with the call and the objections. Empty if there are no objections."""
    approval: str = ""
    """The id of the approval for which the call waits, or under which it runs."""
    seconds: float = 0.0
    """How long the decision took, in seconds."""
    model_queries: int = 0
    """The number of requests to models since the previous decision."""
    probability: float | None = None
    """The probability that the call is permitted. Set if circuits were used."""
    interval: tuple[float, float] | None = None
    """The range of the margin over all possible values of the unknown predicates."""
    answered: tuple[Answered, ...] = ()
    """Answers from the model since the previous decision, each with the text that it quotes."""
    resolved: tuple[LookedUp, ...] = ()
    """Look-ups that the shield made, whose results the grounds use.

    With `resolve: show`, the grounds do not use them. The agent sees the results and repeats the call.
    """
    evidence: tuple[Ground, ...] = ()
    """Each policy's decision on only the facts that the agent had seen. Set if `grounds` use more facts."""
    is_over: bool = False
    """For a repeated request: whether the allowed call already has a result. If it is a write, it is then not allowed
    again.
    """
    repeats: Literal["", "interrupted", "resumed"] = ""
    """Why this decision repeats an earlier one: the call was interrupted or resumed. Empty if it does not."""
    call: str = ""
    """The id of the interrupted or resumed call."""
    card: Card | None = None
    """The card for the user. If the user confirms it, the same call is allowed.

    Either the agent sends the text of the card, or the host shows the card and reports the answer with `confirm`.
    """
    request: str = ""
    """The digest of the allowance against which the call was checked. Set if the pack uses requests."""
    earlier: Earlier = ""
    """For a stopped call: whether the same call has already run."""
    actions: tuple[PerformedAction, ...] = ()
    """The actions that a call to a generic tool performs."""
    granted: tuple[Granted, ...] = ()
    """The actions that, according to a model, the request allows. Each has ranges of the user's words. Only the actions
    found since the previous decision are listed.
    """

    @property
    def is_put(self) -> bool:
        """Whether the call waits for an answer, by the user to a card or by a reviewer to an approval request."""
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
    """Return, for each posture, the most severe decision among its grounds."""
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
    """Return the overall decision, whether the call may run, and the posture that determines this."""
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
