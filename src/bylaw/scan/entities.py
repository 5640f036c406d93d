"""Drafts entities from logs and databases: their keys, their fields, and the results that contain them."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, field

from bylaw.errors import WorldError
from bylaw.facts.database import row_of
from bylaw.policy.verb import words_of
from bylaw.scan.effect import Guess, by_name
from bylaw.scan.shape import TAILS, RecordShape, RowKind, SeenValues, Shape, bare, is_name, singular, spelled_like

_DEPTH = 3
_ROWS = 2_000
_FITS = 0.5
"""The minimum share of a record's fields that are columns of the record's table."""


class Table(Struct, frozen=True):
    """A table in SQLite, or JSON records in a list or object."""

    entity: str
    key: tuple[str, ...]
    fields: Mapping[str, SeenValues]
    rows: int
    world: Mapping[str, str]
    """The location of the table, for `world:` in entities.yaml."""
    is_key_named: bool = True
    """Whether a field contains the key. False if the records are keyed by name in JSON and no field repeats the name,
    so that only look-ups provide the key.
    """

    def fit(self, tool: str, record: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[float, int, bool] | None:
        """Return how well a record fits the table. Return None if the record is not a row of the table."""
        known = [name for name in record if name in self.fields]
        named = [
            part
            for part in self.key
            if spelled_like(part, record, thing=self.entity) or spelled_like(part, arguments, thing=self.entity)
        ]
        if len(known) < _FITS * len(record) or (self.is_key_named and len(named) < len(self.key)):
            return None
        return len(known) / len(record), len(named), {*words_of(self.entity)} <= {*map(singular, words_of(tool))}


def kind_of(tables: Sequence[Table]) -> RowKind:
    """Return a function that recognises the rows of these tables in results."""

    def kind(tool: str, record: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        fits = [(fit, table) for table in tables if (fit := table.fit(tool, record, arguments)) is not None]
        best = max(fits, key=lambda each: each[0], default=None)
        return (best[1].entity, best[1].key) if best else ("", ())

    return kind


def read_tables(path: Path) -> list[Table]:
    """Read the tables that have a key. Raise WorldError if the file is neither an SQLite database nor JSON."""
    try:
        with path.open("rb") as stream:
            is_sqlite = stream.read(16).startswith(b"SQLite format 3")
        found = list(_sqlite_tables(path) if is_sqlite else _json_tables(json.loads(path.read_bytes()), "$", _DEPTH))
    except (OSError, ValueError, RecursionError, sqlite3.Error) as error:
        raise WorldError(f"the file is neither SQLite nor JSON: {error}", place=str(path)) from None
    return list({table.entity: table for table in reversed(found)}.values())[::-1]


def _sqlite_tables(path: Path) -> Iterator[Table]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
        base.row_factory = sqlite3.Row
        listed = base.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        for name in [str(row[0]) for row in listed]:
            quoted = '"' + name.replace('"', '""') + '"'
            columns = [dict(row) for row in base.execute(f"PRAGMA table_info({quoted})")]
            declared = sorted((each for each in columns if each["pk"]), key=lambda each: int(each["pk"]))
            rows = [row_of(row) for row in base.execute(f"SELECT * FROM {quoted} LIMIT {_ROWS}")]
            entity = entity_name(name)
            key = tuple(str(each["name"]) for each in declared) or _unique(rows, entity)
            if is_name(entity) and key and all(map(is_name, key)):
                fields = {str(each["name"]): SeenValues() for each in columns}
                yield Table(entity, key, _filled(fields, rows), len(rows), {"table": name})


def _json_tables(data: Any, path: str, depth: int) -> Iterator[Table]:
    if not isinstance(data, dict) or not depth:
        return
    for name, body in cast(dict[str, Any], data).items():
        if not isinstance(body, dict | list) or not (name.isidentifier() and name.isascii()):
            continue
        here, entity = f"{path}.{name}", entity_name(name)
        names = [*map(str, cast(dict[str, Any], body))] if isinstance(body, dict) else None
        rows = list(cast(dict[str, Any], body).values() if isinstance(body, dict) else cast(list[Any], body))[:_ROWS]
        if not rows or not all(map(_is_record, rows)):
            yield from _json_tables(body, here, depth - 1)
            continue
        each = f"{here}.*" if names is not None else f"{here}[*]"
        key = _unique(rows, entity, names)
        if is_name(entity) and (key or names is not None):
            named = key or (f"{'_'.join(words_of(entity))}_id",)
            fields = _filled({part: SeenValues() for part in named}, rows)
            if not key:
                fields = _filled(fields, [{named[0]: name} for name in names or ()])
            world = {"each": each} if key else {"each": each, "key": "$key"}
            yield Table(entity, named, fields, len(rows), world, is_key_named=bool(key))


def _is_record(value: Any) -> bool:
    if not isinstance(value, dict) or not value:
        return False
    return not all(isinstance(part, dict) for part in cast(dict[str, Any], value).values())


def _filled(fields: dict[str, SeenValues], rows: Sequence[Mapping[str, Any]]) -> dict[str, SeenValues]:
    for row in rows:
        for name, value in row.items():
            if is_name(name):
                fields.setdefault(name, SeenValues()).add(value)
    return {name: values for name, values in fields.items() if is_name(name)}


def _unique(rows: Sequence[Mapping[str, Any]], entity: str, names: Sequence[str] | None = None) -> tuple[str, ...]:
    fields = [name for name in rows[0] if is_name(name)] if rows else []
    if names is not None:
        return next(((each,) for each in fields if [str(row.get(each)) for row in rows] == names[: len(rows)]), ())
    ids = [name for name in fields if words_of(name)[-1:] and words_of(name)[-1] in TAILS]
    ids.sort(key=lambda name: bare(name) not in ((), tuple(words_of(entity))))
    pairs = [(one, other) for one in ids for other in fields if other != one]
    return next((key for key in [*((name,) for name in ids), *pairs] if _names_each(key, rows)), ())


def _names_each(key: tuple[str, ...], rows: Sequence[Mapping[str, Any]]) -> bool:
    values = [tuple(row.get(part) for part in key) for row in rows]
    if any(part is None or part == "" or isinstance(part, dict | list) for each in values for part in each):
        return False
    return len({*map(str, values)}) == len(rows)


def entity_name(table: str) -> str:
    """Return an entity's name, derived from the name of its table: `OrderLine` for `order_lines`."""
    *words, last = words_of(table) or [""]
    return "".join(word.capitalize() for word in (*words, singular(last)))


