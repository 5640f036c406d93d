"""Compiles a pack's guards and look-ups, finds policies without a check, and collects the code that decides calls."""

import ast
import hashlib
import json
import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import replace

from bylaw.errors import BylawError, GuardError
from bylaw.facts.schema import CardFact, Change, FieldSearch, Schema
from bylaw.guard import Guard, Vocabulary, compile_value, compute_value, parse_guard_files, parse_lookups, run_lookup
from bylaw.pack.rules import Rules
from bylaw.policy.folder import ManifestError, NothingEnforces, PackFolder
from bylaw.policy.statement import Policy
from bylaw.policy.tool import Tool
from bylaw.policy.yaml import Located
from bylaw.text.python import parse_python

if TYPE_CHECKING:
    from bylaw.actions.action import Actions


def read_guards(
    folder: PackFolder, schema: Schema, policies: Mapping[str, Policy]
) -> tuple[dict[str, Guard], list[BylawError]]:
    guards: dict[str, Guard] = {}
    faults: list[BylawError] = []
    vocabulary = _vocabulary(schema)
    by_function = {policy.id.replace("-", "_"): policy for policy in policies.values()}
    found, wrong = parse_guard_files(folder.guards, vocabulary=vocabulary, policies=by_function)
    faults.extend(wrong)
    for guard in found:
        policy = by_function.get(guard.name)
        if policy is None:
            hint = "name the function after a policy id, with `_` for `-`, or call it from a guard"
            faults.append(ManifestError(f"guard `{guard.name}` belongs to no policy", place=guard.place, hint=hint))
        elif policy.kind != "guard":
            message = f"policy `{policy.id}` is of kind {policy.kind}, not guard"
            faults.append(ManifestError(message, place=guard.place))
        elif policy.id in guards and not _is_laid_over(guard.file, guards[policy.id].file):
            hint = f"the first guard is at {guards[policy.id].place}"
            faults.append(ManifestError(f"policy `{policy.id}` has a second guard", place=guard.place, hint=hint))
        else:
            guards[policy.id] = guard
    return guards, faults


def _is_laid_over(file: str, below: str) -> bool:
    return file.startswith("guards/") and not below.startswith("guards/")


def with_lookups(folder: PackFolder, schema: Schema) -> tuple[Schema, list[BylawError]]:
    """Return the schema with the pack's look-up functions."""
    if not folder.lookups:
        return schema, []
    searches: dict[tuple[str, str], FieldSearch] = {}
    faults: list[BylawError] = []
    for file, text in folder.lookups.items():
        found, wrong = parse_lookups(text, file=file, vocabulary=_vocabulary(schema))
        faults.extend(wrong)
        for lookup in found.values():
            searches[lookup.entity.name, lookup.field.name] = partial(run_lookup, lookup)
    return replace(schema, searches=searches), faults


def read_pack_actions(
    source: Located | None, entities: Located | None, tools: Mapping[str, Tool]
) -> "tuple[Actions | None, list[BylawError]]":
    """Return the actions and the pages of a pack's generic tools. Return None if the pack declares neither."""
    has_pages = entities is not None and "pages" in entities.data
    if source is None or not (has_pages or source.data.keys() & {"actions", "otherwise", "pages"}):
        return None, []
    from bylaw.actions.action_reader import read_actions

    return read_actions(source, tools)


def with_card_facts(folder: PackFolder, schema: Schema) -> tuple[Schema, list[BylawError]]:
    """Return the schema with the additional facts that the pack's cards show."""
    found: dict[str, list[CardFact]] = {}
    faults: list[BylawError] = []
    for tool in schema.tools.values():
        named = (frozenset(schema.tools), schema.declared(), schema.texts(), schema.zone)
        vocabulary = Vocabulary(schema.entities, frozenset(tool.parameters), *named)
        for name, written in tool.show.items() if folder.parts.get("tools") is not None else ():
            place = folder.parts["tools"].place("actions" if tool.of else "tools", tool.name, "show", name)
            file, _, line = place.rpartition(":")
            code, how = str(written.value), {"title": written.title, "currency": written.currency, "unit": written.unit}
            try:
                guard = compile_value(code, vocabulary=vocabulary, file=file, line=int(line))
            except GuardError as error:
                faults.append(error)
                continue
            schema_of = {key: " ".join(str(value).split()) for key, value in how.items() if value} | {"nullable": True}
            fact = CardFact(name, code, place, schema_of, partial(compute_value, guard), guard.facts, guard.unnamed)
            found.setdefault(tool.name, []).append(fact)
    return replace(schema, card_facts=found), faults


