"""Writes guards. Cases and code are written from the sentences, independently of each other, and then compared.

Two versions of the code and one set of cases are three interpretations of a policy. If these differ, a referee
interprets the sentences without seeing the code or the expected outcomes. Code that fails a case is repaired a few
times. If it still fails, the policy gets no guard.

If a sentence states a number that the code does not use, the reviewer gets a hint. A guard that uses a different
number, such as 60 days instead of 30, is wrong. The exception is a guard that a case shows to apply the stated number.
"""

import ast
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.bench import Bench, Case, cases_answer, fault_text, told_whole
from bylaw.compile.check import Check, Question, arbitrated, cases_by_policy, rule_on, settled, without_names
from bylaw.compile.context import bound_tools_text, code_notes, other_tools_text, things_text
from bylaw.compile.desk import FAULTY, Desk, Prompt, Unanswered, Unreadable, grouped, stage
from bylaw.compile.inputs import ADVICE, WORLDS, Gap, Trial, complaint, gaps, tried, variants
from bylaw.compile.naming import digest_of, function_name
from bylaw.compile.related import related_text
from bylaw.compile.sort import Sorted, draft_text
from bylaw.compile.span import Draft
from bylaw.guard import Guard
from bylaw.llm.chat import unfenced
from bylaw.policy.statement import Policy
from bylaw.review.case import CaseResult
from bylaw.review.check import RECORDED_CALLS
from bylaw.text.python import parse_python, text_of

_CLAUSE = re.compile(r"^\s*\d+(\.\d+)+\.?\s")
_NUMBER = re.compile(r"(?<![\w.])\$?(\d+(?:,\d{3})*(?:\.\d+)?)(?!\w)")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")


def unused_numbers(draft: Draft, code: str) -> list[str]:
    """Return, in digits, the policy's numbers that are missing from the code.

    A quoted sentence may state several policies or be part of a table. So a number is checked only if the policy's
    definition or description repeats it.
    """
    missing = _numbers(draft.definition, draft.description) - _used(code)
    named = (found for quote in draft.quotes for found in _NUMBER.findall(_CLAUSE.sub("", quote)))
    return list(dict.fromkeys(each for each in named if _decimal(each) in missing))


def replaced_numbers(draft: Draft, general: str, code: str, cases: str) -> tuple[list[str], list[str]]:
    """Return two lists: the policy's numbers that neither code nor cases use, and the numbers that the code uses
    instead.

    Both lists are empty unless both would have entries. A number in the code does not count as a replacement if the
    policy or the general advice contains it, if it is 0, 1 or 2, or if it expresses a missing number in other units (7
    days for a week, 0.1 for 10%).
    """
    tried = _numbers(cases)
    missing = [each for each in unused_numbers(draft, code) if _decimal(each) not in tried]
    named = _numbers(*draft.quotes, draft.definition, draft.description, draft.refers, draft.remark, general)
    found = [
        str(each)
        for each in sorted(_used(code) - named)
        if each > 2 and not any(_is_another_unit(each, _decimal(other)) for other in missing)
    ]
    return (missing, found) if missing and found else ([], [])


_UNITS = (7, 12, 14, 24, 30, 31, 52, 60, 100, 365, 366, 1000, 1440, 3600)


def _is_another_unit(one: Decimal, other: Decimal) -> bool:
    pairs = [(one, other), (other, one)]
    return any(bottom and abs(top / bottom / unit - 1) < Decimal("0.03") for top, bottom in pairs for unit in _UNITS)


def _used(code: str) -> set[Decimal]:
    nodes = (node for node in ast.walk(parse_python(code)) if isinstance(node, ast.Constant))
    return _numbers(*(str(node.value) for node in nodes if isinstance(node.value, int | float | str)))


def _numbers(*texts: str) -> set[Decimal]:
    return {_decimal(found) for text in texts for found in (*_NUMBER.findall(text), *_DIGITS.findall(text))}


def _decimal(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))


