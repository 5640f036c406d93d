"""Checks a pack: its cases and the branches that they reach, conflicts between rules, and the covered sentences.

Also loads packs with unaccepted policies for a review, and shows each check as it is written.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from bylaw.consent.card import never_asks
from bylaw.errors import BylawError, PackError
from bylaw.pack import Pack, build_pack
from bylaw.pack.predicate import Predicate
from bylaw.pack.review import COMPILED, Standing
from bylaw.pack.statements import Ambiguous
from bylaw.policy.document import Sentence
from bylaw.policy.folder import NothingEnforces, PackFolder, own_record, own_text
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import Scalar, YamlError
from bylaw.review.case import CaseResult, run_cases, untested
from bylaw.rule.formula import atoms
from bylaw.rule.rule import LintFinding, lint

RECORDED_CALLS = "recorded calls"
"""The heading for a question about a check that fails on recorded calls or denies most of them."""


class NotedQuestion(Struct, frozen=True):
    about: Scalar = ""
    text: Scalar = ""
    input: Any = None


class NotedCall(Struct, frozen=True):
    conversation: Scalar = ""
    step: Scalar = ""
    why: Scalar = ""


class NotedCalls(Struct, frozen=True):
    """The number of recorded calls with one verdict, and the first of these calls."""

    calls: int = 0
    first: list[NotedCall] = []


class Noted(Struct, frozen=True):
    """The compiler's notes about one policy."""

    repairs: Scalar = ""
    generated_inputs: Scalar = ""
    generations_divided_on: Scalar = ""
    failed: Scalar = ""
    questions: list[NotedQuestion] = []
    in_logs: dict[str, NotedCalls] = {}
    is_compiled: bool = False


class _LeftOut(Struct, frozen=True):
    sentence: Scalar = ""
    said: Scalar = ""


class _File(Struct, frozen=True):
    policies: dict[str, Noted | None] | None = None
    sentences_without_policy: list[_LeftOut] | None = None


def noted_of(root: Path) -> dict[str, Noted]:
    """Return the compiler's notes, keyed by policy. A handwritten pack has none."""
    found = _read(root).policies or {}
    return {name: msgspec.structs.replace(each or Noted(), is_compiled=True) for name, each in found.items()}


def most_pressing_first(pack: Pack, names: Iterable[str], noted: Mapping[str, Noted]) -> list[str]:
    """Return policies in the order in which to review them.

    Policies that flag most of the logged calls come first. Then come policies with questions, with a high severity, or
    with flagged calls.
    """

    def urgency(name: str) -> tuple[bool, int]:
        found = noted.get(name, Noted())
        flags_most = any(each.about == RECORDED_CALLS for each in found.questions)
        return flags_most, sum(map(bool, (found.questions, pack.policies[name].severity == "high", found.in_logs)))

    return sorted(names, key=urgency, reverse=True)


def why_unenforced(root: Path, name: str) -> str:
    """Return the compiler's reason for making no check for a policy."""
    return str(noted_of(root).get(name, Noted()).failed or "no check enforces it")


def left_out_of(root: Path) -> dict[str, str]:
    """Return the sentences that have no policy, keyed by their text, each with the compiler's reason."""
    return {str(each.sentence): str(each.said) for each in _read(root).sentences_without_policy or ()}


def _read(root: Path) -> _File:
    if not (root / COMPILED).is_file():
        return _File()
    try:
        return msgspec.convert(own_record(root, COMPILED), _File)
    except msgspec.ValidationError as error:
        hint = "`bylaw compile` writes this file"
        raise YamlError(f"not valid compiler notes: {error}", place=COMPILED, hint=hint) from None


NOBODY = "not signed yet"
WEIGHTS = "weights.yaml"


def loaded(folder: PackFolder) -> Pack:
    """Return the pack for a review, even if no reviewer has accepted that some policies have no check."""
    try:
        return build_pack(folder)
    except PackError as error:
        if not all(isinstance(fault, NothingEnforces) for fault in error.faults):
            raise
        lacking = {name for fault in error.faults for name in re.findall(r"`([^`]+)`", fault.message)}
    for body in cast(list[dict[str, Any]], folder.parts["policies"].data["policies"]):
        if body.get("id") in lacking:
            body["unenforced"] = {"accepted_by": NOBODY, "reason": why_unenforced(folder.root, str(body["id"]))}
    return build_pack(folder)