_SHARED = 0.5
"""The minimum share of an argument's values that must be known values of the key."""
_FEWEST = 2
_SHORT = 300
_ASKED = 0.8
"""The minimum share of the records from a look-up whose key must be equal to the argument."""


def arguments_for(
    key: Sequence[str], thing: str, arguments: Mapping[str, SeenValues], known: Mapping[str, Collection[str]]
) -> tuple[tuple[str, ...], int]:
    """Return the arguments for each part of a key, and how much their names differ from the part's name (0 if equal).

    If no name fits, choose an argument of which most values are `known` values of the part. If any part has no
    argument, return no arguments.
    """
    chosen: list[str] = []
    distance = 0
    for part in key:
        free = {name: values for name, values in arguments.items() if name not in chosen}
        name = spelled_like(part, free, thing=thing)
        distance += 0 if name == part else 1
        if not name:
            distance += 1
            shared = {each: _shared(values, known.get(part, ())) for each, values in free.items()}
            name = max(shared, key=lambda each: shared[each], default="")
            if not name or shared[name] == 0:
                return (), 0
        chosen.append(name)
    return tuple(chosen), distance


def _shared(values: SeenValues, known: Collection[str]) -> float:
    """Return the share of an argument's values that are known. Return 0 if there are too few values to tell."""
    if values.type not in ("string", "integer"):
        return 0.0
    # Small numbers and booleans are too common to show a connection.
    own = {value for value in values.seen if len(value) >= 3}
    common = len(own.intersection(known))
    return common / len(values.seen) if common >= _FEWEST and common >= _SHARED * len(values.seen) else 0.0


