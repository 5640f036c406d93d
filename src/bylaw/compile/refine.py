"""Rules made verifiable and free of doubles: ShieldAgent's Algorithm 2, over the rules of a compile.

Rules wait in a heap, the vaguest first. Each is asked about, and replaced where its new form loads and passes the
policy's cases; then predicates that lie near to each other are asked about, and merged where every rule still passes.
This goes on until nothing changes or the budget ends. What each step left is recorded.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.bench import Bench, Case
from bylaw.compile.check import Check, Question
from bylaw.compile.context import told_catalogue
from bylaw.compile.desk import Desk
from bylaw.compile.extract import Draft
from bylaw.compile.prompt import render
from bylaw.compile.sort import told as told_policy
from bylaw.engine.case import CaseResult, run_cases
from bylaw.errors import BylawError
from bylaw.llm.chat import bare_json
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import YamlError, read_yaml
from bylaw.rule.embedding import Embedder, HashedNgrams, similarity
from bylaw.rule.spectral import spectral_clusters
from bylaw.scan.written import dump

_NEAREST = 3
"""How many other predicates a predicate's vagueness is the mean likeness to (k of the paper's Eq. 3)."""
_ALIKE = 0.5
"""From which likeness two predicates are joined in the graph that is clustered."""
ITERATIONS = 5


class Step(Struct, frozen=True):
    """What one step left: the paper's figures 4 to 6."""

    iteration: int
    stage: Literal["start", "refined", "pruned"]
    rules: int
    predicates: int
    vagueness: float
    """The mean over rules, each as vague as its vaguest predicate."""
    changed: int
    """Rules replaced, or predicates merged away."""


class Refined(Struct, frozen=True):
    """The checks in the end, and how they came about."""

    checks: dict[str, Check]
    steps: tuple[Step, ...]


def refine(
    desk: Desk,
    bench: Bench,
    checks: Mapping[str, Check],
    drafts: Sequence[Draft],
    general: str,
    *,
    budget: int,
    embed: Embedder | None = None,
) -> Refined | None:
    """Refine the rules among the checks; None while an answer is missing."""
    own = {name: check for name, check in checks.items() if check.rules is not None and not check.failed}
    work = _Rules(own, embed or HashedNgrams())
    told = {draft.id: told_policy(draft) for draft in drafts}
    steps = [work.step(0, "start", 0)]
    heap = [(-work.vagueness(name), name) for name in own]
    heapq.heapify(heap)
    spent = 0
    for iteration in range(1, ITERATIONS + 1):
        refined = 0
        while heap and spent < budget:
            _, name = heapq.heappop(heap)
            answer = _asked(desk, bench, work, name, told[name], general)
            if answer is None:
                # The others' questions do not hang on this one: ask them all at once.
                for _, other in heap:
                    _asked(desk, bench, work, other, told[other], general)
                return None
            made = _replaced(bench, work.checks[name], answer)
            if made is not None:
                work.checks[name] = made
                heapq.heappush(heap, (-work.vagueness(name), name))
                spent, refined = spent + 1, refined + 1
        steps.append(work.step(iteration, "refined", refined))
        merged = _pruned(desk, bench, work)
        if merged is None:
            return None
        steps.append(work.step(iteration, "pruned", len(merged)))
        for name in sorted({rule for rules in merged.values() for rule in rules}):
            heapq.heappush(heap, (-work.vagueness(name), name))
        if not refined and not merged:
            break
    return Refined({**checks, **work.checks}, tuple(steps))


