"""An assessment in words: what speaks against the action, where it is written, and what would make it pass."""

import itertools
from collections.abc import Mapping

import msgspec

from bylaw.rule.circuit import Assessment, Circuit, Evidence, RuleState, WeightedRule
from bylaw.rule.formula import Always, is_propositional
from bylaw.rule.table import Table, table_of

_MOST_CHANGES = 3


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule has against the action."""

    rule: str
    policy: str
    sentence: str
    text: str
    remedy: dict[str, bool] = {}
    """The fewest predicates, with the values under which the rule would not be broken by the action."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why the answer is what it is."""

    summary: str
    reasons: tuple[Reason, ...]
    for_it: tuple[str, ...] = ()
    """Rules that would be broken without the action."""
    open_questions: tuple[str, ...] = ()
    """Unknown predicates that could change the answer, the most telling first."""

    def __str__(self) -> str:
        return "\n".join([self.summary, *(f"- {reason.text}" for reason in self.reasons)])


def explain(
    circuit: Circuit, found: Assessment, evidence: Evidence, *, tables: Mapping[str, Table] | None = None
) -> Explanation:
    """The assessment in words, hard rules first, then by weight."""
    rules = {rule.name: rule for rule in circuit.rules}
    speaking = [state for state in found.rules if _objects(state, rules[state.name], found)]
    speaking.sort(key=lambda state: (not state.hard, -state.weight, state.name))
    reasons = tuple(
        _reason(circuit.action, state, evidence, _table(rules[state.name], tables), state.name in found.conflict)
        for state in speaking
    )
    questions = sorted(found.influence, key=lambda name: (-found.influence[name], name))
    return Explanation(
        summary=_summary(found, questions),
        reasons=reasons,
        for_it=tuple(state.name for state in found.rules if state.speech == "for"),
        open_questions=tuple(questions),
    )


def _objects(state: RuleState, rule: WeightedRule, found: Assessment) -> bool:
    if state.name in found.conflict or state.name in found.veto:
        return True
    return not rule.physical and (
        state.speech == "against" or (state.speech == "undecided" and found.decision == "ask")
    )


def _summary(found: Assessment, questions: list[str]) -> str:
    low, high = found.interval
    where = f"margin {found.margin:+.3f}" if found.margin is not None else f"margin between {low:+.3f} and {high:+.3f}"
    match found.decision:
        case "allow":
            return f"`{found.action}` may proceed: {where}, at least {found.eps:+.3f} is asked"
        case "deny":
            why = f"vetoed by {_list(found.veto)}" if found.veto else f"{where}, at least {found.eps:+.3f} is asked"
            return f"`{found.action}` is denied: {why}"
        case "ask":
            if found.conflict:
                return f"`{found.action}` needs a person: {_list(found.conflict)} cannot be kept either way"
            return f"`{found.action}` is undecided: it hangs on {_list(questions[:3]) or 'what nobody can find out'}"


def _reason(action: str, state: RuleState, evidence: Evidence, table: Table | None, is_conflict: bool) -> Reason:
    verb = "would break" if state.with_action is False else "may break"
    if is_conflict:
        verb = "cannot mend"
    kind = "hard rule" if state.hard else "rule"
    said = f' ("{state.sentence}")' if state.sentence else ""
    weight = "" if state.hard else f", weight {state.weight:.2f}"
    text = f"`{action}` {verb} {kind} `{state.name}`{said}{weight}"
    remedy = _remedy(action, table, evidence) if table else {}
    if remedy:
        wanted = " and ".join(f"`{name}` were {'true' if value else 'false'}" for name, value in remedy.items())
        text += f"; it would pass if {wanted}"
    return Reason(rule=state.name, policy=state.policy, sentence=state.sentence, text=text, remedy=remedy)


def _remedy(action: str, table: Table, evidence: Evidence) -> dict[str, bool]:
    """The fewest changes of known predicates, and settings of unknown ones, under which the rule is kept."""
    names = [name for name in table.atoms if name != action and "@" not in name]
    base = {name: evidence.get(name) is True for name in table.atoms}
    base[action] = True
    fixed = {name for name in names if isinstance(evidence.get(name), bool)}
    for count in range(1, min(len(names), _MOST_CHANGES) + 1):
        for chosen in itertools.combinations(names, count):
            for values in itertools.product((True, False), repeat=count):
                change = dict(zip(chosen, values, strict=True))
                rest = [name for name in names if name not in change and name not in fixed]
                if all(change[name] != base[name] for name in chosen if name in fixed) and all(
                    table({**base, **change, **dict(zip(rest, others, strict=True))})
                    for others in itertools.product((True, False), repeat=len(rest))
                ):
                    return change
    return {}


def _table(rule: WeightedRule, tables: Mapping[str, Table] | None) -> Table | None:
    if tables and rule.name in tables:
        return tables[rule.name]
    formula = rule.formula.operand if isinstance(rule.formula, Always) else rule.formula
    return table_of(formula) if is_propositional(formula) else None


def _list(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