_UNNAMED = "Record"
"""The name of an entity if the tool's name contains no noun."""
_FILLER = "details detail info information by id for all current most recent the a"


class EntityInResult(Struct):
    """Where and how the results of one tool contain an entity."""

    tool: str
    each: str = ""
    key: dict[str, str] = field(default_factory=dict[str, str])
    """The parts of the key that have a different name in the results."""
    fields: dict[str, str] = field(default_factory=dict[str, str])
    absent: str = ""
    has: str = ""
    """A field that only this entity has. It is set if one look-up returns several entities."""


class DraftEntity(Struct):
    """A drafted entity."""

    name: str
    key: tuple[str, ...]
    fields: dict[str, SeenValues]
    read: str = ""
    sights: list[EntityInResult] = field(default_factory=list[EntityInResult])
    asked_with: dict[str, str] = field(default_factory=dict[str, str])
    """The arguments of the look-up that are not named like their part of the key, each with this part."""
    finds: str = ""
    """The other entity whose key the look-up returns, if it returns nothing else."""
    found_at: str = "$"
    """The path to the entity in the result."""
    table: Table | None = None


def draft_entities(
    shapes: Mapping[str, Shape], guesses: Mapping[str, Guess], tables: Sequence[Table] = ()
) -> dict[str, DraftEntity]:
    """Return the entities from database tables and look-ups, with the tools that return them."""
    found: dict[str, DraftEntity] = {}
    for table in tables:
        thing = _stored(table, shapes, guesses)
        if thing.name in found or thing.name in {other.entity for other in tables}:
            thing.name = table.entity
        found[thing.name] = thing
    reads = [(tool, shape) for tool, shape in sorted(shapes.items()) if _effect(tool, guesses) == "read"]
    writes = [(tool, shape) for tool, shape in sorted(shapes.items()) if _effect(tool, guesses) == "write"]
    # If a tool is named after its key, name the entity after the tool. Other tools with this key may return more
    # fields.
    for tool, shape in sorted(reads, key=lambda read: not _named_after_its_key(*read)):
        _single(tool, shape, found)
    found = dict(sorted(found.items(), key=lambda item: item[1].read))
    told = {(sight.tool, sight.each) for thing in found.values() for sight in thing.sights}
    for tool, shape in reads:
        for place, record in shape.places.items():
            if place and (tool, place) not in told and not _shown_as_known(tool, shape, place, record, found):
                _listed(tool, shape, place, record, found)
    for tool, shape in writes:
        for place, record in shape.places.items():
            _shown_as_known(tool, shape, place, record, found)
    if not tables:
        for tool, shape in reads:
            _defined(tool, shape, found)
    for thing in found.values():
        _name_what_it_finds(thing, found)
        if not thing.read:
            _propose_lookup(thing, reads)
    _tell_apart(found.values())
    return {name: thing for name, thing in found.items() if _is_in_use(thing, shapes)}


def _is_in_use(thing: DraftEntity, shapes: Mapping[str, Shape]) -> bool:
    """Whether a tool returns the entity or takes its key as an argument.

    Entities without such a tool may be unrelated tables.
    """
    if thing.table is None or thing.read or thing.sights:
        return True
    return any(all(spelled_like(p, shape.arguments, thing=thing.name) for p in thing.key) for shape in shapes.values())


def _stored(table: Table, shapes: Mapping[str, Shape], guesses: Mapping[str, Guess]) -> DraftEntity:
    thing = DraftEntity(table.entity, table.key, dict(table.fields), table=table)
    looked_up: list[tuple[int, int, str, dict[str, str]]] = []
    shown = [
        (tool, shape, place, shape.shown[place, kind])
        for tool, shape in sorted(shapes.items())
        for place, kind in shape.shown
        if kind == table.entity and _effect(tool, guesses) != "none"
    ]
    if not table.is_key_named:
        _take_key(thing, [(tool, shape) for tool, shape, place, _ in shown if "[*]" not in place])
    for tool, shape, place, record in shown:
        _add_sight(tool, shape, place, record, thing)
        asked = _asked_with(shape, record, thing)
        if asked and "[*]" not in place and _effect(tool, guesses) == "read":
            looked_up.append((sum(name != part for name, part in asked.items()), -record.count, tool, asked))
    if looked_up:
        _, _, thing.read, thing.asked_with = min(looked_up, key=lambda each: each[:3])
        noun = entity_of_tool(thing.read, ())
        # `get_order(order_id)` returns an order, whatever the order's table is called.
        thing.name = noun if bare(thing.key[0]) == tuple(words_of(noun)) and not thing.key[1:] else thing.name
    return thing