_LACKS = re.compile(r"\d+: the call has no argument .*")
"""Matches the error of a guard that reads an argument which some calls do not have."""
_CANNOT = re.compile(r"^#\s*cannot\s+([\w-]+)\s*:\s*(.*)$", re.MULTILINE)


class Written(Struct, frozen=True):
    """The guards in an answer, keyed by policy."""

    codes: dict[str, str]
    cannot: dict[str, str]
    """Policies that the answer calls uncheckable, with the reasons."""


def functions_of(source: str) -> dict[str, str]:
    """Return the functions in a Python text by name. Raises SyntaxError if it is not Python."""
    try:
        nodes = parse_python(source).body
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error)) from None
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return {node.name: f"{text_of(source, node)}\n" for node in functions}


def _listed_cases(text: str) -> tuple[list[Case], list[str]]:
    """Return the cases in an answer, and its errors. If the answer is truncated, return only the complete cases."""
    try:
        return cases_answer(text), []
    except Unreadable as error:
        whole, cut, _ = unfenced(text).rpartition("\n- ")
        cases: list[Case] = []
        with suppress(Unreadable):
            cases = cases_answer(whole) if cut else []
        return cases, [str(error)]


_GUARDS = Prompt("guards", unfenced, max_tokens=8192)
_REPAIR = Prompt("repair", unfenced)
_CASES = Prompt("cases", _listed_cases, max_tokens=16_384)
"""The token limit is high because five policies with many arguments need long cases."""
_WANTS = ("permit", "deny")


def _judged_cases(
    answer: tuple[Sequence[Case], Sequence[str]], policies: Sequence[Policy], bench: Bench, uncheckable: Container[str]
) -> tuple[dict[str, list[Case]], list[str]]:
    """Return the cases in an answer that can run, keyed by policy, and the answer's errors. `uncheckable` policies need
    no cases.
    """
    given, complaints = cases_by_policy(answer[0], [policy.id for policy in policies], "policy", _WANTS)
    complaints = [*answer[1], *complaints]
    found: dict[str, list[Case]] = {}
    for policy in policies:
        faults = [(case, bench.misfits(policy, [case])) for case in given[policy.id]]
        complaints += [fault for _, wrong in faults for fault in wrong]
        found[policy.id] = [case for case, wrong in faults if not wrong]
        if policy.id not in uncheckable and {*_WANTS} - {str(case["want"]) for case in found[policy.id]}:
            complaints.append(f"`{policy.id}` needs a case that permits and one that denies")
    return found, complaints


def _judged_guards(source: str, policies: Sequence[Policy], bench: Bench) -> tuple[Written, list[str]]:
    cannot = {match[1].replace("_", "-"): match[2].strip() for match in _CANNOT.finditer(source)}
    try:
        functions = functions_of(source)
    except SyntaxError as error:
        return Written({}, cannot), [f"line {error.lineno}: not Python: {error.msg}"]
    names = {function_name(policy.id): policy for policy in policies}
    complaints = [f"`{name}` is the guard of none of the policies" for name in functions if name not in names]
    codes: dict[str, str] = {}
    for name, policy in names.items():
        if name in functions:
            codes[policy.id] = functions[name]
            complaints += [f"`{name}`, {fault}" for fault in bench.guard(policy, functions[name])[1]]
        elif policy.id not in cannot:
            complaints.append(f"there is no function `{name}`")
    return Written(codes, cannot), complaints


