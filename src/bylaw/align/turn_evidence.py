"""Finds the policies that a turn serves, by running the guards of the write that the turn works towards.

The guards run twice: on the facts that the agent had seen before the turn, and on those seen after it. A look-up or
question serves the policies whose result then differs.

Notes put the comparisons of a guard into words for verified thoughts, so that a small model need not calculate. For
`starts_at - now() >= hours(24)`, the note is `24 hours from now is 2025-03-13 09:00: later`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.judgement import Judgement, PolicyEvidence
from bylaw.engine.session import Session
from bylaw.facts.entity import EXISTS, UNSEEN, Entity, Fact, FactSource, Field
from bylaw.facts.unknown import Unknown
from bylaw.guard import Guard
from bylaw.guard.evaluate import run_path
from bylaw.guard.operation import alike
from bylaw.guard.run import GuardRun, Split
from bylaw.guard.scope import Spec
from bylaw.pack import Pack
from bylaw.policy.statement import Policy
from bylaw.rule.monitor import TurnSpan, turns
from bylaw.text.folding import stems
from bylaw.trace.event import Call, Event, Message, Result

_NUMBERS = (int, float, Decimal)


class Note(Struct, frozen=True):
    """A comparison that a guard made."""

    fact: Fact | None
    """The fact that was compared. None if the value comes from the user or the call."""
    words: str
    name: str = ""
    """The name of a value from the user or the call."""
    value: str = ""

    def text(self) -> str:
        """Describe a value from the user or the call, and its comparison, in words."""
        return f"{self.name} {self.value}" + (f" ({self.words})" if self.words else "")


def notes_of(
    guard: Guard, arguments: Mapping[str, Any], source: FactSource, *, tool: str, now: datetime | None
) -> tuple[Note, ...]:
    """Return the comparisons that a guard makes before its result, if they are known."""
    run = _Noting(arguments, source, tool=tool, now=now)
    run.begin(coverage=set())
    with suppress(Split):
        run_path(guard, guard.covering, run)
    run.close()
    return tuple(dict.fromkeys(run.notes))


def _noting(name: str, note: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, Any], Any]:
    """Wrap a comparison of guards so that it is recorded as a note first."""
    plain = getattr(GuardRun, name)

    def compare(run: Any, one: Any, other: Any) -> Any:
        note(run, one, other)
        return plain(run, one, other)

    return compare


class _Noting(GuardRun):
    """A run that records its comparisons."""

    __slots__ = ("facts", "gaps", "last", "notes")

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.notes: list[Note] = []
        self.facts: list[tuple[Any, Fact]] = []
        """The values that a guard has read. A compared value is recognised by object identity."""
        self.gaps: list[tuple[Any, Any, Any]] = []
        """Differences between two values, each with its operands."""
        self.last: Fact | None = None
        """The fact that the guard read last."""

    def read(self, spec: Spec, key: Any) -> Any:
        value = super().read(spec, key)
        if isinstance(value, Unknown) or key.__class__ is not tuple:
            return value
        if spec.is_system:
            self.last = Fact(spec.entity_name, key, spec.field_name)
            self.facts.append((value, self.last))
        elif spec.origin == "user" and self.is_noting:
            said = {True: "yes", False: "no"}.get(value, str(value).replace("_", " "))
            self.notes.append(Note(None, "", spec.field_name.replace("_", " "), said))
        return value

    def subtract(self, one: Any, other: Any) -> Any:
        value = super().subtract(one, other)
        self.gaps.append((value, one, other))
        return value

    def within(self, value: Any, container: Any) -> Any:
        answer = super().within(value, container)
        fact = self.fact_of(container) if container.__class__ is list and value.__class__ is str else None
        if fact is not None and self.is_noting:
            self.note(fact, f"{value.replace('_', ' ')}: {'' if answer else 'not '}among them")
        return answer

    # Notes.

    def compared(self, one: Any, other: Any) -> None:
        """Note a comparison of two known values on the path of the guard."""
        if not self.is_noting or isinstance(one, Unknown) or isinstance(other, Unknown):
            return
        one, other = (each if each.__class__ is not bool else int(each) for each in (one, other))
        if self.moment(one, other) or self.moment(other, one):
            return
        if not (_is_weighable(one) and _is_weighable(other)):
            return
        for value, against in ((one, other), (other, one)):
            if (fact := self.fact_of(value)) is not None:
                self.note(fact, self.held(value, against))
                return
        if not self.left_over(one, other) and not self.left_over(other, one):
            self.asked_for(one, other)

    def moment(self, gap: Any, span: Any) -> bool:
        """Record `fact - now() >= hours(24)` as a comparison of the fact with a point in time."""
        if gap.__class__ is not timedelta or span.__class__ is not timedelta or self.time is None:
            return False
        _, of, less = next((each for each in reversed(self.gaps) if each[0] is gap), (None, None, None))
        for value, since, sign in ((of, less, 1), (less, of, -1)):
            fact = self.fact_of(value)
            if fact is None or not self.is_now(since):
                continue
            threshold = since + sign * span
            when = "from now" if sign > 0 else "ago"
            self.note(fact, f"{_span(span)} {when} is {_written(threshold)}: {_order(*alike(value, threshold))}")
            return True
        return False

    def left_over(self, value: Any, rest: Any) -> bool:
        """Record `amount <= paid - refunded` as a comparison of an amount with the remaining amount."""
        found = next((each for each in reversed(self.gaps) if each[0] is rest), None)
        fact = self.fact_of(found[2]) if found is not None else None
        if fact is None:
            return False
        self.note(fact, f"leaves {_written(rest)}, and {_written(value)} is {_order(*alike(value, rest))}")
        return True

    def asked_for(self, one: Any, other: Any) -> None:
        """Record a comparison of an argument with a limit, which may depend on the fact that was read last."""
        for value, against in ((one, other), (other, one)):
            name = self.argument_of(value)
            if name and self.last is not None:
                self.note(self.last, f"{name} {_written(value)} against {self.held(value, against)}")
            elif name:
                self.notes.append(Note(None, self.held(value, against), name, _written(value)))
            if name:
                return

    def matched(self, one: Any, other: Any) -> None:
        if not self.is_noting or isinstance(one, Unknown) or isinstance(other, Unknown):
            return
        if _is_weighable(one) and _is_weighable(other) and one.__class__ is not bool:
            if (fact := self.fact_of(one)) is not None:
                self.note(fact, self.held(one, other))
        elif one.__class__ is str and other.__class__ is str and (fact := self.fact_of(one)) is not None:
            self.note(fact, f"{other}: {'the same' if one == other else 'another'}")

    def held(self, value: Any, against: Any) -> str:
        today = "today " if self.is_now(against) else ""
        return f"{today}{_written(against)}: {_order(*alike(value, against))}"

    def note(self, fact: Fact, words: str) -> None:
        self.notes.append(Note(fact, words))

    less, at_most = _noting("less", compared), _noting("at_most", compared)
    more, at_least = _noting("more", compared), _noting("at_least", compared)
    equal, differ = _noting("equal", matched), _noting("differ", matched)

    # The source of a value.

    def fact_of(self, value: Any) -> Fact | None:
        return next((fact for known, fact in reversed(self.facts) if known is value), None)

    def argument_of(self, value: Any) -> str:
        """Return the call argument that contains an amount."""
        for name, given in self.arguments.items():
            try:
                if isinstance(value, Decimal) and not isinstance(given, bool) and Decimal(str(given)) == value:
                    return name.replace("_", " ")
            except ArithmeticError:
                continue
        return ""

    def is_now(self, value: Any) -> bool:
        if self.time is None:
            return False
        now = self.do_now()
        return value == now if value.__class__ is datetime else value.__class__ is date and value == now.date()


def _is_weighable(value: Any) -> bool:
    return isinstance(value, (*_NUMBERS, date)) and not isinstance(value, bool)


def _order(one: Any, other: Any) -> str:
    if one == other:
        return "the same" if isinstance(one, date) else "equal"
    if isinstance(one, date):
        return "earlier" if one < other else "later"
    return "less" if one < other else "more"


def _written(value: Any) -> str:
    match value:
        case datetime():
            return f"{value:%Y-%m-%d %H:%M}"
        case Decimal():
            return f"{'-' if value < 0 else ''}${abs(value):,.2f}"
        case _:
            return str(value)


def _span(span: timedelta) -> str:
    """Return a duration as policies express it: three or more whole days in days, and any other in hours or minutes."""
    minutes = round(abs(span).total_seconds() / 60)
    for size, unit in ((1440, "day"), (60, "hour"), (1, "minute")):
        count, rest = divmod(minutes, size)
        if not rest and (count > 2 or size < 1440):
            return f"{count} {unit}" + ("" if count == 1 else "s")
    return f"{minutes} minutes"


Purpose = Literal["look_up", "ask", "announce", "refuse", "write", "other"]

_NEW_TURN = 1 << 30
"""A turn number that no recorded turn has."""


class TargetWrite(Struct, frozen=True):
    """The write that a turn works towards: the next write that is made or refused."""

    call: Call
    is_made: bool = True


class SeenFact(Struct, frozen=True):
    """A fact that the guards of the write read, and its value."""

    fact: Fact
    field: Field
    value: Any
    notes: tuple[str, ...] = ()
    """The value that the guards compared with the fact."""


class TurnEvidence(Struct, frozen=True):
    """The results of the guards and rules for the write, at one turn."""

    purpose: Purpose
    target: TargetWrite | None
    policies: tuple[Policy, ...]
    """The policies that the turn serves (the paper's set A), in pack order."""
    newly_seen: tuple[SeenFact, ...] = ()
    """Facts that the guards read and that the agent has seen since its last turn."""
    seen: tuple[SeenFact, ...] = ()
    """All facts that the guards read and that the agent had seen."""
    value_facts: tuple[SeenFact, ...] = ()
    """Facts in `seen` that determine a value of the call."""
    claims: tuple[Note, ...] = ()
    """Values that the served policies compare with the call arguments, whether or not the agent has seen them."""
    lacking: tuple[Fact, ...] = ()
    """Facts that the agent has not seen and that the turn's look-up would show."""
    questions: tuple[str, ...] = ()
    """Questions that the policies require the agent to ask the user."""
    denials: tuple[str, ...] = ()
    """The reasons given by the guards that deny."""
    is_settled: bool = False
    """Whether every guard permits the write, given the facts that the agent has seen. The write must also comply with
    every rule.
    """

    @property
    def required(self) -> frozenset[str]:
        return frozenset(policy.id for policy in self.policies)


def next_write(pack: Pack, events: Sequence[Event], start: int) -> TargetWrite | None:
    """Return the next write in a recorded conversation. A log does not show refused writes."""
    for event in events[start:]:
        if isinstance(event, Call) and event.by == "agent" and not event.fault and _effect(pack, event) == "write":
            return TargetWrite(event)
    return None


def find_evidence(
    pack: Pack,
    events: Sequence[Event],
    span: TurnSpan,
    target: TargetWrite | None,
    purpose: Purpose | None = None,
) -> TurnEvidence:
    """Return the results of the guards and rules for the turn at `span`.

    `events` include at least the results of the turn, if known. By default, `purpose` is derived from the events.
    """
    before, turn = events[: span.start], events[span.start : span.end]
    if target is None:
        return TurnEvidence(purpose or _by_calls(pack, turn) or "other", None, _ruled(pack, turn))
    now = _guard_results(pack, before, target.call)
    if purpose is None:
        purpose = _purpose(pack, events, span, target, now)
    after = _guard_results(pack, events[: _answered(events, span)], target.call)
    served: set[str] = {policy.id for policy in _ruled(pack, turn)}
    match purpose:
        case "look_up":
            served |= now.changed(after) or now.shown_by(turn)
        case "ask":
            served |= _guard_results(pack, before, _without_user_text(pack, target.call)).asking()
        case "refuse":
            served |= now.denying()
        case "announce":
            served |= now.breaking() | now.setting_values()
        case "write":
            served |= now.setting_values()
        case "other":
            pass
    since = max((turn.end for turn in turns(before)), default=0)
    evidence = [each for each in now.evidence if each.policy.id in served]
    notes = now.notes()
    seen = now.seen(note for each in notes.values() for note in each)
    setting = {fact for each in now.evidence if each.policy.id in now.setting_values() for fact in _read_by(each)}
    return TurnEvidence(
        purpose,
        target,
        tuple(policy for policy in pack.policies.values() if policy.id in served),
        tuple(item for item, at in seen if at >= since),
        tuple(item for item, _ in seen),
        tuple(item for item, _ in seen if item.fact in setting),
        tuple(note for id, each in notes.items() if id in served for note in each if note.fact is None),
        tuple(dict.fromkeys(fact for each in evidence for fact in now.lacking(each))) if purpose == "look_up" else (),
        _questions(pack, served) if purpose == "ask" else (),
        now.denials(),
        now.is_settled() and (purpose != "write" or not now.breaking(or_open=True)),
    )


def _guard_results(pack: Pack, before: Sequence[Event], call: Call) -> "_GuardResults":
    session = Session(pack, mode="none")
    session.observe_all(before)
    return _GuardResults(pack, session.judge(replace(call, turn=_NEW_TURN)))


class _GuardResults:
    """Runs the guards of a call on the facts that the agent has seen at one point in a conversation."""

    def __init__(self, pack: Pack, judged: Judgement) -> None:
        self._pack = pack
        self._judged = judged
        self.evidence: tuple[PolicyEvidence, ...] = judged.evidence

    def changed(self, after: "_GuardResults") -> set[str]:
        then = {each.policy.id: each for each in after.evidence}
        return {each.policy.id for each in self.evidence if _signature(each) != _signature(then[each.policy.id])}

    def shown_by(self, turn: Sequence[Event]) -> set[str]:
        """Return the policies that lack a fact which this turn's look-ups would show."""
        looked = {(event.tool, _frozen(event.arguments)) for event in turn if isinstance(event, Call)}
        return {
            each.policy.id
            for each in self.evidence
            for fact in self.lacking(each)
            if fact.key is not None and looked & set(self._ways(fact))
        }

    def _ways(self, fact: Fact) -> list[tuple[str, Any]]:
        entity = self._pack.schema.entities[fact.entity]
        named = dict(zip(entity.key, fact.key or (), strict=False))
        return [(way.tool, _frozen(way.given(named))) for way in self._pack.schema.ways[entity.name, fact.field]]

    def asking(self) -> set[str]:
        return {each.policy.id for each in self.evidence if any(done.asked for done in each.completions)}

    def denying(self) -> set[str]:
        return {each.policy.id for each in self.evidence if all(done.outcome == "deny" for done in each.completions)}

    def denials(self) -> tuple[str, ...]:
        return tuple(each.completions[0].because for each in self.evidence if each.policy.id in self.denying())

    def is_settled(self) -> bool:
        return all(done.outcome == "permit" for each in self.evidence for done in each.completions)

    def breaking(self, *, or_open: bool = False) -> set[str]:
        """Return the policies whose rules the call would break at this point. With `or_open`, include undecided
        rules.
        """
        found = (*self._judged.rules, *(self._judged.open_rules if or_open else ()))
        return {each.rule.policy for each in found}

    def setting_values(self) -> set[str]:
        """Return the policies that determine an amount, a tier or another argument that is not a name or id."""
        values = value_arguments(self._pack, self._judged.made.call.tool)
        return {
            each.policy.id
            for each in self.evidence
            if each.guard.arguments[1] & values and any(done.reads or done.asked for done in each.completions)
        }

    def lacking(self, evidence: PolicyEvidence) -> list[Fact]:
        """Return the facts that the agent has not seen and that a guard reads, or would read next."""
        facts = (fact for done in evidence.completions for fact in (*done.reads, *done.lacking))
        return [fact for fact in dict.fromkeys(facts) if self._value(fact) is UNSEEN]

    def notes(self) -> dict[str, tuple[Note, ...]]:
        call, source, now = self._judged.made.call, self._judged.seen, self._judged.now
        return {
            each.policy.id: notes_of(each.guard, call.arguments, source, tool=call.tool, now=now)
            for each in self.evidence
        }

    def seen(self, notes: Iterable[Note] = ()) -> list[tuple[SeenFact, int]]:
        """Return the facts that the guards read and that the agent has seen, each with the step that showed the
        fact.
        """
        found: list[tuple[SeenFact, int]] = []
        held: dict[Fact, list[str]] = {}
        for note in notes:
            if note.fact is not None:
                held.setdefault(note.fact, []).append(note.words)
        for fact in dict.fromkeys(f for each in self.evidence for f in _read_by(each)):
            value = self._value(fact)
            if value is UNSEEN or fact.key is None:
                continue
            entity, field = self._named(fact)
            shown = self._judged.seen.shown_at(entity, fact.key, field)
            item = SeenFact(fact, field, value, tuple(held.get(fact, ())))
            found.append((item, shown.delivered if shown is not None else -1))
        return found

    def _value(self, fact: Fact) -> Any:
        if fact.key is None:
            return UNSEEN
        entity, field = self._named(fact)
        try:
            return self._judged.seen.read(entity, fact.key, field)
        except ValueError:
            return None

    def _named(self, fact: Fact) -> tuple[Entity, Field]:
        entity = self._pack.schema.entities[fact.entity]
        return entity, EXISTS if fact.field == "exists" else entity.fields[fact.field]


def value_arguments(pack: Pack, tool: str) -> frozenset[str]:
    """Return the arguments that a tool's guards compare, such as amounts and tiers. Names and ids are left out."""
    guards = [guard for _, guard in pack.by_tool.get(tool, ())]
    names = frozenset(name for entity in pack.schema.entities.values() for name in entity.key)
    keys = frozenset(name for guard in guards for name in guard.arguments[0])
    return frozenset(name for guard in guards for name in guard.arguments[1]) - keys - names


def _purpose(pack: Pack, events: Sequence[Event], span: TurnSpan, target: TargetWrite, now: _GuardResults) -> Purpose:
    if called := _by_calls(pack, events[span.start : span.end]):
        return called
    if not target.is_made:
        return "refuse" if now.denying() else _question(pack, events, span, target)
    asked = _question(pack, events, span, target)
    if asked == "ask":
        return "ask"
    return "announce" if now.is_settled() and _needs_only_a_yes(pack, events, span, target.call) else "other"


def _by_calls(pack: Pack, turn: Sequence[Event]) -> Purpose | None:
    effects = {_effect(pack, event) for event in turn if isinstance(event, Call)}
    return "write" if "write" in effects else "look_up" if "read" in effects else "other" if effects else None


def _question(pack: Pack, events: Sequence[Event], span: TurnSpan, target: TargetWrite) -> Purpose:
    """Return whether the turn asks for a fact that only the user knows while policies still depend on it."""
    text = " ".join(event.text for event in events[span.start : span.end] if isinstance(event, Message))
    open_before = _guard_results(pack, events[: span.start], _without_user_text(pack, target.call)).asking()
    if "?" not in text or not open_before:
        return "other"
    said = set(stems(text))
    return "ask" if any(len(said & set(stems(each))) >= 2 for each in _questions(pack, open_before)) else "other"


def _questions(pack: Pack, policies: set[str]) -> tuple[str, ...]:
    read = {fact for each in policies if each in pack.guards for fact in pack.guards[each].facts}
    asked = (
        field.question
        for entity in pack.schema.entities.values()
        for field in entity.fields.values()
        if field.origin == "user" and field.question and f"{entity.name}.{field.name}" in read
    )
    return tuple(dict.fromkeys(asked))


def _without_user_text(pack: Pack, call: Call) -> Call:
    """Return the call without the arguments that only repeat the user's text."""
    told = {
        saying.argument
        for entity in pack.schema.entities.values()
        for field in entity.fields.values()
        for saying in field.sayings
        if saying.argument
    }
    return replace(call, arguments={name: value for name, value in call.arguments.items() if name not in told})


def _ruled(pack: Pack, turn: Sequence[Event]) -> tuple[Policy, ...]:
    ruled = {rule.policy for rule in pack.book.rules}
    tools = {event.tool for event in turn if isinstance(event, Call)}
    return tuple(policy for policy in pack.policies.values() if policy.id in ruled and tools & set(policy.tools))


def _needs_only_a_yes(pack: Pack, events: Sequence[Event], span: TurnSpan, call: Call) -> bool:
    """Whether the call would comply with a rule only after the user has agreed to this turn."""
    yes = Message("user", "Yes.", turn=_NEW_TURN - 1)
    unkept = _guard_results(pack, events[: span.start], call).breaking(or_open=True)
    return bool(unkept and unkept - _guard_results(pack, [*events[: span.end], yes], call).breaking(or_open=True))


def _answered(events: Sequence[Event], span: TurnSpan) -> int:
    """Return the position after the replies to a turn. The replies are its results or the user's answer."""
    at = span.end
    while at < len(events):
        event = events[at]
        if not isinstance(event, Result) and event.by == "agent":
            break
        if isinstance(event, Message) and any(isinstance(each, Call) for each in events[span.start : span.end]):
            break
        at += 1
    return at


def _read_by(evidence: PolicyEvidence) -> list[Fact]:
    return [fact for done in evidence.completions for fact in done.reads]


def _signature(evidence: PolicyEvidence) -> Any:
    return [(done.outcome, done.reads, done.lacking, done.asked) for done in evidence.completions]


def _frozen(arguments: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    return frozenset((name, str(value)) for name, value in arguments.items() if value is not None)


def _effect(pack: Pack, call: Call) -> str:
    tool = pack.schema.tools.get(call.tool)
    return "unknown" if tool is None else tool.effect
