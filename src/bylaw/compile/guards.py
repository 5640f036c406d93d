"""Writes guards. Cases and code are written from the sentences, independently of each other, and then compared.

Two versions of the code and one set of cases are three readings of a policy. If they differ, a referee interprets the
sentences without seeing any of them. Code that fails a case is repaired a few times. If it still fails, the policy gets
no guard.

If a sentence states a number that the code does not use, the reviewer gets a hint. A guard that uses a different
number, such as 60 days instead of 30, is wrong. The exception is a guard that a case shows to apply the stated number.
"""

import ast
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.bench import Bench, Case, cases_answer, fault_text, told_whole
from bylaw.compile.check import UNANSWERED, Check, Question, rule_on, ruled, settled
from bylaw.compile.context import bound_tools_text, code_notes, other_tools_text, things_text
from bylaw.compile.desk import FAULTY, Desk, Prompt, Unanswered, Unreadable, grouped, render, stage
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

    A sentence may state several policies or be part of a table. A number is therefore checked only if the definition or
    description repeats it.
    """
    elsewhere = _used(code)
    own = _numbers(draft.definition, draft.description)
    named = (found for quote in draft.quotes for found in _NUMBER.findall(_CLAUSE.sub("", quote)))
    return list(dict.fromkeys(each for each in named if _decimal(each) in own - elsewhere))


def replaced_numbers(draft: Draft, general: str, code: str, cases: str) -> tuple[list[str], list[str]]:
    """Return the policy's numbers that neither code nor cases use, and the numbers that the code uses instead.

    If one of the two lists would be empty, both are. A number does not count as a replacement if the policy or the
    general advice contains it, if it is 0, 1 or 2, or if it states the same in other units (a week and 7 days, 10% and
    0.1).
    """
    tried = {_decimal(found) for found in _NUMBER.findall(cases)}
    missing = [each for each in unused_numbers(draft, code) if _decimal(each) not in tried]
    named = _numbers(*draft.quotes, draft.definition, draft.description, draft.refers, draft.remark, general)
    found = [
        each
        for each in sorted(_used(code) - named)
        if each > _SMALL and not any(_is_another_unit(each, _decimal(other)) for other in missing)
    ]
    return (missing, [str(each) for each in found]) if missing and found else ([], [])


_SMALL = 2
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
"""The error raised by a guard that reads an argument that some calls lack."""
_CANNOT = re.compile(r"^#\s*cannot\s+([\w-]+)\s*:\s*(.*)$", re.MULTILINE)


class Written(Struct, frozen=True):
    codes: dict[str, str]
    cannot: dict[str, str]
    """Policies that an answer calls uncheckable, with the reasons."""


def one_function(text: str, name: str) -> str:
    """Return the named function from an answer, or the whole answer if the function is missing."""
    try:
        return functions_of(text).get(name, text)
    except SyntaxError:
        return text


def read_given_cases(
    answer: tuple[Sequence[Case], Sequence[str]], policies: Sequence[Policy], bench: Bench, uncheckable: Container[str]
) -> tuple[dict[str, list[Case]], list[str]]:
    """Return the cases in an answer, keyed by policy, and the answer's faults. `uncheckable` policies need no cases."""
    listed, complaints = answer[0], [*answer[1]]
    found: dict[str, list[Case]] = {policy.id: [] for policy in policies}
    for case in listed:
        policy = next((each for each in policies if each.id == case.get("policy")), None)
        if policy is None:
            complaints.append(f"case `{case.get('note', '')}`: `{case.get('policy')}` is not one of the policies")
            continue
        wrong = (
            bench.misfits(policy, [case])
            if case.get("want") in ("permit", "deny")
            else [f"case `{case.get('note', '')}` wants neither permit nor deny"]
        )
        complaints += wrong
        if not wrong:
            found[policy.id].append(case)
    for name, cases in found.items():
        if name not in uncheckable and {"permit", "deny"} - {str(case["want"]) for case in cases}:
            complaints.append(f"`{name}` needs a case that permits and one that denies")
    return found, complaints


