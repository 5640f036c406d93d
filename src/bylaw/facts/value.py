"""Values of facts: raw as a tool or database gave them, then of the field's type."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, cast

from bylaw.facts.entity import UNSEEN, Field, FieldType, Key, OneOf
from bylaw.facts.money import amount_in, read_amount, written_number
from bylaw.trace.contradicted import Contradicted, holds_contradiction

_TRUE = frozenset({"true", "yes", "y", "1"})
_FALSE = frozenset({"false", "no", "n", "0"})
_DIGITS = 100
"""Places before or after the point that an amount may need: exact arithmetic on `1e-999999999` would never end."""
_NO_AMOUNT = Decimal("NaN")
_WHOLE = 10**_DIGITS
_SHORT = 64
"""No longer text is kept with what it was found to be, nor read as a number by `alike`."""
_NUMBER = re.compile(r"([+-]?)0*(\d+)(?:\.(\d*))?")
INVISIBLE = dict.fromkeys(map(ord, "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"))
INVISIBLE.update(dict.fromkeys([*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
"""Characters that count as letters or marks and show nothing."""


def coerce(field: Field, raw: Any) -> Any:
    """`raw` as a value of the field's type; ValueError where it is none.

    `null` is None where the pack says that there may be none, else not known: UNSEEN.
    """
    if raw is None:
        return None if field.nullable else UNSEEN
    if raw.__class__ is Contradicted:
        return one_of(field, raw.values)
    if field.type == "enum":
        word = raw if isinstance(raw, str) else _text(raw)
        if word in field.values or not field.values:
            return word
        raise ValueError(f"`{word}` is not one of {', '.join(field.values)}")
    value = _READ[field.type](raw)
    return amount_in(value, field.currency) if field.currency and value.__class__ is Decimal else value


def one_of(field: Field, raw: Iterable[Any]) -> Any:
    """The value where all of these tell the same, else `OneOf` what they tell; UNSEEN where one tells nothing."""
    values: list[Any] = []
    for each in raw:
        value = coerce(field, each)
        if value is UNSEEN:
            return UNSEEN
        values += [told for told in (value.values if isinstance(value, OneOf) else (value,)) if told not in values]
    return values[0] if len(values) == 1 else OneOf(tuple(values))


def key_of(parts: Sequence[Any]) -> Key:
    """A key as the ledger keeps it: texts, whatever type a guard or a log gave its parts."""
    for part in parts:
        if type(part) is not str:
            return tuple(part if type(part) is str else _text(part) for part in parts)
    return tuple(parts)


@lru_cache(maxsize=65_536)
def loose_key(key: Key) -> Key:
    """The same for every two keys that a tool may take for one: only where it differs are they surely two things."""
    return tuple(map(loose, key))


@lru_cache(maxsize=65_536)
def alike_key(key: Key) -> Key:
    """The same, as `alike` has its parts: what is done to `AC-22` or `1e1` is perhaps done to `AC22` or `10`."""
    return tuple(map(alike, key))


def is_same(one: Any, other: Any) -> bool | None:
    """Whether two arguments are one, as keys are compared; None where a tool may take them for one or for two."""
    ours, theirs = key_of((one,)), key_of((other,))
    if ours == theirs or (_is_number(one) and _is_number(other) and one == other):
        return True
    if names_several(one) or names_several(other) or alike_key(ours) == alike_key(theirs):
        return None
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def names_several(part: Any) -> bool:
    """Whether what stands for a key may name any number of things: a list or an object, as data or as text."""
    return isinstance(part, (list, dict)) or (type(part) is str and part.lstrip()[:1] in ("[", "{"))


def loose(text: str) -> str:
    """A text without what tools tend not to mind and people do not see.

    That is case, forms of letters, blanks and invisible characters, quotes around it, `7.0` for `7`.
    """
    return _loose(text) if len(text) <= _SHORT else _loose.__wrapped__(text)


@lru_cache(maxsize=65_536)
def _loose(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(INVISIBLE)
    text = "".join(text.split())
    if not text.isprintable():
        text = "".join(filter(str.isprintable, text))
    text = text.strip("\"'`#").casefold()
    if text[-1:].isdigit() and len(text) <= _DIGITS and (number := _NUMBER.fullmatch(text)):
        sign, whole, part = number.groups()
        fraction = (part or "").rstrip("0")
        text = ("-" if sign == "-" else "") + whole + (f".{fraction}" if fraction else "")
    return text


_MARKS = " $\u20ac\u00a3\u00a5\u20b9.,;:!?'\"+"
_MIDNIGHT = re.compile(r"(?<=\d)[t ]00:00(?::00(?:\.0+)?)?(?:z|[+-]00:?00)?$")


def alike(value: Any) -> Any:
    """The same for two values that a tool may take for one: case, blanks, punctuation, signs of currencies and what is
    not given aside, and numbers by what they are worth, also as text and however their thousands are parted.

    It takes more for one than ids are compared by (`1e2` is 100), so it may refuse and never allow.
    """
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return sorted([str(name), alike(part)] for name, part in fields.items() if part is not None)
    if isinstance(value, list | tuple):
        return [alike(part) for part in cast("Sequence[Any]", value)]
    text = str(value)
    return _alike(text) if len(text) <= _SHORT else _alike.__wrapped__(text)


_GROUPED = re.compile(r"([+-]?\d{1,3}(?:([.,'])\d{3})(?:\2\d{3})*)(?:[.,](\d{1,2}))?")
_COMMA = re.compile(r"([+-]?\d+),(\d{1,2})")
_PARTS = str.maketrans("", "", ".,'")


@lru_cache(maxsize=16_384)
def _alike(written: str) -> str:
    """The same for one value; a conversation names the same few again and again."""
    text = _MIDNIGHT.sub("", loose(written).replace("\u2212", "-").strip(_MARKS))
    if len(text) > _SHORT or not any(map(str.isdigit, text)):
        return "".join(filter(str.isalnum, text)) or text
    plain_text = "".join(filter(str.isalnum, text)) or text
    for figures in (text, _figures(text), plain_text):
        try:
            number = Decimal(figures)
            return str(number.normalize()) if number else "0"
        except ArithmeticError:
            continue
    return plain_text


def _figures(text: str) -> str:
    """A number in figures alone, however its thousands and its fraction are parted; other texts as they are."""
    if (comma := _COMMA.fullmatch(text)) is not None:
        return f"{comma[1]}.{comma[2]}"
    if (grouped := _GROUPED.fullmatch(text)) is not None and (grouped[2] != "." or grouped[3] or text.count(".") > 1):
        return f"{grouped[1].translate(_PARTS)}.{grouped[3] or 0}"
    return text


def plain(value: Any) -> Any:
    """A value as JSON and YAML can hold it."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _integer(raw: Any) -> int:
    if isinstance(raw, bool):
        raise ValueError(f"`{raw}` is not a whole number")
    if isinstance(raw, int):
        return raw
    if isinstance(raw, float | Decimal) and math.isfinite(raw) and abs(raw) < _WHOLE and raw == int(raw):
        return int(raw)
    if isinstance(raw, str):
        return int(written_number(raw))
    raise ValueError(f"`{_text(raw)[:40]}` is not a whole number")