class PolicyBrief:
    """A policy, with all the information that questions about the policy show."""

    def __init__(
        self, bench: Bench, draft: Draft, tools: Sequence[str], general: str, beside: Sequence[Draft] = ()
    ) -> None:
        """`beside` contains the related policies."""
        self._bench, self._beside = bench, beside
        self.draft, self.general = draft, general
        self.policy = Policy(draft.id, "guard", draft.definition, tuple(tools))
        self.things = things_text(bench.things, bench.cards, tools, bench.request, draft_text(draft))

    def text(self, group: Container[str] = ()) -> str:
        """Describe the policy in words, together with related policies outside `group`."""
        return self._bound(self.draft) + related_text([each for each in self._beside if each.id not in group])

    def _bound(self, draft: Draft) -> str:
        return f"{draft_text(draft)}\n  Binds: {', '.join(self.policy.tools)}"

    @property
    def digest(self) -> str:
        """A digest that changes only if the information about this policy changes.

        The owner's edits of entities are left out, because such an edit does not require new questions.
        """
        bench, tools = self._bench, self.policy.tools
        things = things_text(bench.described, bench.cards, tools, {}, draft_text(self.draft)).splitlines()
        bound = self._bound(replace(self.draft, remark=""))
        return digest_of(bound, bound_tools_text(bench.cards, tools), *things, bench.now)

    @property
    def shown(self) -> dict[str, str]:
        """The template values for the referee's question."""
        return {"policy": self.text(), "general": self.general, "things": self.things, "now": self._bench.now}

    def is_settled(self, earlier: Mapping[str, Check], edited: Container[str]) -> bool:
        """Whether an earlier check was made from exactly this brief, and either still loads or has been edited by the
        owner.
        """
        check = earlier.get(self.draft.id)
        if check is None or check.shown != self.digest:
            return False
        return self.draft.id in edited or not check.code or self._bench.guard(self.policy, check.code)[0] is not None


TOGETHER = 5
"""The maximum number of policies per question."""
REPAIRS = 3
_WALKED = 8
"""The maximum number of additional situations per policy that the referee sees."""
_DIVIDING = 3
"""The maximum number of generated inputs per policy that the referee sees."""


def write_guards(
    desk: Desk,
    bench: Bench,
    drafts: Sequence[Draft],
    kinds: Mapping[str, Sorted],
    general: str,
    earlier: Mapping[str, Check],
    beside: Mapping[str, tuple[Draft, ...]],
    edited: Container[str] = (),
) -> dict[str, Check]:
    """Return a check for every guard policy that has none. A check whose answers are still missing says so."""
    briefs = [
        PolicyBrief(bench, draft, kinds[draft.id].tools, general, beside.get(draft.id, ()))
        for draft in drafts
        if draft.id in kinds and kinds[draft.id].kind == "guard"
    ]
    checks = {each.draft.id: earlier[each.draft.id] for each in briefs if each.is_settled(earlier, edited)}
    for group in grouped([each for each in briefs if each.draft.id not in checks], TOGETHER):
        answers = _ask(desk, bench, group, general)
        for brief in group:
            settle = partial(_settle, _GuardTests(desk, bench, brief), *answers) if answers is not None else None
            checks[brief.draft.id] = settled(brief.draft.id, brief.digest, settle)
    return checks


@stage
def _ask(
    desk: Desk, bench: Bench, group: Sequence[PolicyBrief], general: str
) -> tuple[Mapping[str, list[Case]], Sequence[Written], Sequence[str]]:
    """Return the cases of some policies, two versions of the code, and the reasons for rejecting a version."""
    policies = [each.policy for each in group]
    tools = [tool for policy in policies for tool in policy.tools]
    sentences = "\n\n".join(draft_text(each.draft) for each in group)
    shown = {
        "general": general,
        "tools": bound_tools_text(bench.cards, tools),
        "policies": "\n\n".join(each.text([one.id for one in policies]) for each in group),
        "others": other_tools_text(bench.cards, tools, sentences),
        "things": things_text(bench.things, bench.cards, tools, bench.request, sentences),
    }
    notes = code_notes(bench.things, bench.cards, tools, f"{general}\n{shown['policies']}")
    for_code = shown | {"tools": shown["tools"] + notes}
    judge = partial(_judged_guards, policies=policies, bench=bench)
    outcomes = [stage(desk.ask)(_GUARDS, for_code, judge, empty=Written({}, {}), attempt=n) for n in (1, 2)]
    codes = [each for each in outcomes if each is not None]
    written = [each.made for each in codes]
    # If every version calls a policy uncheckable, the policy needs no cases.
    uncheckable = {each.id for each in policies if written and all(each.id in one.cannot for one in written)}
    needed = partial(_judged_cases, policies=policies, bench=bench, uncheckable=uncheckable)
    cases = desk.ask(_CASES, {**shown, "now": bench.now}, needed, empty={})
    if len(codes) < len(outcomes):
        raise Unanswered
    refusals = [complaint for each in codes for complaint in each.complaints if complaint.startswith(FAULTY)]
    return cases.made, written, refusals


