"""What matters in a call, read off its arguments: ids, means of payment, amounts, dates, counts, words and names."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from msgspec import Struct

from bylaw.facts.provenance import fold, is_identifier, is_prose
from bylaw.policy.tool import Tool
from bylaw.policy.verb import words_of

Kind = Literal["id", "means", "amount", "date", "count", "choice", "flag", "name"]

_LEAVES = 500
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][\d:.Z+-]*)?")
_AMOUNT = re.compile(r"[$€£]?\s?-?\d+(?:[.,]\d+)*")
_MEANS = frozenset(("payment", "pay", "card", "wallet", "funding", "tender"))
_MONEY = frozenset(("amount", "price", "cost", "fee", "fare", "sum", "copay", "charge", "refund", "deposit", "payment"))
_NAMES_A_THING = frozenset(("id", "ids", "number", "code", "key", "no", "ref", "reference", "sku"))
_REMARKS = frozenset(("reason", "reasons", "note", "notes", "comment", "comments", "remark", "summary", "description"))
"""Arguments for the record: what is said there changes nothing that a user would agree to."""
_PERSONS = frozenset(("user", "customer", "patient", "member", "client", "guest", "account", "caller"))
_OFF = frozenset(("no", "none", "false", "off", "0", "n"))
_ON = frozenset(("yes", "true", "on", "y"))


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
        return self.name, fold(str(self.value))

    @property
    def is_target(self) -> bool:
        """Whether it names what the call is about: an id that is an argument of its own."""
        return self.kind == "id" and self.name == self.top

    @property
    def is_person(self) -> bool:
        """Whether it names for whom something is done, who is mostly the one that asks for it."""
        return bool(_PERSONS & {*words_of(self.name)})

    @property
    def is_off(self) -> bool:
        """Whether it says that something is left as it is by default: nothing, none, no."""
        return self.value in (0, 0.0) or str(self.value).lower() in _OFF


def details(tool: Tool | None, arguments: Mapping[str, Any]) -> list[Detail]:
    """What matters in a call, in the order of its arguments; only amounts, which add up, stand twice."""
    parameters = tool.parameters if tool is not None else {}
    found: list[Detail] = []
    left = _LEAVES
    for top, value in arguments.items():
        for name, leaf, schema in _leaves(top, value, parameters.get(top)):
            left -= 1
            if left < 0:
                return found
            detail = _detail(top, name, leaf, schema)
            if detail is not None and (detail.kind == "amount" or detail not in found):
                found.append(detail)
    return found


def _leaves(name: str, value: Any, schema: Any) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    declared: Mapping[str, Any] = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    if isinstance(value, dict):
        parts: Any = declared.get("properties")
        fields: Mapping[str, Any] = cast("Mapping[str, Any]", parts) if isinstance(parts, Mapping) else {}
        for key, part in cast("dict[Any, Any]", value).items():
            yield from _leaves(str(key), part, fields.get(str(key)))
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from _leaves(name, part, declared.get("items"))
    else:
        yield name, value, declared


def _detail(top: str, name: str, value: Any, schema: Mapping[str, Any]) -> Detail | None:
    """None for what no text would state: nothing at all, and running text."""
    if value is None or value == "" or (isinstance(value, str) and is_prose(value)):
        return None
    words = words_of(name)
    if _REMARKS & set(words):
        return None
    listed: Any = schema.get("enum")
    if isinstance(value, bool) or str(value).lower() in _OFF | _ON - {"0"}:
        return Detail("flag", name, top, str(value).lower() if isinstance(value, bool) else value)
    if isinstance(value, int | float):
        return Detail("amount" if _is_money(words, top) else "count", name, top, value)
    if not isinstance(value, str):
        return None
    if isinstance(listed, list):
        return Detail("choice", name, top, value, tuple(str(word) for word in cast("list[Any]", listed)))
    if _DATE.fullmatch(value):
        return Detail("date", name, top, value)
    if _AMOUNT.fullmatch(value) and _is_money(words, top):
        return Detail("amount", name, top, float(re.sub(r"[^\d.-]", "", value)))
    if _MEANS & set(words):
        return Detail("means", name, top, value)
    if is_identifier(value) or (words and words[-1] in _NAMES_A_THING):
        return Detail("id", name, top, value)
    return Detail("name", name, top, value)


def _is_money(words: list[str], top: str) -> bool:
    return bool(_MONEY & set(words)) or (words == ["total"] and "item" not in top)
