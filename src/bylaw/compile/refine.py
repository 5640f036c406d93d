"""Refines rules until they are verifiable and free of duplicates (ShieldAgent, Algorithm 2).

Rules wait in a heap, vaguest first. A model rewrites each rule. The new form replaces the old form if the new form
loads and passes the policy's cases. A rule is refined again only if the last refinement made it less vague, so the loop
always ends. Similar predicates are then merged if every rule still passes. Refining and merging are repeated until
nothing changes or the budget is used up. The result of each step is recorded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.bench import Bench, Case, fault_text
from bylaw.compile.check import Check, Question
from bylaw.compile.context import catalogue_text
from bylaw.compile.desk import Desk, Outcome, Prompt, Unanswered, Unreadable, stage, yaml_answer
from bylaw.compile.naming import Rules, meaning, named_apart, used_in, with_names
from bylaw.compile.schema import listed, record
from bylaw.compile.sort import draft_text
from bylaw.compile.span import Draft
from bylaw.errors import BylawError
from bylaw.llm import Request
from bylaw.pack.rules import Rules as Book
from bylaw.policy.statement import Policy
from bylaw.review.case import CaseResult, run_cases
from bylaw.rule.rule import lint
from bylaw.rule.structure import Embedder, HashedNgrams, Likeness, cluster, rule_vagueness, vagueness
from bylaw.scan.written import dump

ITERATIONS = 5
_REFINE = Prompt("refine", yaml_answer)
_MERGE = Prompt("merge", yaml_answer)
_ALIKE = 0.5
"""Predicates with at least this similarity share an edge in the clustering graph."""
Stage = Literal["start", "refined", "pruned"]


class Step(Struct, frozen=True):
    """The result of one step, as shown in figures 4 to 6 of the ShieldAgent paper."""

    iteration: int
    stage: Stage
    rules: int
    predicates: int
    vagueness: float
    """The mean vagueness of all rules. A rule is as vague as its vaguest predicate (Eq. 3)."""
    judged: float | None
    """The mean of the model's vagueness ratings, from 0 to 10, or None if there are no ratings."""
    changed: int
    """The number of replaced rules, or of merged predicates and rules."""
    refused: int
    """The number of new forms or merges that were rejected because they did not load or a case failed."""


class Ruleset:
    """The rules of each policy. A predicate has the same meaning in all policies."""

    def __init__(self, bench: Bench, checks: Mapping[str, Check], embed: Embedder | None = None) -> None:
        self.bench = bench
        self.checks: dict[str, Check] = {}
        self._embed = embed or HashedNgrams()
        self._likeness = Likeness(self._embed)
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

    @property
    def predicates(self) -> dict[str, Any]:
        return {name: body for check in self.checks.values() for name, body in rules_of(check)["predicates"].items()}

    @property
    def book(self) -> Book:
        every = [rule for check in self.checks.values() for rule in rules_of(check)["rules"]]
        policies = [Policy(name, "rule", "") for name in self.checks]
        return self.bench.with_rules(policies, {"predicates": self.predicates, "rules": every}).book

    def vagueness(self) -> dict[str, float]:
        """Return the vagueness of each policy: that of its vaguest predicate, compared with predicates of the same
        type.
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
        """Return groups of predicates of the same type that are similar to each other or occur in the same rule."""
        found = [cluster(self.book.every, texts, threshold=_ALIKE, embed=self._embed) for texts in self._texts()]
        return [group for each in found for group in each.groups if len(group) > 1]

    def _texts(self) -> list[dict[str, str]]:
        every = self.book.predicates.items()
        return [{name: each.text for name, each in every if each.is_action is kind} for kind in (True, False)]

    def tried(self, check: Check, rules: Rules) -> tuple[list[Case], list[str]]:
        """Return a policy's cases for new rules, each with the rule that it tests, and a description of each failed
        case.
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
            faults: list[str] = []
            broken: list[str] = []
            for name, result in zip(names, results[place * len(names) :], strict=False):
                if not isinstance(result, CaseResult):
                    faults.append(fault_text(result, case))
                elif result.got.startswith("broken"):
                    broken.append(name)
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


class Refined(Struct, frozen=True):
    """The checks after refinement, with the result of each step."""

    checks: dict[str, Check]
    steps: tuple[Step, ...]
    judged: dict[str, float]
    """The model's vagueness ratings, keyed by the YAML text of the rule."""


