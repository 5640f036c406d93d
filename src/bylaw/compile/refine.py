"""Refines rules until they are verifiable and free of duplicates (ShieldAgent, Algorithm 2).

Rules wait in a heap, vaguest first. A model rewrites each rule, and the new form replaces the old one if it loads and
passes the policy's cases. A rule is refined again only if the last refinement made it less vague, so the loop always
ends. Similar predicates are then merged if every rule still passes. All of this is repeated until nothing changes or
the budget is used up. The result of each step is recorded.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.bench import Bench, Case, fault_text
from bylaw.compile.check import Check, Question
from bylaw.compile.context import catalogue_text
from bylaw.compile.desk import Desk, Outcome, Prompt, Unanswered, Unreadable, stage, yaml_answer
from bylaw.compile.extract import Draft
from bylaw.compile.naming import Rules, meaning, named_apart, used_in, with_names
from bylaw.compile.sort import draft_text
from bylaw.errors import BylawError
from bylaw.pack.rules import Rules as Book
from bylaw.policy.statement import Policy
from bylaw.review.case import CaseResult, run_cases
from bylaw.rule.rule import lint
from bylaw.rule.structure import Embedder, HashedNgrams, Likeness, cluster, rule_vagueness, vagueness
from bylaw.scan.written import dump

_MERGE = Prompt("merge", yaml_answer)
_ALIKE = 0.5
"""Predicates with at least this similarity share an edge in the clustering graph."""


class Step(Struct, frozen=True):
    """The result of one step (the paper's figures 4 to 6)."""

    iteration: int
    stage: Literal["start", "refined", "pruned"]
    rules: int
    predicates: int
    vagueness: float
    """The mean vagueness of all rules. A rule is as vague as its vaguest predicate (Eq. 3)."""
    judged: float | None
    """The mean of the model's vagueness ratings, from 0 to 10, or None if there are no ratings."""
    changed: int
    """The number of rules replaced, or of predicates and rules merged."""
    refused: int
    """The number of new forms and merges rejected because they did not load or a case failed."""


class Ruleset:
    """Rules keyed by policy. A predicate has the same meaning in all policies."""

    def __init__(self, bench: Bench, checks: Mapping[str, Check], embed: Embedder | None = None) -> None:
        self.bench = bench
        self.checks: dict[str, Check] = {}
        self._embed = embed or HashedNgrams()
        self._likeness = Likeness(self._embed)
        self._book: Book | None = None
        for check in checks.values():
            self.put(check)

    def put(self, check: Check) -> None:
        taken = {
            name: body
            for policy, other in self.checks.items()
            if policy != check.policy
            for name, body in rules_of(other)["predicates"].items()
        }
        self.checks[check.policy] = replace(check, rules=named_apart(rules_of(check), check.policy, taken))
        self._book = None

    @property
    def predicates(self) -> dict[str, Any]:
        return {name: body for check in self.checks.values() for name, body in rules_of(check)["predicates"].items()}

    @property
    def book(self) -> Book:
        if self._book is None:
            every = [rule for check in self.checks.values() for rule in rules_of(check)["rules"]]
            policies = [Policy(name, "rule", "") for name in self.checks]
            self._book = self.bench.with_rules(policies, {"predicates": self.predicates, "rules": every}).book
        return self._book

    def vagueness(self) -> dict[str, float]:
        """Return how vague each policy is. This is the vagueness of its vaguest predicate, compared with predicates of
        the same type.
        """
        scores: dict[str, float] = {}
        for texts in self._texts():
            scores |= vagueness(texts, likeness=self._likeness)
        by_rule = rule_vagueness(self.book.every, scores)
        return {
            name: max(by_rule[str(rule["id"])] for rule in rules_of(check)["rules"])
            for name, check in self.checks.items()
        }

    def groups(self) -> list[list[str]]:
        """Return groups of predicates of the same type that are similar or occur in the same rule."""
        found = [cluster(self.book.every, texts, threshold=_ALIKE, embed=self._embed) for texts in self._texts()]
        return [group for each in found for group in each.groups if len(group) > 1]

    def _texts(self) -> list[dict[str, str]]:
        every = self.book.predicates.items()
        return [{name: each.text for name, each in every if each.is_action is kind} for kind in (True, False)]

    def step(
        self, iteration: int, stage: Literal["start", "refined", "pruned"], changed: int = 0, refused: int = 0
    ) -> Step:
        scores = self.vagueness().values()
        mean = round(sum(scores) / len(scores), 4) if scores else 0.0
        return Step(iteration, stage, len(self.book.rules), len(self.predicates), mean, None, changed, refused)

    def tried(self, check: Check, rules: Rules) -> tuple[list[Case], list[str]]:
        """Return a policy's cases for new rules, each with the rule that it tests. Also return a description of each
        failure.
        """
        policy = Policy(check.policy, "rule", "")
        names = [str(each["id"]) for each in rules["rules"]]
        strange = [name for name in names if name != check.policy and not name.startswith(f"{check.policy}-")]
        if not names or strange or len(set(names)) < len(names):
            wanted = f"`{check.policy}`, and for further rules `{check.policy}-2` and so on"
            return [], [f"the rules' ids must be {wanted}, each once"]
        if faults := self.bench.rule_faults([policy], rules):
            return [], faults
        cases = _undivided(check.cases)
        tried = [{**case, "rule": name} for case in cases for name in names]
        try:
            results = list(run_cases(self.bench.with_rules([policy], rules, tried))) if tried else []
        except BylawError as error:
            return [], [fault_text(error)]
        kept: list[Case] = []
        wrong: list[str] = []
        for place, case in enumerate(cases):
            said = list(zip(names, results[place * len(names) : (place + 1) * len(names)], strict=True))
            faults = [fault_text(result, case) for _, result in said if not isinstance(result, CaseResult)]
            broken = [
                name for name, result in said if isinstance(result, CaseResult) and result.got.startswith("broken")
            ]
            got = "broken" if broken else "kept"
            if faults or got != case["want"]:
                shown = {"events": case.get("events")}
                wrong += faults or [f"`{case.get('note', '')}`: {shown}: wanted {case['want']}, got {got}"]
            kept += [{**case, "rule": name} for name in broken or names]
        return kept, wrong


def rules_of(check: Check) -> Rules:
    """Return the `predicates` and `rules` of a check. Both are empty if the check has none."""
    return check.rules if check.rules is not None else {"predicates": {}, "rules": []}


def _undivided(cases: Sequence[Case]) -> list[Case]:
    """Return the cases as originally written, before their rule was split."""
    found: dict[bytes, Case] = {}
    for case in cases:
        whole = {part: value for part, value in case.items() if part != "rule"}
        found.setdefault(msgspec.json.encode(cast(Any, whole), order="sorted", enc_hook=str), whole)
    return list(found.values())


class Pruned:
    def __init__(self) -> None:
        self.gone: list[str] = []
        """The predicates and rules that were merged into others."""
        self.touched: set[str] = set()
        """The policies whose rules changed."""
        self.refused = 0
        """The number of merges rejected because a case would have failed."""


def prune(desk: Desk, rules: Ruleset) -> Pruned:
    """Merge predicates with the same meaning, then merge rules with the same meaning."""
    pruned = Pruned()
    for keep, other in _doubles(rules):
        _merge(rules, keep, other, pruned)
    # Ask all questions before the first merge. No question then depends on the answer to another.
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
    return _MERGE.request(shown)


def _doubles(rules: Ruleset) -> Iterator[tuple[str, str]]:
    """Yield pairs of predicates that differ only in name and wording. They are merged without a question."""
    known = list(rules.predicates.items())
    for place, (name, body) in enumerate(known):
        same = [one for one, other in known[:place] if meaning(other) == meaning(body)]
        if same:
            yield same[0], name


def _pairs(text: str, group: Sequence[str]) -> Iterator[tuple[str, str]]:
    try:
        listed = yaml_answer(text).get("merges")
    except Unreadable:
        return
    for body in cast(list[Any], listed) if isinstance(listed, list) else ():
        record = cast(dict[str, Any], body) if isinstance(body, dict) else {}
        others = record.get("instead_of")
        for other in cast(list[Any], others) if isinstance(others, list) else ():
            if record.get("keep") in group and other in group and other != record["keep"]:
                yield str(record["keep"]), str(other)


def _merge(rules: Ruleset, keep: str, other: str, pruned: Pruned) -> None:
    """Replace `other` with `keep` everywhere, unless a rule would then fail its cases."""
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
    """Drop rules that follow from another rule of the same policy."""
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
    made: Rules = {"predicates": used_in((each["formula"] for each in kept), own["predicates"]), "rules": kept}
    cases, wrong = rules.tried(check, made)
    if needless and not wrong:
        rules.put(replace(check, rules=made, cases=tuple(cases)))
        pruned.gone += sorted(needless)
        pruned.touched.add(policy)


ITERATIONS = 5
_REFINE = Prompt("refine", yaml_answer)


class Refined(Struct, frozen=True):
    """The checks after refinement, with the result of each step."""

    checks: dict[str, Check]
    steps: tuple[Step, ...]
    judged: dict[str, float]
    """The model's vagueness ratings, keyed by the rule's form in YAML."""


class Reply(Struct, frozen=True):
    rules: Rules | None = None
    """The new form of the rule, or None to keep the old one."""
    cases: tuple[dict[str, Any], ...] = ()
    why: str = ""
    vagueness: float | None = None


@stage
def refine(
    desk: Desk,
    bench: Bench,
    checks: Mapping[str, Check],
    drafts: Sequence[Draft],
    general: str,
    *,
    budget: int,
    embed: Embedder | None = None,
    rounds: int = ITERATIONS,
) -> Refined:
    """Refine the rules of the checks, in at most `budget` rounds."""
    own = {name: check for name, check in checks.items() if check.rules is not None and not check.failed}
    told = {draft.id: draft_text(draft) for draft in drafts}
    work = _Refinement(desk, Ruleset(bench, own, embed), told, general, budget)
    if not own:
        return Refined(dict(checks), (), {})
    work.run(rounds)
    return Refined({**checks, **work.rules.checks}, tuple(work.judged_steps()), work.judged)


class _Refinement:
    def __init__(self, desk: Desk, rules: Ruleset, told: Mapping[str, str], general: str, budget: int) -> None:
        self.rules = rules
        self._desk = desk
        self._told = told
        self._general = general
        self._left = budget
        self._heap: list[tuple[float, str]] = []
        self._forms = {name: {dump(rules_of(check))} for name, check in rules.checks.items()}
        """All forms that each policy's rules have had. A return to an earlier form is not a refinement."""
        self.judged: dict[str, float] = {}
        """The model's vagueness ratings by form."""
        self._replaced: dict[str, tuple[float | None, float]] = {}
        """For each policy, how vague the replaced form was, both by the model's rating and by Eq. 3."""
        self._steps: list[tuple[Step, list[str]]] = []

    def run(self, rounds: int) -> None:
        self._push(self.rules.checks)
        self._note(self.rules.step(0, "start"))
        for iteration in range(1, rounds + 1):
            done = self._refine_all()
            self._note(self.rules.step(iteration, "refined", *done))
            pruned = prune(self._desk, self.rules)
            self._note(self.rules.step(iteration, "pruned", len(pruned.gone), pruned.refused))
            self._push(sorted(pruned.touched))
            if not done[0] and not pruned.gone:
                break

    def judged_steps(self) -> list[Step]:
        """Return the steps, each with the model's ratings of the forms at that step."""
        made: list[Step] = []
        for step, forms in self._steps:
            scores = [self.judged[form] for form in forms if form in self.judged]
            made.append(replace(step, judged=round(sum(scores) / len(scores), 2) if scores else None))
        return made

    def _note(self, step: Step) -> None:
        self._steps.append((step, [dump(rules_of(check)) for check in self.rules.checks.values()]))

    def _push(self, names: "Sequence[str] | Mapping[str, Check]") -> None:
        scores = self.rules.vagueness()
        for name in names:
            heapq.heappush(self._heap, (-scores[name], name))

    def _refine_all(self) -> tuple[int, int]:
        refined = refused = missing = 0
        while self._heap and self._left > missing:
            _, name = heapq.heappop(self._heap)
            try:
                outcome = self._asked(name)
            except Unanswered:
                # Questions about other rules do not depend on this rule, so all are asked together.
                missing += 1
                continue
            reply, check = outcome.made, self.rules.checks[name]
            if reply.vagueness is not None:
                self.judged[dump(rules_of(check))] = reply.vagueness
            complaint = outcome.complaints[0] if outcome.complaints else self._needless(name, reply)
            if complaint:
                text = f"{reply.why}: {complaint}" if reply.why else complaint
                question = Question("a refinement that was not taken", text, reply.rules)
                self.rules.checks[name] = replace(check, questions=(*check.questions, question))
                refused += 1
            elif reply.rules is not None:
                question = Question("a rule that was refined", reply.why, {"before": rules_of(check)})
                made = replace(check, rules=reply.rules, cases=reply.cases, questions=(*check.questions, question))
                self._replaced[name] = (reply.vagueness, self.rules.vagueness()[name])
                self.rules.put(made)
                self._forms[name].add(dump(rules_of(self.rules.checks[name])))
                self._push([name])
                self._left, refined = self._left - 1, refined + 1
        if missing:
            raise Unanswered
        return refined, refused

    def _needless(self, name: str, reply: Reply) -> str:
        """Return why a rule need not be refined again: the last refinement did not make it less vague."""
        if reply.rules is None or name not in self._replaced:
            return ""
        called, measured = self._replaced[name]
        if called is not None and reply.vagueness is not None:
            before, now = called, reply.vagueness
        else:
            before, now = round(measured, 2), round(self.rules.vagueness()[name], 2)
        return (
            ""
            if now < before
            else f"the last refinement did not make the rule less vague ({before:g} before, {now:g} now)"
        )

    def _asked(self, name: str) -> Outcome[Reply]:
        check = self.rules.checks[name]
        shown = {
            "tools": catalogue_text(self.rules.bench.cards, self._told[name]),
            "general": self._general,
            "policy": self._told[name],
            "rule": dump(rules_of(check)),
        }
        return self._desk.ask(_REFINE, shown, lambda data: self._read(check, data), empty=Reply())

    def _read(self, check: Check, data: Mapping[str, Any]) -> tuple[Reply, list[str]]:
        score = data.get("vagueness")
        vague = float(score) if isinstance(score, int | float) and 0 <= score <= 10 else None
        listed = data.get("rules")
        if data.get("verifiable") is True:
            return Reply(vagueness=vague), []
        if data.get("verifiable") is not False or not isinstance(listed, list):
            return Reply(vagueness=vague), ["`verifiable` must be true, or false with `predicates` and `rules`"]
        records = [cast(dict[str, Any], each) for each in cast(list[Any], listed) if isinstance(each, dict)]
        rules = [
            {"id": str(each.get("id")), "policy": check.policy, "formula": each.get("formula")} for each in records
        ]
        if len(rules) == 1:
            rules = [{"id": check.policy, "formula": rules[0]["formula"]}]
        made: Rules = {"predicates": data.get("predicates") or {}, "rules": rules}
        if dump(made) in self._forms[check.policy]:
            return Reply(vagueness=vague), []
        cases, wrong = self.rules.tried(check, made)
        return Reply(made, tuple(cases), str(data.get("why", "")), vague), wrong
