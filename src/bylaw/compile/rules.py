"""Writes rules over conversations.

Each policy about order or manner of actions gets predicates and a formula. Its cases are written separately.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.bench import Bench, Case, cases_answer, fault_text
from bylaw.compile.check import Check, Question, arbitrated, cases_by_policy, settled
from bylaw.compile.context import bound_tools_text, catalogue_text
from bylaw.compile.desk import Desk, Prompt, Unanswered, grouped, sent_back, stage, yaml_answer
from bylaw.compile.inputs import ADVICE, rule_complaint
from bylaw.compile.naming import digest_of, used_in
from bylaw.compile.schema import listed, record, section
from bylaw.compile.sort import Sorted, draft_text
from bylaw.compile.span import Draft
from bylaw.llm import Request
from bylaw.policy.statement import Policy
from bylaw.review.case import OPEN, CaseResult, run_cases
from bylaw.scan.written import dump

_TOGETHER = 8
REPAIRS = 2
_WANTS = ("kept", "broken")


class Written(Struct, frozen=True):
    """The rules in an answer."""

    predicates: dict[str, Any]
    formulas: dict[str, str]
    """The formula of each policy."""
    cannot: dict[str, str]
    """Policies without a rule, with the reasons."""

    def of(self, policy: str) -> dict[str, Any]:
        """Return the text of `rules.yaml` with the rule for one policy, using the policy's own predicate names."""
        formula = self.formulas[policy]
        return {"predicates": used_in([formula], self.predicates), "rules": [{"id": policy, "formula": formula}]}


_CASES = Prompt("rule_cases", cases_answer, max_tokens=16_384)
_RULES = Prompt("rules", yaml_answer, max_tokens=8192)
_NOTHING = Written({}, {}, {})


def write_rules(
    desk: Desk,
    bench: Bench,
    drafts: Sequence[Draft],
    kinds: Mapping[str, Sorted],
    general: str,
    earlier: Mapping[str, Check],
) -> dict[str, Check]:
    """Return a check for every rule policy that has none. A check whose answers are still missing says so."""
    bound = [draft for draft in drafts if draft.id in kinds and kinds[draft.id].kind == "rule"]
    tools = bound_tools_text(bench.cards, bench.cards)
    digests = {each.id: digest_of(draft_text(replace(each, remark="")), tools) for each in bound}
    checks = {name: earlier[name] for name in digests if name in earlier and earlier[name].shown == digests[name]}
    for group in grouped([draft for draft in bound if draft.id not in checks], _TOGETHER):
        policies_shown = "\n\n".join(draft_text(draft) for draft in group)
        shown = {"general": general, "tools": catalogue_text(bench.cards, policies_shown), "policies": policies_shown}
        answers = _ask(desk, bench, [each.id for each in group], shown)
        for draft in group:
            settle = partial(_settle, _RuleTests(desk, bench, draft, shown), *answers) if answers is not None else None
            checks[draft.id] = settled(draft.id, digests[draft.id], settle)
    return checks


@stage
def _ask(
    desk: Desk, bench: Bench, policies: Sequence[str], shown: Mapping[str, str]
) -> tuple[Mapping[str, list[Case]], Written]:
    cases = stage(desk.ask)(_CASES, shown, partial(_judged_cases, policies=policies), empty={})
    rules = desk.ask(_RULES, shown, partial(_judged_rules, policies=policies, bench=bench), empty=_NOTHING)
    if cases is None:
        raise Unanswered
    return cases.made, rules.made


@stage
def _settle(tests: "_RuleTests", given: Mapping[str, list[Case]], written: Written) -> Check:
    """Check a rule against its cases. A referee decides the failed cases, then the rule is repaired."""
    name = tests.policy.id
    cases: Sequence[Case] = given.get(name, [])
    if name not in written.formulas:
        return Check(name, cases=tuple(cases), failed=written.cannot.get(name) or "no rule was written")
    questions: list[Question] = []
    own = written.of(name)
    cases = tests.arbitrated(own, tests.decidable(own, cases, questions), questions)
    request = tests.request
    tried: list[tuple[dict[str, Any], list[str]]] = []
    why = ""
    for repairs in range(REPAIRS + 1):
        faults = tests.faults(own)
        results = [] if faults else tests.results(own, cases)
        wrong = faults or [each for each in results if each]
        if not wrong:
            own = tests.tried_on_logs(own, cases, request, questions)
            return Check(name, rules=own, cases=tuple(cases), questions=tuple(questions), repairs=repairs)
        why = why or wrong[0]
        if results:
            tried.append((own, results))
        if repairs == REPAIRS:
            break
        request = sent_back(request, dump(own), wrong)
        made = tests.answer(request)
        if name not in made.formulas:
            why = made.cannot.get(name, "the repair has no rule for it")
            break
        own = made.of(name)
    failed = f"no rule passes its cases: {why}"
    return _nearest(name, tried, cases, questions) or Check(
        name, cases=tuple(cases), questions=tuple(questions), failed=failed, repairs=REPAIRS
    )


