"""Whether what is said of the data behind the tools fits what tools returned, and what they say beyond it."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, cast

from bylaw.facts.acceptance import accepted
from bylaw.facts.observation import Observation, sightings, unreadable
from bylaw.facts.path import NOTHING
from bylaw.facts.value import coerce
from bylaw.pack import Pack
from bylaw.trace import Call, Result, Trajectory

_WORDS = 20
"""Words of an enumeration; where more are recorded, it is none."""
OddWords = Mapping[tuple[str, str], set[str | None]]
"""By entity and field, what recorded values of an enumeration are that no word of it is."""


def misfits(pack: Pack, trajectories: Sequence[Trajectory], part: Container[str]) -> tuple[list[str], OddWords]:
    """Tools with observations that do not fit what was recorded, and reads that show nothing at all.

    With it, by entity and field, what recorded values of enumerations are that no word of them is.
    """
    wrong: Counter[tuple[str, str]] = Counter()
    count: Counter[str] = Counter()
    typed = _Typed()
    for call, result in _accepted(pack, trajectories):
        if call.tool not in part:
            continue
        count[call.tool] += 1
        for kind, observations in pack.schema.shows.get(call.tool, {}).items():
            if unreadable(observations, call.arguments, result.value()) is not None:
                wrong[call.tool, kind] += 1
            for observation in observations:
                typed.add(observation, call, result)
    complaints = [
        f"`{tool}`: {number} of {count[tool]} recorded results show no `{kind}` by its observations; look at the"
        " paths and the key"
        for (tool, kind), number in wrong.items()
        if number * 2 > count[tool]
    ]
    silent = [name for name in count if pack.schema.tools[name].effect == "read" and name not in pack.schema.shows]
    complaints += typed.complaints()
    complaints += [f"`{name}` reads, and `observations` says nothing of its results" for name in silent]
    return complaints, typed.odd()


def _accepted(pack: Pack, trajectories: Sequence[Trajectory]) -> Iterator[tuple[Call, Result]]:
    """Every recorded call of a known tool with its result, where that was not a refusal."""
    for trajectory in trajectories:
        for result in trajectory.events:
            call = trajectory.events[result.call] if isinstance(result, Result) and result.call is not None else None
            if not isinstance(result, Result) or not isinstance(call, Call) or not result.captured:
                continue
            tool = pack.schema.tools.get(call.tool)
            if tool is not None and accepted(tool, result):
                yield call, result


class _Typed:
    """Recorded values that are not of their declared type."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()
        self._wrong: dict[tuple[str, str], Counter[str]] = {}
        self._odd: dict[tuple[str, str], set[str | None]] = {}

    def add(self, observation: Observation, call: Call, result: Result) -> None:
        value = result.value()
        text = value if isinstance(value, str) else None
        for sighting in sightings(observation, call.arguments, value, text, True):
            for name, field in observation.entity.fields.items():
                raw = sighting.show(name)
                if raw is NOTHING:
                    continue
                self._seen[observation.entity.name, name] += 1
                if raw is None and field.type != "boolean":
                    if field.type != "enum" and not field.nullable:
                        self._odd.setdefault((observation.entity.name, name), set()).add(None)
                    continue
                try:
                    if raw is None:
                        raise ValueError(f"`{name}` is null, which could mean anything")
                    coerce(field, raw)
                except ValueError as error:
                    self._wrong.setdefault((observation.entity.name, name), Counter())[str(error)] += 1
                    if field.type == "enum" and isinstance(raw, str):
                        self._odd.setdefault((observation.entity.name, name), set()).add(raw)

    def odd(self) -> OddWords:
        """What stood where a word of an enumeration should, and is none; where it is most of it, the path is wrong.

        None for a field of another type that was `null`.
        """
        return {
            field: words
            for field, words in self._odd.items()
            if None in words or self._wrong[field].total() * 2 <= self._seen[field]
        }

    def complaints(self) -> list[str]:
        return [
            f"`{kind}.{name}`: {sum(why.values())} of {self._seen[kind, name]} recorded values are not of its type:"
            f" {why.most_common(1)[0][0]}; a boolean is true or false"
            for (kind, name), why in self._wrong.items()
        ]


