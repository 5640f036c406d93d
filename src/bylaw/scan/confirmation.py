"""Rules that nearly every handbook has, drafted from the sentence that says so: ask first, one call at a time."""

import re
import textwrap
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.policy.document import Document, Sentence
from bylaw.policy.verb import words_of
from bylaw.scan.sentence_words import Wording
from bylaw.scan.written import flow, remark

_CHANGE = r"(?:chang|updat|modif|writ|book|cancel|act(?:ion|ing)|transaction|consequential|anything|order|tool call)"
_CONFIRM = (
    re.compile(rf"\bbefore\b.{{0,80}}{_CHANGE}.{{0,200}}\b(?:confirm|yes\b|consent|agree|approv)", re.I | re.S),
    re.compile(
        rf"\b(?:obtain|get|ask for|wait for|require|need)\b.{{0,60}}\b(?:confirm|yes\b|consent|approv).{{0,120}}"
        rf"\b(?:before|prior to|to proceed)\b.{{0,80}}{_CHANGE}?",
        re.I | re.S,
    ),
)
_YES = re.compile(
    r"\bbefore\b.{0,200}\b(?:confirm|(?:a|clear|explicit|say|says) yes\b|consent|agree|approv)"
    r"|\b(?:confirm\w*|yes|consent|approval)\b.{0,60}\b(?:before|prior to)\b"
    r"|\b(?:only|not|never) (?:after|before|until)\b.{0,80}\b(?:confirm|yes\b|consent|agreed|agrees|approv)",
    re.I | re.S,
)
"""A yes before some deed; which one, the names of tools must tell."""
_ANY_CHANGE = re.compile(
    r"\b(?:any|every|all|each|a)\b.{0,30}\b(?:chang|action|updat|modification|write|transaction|tool call)"
    "|anything",
    re.I,
)
_SEVERAL_CALLS = re.compile(
    r"\b(?:one|a single) tool call\b.{0,40}\b(?:at a time|at once|per turn|in a turn)"
    r"|\b(?:only|at most)\b.{0,20}\b(?:one|a single) tool call\b"
    r"|\b(?:never|not|no)\b.{0,40}\b(?:several|multiple|more than one|parallel) (?:tool )?calls?\b",
    re.I | re.S,
)
_SEVERAL_CHANGES = re.compile(
    r"\bone (?:change|action|booking|write|update|request) at a time\b"
    r"|\b(?:several|multiple|more than one) (?:change|action|write|update)s?\b.{0,40}\bat (?:once|the same time)\b",
    re.I | re.S,
)
_NEGATED = re.compile(r"\b(?:need not|do not need|no need|without (?:asking|confirm)|not required)\b", re.I)


_EXCEPT = re.compile(
    rf"{_NEGATED.pattern}|\b(?:except|unless|exempt\w*|does not need|needs? no|not needed|without a yes)\b", re.I
)
_YES_WORD = re.compile(r"\b(?:ask\w*|confirm\w*|yes|consent|agree\w*|approv\w*)\b", re.I)
_ASKED = re.compile(r"\b(?:ask\w*|confirm\w*|yes|consent|agree\w*|approv\w*|this|that)\b", re.I)
"""What an exception to asking speaks of; what follows the sentence itself may only say `this`."""


class DraftedRule(Struct, frozen=True):
    """A rule that a sentence of the document seems to ask for."""

    id: str
    sentence: Sentence
    formula: str
    predicates: dict[str, dict[str, Any]]
    exceptions: tuple[Sentence, ...] = ()
    """Sentences that seem to take something out of it."""


_AGREED: dict[str, dict[str, Any]] = {
    "agreed": {"consented": "told", "description": "the user agreed to this very change after it was told"}
}
_WAYS: tuple[tuple[str, tuple[re.Pattern[str], ...], str, dict[str, dict[str, Any]]], ...] = (
    (
        "confirm-before-change",
        _CONFIRM,
        "ALWAYS (change IMPLIES agreed)",
        {
            "change": {"effect": "write", "description": "the act changes something"},
            **_AGREED,
        },
    ),
    (
        "one-change-at-a-time",
        (_SEVERAL_CHANGES,),
        "ALWAYS NOT (change AND several_changes)",
        {
            "change": {"effect": "write", "description": "the act changes something"},
            "several_changes": {"turn": "several_writes", "description": "the turn makes several changes"},
        },
    ),
    (
        "one-call-at-a-time",
        (_SEVERAL_CALLS,),
        "ALWAYS NOT several_calls",
        {"several_calls": {"turn": "several_calls", "description": "the turn makes several calls"}},
    ),
)


