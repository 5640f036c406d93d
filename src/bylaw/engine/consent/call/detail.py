"""What matters in a call, read off its arguments: ids, means of payment, amounts, dates, counts, words and names."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from bylaw.engine.consent.said.hours import span_in
from bylaw.facts.folded_text import fold_name
from bylaw.facts.identifier import is_identifier, is_prose
from bylaw.policy.tool import Tool
from bylaw.policy.verb import words_of

Kind = Literal["id", "means", "amount", "date", "count", "choice", "flag", "name"]

_LEAVES = 500
_MOST = 1e18
"""What any larger number, and what is no number, counts as: nobody tells such a sum."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][\d:.Z+-]*)?")
_AMOUNT = re.compile(r"[$€£]?\s?-?\d+(?:[.,]\d+)*")
_SHORT_ID = re.compile(r"[A-Za-z]+-?\d+")
PAYING = frozenset(("payment", "pay", "funding", "tender"))
"""In an argument's name: it says what something is paid with, so that money moves."""
_MEANS = PAYING | {"card", "wallet"}
_MONEY = frozenset(("amount", "price", "cost", "fee", "fare", "sum", "copay", "charge", "refund", "deposit", "payment"))
_NAMES_A_THING = frozenset(("id", "ids", "number", "code", "key", "no", "ref", "reference", "sku", "account", "iban"))
_REMARKS = frozenset(("reason", "reasons", "note", "notes", "comment", "comments", "remark", "summary", "description"))
"""Arguments for the record: what is said there changes nothing that a user would agree to."""
_PERSONS = frozenset(("user", "customer", "patient", "member", "client", "guest", "account", "caller"))
_NEVER_PROSE = frozenset(("money", "means", "thing"))
"""Traits of arguments whose value is one thing, however it is written."""
_OTHER_SIDE = frozenset(("to", "into", "target", "destination", "recipient", "payee", "beneficiary", "other", "new"))
"""Of a person's arguments, those that name another than the one that asks."""
_OFF = frozenset(("no", "none", "false", "off", "0", "n"))
_WORDS_OF_FLAGS = _OFF | {"yes", "true", "on", "y"}


class Detail(Struct, frozen=True):
    """One value in a call's arguments."""

    kind: Kind
    name: str
    """The field's own name, `flight_number`."""
    top: str
    """The argument it stands in, `flights`."""
    value: str | int | float
    words: tuple[str, ...] = ()
    """For a choice, the words it was chosen from."""

    @property
    def key(self) -> tuple[str, str]:
        """Its name and its value, as records are compared with."""
        return self.name, fold_name(str(self.value))

    @property
    def is_target(self) -> bool:
        """Whether it names what the call is about: an id that is an argument of its own."""
        return self.kind == "id" and self.name == self.top

    @property
    def is_person(self) -> bool:
        """Whether it names for whom something is done, who is mostly the one that asks for it."""
        return "person" in _traits(self.name, self.top)

    @property
    def is_caller(self) -> bool:
        """Whether it may name the one that asks, whose id nobody reads out to them. An account is a thing they have."""
        return self.is_person and "account" not in words_of(self.name)

    @property
    def is_off(self) -> bool:
        """Whether it says that something is left as it is by default: nothing, none, no."""
        return self.value in (0, 0.0) or str(self.value).lower() in _OFF


def details(tool: Tool | None, arguments: Mapping[str, Any]) -> list[Detail]:
    """What matters in a call, in the order of its arguments; only amounts, which add up, stand twice."""
    parameters = tool.parameters if tool is not None else {}
    leaves: list[tuple[str, str, Any, Any]] = []
    for top, value in arguments.items():
        _add_leaves(leaves, top, top, value, parameters.get(top))
    found: list[Detail] = []
    for top, name, leaf, schema in leaves[:_LEAVES]:
        detail = _detail(top, name, leaf, schema)
        if detail is None:
            continue
        # Those of one argument stand side by side.
        if detail.kind == "amount" or not found or found[-1].top != top or detail not in found:
            found.append(detail)
    return found if len(leaves) > _LEAVES else _acted_on(tool, found)


