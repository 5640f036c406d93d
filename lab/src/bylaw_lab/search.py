"""Lets a model search the results for a fact that a guard needs.

This is the third way to find a fact, after observations and look-up functions (the near-miss paper's other method,
A.1). All facts about an entity that guards need are requested together, and they may come from several results. An
answer is accepted only if the named result contains each quote, letter for letter.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.desk import Desk, Unanswered, json_prompt
from bylaw.compile.lookups import fields_read
from bylaw.facts.entity import EXISTS, UNSEEN, Entity, Field, Key
from bylaw.facts.schema import FieldSearch, ShownResults
from bylaw.facts.value import coerce
from bylaw.llm import Chat
from bylaw.llm.source import at_hand
from bylaw.pack import Pack

Made = TypeVar("Made")
_LONGEST = 6_000
"""The number of characters of a result to read. The rest is ignored."""
_LITERAL = ("string", "integer", "number", "money", "date", "datetime")
"""Types whose value must occur in the quote."""


class Piece(Struct, frozen=True):
    """A quote from one result."""

    step: int
    quote: str


class Finding(Struct, frozen=True):
    """The answer about one fact."""

    number: int
    settled: bool
    pieces: tuple[Piece, ...] = ()
    value: str = ""


class _Answer(Struct, frozen=True):
    facts: tuple[Finding, ...]


_SEARCH = json_prompt("search", _Answer, folder=Path(__file__).parent)


class _Need(NamedTuple):
    """A fact that a guard requested and no result showed."""

    entity: Entity
    key: Key
    field: Field

    def __str__(self) -> str:
        key = ", ".join(f"{name} {part}" for name, part in zip(self.entity.key, self.key, strict=True))
        kind = "|".join(self.field.values) if self.field.values else self.field.type
        what = "whether there is such a thing" if self.field.name == "exists" else f"{self.field.name} ({kind})"
        return f"{self.entity.name} [{key}]: {what}"


class ModelSearch:
    """Finds facts with a model. Answers are stored by the results, and all wanted facts are requested together."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._desk = Desk(at_hand(chat))
        self._wanted: dict[tuple[str, ...], list[_Need]] = {}
        """The facts that are still needed, by result."""
        self._known: dict[tuple[tuple[str, ...], str], Any] = {}
        self.asked = 0
        """The number of questions so far."""
        self.refused = 0
        """The number of answers with a quote that is not in the named result, or with a value that is not in the quote.
        """

    def over(self, pack: Pack) -> Pack:
        """Return the pack with this search added to its observations and look-up functions."""
        schema = pack.schema
        read = fields_read(pack.guards.values(), schema)
        tools = [name for name, tool in schema.tools.items() if tool.effect != "none"]
        searches: dict[tuple[str, str], FieldSearch] = {
            (entity.name, field.name): partial(
                self._find,
                tools,
                entity,
                field,
                read.get(entity.name, ()),
                schema.searches.get((entity.name, field.name)),
            )
            for entity in schema.entities.values()
            for field in (*entity.fields.values(), EXISTS)
            if entity.origin == "system" and field.origin == "system" and entity.key
        }
        return replace(pack, schema=replace(schema, searches=searches))

    def repeat(self, work: Callable[[], Made]) -> Made:
        """Repeat the work until the model has searched for all facts that it needs.

        Raises `Pending` if answers are missing.
        """
        while True:
            done = work()
            if not self._wanted:
                return done
            self._ask()

    def _find(
        self,
        tools: Sequence[str],
        entity: Entity,
        field: Field,
        read: Sequence[str],
        below: FieldSearch | None,
        key: Key,
        history: ShownResults,
    ) -> Any:
        found = below(key, history) if below is not None else UNSEEN
        if found is not UNSEEN:
            return found
        shown = _told(tools, history)
        if not shown:
            return UNSEEN
        need = _Need(entity, key, field)
        known = self._known.get((shown, str(need)), None)
        if known is None:
            self._want(shown, [need, *(_Need(entity, key, entity.fields.get(name, EXISTS)) for name in read)])
            return UNSEEN
        return known[0]

    def _want(self, shown: tuple[str, ...], needs: Sequence[_Need]) -> None:
        wanted = self._wanted.setdefault(shown, [])
        named = set(map(str, wanted))
        for need in needs:
            if str(need) not in named and (shown, str(need)) not in self._known:
                named.add(str(need))
                wanted.append(need)

    def _ask(self) -> None:
        while True:
            self._desk.begin()
            for shown, needs in self._wanted.items():
                listed = "\n".join(f"{number}. {need}" for number, need in enumerate(needs, 1))
                given = {"results": "\n".join(shown), "facts": listed}
                with suppress(Unanswered):
                    found = self._desk.ask(_SEARCH, given, partial(_judged, count=len(needs)), empty=()).made
                    self._settle(shown, needs, found)
            if not self._desk.wanted:
                break
            self._desk.fetch(self._chat)
        self.asked += len(self._desk.asked)
        self._wanted.clear()

    def _settle(self, shown: tuple[str, ...], needs: Sequence[_Need], findings: Sequence[Finding]) -> None:
        said = {each.number: each for each in findings}
        for number, need in enumerate(needs, 1):
            value = _checked(said.get(number), need, shown)
            self.refused += value is UNSEEN and number in said and said[number].settled
            self._known[shown, str(need)] = (value,)