def _listed_cases(text: str) -> tuple[list[Case], list[str]]:
    """Return the cases in an answer. If the answer is truncated, return only complete cases."""
    try:
        return cases_answer(text), []
    except Unreadable as error:
        complaints = [str(error)]
    whole, cut, _ = unfenced(text).rpartition("\n- ")
    with suppress(Unreadable):
        return (cases_answer(whole) if cut else []), complaints
    return [], complaints


_CASES = Prompt("cases", _listed_cases, max_tokens=16_384)
"""The limit is high because cases for five policies with many arguments are long."""


def read_guards(source: str, policies: Sequence[Policy], bench: Bench) -> tuple[Written, list[str]]:
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


def functions_of(source: str) -> dict[str, str]:
    try:
        nodes = parse_python(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise error if isinstance(error, SyntaxError) else SyntaxError(str(error)) from None
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return {node.name: f"{text_of(source, node)}\n" for node in functions}


_GUARDS = Prompt("guards", unfenced, max_tokens=8192)


class PolicyBrief(Struct, frozen=True):
    """A policy, with everything that questions about it show."""

    draft: Draft
    policy: Policy
    general: str
    tools: str
    things: str
    now: str
    beside: tuple[Draft, ...] = ()
    """Related policies."""
    described: str = ""
    """The entities before the owner's edits. An edit is no reason to ask the questions again."""

    def text(self, group: Sequence[str] = ()) -> str:
        """Describe the policy in words, together with related policies outside `group`."""
        others = [each for each in self.beside if each.id not in group]
        return _bound(self.draft, self.policy.tools) + related_text(others)

    @property
    def digest(self) -> str:
        """A digest that changes only if the information about this policy changes."""
        things = [line for line in self.described.splitlines() if not line.startswith("Request[")]
        return digest_of(_bound(replace(self.draft, remark=""), self.policy.tools), self.tools, *things, self.now)

    @property
    def shown(self) -> dict[str, str]:
        return {"policy": self.text(), "general": self.general, "things": self.things, "now": self.now}

    def code_notes(self, bench: Bench) -> str:
        sentences = f"{self.general}\n{self.text()}"
        return self.tools + code_notes(bench.things, bench.cards, self.policy.tools, sentences)

    def is_settled(self, bench: Bench, earlier: Mapping[str, Check], edited: Container[str]) -> bool:
        """Whether an earlier check was made from exactly this brief and still loads, or was edited later."""
        check = earlier.get(self.draft.id)
        if check is None or check.shown != self.digest:
            return False
        return self.draft.id in edited or not check.code or bench.guard(self.policy, check.code)[0] is not None


def brief_of(bench: Bench, draft: Draft, tools: Sequence[str], general: str, beside: tuple[Draft, ...]) -> PolicyBrief:
    policy = Policy(draft.id, "guard", draft.definition, tuple(tools))
    sentences = draft_text(draft)
    things = things_text(bench.things, bench.cards, tools, bench.request, sentences)
    described = things_text(bench.described, bench.cards, tools, {}, sentences)
    bound = bound_tools_text(bench.cards, tools)
    return PolicyBrief(draft, policy, general, bound, things, bench.now, beside, described)


def _bound(draft: Draft, tools: Sequence[str]) -> str:
    return f"{draft_text(draft)}\n  Binds: {', '.join(tools)}"


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
    bound = [
        brief_of(bench, draft, kinds[draft.id].tools, general, beside.get(draft.id, ()))
        for draft in drafts
        if draft.id in kinds and kinds[draft.id].kind == "guard"
    ]
    checks = {each.draft.id: earlier[each.draft.id] for each in bound if each.is_settled(bench, earlier, edited)}
    for group in grouped([each for each in bound if each.draft.id not in checks], TOGETHER):
        answers = _ask(desk, bench, group, general)
        for brief in group:
            settle = partial(_settle, desk, bench, brief, *answers) if answers is not None else None
            check = settled(brief.draft.id, settle) if settle is not None else None
            made = replace(check, shown=brief.digest) if check is not None else None
            checks[brief.draft.id] = made or Check(brief.draft.id, failed=UNANSWERED)
    return checks


@stage
def _ask(
    desk: Desk, bench: Bench, group: Sequence[PolicyBrief], general: str
) -> tuple[Mapping[str, list[Case]], Sequence[Written], Sequence[str]]:
    """Return the cases of some policies, two versions of the code, and the reasons for rejecting either version."""
    policies = [each.policy for each in group]
    tools = [tool for policy in policies for tool in policy.tools]
    shown = {
        "general": general,
        "tools": bound_tools_text(bench.cards, tools),
        "policies": "\n\n".join(each.text([one.id for one in policies]) for each in group),
    }
    sentences = "\n\n".join(draft_text(each.draft) for each in group)
    shown["others"] = other_tools_text(bench.cards, tools, sentences)
    shown["things"] = things_text(bench.things, bench.cards, tools, bench.request, sentences)
    beside = code_notes(bench.things, bench.cards, tools, f"{general}\n{shown['policies']}")
    for_code = shown | {"tools": shown["tools"] + beside}
    judge = partial(read_guards, policies=policies, bench=bench)
    outcomes = [stage(desk.ask)(_GUARDS, for_code, judge, empty=Written({}, {}), attempt=n) for n in (1, 2)]
    codes = [each for each in outcomes if each is not None]
    written = [each.made for each in codes]
    # If every version calls a policy uncheckable, the policy needs no cases.
    uncheckable = {each.id for each in policies if written and all(each.id in one.cannot for one in written)}
    for_cases = {**shown, "now": bench.now}
    needed = partial(read_given_cases, policies=policies, bench=bench, uncheckable=uncheckable)
    cases = desk.ask(_CASES, for_cases, needed, empty={})
    if len(codes) < len(outcomes):
        raise Unanswered
    refusals = [complaint for each in codes for complaint in each.complaints if complaint.startswith(FAULTY)]
    return cases.made, written, refusals


@stage
def _settle(
    desk: Desk,
    bench: Bench,
    brief: PolicyBrief,
    given: Mapping[str, list[Case]],
    written: Sequence[Written],
    refusals: Sequence[str],
) -> Check:
    name = brief.draft.id
    cases = given.get(name, [])
    codes = [each.codes[name] for each in written if name in each.codes]
    if not codes:
        reasons = [each.cannot[name] for each in written if name in each.cannot]
        why = ": ".join(("no guard was written", *refusals[:1]))
        return Check(name, cases=tuple(cases), failed="; ".join(dict.fromkeys(reasons)) or why)
    sound = [(code, guard) for code in codes if (guard := bench.guard(brief.policy, code)[0]) is not None]
    trials = _trials(bench, brief.policy, sound)
    divided = [trial for trial in trials if len(set(trial.outcomes)) > 1]
    cases, questions = _settled(desk, bench, brief, cases, sound, divided)
    code, complaints = min(
        ((code, _complaints(bench, brief, code, cases)) for code in codes),
        key=lambda tried: (len(tried[1]), *_thrift(bench, brief.policy, tried[0])),
    )
    code, complaints, repairs = _mend(desk, bench, brief, code, complaints, cases)
    if not complaints:
        cases = [*cases, *_walked(desk, bench, brief, code, cases, questions)]
        code, complaints, more = _mend(desk, bench, brief, code, _complaints(bench, brief, code, cases), cases)
        repairs += more
    if not complaints:
        code, more = _looked_at_again(desk, bench, brief, code, cases, questions)
        repairs += more
    said = dict.fromkeys(each.cannot[name] for each in written if name in each.cannot)
    if said:
        questions.append(Question("one generation says that the policy cannot be checked", "; ".join(said)))
    elif len(sound) < len(written):
        questions.append(
            Question("one generation only", "the other generation did not load, so the two could not be compared")
        )
    if complaints:
        return Check(
            name,
            cases=tuple(cases),
            questions=tuple(questions),
            failed=f"no guard passes its cases after {repairs} repairs: {complaints[0]}",
            repairs=repairs,
        )
    if missing := unused_numbers(brief.draft, code):
        text = f"the sentences name {', '.join(missing)}, which the guard does not use"
        questions.append(Question("numbers in the sentences", text))
    guard, _ = bench.guard(brief.policy, code)
    return Check(
        name,
        code,
        cases=tuple(told_whole(guard, cases) if guard is not None else cases),
        questions=tuple(questions),
        repairs=repairs,
        generated=len(trials),
        divided=len(divided),
    )


def _settled(
    desk: Desk,
    bench: Bench,
    brief: PolicyBrief,
    cases: Sequence[Case],
    sound: Sequence[tuple[str, Guard]],
    divided: Sequence[Trial],
) -> tuple[list[Case], list[Question]]:
    """Return the cases after the referee has decided failed cases and inputs for which two versions differ."""
    failed = {
        index
        for _, guard in sound
        for index, result in enumerate(bench.run(brief.policy, guard, cases) if cases else ())
        if not (isinstance(result, CaseResult) and result.passed)
    }
    disputed = sorted(failed)
    apart = _unlike(
        (trial for trial in divided if not trial.is_broken),
        lambda case: not bench.misfits(brief.policy, [{"note": "generated", **case, "want": "deny"}]),
    )
    if not disputed and not apart:
        return list(cases), []
    rulings = rule_on(
        desk,
        [*(cases[index] for index in disputed), *(trial.case for trial in apart)],
        ("permit", "deny"),
        brief.shown,
    )
    kept: list[Case] = []
    questions: list[Question] = []
    at = {index: position for position, index in enumerate(disputed)}
    for index, case in enumerate(cases):
        ruling = rulings.get(at[index]) if index in at else None
        kept += ruled(case, ruling, questions) if index in at else [case]
    for position, trial in enumerate(apart, len(disputed)):
        ruling = rulings.get(position)
        said = " and ".join(trial.outcomes)
        shown_input = {name: part for name, part in trial.case.items() if name != "policy"}
        if ruling is None or ruling.want == "unclear":
            why = ruling.why if ruling is not None else "the referee did not decide it"
            questions.append(
                Question(
                    "two generations disagree", f"they say {said}; this is not settled, because {why}", shown_input
                )
            )
            continue
        text = f"they said {said}; the referee decided {ruling.want}: {ruling.why}"
        questions.append(Question("two generations disagreed", text, shown_input))
        kept.append({"note": f"two generations disagreed: {ruling.why}", **trial.case, "want": ruling.want})
    return kept, questions


def _walked(
    desk: Desk, bench: Bench, brief: PolicyBrief, code: str, cases: Sequence[Case], questions: list[Question]
) -> list[Case]:
    """Return cases for enumeration values and bounds that no existing case covers. Undecided ones become questions."""
    found = bench.once((brief.draft.id, code, repr(cases)), lambda: _gaps(bench, brief, code, cases))
    situations = [gap.case for gap in found]
    rulings = desk.attempt(lambda: rule_on(desk, situations, ("permit", "deny"), brief.shown)) if found else {}
    if rulings is None:
        told = "; ".join(f"{gap.about} ({gap.outcome})" for gap in found)
        questions.append(Question("not covered by a case", f"{told}: the referee has not confirmed the guard's answer"))
        return []
    made: list[Case] = []
    for number, gap in enumerate(found):
        ruling = rulings.get(number)
        if ruling is None or ruling.want == "unclear":
            why = ruling.why if ruling is not None else "the referee did not decide it"
            shown = {name: part for name, part in gap.case.items() if name != "policy"}
            text = f"{gap.about}: the guard says {gap.outcome}; {why}"
            questions.append(Question("the document does not say", text, shown))
        else:
            made.append({"note": f"{gap.about}: {ruling.why}", **gap.case, "want": ruling.want})
    return made


def _gaps(bench: Bench, brief: PolicyBrief, code: str, cases: Sequence[Case]) -> list[Gap]:
    policy = brief.policy
    guard, _ = bench.guard(policy, code)
    assert guard is not None
    found = gaps(bench, _trials(bench, policy, [(code, guard)]), cases, code)
    for bound, other in variants(code):
        twin, _ = bench.guard(policy, other)
        results = bench.run(policy, twin, cases) if twin is not None else ()
        if twin is None or not all(isinstance(each, CaseResult) and each.passed for each in results):
            continue
        trials = _trials(bench, policy, [(code, guard), (other, twin)])
        divided = [each for each in trials if len(set(each.outcomes)) > 1 and not each.is_broken]
        sound = sorted(divided, key=lambda each: len(str(each.case)))
        found += [Gap(f"at the bound of `{bound}`", each.case, each.outcomes[0]) for each in sound[:1]]
    stated = [gap for gap in found if not bench.misfits(policy, [{"note": gap.about, **gap.case, "want": "deny"}])]
    unlike: dict[str, Gap] = {}
    for gap in stated:
        unlike.setdefault(repr(gap.case), gap)
    return list(unlike.values())[:_WALKED]


def _mend(
    desk: Desk, bench: Bench, brief: PolicyBrief, code: str, complaints: list[str], cases: Sequence[Case]
) -> tuple[str, list[str], int]:
    """Repair the code. Return the code, the remaining faults and the number of repairs."""
    repairs = 0
    while complaints and repairs < REPAIRS:
        code = _repaired(desk, bench, brief, code, complaints)
        complaints = _complaints(bench, brief, code, cases)
        repairs += 1
    return code, complaints, repairs


def _repaired(desk: Desk, bench: Bench, brief: PolicyBrief, code: str, complaints: Sequence[str]) -> str:
    shown = {
        "general": brief.general,
        "tools": brief.code_notes(bench),
        "others": other_tools_text(bench.cards, brief.policy.tools, brief.text()),
        "things": brief.things,
        "policy": brief.text(),
        "code": code,
        "complaints": "\n".join(f"- {each}" for each in complaints),
    }
    return one_function(unfenced(desk.answer(render("repair", shown)).text), function_name(brief.draft.id))


def _looked_at_again(
    desk: Desk, bench: Bench, brief: PolicyBrief, code: str, cases: Sequence[Case], questions: list[Question]
) -> tuple[str, int]:
    """Reconsider a guard that behaves oddly on recorded calls. Return the guard and the number of repairs.

    A new version must still pass its cases. Any remaining oddities become questions for the owner.
    """
    told = _of_logs(bench, brief, code)
    if not told:
        return code, 0
    mended = desk.attempt(lambda: _repaired(desk, bench, brief, code, [told]))
    is_sound = mended is not None and mended.strip() != code.strip() and not _complaints(bench, brief, mended, cases)
    kept = mended if mended is not None and is_sound else code
    if still := _of_logs(bench, brief, kept):
        questions.append(Question(RECORDED_CALLS, still.partition(ADVICE)[0]))
    return kept, int(is_sound)


def _of_logs(bench: Bench, brief: PolicyBrief, code: str) -> str:
    guard, _ = bench.guard(brief.policy, code)
    assert guard is not None
    return bench.once((brief.policy, code, "logged"), lambda: complaint(bench, brief.policy, guard))


def _complaints(bench: Bench, brief: PolicyBrief, code: str, cases: Sequence[Case]) -> list[str]:
    policy = brief.policy
    guard, wrong = bench.guard(policy, code)
    if guard is None:
        return wrong
    missing, instead = replaced_numbers(brief.draft, brief.general, code, str(cases))
    if missing:
        wrong.append(
            f"the sentences name {', '.join(missing)}, which it does not use; it uses {', '.join(instead)}, which they"
            " do not name"
        )
    outcomes: set[str] = set()
    for result, case in zip(bench.run(policy, guard, cases) if cases else (), cases, strict=True):
        if isinstance(result, CaseResult) and result.passed:
            outcomes.add(str(case.get("want")))
            continue
        got = result.got if isinstance(result, CaseResult) else fault_text(result)
        shown = {name: part for name, part in case.items() if name in ("call", "facts", "done", "now")}
        wrong.append(f"`{case.get('note', '')}`: {shown}: wanted {case.get('want')}, got {got}")
    trials = _trials(bench, policy, [(code, guard)])
    lacking = next(filter(None, (_LACKS.search(each.because[0]) for each in trials)), None)
    wrong += [f"it fails on calls without an argument that need not be given: line {lacking[0]}"] if lacking else []
    wrong += _fails_on_none(trials) if not lacking else []
    if not {"permit", "deny"} <= outcomes:
        outcomes |= {trial.outcomes[0] for trial in trials}
    if "deny" not in outcomes:
        wrong.append(f"it denies no case and none of {WORLDS} generated calls, so it is no guard")
    if "permit" not in outcomes:
        wrong.append(f"it permits no case and none of {WORLDS} generated calls")
    return wrong


def _fails_on_none(trials: Sequence[Trial]) -> list[str]:
    """Return a complaint if the guard fails on some generated calls and one field is None in all of them."""
    failed = [each for each in trials if each.outcomes[0] == "failed"]
    empty = [_empty_fields(each) for each in failed]
    if not failed or not all(empty):
        return []
    names = sorted(frozenset[str].intersection(*empty) or empty[0])
    return [f"it fails where {' or '.join(f'`{name}`' for name in names)} is `None`: {failed[0].because[0]}"]


def _empty_fields(trial: Trial) -> frozenset[str]:
    facts: dict[str, dict[str, Any] | None] = trial.case["facts"]
    return frozenset(
        f"{thing.partition('[')[0]}.{name}"
        for thing, fields in facts.items()
        for name, value in (fields or {}).items()
        if value is None
    )


def _trials(bench: Bench, policy: Policy, guards: Sequence[tuple[str, Guard]]) -> list[Trial]:
    codes = tuple(code for code, _ in guards)

    def make() -> list[Trial]:
        tools = [bench.base.schema.tools[tool] for tool in policy.tools]
        found, now = [guard for _, guard in guards], datetime.fromisoformat(bench.now)
        return tried(policy.id, found, codes, tools, now, bench.inside, bench.plausible) if guards else []

    return bench.once((policy.id, policy.tools, codes), make)


def _thrift(bench: Bench, policy: Policy, code: str) -> tuple[bool, int]:
    """Return a sort key for equivalent guards. Guards that do not search come first, then guards that read fewer facts.

    A guard that searches can never permit a call on the basis of look-ups alone.
    """
    guard, _ = bench.guard(policy, code)
    trials = _trials(bench, policy, [(code, guard)]) if guard is not None else []
    facts = sum(len(fields or ()) for trial in trials for fields in trial.case["facts"].values())
    return guard is not None and guard.searches, facts


def _unlike(divided: Iterable[Trial], is_runnable: Callable[[Case], bool]) -> list[Trial]:
    chosen: dict[tuple[str, ...], Trial] = {}
    for trial in sorted(divided, key=lambda trial: len(str(trial.case))):
        said = (*trial.outcomes, *trial.because)
        if said not in chosen and is_runnable(trial.case):
            chosen[said] = trial
    return list(chosen.values())[:_DIVIDING]