def with_unsaid(schema: Schema, policies: Mapping[str, Policy], guards: Mapping[str, Guard], book: Rules) -> Schema:
    """Return the schema with assumed changes for writes that declare none.

    Such a write may change all records of an entity if a guard or predicate reads the entity and no argument names it.
    """
    by_rules = [each.code.guard.unnamed for each in book.predicates.values() if each.code is not None]
    changes = dict(schema.changes)
    for tool in schema.tools.values():
        if tool.is_unsaid:
            by_guards = [guard.unnamed for name, guard in guards.items() if tool.name in policies[name].tools]
            by_cards = [fact.unnamed for facts in schema.card_facts.values() for fact in facts]
            read = frozenset[str]().union(*by_rules, *by_guards, *by_cards)
            kinds = [kind for kind in schema.entities if kind in read and schema.entities[kind].key]
            named = [change for change in changes[tool.name] if change.entity not in kinds]
            changes[tool.name] = (*named, *(Change(kind) for kind in kinds))
    return replace(schema, changes=changes)


def _vocabulary(schema: Schema) -> Vocabulary:
    arguments = schema.arguments(tuple(schema.tools))
    named = (frozenset(schema.tools), schema.declared(), schema.texts(), schema.zone)
    return Vocabulary(schema.entities, arguments, *named)


def card_code(tools: Mapping[str, Tool]) -> list[str]:
    return [str(fact.value) for tool in tools.values() for fact in tool.show.values()]


def predicate_code(rules: Located | None) -> list[str]:
    """Return the expressions of the predicates in a pack's `rules.yaml`."""
    data: Any = rules.data if rules is not None else {}
    predicates: Any = cast("Mapping[str, Any]", data).get("predicates") if isinstance(data, Mapping) else None
    written = list(cast("Mapping[str, Any]", predicates).values()) if isinstance(predicates, Mapping) else []
    told = [cast("Mapping[str, Any]", each) for each in written if isinstance(each, Mapping)]
    return [each[name] for each in told for name in ("code", "when") if isinstance(each.get(name), str)]


def unenforced(
    policies: Mapping[str, Policy],
    guards: Mapping[str, Guard],
    book: Rules,
    places: Mapping[str, str],
    faulty: PackFolder | None,
) -> list[BylawError]:
    """Report each policy without a check, unless a person is named who accepted that it is unenforced."""
    ruled = book.enforced
    # A guard that does not compile has already been reported.
    texts = faulty.guards.values() if faulty is not None else ()
    written = {name for text in texts for name in re.findall(r"^def (\w+)", text, re.MULTILINE)}
    guarded = guards.keys() | {name for name in policies if name.replace("-", "_") in written}
    faults: list[BylawError] = []
    for policy in policies.values():
        enforced = {"guard": policy.id in guarded, "rule": policy.id in ruled}.get(policy.kind, True)
        if not enforced and policy.unenforced is None:
            hint = (
                f"write its {policy.kind}, or accept this by name: `bylaw review --unenforced {policy.id}`,"
                " or `unenforced: {accepted_by: ..., reason: ...}`"
            )
            message = f"policy `{policy.id}` has no check"
            faults.append(NothingEnforces(message, place=places[policy.id], hint=hint))
    return faults


class Pinned(Struct, frozen=True):
    """The records and the code that decide calls. Cases, comments, reviews and the document's text are not included."""

    records: Mapping[str, Any]
    """Parsed records, keyed by name. They are parsed so that formatting does not matter."""
    code: Mapping[str, str]
    """Guards and look-up functions, keyed by file."""

    def digest(self) -> str:
        code = {file: ast.dump(parse_python(text)) for file, text in self.code.items()}
        told = json.dumps([self.records, code], sort_keys=True, default=str)
        return hashlib.sha256(told.encode()).hexdigest()


def pinned_of(folder: PackFolder) -> Pinned:
    manifest = folder.manifest
    records: dict[str, Any] = {part: source.data for part, source in folder.parts.items()}
    named = [str(manifest.name), str(manifest.version)]
    told: list[Any] = [*named, str(manifest.now), str(manifest.criterion), str(manifest.world)]
    told.append(folder.manifest_source.data.get("shield") or {})
    if manifest.timezone != "":
        told.append(str(manifest.timezone))
    return Pinned(records | {"pack": told}, {**folder.guards, **folder.lookups})
