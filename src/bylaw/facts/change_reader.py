"""What writes change, compiled once from `changes` and `effects` in `tools.yaml`."""

from collections.abc import Iterator
from typing import Any, cast

from bylaw.facts.entity import Entity
from bylaw.facts.observation import Change
from bylaw.facts.path import Getter, compile_misfit, compile_path
from bylaw.facts.path_reader import PathReader, is_through
from bylaw.facts.world_change import Expression, WorldChange
from bylaw.facts.written import listed_names
from bylaw.policy.tool import Tool, WrittenChange
from bylaw.policy.yaml import YamlPath


class ChangeReader:
    """Reads what a write makes stale, and what it makes of a world."""

    def __init__(self, paths: PathReader) -> None:
        self._paths = paths

    def changes(self, tool: Tool) -> list[Change]:
        """What it makes stale."""
        at = ("tools", tool.name, "changes")
        if tool.changes is None:
            if tool.effects:
                faults = len(self._paths.faults)
                told = list(self._told_by_effects(tool))
                del self._paths.faults[faults:]  # told where effects are read
                return told
            # What has no key fields is the only one of its kind, which any write may be about.
            kinds = [e for e in self._paths.entities.values() if not e.is_always_there]
            return [Change(e.name, None, _argument_key(e), None) for e in kinds if set(e.key) <= set(tool.parameters)]
        found: list[Change] = []
        for said in tool.changes:
            body = said if isinstance(said, WrittenChange) else _change(str(said))
            entity = self._paths.entities.get(str(body.as_))
            if entity is None:
                self._paths.no_entity(str(body.as_), *at)
                continue
            fields = listed_names(body.fields)
            for name in sorted(set(fields) - {"*", "exists"} - set(entity.fields)):
                self._paths.no_field(entity, name, *at)
            if body.key is not None:
                key = self._paths.key(entity, body.key, at)
            else:
                key = _argument_key(entity) if set(entity.key) <= set(tool.parameters) else None
            each = self._paths.each(body.each, at)
            misfit = compile_misfit(str(body.each)) if each is not None else None
            changed = None if "*" in fields else frozenset(fields)
            if body is not said and fields == ("*",) and "." in str(said):
                changed = frozenset(entity.fields)
            by_result = "$result" in f"{body.each} {body.key}"
            when = self._paths.expression(body.when, at) if body.when is not None else None
            found.append(Change(entity.name, each, key, changed, misfit, by_result, when))
        self._moved_unsaid(tool, {change.entity for change in found})
        return found

    def _moved_unsaid(self, tool: Tool, said: set[str]) -> None:
        """What an effect moves and `changes` leaves out would be moved and still be taken for what was shown before."""
        made = [body for body in tool.effects if "$result" in f"{body.each} {body.key}"]  # new, so never shown before
        for name in dict.fromkeys(str(body.as_) for body in tool.effects if body not in made):
            if name in self._paths.entities and name not in said:
                hint = f"add `{name}` to `changes`, or leave `changes` out: it is then what the effects set"
                self._paths.fault(
                    f"`effects` move `{name}`, which `changes` does not list", "tools", tool.name, "changes", hint=hint
                )

    def _told_by_effects(self, tool: Tool) -> Iterator[Change]:
        """What a write makes stale that says only what it does."""
        at = ("tools", tool.name, "effects")
        for body in tool.effects:
            entity = self._paths.entities.get(str(body.as_))
            if entity is not None:
                fields = None if body.delete else frozenset(body.set)
                each = self._paths.each(body.each, at)
                misfit = compile_misfit(str(body.each)) if each is not None else None
                by_result = "$result" in f"{body.each} {body.key}"
                when = self._paths.expression(body.when, at) if body.when is not None else None
                yield Change(entity.name, each, self._paths.key(entity, body.key, at), fields, misfit, by_result, when)

    def effects(self, tool: Tool) -> list[WorldChange]:
        """What it makes of a world."""
        at = ("tools", tool.name, "effects")
        found: list[WorldChange] = []
        for body in tool.effects:
            entity = self._paths.entities.get(str(body.as_))
            if entity is None:
                self._paths.no_entity(str(body.as_), *at)
                continue
            changes: dict[str, tuple[str, Getter]] = {}
            computed: dict[str, Expression] = {}
            for name, value in body.set.items():
                if name not in entity.fields:
                    self._paths.no_field(entity, name, *at)
                if isinstance(value, dict) and "to" in value:
                    if (expression := self._paths.expression(cast(Any, value)["to"], at)) is not None:
                        computed[name] = expression
                    continue
                how, value = self._how(name, value, at)
                changes[name] = (how, self._given(value, at))
            key = self._paths.key(entity, body.key, at)
            each = self._paths.each(body.each, at)
            lacking = [part for part in entity.key if part not in tool.parameters]
            if body.key is None and each is None and lacking and not tool.others:
                hint = f"give its `key`: `$args....`, `$result.{lacking[0]}`, or `{{of: Other.{lacking[0]}}}`"
                self._paths.fault(f"nothing says which `{entity.name}` moves", *at, hint=hint)
            when = self._paths.expression(body.when, at) if body.when is not None else None
            passes = is_through(entity, body.key)
            found.append(WorldChange(entity.name, each, key, changes, body.delete, when, computed, passes))
        return found

    def _how(self, field: str, value: Any, at: YamlPath) -> tuple[str, Any]:
        """How an effect moves a field, and by what."""
        if not isinstance(value, dict):
            return "is", value
        record = cast(dict[str, Any], value)
        if "of" in record:
            return "is", record
        if record.keys() == {"remove", "by"}:
            return f"remove by {record['by']}", record["remove"]
        how = next(iter(record), "")
        if len(record) != 1 or how not in ("is", "plus", "minus", "append", "extend", "remove"):
            hint = "give one of is, to, plus, minus, append, extend, remove, or of and key"
            self._paths.fault(f"nothing says how `{field}` moves", *at, hint=hint)
        return how, record.get(how)

    def _given(self, value: Any, at: YamlPath) -> Getter:
        """A value, at a path or as a field of another thing has it."""
        if isinstance(value, dict):
            if "of" in value:
                return self._paths.through(cast(dict[str, Any], value), at)
            hint = "give a path, a value, or `{of: Plan.price, key: $args.plan_id}`"
            self._paths.fault(f"`{value}` is not a value", *at, hint=hint)
        return self._paths.value(value, at)


def _argument_key(entity: Entity) -> tuple[tuple[Getter, ...], ...]:
    return tuple((compile_path(f"$args['{part}']"),) for part in entity.key)


def _change(text: str) -> WrittenChange:
    """`Order.state`, or `Order` for all of it."""
    name, _, field = text.partition(".")
    return WrittenChange(name, field or "*")
