"""The read calls that would show what a decision lacks: those whose arguments are known, and not answered already."""

from collections.abc import Mapping
from typing import Any

from bylaw.facts.call_record import CallRecord
from bylaw.facts.contradiction import may_be_settled
from bylaw.facts.entity import Fact, Key, ReadTool
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema import Schema
from bylaw.facts.value import key_of
from bylaw.shield.decision import LookUp

_Name = tuple[Any, ...]
"""A call, told by its tool and its arguments, which are parts of keys."""


def look_ups(
    schema: Schema, ledger: Ledger, lacking: Mapping[Fact, str], at: CallRecord
) -> tuple[list[LookUp], list[Fact], list[LookUp]]:
    """The look-ups to make before the call `at`, the facts that none is left for, and look-ups that failed.

    `lacking` are facts, each with its text.
    """
    found: dict[_Name, tuple[str, dict[str, Any], list[str]]] = {}
    failed: dict[_Name, LookUp] = {}
    blind: list[Fact] = []
    answers: dict[_Name, list[CallRecord]] = {}
    calls: dict[tuple[Key, int], tuple[_Name, dict[str, Any]]] = {}
    """By key and way, which mostly show several of the facts: the arguments, and a name for the call."""
    for fact, text in lacking.items():
        if fact.key is None:
            continue
        entity = schema.entities[fact.entity]
        key = key_of(fact.key)
        ways: list[tuple[_Name, str, dict[str, Any]]] = []
        for way in schema.ways_to(entity, fact.field):
            call = calls.get((key, id(way)))
            if call is None:
                call = calls[key, id(way)] = _call(way, dict(zip(entity.key, key, strict=False)))
            name, arguments = call
            made = answers.get(name)
            if made is None:
                made = answers[name] = ledger.answers.to(way.tool, arguments, at)
            is_current = any(ledger.changes.is_current(entity.name, key, fact.field, each.step, at) for each in made)
            if not is_current or may_be_settled(ledger, entity, key, fact.field, at):
                look_up = found.get(name)
                if look_up is None:
                    look_up = found[name] = (way.tool, arguments, [])
                look_up[2].append(text)
                break
            ways.append((name, way.tool, arguments))
        else:
            blind.append(fact)
            for name, tool, arguments in ways:
                if ledger.answers.has_failed(tool, arguments, at):
                    failed[name] = LookUp(tool, arguments, (text,))
    wanted = [LookUp(tool, arguments, tuple(facts)) for tool, arguments, facts in found.values()]
    return wanted, blind, list(failed.values())


def _call(way: ReadTool, named: Mapping[str, Any]) -> tuple[_Name, dict[str, Any]]:
    arguments = {argument: named.get(part) for argument, part in way.arguments.items()}
    return (way.tool, *arguments.items()), arguments