class _Rules:
    """The rules as they are now, and how vague they are."""

    def __init__(self, checks: Mapping[str, Check], embed: Embedder) -> None:
        self.checks = dict(checks)
        self._embed = embed

    def predicates(self) -> dict[str, Any]:
        """Every predicate, by name; one that means two things under one name is listed once for each."""
        found: dict[str, Any] = {}
        for name, check in self.checks.items():
            for predicate, body in _predicates(check).items():
                same = found.setdefault(predicate, body)
                if same != body:
                    found[f"{name}.{predicate}"] = body
        return found

    def vagueness(self, name: str) -> float:
        """How vague a rule is: as its vaguest predicate."""
        scores = self._scores()
        return max((scores[each] for each in _predicates(self.checks[name])), default=0.0)

    def _scores(self) -> dict[str, float]:
        """By predicate the mean likeness to the few that are most like it."""
        predicates = self.predicates()
        vectors = self._embed([_words(name, body) for name, body in predicates.items()])
        scores: dict[str, float] = {}
        for place, name in enumerate(predicates):
            near = [similarity(vectors[place], other) for at, other in enumerate(vectors) if at != place]
            nearest = sorted(near, reverse=True)[:_NEAREST]
            scores[name] = sum(nearest) / len(nearest) if nearest else 0.0
        return scores

    def clusters(self) -> list[list[str]]:
        """Predicates that lie near to each other, by likeness and by standing in one rule."""
        predicates = self.predicates()
        names = list(predicates)
        if len(names) < 2:
            return []
        vectors = self._embed([_words(name, body) for name, body in predicates.items()])
        joined = [set(_predicates(check)) for check in self.checks.values()]
        rows = [
            [
                float(
                    one != other
                    and (similarity(vectors[i], vectors[j]) >= _ALIKE or any({one, other} <= names for names in joined))
                )
                for j, other in enumerate(names)
            ]
            for i, one in enumerate(names)
        ]
        labels = spectral_clusters(rows)
        groups: dict[int, list[str]] = {}
        for name, label in zip(names, labels, strict=True):
            groups.setdefault(label, []).append(name)
        return [group for group in groups.values() if len(group) > 1]

    def step(self, iteration: int, stage: Literal["start", "refined", "pruned"], changed: int) -> Step:
        """What there is now."""
        count = sum(len(_rules(check)) for check in self.checks.values())
        scores = [self.vagueness(name) for name in self.checks]
        mean = round(sum(scores) / len(scores), 4) if scores else 0.0
        return Step(iteration, stage, count, len(self.predicates()), mean, changed)


def _asked(desk: Desk, bench: Bench, work: _Rules, name: str, told: str, general: str) -> dict[str, Any] | None:
    """What is said of one rule; None while the answer is missing."""
    shown = {
        "tools": told_catalogue(bench.cards, told),
        "general": general,
        "policy": told,
        "rule": dump(work.checks[name].rules),
    }
    answer = desk.answer(render("refine", shown))
    if answer is None:
        return None
    try:
        return read_yaml(bare_json(answer.text), file="answer").data
    except YamlError:
        return {}


def _replaced(bench: Bench, check: Check, answer: Mapping[str, Any]) -> Check | None:
    """The check with its new rules; None where nothing is new, or the new ones do not load or fail a case."""
    listed = answer.get("rules")
    if answer.get("verifiable") is not False or not isinstance(listed, list):
        return None
    records = [cast(dict[str, Any], each) for each in cast(list[Any], listed) if isinstance(each, dict)]
    rules = [{"id": str(each.get("id")), "policy": check.policy, "formula": each.get("formula")} for each in records]
    if len(rules) == 1:
        rules = [{"id": check.policy, "formula": rules[0]["formula"]}]
    made = {"predicates": cast(dict[str, Any], answer.get("predicates") or {}), "rules": rules}
    cases = None if made == check.rules else _cases_after(bench, check, made)
    if cases is None:
        return None
    question = Question("a rule that was refined", str(answer.get("why", "")), {"before": check.rules})
    return replace(check, rules=made, cases=tuple(cases), questions=(*check.questions, question))


def _cases_after(bench: Bench, check: Check, rules: Mapping[str, Any]) -> list[Case] | None:
    """The policy's cases for its new rules, each for the part that it breaks; None where one is not as wanted."""
    policy = Policy(check.policy, "rule", "")
    names = [str(each["id"]) for each in cast(list[dict[str, Any]], rules["rules"])]
    if not all(name == check.policy or name.startswith(f"{check.policy}-") for name in names):
        return None
    tried = [{**case, "rule": name} for case in check.cases for name in names]
    try:
        results = list(run_cases(bench.with_rules([policy], rules, tried), {})) if tried else []
        if not tried:
            bench.with_rules([policy], rules)
    except BylawError:
        return None
    kept: list[Case] = []
    found = iter(zip(tried, results, strict=True))
    for case in check.cases:
        parts = [next(found) for _ in names]
        said = [(part, result.got.split()[0]) for part, result in parts if isinstance(result, CaseResult)]
        broken = [part for part, got in said if got == "broken"]
        if len(said) < len(parts) or bool(broken) != (case["want"] == "broken"):
            return None
        kept += broken or [part for part, _ in said]
    return kept