def _acted_on(tool: Tool | None, found: list[Detail]) -> list[Detail]:
    """Of a call that acts on a card, the card as a thing, not as a means: `block_card` moves no money."""
    if not any(each.kind == "means" for each in found) or any(each.kind == "amount" for each in found):
        return found
    acts = {*words_of(tool.name)} if tool is not None else set[str]()
    is_alone = not any(each.is_target and not each.is_person for each in found)
    return [
        msgspec.structs.replace(each, kind="id")
        if each.kind == "means" and each.name == each.top and _is_thing(each.name, acts, is_alone=is_alone)
        else each
        for each in found
    ]


def _is_thing(name: str, acts: set[str], *, is_alone: bool) -> bool:
    words = {*words_of(name)}
    is_named = bool(acts & words & _MEANS)
    return is_alone and is_named if words & PAYING else is_alone or is_named


def _add_leaves(leaves: list[tuple[str, str, Any, Any]], top: str, name: str, value: Any, schema: Any) -> None:
    """Add the plain values in an argument, each with its name and what its schema says, but not without end."""
    if len(leaves) > _LEAVES:
        return
    if value.__class__ is str:
        leaves.append((top, name, value, schema))
    elif isinstance(value, dict):
        parts: Any = cast("Mapping[str, Any]", schema).get("properties") if isinstance(schema, Mapping) else None
        fields: Mapping[str, Any] = cast("Mapping[str, Any]", parts) if isinstance(parts, Mapping) else {}
        for key, part in cast("dict[Any, Any]", value).items():
            _add_leaves(leaves, top, str(key), part, fields.get(str(key)))
    elif isinstance(value, list):
        items: Any = cast("Mapping[str, Any]", schema).get("items") if isinstance(schema, Mapping) else None
        for part in cast("list[Any]", value):
            _add_leaves(leaves, top, name, part, items)
    else:
        leaves.append((top, name, value, schema))


def _detail(top: str, name: str, value: Any, schema: Any) -> Detail | None:
    """None for what no text would state: nothing at all, and running text."""
    about = _traits(name, top)
    if "remark" in about or value is None or value == "":
        return None
    if isinstance(value, str):
        # A tool takes "5000\n" for 5000; and a sum or an id is none the less one for its length.
        text = value.strip()
        if not text or (is_prose(text) and not about & _NEVER_PROSE):
            return None
        return _text(top, name, text, schema, about)
    if isinstance(value, bool):
        return Detail("flag", name, top, "true" if value else "false")
    if isinstance(value, int | float):
        # Only `0` is a number and a word for no.
        kind: Kind = "flag" if str(value) in _OFF else "amount" if "money" in about else "count"
        return Detail(kind, name, top, _bounded(value))
    return None


def _text(top: str, name: str, value: str, schema: Any, about: frozenset[str]) -> Detail:
    if value.lower() in _WORDS_OF_FLAGS:
        return Detail("flag", name, top, value)
    if value[:1].isdigit() and "thing" not in about and span_in(value) is not None:
        return Detail("date", name, top, value)
    listed: Any = cast("Mapping[str, Any]", schema).get("enum") if isinstance(schema, Mapping) else None
    if isinstance(listed, list):
        return Detail("choice", name, top, value, tuple(str(word) for word in cast("list[Any]", listed)))
    if value[4:5] == "-" and _DATE.fullmatch(value):
        return Detail("date", name, top, value)
    if "money" in about and _AMOUNT.fullmatch(value) and (number := _number(value)) is not None:
        return Detail("amount", name, top, number)
    if "means" in about:
        return Detail("means", name, top, value)
    is_id = "thing" in about or is_identifier(value) or _SHORT_ID.fullmatch(value) is not None
    return Detail("id" if is_id else "name", name, top, value)


def _number(value: str) -> float | None:
    """None for `1.200.000`, which is no number as we write them."""
    digits = re.sub(r"[^\d.-]", "", value)
    return _bounded(float(digits)) if digits.count(".") < 2 else None


def _bounded(number: float) -> float:
    return number if abs(number) <= _MOST else _MOST


@lru_cache(maxsize=2048)
def _traits(name: str, top: str) -> frozenset[str]:
    """What an argument's name says that its value is."""
    words = words_of(name)
    found = {
        "remark": bool(_REMARKS & set(words)),
        "money": bool(_MONEY & set(words)) or (words == ["total"] and "item" not in top),
        "means": bool(_MEANS & set(words)),
        "thing": bool(words) and words[-1] in _NAMES_A_THING,
        "person": bool(_PERSONS & set(words)) and not _OTHER_SIDE & set(words),
    }
    return frozenset(trait for trait, is_so in found.items() if is_so)