def _take_key(thing: DraftEntity, looked_up: Sequence[tuple[str, Shape]]) -> None:
    for _, shape in looked_up:
        if len(shape.required) == 1 and is_name(shape.required[0]):
            old, new = thing.key[0], shape.required[0]
            thing.fields = {new if name == old else name: values for name, values in thing.fields.items()}
            thing.key = (new,)
            return


def _asked_with(shape: Shape, record: RecordShape, thing: DraftEntity) -> dict[str, str]:
    if len(thing.key) == 1:
        usual = [name for name, count in record.asked.items() if count >= _ASKED * record.count and is_name(name)]
        chosen = [spelled_like(thing.key[0], usual, thing=thing.name) or next(iter(usual), "")]
        chosen = chosen if chosen[0] else [spelled_like(thing.key[0], shape.required, thing=thing.name)]
    else:
        chosen = [spelled_like(part, shape.required, thing=thing.name) for part in thing.key]
    if not all(chosen) or len({*chosen}) < len(chosen):
        return {}
    return dict(zip(chosen, thing.key, strict=True))


def _tell_apart(found: Iterable[DraftEntity]) -> None:
    """If a look-up returns several entities, find for each of them a field that no other entity has."""
    kinds: dict[tuple[str, str], list[DraftEntity]] = {}
    for thing in found:
        for sight in thing.sights:
            kinds.setdefault((sight.tool, sight.each), []).append(thing)
    for place, alike in kinds.items():
        for thing in alike:
            others = {name for other in alike if other is not thing for name in other.fields}
            sight = next(each for each in thing.sights if (each.tool, each.each) == place)
            if thing.table is None or not others or any(part not in others for part in thing.key):
                continue
            own = (name for name, values in thing.fields.items() if name not in others and not values.nullable)
            sight.has = next(own, "")
            if not sight.has:
                thing.sights.remove(sight)


def _defined(tool: str, shape: Shape, found: dict[str, DraftEntity]) -> None:
    """Draft an entity from the definition of a look-up that was never called."""
    name, key = entity_of_tool(tool, ()), tuple(shape.required)
    if shape.calls or name in found or name == _UNNAMED or not key or not all(map(is_name, key)):
        return
    if shape.promised or _named_after_its_key(tool, shape):
        found[name] = DraftEntity(name, key, dict(shape.promised), tool, [EntityInResult(tool)])


def _propose_lookup(thing: DraftEntity, reads: Iterable[tuple[str, Shape]]) -> None:
    """Propose a look-up for an entity that is only in lists.

    The look-up is named after the entity and takes the entity's key.
    """
    known = {part: thing.fields[part].seen for part in thing.key if part in thing.fields}
    near: list[tuple[int, str, dict[str, str]]] = []
    for tool, shape in reads:
        described = words_of(str(shape.definition.get("description", ""))[:_SHORT])
        takes_any_id = not shape.calls and len(shape.required) == 1 and not bare(shape.required[0])
        if takes_any_id and len(thing.key) == 1 and {*words_of(thing.name)} <= {*map(singular, described)}:
            near.append((9, tool, {shape.required[0]: thing.key[0]}))
        given = {name: shape.arguments.get(name, SeenValues()) for name in shape.required or shape.defined}
        chosen, distance = arguments_for(thing.key, thing.name, given, known)
        fits = len(chosen) == len(thing.key) == len(given) and all(map(is_name, chosen))
        if fits and entity_of_tool(tool, ()) == thing.name:
            near.append((distance, tool, dict(zip(chosen, thing.key, strict=True))))
    if near:
        _, thing.read, thing.asked_with = min(near, key=lambda each: each[:2])
        if thing.table is not None:
            thing.sights.append(EntityInResult(thing.read))


