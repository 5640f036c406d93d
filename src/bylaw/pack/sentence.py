"""Drafts sentences in which agents ask the user before each write of a new pack. The pack's owner edits them."""

from collections.abc import Mapping
from typing import Any, cast

from bylaw.consent.card import SLOT, Terms, what_matters
from bylaw.pack.statements import faults_of_sentence, read_parameters
from bylaw.policy.verb import words_of

_SIMPLE = {"string", "integer", "number", "boolean"}


def draft_sentences(tool: str, given: Mapping[str, Any], taken: set[str]) -> list[str]:
    """Return `put_as` for a write: a sentence with every required argument, and one with the optional ones too.

    `given` are the tool's parameters in tools.yaml. The result is empty if a required argument, such as an object, does
    not fit in a sentence. The user then gets a card. Sentences in `taken` are left out, and new ones are added there.
    """
    parameters, required = read_parameters(given)
    matters = [name for name in parameters if what_matters({name: "" if _is_text(parameters[name]) else 0}, Terms())]
    simple = [name for name in matters if _is_simple(parameters[name])]
    if any(name in required and name not in simple for name in matters):
        return []
    needed = [name for name in simple if name in required]
    # A sentence without arguments says too little.
    drafts = [_sentence(tool, names) for names in (needed, simple) if names or not simple]
    found = [each for each in dict.fromkeys(drafts) if not any(faults_of_sentence(each, parameters, {}, tool, tool))]
    words = {SLOT.sub("{}", each) for each in found}
    if not words.isdisjoint(taken):
        return []
    taken |= words
    return found


def _sentence(tool: str, names: list[str]) -> str:
    """Return a sentence such as `cancel order with order id {order_id} and fee {fee}`."""
    parts = [f"{' '.join(words_of(name))} {{{name}}}" for name in names]
    listed = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
    return " ".join(words_of(tool)) + (f" with {listed}" if listed else "")


def _is_text(schema: Any) -> bool:
    return isinstance(schema, dict) and cast("dict[str, Any]", schema).get("type") == "string"


def _is_simple(schema: Any) -> bool:
    """Whether a sentence can contain the values: texts, numbers, booleans, and lists of these."""
    declared = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    if declared.get("type") == "array":
        return _is_simple(declared.get("items"))
    kinds: Any = declared.get("type")
    named = {*cast("list[Any]", kinds)} if isinstance(kinds, list) else {kinds}
    return bool(named - {"null"}) and named - {"null"} <= _SIMPLE