def check_lines(pack: Pack, policy: Policy) -> list[str]:
    """Return the source of a guard, the formula of a rule, or a limit in words."""
    if policy.id in pack.guards:
        guard = pack.guards[policy.id]
        return function_lines(pack, guard.file, guard.line)
    learned = _learned(pack)
    return [
        f"{rule.text}    weight {rule.weight:.2f}, learned from labelled calls" if rule.name in learned else rule.text
        for rule in pack.book.rules
        if rule.policy == policy.id
    ] + [limit.text for limit in pack.book.limits if limit.policy == policy.id]


def signed_lines(pack: Pack, policy: Policy) -> list[str]:
    """Return everything that a signature covers: the check, and the functions that it calls."""
    guard = pack.guards.get(policy.id)
    called = [["", *function_lines(pack, file, line)] for file, line in guard.functions] if guard is not None else []
    rules = [rule for rule in pack.book.rules if rule.policy == policy.id]
    asks = any(pack.book.predicates[name].consent for rule in rules for name in atoms(rule.formula))
    shown = [["", f"{tool}:", *shown_lines(pack, tool)] for tool in pack.schema.card_facts if asks]
    acts = [["", *_action_lines(pack, policy)]] if pack.schema.actions is not None else []
    return [*check_lines(pack, policy), *(line for lines in (*called, *shown, *acts) for line in lines)]


def _action_lines(pack: Pack, policy: Policy) -> list[str]:
    own = own_record(pack.root, "tools.yaml") if (pack.root / "tools.yaml").is_file() else {}
    written = cast(dict[str, Any], own.get("actions") or {})
    rules = [rule for rule in pack.book.rules if rule.policy == policy.id]
    used = [pack.book.predicates[name] for rule in rules for name in atoms(rule.formula)]
    limits = [tool for limit in pack.book.limits if limit.policy == policy.id for tool in limit.tools]
    tools = pack.schema.tools
    named = {name for name in written if any(each.names(name, tools[name].effect) for each in used)}
    bound = {*policy.tools, *limits, *named}
    return [f"{name}: {json.dumps(body, ensure_ascii=False)}" for name, body in written.items() if name in bound]


def shown_lines(pack: Pack, tool: str) -> list[str]:
    """Return the sentences with which the agent asks for consent to a call, and the facts on the tool's cards."""
    sentences = [f'"{phrase}"' for phrase in pack.schema.tools[tool].put_as]
    return [*sentences, *(f"{fact.name} = {fact.code}" for fact in pack.schema.card_facts[tool])]


def function_lines(pack: Pack, file: str, line: int) -> list[str]:
    """Return the source of the function that starts at a line in a file of the pack."""
    lines = own_text(pack.root, file).split("\n")[line - 1 :]
    end = next((number for number, each in enumerate(lines[1:], 1) if each and not each[0].isspace()), len(lines))
    return "\n".join(lines[:end]).rstrip().split("\n")


def _learned(pack: Pack) -> Mapping[str, Any]:
    has_any = (pack.root / WEIGHTS).is_file()
    return cast(dict[str, Any], own_record(pack.root, WEIGHTS).get("weights") or {}) if has_any else {}


class Covered(Struct, frozen=True):
    """A sentence of the document, and the policies that cite this sentence."""

    sentence: Sentence
    policies: tuple[Policy, ...]
    checked: tuple[str, ...]
    """The policies among them that have an enforced guard or rule."""
    document: str = ""

    @property
    def enforced(self) -> bool:
        return bool(self.checked)

    @property
    def state(self) -> str:
        """`enforced`, `listed` (cited, but only by policies without a check) or `uncovered`."""
        if self.enforced:
            return "enforced"
        return "listed" if self.policies else "uncovered"