@stage
def _settle(
    tests: "_GuardTests", given: Mapping[str, list[Case]], written: Sequence[Written], refusals: Sequence[str]
) -> Check:
    """Compare the two versions of a guard with each other and with the cases, then repair the better version."""
    brief = tests.brief
    name = brief.draft.id
    cases = given.get(name, [])
    codes = [each.codes[name] for each in written if name in each.codes]
    cannot = "; ".join(dict.fromkeys(each.cannot[name] for each in written if name in each.cannot))
    if not codes:
        why = ": ".join(("no guard was written", *refusals[:1]))
        return Check(name, cases=tuple(cases), failed=cannot or why)
    sound = [code for code in codes if tests.guard(code) is not None]
    trials = tests.trials(*sound)
    divided = [trial for trial in trials if len(set(trial.outcomes)) > 1]
    questions: list[Question] = []
    cases = tests.arbitrated(cases, sound, divided, questions)
    code, complaints = min(
        ((code, tests.complaints(code, cases)) for code in codes),
        key=lambda tried: (len(tried[1]), *tests.thrift(tried[0])),
    )
    code, complaints, repairs = tests.mended(code, complaints, cases)
    if not complaints:
        cases = [*cases, *tests.walked(code, cases, questions)]
        code, complaints, more = tests.mended(code, tests.complaints(code, cases), cases)
        repairs += more
    if not complaints:
        code, more = tests.tried_on_logs(code, cases, questions)
        repairs += more
    if cannot:
        questions.append(Question("one of two generated versions says that the policy cannot be checked", cannot))
    elif len(sound) < len(written):
        text = "the second generated version did not load, so the two versions could not be compared"
        questions.append(Question("only one generated version", text))
    if complaints:
        failed = f"no guard passes its cases after {repairs} repairs: {complaints[0]}"
        return Check(name, cases=tuple(cases), questions=tuple(questions), failed=failed, repairs=repairs)
    if missing := unused_numbers(brief.draft, code):
        text = f"the sentences name {', '.join(missing)}, which the guard does not use"
        questions.append(Question("numbers in the sentences", text))
    return Check(
        name,
        code,
        cases=tuple(told_whole(tests.loaded(code), cases)),
        questions=tuple(questions),
        repairs=repairs,
        generated=len(trials),
        divided=len(divided),
    )