def drafted_rules(document: Document, writes: Sequence[str] = (), tools: Sequence[str] = ()) -> list[DraftedRule]:
    """The rules that sentences of the document ask for, each from the first sentence that does.

    A yes that is asked for before certain deeds binds the writes that the sentence names, not every change.
    """
    found = _confirmations(document, writes, tools)
    for name, patterns, formula, predicates in _WAYS:
        for sentence in document.sentences:
            asks = any(pattern.search(sentence.text) for pattern in patterns)
            if asks and not _NEGATED.search(sentence.text) and all(each.sentence != sentence for each in found):
                found.append(DraftedRule(name, sentence, formula, predicates))
                break
    return [_with_exceptions(rule, document, writes, tools) if "agreed" in rule.predicates else rule for rule in found]


def _with_exceptions(rule: DraftedRule, document: Document, writes: Sequence[str], tools: Sequence[str]) -> DraftedRule:
    """The rule without the writes of which a sentence says that nobody need be asked; all such sentences stay by it."""
    every = document.sentences
    place = every.index(rule.sentence)
    exceptions = [
        each
        for at, each in enumerate(every)
        if at != place and _EXCEPT.search(each.text) and (at == place + 1 or _YES_WORD.search(each.text))
        if _ASKED.search(each.text)
    ]
    own = _EXCEPT.search(rule.sentence.text)
    told = [*([rule.sentence.text[own.end() :]] if own else []), *(each.text for each in exceptions)]
    act = next(name for name in rule.predicates if name != "agreed")
    bound = rule.predicates[act].get("tool")
    may = writes if bound is None else [bound] if isinstance(bound, str) else bound
    named = {tool for text in told for tool in Wording(text).deeds(writes, tools)}
    spared = [tool for tool in may if tool in named]
    if not spared or len(spared) == len(may):
        return replace(rule, exceptions=tuple(exceptions))
    needs_none = {"tool": spared[0] if len(spared) == 1 else spared, "description": "the act needs no yes"}
    predicates = {act: rule.predicates[act], "spared": needs_none, **_AGREED}
    formula = f"ALWAYS ({act} AND NOT spared IMPLIES agreed)"
    return replace(rule, formula=formula, predicates=predicates, exceptions=tuple(exceptions))


def _confirmations(document: Document, writes: Sequence[str], tools: Sequence[str]) -> list[DraftedRule]:
    found: dict[str, DraftedRule] = {}
    for sentence in document.sentences:
        text = sentence.text
        if not _YES.search(text) or _ANY_CHANGE.search(text) or _NEGATED.search(text):
            continue
        if deeds := [tool for tool in Wording(text).deeds(writes, tools) if f"confirm-{_slug(tool)}" not in found]:
            name = f"confirm-{_slug(deeds[0])}"
            act = deeds[0] if len(deeds) == 1 else f"{deeds[0]}_and_more"
            bound = deeds[0] if len(deeds) == 1 else deeds
            predicates = {act: {"tool": bound, "description": "the act is one that the sentence names"}, **_AGREED}
            found[name] = DraftedRule(name, sentence, f"ALWAYS ({act} IMPLIES agreed)", predicates)
    return list(found.values())


def _slug(tool: str) -> str:
    return "-".join(words_of(tool)) or "deed"


def rules_file(rules: Sequence[DraftedRule], document: Document) -> str:
    """`rules.yaml` with these rules."""
    predicates = {name: body for rule in rules for name, body in rule.predicates.items()}
    lines = [
        "# Drafted from sentences of the document. Where a rule says what its sentence means, take `unenforced` out of",
        "# its entry in policies.yaml; where it does not, correct it, or remove it here and there.",
        "predicates:",
        *(f"  {name}: {flow(body)}" for name, body in predicates.items()),
        "rules:",
    ]
    for rule in rules:
        said = textwrap.shorten(remark(rule.sentence.text), 90, placeholder=" ...")
        lines.append(f"  # {document.name}:{rule.sentence.line}: {said}")
        for each in rule.exceptions:
            said = textwrap.shorten(remark(each.text), 80, placeholder=" ...")
            lines.append(f"  # an exception? {document.name}:{each.line}: {said}")
        lines.append(f"  - {{id: {rule.id}, formula: {rule.formula}}}")
    return "\n".join(lines) + "\n"
