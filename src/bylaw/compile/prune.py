"""Redundancy pruning: predicates that mean the same become one, and a rule that says nothing new goes."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from msgspec.structs import replace

from bylaw.compile.desk import Desk, render
from bylaw.compile.naming import Rules, meaning, with_names
from bylaw.compile.ruleset import Ruleset, rules_of
from bylaw.llm.chat import unfenced
from bylaw.policy.yaml import YamlError, read_yaml
from bylaw.rule.lint import lint
from bylaw.scan.written import dump


class Pruned:
    """What one round of pruning did."""

    def __init__(self) -> None:
        self.gone: list[str] = []
        """Predicates and rules that were merged away."""
        self.touched: set[str] = set()
        """Policies whose rules are others now."""
        self.refused = 0
        """Merges that would have failed a case."""


def prune(desk: Desk, rules: Ruleset) -> Pruned:
    """Merge what means the same."""
    pruned = Pruned()
    for keep, other in _doubles(rules):
        _merge(rules, keep, other, pruned)
    # All are asked before any is merged, so that no question hangs on another's answer.
    groups = rules.groups()
    answers = desk.each(groups, lambda group: desk.answer(_question(rules, group)))
    for group, answer in zip(groups, answers, strict=True):
        for keep, other in _pairs(answer.text, group):
            _merge(rules, keep, other, pruned)
    for policy in list(rules.checks):
        _drop(rules, policy, pruned)
    return pruned


def _question(rules: Ruleset, group: Sequence[str]) -> Any:
    known = rules.predicates
    using = [check for check in rules.checks.values() if set(rules_of(check)["predicates"]) & set(group)]
    shown = {
        "predicates": dump({name: known[name] for name in group}),
        "rules": "\n".join(f"{each['id']}: {each['formula']}" for one in using for each in rules_of(one)["rules"]),
    }
    return render("merge", shown)


def _doubles(rules: Ruleset) -> Iterator[tuple[str, str]]:
    """Predicates that are the same but for their names and words need no question."""
    known = list(rules.predicates.items())
    for place, (name, body) in enumerate(known):
        same = [one for one, other in known[:place] if meaning(other) == meaning(body)]
        if same:
            yield same[0], name


def _pairs(text: str, group: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What an answer would merge: the predicate to keep, and one that it stands for."""
    try:
        listed = read_yaml(unfenced(text), file="answer").data.get("merges")
    except YamlError:
        return
    for body in cast(list[Any], listed) if isinstance(listed, list) else ():
        record = cast(dict[str, Any], body) if isinstance(body, dict) else {}
        others = record.get("instead_of")
        for other in cast(list[Any], others) if isinstance(others, list) else ():
            if record.get("keep") in group and other in group and other != record["keep"]:
                yield str(record["keep"]), str(other)


def _merge(rules: Ruleset, keep: str, other: str, pruned: Pruned) -> None:
    """Let `keep` stand for `other` everywhere; nowhere, where a rule would then fail its cases."""
    known = rules.predicates
    if keep not in known or other not in known:
        return
    changed: dict[str, Rules] = {}
    for policy, check in rules.checks.items():
        own = rules_of(check)
        if other not in own["predicates"]:
            continue
        made: Rules = {
            "predicates": {name: body for name, body in own["predicates"].items() if name != other}
            | {keep: known[keep]},
            "rules": [{**each, "formula": with_names(str(each["formula"]), {other: keep})} for each in own["rules"]],
        }
        if rules.tried(check, made)[1]:
            pruned.refused += 1
            return
        changed[policy] = made
    for policy, made in changed.items():
        rules.put(replace(rules.checks[policy], rules=made))
    pruned.gone.append(other)
    pruned.touched |= changed.keys()


def _drop(rules: Ruleset, policy: str, pruned: Pruned) -> None:
    """Of several rules of one policy, drop those that say nothing that another does not say already."""
    check = rules.checks[policy]
    own = rules_of(check)
    if len(own["rules"]) < 2:
        return
    names = [str(each["id"]) for each in own["rules"]]
    loaded = [rule for rule in rules.book.rules if rule.name in names]
    needless = {
        each.rules[-1] if each.kind == "duplicate" else each.rules[0]
        for each in lint(loaded)
        if each.kind in ("duplicate", "subsumed")
    } - {policy}
    kept = [each for each in own["rules"] if each["id"] not in needless]
    used = " ".join(str(each["formula"]) for each in kept)
    words = set(used.replace("(", " ").replace(")", " ").split())
    made: Rules = {
        "predicates": {name: body for name, body in own["predicates"].items() if name in words},
        "rules": kept,
    }
    cases, wrong = rules.tried(check, made)
    if needless and not wrong:
        rules.put(replace(check, rules=made, cases=tuple(cases)))
        pruned.gone += sorted(needless)
        pruned.touched.add(policy)