class _GuardTests:
    """Tries versions of one policy's guard on cases, generated calls and recorded calls."""

    def __init__(self, desk: Desk, bench: Bench, brief: PolicyBrief) -> None:
        self._desk, self._bench, self.brief = desk, bench, brief
        self._policy = brief.policy

    def guard(self, code: str) -> Guard | None:
        return self._bench.guard(self._policy, code)[0]

    def loaded(self, code: str) -> Guard:
        """Return the guard of code that is known to load."""
        guard = self.guard(code)
        assert guard is not None
        return guard

    def trials(self, *codes: str) -> list[Trial]:
        """Return the results of the guards on the same generated calls. Empty if there are no guards."""
        bench, policy = self._bench, self._policy

        def make() -> list[Trial]:
            tools = [bench.base.schema.tools[tool] for tool in policy.tools]
            guards, now = [self.loaded(code) for code in codes], datetime.fromisoformat(bench.now)
            return tried(policy.id, guards, codes, tools, now, bench.inside, bench.plausible) if codes else []

        return bench.once((policy.id, policy.tools, codes), make)

    def thrift(self, code: str) -> tuple[bool, int]:
        """Return a sort key for equivalent guards. Guards that do not search come first, then guards that read fewer
        facts.

        A guard that searches can never permit a call on the basis of look-ups alone.
        """
        guard = self.guard(code)
        trials = self.trials(code) if guard is not None else []
        facts = sum(len(fields or ()) for trial in trials for fields in trial.case["facts"].values())
        return guard is not None and guard.searches, facts

    def _results(self, code: str, cases: Sequence[Case]) -> list[str]:
        """Return, for each case that fails, the guard's result. Empty for a case that passes."""
        results = self._bench.run(self._policy, self.loaded(code), cases) if cases else ()
        return [
            ("" if each.passed else each.got) if isinstance(each, CaseResult) else fault_text(each) for each in results
        ]

    def _can_run(self, case: Case) -> bool:
        return not self._bench.misfits(self._policy, [{"note": "generated", **case, "want": "deny"}])

    def arbitrated(
        self, cases: Sequence[Case], codes: Sequence[str], divided: Sequence[Trial], questions: list[Question]
    ) -> list[Case]:
        """Return the cases after the referee has decided failed cases, and inputs for which two versions differ."""
        failed = {number for code in codes for number, got in enumerate(self._results(code, cases)) if got}
        apart: dict[tuple[str, ...], Trial] = {}
        for trial in _shortest_first(each for each in divided if not each.is_broken):
            said = (*trial.outcomes, *trial.because)
            if said not in apart and self._can_run(trial.case):
                apart[said] = trial
        chosen = list(apart.values())[:_DIVIDING]
        situations = [trial.case for trial in chosen]
        kept, rulings = arbitrated(self._desk, cases, failed, _WANTS, self.brief.shown, questions, situations)
        for trial, ruling in zip(chosen, rulings, strict=True):
            said, shown = " and ".join(trial.outcomes), without_names(trial.case)
            if ruling.want == "unclear":
                text = f"the versions say {said}; the answer is undecided, because {ruling.why}"
                questions.append(Question("two generated versions disagree", text, shown))
                continue
            text = f"the versions said {said}; the referee decided {ruling.want}: {ruling.why}"
            questions.append(Question("two generated versions disagreed", text, shown))
            kept.append({"note": f"two generated versions disagreed: {ruling.why}", **trial.case, "want": ruling.want})
        return kept

    def walked(self, code: str, cases: Sequence[Case], questions: list[Question]) -> list[Case]:
        """Return cases for enumeration values and bounds that no existing case covers. Undecided ones become
        questions.
        """
        found = self._bench.once((self._policy.id, code, repr(cases)), lambda: self._gaps(code, cases))
        rulings = rule_on(self._desk, [gap.case for gap in found], _WANTS, self.brief.shown)
        made: list[Case] = []
        for gap, ruling in zip(found, rulings, strict=True):
            if ruling.want == "unclear":
                text = f"{gap.about}: the guard says {gap.outcome}; {ruling.why}"
                questions.append(Question("the document does not say", text, without_names(gap.case)))
            else:
                made.append({"note": f"{gap.about}: {ruling.why}", **gap.case, "want": ruling.want})
        return made

    def _gaps(self, code: str, cases: Sequence[Case]) -> list[Gap]:
        found = gaps(self._bench, self.trials(code), cases, code)
        for bound, other in variants(code):
            if self.guard(other) is None or any(self._results(other, cases)):
                continue
            divided = [each for each in self.trials(code, other) if len(set(each.outcomes)) > 1 and not each.is_broken]
            found += [
                Gap(f"at the bound of `{bound}`", each.case, each.outcomes[0]) for each in _shortest_first(divided)[:1]
            ]
        unlike: dict[str, Gap] = {}
        for gap in filter(lambda gap: self._can_run(gap.case), found):
            unlike.setdefault(repr(gap.case), gap)
        return list(unlike.values())[:_WALKED]

    def mended(self, code: str, complaints: list[str], cases: Sequence[Case]) -> tuple[str, list[str], int]:
        """Repair the code. Return the code, the remaining errors and the number of repairs."""
        repairs = 0
        while complaints and repairs < REPAIRS:
            code = self._repaired(code, complaints)
            complaints = self.complaints(code, cases)
            repairs += 1
        return code, complaints, repairs

    def _repaired(self, code: str, complaints: Sequence[str]) -> str:
        bench, brief, tools = self._bench, self.brief, self._policy.tools
        sentences = f"{brief.general}\n{brief.text()}"
        shown = {
            "general": brief.general,
            "tools": bound_tools_text(bench.cards, tools) + code_notes(bench.things, bench.cards, tools, sentences),
            "others": other_tools_text(bench.cards, tools, brief.text()),
            "things": brief.things,
            "policy": brief.text(),
            "code": code,
            "complaints": "\n".join(f"- {each}" for each in complaints),
        }
        text = unfenced(self._desk.answer(_REPAIR.request(shown)).text)
        with suppress(SyntaxError):
            return functions_of(text).get(function_name(self._policy.id), text)
        return text

    def tried_on_logs(self, code: str, cases: Sequence[Case], questions: list[Question]) -> tuple[str, int]:
        """Reconsider a guard that behaves oddly on recorded calls. Return the guard and the number of repairs.

        A new version must still pass the cases. For oddities that remain, a question for the owner is added.
        """
        told = self._of_logs(code)
        if not told:
            return code, 0
        other = self._repaired(code, [told])
        is_sound = other.strip() != code.strip() and not self.complaints(other, cases)
        kept = other if is_sound else code
        if still := self._of_logs(kept):
            questions.append(Question(RECORDED_CALLS, still.partition(ADVICE)[0]))
        return kept, int(is_sound)

    def _of_logs(self, code: str) -> str:
        return self._bench.once(
            (self._policy, code, "logged"), lambda: complaint(self._bench, self._policy, self.loaded(code))
        )

    def complaints(self, code: str, cases: Sequence[Case]) -> list[str]:
        """Return the errors of a guard: load errors, wrong numbers, failed cases and failures on generated calls."""
        guard, wrong = self._bench.guard(self._policy, code)
        if guard is None:
            return wrong
        missing, instead = replaced_numbers(self.brief.draft, self.brief.general, code, str(cases))
        if missing:
            wrong.append(
                f"the sentences name {', '.join(missing)}, which it does not use; it uses {', '.join(instead)}, which"
                " they do not name"
            )
        results = self._results(code, cases)
        for case, got in zip(cases, results, strict=True):
            if got:
                shown = {name: part for name, part in case.items() if name in ("call", "facts", "done", "now")}
                wrong.append(f"`{case.get('note', '')}`: {shown}: wanted {case.get('want')}, got {got}")
        trials = self.trials(code)
        wrong += _failures(trials)
        outcomes = {str(case.get("want")) for case, got in zip(cases, results, strict=True) if not got}
        outcomes |= {trial.outcomes[0] for trial in trials} if outcomes < {*_WANTS} else set()
        if "deny" not in outcomes:
            wrong.append(f"it denies no case and none of {WORLDS} generated calls, so it is no guard")
        if "permit" not in outcomes:
            wrong.append(f"it permits no case and none of {WORLDS} generated calls")
        return wrong


def _shortest_first(trials: Iterable[Trial]) -> list[Trial]:
    return sorted(trials, key=lambda trial: len(str(trial.case)))


def _failures(trials: Sequence[Trial]) -> list[str]:
    """Return a complaint about generated calls on which the guard fails, if the cause is clear.

    The cause is clear if a call lacks an optional argument, or if a field is None in every failing call.
    """
    failed = [each for each in trials if each.outcomes[0] == "failed"]
    if lacking := next(filter(None, (_LACKS.search(each.because[0]) for each in failed)), None):
        return [f"it fails on calls without an argument that need not be given: line {lacking[0]}"]
    empty = [_empty_fields(each.case["facts"]) for each in failed]
    if not failed or not all(empty):
        return []
    names = sorted(set[str].intersection(*empty) or empty[0])
    return [f"it fails where {' or '.join(f'`{name}`' for name in names)} is `None`: {failed[0].because[0]}"]


def _empty_fields(facts: Mapping[str, Mapping[str, Any] | None]) -> set[str]:
    return {
        f"{thing.partition('[')[0]}.{name}"
        for thing, fields in facts.items()
        for name, value in (fields or {}).items()
        if value is None
    }
