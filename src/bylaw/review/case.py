"""Runs cases: small situations, each with the expected outcome of a policy.

A case may leave out keys. For example, in `facts: {Order: {status: sent}, Customer: {gold: true}}`, the order is the
one in the call's `order_id`, and the customer is the customer of this order, unless the case says otherwise.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import msgspec
from msgspec import Struct

from bylaw.engine.judgement import Judgement, PolicyEvidence
from bylaw.engine.session import Session
from bylaw.engine.settlement import PolicyVerdict, settle_call
from bylaw.engine.verdict import WORST_FIRST
from bylaw.errors import BylawError, meant
from bylaw.facts.call_record import matches, record_of
from bylaw.facts.entity import ABSENT, UNDECLARED, UNSEEN, Between, Entity, FactSource, Field, Key
from bylaw.facts.ledger import Ledger
from bylaw.facts.seen import ArgumentOrigin, TrueFacts
from bylaw.facts.shown import Shown
from bylaw.facts.value import coerce, key_of
from bylaw.facts.world import Snapshot, WorldRecord
from bylaw.guard import Guard, evaluate
from bylaw.pack import CRITERIA, Pack
from bylaw.policy.case import WrittenCase, WrittenEvent
from bylaw.trace.event import Call, Event, Message, Result


class Subjects:
    """The entities that a case declares without a key, and the arguments of the call.

    The keys are added to the arguments.
    """

    def __init__(
        self,
        body: WrittenCase,
        arguments: Mapping[str, Any],
        parameters: Mapping[str, Any],
        entities: Mapping[str, Entity],
    ) -> None:
        named = [entities[name] for name in (*body.facts, *(body.world or {})) if name in entities]
        parts = dict.fromkeys(part for entity in named for part in entity.key)
        told = _key_values(body)
        self._keys = {part: arguments.get(part, told.get(part, _key_for(parameters.get(part), part))) for part in parts}
        filled = {part: value for part, value in self._keys.items() if part in parameters}
        self.arguments: dict[str, Any] = {**filled, **arguments}

    def key_of(self, entity: Entity) -> Key:
        return key_of([self._keys[part] for part in entity.key])

    def references_of(self, entity: Entity) -> dict[str, Any]:
        """Return the fields of an entity that refer to other entities in the case.

        Fields that the case sets are left out.
        """
        return {part: value for part, value in self._keys.items() if part in entity.fields and part not in entity.key}


def _key_values(body: WrittenCase) -> dict[str, Any]:
    """Return values that may be keys, such as `customer_id: C1` for customer C1. If values conflict, leave them out."""
    found: dict[str, set[Any]] = {}
    for things in (body.facts, body.world or {}):
        for fields in things.values():
            for name, value in (fields or {}).items():
                if isinstance(value, str | int):
                    found.setdefault(name, set()).add(value)
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


def _key_for(schema: Any, name: str) -> str | int:
    """Return a key that is clearly invented: the name of the entity or, if the tool takes a number, a number."""
    kind = cast(dict[str, Any], schema).get("type") if isinstance(schema, dict) else None
    return 1 if kind in ("integer", "number") else name


_ENTITY = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\[(.*)\])?\s*$")
_HALVES = ("permit", "deny", "undetermined")

OPEN = "code cannot tell from the words whether the rule was kept or broken"
"""The outcome if a rule should be broken, but the values of some of its predicates are unknown."""

GivenEntity = tuple[str, Key]
GivenEntities = Mapping[GivenEntity, WorldRecord | None]


class CaseError(BylawError):
    """Raised if a case cannot be run in the form in which it is written."""

    code = "BY407"


class CaseResult(Struct, frozen=True):
    place: str
    note: str
    policy: str
    want: str
    got: str
    passed: bool
    wanted: str = ""
    is_undecided: bool = False
    """Whether a rule that should be kept is not broken, although code cannot confirm that it is kept."""


def run_cases(
    pack: Pack, coverage: dict[str, set[int]] | None = None, *, of: Container[str] | None = None
) -> Iterator[CaseResult | BylawError]:
    """Run every case in the pack, or only the cases of the policies and rules in `of`.

    If `coverage` is given, it collects the branches that each guard takes.
    """
    for read in pack.cases.values():
        for index, body in enumerate(read.record.cases):
            if of is not None and str(body.rule or body.policy) not in of:
                continue
            yield run_case(pack, body, read.source.place("cases", index), coverage)
            for number, change in enumerate(body.variations):
                place = read.source.place("cases", index, "but", number)
                yield run_case(pack, body.varied(change), place, coverage)


def run_case(
    pack: Pack, body: WrittenCase, place: str, coverage: dict[str, set[int]] | None = None
) -> CaseResult | BylawError:
    """Run one case. If the case cannot be run as written, return a `CaseError`."""
    try:
        if body.rule is not None:
            return _rule_case(pack, str(body.rule), body, place)
        return _Case(pack, body, place).run(coverage)
    except BylawError as error:
        return CaseError(error.message, place=error.place or place, hint=error.hint)


def _rule_case(pack: Pack, name: str, body: WrittenCase, place: str) -> CaseResult:
    want = body.wanted
    rule = next((rule for rule in pack.book.rules if rule.name == name), None)
    if rule is None:
        known = meant(name, (each.name for each in pack.book.rules))
        raise CaseError(f"`{name}` is not a rule", place=place, hint=known)
    if want not in ("kept", "broken", "open"):
        raise CaseError("the `want` of a rule case must be `kept`, `broken` or `open`", place=place)
    for part, given in (("facts", body.facts), ("world", body.world), ("call", body.call), ("done", body.done)):
        if given:
            raise CaseError(f"a rule case uses only `events`, not `{part}`", place=place)
    session = Session(_at(pack, _time(body, pack, place)), context=body.context)
    session.observe_all(list(_events(body.events or (), place)))
    got = "broken" if any(found.rule.name == name for found in session.findings(ended=True)) else "kept"
    is_undecided = got == "kept" and name in session.open_rules
    if is_undecided and want != "kept":
        got = "open" if want == "open" else OPEN
    return CaseResult(place, str(body.note), rule.policy, want, got, got == want, want, is_undecided and want == "kept")


def _time(body: WrittenCase, pack: Pack, place: str) -> datetime | None:
    try:
        return datetime.fromisoformat(str(body.now)) if body.now is not None else pack.now
    except ValueError:
        hint = "write it like 2025-03-12T09:00:00"
        raise CaseError(f"`{body.now}` is not a time", place=place, hint=hint) from None


def _at(pack: Pack, now: datetime | None) -> Pack:
    if pack.schema.actions is not None:
        pack = msgspec.structs.replace(pack, schema=msgspec.structs.replace(pack.schema, takes_actions=True))
    return pack if now == pack.now else msgspec.structs.replace(pack, now=now)


class _Case:
    def __init__(self, pack: Pack, body: WrittenCase, place: str) -> None:
        self._body = body
        if body.want == "":
            hint = "add `want: permit`, `deny` or `undetermined`"
            raise CaseError("the case has no expected result", place=place, hint=hint)
        self._pack = pack
        self._place = place
        policy = str(body.policy)
        if policy not in pack.guards:
            hint = meant(policy, pack.guards)
            raise CaseError(f"`{policy}` is not a policy with a guard", place=place, hint=hint)
        self._policy = pack.policies[policy]
        self._guard: Guard = pack.guards[policy]
        called = body.called or {self._policy.tools[0]: {}}
        if len(called) != 1:
            raise CaseError("`call` must contain exactly one tool with its arguments", place=place)
        (self._tool, arguments), *_ = called.items()
        if self._tool not in self._policy.tools:
            hint = f"it binds {', '.join(self._policy.tools)}"
            raise CaseError(f"policy `{policy}` does not bind `{self._tool}`", place=place, hint=hint)
        parameters = pack.schema.tools[self._tool].parameters
        self._subjects = Subjects(body, arguments or {}, parameters, pack.schema.entities)
        self._arguments = self._subjects.arguments
        self._now = _time(body, pack, place)

    def run(self, coverage: dict[str, set[int]] | None) -> CaseResult:
        want = "permit" if self._body.want is None else self._body.want
        if isinstance(want, str):
            want = want.replace("-", "_")
        if not isinstance(want, dict) and want not in (*_HALVES, *WORST_FIRST):
            hint = f"use one of {', '.join((*_HALVES, *WORST_FIRST))}"
            raise CaseError(f"`{want}` is not a possible outcome", place=self._place, hint=hint)
        taken = None if coverage is None else coverage.setdefault(self._policy.id, set())
        verdict = self._by_events(taken) if self._body.events is not None else self._by_facts(taken)
        if isinstance(want, str) and want in _HALVES:
            got: str = verdict.evidence
            return self._outcome(want, got, got == want, verdict)
        wanted: dict[str, Any] = want if isinstance(want, dict) else {"verdict": want}
        missing = sorted(str(m.fact) for m in verdict.missing)
        found: dict[str, Any] = {"strict": verdict.strict, "determined": verdict.determined, "missing": missing}
        found["verdict"] = found[self._pack.criterion]
        found |= {"evidence": verdict.evidence, "world": verdict.world, "because": verdict.because}
        for name in wanted.keys() - found.keys():
            raise CaseError(f"`want` has no `{name}`", place=self._place, hint=f"use {', '.join(sorted(found))}")
        expected: dict[str, Any] = {
            name: sorted(cast(list[str], value)) if isinstance(value, list) else value for name, value in wanted.items()
        }
        for name in expected.keys() & {"strict", "determined", "verdict"}:
            said = str(expected[name]).replace("-", "_")
            if said not in WORST_FIRST:
                hint = f"use one of {', '.join(WORST_FIRST)}"
                raise CaseError(f"`{expected[name]}` is not a verdict", place=self._place, hint=hint)
            expected[name] = said
        got_part = {name: found[name] for name in expected}
        return self._outcome(_told(expected), _told(got_part), expected == got_part, verdict)

    def _outcome(self, want: str, got: str, passed: bool, verdict: PolicyVerdict) -> CaseResult:
        if not passed:
            read = frozenset[str]().union(*self._guard.arguments) & set(self._pack.schema.tools[self._tool].required)
            if lacking := sorted(read - self._arguments.keys()):
                names = ", ".join(f"`{name}`" for name in lacking)
                got = f"{got}; the guard reads {names}, so add {'it' if len(lacking) == 1 else 'them'} under `call`"
            elif verdict.because:
                got = f"{got} ({verdict.because})"
        return CaseResult(self._place, str(self._body.note), self._policy.id, want, got, passed, self._body.wanted)

    def _by_facts(self, taken: set[int] | None) -> PolicyVerdict:
        body = self._body
        seen = _CaseFacts(self._things(body.facts), self._done())
        if body.context:
            seen.things["context", ()] = body.context
        true = _CaseFacts({**seen.things, **self._things(body.world or {}, over=seen.things)}, self._done(), whole=True)
        call = Call(self._tool, self._arguments)
        made = record_of(call, 0, 0, self._pack.schema.tools.get(self._tool))
        found = evaluate(self._guard, self._arguments, seen, tool=self._tool, now=self._now, coverage=taken)
        judgement = Judgement(made, seen, self._now, (PolicyEvidence(self._policy, self._guard, found),))
        truth = true if body.world is not None else None
        if truth is not None:
            self._cover(truth, taken)
        return settle_call(self._pack, Ledger(self._pack.schema), judgement, truth).policies[0]

    def _by_events(self, taken: set[int] | None) -> PolicyVerdict:
        world = None
        if self._body.world is not None:
            things = self._things(self._body.world)
            world = Snapshot(self._pack.schema, lambda e, k: _record(things, e, k), lambda e, m: _members(things, e, m))
        session = Session(_at(self._pack, self._now), world=world, context=self._body.context)
        turn = 0
        for event in _events(self._body.events or (), self._place):
            session.observe(event)
            turn = max(turn, getattr(event, "turn", 0))
        call = Call(self._tool, self._arguments, turn=turn + 1)
        judgement = session.judge(call)
        self._cover(judgement.seen, taken)
        if world is not None:
            moved = world.fork()
            for made in session.ledger.writes:
                if made.counts():
                    moved.apply(made.call, made.result)
            self._cover(TrueFacts(session.ledger, judgement.made, self._body.context, moved), taken)
        session.observe(call)
        verdict = session.settle()[-1]
        return next(p for p in verdict.policies if p.policy.id == self._policy.id)

    def _cover(self, source: FactSource, taken: set[int] | None) -> None:
        if taken is not None:
            evaluate(self._guard, self._arguments, source, tool=self._tool, now=self._now, coverage=taken)

    def _things(
        self, listed: Mapping[str, WorldRecord | None], over: GivenEntities | None = None
    ) -> "dict[GivenEntity, WorldRecord | None]":
        found: dict[GivenEntity, WorldRecord | None] = {}
        for name, given in listed.items():
            thing = self._thing(name)
            below = (over or {}).get(thing)
            if given is not None:
                declared = self._pack.schema.entities[thing[0]]
                for field in given.keys() - declared.fields.keys() - {"exists"}:
                    raise CaseError(f"`{thing[0]}` has no field `{field}`", place=self._place)
                spoken_of = self._subjects.references_of(declared)
                given = {**spoken_of, **dict(zip(declared.key, thing[1], strict=False)), **(below or {}), **given}
            found[thing] = given
        return found

    def _thing(self, name: str) -> GivenEntity:
        match = _ENTITY.match(name)
        entities = self._pack.schema.entities
        if match is None or match[1] not in entities:
            raise CaseError(f"`{name}` is not an entity", place=self._place, hint="write it like `Patient[P1]`")
        entity = entities[match[1]]
        if match[2] is None:
            return entity.name, self._subjects.key_of(entity)
        parts = [part.strip().strip("\"'") for part in match[2].split(",")] if match[2].strip() else []
        if len(parts) != len(entity.key):
            what = f"the key of `{name}` has {len(parts)} parts"
            raise CaseError(what, place=self._place, hint="write one part per key field of the entity")
        return entity.name, key_of(parts)

    def _done(self) -> list[tuple[str, dict[str, Any]]]:
        return [(tool, args or {}) for entry in self._body.done for tool, args in entry.items()]


class _CaseFacts:
    """The facts that a case gives, either as the agent saw them or as they really are."""

    def __init__(
        self,
        things: dict[GivenEntity, WorldRecord | None],
        done: Sequence[tuple[str, dict[str, Any]]],
        *,
        whole: bool = False,
    ) -> None:
        self.things = things
        self._done = done
        self._whole = whole

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        key = key_of(key)
        if (entity.name, key) not in self.things:
            if entity.complete:
                return False if field.name == "exists" else ABSENT
            return True if field.name == "exists" and entity.is_always_there else UNSEEN
        record = self.things[entity.name, key]
        if field.name == "exists":
            return record is not None
        if record is None:
            return ABSENT
        if field.name in record:
            return coerce(field, record[field.name])
        return UNSEEN if field.default is UNDECLARED else coerce(field, field.default)

    def asked(self) -> None:
        """Return nothing, because cases record no questions to the user."""

    def answers(self) -> Sequence[tuple[str, Any]]:
        """Return nothing, because cases record no questions and so no answers."""
        return ()

    def origins(self) -> Sequence[ArgumentOrigin]:
        """Return nothing, because the values in a case are invented and have no origin."""
        return ()

    def objections(self) -> Sequence[str]:
        """Return nothing: a case contains no request from the user, so its call cannot exceed the request."""
        return ()

    def shown_at(self, entity: Entity, key: Key, field: Field) -> Shown | None:
        value = self.read(entity, key, field)
        return None if value is UNSEEN else Shown(0, 0, "", value, None)

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        return _members(self.things, entity.name, match), self._whole or entity.complete

    def done(self, tool: str, match: Mapping[str, Any]) -> int | Between:
        """Return how many earlier calls in the case match. Calls are compared as in the ledger."""
        found = [matches(args, match) for name, args in self._done if name == tool]
        sure = found.count(True)
        return Between(sure, sure + found.count(None)) if None in found else sure


def _record(things: GivenEntities, entity: str, key: Key) -> Any:
    record = things.get((entity, key), UNSEEN)
    return ABSENT if record is None else record


def _members(things: GivenEntities, entity: str, match: Mapping[str, Any]) -> list[Key]:
    return [
        key
        for (kind, key), record in things.items()
        if kind == entity and record is not None and all(record.get(name) == value for name, value in match.items())
    ]


def _events(listed: Sequence[WrittenEvent], place: str) -> Iterator[Event]:
    """Yield the events of a case. In each turn, all calls come before all results."""
    step = 0
    waiting: list[Result] = []
    bodies = [(number if body.turn is None else body.turn, body) for number, body in enumerate(listed, 1)]
    for index, (turn, body) in enumerate(bodies):
        if body.user is not None:
            yield Message("user", str(body.user), turn)
        elif body.agent is not None:
            yield Message("agent", str(body.agent), turn)
        elif body.call is not None:
            yield Call(str(body.call), body.args, turn=turn)
            if body.result is not msgspec.UNSET:
                result = body.result
                text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
                waiting.append(Result(step, text, error=body.error, tool=str(body.call)))
        else:
            raise CaseError("an event must be `user:`, `agent:` or `call:`", place=place)
        step += 1
        if index + 1 == len(bodies) or bodies[index + 1][0] != turn:
            yield from waiting
            step += len(waiting)
            waiting.clear()


def _told(parts: Mapping[str, Any]) -> str:
    both = {parts[name] for name in ("strict", "determined") if name in parts}
    if {"strict", "determined"} <= parts.keys() and len(both) == 1:
        parts = {"verdict": both.pop()} | {name: parts[name] for name in parts if name not in CRITERIA}
    return ", ".join(str(value) if name == "verdict" else f"{name} {_listed(value)}" for name, value in parts.items())


def _listed(value: Any) -> str:
    return ", ".join(map(str, cast(list[Any], value))) if isinstance(value, list) else str(value)


def untested(outcomes: Sequence[CaseResult], pack: Pack) -> list[str]:
    """Return the guards without a case that permits, or without a case that denies."""
    wanted: dict[str, set[str]] = {}
    for outcome in outcomes:
        kind = "deny" if "deny" in outcome.want or "violation" in outcome.want else "permit"
        if "permit" in outcome.want or "compliant" in outcome.want or kind == "deny":
            wanted.setdefault(outcome.policy, set()).add(kind)
    return [policy for policy in pack.guards if wanted.get(policy, set()) != {"permit", "deny"}]