def widened(entities: Mapping[str, Any], odd: OddWords) -> dict[str, Any]:
    """Enumerations with the words that recorded results have beside them; fields that were `null`, as such."""
    made = dict(entities)
    for (kind, name), words in odd.items():
        fields = section(made[kind], "fields")
        spec = fields[name]
        listed = cast(list[str], spec if isinstance(spec, list) else section({"": spec}, "").get("values") or [])
        known = [*listed, *sorted(word for word in words if word is not None)]
        body: dict[str, Any] = cast(dict[str, Any], spec) if isinstance(spec, dict) else {}
        if None in words:
            # An amount, a day or a text that is not there; of a word it is not known which it is.
            kind_of = f"{body.get('type') or (spec if isinstance(spec, str) else 'string')}?"
            wide: Any = {**body, "type": kind_of} if body else kind_of
        else:
            wide = known if len(known) <= _WORDS else "string"
            wide = {**body, "values": known} if body and wide != "string" else wide
        made[kind] = {**made[kind], "fields": {**fields, name: wide}}
    return made


def section(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A part of an answer; nothing where it is no record."""
    found = data.get(name)
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def shown_as(observed: Any) -> list[str]:
    """The entities that a tool's observations show."""
    listed = cast(list[Any], observed) if isinstance(observed, list) else [observed]
    return [str(cast(dict[str, Any], each).get("as")) for each in listed if isinstance(each, dict)]


def with_defaults(
    entities: Mapping[str, Any], tools: Mapping[str, Any], pack: Pack, trajectories: Sequence[Trajectory]
) -> dict[str, Any]:
    """Entities whose records lack a field at times, with what it then is: an empty list or object, else nothing.

    A record is whole where it has all that the tool which fetches such things always shows. Where some result shows
    only a part of such a thing, a missing field says nothing, and no default is given. What no record ever has and some
    write makes true (`closed`) is false until then.
    """
    seen: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for call, result in _accepted(pack, trajectories):
        for observation in (each for shown in pack.schema.shows.get(call.tool, {}).values() for each in shown):
            if observation.only or observation.text is not None:
                continue
            for sighting in sightings(observation, call.arguments, result.value(), None, True):
                names = observation.entity.fields
                shown = frozenset(name for name in names if sighting.show(name) is not NOTHING)
                seen.setdefault(observation.entity.name, []).append((call.tool, shown))
    made = dict(entities)
    for kind, records in seen.items():
        read = pack.schema.entities[kind].read
        fetched = [names for tool, names in records if read is not None and tool == read.tool]
        if not fetched or not all(names >= frozenset[str].intersection(*fetched) for _, names in records):
            continue
        every = [names for _, names in records]
        fields = dict(section(made[kind], "fields"))
        at_times = frozenset[str].union(*every) - frozenset[str].intersection(*every)
        plain = {name: str(fields[name]) for name in sorted(at_times) if isinstance(fields.get(name), str)}
        empty: dict[str, Any] = {"list": [], "object": {}}
        fields |= {
            name: {"type": spec, "default": empty.get(spec)} for name, spec in plain.items() if spec != "boolean"
        }
        for name in _made_true(kind, tools) - frozenset[str].union(*every):
            spec = section(fields, name) or {"type": fields.get(name)}
            if spec.get("type") == "boolean":
                fields[name] = {**spec, "default": False}
        made[kind] = {**made[kind], "fields": fields}
    return made


def _made_true(kind: str, tools: Mapping[str, Any]) -> set[str]:
    """Fields of a kind of thing that the effects of some tool set to true."""
    effects = [each for body in tools.values() for each in _records(section({"": body}, "").get("effects"))]
    return {
        str(name)
        for each in effects
        if each.get("as") == kind
        for name, value in section(each, "set").items()
        if value is True
    }


def _records(value: Any) -> list[dict[str, Any]]:
    listed = cast(list[Any], value) if isinstance(value, list) else []
    return [cast(dict[str, Any], each) for each in listed if isinstance(each, dict)]
