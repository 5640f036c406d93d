"""Defines a rule (a formula over predicates, with its policy and weight) and checks rules for conflicts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from math import atanh, tanh
from typing import Any, Literal

from msgspec import Struct

from bylaw.facts.value import alike, loose
from bylaw.rule.automaton import BROKEN, automaton
from bylaw.rule.formula import And, Atom, Eventually, Formula, Not, atoms, parse_rule, show_name
from bylaw.rule.letters import alphabet
from bylaw.rule.progression import TooLargeError
from bylaw.text.day import told_duration


class Rule(Struct, frozen=True):
    name: str
    formula: Formula
    policy: str = ""
    weight: float = 1.0
    hard: bool = False
    """Whether the rule is a veto. A veto is not part of the margin, so other rules cannot outweigh it."""
    physical: bool = False
    """Whether the rule states knowledge. A hard knowledge rule excludes possible worlds, and a soft one makes them less
    likely.
    """
    for_each: str | None = None
    """The key in `FOR EACH key:`. Each value of the key has its own monitor."""

    @property
    def text(self) -> str:
        """The text of the rule, which `read_rule` can parse."""
        return f"FOR EACH {show_name(self.for_each)}: {self.formula}" if self.for_each else str(self.formula)

    def denies_alone(self, eps: float) -> bool:
        """Whether a call that breaks only this rule is denied if the required margin is `eps`."""
        return self.hard or tanh(-self.weight / 2) < eps


def threshold_of(eps: float) -> float:
    """Return the weighted sum that corresponds to the margin `eps`."""
    return 2 * atanh(max(min(eps, 1 - 1e-15), 1e-15 - 1))


def denying_weight(threshold: float) -> float:
    """Return a weight with which a rule denies a call on its own, at a distance of 1 from the threshold."""
    return max(1.0 - threshold, 1.0)


def read_rule(
    name: str, text: str, *, policy: str = "", weight: float = 1.0, hard: bool = False, physical: bool = False
) -> Rule:
    """Parse a rule. Raises `FormulaError` with the column of the error."""
    key, formula = parse_rule(text)
    return Rule(name, formula, policy=policy, weight=weight, hard=hard, physical=physical, for_each=key)


Over = Literal["deny", "ask"]


class Limit(Struct, frozen=True):
    """A limit on the number of calls in a period, counted per tenant, per agent, or per value in the context or the
    call.
    """

    name: str
    policy: str
    tools: frozenset[str]
    most: int
    within: float
    """The period in seconds."""
    per: str = "tenant"
    """The counting key: `tenant`, `agent`, `context.NAME` or `call.ARGUMENT`."""
    over: Over = "deny"
    """The decision on a call above the limit."""

    @property
    def text(self) -> str:
        calls = " or ".join(sorted(self.tools))
        return f"at most {self.most} {calls} within a span of {told_duration(self.within)}, per {self.whom}"

    def whose(self, arguments: Mapping[str, Any], agent: str, context: Mapping[str, Any]) -> str | None:
        """Return the tenant, agent or value against which a call counts. None if it is unknown."""
        where, _, name = self.per.partition(".")
        if where == "tenant":
            return ""
        found: Any = agent if where == "agent" else (context if where == "context" else arguments).get(name)
        is_told = isinstance(found, str | int) and not isinstance(found, bool) and str(found).strip()
        # Names are compared like ids, so that a different spelling is treated as the same customer.
        return loose(str(found)) or None if is_told else None

    def perhaps(self, whose: str) -> str:
        """Return the same key for names that a tool may treat alike, such as `ac-22` and `ac22`. Agents' names stay
        distinct.
        """
        return alike(whose) if self.per.partition(".")[0] in ("call", "context") else whose

    @property
    def whom(self) -> str:
        """Return the kind of counting key as a word, such as `agent`."""
        return f"`{self.per.rpartition('.')[2]}`"


LintKind = Literal["contradictory", "duplicate", "subsumed", "blocked", "no_value"]

SUBSET_CAP = 4
"""The maximum number of rules to combine in one conflict check."""
TRIES_CAP = 3000


class LintFinding(Struct, frozen=True):
    kind: LintKind
    rules: tuple[str, ...]
    message: str
    subject: str = ""
    """The action that can never be taken, or the predicate that never has a value."""


def lint(
    rules: Iterable[Rule], *, actions: Iterable[str] = (), ways: Collection[str] | None = None
) -> list[LintFinding]:
    """Return all problems in the rules. Problems that cannot be confirmed within the caps are left out.

    `ways` lists the predicates that have a definition. If it is None, definitions are not checked.
    """
    every = list(rules)
    found: list[LintFinding] = []
    sound: list[Rule] = []
    for rule in every:
        if is_hopeless(rule.formula):
            found.append(LintFinding("contradictory", (rule.name,), f"rule `{rule.name}` can never be followed"))
        else:
            sound.append(rule)
    found += _pairs(sound)
    for action in actions:
        found += _blocked(action, sound)
    if ways is not None:
        found += _valueless(every, ways)
    return found


def is_hopeless(formula: Formula) -> bool:
    """Whether the formula is unsatisfiable. False if this cannot be determined within the caps."""
    own = alphabet(formula)
    try:
        plain = automaton(own).plain
        return bool(own.possible) and all(plain.step(plain.start, letter)[1] == BROKEN for letter in own.possible)
    except TooLargeError:
        return False


def _pairs(rules: Sequence[Rule]) -> list[LintFinding]:
    found: list[LintFinding] = []
    names = {rule.name: set(atoms(rule.formula)) for rule in rules}
    for first, second in combinations(rules, 2):
        if first.for_each != second.for_each or not names[first.name] & names[second.name]:
            continue
        pair = (first.name, second.name)
        forth = is_hopeless(And(first.formula, Not(second.formula)))
        back = is_hopeless(And(second.formula, Not(first.formula)))
        if forth and back:
            found.append(LintFinding("duplicate", pair, f"rules `{pair[0]}` and `{pair[1]}` are equivalent"))
        elif forth or back:
            wide, narrow = pair if forth else pair[::-1]
            found.append(LintFinding("subsumed", (narrow, wide), f"rule `{narrow}` adds nothing to `{wide}`"))
        elif is_hopeless(And(first.formula, second.formula)):
            found.append(
                LintFinding("contradictory", pair, f"rules `{pair[0]}` and `{pair[1]}` cannot both be followed")
            )
    return found


def _blocked(action: str, rules: Sequence[Rule]) -> list[LintFinding]:
    """Return the smallest consistent set of rules that forbids the action in every situation."""
    taken = Eventually(Atom(action))
    tries = 0
    for size in range(1, SUBSET_CAP + 1):
        for chosen in _connected(action, rules, size):
            tries += 1
            if tries > TRIES_CAP:
                return []
            together = reduce(And, [rule.formula for rule in chosen])
            if is_hopeless(And(together, taken)) and not is_hopeless(together):
                names = tuple(rule.name for rule in chosen)
                listed = " and ".join(f"`{name}`" for name in names)
                message = f"action `{action}` can never be taken: {listed} forbid{'s' if len(names) == 1 else ''} it"
                return [LintFinding("blocked", names, message, action)]
    return []


def _connected(action: str, rules: Sequence[Rule], size: int) -> Iterable[tuple[Rule, ...]]:
    names = [frozenset(atoms(rule.formula)) for rule in rules]
    seen: set[frozenset[int]] = set()
    waiting = [frozenset([place]) for place, own in enumerate(names) if action in own]
    while waiting:
        chosen = waiting.pop(0)
        if chosen in seen:
            continue
        seen.add(chosen)
        if len(chosen) == size:
            yield tuple(rules[place] for place in sorted(chosen))
            continue
        reach = frozenset([action]).union(*(names[place] for place in chosen))
        waiting += [chosen | {place} for place, own in enumerate(names) if place not in chosen and own & reach]


def _valueless(rules: Sequence[Rule], ways: Collection[str]) -> list[LintFinding]:
    users: dict[str, list[str]] = {}
    for rule in rules:
        for name in atoms(rule.formula):
            if name not in ways:
                users.setdefault(name, []).append(rule.name)
    return [
        LintFinding("no_value", tuple(names), f"predicate `{name}` has no source for its value", name)
        for name, names in users.items()
    ]