def _pruned(desk: Desk, bench: Bench, work: _Rules) -> dict[str, list[str]] | None:
    """By predicate merged away the rules that now use another; None while an answer is missing."""
    merged: dict[str, list[str]] = dict(_doubles(bench, work))
    missing = False
    for group in work.clusters():
        using = {name: check for name, check in work.checks.items() if set(_predicates(check)) & set(group)}
        known = work.predicates()
        shown = {
            "predicates": dump({name: known[name] for name in group}),
            "rules": "\n".join(f"{each['id']}: {each['formula']}" for one in using.values() for each in _rules(one)),
        }
        answer = desk.answer(render("merge", shown))
        if answer is None:
            missing = True
            continue
        for keep, other in _pairs(answer.text, group):
            if touched := _merged(bench, work, keep, other):
                merged[other] = touched
    return None if missing else merged


def _doubles(bench: Bench, work: _Rules) -> Iterator[tuple[str, list[str]]]:
    """Predicates that are the same but for their names need no question."""
    known = work.predicates()
    for place, (name, body) in enumerate(list(known.items())):
        same = [one for one, other in list(known.items())[:place] if _meaning(other) == _meaning(body)]
        if same and (touched := _merged(bench, work, same[0], name)):
            yield name, touched


def _pairs(text: str, group: Sequence[str]) -> Iterator[tuple[str, str]]:
    try:
        listed = read_yaml(bare_json(text), file="answer").data.get("merges")
    except YamlError:
        return
    for body in cast(list[Any], listed) if isinstance(listed, list) else ():
        record = cast(dict[str, Any], body) if isinstance(body, dict) else {}
        others = record.get("instead_of")
        for other in cast(list[Any], others) if isinstance(others, list) else ():
            if record.get("keep") in group and other in group and other != record["keep"]:
                yield str(record["keep"]), str(other)


def _merged(bench: Bench, work: _Rules, keep: str, other: str) -> list[str]:
    """The rules that use `keep` in the place of `other` from now on; none where one of them would fail its cases."""
    body = work.predicates().get(keep)
    changed: dict[str, Check] = {}
    for name, check in work.checks.items():
        own = _predicates(check)
        if other not in own:
            continue
        predicates = {each: part for each, part in own.items() if each != other} | {keep: body}
        rules = [{**each, "formula": _renamed(str(each["formula"]), other, keep)} for each in _rules(check)]
        made = {"predicates": predicates, "rules": rules}
        if body is None or own.get(keep, body) != body or _fails(bench, check, made):
            return []
        changed[name] = replace(check, rules=made)
    work.checks |= changed
    return list(changed)


def _fails(bench: Bench, check: Check, rules: Mapping[str, Any]) -> bool:
    try:
        pack = bench.with_rules([Policy(check.policy, "rule", "")], rules, check.cases)
        return not all(isinstance(each, CaseResult) and each.passed for each in run_cases(pack, {}))
    except BylawError:
        return True


def _renamed(formula: str, old: str, new: str) -> str:
    words = formula.replace("(", " ( ").replace(")", " ) ").split()
    return " ".join(new if word == old else word for word in words).replace("( ", "(").replace(" )", ")")


def _predicates(check: Check) -> dict[str, Any]:
    return cast(dict[str, Any], check.rules["predicates"]) if check.rules is not None else {}


def _rules(check: Check) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], check.rules["rules"]) if check.rules is not None else []


def _words(name: str, body: Any) -> str:
    return f"{name.replace('_', ' ')} {cast(dict[str, Any], body).get('description', '') if body else ''}"


def _meaning(body: Any) -> dict[str, Any]:
    return {part: value for part, value in cast(dict[str, Any], body or {}).items() if part != "description"}