class Reply(Struct, frozen=True):
    """A model's answer about one rule."""

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
    """Refine the rules of the checks: at most `budget` rules, in at most `rounds` rounds."""
    own = {name: check for name, check in checks.items() if check.rules is not None and not check.failed}
    if not own:
        return Refined(dict(checks), (), {})
    told = {draft.id: draft_text(draft) for draft in drafts}
    work = _Refinement(desk, Ruleset(bench, own, embed), told, general, budget)
    work.run(rounds)
    return Refined({**checks, **work.rules.checks}, tuple(work.judged_steps()), work.judged)


class _Refinement:
    def __init__(self, desk: Desk, rules: Ruleset, told: Mapping[str, str], general: str, budget: int) -> None:
        self.rules = rules
        self._desk = desk
        self._told = told
        self._general = general
        self._left = budget
        self._waiting = rules.vagueness()
        """The policies whose rules wait for refinement, each with its vagueness."""
        self._forms = {name: {dump(rules_of(check))} for name, check in rules.checks.items()}
        """All forms that each policy's rules have had. Returning to an earlier form is not a refinement."""
        self.judged: dict[str, float] = {}
        """The model's vagueness ratings, keyed by the rule's form."""
        self._replaced: dict[str, tuple[float | None, float]] = {}
        """For each policy, the vagueness of the replaced form: the model's rating, and the value of Eq. 3."""
        self._refused = 0
        self._steps: list[tuple[Step, list[str]]] = []
        """Each step, with the forms of the rules after the step."""

    def run(self, rounds: int) -> None:
        self._note(0, "start")
        for iteration in range(1, rounds + 1):
            refined, refused = self._refine_all()
            self._note(iteration, "refined", refined, refused)
            pruned = self._prune()
            self._note(iteration, "pruned", pruned, self._refused)
            if not refined and not pruned:
                break

    def _note(self, iteration: int, stage: Stage, changed: int = 0, refused: int = 0) -> None:
        rules = self.rules
        scores = rules.vagueness().values()
        mean = round(sum(scores) / len(scores), 4)
        step = Step(iteration, stage, len(rules.book.rules), len(rules.predicates), mean, None, changed, refused)
        self._steps.append((step, [dump(rules_of(check)) for check in rules.checks.values()]))

    def judged_steps(self) -> Iterator[Step]:
        """Yield the steps, each with the mean of the model's ratings for the rules' forms at that step."""
        for step, forms in self._steps:
            scores = [self.judged[form] for form in forms if form in self.judged]
            yield replace(step, judged=round(sum(scores) / len(scores), 2) if scores else None)

    def _refine_all(self) -> tuple[int, int]:
        """Refine the waiting rules, vaguest first. Return how many rules were refined and how many refinements were
        rejected.
        """
        refined = refused = missing = 0
        while self._waiting and self._left > missing:
            name = min(self._waiting, key=lambda each: (-self._waiting[each], each))
            del self._waiting[name]
            try:
                outcome = self._asked(name)
            except Unanswered:
                # Questions about different rules are independent, so all are asked together.
                missing += 1
                continue
            reply, check = outcome.made, self.rules.checks[name]
            if reply.vagueness is not None:
                self.judged[dump(rules_of(check))] = reply.vagueness
            complaint = outcome.complaints[0] if outcome.complaints else self._needless(name, reply)
            if complaint:
                text = f"{reply.why}: {complaint}" if reply.why else complaint
                question = Question("a rejected refinement", text, reply.rules)
                self.rules.checks[name] = replace(check, questions=(*check.questions, question))
                refused += 1
            elif reply.rules is not None:
                question = Question("a rule that was refined", reply.why, {"before": rules_of(check)})
                made = replace(check, rules=reply.rules, cases=reply.cases, questions=(*check.questions, question))
                self._replaced[name] = (reply.vagueness, self.rules.vagueness()[name])
                self.rules.put(made)
                self._forms[name].add(dump(rules_of(self.rules.checks[name])))
                self._waiting[name] = self.rules.vagueness()[name]
                self._left, refined = self._left - 1, refined + 1
        if missing:
            raise Unanswered
        return refined, refused

    def _needless(self, name: str, reply: Reply) -> str:
        """Return why a rule need not be refined again: its last refinement did not make it less vague. Else empty."""
        if reply.rules is None or name not in self._replaced:
            return ""
        before, measured = self._replaced[name]
        now = reply.vagueness
        if before is None or now is None:
            before, now = round(measured, 2), round(self.rules.vagueness()[name], 2)
        if now < before:
            return ""
        return f"the last refinement did not make the rule less vague ({before:g} before, {now:g} now)"

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
        if data.get("verifiable") is True:
            return Reply(vagueness=vague), []
        if data.get("verifiable") is not False or not isinstance(data.get("rules"), list):
            return Reply(vagueness=vague), ["`verifiable` must be true, or false with `predicates` and `rules`"]
        bodies = [record(each) for each in listed(data["rules"]) if isinstance(each, dict)]
        rules = [{"id": str(each.get("id")), "policy": check.policy, "formula": each.get("formula")} for each in bodies]
        if len(rules) == 1:
            rules = [{"id": check.policy, "formula": rules[0]["formula"]}]
        made: Rules = {"predicates": data.get("predicates") or {}, "rules": rules}
        if dump(made) in self._forms[check.policy]:
            return Reply(vagueness=vague), []
        cases, wrong = self.rules.tried(check, made)
        return Reply(made, tuple(cases), str(data.get("why", "")), vague), wrong

    def _prune(self) -> int:
        """Merge predicates with the same meaning, then drop rules that follow from another rule. Return how many were
        removed.

        The policies with changed rules wait for refinement again. `_refused` counts the merges that were rejected
        because a case would have failed.
        """
        self._refused = 0
        merged = self._merged(_doubles(self.rules))
        # Ask all questions before the first merge, so that no question depends on the answer to another.
        groups = self.rules.groups()
        answers = self._desk.each(groups, lambda group: self._desk.answer(_question(self.rules, group)))
        told = [pair for group, answer in zip(groups, answers, strict=True) for pair in _pairs(answer.text, group)]
        merged += self._merged(told)
        dropped = {policy: self._dropped(policy) for policy in list(self.rules.checks)}
        touched = {policy for each in merged for policy in each} | {name for name, gone in dropped.items() if gone}
        scores = self.rules.vagueness()
        self._waiting |= {name: scores[name] for name in touched}
        return len(merged) + sum(dropped.values())

    def _merged(self, pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
        """Replace the second predicate of each pair with the first, unless a rule would then fail its cases. Return,
        for each merge, the changed policies.
        """
        merged: list[set[str]] = []
        for keep, other in pairs:
            known = self.rules.predicates
            if keep not in known or other not in known:
                continue
            changed: dict[str, Rules] = {}
            for policy, check in self.rules.checks.items():
                own = rules_of(check)
                if other in own["predicates"]:
                    predicates = {name: body for name, body in own["predicates"].items() if name != other}
                    renamed = {other: keep}
                    rules = [{**each, "formula": with_names(str(each["formula"]), renamed)} for each in own["rules"]]
                    changed[policy] = {"predicates": predicates | {keep: known[keep]}, "rules": rules}
            if any(self.rules.tried(self.rules.checks[policy], made)[1] for policy, made in changed.items()):
                self._refused += 1
                continue
            for policy, made in changed.items():
                self.rules.put(replace(self.rules.checks[policy], rules=made))
            merged.append(set(changed))
        return merged

    def _dropped(self, policy: str) -> int:
        """Drop rules that follow from another rule of the same policy. Return how many were dropped."""
        check = self.rules.checks[policy]
        own = rules_of(check)
        if len(own["rules"]) < 2:
            return 0
        names = [str(each["id"]) for each in own["rules"]]
        needless = {
            each.rules[-1] if each.kind == "duplicate" else each.rules[0]
            for each in lint([rule for rule in self.rules.book.rules if rule.name in names])
            if each.kind in ("duplicate", "subsumed")
        } - {policy}
        kept = [each for each in own["rules"] if each["id"] not in needless]
        made: Rules = {"predicates": used_in((each["formula"] for each in kept), own["predicates"]), "rules": kept}
        cases, wrong = self.rules.tried(check, made)
        if not needless or wrong:
            return 0
        self.rules.put(replace(check, rules=made, cases=tuple(cases)))
        return len(needless)


def _question(rules: Ruleset, group: Sequence[str]) -> Request:
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
    """Yield the pairs of predicates that an answer declares to have the same meaning. An unreadable answer merges
    nothing.
    """
    try:
        merges = listed(yaml_answer(text).get("merges"))
    except Unreadable:
        return
    for body in map(record, merges):
        keep = str(body.get("keep"))
        others = [str(other) for other in listed(body.get("instead_of"))]
        yield from ((keep, other) for other in others if keep in group and other in group and other != keep)