def _name_what_it_finds(thing: DraftEntity, found: Mapping[str, DraftEntity]) -> None:
    """Record that a look-up returns only the id of another entity, as `find_user(email)` does."""
    shown = [name for name in thing.fields if name not in thing.key]
    if len(shown) == 1 and thing.read and any(other.key == (shown[0],) for other in found.values()):
        thing.finds, thing.found_at = shown[0], f"$.{shown[0]}"
    if "value" not in thing.fields or "value" in thing.key:
        return
    told = thing.fields["value"].seen
    for other in found.values():
        known = other.fields[other.key[0]].seen if len(other.key) == 1 and other.key[0] in other.fields else set[str]()
        if other is not thing and (common := told & known) and len(common) * 2 >= min(len(told), len(known)):
            if other.key[0] not in thing.fields:
                thing.fields = {other.key[0]: thing.fields["value"]}
                for sight in thing.sights:
                    sight.fields = dict.fromkeys(thing.fields, "$") if sight.fields else {}
                thing.finds = other.key[0]
            return


def _effect(tool: str, guesses: Mapping[str, Guess]) -> str:
    return guesses[tool].effect if tool in guesses else ""


def _named_after_its_key(tool: str, shape: Shape) -> bool:
    """Whether a tool is named after its key, as in `get_invoice(invoice_id)` but not in `get_approval(invoice_id)`."""
    return entity_of_tool(tool, ()) in {entity_of_tool(name, ()) for name in shape.required[:1]}


def _single(tool: str, shape: Shape, found: dict[str, DraftEntity]) -> None:
    """Draft an entity from a look-up that returns a single record or a short text."""
    place = max((each for each in shape.places if "[*]" not in each), key=lambda p: shape.places[p].count, default="")
    record = shape.places.get(place)
    key = tuple(name for name in shape.required if is_name(name))
    if len(key) < len(shape.required):
        return
    called = tool
    absent = shape.absent.most_common(1)[0][0] if shape.absent else ""
    if record is not None and _is_table(record):
        return
    if record is not None and record.count * 2 > shape.sampled - shape.absent.total():
        fields = {name: values for name, values in record.fields.items() if is_name(name)}
        sight = EntityInResult(tool, place, absent=absent)
    elif not shape.places and shape.texts.count and max((len(word) for word in shape.texts.words), default=0) < 40:
        *of, last = words_of(tool) or ["value"]
        name = "value"
        noun = entity_of_tool("_".join(of), ())
        if is_name(last) and last not in key and noun != _UNNAMED and getattr(found.get(noun), "key", key) == key:
            name, called = last, "_".join(of)  # `get_flight_status` shows the status of a flight.
        fields = {name: shape.texts}
        sight = EntityInResult(tool, fields={name: "$"}, absent=absent)
    else:
        return
    known = next((thing for thing in found.values() if thing.key == key and key), None)
    shared = fields.keys() & known.fields.keys() - {*key} if known is not None else ()
    # The look-up returns no other field of this entity, so it must return another entity. Name that entity after the
    # look-up.
    if known is None or (not shared and entity_of_tool(called, ()) not in found):
        name = _name_by_key(called, key, found)
        found[name] = DraftEntity(name, key, fields, tool, [sight])
    else:
        _join(known, fields)
        known.sights.append(sight)


def _is_table(record: RecordShape) -> bool:
    """Whether an object maps names to values, as in airports keyed by code."""
    return len(record.fields) >= 8 and len({values.type for values in record.fields.values()}) == 1


def _shown_as_known(tool: str, shape: Shape, place: str, record: RecordShape, found: Mapping[str, DraftEntity]) -> bool:
    """Recognise the records of a known entity. Every part of the key must be in the record or in the arguments."""
    fitting = [thing for thing in found.values() if _fits(tool, shape, place, record, thing)]
    if not fitting:
        return False
    # For example, `list_invoices` returns invoices of an account, although each invoice contains the account's id.
    own = entity_of_tool(tool, ())
    thing = max(fitting, key=lambda thing: (thing.name == own, len(record.fields.keys() & thing.fields.keys())))
    _add_sight(tool, shape, place, record, thing)
    return True