class _RuleTests:
    """Tries versions of one policy's rule on cases and recorded conversations."""

    def __init__(self, desk: Desk, bench: Bench, draft: Draft, shown: Mapping[str, str]) -> None:
        self._desk, self._bench = desk, bench
        self.policy = Policy(draft.id, "rule", draft.definition)
        self._shown = {"policy": draft_text(draft), "general": shown["general"], "things": "none", "now": "not given"}
        # The question is about one policy, so it shows only this policy's part of the first answer.
        self.request = _RULES.request({**shown, "policies": draft_text(draft)})

    def faults(self, rules: Mapping[str, Any]) -> list[str]:
        return self._bench.rule_faults([self.policy], rules)

    def answer(self, request: Request) -> Written:
        """Return the rule in the answer to a repair request. Raises Unanswered if there is no answer yet."""
        judge = partial(_judged_rules, policies=[self.policy.id], bench=self._bench)
        return _RULES.judged(self._desk.answer(request).text, judge, _NOTHING)[0]

    def _run(self, rules: Mapping[str, Any], cases: Sequence[Case]) -> list[Any]:
        return list(run_cases(self._bench.with_rules([self.policy], rules, cases))) if cases else []

    def results(self, rules: Mapping[str, Any], cases: Sequence[Case]) -> list[str]:
        """Describe, for each case, how the rule fails it. Empty if the case passes."""
        found: list[str] = []
        for result, case in zip(self._run(rules, cases), cases, strict=True):
            if isinstance(result, CaseResult):
                shown = {"events": case.get("events")}
                told = f"`{result.note}`: {shown}: wanted {result.want}, got {result.got}"
                found.append("" if result.passed else told)
            else:
                found.append(fault_text(result, case))
        return found

    def decidable(self, rules: Mapping[str, Any], cases: Sequence[Case], questions: list[Question]) -> Sequence[Case]:
        """Return the cases without the breaches that the rule's predicates leave undecided.

        No repair of the rule could make such cases pass.
        """
        if not cases or self.faults(rules):
            return cases
        kept: list[Case] = []
        for result, case in zip(self._run(rules, cases), cases, strict=True):
            if isinstance(result, CaseResult) and result.got == OPEN:
                text = f"`{case.get('note', '')}`: code cannot tell from the words whether this case breaks the rule"
                questions.append(Question("a possible breach that code cannot decide", text, case))
            else:
                kept.append(case)
        return kept if {*_WANTS} <= {str(case["want"]) for case in kept} else cases

    def arbitrated(self, rules: Mapping[str, Any], cases: Sequence[Case], questions: list[Question]) -> Sequence[Case]:
        """Return the cases after the referee has decided those that fail."""
        disputed = [index for index, wrong in enumerate(self.results(rules, cases)) if wrong]
        return arbitrated(self._desk, cases, disputed, _WANTS, self._shown, questions)[0]

    def tried_on_logs(
        self, own: dict[str, Any], cases: Sequence[Case], request: Request, questions: list[Question]
    ) -> dict[str, Any]:
        """Reconsider a rule that most recorded conversations break. If they also break the new rule, add a question for
        the owner.
        """
        told = rule_complaint(self._bench, self.policy, own)
        if not told:
            return own
        made = self.answer(sent_back(request, dump(own), [told]))
        if self.policy.id in made.formulas:
            other = made.of(self.policy.id)
            if not self.faults(other) and not any(self.results(other, cases)):
                own, told = other, rule_complaint(self._bench, self.policy, other)
        if told:
            questions.append(Question("recorded conversations", told.partition(ADVICE)[0]))
        return own


def _nearest(
    policy: str,
    tried: Sequence[tuple[dict[str, Any], list[str]]],
    cases: Sequence[Case],
    questions: Sequence[Question],
) -> Check | None:
    """Return a check with the rule that detects the most breaches, if missed breaches are its only failures.

    Each missed breach becomes a question. A rule is not used if it reports a breach in a case that keeps the policy, or
    if it detects no breach at all.
    """
    for rules, results in sorted(tried, key=lambda each: sum(map(bool, each[1]))):
        passed = [case for case, wrong in zip(cases, results, strict=True) if not wrong]
        missed = [case for case, wrong in zip(cases, results, strict=True) if wrong]
        if {*_WANTS} <= {str(case["want"]) for case in passed} and all(case["want"] == "broken" for case in missed):
            about = "a breach that the rule does not detect"
            told = (Question(about, f"`{case.get('note', '')}`", case) for case in missed)
            return Check(policy, rules=rules, cases=tuple(passed), questions=(*questions, *told), repairs=REPAIRS)
    return None


def _judged_cases(cases: Sequence[Case], policies: Sequence[str]) -> tuple[dict[str, list[Case]], list[str]]:
    found, complaints = cases_by_policy(cases, policies, "rule", _WANTS)
    lacking = [name for name, own in found.items() if {*_WANTS} - {str(case["want"]) for case in own}]
    return found, complaints + [f"`{name}` needs a case that keeps it and one that breaks it" for name in lacking]


def _judged_rules(data: Mapping[str, Any], policies: Sequence[str], bench: Bench) -> tuple[Written, list[str]]:
    cannot = {str(name): str(why) for name, why in section(data, "cannot").items()}
    rules = [body for each in listed(data.get("rules")) if {"id", "formula"} <= (body := record(each)).keys()]
    formulas = {str(body["id"]): str(body["formula"]) for body in rules}
    complaints = [f"`{name}` is not one of the policies" for name in formulas if name not in policies]
    complaints += [f"there is no rule for `{name}`" for name in sorted({*policies} - formulas.keys() - cannot.keys())]
    kept = {name: formula for name, formula in formulas.items() if name in policies}
    written = Written(section(data, "predicates"), kept, cannot)
    for name in (each for each in policies if each in kept):
        faults = bench.rule_faults([Policy(name, "rule", "")], written.of(name))
        complaints += [f"`{name}`: {fault}" for fault in faults]
    return written, complaints
