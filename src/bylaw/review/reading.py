"""Loads a pack for review, even with unaccepted policies, and renders each check as written."""

import re
from collections.abc import Mapping
from typing import Any, cast

from bylaw.errors import PackError
from bylaw.pack import Pack, build_pack
from bylaw.policy.folder import NothingEnforces, PackFolder, own_record, own_text
from bylaw.policy.statement import Policy
from bylaw.review.noted import why_unenforced
from bylaw.rule.formula import atoms

NOBODY = "nobody yet"
WEIGHTS = "weights.yaml"


def loaded(folder: PackFolder) -> Pack:
    """The pack, even if unenforced policies have not been accepted yet."""
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
    """The source of a guard, the formula of a rule, or a limit in words."""
    if policy.id in pack.guards:
        guard = pack.guards[policy.id]
        return _function(pack, guard.file, guard.line)
    learned = _learned(pack)
    return [
        f"{rule.text}    weight {rule.weight:.2f}, learned from labelled calls" if rule.name in learned else rule.text
        for rule in pack.book.rules
        if rule.policy == policy.id
    ] + [limit.text for limit in pack.book.limits if limit.policy == policy.id]


def signed_lines(pack: Pack, policy: Policy) -> list[str]:
    """Everything a signature covers: the check and the functions it calls."""
    guard = pack.guards.get(policy.id)
    called = [["", *_function(pack, file, line)] for file, line in guard.functions] if guard is not None else []
    rules = [rule for rule in pack.book.rules if rule.policy == policy.id]
    asks = any(pack.book.predicates[name].consent for rule in rules for name in atoms(rule.formula))
    shown = [["", f"{tool}:", *shown_lines(pack, tool)] for tool in pack.schema.card_facts if asks]
    return [*check_lines(pack, policy), *(line for lines in (*called, *shown) for line in lines)]


def shown_lines(pack: Pack, tool: str) -> list[str]:
    """The sentences that ask for consent to a tool's call, and the facts they and its cards show."""
    sentences = [f'"{phrase}"' for phrase in pack.schema.tools[tool].put_as]
    return [*sentences, *(f"{fact.name} = {fact.code}" for fact in pack.schema.card_facts[tool])]


def _function(pack: Pack, file: str, line: int) -> list[str]:
    lines = own_text(pack.root, file).split("\n")[line - 1 :]
    end = next((number for number, each in enumerate(lines[1:], 1) if each and not each[0].isspace()), len(lines))
    return "\n".join(lines[:end]).rstrip().split("\n")


def _learned(pack: Pack) -> Mapping[str, Any]:
    """Learned weights by rule."""
    has_any = (pack.root / WEIGHTS).is_file()
    return cast(dict[str, Any], own_record(pack.root, WEIGHTS).get("weights") or {}) if has_any else {}
