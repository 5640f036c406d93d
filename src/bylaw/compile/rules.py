"""Writes rules over conversations. Each policy about order or manner gets predicates and a formula.

The cases are written separately.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.bench import Bench, Case, cases_answer, fault_text
from bylaw.compile.check import UNANSWERED, Check, Question, rule_on, ruled, settled
from bylaw.compile.context import bound_tools_text, catalogue_text
from bylaw.compile.desk import Desk, Prompt, Unanswered, grouped, sent_back, stage, yaml_answer
from bylaw.compile.extract import Draft
from bylaw.compile.inputs import ADVICE, rule_complaint
from bylaw.compile.naming import digest_of, used_in
from bylaw.compile.sort import Sorted, draft_text
from bylaw.llm import Request
from bylaw.policy.statement import Policy
from bylaw.review.case import OPEN, CaseResult, run_cases
from bylaw.scan.written import dump

_TOGETHER = 8
REPAIRS = 2


class Written(Struct, frozen=True):
    predicates: dict[str, Any]
    formulas: dict[str, str]
    cannot: dict[str, str]

    def of(self, policy: str) -> dict[str, Any]:
        """Return `rules.yaml` with the rule for one policy and that policy's own predicate names."""
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
        answers = _ask(desk, bench, [_policy(draft) for draft in group], shown)
        for draft in group:
            settle = partial(_settle, desk, bench, draft, *answers, shown) if answers is not None else None
            check = settled(draft.id, settle) if settle is not None else None
            made = replace(check, shown=digests[draft.id]) if check is not None else None
            checks[draft.id] = made or Check(draft.id, failed=UNANSWERED)
    return checks


def _policy(draft: Draft) -> Policy:
    return Policy(draft.id, "rule", draft.definition)


@stage
def _ask(
    desk: Desk, bench: Bench, policies: Sequence[Policy], shown: Mapping[str, str]
) -> tuple[Mapping[str, list[Case]], Written]:
    cases = stage(desk.ask)(_CASES, shown, partial(_judged_cases, policies=policies), empty={})
    rules = desk.ask(_RULES, shown, partial(_judged_rules, policies=policies, bench=bench), empty=_NOTHING)
    if cases is None:
        raise Unanswered
    return cases.made, rules.made


@stage
def _settle(
    desk: Desk,
    bench: Bench,
    draft: Draft,
    given: Mapping[str, list[Case]],
    written: Written,
    shown: Mapping[str, str],
) -> Check:
    """Check a rule against its cases. A referee decides failed cases, and then the rule is repaired."""
    policy = _policy(draft)
    cases: Sequence[Case] = given.get(draft.id, [])
    if policy.id not in written.formulas:
        why = written.cannot.get(policy.id) or "no rule was written"
        return Check(policy.id, cases=tuple(cases), failed=why)
    questions: list[Question] = []
    cases = _decidable_cases(bench, policy, written.of(policy.id), cases, questions)
    disputed = [index for index, wrong in enumerate(_results(bench, policy, written.of(policy.id), cases)) if wrong]
    if disputed:
        rulings = rule_on(
            desk,
            [cases[index] for index in disputed],
            ("kept", "broken"),
            {"policy": draft_text(draft), "general": shown["general"], "things": "none", "now": "not given"},
        )
        kept: list[Case] = []
        for index, case in enumerate(cases):
            ruling = rulings.get(disputed.index(index)) if index in disputed else None
            kept += ruled(case, ruling, questions, shown=case) if index in disputed else [case]
        cases = kept
    request = _RULES.request({**shown, "policies": draft_text(draft)})
    own = written.of(policy.id)
    tried: list[tuple[dict[str, Any], list[str]]] = []
    why = ""
    for repairs in range(REPAIRS + 1):
        faults = bench.rule_faults([policy], own)
        results = [] if faults else _results(bench, policy, own, cases)
        wrong = faults or [each for each in results if each]
        if not wrong:
            own = _looked_at_again(desk, bench, policy, own, cases, request, questions)
            return Check(policy.id, rules=own, cases=tuple(cases), questions=tuple(questions), repairs=repairs)
        why = why or wrong[0]
        if results:
            tried.append((own, results))
        if repairs == REPAIRS:
            break
        # The question is about one policy, so it shows only that part of the first answer.
        request = sent_back(request, dump(own), wrong)
        judge = partial(_judged_rules, policies=[policy], bench=bench)
        made, _ = _RULES.judged(desk.answer(request).text, judge, _NOTHING)
        if policy.id not in made.formulas:
            why = made.cannot.get(policy.id, "the repair has no rule for it")
            break
        own = made.of(policy.id)
    return _nearest(policy, tried, cases, questions) or Check(
        policy.id,
        cases=tuple(cases),
        questions=tuple(questions),
        failed=f"no rule passes its cases: {why}",
        repairs=REPAIRS,
    )


