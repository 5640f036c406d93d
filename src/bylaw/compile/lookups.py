"""Writes look-up functions, which search results for fields that no observation shows.

The near-miss paper proposes such functions. They are written in the guard language, so that no other code runs, and
each is tried on recorded results before use.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from bylaw.compile.bench import Bench, fault_text
from bylaw.compile.card import Card
from bylaw.compile.check import Check
from bylaw.compile.context import catalogue_with_results, field_kind
from bylaw.compile.desk import Desk, Outcome, Prompt, Unreadable, grouped, stage
from bylaw.compile.guards import functions_of
from bylaw.compile.schema import names_in, section
from bylaw.compile.things import keys_of
from bylaw.facts.entity import UNSEEN, Entity
from bylaw.facts.schema import Schema
from bylaw.facts.value import coerce
from bylaw.guard import Guard, Vocabulary, parse_lookups, run_lookup
from bylaw.guard.lookup import LookupFunction
from bylaw.llm.chat import unfenced
from bylaw.policy.statement import Policy
from bylaw.trace import Call, Result, Trajectory

_PER_QUESTION = 24
"""The maximum number of fields per question."""
_TRIED = 50
"""The maximum number of recorded conversations on which a function is tried."""


def _functions(text: str) -> dict[str, str]:
    try:
        return functions_of(unfenced(text))
    except SyntaxError as error:
        raise Unreadable(f"not Python: {error}") from None


LOOKUPS = Prompt("lookups", _functions, max_tokens=8192, rounds=3)


class Lookups(Struct, frozen=True):
    """Look-up functions keyed by `Entity.field`, and for each field without a function the reason."""

    codes: dict[str, str]
    failed: dict[str, str]

    @property
    def text(self) -> str:
        return "\n\n".join(self.codes.values())


def out_of_reach(bench: Bench, checks: Mapping[str, Check]) -> dict[str, list[str]]:
    """For each entity, return the fields that guards read but no observation shows."""
    codes = (bench.guard(Policy(check.policy, "guard", ""), check.code) for check in checks.values() if check.code)
    read = fields_read([guard for guard, _ in codes if guard is not None], bench.base.schema)
    return {
        entity: unshown
        for entity, fields in read.items()
        if (unshown := [field for field in fields if not _is_shown(bench, entity, field)])
    }


def fields_read(guards: Iterable[Guard], schema: Schema) -> dict[str, list[str]]:
    """For each entity, return the fields of system origin that guards read, in declared order."""
    read = {name for guard in guards for name in guard.facts}
    found: dict[str, list[str]] = {}
    for name, entity in schema.entities.items():
        if entity.key and entity.origin == "system":
            known = [
                each.name for each in entity.fields.values() if each.origin == "system" and each.name not in entity.key
            ]
            if fields := [field for field in (*known, "exists") if f"{name}.{field}" in read]:
                found[name] = fields
    return found


def _is_shown(bench: Bench, entity: str, field: str) -> bool:
    for tool, kinds in bench.base.schema.shows.items():
        for observation in kinds.get(entity, ()):
            if field == "exists" or field in observation.fields:
                return True
            output = bench.cards[tool].output
            if not observation.only and (not output or field in names_in(output)):
                return True
    return False


@stage
def write_lookups(
    desk: Desk,
    vocabulary: Vocabulary,
    cards: Mapping[str, Card],
    wanted: Mapping[str, Sequence[str]],
    entities: Mapping[str, Any],
    trajectories: Sequence[Trajectory] = (),
) -> Lookups:
    def ask(part: Sequence[tuple[str, str]]) -> Outcome[dict[str, str]]:
        judge = partial(_judged, part=part, vocabulary=vocabulary, trajectories=trajectories)
        return desk.ask(LOOKUPS, shown_fields(cards, part, entities), judge, empty={})

    codes: dict[str, str] = {}
    failed: dict[str, str] = {}
    parts = grouped([(entity, field) for entity, fields in wanted.items() for field in fields], _PER_QUESTION)
    for part, outcome in zip(parts, desk.each(parts, ask), strict=True):
        codes |= outcome.made
        why = outcome.complaints[0] if outcome.complaints else "no function was written"
        names = (f"{entity}.{field}" for entity, field in part)
        failed |= {name: why for name in names if name not in outcome.made}
    return Lookups(codes, failed)


def shown_fields(
    cards: Mapping[str, Card], part: Sequence[tuple[str, str]], entities: Mapping[str, Any]
) -> dict[str, str]:
    """Return the template values for a question about the given fields and their entities."""
    lines: list[str] = []
    for entity in dict.fromkeys(entity for entity, _ in part):
        kinds = section(entities[entity], "fields")
        named = (f"{name} ({field_kind(kinds.get(name, 'boolean'))})" for owner, name in part if owner == entity)
        lines.append(f"- {entity}, key {', '.join(keys_of(entities[entity]))}: {', '.join(named)}")
    fields = "\n".join(lines)
    return {"tools": catalogue_with_results(cards, fields), "fields": fields}


class _Recorded:
    """The results of one recorded conversation, as a look-up function searches them."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._entries: list[tuple[str, dict[str, Any]]] = []
        for step, event in enumerate(trajectory.events):
            call = trajectory.events[event.call] if isinstance(event, Result) and event.call is not None else None
            if isinstance(event, Result) and isinstance(call, Call) and event.captured:
                entry = {"arguments": call.arguments, "value": event.value(), "step": step}
                self._entries.append((call.tool, entry))

    def results(self, tool: str, match: Mapping[str, Any]) -> list[dict[str, Any]]:
        entries = (entry for name, entry in self._entries if name == tool)
        return [each for each in entries if all(each["arguments"].get(part) == value for part, value in match.items())]

    def keys(self, entity: Entity) -> set[tuple[str, ...]]:
        """Return the keys of an entity in the arguments of calls."""
        found = [[entry["arguments"].get(part) for part in entity.key] for _, entry in self._entries]
        return {tuple(map(str, key)) for key in found if None not in key}


def _failures(lookup: LookupFunction, trajectories: Sequence[Trajectory]) -> list[str]:
    for trajectory in trajectories[:_TRIED]:
        history = _Recorded(trajectory)
        for key in sorted(history.keys(lookup.entity)):
            try:
                found = run_lookup(lookup, key, history)
                if found is not UNSEEN and lookup.field.name != "exists":
                    coerce(lookup.field, found)
            except ValueError as error:
                return [f"`{lookup.name}` fails on recorded results: {error}"]
    return []


def _judged(
    functions: Mapping[str, str],
    part: Sequence[tuple[str, str]],
    vocabulary: Vocabulary,
    trajectories: Sequence[Trajectory],
) -> tuple[dict[str, str], list[str]]:
    names = {f"find_{entity}_{field}": f"{entity}.{field}" for entity, field in part}
    found: dict[str, str] = {}
    complaints = [f"`{name}` is none of the functions asked for" for name in functions if name not in names]
    for name, code in functions.items():
        if name not in names:
            continue
        made, faults = parse_lookups(code, file="guards/lookups.py", vocabulary=vocabulary)
        wrong = [f"`{name}`, {fault_text(fault)}" for fault in faults]
        wrong += [each for lookup in made.values() for each in _failures(lookup, trajectories)]
        complaints += wrong
        if not wrong:
            found[names[name]] = code
    return found, complaints + [f"there is no function `{name}`" for name in names if name not in functions]
