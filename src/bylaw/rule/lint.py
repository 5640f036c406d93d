"""Finds faults in a set of rules: rules that cannot be kept or broken, redundant rules, and actions that are always
forbidden.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from itertools import combinations
from typing import Literal

from msgspec import Struct

from bylaw.rule.automaton import BROKEN, automaton
from bylaw.rule.formula import And, Atom, Eventually, Formula, Not, atoms
from bylaw.rule.letters import alphabet
from bylaw.rule.progression import TooLargeError
from bylaw.rule.rule import Rule

LintKind = Literal["contradictory", "trivial", "duplicate", "subsumed", "blocked", "no_value"]

SUBSET_CAP = 4
"""The maximum number of rules to combine."""
TRIES_CAP = 3000
"""The maximum number of rule sets to try for one action."""


class LintFinding(Struct, frozen=True):
    """A fault in the rules."""

    kind: LintKind
    rules: tuple[str, ...]
    message: str
    subject: str = ""
    """The action that can never be taken, or the predicate without a value."""


def lint(
    rules: Iterable[Rule], *, actions: Iterable[str] = (), ways: Collection[str] | None = None
) -> list[LintFinding]:
    """Return all faults. `ways` are the predicates that have a definition; None skips this check.

    A question that cannot be settled within the caps is not reported.
    """
    every = list(rules)
    found: list[LintFinding] = []
    sound: list[Rule] = []
    for rule in every:
        if is_hopeless(rule.formula):
            found.append(LintFinding("contradictory", (rule.name,), f"rule `{rule.name}` can never be kept"))
        elif is_hopeless(Not(rule.formula)):
            found.append(LintFinding("trivial", (rule.name,), f"rule `{rule.name}` can never be broken"))
        else:
            sound.append(rule)
    found += _pairs(sound)
    for action in actions:
        found += _blocked(action, sound)
    if ways is not None:
        found += _valueless(every, ways)
    return found


def is_hopeless(formula: Formula) -> bool:
    """Whether no trace satisfies the formula. Returns False if this cannot be settled."""
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
            found.append(LintFinding("contradictory", pair, f"rules `{pair[0]}` and `{pair[1]}` cannot both be kept"))
    return found


def _blocked(action: str, rules: Sequence[Rule]) -> list[LintFinding]:
    """Return the smallest consistent set of rules that forbids the action altogether."""
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
    """Yield sets of this many rules that share predicates with each other and the action."""
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