def _looked_at_again(
    desk: Desk,
    bench: Bench,
    policy: Policy,
    own: dict[str, Any],
    cases: Sequence[Case],
    request: Request,
    questions: list[Question],
) -> dict[str, Any]:
    """Reconsider a rule that most recorded conversations break. If they also break the new rule, ask the owner."""
    told = rule_complaint(bench, policy, own)
    if not told:
        return own
    text = desk.attempt(lambda: desk.answer(sent_back(request, dump(own), [told])).text)
    judge = partial(_judged_rules, policies=[policy], bench=bench)
    made, _ = _RULES.judged(text or "", judge, _NOTHING)
    if policy.id in made.formulas:
        other = made.of(policy.id)
        if not bench.rule_faults([policy], other) and not any(_results(bench, policy, other, cases)):
            own, told = other, rule_complaint(bench, policy, other)
    if told:
        questions.append(Question("recorded conversations", told.partition(ADVICE)[0]))
    return own


def _nearest(
    policy: Policy,
    tried: Sequence[tuple[dict[str, Any], list[str]]],
    cases: Sequence[Case],
    questions: Sequence[Question],
) -> Check | None:
    """Return the rule that detects the most breaches, if its only fault is that it misses some. Report each missed
    breach.

    A rule is rejected if it reports a breach in a case that keeps the policy, or if it detects no breach at all.
    """
    for rules, results in sorted(tried, key=lambda each: sum(map(bool, each[1]))):
        passed = [case for case, wrong in zip(cases, results, strict=True) if not wrong]
        missed = [case for case, wrong in zip(cases, results, strict=True) if wrong]
        if {"kept", "broken"} <= {str(case["want"]) for case in passed} and all(
            case["want"] == "broken" for case in missed
        ):
            missed_questions = tuple(
                Question("a breach that the rule does not find", f"`{case.get('note', '')}`", case) for case in missed
            )
            made = (*questions, *missed_questions)
            return Check(policy.id, rules=rules, cases=tuple(passed), questions=made, repairs=REPAIRS)
    return None


def _decidable_cases(
    bench: Bench, policy: Policy, rules: Mapping[str, Any], cases: Sequence[Case], questions: list[Question]
) -> Sequence[Case]:
    """Return the cases without breaches that the predicates, as worded, cannot detect. No repair of the rule could make
    such cases pass.
    """
    if not cases or bench.rule_faults([policy], rules):
        return cases
    kept: list[Case] = []
    for result, case in zip(run_cases(bench.with_rules([policy], rules, cases)), cases, strict=True):
        if isinstance(result, CaseResult) and result.got == OPEN:
            text = f"`{case.get('note', '')}`: whether it breaks the rule, the words alone do not tell"
            questions.append(Question("a breach that stays open", text, case))
        else:
            kept.append(case)
    return kept if {"kept", "broken"} <= {str(case["want"]) for case in kept} else cases


def _results(bench: Bench, policy: Policy, rules: Mapping[str, Any], cases: Sequence[Case]) -> list[str]:
    if not cases:
        return []
    found: list[str] = []
    for result, case in zip(run_cases(bench.with_rules([policy], rules, cases)), cases, strict=True):
        if isinstance(result, CaseResult):
            shown = {"events": case.get("events")}
            found.append("" if result.passed else f"`{result.note}`: {shown}: wanted {result.want}, got {result.got}")
        else:
            found.append(fault_text(result, case))
    return found


def _judged_cases(listed: Sequence[Case], policies: Sequence[Policy]) -> tuple[dict[str, list[Case]], list[str]]:
    found: dict[str, list[Case]] = {policy.id: [] for policy in policies}
    complaints: list[str] = []
    for case in listed:
        if case.get("rule") not in found:
            complaints.append(f"case `{case.get('note', '')}`: `{case.get('rule')}` is not one of the policies")
        elif case.get("want") not in ("kept", "broken"):
            complaints.append(f"case `{case.get('note', '')}` wants neither kept nor broken")
        else:
            found[case["rule"]].append(case)
    for name, cases in found.items():
        if {"kept", "broken"} - {str(case["want"]) for case in cases}:
            complaints.append(f"`{name}` needs a case that keeps it and one that breaks it")
    return found, complaints


def _judged_rules(data: Mapping[str, Any], policies: Sequence[Policy], bench: Bench) -> tuple[Written, list[str]]:
    predicates = cast(dict[str, Any], data.get("predicates") or {})
    cannot = {str(name): str(why) for name, why in cast(dict[str, Any], data.get("cannot") or {}).items()}
    formulas: dict[str, str] = {}
    for body in cast(list[Any], data.get("rules") or []):
        record = cast(dict[str, Any], body) if isinstance(body, dict) else {}
        if {"id", "formula"} <= record.keys():
            formulas[str(record["id"])] = str(record["formula"])
    ids = {policy.id for policy in policies}
    complaints = [f"`{name}` is not one of the policies" for name in formulas.keys() - ids]
    complaints += [f"there is no rule for `{name}`" for name in sorted(ids - formulas.keys() - cannot.keys())]
    written = Written(predicates, {name: each for name, each in formulas.items() if name in ids}, cannot)
    for policy in policies:
        if policy.id in written.formulas:
            complaints += [f"`{policy.id}`: {fault}" for fault in bench.rule_faults([policy], written.of(policy.id))]
    return written, complaints
