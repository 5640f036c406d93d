"""Loads a pack for review, even with unaccepted policies, and shows each check as written."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from bylaw.errors import PackError
from bylaw.pack import Pack, build_pack
from bylaw.pack.review import COMPILED
from bylaw.policy.folder import NothingEnforces, PackFolder, own_record, own_text
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import Scalar, YamlError
from bylaw.rule.formula import atoms


class NotedQuestion(Struct, frozen=True):
    """A question for a reviewer."""

    about: Scalar = ""
    text: Scalar = ""
    input: Any = None


class NotedCall(Struct, frozen=True):
    """A recorded call to which the check applies."""

    conversation: Scalar = ""
    step: Scalar = ""
    why: Scalar = ""


class NotedCalls(Struct, frozen=True):
    """The number of recorded calls with one verdict, and the first few."""

    calls: int = 0
    first: list[NotedCall] = []


class Noted(Struct, frozen=True):
    """The compiler's notes on one policy."""

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
    """Return the compiler's notes by policy; empty for a handwritten pack."""
    found = _read(root).policies or {}
    return {name: msgspec.structs.replace(each or Noted(), is_compiled=True) for name, each in found.items()}


def most_pressing_first(pack: Pack, names: Iterable[str], noted: Mapping[str, Noted]) -> list[str]:
    """Return policies in review order: first those with questions, of high severity, or flagging logged calls."""

    def urgency(name: str) -> int:
        found = noted.get(name, Noted())
        return sum(map(bool, (found.questions, pack.policies[name].severity == "high", found.in_logs)))

    return sorted(names, key=urgency, reverse=True)


def why_unenforced(root: Path, name: str) -> str:
    """Return why the compiler left a policy without a check."""
    return str(noted_of(root).get(name, Noted()).failed or "nothing enforces it")


def left_out_of(root: Path) -> dict[str, str]:
    """Return why the compiler made no policy from a sentence, by the sentence's text."""
    return {str(each.sentence): str(each.said) for each in _read(root).sentences_without_policy or ()}


def _read(root: Path) -> _File:
    if not (root / COMPILED).is_file():
        return _File()
    try:
        return msgspec.convert(own_record(root, COMPILED), _File)
    except msgspec.ValidationError as error:
        hint = "`bylaw compile` writes this file"
        raise YamlError(f"not what a compile notes: {error}", place=COMPILED, hint=hint) from None


NOBODY = "nobody yet"
WEIGHTS = "weights.yaml"


def loaded(folder: PackFolder) -> Pack:
    """Return the pack, even if unenforced policies have not been accepted yet."""
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
    """Return a guard's source, a rule's formula, or a limit in words."""
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
    """Return everything that a signature covers: the check and the functions that it calls."""
    guard = pack.guards.get(policy.id)
    called = [["", *function_lines(pack, file, line)] for file, line in guard.functions] if guard is not None else []
    rules = [rule for rule in pack.book.rules if rule.policy == policy.id]
    asks = any(pack.book.predicates[name].consent for rule in rules for name in atoms(rule.formula))
    shown = [["", f"{tool}:", *shown_lines(pack, tool)] for tool in pack.schema.card_facts if asks]
    acts = [["", *_action_lines(pack, policy)]] if pack.schema.actions is not None else []
    return [*check_lines(pack, policy), *(line for lines in (*called, *shown, *acts) for line in lines)]


def _action_lines(pack: Pack, policy: Policy) -> list[str]:
    """Return the actions that a policy binds, as in tools.yaml."""
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
    """Return the sentences that ask for consent to a tool's call, and the facts on its cards."""
    sentences = [f'"{phrase}"' for phrase in pack.schema.tools[tool].put_as]
    return [*sentences, *(f"{fact.name} = {fact.code}" for fact in pack.schema.card_facts[tool])]


def function_lines(pack: Pack, file: str, line: int) -> list[str]:
    """Return the source of the function at a line of a pack's file."""
    lines = own_text(pack.root, file).split("\n")[line - 1 :]
    end = next((number for number, each in enumerate(lines[1:], 1) if each and not each[0].isspace()), len(lines))
    return "\n".join(lines[:end]).rstrip().split("\n")


def _learned(pack: Pack) -> Mapping[str, Any]:
    has_any = (pack.root / WEIGHTS).is_file()
    return cast(dict[str, Any], own_record(pack.root, WEIGHTS).get("weights") or {}) if has_any else {}
