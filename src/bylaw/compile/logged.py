"""Tries a new guard on recorded calls. A guard that fails on some, or denies most, is reconsidered once.

Complaints contain counts, code locations and denial texts, but no values from records.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from bylaw.compile.bench import Bench
from bylaw.compile.card import names_in
from bylaw.engine.finished import verdicts
from bylaw.guard import Guard
from bylaw.policy.statement import Policy
from bylaw.trace import Call, Trajectory

_TRIED = 200
"""The maximum number of recorded conversations per guard."""
_FEWEST = 5
"""Denials are odd if they are at least this many and more than half of the calls."""
ADVICE = (
    ". Most of what was recorded is right: if the check asks for more than the policy does, or reads a record otherwise"
    " than it is, mend it; else write it again as it is"
)
_FAILURE = re.compile(r"guards/[^:]*:(\d+): (.*)", re.DOTALL)
_QUOTED = re.compile(r"`([^`]*)`")


def complaint(bench: Bench, policy: Policy, guard: Guard) -> str:
    """Return what is odd about a guard's results on recorded calls, or an empty text."""
    pack = bench.with_guard(policy, guard)
    called = set(policy.tools)
    said: list[tuple[str, str]] = []
    for trajectory in _calling(bench.trajectories, called):
        for call in verdicts(pack, trajectory).calls:
            said += [(each.determined, each.because) for each in call.policies if each.policy.id == policy.id]
    failures = Counter(f"line {found[1]}: {found[2]}" for _, why in said if (found := _FAILURE.match(why)))
    if failures:
        why = _QUOTED.sub(lambda match: match[0] if match[1] in _names(bench) else "`...`", next(iter(failures)))
        return f"it fails on {failures.total()} of {len(said)} recorded calls: {why}"
    denied = Counter(_denial(guard, why) for verdict, why in said if verdict == "violation")
    if denied.total() >= _FEWEST and 2 * denied.total() > len(said):
        listed = "; ".join(f"{text} ({count})" for text, count in denied.most_common(3))
        return f"it denies {denied.total()} of {len(said)} recorded calls: {listed}{ADVICE}"
    return ""


def rule_complaint(bench: Bench, policy: Policy, rules: Mapping[str, Any]) -> str:
    """Return a complaint if a rule is broken in most recorded conversations with a write, or an empty text."""
    pack = bench.on_its_clock(bench.with_rules([policy], rules))
    writes = {tool.name for tool in pack.schema.tools.values() if tool.effect == "write"}
    talks = _calling(bench.trajectories, writes)
    broken = sum(bool(verdicts(pack, each).findings) for each in talks)
    if broken >= _FEWEST and 2 * broken > len(talks):
        return f"it is broken in {broken} of {len(talks)} recorded conversations{ADVICE}"
    return ""


def _calling(trajectories: Iterable[Trajectory], tools: set[str]) -> list[Trajectory]:
    """Return the first conversations that call one of these tools."""
    found = (
        each for each in trajectories if any(isinstance(event, Call) and event.tool in tools for event in each.events)
    )
    return [each for _, each in zip(range(_TRIED), found, strict=False)]


def _denial(guard: Guard, because: str) -> str:
    """Return a denial's text without values."""
    for text in guard.denials:
        if re.fullmatch(".*".join(map(re.escape, text.split("..."))), because, re.DOTALL):
            return text
    return "there is no such thing"


def _names(bench: Bench) -> set[str]:
    """Return the names of arguments, entities and fields, including those inside records."""
    schema = bench.base.schema
    found = {name for entity in schema.entities.values() for name in (entity.name, *entity.key, *entity.fields)}
    for card in bench.cards.values():
        found |= {*card.parameters, *names_in(card.output), *names_in({"properties": card.parameters})}
    return found