def covered_sentences(pack: Pack) -> list[Covered]:
    """Return every sentence of the document in order. Return an empty list if there is no document."""
    document = pack.document
    if document is None:
        return []
    citing: dict[int, dict[str, Policy]] = {}
    for policy in pack.policies.values():
        for start, end in (each for citation in policy.citations for each in citation.ranges):
            for sentence in document.within(start, end):
                citing.setdefault(sentence.start, {})[policy.id] = policy
    held = pack.guards.keys() | pack.book.enforced
    covered: list[Covered] = []
    for sentence in document.sentences:
        policies = tuple(citing.get(sentence.start, {}).values())
        checked = tuple(policy.id for policy in policies if policy.id in held and policy.unenforced is None)
        covered.append(Covered(sentence, policies, checked, document.file_at(sentence.start).name))
    return covered


class Untaken(Struct, frozen=True):
    """A branch of a guard that no case reaches."""

    policy: str
    file: str
    line: int
    kind: str


class CheckReport(Struct, frozen=True):
    pack: str
    version: str
    digest: str
    cases: tuple[CaseResult, ...]
    faults: tuple[BylawError, ...]
    """Cases that cannot be run in the form in which they are written."""
    untested: tuple[str, ...]
    """Guards without a case that permits, or without a case that denies."""
    branches: int
    untaken: tuple[Untaken, ...]
    rules: int
    conflicts: tuple[LintFinding, ...]
    """Rules that contradict each other, are duplicates, or prevent each other from being kept."""
    sentences: tuple[Covered, ...]
    """Every sentence of the document. Empty if there is no document."""
    unenforced: tuple[tuple[str, str, str], ...]
    """Policies without a check, each with its id, the reason, and the person who accepted this."""
    stale: tuple[str, ...]
    """Policies that cite a sentence which is missing from the document."""
    unaccepted: tuple[tuple[str, Standing], ...] = ()
    ambiguous: tuple[Ambiguous, ...] = ()
    """Quotes that match several sentences, all of which are cited. This is not an error."""
    lost: tuple[BylawError, ...] = ()
    """Quotes that are not in the document, each with its line."""
    unsaid: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Writes that declare no changes, each with the additional entities that it is assumed to change."""
    unread: tuple[str, ...] = ()
    """Consent predicates that no written answer can satisfy, because no tool has `put_as` and no model may decide."""
    unmatched: tuple[tuple[str, str, str], ...] = ()
    """Sentences in `put_as` that can never match, each with its tool and the reason."""
    shown: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Writes whose cards or consent sentences show additional facts, each with these sentences and facts."""
    disarmed: tuple[tuple[str, float], ...] = ()
    """Rules whose weight is too low to deny a call without other rules, each with its weight."""
    preparing: tuple[str, ...] = ()
    """Writes that the user need not have requested, if a model allows them (`prepares`)."""

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        return tuple(case for case in self.cases if not case.passed)

    @property
    def undecided(self) -> tuple[CaseResult, ...]:
        """Cases of rules that pass only because code cannot determine whether the user agreed."""
        return tuple(case for case in self.cases if case.is_undecided)

    @property
    def is_sound(self) -> bool:
        """Whether the pack has no errors that must be fixed."""
        return not (self.faults or self.failed or self.untested or self.conflicts or self.stale)

    def record(self) -> dict[str, Any]:
        return {
            "pack": self.pack,
            "version": self.version,
            "digest": self.digest,
            "sound": self.is_sound,
            "cases": [
                {name: getattr(case, name) for name in ("place", "policy", "note", "want", "got", "passed")}
                for case in self.cases
            ],
            "faults": [
                {"code": fault.code, "place": fault.place, "message": fault.message, "hint": fault.hint}
                for fault in self.faults
            ],
            "untested": list(self.untested),
            "branches": {"all": self.branches, "taken": self.branches - len(self.untaken)},
            "untaken": [
                {"policy": branch.policy, "place": f"{branch.file}:{branch.line}", "branch": branch.kind}
                for branch in self.untaken
            ],
            "rules": self.rules,
            "conflicts": [{"kind": found.kind, "message": found.message} for found in self.conflicts],
            "sentences": [
                {
                    "document": covered.document,
                    "line": covered.sentence.line,
                    "text": covered.sentence.text,
                    "state": covered.state,
                    "policies": [policy.id for policy in covered.policies],
                }
                for covered in self.sentences
            ],
            "unenforced": [{"policy": name, "reason": why, "accepted_by": who} for name, why, who in self.unenforced],
            "stale": list(self.stale),
            "unaccepted": dict(self.unaccepted),
            "lost": [{"place": each.place, "message": each.message, "hint": each.hint} for each in self.lost],
            "unsaid": {tool: list(kinds) for tool, kinds in self.unsaid},
            "unread": list(self.unread),
            "unmatched": [{"tool": tool, "put_as": phrase, "because": why} for tool, phrase, why in self.unmatched],
            "shown": {tool: list(lines) for tool, lines in self.shown},
            "undecided": [case.place for case in self.undecided],
            "disarmed": dict(self.disarmed),
            "preparing": list(self.preparing),
            "ambiguous": [msgspec.to_builtins(each) for each in self.ambiguous],
        }

    def __repr__(self) -> str:
        state = "sound" if self.is_sound else "not sound"
        right = len(self.cases) - len(self.failed)
        return f"<check of {self.pack} {self.version}: {state}, {right} of {len(self.cases)} cases pass>"