def _add_sight(tool: str, shape: Shape, place: str, record: RecordShape, thing: DraftEntity) -> None:
    # An empty field would take precedence over the argument of this name.
    key: dict[str, str] = {}
    for part in thing.key:
        name = spelled_like(part, record.fields, thing=thing.name)
        given = spelled_like(part, shape.required, thing=thing.name)
        if given and (not name or record.fields[name].nullable) and (name or given != part):
            key[part] = f"$args.{given}"
        elif name and name != part and is_name(name):
            key[part] = f"$.{name}"
    absent = shape.absent.most_common(1)[0][0] if shape.absent and thing.table is not None else ""
    thing.sights.append(EntityInResult(tool, place, key, absent=absent))
    _join(thing, {name: values for name, values in record.fields.items() if is_name(name)})


def _join(thing: DraftEntity, fields: Mapping[str, SeenValues]) -> None:
    """Merge two sets of fields.

    If a field is always empty in the results of one tool, use its type from the other tool.
    """
    for name, values in fields.items():
        thing.fields[name] = thing.fields[name].joined(values) if name in thing.fields else values


def _fits(tool: str, shape: Shape, place: str, record: RecordShape, thing: DraftEntity) -> bool:
    shown = [spelled_like(part, record.fields, thing=thing.name) for part in thing.key]
    given = [spelled_like(part, shape.required, thing=thing.name) for part in thing.key]
    if not any(shown) or not all(one or other for one, other in zip(shown, given, strict=True)):
        return False
    if "[*]" in place and (all(given) or (shown[0] in record.repeated and not thing.key[1:])):
        return False  # Otherwise, the whole list would become one entity.
    if not shown[0] and thing.name != entity_of_tool(tool, ()):
        return False
    shared = record.fields.keys() & thing.fields.keys()
    return "[*]" in place or len(shared) >= 2 or len(thing.fields) <= 2


def _listed(tool: str, shape: Shape, place: str, record: RecordShape, found: dict[str, DraftEntity]) -> None:
    """Draft an entity from a list of records. The key is the first field that identifies each record."""
    named = [
        name
        for name, values in record.fields.items()
        if is_name(name) and name not in record.repeated and values.count == record.count and not values.nullable
    ]
    keys = [name for name in named if words_of(name)[-1:] in (["id"], ["number"], ["code"])]
    if not keys:
        return
    # The value of an argument is equal for all records, so it cannot identify one of them.
    key = min(keys, key=lambda name: name in shape.required)
    name = entity_of_tool(tool, found)
    fields = {name: values for name, values in record.fields.items() if is_name(name)}
    found[name] = DraftEntity(name, (key,), fields, "", [EntityInResult(tool, place)])


def _name_by_key(tool: str, key: tuple[str, ...], taken: Mapping[str, DraftEntity]) -> str:
    """Return a name for a tool's entity. If the name is taken, append the key, as in `RiderByEmail`."""
    name = entity_of_tool(tool, ())
    if name not in taken or not key:
        return entity_of_tool(tool, taken)
    by = f"{name}By{''.join(word.capitalize() for part in key for word in words_of(part))}"
    return by if by not in taken else entity_of_tool(tool, taken)


def entity_of_tool(tool: str, taken: Iterable[str]) -> str:
    """Return the name of a tool's entity: the tool's name in the singular, without the verb and filler words."""
    words = words_of(tool)
    verb = next((word for word in words if by_name(word)), "")
    kept = [word for word in words if word != verb and word not in _FILLER.split() and not word.isdigit()]
    if kept:
        kept[-1] = singular(kept[-1])
    name = "".join(word.capitalize() for word in kept) or _UNNAMED
    candidate, number = name, 2
    while candidate in set(taken):
        candidate, number = f"{name}{number}", number + 1
    return candidate