def _told(tools: Sequence[str], history: ShownResults) -> tuple[str, ...]:
    """Return all valid results as text, oldest first."""
    found = [(entry["step"], tool, entry) for tool in tools for entry in history.results(tool, {})]
    return tuple(
        f"[{step}] {tool}({_json(entry['arguments'])}) -> {_json(entry['value'])[:_LONGEST]}"
        for step, tool, entry in sorted(found, key=lambda each: (each[0], each[1]))
    )


def _json(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _judged(answer: _Answer, count: int) -> tuple[tuple[Finding, ...], list[str]]:
    missing = set(range(1, count + 1)) - {each.number for each in answer.facts}
    return answer.facts, [f"nothing is said of fact {number}" for number in sorted(missing)]


def _checked(finding: Finding | None, need: _Need, shown: Sequence[str]) -> Any:
    """Return the value of an answer if the named result contains its quote and the value has the right type."""
    if finding is None or not finding.settled:
        return UNSEEN
    results = {each.partition("] ")[0].removeprefix("["): each.partition(" -> ")[2] for each in shown}
    named = [results.get(str(piece.step), "") for piece in finding.pieces]
    if not named or not all(
        piece.quote.strip() and piece.quote in text for piece, text in zip(finding.pieces, named, strict=True)
    ):
        return UNSEEN
    if need.field.name == "exists":
        return {"true": True, "false": False}.get(finding.value.strip().lower(), UNSEEN)
    if need.field.type in _LITERAL and not any(finding.value.strip() in text for text in named):
        return UNSEEN
    if need.field.type in ("list", "object") and not all(
        any(leaf in text for text in named) for leaf in _leaves(finding.value)
    ):
        return UNSEEN
    try:
        return coerce(need.field, _read(finding.value, need.field))
    except ValueError:
        return UNSEEN


def _leaves(text: str) -> list[str]:
    """Return the strings and numbers in a list or record."""
    try:
        waiting: list[Any] = [msgspec.json.decode(text)]
    except msgspec.DecodeError:
        return [text]
    found: list[str] = []
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += cast(dict[str, Any], part).values()
        elif isinstance(part, list):
            waiting += cast(list[Any], part)
        elif part is not None and not isinstance(part, bool):
            found.append(str(part))
    return found


def _read(text: str, field: Field) -> Any:
    """Return the value of an answer in the form that a result would have."""
    if field.type in ("list", "object", "boolean", "integer", "number") or text == "null":
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    return text