def _number(raw: Any) -> int | float:
    if isinstance(raw, bool):
        raise ValueError(f"`{raw}` is not a number")
    if not isinstance(raw, int | float | str | Decimal):
        raise ValueError(f"`{_text(raw)[:40]}` is not a number")
    number = raw if isinstance(raw, int | float) else float(written_number(raw) if isinstance(raw, str) else raw)
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError(f"`{_text(raw)[:40]}` is not a number")
    return number


def _money(raw: Any) -> Decimal:
    if isinstance(raw, bool):
        raise ValueError(f"`{raw}` is not an amount")
    if isinstance(raw, Decimal):
        amount = raw
    else:
        text = str(raw).strip()
        try:
            amount = read_amount(text) if len(text) <= _DIGITS else _NO_AMOUNT
        except InvalidOperation:
            amount = _NO_AMOUNT
    if not amount.is_finite() or abs(amount.adjusted()) > _DIGITS:
        raise ValueError(f"`{_text(raw)[:40]}` is not an amount")
    return amount


def _boolean(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, int) and raw in (0, 1):
        return bool(raw)
    if isinstance(raw, str):
        word = raw.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
    raise ValueError(f"`{_text(raw)[:40]}` is neither true nor false")


def _date(raw: Any) -> date:
    if isinstance(raw, datetime):
        return raw.date()
    if isinstance(raw, date):
        return raw
    if isinstance(raw, str):
        return date.fromisoformat(raw) if len(raw) == 10 else datetime.fromisoformat(raw).date()
    raise ValueError(f"`{_text(raw)[:40]}` is not a date")


def _datetime(raw: Any) -> datetime:
    if isinstance(raw, datetime):
        return raw
    if isinstance(raw, date):
        return datetime(raw.year, raw.month, raw.day)
    if isinstance(raw, str):
        return datetime.fromisoformat(raw)
    raise ValueError(f"`{_text(raw)[:40]}` is not a time")


def _string(raw: Any) -> str:
    return raw if isinstance(raw, str) else _text(raw)


def _list(raw: Any) -> Any:
    if isinstance(raw, (list, tuple)):
        return UNSEEN if holds_contradiction(raw) else cast(Any, raw)
    raise ValueError(f"`{_text(raw)[:40]}` is not a list")


def _object(raw: Any) -> Any:
    if isinstance(raw, (dict, list, Mapping)):
        return UNSEEN if holds_contradiction(raw) else cast(Any, raw)
    raise ValueError(f"`{_text(raw)[:40]}` is not an object")


_READ: dict[FieldType, Callable[[Any], Any]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "money": _money,
    "boolean": _boolean,
    "date": _date,
    "datetime": _datetime,
    "list": _list,
    "object": _object,
}