def _unmatched(pack: Pack, wanted: Sequence[Predicate]) -> Iterator[tuple[str, str, str]]:
    for tool in pack.schema.tools.values():
        for phrase in tool.put_as:
            reasons = [never_asks(phrase, tool, each.terms) for each in wanted]
            if reasons and all(reasons):
                yield tool.name, phrase, reasons[0]


def _branches(pack: Pack, taken: Mapping[str, Set[int]]) -> tuple[int, tuple[Untaken, ...]]:
    """Return the number of branches, and the branches that no case reaches.

    A branch in a shared function counts once, and a case for any guard that calls the function may reach it.
    """
    covered: dict[Untaken, bool] = {}
    names: dict[tuple[object, ...], Untaken] = {}
    for name, guard in pack.guards.items():
        for index, each in enumerate(guard.branches):
            own = Untaken(name, each.file or guard.file, each.line, each.kind)
            branch = names.setdefault((own.file, each.line, each.column, each.kind), own)
            covered[branch] = covered.get(branch, False) or index in taken.get(name, ())
    return len(names), tuple(names[key] for key in names if not covered[names[key]])


def check(pack: Pack) -> CheckReport:
    """Run every case of a pack, and find parts that are untested, not covered, or impossible to satisfy."""
    taken: dict[str, set[int]] = {}
    results = list(run_cases(pack, taken))
    cases = tuple(result for result in results if isinstance(result, CaseResult))
    ways = [name for name, predicate in pack.book.predicates.items() if predicate.way]
    words = [each for each in pack.book.predicates.values() if each.consent in ("told", "requested")]
    return CheckReport(
        pack.name,
        pack.version,
        pack.digest,
        cases,
        tuple(result for result in results if isinstance(result, BylawError)),
        tuple(untested(cases, pack)),
        *_branches(pack, taken),
        len(pack.book.rules),
        tuple(lint(pack.book.rules, actions=pack.book.actions, ways=ways)) if pack.book.rules else (),
        tuple(covered_sentences(pack)),
        tuple(
            (policy.id, policy.unenforced.reason, policy.unenforced.accepted_by)
            for policy in pack.policies.values()
            if policy.unenforced is not None
        ),
        pack.stale,
        tuple(pack.unaccepted.items()),
        pack.ambiguous,
        pack.lost,
        tuple(
            (tool.name, tuple(change.entity for change in pack.schema.changes[tool.name]))
            for tool in pack.schema.tools.values()
            if tool.is_unsaid and not all(entity.is_always_there for entity in pack.schema.entities.values())
        ),
        ()
        if any(tool.put_as for tool in pack.schema.tools.values())
        else tuple(each.name for each in words if not each.model_settles),
        tuple(_unmatched(pack, words)),
        tuple((name, tuple(shown_lines(pack, name))) for name in pack.schema.card_facts),
        tuple((rule.name, rule.weight) for rule in pack.book.disarmed),
        tuple(tool.name for tool in pack.schema.tools.values() if tool.prepares),
    )
